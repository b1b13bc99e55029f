/* SPDX-License-Identifier: MIT */
/*
 * Random TSO packets through driver and model: IPv4 and IPv6, options, MSS 64 to 9000, up to 40
 * descriptors. What comes off the wire is judged by code that shares none with either: it reads
 * each frame from its first byte on, sums by itself, and puts the payload together again. With
 * SKB_PCAP=FILE they also go there, for tshark (tso_tshark_test.py).
 */
#include "tests/hw/rig.h"

#define PACKETS	    10000
#define MAX_PAYLOAD 40000

/*
 * --- the judge: frames in, sentences out
 * ----------------------------------------------------------------------------------------------
 */

struct judged {
	u32 ip_id, seq, flags, header, payload_at, payload_len, dest;
	bool ipv6;
};

static u32 be16(const u8 *p)
{
	return (u32)p[0] * 256 + p[1];
}

/* Adds 16-bit words with the carry put back each time; an odd end counts as its high byte. */
static u32 ones_add(u32 total, const u8 *p, u32 len)
{
	for (u32 i = 0; i < len; i++) {
		total += i % 2 ? p[i] : (u32)p[i] * 256;
		if (total > 0xffff)
			total = total % 0x10000 + 1;
	}
	return total;
}

static const char *judge(const u8 *f, u32 len, struct judged *j)
{
	u32 ip_at = 14, ip_len, tcp_at, tcp_len, sum, end;
	u8 next;

	if (len < 60)
		return "shorter than an Ethernet frame";
	j->ipv6 = be16(f + 12) == 0x86dd;
	if (!j->ipv6 && be16(f + 12) != 0x0800)
		return "neither IPv4 nor IPv6";
	if (!j->ipv6) {
		ip_len = (f[ip_at] % 16) * 4;
		if (ones_add(0, f + ip_at, ip_len) != 0xffff)
			return "IPv4 header checksum";
		end = ip_at + be16(f + ip_at + 2);
		next = f[ip_at + 9];
		tcp_at = ip_at + ip_len;
		j->ip_id = be16(f + ip_at + 4);
	} else {
		end = ip_at + 40 + be16(f + ip_at + 4);
		next = f[ip_at + 6];
		tcp_at = ip_at + 40;
		if (next == 60) {
			next = f[tcp_at];
			tcp_at += (f[tcp_at + 1] + 1u) * 8;
		}
		j->ip_id = 0;
	}
	if (next != 6)
		return "not TCP";
	if (end > len)
		return "IP says more bytes than there are";
	for (u32 i = end; i < len; i++)
		if (f[i] || len > 60)
			return "bytes behind the packet";
	tcp_len = end - tcp_at;
	sum = j->ipv6 ? ones_add(0, f + ip_at + 8, 32) : ones_add(0, f + ip_at + 12, 8);
	sum = ones_add(sum, (const u8[]){ 0, 6, tcp_len / 256, tcp_len % 256 }, 4);
	if (ones_add(sum, f + tcp_at, tcp_len) != 0xffff)
		return "TCP checksum";
	j->seq = be16(f + tcp_at + 4) * 65536 + be16(f + tcp_at + 6);
	j->flags = f[tcp_at + 13];
	j->header = (f[tcp_at + 12] / 16) * 4;
	j->payload_at = tcp_at + j->header;
	if (j->payload_at > end)
		return "TCP header longer than the packet";
	j->payload_len = end - j->payload_at;
	j->dest = be16(f + tcp_at + 2);
	return NULL;
}

/* All frames of one packet of shape S, whose payload was BYTES. */
static void judge_packet(const struct rig *r, const struct rig_shape *s, const u8 *bytes, u64 seed,
			 u32 number)
{
	u32 want = s->mss ? (s->payload + s->mss - 1) / s->mss : 1, at = 0;

	if (r->nr_frames != want)
		fail_msg("seed %#llx packet %u: %u frames, not %u. %s", (unsigned long long)seed,
			 number, r->nr_frames, want, model_first_violation(r->m));
	for (u32 i = 0; i < want; i++) {
		const u8 *f = r->frame[i].data;
		struct judged j;
		const char *wrong = judge(f, r->frame[i].f.len, &j);
		u32 size = s->mss && s->payload - at > s->mss ? s->mss : s->payload - at;
		/* FIN and PSH on the last one only, CWR on the first. */
		u32 flags = s->flags & (i == want - 1 ? 0xff : 0xf6) & (i ? 0x7f : 0xff);

		if (!wrong &&
		    (j.payload_len != size || j.seq != (u32)(s->seq + at) || j.ipv6 != s->ipv6 ||
		     j.dest != 5001 || j.header != 20 + s->tcp_options))
			wrong = "length, sequence number or ports";
		if (!wrong && !s->ipv6 && j.ip_id != (s->id + i) % 65536)
			wrong = "identification";
		if (!wrong && j.flags != flags)
			wrong = "flags";
		if (!wrong && memcmp(f + j.payload_at, bytes + at, size))
			wrong = "payload";
		if (wrong)
			fail_msg("seed %#llx packet %u frame %u of %u: %s",
				 (unsigned long long)seed, number, i, want, wrong);
		at += size;
	}
	assert_int_equal(at, s->payload);
}

