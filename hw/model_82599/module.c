/* SPDX-License-Identifier: MIT */
/*
 * The module in the cage, a passive copper cable, as I2CCTL shows it: two lines that
 * either end may pull down. It answers at 0xa0 with the bytes of SFF-8472: the address of a byte is
 * written, then bytes are read from there on.
 *
 *   START   data falls while the clock is high        STOP   data rises while the clock is high
 *   a bit is taken when the clock rises, and changes when it falls; each ninth acknowledges
 */
#include "hw/model_82599/internal.h"

#define ADDRESS	  0xa0u
#define READ	  1u
#define NR_BITS	  8
#define LINES_OUT (IXGBE_I2CCTL_CLK_OUT | IXGBE_I2CCTL_DATA_OUT)

enum { IDLE, TAKE_ADDRESS, TAKE_OFFSET, TAKE_DATA, ACKNOWLEDGE, GIVE, HEAR };

static u8 byte_at(u8 offset)
{
	switch (offset) {
	case 0: /* SFP */
		return 0x03;
	case 2: /* a cable with no connector at the module */
		return 0x21;
	case 8: /* passive */
		return 0x04;
	case 38: /* the vendor's OUI, 00:1b:21 */
		return 0x1b;
	case 39:
		return 0x21;
	default:
		return 0;
	}
}

static void give_next(struct sfp *s)
{
	s->shift = byte_at(s->offset++);
	s->bits = 0;
	s->state = GIVE;
	s->pulls = !(s->shift & 0x80);
}

static void clock_rises(struct sfp *s, bool data)
{
	switch (s->state) {
	case TAKE_ADDRESS:
	case TAKE_OFFSET:
	case TAKE_DATA:
		s->shift = s->shift << 1 | data;
		s->bits++;
		break;
	case GIVE:
		s->bits++;
		break;
	case HEAR:
		s->more = !data;
		break;
	default:
		break;
	}
}

/* All bits of a byte are taken: acknowledged, or not for us. */
static void byte_taken(struct sfp *s)
{
	s->next = TAKE_DATA; /* which is not kept */
	if (s->state == TAKE_ADDRESS) {
		s->next = s->shift & READ ? GIVE : TAKE_OFFSET;
		if ((s->shift & ~READ) != ADDRESS) {
			s->state = IDLE;
			return;
		}
	} else if (s->state == TAKE_OFFSET) {
		s->offset = s->shift;
	}
	s->state = ACKNOWLEDGE;
	s->pulls = true;
}

static void clock_falls(struct sfp *s)
{
	switch (s->state) {
	case TAKE_ADDRESS:
	case TAKE_OFFSET:
	case TAKE_DATA:
		if (s->bits == NR_BITS)
			byte_taken(s);
		break;
	case ACKNOWLEDGE:
		s->pulls = false;
		s->bits = 0;
		s->state = s->next;
		if (s->state == GIVE)
			give_next(s);
		break;
	case GIVE:
		s->pulls = s->bits < NR_BITS && !(s->shift << s->bits & 0x80);
		if (s->bits == NR_BITS)
			s->state = HEAR;
		break;
	case HEAR:
		if (s->more)
			give_next(s);
		else
			s->state = IDLE;
		break;
	default:
		break;
	}
}

void module_reset(struct model_82599 *m)
{
	m->sfp = (struct sfp){ 0 };
	*model_reg(m, IXGBE_I2CCTL) = LINES_OUT;
}

u32 module_read(struct model_82599 *m)
{
	u32 out = *model_reg(m, IXGBE_I2CCTL) & LINES_OUT;

	return out | (out & IXGBE_I2CCTL_CLK_OUT ? IXGBE_I2CCTL_CLK_IN : 0) |
	       (out & IXGBE_I2CCTL_DATA_OUT && !m->sfp.pulls ? IXGBE_I2CCTL_DATA_IN : 0);
}

void module_write(struct model_82599 *m, u32 value)
{
	u32 before = *model_reg(m, IXGBE_I2CCTL);
	bool clock = value & IXGBE_I2CCTL_CLK_OUT, data = value & IXGBE_I2CCTL_DATA_OUT;
	bool clock_was = before & IXGBE_I2CCTL_CLK_OUT, data_was = before & IXGBE_I2CCTL_DATA_OUT;
	struct sfp *s = &m->sfp;

	*model_reg(m, IXGBE_I2CCTL) = value & LINES_OUT;
	if (m->p.no_link || m->p.empty_cage || m->mac != MODEL_82599)
		return; /* nothing is in the cage, or there is none */
	if (clock && clock_was && data != data_was)
		*s = (struct sfp){ .state = data ? IDLE : TAKE_ADDRESS, .offset = s->offset };
	else if (clock && !clock_was)
		clock_rises(s, data);
	else if (!clock && clock_was)
		clock_falls(s);
}
