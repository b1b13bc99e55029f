/* SPDX-License-Identifier: MIT */
/*
 * What a cut does with a map, digit by digit (golden trace T14), and where the posted patch is
 * wrong: after a trim, while a clone is below TCP, beyond 16 bits, without memory.
 */
#include "skb/mptcp_split.h"
#include "tests/mptcp/mptcp_harness.h"

#define D     (1ull << 40) /* data sequence and */
#define S     5000u /* subflow sequence of the first byte */
#define BYTES 65160
#define MSS   1448

static struct page *pages[2];

/* The map of SKB, of all the bytes that it holds. */
static void give_map(struct sk_buff *skb, u64 dsn, u32 ssn, u16 len)
{
	struct skb_ext *ext = skb_ext_alloc();
	struct mptcp_ext *map;

	assert_non_null(ext);
	map = __skb_ext_set(skb, SKB_EXT_MPTCP, ext);
	memset(map, 0, sizeof(*map));
	map->data_seq = dsn;
	map->subflow_seq = ssn;
	map->data_len = len;
	map->use_map = map->dsn64 = 1;
}

/* One sk_buff at sequence 1000 with 65160 bytes in two blocks, as the worked example has it. */
static struct sk_buff *example(enum skb_era e, enum mptcp_variant v)
{
	u32 len[2] = { 32768, BYTES - 32768 };
	struct sk_buff *skb = NULL;

	open_conn(e, v, 999, D, 1500);
	sk.mss_cache = MSS;
	sk.mptcp.isn = 1000 - S;
	msk.size_goal = BYTES;
	for (int i = 0; i < 2; i++) {
		pages[i] = alloc_pages(SKB_FRAG_PAGE_ORDER);
		skb = tcp_build_frag(e, &sk, BYTES, pages[i], 0, &len[i]);
		assert_non_null(skb);
	}
	assert_int_equal(skb->len, BYTES);
	give_map(skb, D, S, BYTES);
	return skb;
}

static void end(void)
{
	put_page(pages[0]);
	put_page(pages[1]);
	close_conn();
}

static int cut_unsent(struct sk_buff *skb, u32 len)
{
	return tso_fragment(era, mptcp_tcp(variant), &sk, skb, len, MSS);
}

static bool may_grow(const struct sk_buff *skb)
{
	const struct mptcp_ext *map = mptcp_get_ext(skb);

	return mptcp_skb_can_collapse_to(D + BYTES, skb, map);
}

/* What the halves are, whatever their maps. */
static void halves(struct sk_buff *from, struct sk_buff *to)
{
	assert_int_equal(from->len, 28960);
	assert_int_equal(to->len, 36200);
	assert_int_equal(skb_shinfo(from)->nr_frags, 1);
	assert_int_equal(skb_shinfo(to)->nr_frags, 2);
	assert_int_equal(skb_shinfo(to)->frags[0].offset, 28960);
	assert_int_equal(skb_shinfo(to)->frags[0].len, 3808);
	assert_int_equal(skb_shinfo(to)->frags[1].len, 32392);
	assert_int_equal(TCP_SKB_CB(from)->seq, 1000);
	assert_int_equal(TCP_SKB_CB(to)->seq, 29960);
	assert_int_equal(tcp_skb_pcount(era, from), 20);
	assert_int_equal(tcp_skb_pcount(era, to), 25);
	assert_int_equal(page_count(pages[0]), 3);
	assert_int_equal(page_count(pages[1]), 2);
}

/* tso_fragment() at 20 segments, then the second half at one more. */
static void golden(void **state)
{
	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			struct sk_buff *from = example(e, v), *to, *third;
			enum tcp_trim split = mptcp_tcp(v);

#ifdef SKB_TRACED
			counts_start();
#endif
			assert_int_equal(cut_unsent(from, 28960), 0);
#ifdef SKB_TRACED
			/* A pair and a head; one get; and for the map an RMW, or an object and 32 bytes. */
			assert_int_equal(counted.rmw[SKB_C_EXT], split == TRIM_EAGER);
			assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC],
					 2 + (split != TRIM_EAGER));
			assert_int_equal(counted.written[SKB_C_EXT], split == TRIM_EAGER ? 0 : 32);
			assert_int_equal(counted.event[SKB_EV_PAGE_GET], 1);
			assert_int_equal(counts_rmw(), 1);
