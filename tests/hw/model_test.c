/* SPDX-License-Identifier: MIT */
/*
 * What the model owes to drivers that are not ours, above all to Linux's ixgbe: registers at their
 * second place, causes that no queue has, checksums without TSO, frames that wait for descriptors.
 */
#include "tests/hw/rig.h"

#define LAST_LINK_MS 1600 /* the link is up by then */

static u32 rd(struct rig *r, u32 reg)
{
	return nicdev_read32(r->dev, reg);
}

static void wr(struct rig *r, u32 reg, u32 value)
{
	nicdev_write32(r->dev, reg, value);
}

static void power_off(struct rig *r)
{
	nicdev_arena_exit(&r->arena);
	nicdev_close(r->dev);
	free(r);
}

/* SRRCTL and DCA_RXCTRL of the first 16 queues lie at two places. */
static void aliases(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	rig_power_on(r);
	for (u32 q = 0; q < 16; q++) {
		wr(r, IXGBE_SRRCTL_ALIAS(q), 0x100 + q);
		wr(r, IXGBE_DCA_RXCTRL_ALIAS(q), 0x200 + q);
	}
	for (u32 q = 0; q < 16; q++) {
		assert_int_equal(rd(r, IXGBE_SRRCTL(q)), 0x100 + q);
		assert_int_equal(rd(r, IXGBE_DCA_RXCTRL(q)), 0x200 + q);
		wr(r, IXGBE_SRRCTL(q), q);
		assert_int_equal(rd(r, IXGBE_SRRCTL_ALIAS(q)), q);
	}
	assert_int_equal(rd(r, IXGBE_SRRCTL(16)), 2); /* as it comes out of reset */
	power_off(r);
}

/* Two ports of a card: each knows which one it is, and has its own address. Firmware runs. */
static void ports(void **state)
{
	(void)state;
	for (u32 port = 0; port < 2; port++) {
		struct rig *r = rig_new();

		r->mp.port = port;
		rig_open(r);
		assert_int_equal(rd(r, IXGBE_STATUS) >> IXGBE_STATUS_LAN_ID_SHIFT & 3, port);
		assert_int_equal(r->ix.mac[4], 0x3c);
		assert_int_equal(r->ix.mac[5], 0x4d + port);
		assert_true(rd(r, IXGBE_FWSM) & IXGBE_FWSM_FW_VALID);
		rig_close(r);
		free(r);
	}
}

static void link_interrupt(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	rig_power_on(r);
	assert_int_equal(nicdev_irq_enable(r->dev, 2), 0);
	wr(r, IXGBE_GPIE, IXGBE_GPIE_MSIX_MODE | IXGBE_GPIE_PBA_SUPPORT);
	wr(r, IXGBE_IVAR_MISC, (IXGBE_IVAR_VALID | 1) << 8);
	wr(r, IXGBE_EIMS, IXGBE_EICR_LSC);
	assert_false(nicdev_irq_pending(r->dev, 1));
	rig_run_us(r, LAST_LINK_MS * 1000); /* the link comes up */
	assert_true(nicdev_irq_pending(r->dev, 1));
	assert_false(nicdev_irq_pending(r->dev, 0));
	/* EICS shows the causes, and leaves them; EICR is cleared by a read. */
	assert_int_equal(rd(r, IXGBE_EICS), IXGBE_EICR_LSC);
	assert_int_equal(rd(r, IXGBE_EICS), IXGBE_EICR_LSC);
	assert_int_equal(rd(r, IXGBE_EICR), IXGBE_EICR_LSC);
	assert_int_equal(rd(r, IXGBE_EICS), 0);

	model_set_link(r->m, false);
	rig_run_us(r, 1);
	assert_true(nicdev_irq_pending(r->dev, 1));
	wr(r, IXGBE_EICR, IXGBE_EICR_LSC); /* or by writing ones */
	assert_int_equal(rd(r, IXGBE_EICS), 0);
	wr(r, IXGBE_EIMC, IXGBE_EICR_LSC);
	model_set_link(r->m, true);
	rig_run_us(r, 1);
	assert_false(nicdev_irq_pending(r->dev, 1)); /* masked, but it stands */
	assert_int_equal(rd(r, IXGBE_EICS), IXGBE_EICR_LSC);
	wr(r, IXGBE_EIMS, IXGBE_EICR_LSC);
	rig_run_us(r, 1);
	assert_true(nicdev_irq_pending(r->dev, 1));
	rig_no_violation(r);
	power_off(r);
}

