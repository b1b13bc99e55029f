/* SPDX-License-Identifier: MIT */
/* same_model FILE: the packets of same_packets.h through the model, their frames as pcapng. */
#include "hw/model_82599/model.h"
#include "same_packets.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct ixgbe *ix = aligned_alloc(64, ALIGN(sizeof(*ix), 64));
	struct model_params mp = { .seed = 1 };
	struct nicdev_arena arena;
	struct model_82599 *m;
	char err[300] = "";
	u32 done = 0;

	if (argc != 2 || !ix || !(mp.pcapng = fopen(argv[1], "wx"))) {
		fprintf(stderr, "usage: same_model FILE, which must not exist\n");
		return 2;
	}
	if (model_open(&mp, &m, err, sizeof(err)) ||
	    nicdev_arena_init(&arena, model_nicdev(m), SAME_BYTES, err, sizeof(err)) ||
	    ixgbe_start(ix, model_nicdev(m), &ixgbe_default_config, err, sizeof(err))) {
		fprintf(stderr, "same_model: %s\n", err);
		return 1;
	}
	same_fill((u8 *)arena.base);
	for (u32 i = 0; i < SAME_PACKETS; i++) {
		if (same_post(&ix->txq[0], i, arena.iova, err, sizeof(err))) {
			fprintf(stderr, "same_model: packet %u: %s\n", i, err);
			return 1;
		}
		ixgbe_tx_kick(&ix->txq[0]);
		nicdev_delay_us(model_nicdev(m), 200);
		done += ixgbe_tx_clean(&ix->txq[0], 64);
	}
	if (done != SAME_PACKETS || model_nr_violations(m)) {
		fprintf(stderr, "same_model: %u packets completed. %s\n", done,
			model_first_violation(m));
		return 1;
	}
	ixgbe_stop(ix);
	nicdev_arena_exit(&arena);
	nicdev_close(model_nicdev(m));
	free(ix);
	return fclose(mp.pcapng) ? 1 : 0;
}