#endif
			to = from->next;
			halves(from, to);
			if (split == TRIM_EAGER) {
				map_is(from, D, S, BYTES, true);
				assert_ptr_equal(to->extensions, from->extensions);
				assert_int_equal(ext_refs(from), 2);
				assert_false(may_grow(to));
			} else {
				map_is(from, D, S, 28960, true);
				map_is(to, D + 28960, S + 28960, 36200, false);
				assert_int_equal(ext_refs(from), 1);
				assert_int_equal(ext_refs(to), 1);
				assert_true(may_grow(to));
			}

			assert_int_equal(cut_unsent(to, 1448), 0);
			third = to->next;
			assert_int_equal(third->len, 34752);
			if (split == TRIM_EAGER) {
				assert_int_equal(ext_refs(from), 3);
				assert_ptr_equal(third->extensions, from->extensions);
			} else {
				map_is(to, D + 28960, S + 28960, 1448, true);
				map_is(third, D + 30408, S + 30408, 34752, false);
			}
			end();
		}
	}
}

/* What was added to the second half of the posted split is in its map, up to the whole goal. */
static void second_half_grows(void **state)
{
	(void)state;
	for_each_variant (v) {
		struct sk_buff *from = example(ERA_6_12, v), *to, *last;

		assert_int_equal(cut_unsent(from, 28960), 0);
		to = from->next;
		/* As if the stream had come so far: the next byte is D + 65160. */
		msk.write_seq = msk.snd_nxt = msk.snd_una = D + BYTES;
		msk.rel_write_seq = S + BYTES;
		msk.wnd_end = msk.write_seq + (1 << 30);
		sk.snd_wnd = 0;
		assert_int_equal(write_stream(30000), 30000);
		last = skb_peek_tail(&sk.sk_write_queue);
		if (mptcp_tcp(v) == TRIM_EAGER) {
			assert_int_equal(to->len, 36200);
			assert_true(TCP_SKB_CB(to)->eor);
			assert_ptr_equal(last, to->next);
			map_is(last, D + BYTES, S + BYTES, 30000, false);
		} else if (mptcp_has_size_bias(v)) {
			assert_int_equal(to->len, BYTES);
			map_is(to, D + 28960, S + 28960, BYTES, false);
			map_is(last, D + BYTES + 28960, S + BYTES + 28960, 1040, false);
		} else {
			/* The room counted twice: none. */
			assert_int_equal(to->len, 36200);
			map_is(last, D + BYTES, S + BYTES, 30000, false);
		}
		msk.write_seq = msk.snd_nxt;
		end();
	}
}

static int cut_sent(struct sk_buff *skb, u32 len)
{
	return tcp_fragment(era, mptcp_tcp(variant), &sk, &sk.tcp_rtx_queue, skb, len, MSS);
}

/* 1448 bytes are acknowledged and trimmed, the map stays; then a cut 1448 bytes further. */
static void after_trim(void **state)
{
	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			struct sk_buff *from = example(e, v), *to;

			assert_int_equal(tcp_write_xmit(e, mptcp_tcp(v), &sk), 1);
			tx_ring_complete(e, &ring, 1);
			assert_int_equal(tcp_ack(e, mptcp_tcp(v), &sk, 1000 + 1448), 1);
			assert_int_equal(from->len, 63712);
			assert_int_equal(TCP_SKB_CB(from)->seq, 2448);
			map_is(from, D, S, BYTES, false);

			assert_int_equal(cut_sent(from, 1448), 0);
			to = from->next;
			assert_int_equal(from->len, 1448);
			assert_int_equal(to->len, 62264);
			switch (mptcp_tcp(v)) {
			case TRIM_EAGER_SPLIT_POSTED:
				/* 1448 bytes too early: off by what was trimmed. */
				map_is(from, D, S, 2896, true);
				map_is(to, D + 1448, S + 1448, 62264, false);
				break;
			case TRIM_EAGER_SPLIT_FIXED:
				map_is(from, D, S, 2896, true);
				map_is(to, D + 2896, S + 2896, 62264, false);
				break;
			default:
				map_is(from, D, S, BYTES, true);
				assert_ptr_equal(to->extensions, from->extensions);
			}
			end();
		}
	}
}

