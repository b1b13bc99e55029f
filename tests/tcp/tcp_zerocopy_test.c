/* SPDX-License-Identifier: MIT */
/*
 * tcp_sendmsg_zerocopy(): frags in a user's pages, and what is charged for them. Each runs in the
 * eras that have it; what is pure has no copied byte.
 */
#include "tests/tcp/tcp_test.h"

#define for_each_zc_era(era) for (enum skb_era era = ERA_6_1; era < SKB_ERA_NR; era++)
#define ZC_FLAGS	     (SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN)
#define PAGES		     24

/* A user: pages that do not continue each other, and how often he was told. */
static struct page *user_page[PAGES];
static struct ubuf_info_msgzc uarg[2];
static int told[2];

static void tell(struct ubuf_info_msgzc *u)
{
	told[u - uarg]++;
}

static void open_user(void)
{
	struct page *spare[PAGES];

	for (int i = 0; i < PAGES; i++) {
		user_page[i] = alloc_pages(0);
		spare[i] = alloc_pages(0);
		assert_non_null(user_page[i]);
		assert_non_null(spare[i]);
		memcpy(page_address(user_page[i]), data + i * PAGE_SIZE, PAGE_SIZE);
	}
	for (int i = 0; i < PAGES; i++)
		put_page(spare[i]);
	for (int i = 0; i < 2; i++) {
		msg_zerocopy_init(&uarg[i], ZC_FLAGS, tell);
		told[i] = 0;
	}
}

/* Nobody holds a page any more, and the user was told so, once. */
static void close_user(void)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(told[i], 0); /* the sender's own reference */
		net_zcopy_put(&uarg[i].ubuf);
		assert_int_equal(told[i], 1);
		assert_true(uarg[i].zerocopy);
	}
	for (int i = 0; i < PAGES; i++) {
		assert_int_equal(page_count(user_page[i]), 1);
		put_page(user_page[i]);
	}
}

static void open_both(void)
{
	open_sock(SKB_FRAG_PAGE_ORDER);
	open_user();
}

/* The socket ends with nothing charged, whatever is queued. */
static void close_both(enum skb_era era)
{
	complete_all(era);
	tcp_sock_destroy(era, &sk);
	assert_int_equal(sk.sk_wmem_queued, 0);
	assert_int_equal(sk.sk_forward_alloc, 0);
	close_user();
	close_sock(era);
}

static int send_zc(enum skb_era era, u32 offset, u32 len, int user)
{
	struct skb_user_pages from = { user_page, offset };

	return tcp_sendmsg_zerocopy(era, &sk, &from, len, &uarg[user].ubuf);
}

/* Bytes that are charged now. */
static long charged(void)
{
	return proto_memory_bytes(&prot) - sk.sk_forward_alloc;
}

static struct sk_buff *queued(void)
{
	return skb_peek_tail(&sk.sk_write_queue);
}

static u32 bare(const struct sk_buff *skb)
{
	return SKB_TRUESIZE(skb_end_offset(skb));
}

/*
 * 100 bytes of a user's page: truesize says a page, nobody is charged for it. 200 copied bytes: then
 * the page is charged, all 4096 bytes of it and not the 100.
 */
static void copied_bytes_charge_the_page(void **state)
{
	(void)state;
	need_4k_pages();
	for_each_zc_era (era) {
		struct sk_buff *skb;

		open_both();
		assert_int_equal(send_zc(era, 0, 100, 0), 100);
		skb = queued();
		assert_true(skb_zcopy_pure(skb));
		assert_ptr_equal(skb_zcopy(skb), &uarg[0].ubuf);
		assert_int_equal(skb->len, 100);
		assert_int_equal(skb->truesize, bare(skb) + 4096);
		assert_int_equal(sk.sk_wmem_queued, skb->truesize);
		assert_int_equal(charged(), bare(skb));
		assert_int_equal(page_count(user_page[0]), 2);

		assert_int_equal(tcp_sendmsg(era, &sk, data + 100, 200), 200);
		assert_ptr_equal(queued(), skb);
		assert_int_equal(skb_shinfo(skb)->nr_frags, 2);
		assert_false(skb_zcopy_pure(skb));
		assert_int_equal(skb->truesize, bare(skb) + 4096 + 200);
		assert_int_equal(charged(), skb->truesize);
		assert_int_equal(sk.sk_wmem_queued, skb->truesize);
		check(era, TRIM_EAGER);
		check_bytes(skb);
		close_both(era);
	}
}