/*
 * --- packets
 * ----------------------------------------------------------------------------------------------
 */

static struct rig_shape draw(struct rng *rng)
{
	struct rig_shape s = { 0 };

	s.ipv6 = rng_below(rng, 2);
	s.ip_options = rng_below(rng, 3) ? 0 : 8 * (1 + rng_below(rng, 5));
	s.tcp_options = 4 * rng_below(rng, 11);
	s.mss = rng_below(rng, 10) ? 64 + rng_below(rng, rng_below(rng, 2) ? 8937 : 1400) : 0;
	s.payload = 1 + rng_below(rng, s.mss ? min(MAX_PAYLOAD, (int)s.mss * 60) : 9000);
	s.seq = rng_next(rng);
	s.id = rng_next(rng);
	s.flags = 0x10 | (rng_next(rng) & 0x89);
	return s;
}

static void random_packets(void **state)
{
	u64 seed = model_seed("tso_random", 0x7501), n = model_ops(PACKETS);
	struct rng rng = { seed };
	struct rig *r = rig_new();
	const char *pcap = getenv("SKB_PCAP");
	u64 frames = 0;
	u32 most = 0;

	(void)state;
	r->mp.seed = seed;
	if (pcap)
		assert_non_null(r->mp.pcapng = fopen(pcap, "w"));
	r->cfg = ixgbe_default_config;
	r->cfg.max_frame = 9500;
	r->cfg.max_desc_bytes = IXGBE_MAX_DTALEN;
	rig_open(r);
	for (u32 i = 0; i < r->arena.bytes; i++)
		r->arena.base[i] = rng_next(&rng);
	for (u32 i = 0; i < n; i++) {
		struct rig_shape s = draw(&rng);
		u32 bufs = 1 + rng_below(&rng, 39), each = DIV_ROUND_UP(s.payload, bufs);
		u32 at = rng_below(&rng, r->arena.bytes - MAX_PAYLOAD);

		assert_int_equal(rig_post(r, 0, &s, at, each), 0);
		most = max(most, 1 + DIV_ROUND_UP(s.payload, each));
		ixgbe_tx_kick(&r->ix.txq[0]);
		rig_complete(r, 0, 1, 10);
		while (nicdev_relax(r->dev, nicdev_now_ps(r->dev) + SIM_PS_PER_MS))
			;
		judge_packet(r, &s, (u8 *)r->arena.base + at, seed, i);
		frames += r->nr_frames;
		rig_forget(r);
	}
	if (n > 1000)
		assert_int_equal(most, 40);
	printf("%llu packets, %llu frames\n", (unsigned long long)n, (unsigned long long)frames);
	rig_no_violation(r);
	rig_close(r);
	if (pcap)
		assert_int_equal(fclose(r->mp.pcapng), 0);
	free(r);
}

/* The judge itself: each of these faults in one good frame is found. */
static void judge_finds(void **state)
{
	struct rig *r = rig_new();
	struct judged j;
	u32 found = 0;

	(void)state;
	rig_open(r);
	assert_int_equal(rig_post(r, 0, &rig_64k, 0, 65160), 0);
	ixgbe_tx_kick(&r->ix.txq[0]);
	rig_complete(r, 0, 1, 10);
	rig_run_us(r, 100);
	assert_null(judge(r->frame[3].data, r->frame[3].f.len, &j));
	for (u32 i = 12; i < r->frame[3].f.len; i++) {
		r->frame[3].data[i] ^= 0x10;
		found += judge(r->frame[3].data, r->frame[3].f.len, &j) != NULL;
		r->frame[3].data[i] ^= 0x10;
	}
	assert_int_equal(found, r->frame[3].f.len - 12); /* each byte from the type on */
	rig_close(r);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge_finds),
		cmocka_unit_test(random_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