/* 3000 bytes of which a clone is below TCP, cut at 1000: what the clone's owner reads. */
static void clone_in_flight(void **state)
{
	(void)state;
	for_each_mptcp_era (e) {
		for (int clone_first = 0; clone_first < 2; clone_first++) {
			for_each_variant (v) {
				struct sk_buff *skb, *clone;
				struct mptcp_ext *seen;
				u32 len = 3000;

				open_conn(e, v, 999, D, 1500);
				pages[0] = alloc_pages(0);
				pages[1] = alloc_pages(0);
				skb = tcp_build_frag(e, &sk, len, pages[0], 0, &len);
				give_map(skb, D, 1, 3000);
				clone = skb_clone(e, skb);
				clone->destructor = NULL;
				assert_int_equal(ext_refs(skb), 2);
				seen = mptcp_get_ext(clone);
				assert_int_equal(tcp_fragment(e, mptcp_tcp(v), &sk,
							      &sk.sk_write_queue, skb, 1000, MSS),
						 0);
				assert_int_equal(seen->data_seq, D);
				switch (mptcp_tcp(v)) {
				case TRIM_EAGER_SPLIT_POSTED:
					assert_int_equal(seen->data_len, 1000); /* the fault */
					assert_int_equal(ext_refs(clone), 2);
					break;
				case TRIM_EAGER_SPLIT_FIXED:
					assert_int_equal(seen->data_len, 3000);
					assert_false(seen->frozen);
					map_is(skb, D, 1, 1000, true);
					assert_int_equal(ext_refs(clone), 1);
					assert_int_equal(ext_refs(skb), 1);
					break;
				default:
					assert_int_equal(seen->data_len, 3000);
					assert_true(seen->frozen); /* all that may change */
					assert_int_equal(ext_refs(clone), 3);
				}
				if (clone_first)
					kfree_skb(e, clone);
				put_page(pages[0]);
				put_page(pages[1]);
				sk.write_seq = TCP_SKB_CB(skb->next)->end_seq;
				tcp_sock_destroy(e, &sk);
				if (!clone_first)
					kfree_skb(e, clone);
				close_conn();
			}
		}
	}
}

/* A map of 80136 bytes cannot be said, and what would be said is not divided. */
static void beyond_16_bits(void **state)
{
	struct mptcp_ext map = { .data_len = 65534 }, *from_map;
	struct sk_buff *skb, *to;
	u32 len;

	(void)state;
	assert_true(mptcp_ext_extend(&map, 1));
	assert_int_equal(map.data_len, 65535);
	assert_false(mptcp_ext_extend(&map, 1)); /* 65536 */
	assert_int_equal(map.data_len, 65535);
	map.data_len = 0;
	assert_false(mptcp_ext_extend(&map, 80136));
	assert_true(mptcp_ext_extend(&map, 65535));

	for_each_variant (v) {
		skb = example(ERA_6_12, v);
		for (u32 got = BYTES; got < 80136; got += len) {
			len = min(80136 - got, 8192u);
			assert_non_null(tcp_build_frag(ERA_6_12, &sk, 80136, pages[1], 0, &len));
		}
		assert_int_equal(skb->len, 80136);
		mptcp_get_ext(skb)->data_len = (u16)80136;
		assert_int_equal(mptcp_get_ext(skb)->data_len, 14600);
		from_map = mptcp_get_ext(skb);
		switch (mptcp_tcp(v)) {
		case TRIM_EAGER_SPLIT_POSTED:
			assert_int_equal(cut_unsent(skb, 1000), 0);
			assert_int_equal(mptcp_get_ext(skb->next)->data_len, 13600); /* 79136 */
			break;
		case TRIM_EAGER_SPLIT_FIXED:
			map = *from_map;
			assert_int_equal(cut_unsent(skb, 1000), -EINVAL);
			assert_int_equal(skb->len, 80136);
			assert_int_equal(sk.sk_write_queue.qlen, 1);
			assert_memory_equal(from_map, &map, sizeof(map));
			to = alloc_skb_fclone(era, 0, NUMA_NO_NODE);
			assert_int_equal(mptcp_skb_split_fixed(skb, to, S + 1000, 79136), -EINVAL);
			assert_int_equal(to->active_extensions, 0);
			kfree_skb(era, to);
			break;
		default:
			assert_int_equal(cut_unsent(skb, 1000), 0);
			map_is(skb->next, D, S, 14600, true);
		}
		end();
	}
}

#ifdef SKB_TRACED
static bool fail_ext(enum skb_site site)
{
	return site == SKB_SITE_EXT;
}