/* The mask of queues at its wide register; with OCD a read of EICR leaves the queues' causes. */
static void queue_interrupt(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	rig_power_on(r);
	assert_int_equal(nicdev_irq_enable(r->dev, 2), 0);
	wr(r, IXGBE_GPIE,
	   IXGBE_GPIE_MSIX_MODE | IXGBE_GPIE_PBA_SUPPORT | IXGBE_GPIE_EIAME | IXGBE_GPIE_OCD);
	wr(r, IXGBE_EIAM_EX(0), ~0u);
	assert_int_equal(rd(r, IXGBE_EIAM), IXGBE_EICR_QUEUES);
	wr(r, IXGBE_EIMS_EX(0), 3);
	wr(r, IXGBE_EICS_EX(0), 1);
	rig_run_us(r, 1);
	assert_true(nicdev_irq_pending(r->dev, 0));
	assert_false(nicdev_irq_pending(r->dev, 1));
	assert_int_equal(rd(r, IXGBE_EIMS_EX(0)), 2); /* it has masked itself */
	assert_int_equal(rd(r, IXGBE_EICR), 1);
	assert_int_equal(rd(r, IXGBE_EICR), 1);
	wr(r, IXGBE_EICS_EX(0), 1);
	rig_run_us(r, 1);
	assert_false(nicdev_irq_pending(r->dev, 0));
	wr(r, IXGBE_EIMS_EX(0), 1);
	rig_run_us(r, 1);
	assert_true(nicdev_irq_pending(r->dev, 0));
	rig_no_violation(r);
	power_off(r);
}