/* The same by the way of a page that is appended as it is, which is not the user's. */
static void appended_pages_charge_the_page(void **state)
{
	(void)state;
	need_4k_pages();
	for_each_zc_era (era) {
		struct page *page = alloc_pages(0);
		struct sk_buff *skb;
		u32 size = 200;

		open_both();
		assert_int_equal(send_zc(era, 0, 100, 0), 100);
		skb = queued();
		memcpy(page_address(page), data + 100, 200);
		assert_ptr_equal(tcp_build_frag(era, &sk, BYTES, page, 0, &size), skb);
		assert_int_equal(size, 200);
		assert_false(skb_zcopy_pure(skb));
		assert_int_equal(skb->truesize, bare(skb) + 4096 + 200);
		assert_int_equal(charged(), skb->truesize);
		check(era, TRIM_EAGER);
		check_bytes(skb);
		tcp_sock_destroy(era, &sk);
		put_page(page);
		close_both(era);
	}
}

/* The other way round, and both again: charged as they come, whole pages for a user's. */
static void behind_copied_bytes(void **state)
{
	(void)state;
	need_4k_pages();
	for_each_zc_era (era) {
		struct sk_buff *skb;

		open_both();
		assert_int_equal(tcp_sendmsg(era, &sk, data, 50), 50);
		skb = queued();
		assert_int_equal(send_zc(era, 50, 100, 0), 100);
		assert_ptr_equal(queued(), skb);
		assert_false(skb_zcopy_pure(skb));
		assert_int_equal(charged(), bare(skb) + 50 + 4096);
		assert_int_equal(tcp_sendmsg(era, &sk, data + 150, 10), 10);
		assert_int_equal(charged(), bare(skb) + 50 + 4096 + 10);
		assert_int_equal(sk.sk_wmem_queued, charged());
		check(era, TRIM_EAGER);
		check_bytes(skb);
		close_both(era);
	}
}

/* Acknowledged bytes and cuts change nothing of a charge that was not made. */
static void trimmed_and_cut(void **state)
{
	(void)state;
	need_4k_pages();
	for_each_zc_era (era) {
		for (int mixed = 0; mixed < 2; mixed++) {
			struct sk_buff *skb;
			long before;
			u32 truesize;

			open_both();
			assert_int_equal(send_zc(era, 0, 20000, 0), 20000);
			if (mixed)
				assert_int_equal(tcp_sendmsg(era, &sk, data + 20000, 100), 100);
			assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 1);
			skb = oldest();
			truesize = skb->truesize;
			before = charged();
			assert_int_equal(before, mixed ? truesize : bare(skb));

			assert_int_equal(tcp_ack(era, TRIM_EAGER, &sk, 1 + 5 * MSS), 5);
			assert_int_equal(skb->truesize, truesize - 5 * MSS);
			assert_int_equal(charged(), before - (mixed ? 5 * MSS : 0));
			check(era, TRIM_EAGER);

			before = charged();
			assert_int_equal(tcp_fragment(era, TRIM_EAGER, &sk, &sk.tcp_rtx_queue, skb,
						      3 * MSS, MSS),
					 0);
			assert_int_equal(charged(), before + bare(skb->next));
			assert_int_equal(skb_zcopy_pure(skb), !mixed);
			assert_int_equal(skb_zcopy_pure(skb->next), !mixed);
			assert_int_equal(sk.sk_wmem_queued, skb->truesize + skb->next->truesize);
			check(era, TRIM_EAGER);
			check_bytes(skb);
			check_bytes(skb->next);
			close_both(era);
		}
	}
}

/* A cut of what was never sent, for a window. */
static void cut_for_the_window(void **state)
{
	(void)state;
	for_each_zc_era (era) {
		open_both();
		assert_int_equal(send_zc(era, 0, 20000, 0), 20000);
		sk.snd_wnd = 5 * MSS;
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 1);
		assert_int_equal(oldest()->len, 5 * MSS);
		assert_true(skb_zcopy_pure(queued()));
		assert_int_equal(charged(), 2 * bare(queued()));
		assert_int_equal(uarg[0].ubuf.refcnt.refs.counter, 3);
		check(era, TRIM_EAGER);
		close_both(era);
	}
}

/* All is acknowledged: the user is told when the last clone is gone, too, and not before. */
static void the_user_is_told(void **state)
{
	(void)state;
	for_each_zc_era (era) {
		open_both();
		assert_int_equal(send_zc(era, 10, 3 * MSS, 0), 3 * MSS);
		net_zcopy_put(&uarg[0].ubuf);
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 1);
		assert_int_equal(tcp_ack(era, TRIM_EAGER, &sk, 1 + 3 * MSS), 3);
		assert_int_equal(sk.sk_wmem_queued, 0);
		assert_int_equal(charged(), 0);
		assert_int_equal(told[0], 0);
		complete_all(era);
		assert_int_equal(told[0], 1);
		assert_true(uarg[0].zerocopy);
		msg_zerocopy_init(&uarg[0], ZC_FLAGS, tell);
		told[0] = 0;
		close_both(era);
	}
}