/* No memory for the second map: posted says nothing and has none; fixed cuts nothing. */
static void no_memory(void **state)
{
	(void)state;
	counts_start();
	for_each_variant (v) {
		struct sk_buff *from = example(ERA_6_12, v);
		int err;

		model_fail = fail_ext;
		err = cut_unsent(from, 28960);
		model_fail = NULL;
		switch (mptcp_tcp(v)) {
		case TRIM_EAGER_SPLIT_POSTED:
			assert_int_equal(err, 0);
			map_is(from, D, S, BYTES, false);
			assert_null(mptcp_get_ext(from->next));
			assert_false(may_grow(from->next));
			break;
		case TRIM_EAGER_SPLIT_FIXED:
			assert_int_equal(err, -ENOMEM);
			assert_int_equal(sk.sk_write_queue.qlen, 1);
			assert_int_equal(from->len, BYTES);
			map_is(from, D, S, BYTES, false);
			break;
		default:
			assert_int_equal(err, 0);
			assert_int_equal(ext_refs(from), 2);
		}
		end();
	}
}
#endif

/* The numbers of both maps run over 2^64 and 2^32. */
static void wraps(void **state)
{
	(void)state;
	for_each_variant (v) {
		struct sk_buff *from = example(ERA_6_12, v), *to;
		u64 dsn = -28960ull;
		u32 ssn = -1448u;

		/* The subflow's numbers count from where they did, the map's from elsewhere. */
		sk.mptcp.isn = 1000 - ssn;
		mptcp_get_ext(from)->data_seq = dsn;
		mptcp_get_ext(from)->subflow_seq = ssn;
		assert_int_equal(cut_unsent(from, 28960), 0);
		to = from->next;
		if (mptcp_tcp(v) == TRIM_EAGER) {
			map_is(to, dsn, ssn, BYTES, true);
		} else {
			map_is(from, dsn, ssn, 28960, true);
			map_is(to, 0, 27512, 36200, false);
		}
		assert_true(mptcp_skb_can_collapse_to(36200, to, mptcp_get_ext(to)) ==
			    (mptcp_tcp(v) != TRIM_EAGER));
		end();
	}
}

/* One number of DATA_FIN lies behind the bytes of its map and goes with the second half. */
static void data_fin(void **state)
{
	struct sk_buff *from = example(ERA_6_12, MPTCP_SPLIT_FIXED);

	(void)state;
	mptcp_get_ext(from)->data_fin = 1;
	mptcp_get_ext(from)->data_len++;
	assert_int_equal(cut_unsent(from, 28960), 0);
	map_is(from, D, S, 28960, true);
	assert_false(mptcp_get_ext(from)->data_fin);
	map_is(from->next, D + 28960, S + 28960, 36201, false);
	assert_true(mptcp_get_ext(from->next)->data_fin);
	end();
}

/* Halves that share a map may be joined again, halves with maps of their own may not. */
static void joined_again(void **state)
{
	(void)state;
	for_each_mptcp_era (e) {
		for_each_variant (v) {
			struct sk_buff *from = example(e, v), *to;
			bool shared = mptcp_tcp(v) == TRIM_EAGER;

			assert_int_equal(tcp_write_xmit(e, mptcp_tcp(v), &sk), 1);
			tx_ring_complete(e, &ring, 1);
			assert_int_equal(cut_sent(from, 20 * MSS), 0);
			to = from->next;
			assert_int_equal(tcp_skb_can_collapse(from, to), shared);
			/* A SACK of the middle of both: the second part is shifted, or is not. */
			assert_int_equal(
				tcp_sack(e, mptcp_tcp(v), &sk, 1000 + 10 * MSS, 1000 + 30 * MSS),
				20);
			assert_int_equal(sk.tcp_rtx_queue.qlen, shared ? 3 : 4);
			end();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),	  cmocka_unit_test(second_half_grows),
		cmocka_unit_test(after_trim),	  cmocka_unit_test(clone_in_flight),
		cmocka_unit_test(beyond_16_bits),
#ifdef SKB_TRACED
		cmocka_unit_test(no_memory),
#endif
		cmocka_unit_test(wraps),	  cmocka_unit_test(data_fin),
		cmocka_unit_test(joined_again),
	};

	return cmocka_run_group_tests(tests, mptcp_start, NULL);
}
