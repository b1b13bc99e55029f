/* SPDX-License-Identifier: MIT */
/*
 * Eras: the kernel version whose rules an operation follows.
 *
 * Every operation whose rules changed takes the era as its first argument and is a static inline
 * dispatch to one function per era, each with a symbol of its own (skb_clone_3_4, skb_clone_6_1,
 * skb_clone_6_12). With a constant era the dispatch is a direct call, which is what a timed span
 * holds; tests may pass a variable. A ratio is only ever formed inside one era.
 */
#ifndef SKB_ERA_H
#define SKB_ERA_H

#include "skb/compiler.h"

enum skb_era { ERA_3_4, ERA_6_1, ERA_6_12, SKB_ERA_NR };

/* Declares NAME_3_4, NAME_6_1 and NAME_6_12. */
#define SKB_ERA_DECLARE(ret, name, ...) \
	ret name##_3_4(__VA_ARGS__);    \
	ret name##_6_1(__VA_ARGS__);    \
	ret name##_6_12(__VA_ARGS__)

/* The body of a dispatch: NAME of ERA called with the arguments. */
#define SKB_ERA_CALL(era, name, ...)                  \
	((era) == ERA_3_4   ? name##_3_4(__VA_ARGS__) \
	 : (era) == ERA_6_1 ? name##_6_1(__VA_ARGS__) \
			    : name##_6_12(__VA_ARGS__))

/* Expands M(suffix, constant) once for each era: how a .c file instantiates its bodies. */
#define SKB_FOR_EACH_ERA(M) M(3_4, ERA_3_4) M(6_1, ERA_6_1) M(6_12, ERA_6_12)

/* "3.4", "6.1", "6.12" and back; a negative value for any other text. */
const char *skb_era_name(enum skb_era era);
int skb_era_parse(const char *text);

#endif