/* One ubuf_info an sk_buff. The other user's bytes start a new one, and copied ones join that. */
static void two_users(void **state)
{
	(void)state;
	for_each_zc_era (era) {
		struct sk_buff *a, *b;

		open_both();
		assert_int_equal(send_zc(era, 0, 1000, 0), 1000);
		a = queued();
		assert_int_equal(send_zc(era, 1000, 1000, 0), 1000);
		assert_ptr_equal(queued(), a);
		assert_int_equal(skb_shinfo(a)->nr_frags, 1); /* they continue each other */
		assert_int_equal(page_count(user_page[0]), 2);
		assert_int_equal(send_zc(era, 2000, 1000, 1), 1000);
		b = queued();
		assert_ptr_not_equal(a, b);
		assert_ptr_equal(skb_zcopy(b), &uarg[1].ubuf);
		assert_true(skb_zcopy_pure(a) && skb_zcopy_pure(b));
		check(era, TRIM_EAGER);
		close_both(era);
	}
}

/* A page a frag, as many as there are slots; the rest in the next one. In a block: one frag. */
static void slots(void **state)
{
	(void)state;
	for_each_zc_era (era) {
		struct page *block, *in_block[8];
		struct skb_user_pages from = { in_block, 100 };
		u32 len = 22 * PAGE_SIZE;
		static char last[22 * PAGE_SIZE];

		open_both();
		if (MAX_SKB_FRAGS == 17 && PAGE_SHIFT == 12) {
			sk.gso_max_size = 1 << 20;
			assert_int_equal(send_zc(era, 1, len, 0), len);
			assert_int_equal(sk.sk_write_queue.qlen, 2);
			assert_int_equal(skb_peek(&sk.sk_write_queue)->len, 17 * PAGE_SIZE - 1);
			assert_int_equal(skb_shinfo(queued())->nr_frags, 6);
			assert_int_equal(charged(), 2 * bare(queued()));
			skb_copy_bits(queued(), 0, last, queued()->len);
			assert_memory_equal(last, data + 1 + len - queued()->len, queued()->len);
		}
		block = alloc_pages(3);
		for (int i = 0; i < 8; i++)
			in_block[i] = block + i;
		if (queued())
			TCP_SKB_CB(queued())->eor = 1;
		assert_int_equal(
			tcp_sendmsg_zerocopy(era, &sk, &from, 7 * PAGE_SIZE, &uarg[1].ubuf),
			7 * PAGE_SIZE);
		assert_int_equal(skb_shinfo(queued())->nr_frags, 1);
		assert_ptr_equal(skb_shinfo(queued())->frags[0].page, block);
		assert_int_equal(skb_shinfo(queued())->frags[0].offset, 100);
		assert_int_equal(skb_shinfo(queued())->frags[0].len, 7 * PAGE_SIZE);
		assert_int_equal(page_count(block), 2);
		assert_int_equal(queued()->truesize, bare(queued()) + 8 * PAGE_SIZE);
		tcp_sock_destroy(era, &sk);
		assert_int_equal(page_count(block), 1);
		put_page(block);
		close_both(era);
	}
}

/* What is charged in another way is not joined, by a SACK or before a retransmission. */
static void kinds_are_not_joined(void **state)
{
	(void)state;
	for_each_zc_era (era) {
		struct sk_buff *a, *b;

		open_both();
		assert_int_equal(send_zc(era, 0, 500, 0), 500);
		a = queued();
		TCP_SKB_CB(a)->eor = 1;
		assert_int_equal(tcp_sendmsg(era, &sk, data + 500, 500), 500);
		b = queued();
		TCP_SKB_CB(a)->eor = 0;
		assert_ptr_not_equal(a, b);
		assert_false(tcp_skb_can_collapse(a, b));
		assert_false(tcp_skb_can_collapse(b, a));
		assert_true(tcp_skb_can_collapse(b, b));
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 2);
		complete_all(era);
		assert_int_equal(tcp_retrans_try_collapse(era, &sk, a, MSS), 0);
		assert_int_equal(sk.tcp_rtx_queue.qlen, 2);
		check(era, TRIM_EAGER);
		close_both(era);
	}
}

