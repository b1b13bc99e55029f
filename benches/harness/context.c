/* SPDX-License-Identifier: MIT */
/* How this program was built and what it is linked with: what CMake found, and what the libraries say. */
#include "benches/harness/json.h"
#include "benches/harness/modes.h"
#include "skb_bench_build.h"

#include "skb/page.h"

#include <gnu/libc-version.h>

/* Only for its version: the allocator itself is reached through skb/obj.h. */
#include <jemalloc/jemalloc.h>

enum bench_status bench_context(void)
{
	struct json j = { .f = stdout };

	json_open(&j, NULL, '{');
	json_str(&j, "schema", "skbench-context-1");
	json_str(&j, "compiler", BUILD_COMPILER_ID);
	json_str(&j, "compiler_version", BUILD_COMPILER_VERSION);
	json_str(&j, "flags", BUILD_FLAGS);
	json_str(&j, "preset", BUILD_PRESET);
	json_long(&j, "max_skb_frags", MAX_SKB_FRAGS);
	json_long(&j, "page_size", (long long)PAGE_SIZE);
	json_str(&j, "jemalloc", JEMALLOC_VERSION);
	json_str(&j, "liburcu", BUILD_URCU_VERSION);
	json_str(&j, "google_benchmark", BUILD_GBENCH_VERSION);
	json_str(&j, "glibc", gnu_get_libc_version());
#ifdef SKB_TRACED
	json_bool(&j, "traced", true);
#else
	json_bool(&j, "traced", false);
#endif
	json_close(&j, '{');
	return bench_printed(&j, BENCH_OK);
}