/* The ones' complement sum of an IPv4 frame's TCP or UDP with its pseudo header: 0xffff if right. */
static u32 l4_sum(const u8 *ip)
{
	u32 iplen = 4 * (ip[0] & 15), len = (ip[2] << 8 | ip[3]) - iplen;
	u32 sum = rig_sum(ip + 12, 8) + ip[9] + len + rig_sum(ip + iplen, len);

	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static const struct rig_shape alone = { .payload = 100, .seq = 1, .flags = 0x18 };

/* Linux says TUCMD.IPV4 with TSO alone: it is for the header's checksum, which TCP's does without. */
static void checksum_alone(void **state)
{
	struct rig *r = rig_new();
	struct ixgbe_desc *d;

	(void)state;
	rig_open(r);
	for (u32 i = 0; i < 100; i++)
		r->arena.base[i] = i * 7;
	assert_int_equal(rig_post(r, 0, &alone, 0, 100), 0);
	d = r->ix.txq[0].desc;
	d[0].lo &= ~IXGBE_TXC_TUCMD_IPV4;
	d[1].hi &= ~IXGBE_TXD_POPTS_IXSM;
	ixgbe_tx_kick(&r->ix.txq[0]);
	rig_complete(r, 0, 1, 10);
	assert_int_equal(r->nr_frames, 1);
	assert_int_equal(l4_sum(r->frame[0].data + 14), 0xffff);
	assert_int_equal(r->frame[0].data[24] << 8 | r->frame[0].data[25], 0); /* not asked for */
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* A TCP packet in the ring made into UDP, what was the rest of TCP's header its data. */
static void post_udp(struct rig *r, u32 word)
{
	struct ixgbe_txq *q = &r->ix.txq[0];
	u32 at = q->next_to_use, seed;
	u8 *ip, *udp;

	assert_int_equal(rig_post(r, 0, &alone, 0, 100), 0);
	/* The header that rig_post() has filled is the one that the first buffer names. */
	ip = (u8 *)q->headers + (q->desc[at + 1].addr - q->headers_iova) + 14;
	udp = ip + 20;
	ip[9] = 17;
	rig_put16(udp + 4, 120);
	seed = rig_sum(ip + 12, 8) + 17 + 120;
	rig_put16(udp + 6, (seed & 0xffff) + (seed >> 16));
	rig_put16(udp + 8, word);
	q->desc[at].lo &= ~IXGBE_TXC_TUCMD_L4T;
	ixgbe_tx_kick(q);
	rig_complete(r, 0, 1, 10);
}

/* UDP's checksum; one that comes out as 0 is sent as all ones, since 0 says that there is none. */
static void checksum_of_udp(void **state)
{
	struct rig *r = rig_new();
	const u8 *udp;
	u32 sum;

	(void)state;
	rig_open(r);
	post_udp(r, 0);
	udp = r->frame[0].data + 34;
	sum = udp[6] << 8 | udp[7];
	assert_int_equal(l4_sum(r->frame[0].data + 14), 0xffff);
	assert_in_range(sum, 1, 0xfffe);
	post_udp(r, sum);
	udp = r->frame[1].data + 34;
	assert_int_equal(udp[6] << 8 | udp[7], 0xffff);
	assert_int_equal(l4_sum(r->frame[1].data + 14), 0xffff);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* Linux posts 16 KB in one buffer: told, and sent all the same. */
static void linux_dtalen(void **state)
{
	struct rig_shape s = rig_64k;
	struct rig *r = rig_new();
	struct ixgbe_desc *d;

	(void)state;
	s.payload = IXGBE_LINUX_DTALEN;
	rig_open(r);
	assert_int_equal(rig_post(r, 0, &s, 0, 8192), 0); /* context, header, two buffers */
	d = r->ix.txq[0].desc;
	d[2].lo = (d[3].lo & ~0xffffu) | IXGBE_LINUX_DTALEN;
	wr(r, IXGBE_TDT(0), 3);
	rig_run_us(r, 100);
	assert_int_equal(r->nr_frames, DIV_ROUND_UP(IXGBE_LINUX_DTALEN, 1448));
	assert_int_equal(model_violations(r->m, V_DTALEN), 1);
	assert_int_equal(model_nr_violations(r->m), 1);
	rig_close(r);
	free(r);
}

static void count_frame(void *ctx, const u8 *data, u32 len)
{
	(void)data;
	(void)len;
	++*(u32 *)ctx;
}

/* N frames at once for DST, 1 us apart; how many are there afterwards. */
static u32 receive(struct rig *r, const u8 *dst, u32 n, u32 len)
{
	u8 frame[1514] = { 0 };
	u32 got = 0;

	memcpy(frame, dst, 6);
	for (u32 i = 0; i < n; i++)
		assert_int_equal(model_receive(r->m, nicdev_now_ps(r->dev) + i * SIM_PS_PER_US, 0,
					       frame, len),
				 0);
	rig_run_us(r, n + 5);
	ixgbe_rx_poll(&r->ix.rxq[0], n, count_frame, &got);
	return got;
}

static void filters(void **state)
{
	static const u8 group[6] = { 0x33, 0x33, 0xff, 0x12, 0x34, 0x56 };
	static const u8 other[6] = { 2, 0, 0, 0, 0, 9 };
	/* Bits 47:36, 46:35, 45:34 and 43:32 of the address, its last byte on top. */
	static const u32 vector[] = { 0x563, 0xac6, 0x58d, 0x634 };
	struct rig *r = rig_new();

	(void)state;
	rig_open(r);
	assert_int_equal(receive(r, group, 1, 100), 0);
	for (u32 mo = 0; mo < 4; mo++) {
		wr(r, IXGBE_MCSTCTRL, IXGBE_MCSTCTRL_MFE | mo);
		assert_int_equal(receive(r, group, 1, 100), 0);
		wr(r, IXGBE_MTA(vector[mo] / 32), 1u << vector[mo] % 32);
		assert_int_equal(receive(r, group, 1, 100), 1);
		wr(r, IXGBE_MCSTCTRL, mo);
		assert_int_equal(receive(r, group, 1, 100), 0);
		wr(r, IXGBE_MTA(vector[mo] / 32), 0);
	}
	assert_int_equal(receive(r, other, 1, 100), 0);
	wr(r, IXGBE_RAL(7), 2);
	wr(r, IXGBE_RAH(7), IXGBE_RAH_AV | 0x0900);
	assert_int_equal(receive(r, other, 1, 100), 1);
	assert_int_equal(receive(r, r->ix.mac, 1, 100), 1);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* Without DROP_EN frames wait for descriptors, as many as the receive buffer holds. */
static void waits_for_descriptors(void **state)
{
	struct rig *r = rig_new();
	u32 got = 0;

	(void)state;
	r->cfg = ixgbe_default_config;
	r->cfg.rx_ring = 64;
	rig_open(r);
	wr(r, IXGBE_SRRCTL(0), rd(r, IXGBE_SRRCTL(0)) & ~IXGBE_SRRCTL_DROP_EN);
	assert_int_equal(receive(r, r->ix.mac, 80, 100), 63);
	rig_run_us(r, 5);
	assert_int_equal(ixgbe_rx_poll(&r->ix.rxq[0], 80, count_frame, &got), 17);
	ixgbe_update_stats(&r->ix);
	assert_int_equal(r->ix.stats.rx_packets, 80);
	assert_int_equal(r->ix.stats.rxq_packets[0], 80);
	assert_int_equal(r->ix.stats.rx_missed, 0);

	wr(r, IXGBE_RXPBSIZE(0), 10 << IXGBE_RXPBSIZE_SHIFT);
	assert_int_equal(receive(r, r->ix.mac, 100, 1000), 63);
	rig_run_us(r, 5);
	got = 0;
	ixgbe_rx_poll(&r->ix.rxq[0], 80, count_frame, &got);
	assert_int_equal(got, 10); /* of 1000 bytes each in 10 KB */
	ixgbe_update_stats(&r->ix);
	assert_int_equal(r->ix.stats.rx_packets, 180);
	assert_int_equal(r->ix.stats.rx_missed, 100 - 63 - 10);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/* Each counter is read to clear. */
static void takes(struct rig *r, u32 reg, u32 value)
{
	assert_int_equal(rd(r, reg), value);
	assert_int_equal(rd(r, reg), 0);
}

static void statistics(void **state)
{
	static const u8 broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct rig *r = rig_new();

	(void)state;
	rig_open(r);
	assert_int_equal(receive(r, r->ix.mac, 2, 60), 2);
	assert_int_equal(receive(r, r->ix.mac, 1, 61), 1);
	assert_int_equal(receive(r, r->ix.mac, 1, 1514), 1);
	assert_int_equal(receive(r, broadcast, 1, 252), 1);
	takes(r, IXGBE_QPRC(0), 5);
	takes(r, IXGBE_RXDGPC, 5);
	takes(r, IXGBE_GPRC, 5);
	takes(r, IXGBE_BPRC, 1);
	takes(r, IXGBE_MPRC, 0);
	takes(r, IXGBE_PRC64(0), 2);
	takes(r, IXGBE_PRC64(1), 1);
	takes(r, IXGBE_PRC64(2), 0);
	takes(r, IXGBE_PRC64(3), 1); /* 256 with its FCS */
	takes(r, IXGBE_PRC64(5), 1);

	assert_int_equal(rig_post(r, 0, &rig_64k, 0, 8192), 0);
	ixgbe_tx_kick(&r->ix.txq[0]);
	rig_complete(r, 0, 1, 10);
	rig_run_us(r, 100);
	takes(r, IXGBE_PTC64(5), 45);
	takes(r, IXGBE_PTC64(0), 0);
	takes(r, IXGBE_MPTC, 0);
	takes(r, IXGBE_BPTC, 0);
	rig_no_violation(r);
	rig_close(r);
	free(r);
}

/*
 * --- the module in the cage
 * ----------------------------------------------------------------------------------------------
 */

static void lines(struct rig *r, bool clock, bool data)
{
	wr(r, IXGBE_I2CCTL,
	   (clock ? IXGBE_I2CCTL_CLK_OUT : 0) | (data ? IXGBE_I2CCTL_DATA_OUT : 0));
}

/* The data line during a clock, while this end says DATA. */
static bool clock_bit(struct rig *r, bool data)
{
	bool in;

	lines(r, false, data);
	lines(r, true, data);
	assert_true(rd(r, IXGBE_I2CCTL) & IXGBE_I2CCTL_CLK_IN);
	in = rd(r, IXGBE_I2CCTL) & IXGBE_I2CCTL_DATA_IN;
	lines(r, false, data);
	return in;
}

static void i2c_start(struct rig *r)
{
	lines(r, false, true);
	lines(r, true, true);
	lines(r, true, false);
	lines(r, false, false);
}

static void i2c_stop(struct rig *r)
{
	lines(r, false, false);
	lines(r, true, false);
	lines(r, true, true);
}

/* True if the byte was acknowledged. */
static bool i2c_put(struct rig *r, u8 byte)
{
	for (u32 i = 0; i < 8; i++)
		clock_bit(r, byte >> (7 - i) & 1);
	return !clock_bit(r, true);
}

static u8 i2c_get(struct rig *r, bool more)
{
	u8 byte = 0;

	for (u32 i = 0; i < 8; i++)
		byte = byte << 1 | clock_bit(r, true);
	clock_bit(r, !more);
	return byte;
}

static void module_bytes(void **state)
{
	static const struct {
		u8 offset, holds;
	} rows[] = { { 0, 3 }, { 3, 0 }, { 8, 4 }, { 37, 0 }, { 38, 0x1b }, { 39, 0x21 } };
	struct rig *r = rig_new();

	(void)state;
	rig_power_on(r);
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		i2c_start(r);
		assert_true(i2c_put(r, 0xa0));
		assert_true(i2c_put(r, rows[i].offset));
		i2c_start(r); /* again, without a stop */
		assert_true(i2c_put(r, 0xa1));
		assert_int_equal(i2c_get(r, false), rows[i].holds);
		i2c_stop(r);
	}
	/* On from where it stands, byte after byte. */
	i2c_start(r);
	assert_true(i2c_put(r, 0xa0));
	assert_true(i2c_put(r, 37));
	i2c_start(r);
	assert_true(i2c_put(r, 0xa1));
	assert_int_equal(i2c_get(r, true), 0);
	assert_int_equal(i2c_get(r, true), 0x1b);
	assert_int_equal(i2c_get(r, false), 0x21);
	i2c_stop(r);
	i2c_start(r);
	assert_false(i2c_put(r, 0xa2)); /* nobody */
	i2c_stop(r);
	rig_no_violation(r);
	power_off(r);

	r = rig_new();
	r->mp.no_link = true;
	rig_power_on(r);
	i2c_start(r);
	assert_false(i2c_put(r, 0xa0)); /* an empty cage */
	i2c_stop(r);
	power_off(r);
}

static u32 word(struct rig *r, u32 at)
{
	wr(r, IXGBE_EERD, at << 2 | IXGBE_EERD_START);
	assert_true(rd(r, IXGBE_EERD) & IXGBE_EERD_DONE);
	return rd(r, IXGBE_EERD) >> IXGBE_EERD_DATA_SHIFT;
}

/* Its checksum, the way to the words for a passive cable at either port, and the firmware's version. */
static void eeprom(void **state)
{
	struct rig *r = rig_new();
	u32 sum = 0, at;

	(void)state;
	rig_power_on(r);
	assert_int_equal(rd(r, IXGBE_EEC) & 0x7800, IXGBE_EEC_SIZE(7)); /* Linux reads no further */
	for (u32 i = 0; i <= 0x3f; i++)
		sum += word(r, i);
	assert_int_equal(sum & 0xffff, 0xbaba);
	at = word(r, 0x2b) + 1;
	assert_int_equal(word(r, at), 3);
	assert_int_equal(word(r, at + 2), 4);
	assert_int_equal(word(r, at + 1), word(r, at + 3));
	assert_int_equal(word(r, at + 4), 0xffff);
	at = word(r, at + 1);
	assert_int_not_equal(word(r, at + 1), 0xffff);
	assert_int_equal(word(r, at + 2), 0xffff);
	assert_int_equal(word(r, word(r, word(r, 0x0f) + 4) + 7), 6);
	power_off(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aliases),	  cmocka_unit_test(ports),
		cmocka_unit_test(link_interrupt), cmocka_unit_test(queue_interrupt),
		cmocka_unit_test(checksum_alone), cmocka_unit_test(checksum_of_udp),
		cmocka_unit_test(linux_dtalen),	  cmocka_unit_test(filters),
		cmocka_unit_test(statistics),	  cmocka_unit_test(waits_for_descriptors),
		cmocka_unit_test(module_bytes),	  cmocka_unit_test(eeprom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