/* A head that moved too far stays behind; the copy that goes holds the user's pages as well. */
static void copied_for_headroom(void **state)
{
	(void)state;
	for_each_zc_era (era) {
		struct sk_buff *skb;
		u32 before;

		open_both();
		assert_int_equal(send_zc(era, 0, 500, 0), 500);
		assert_int_equal(tcp_write_xmit(era, TRIM_EAGER, &sk), 1);
		complete_all(era);
		skb = oldest();
		before = skb->truesize;
		assert_int_equal(pskb_expand_head(era, skb, 0xffff, 0), 0);
		/* TCP has such a head from the start: it was charged for it. */
		sk_wmem_schedule(era, &sk, skb->truesize - before);
		sk_wmem_queued_add(&sk, skb->truesize - before);
		sk_mem_charge(&sk, skb->truesize - before);
		assert_int_equal(tcp_retransmit_skb(era, TRIM_EAGER, &sk, skb, 1), 0);
		assert_int_equal(last_sent()->fclone, SKB_FCLONE_UNAVAILABLE);
		assert_ptr_equal(skb_zcopy(last_sent()), &uarg[0].ubuf);
		assert_int_equal(page_count(user_page[0]), 3);
		assert_int_equal(skb_headroom(last_sent()) + 66, MAX_TCP_HEADER);
		complete_all(era);
		close_both(era);
	}
}

static void not_in_3_4(void **state)
{
	(void)state;
	open_both();
	assert_int_equal(send_zc(ERA_3_4, 0, 100, 0), -EOPNOTSUPP);
	assert_null(queued());
	close_both(ERA_3_4);
}

#ifdef SKB_TRACED
/*
 * 64 KB: a reference on each page and one on the ubuf_info, nothing copied; the same dropped. Pages
 * that continue each other in a block are held one by one, and given back at once.
 */
static void what_it_costs(void **state)
{
	(void)state;
	need_4k_pages();
	for_each_zc_era (era) {
		struct page *block, *in_block[8];
		struct skb_user_pages from = { in_block, 0 };

		open_both();
		counts_start();
		assert_int_equal(send_zc(era, 0, BYTES, 0), BYTES);
		assert_int_equal(counted.event[SKB_EV_PAGE_GET], 16);
		assert_int_equal(counted.rmw[SKB_C_PAGE], 16);
		assert_int_equal(counted.rmw[SKB_C_UARG], 1);
		assert_int_equal(counted.written[SKB_C_PAYLOAD], 0);
		assert_int_equal(counted.event[SKB_EV_OBJ_ALLOC], 2);
		counts_start();
		tcp_sock_destroy(era, &sk);
		assert_int_equal(counted.event[SKB_EV_PAGE_PUT], 16);
		assert_int_equal(counted.rmw[SKB_C_UARG], 1);

		block = alloc_pages(3);
		for (int i = 0; i < 8; i++)
			in_block[i] = block + i;
		counts_start();
		assert_int_equal(tcp_sendmsg_zerocopy(era, &sk, &from, 32768, &uarg[0].ubuf),
				 32768);
		assert_int_equal(counted.event[SKB_EV_PAGE_GET], 8);
		assert_int_equal(counted.event[SKB_EV_PAGE_PUT], 1);
		assert_int_equal(counted.rmw[SKB_C_PAGE], 9);
		assert_int_equal(page_count(block), 2);
		tcp_sock_destroy(era, &sk);
		put_page(block);
		close_both(era);
	}
}

static bool fail_always(enum skb_site site)
{
	(void)site;
	return true;
}

/* No sk_buff to be had: nothing is held. */
static void no_memory(void **state)
{
	(void)state;
	for_each_zc_era (era) {
		open_both();
		counts_start();
		model_fail = fail_always;
		assert_int_equal(send_zc(era, 0, 100, 0), -EAGAIN);
		model_fail = NULL;
		assert_int_equal(uarg[0].ubuf.refcnt.refs.counter, 1);
		assert_int_equal(page_count(user_page[0]), 1);
		close_both(era);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copied_bytes_charge_the_page),
		cmocka_unit_test(appended_pages_charge_the_page),
		cmocka_unit_test(behind_copied_bytes),
		cmocka_unit_test(trimmed_and_cut),
		cmocka_unit_test(cut_for_the_window),
		cmocka_unit_test(the_user_is_told),
		cmocka_unit_test(two_users),
		cmocka_unit_test(slots),
		cmocka_unit_test(kinds_are_not_joined),
		cmocka_unit_test(copied_for_headroom),
		cmocka_unit_test(not_in_3_4),
#ifdef SKB_TRACED
		cmocka_unit_test(what_it_costs),
		cmocka_unit_test(no_memory),
#endif
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
