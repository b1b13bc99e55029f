/* SPDX-License-Identifier: MIT */
/*
 * The harness as a benchmark file sees it: plain C, nothing of Google Benchmark.
 *
 * A file registers its operations; an operation has keys, which with their values make up the names
 * of its cases (`skb/pskb_expand_head/frags:16/cloned:1`). prepare() turns one set of values into a
 * case: one function for each role, chosen there, so that nothing is decided inside the timed span.
 * The harness calls span(ctx, n), which does n operations and nothing else.
 *
 *   role       a thread on a CPU of its own, attached to a slot of the model (skb/cpu.h): slot r for role r
 *   batch      every role's span(ctx, n) once, started together behind a spin barrier
 *   waiting    a role that has to wait for another spins in bench_wait_until(), which books the time apart
 */
#ifndef BENCH_H
#define BENCH_H

#include "skb/atomic.h"

#include <stdio.h>
#include <time.h>

#define BENCH_MAX_ROLES	 64 /* SKB_NR_CPUS */
#define BENCH_MAX_KEYS	 16
#define BENCH_MAX_REPORT 48

/* What the address sanitizer can see into is glibc's malloc alone. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BENCH_DEFAULT_ALLOC "glibc"
#endif
#endif
#if !defined(BENCH_DEFAULT_ALLOC) && defined(__SANITIZE_ADDRESS__)
#define BENCH_DEFAULT_ALLOC "glibc"
#endif
#ifndef BENCH_DEFAULT_ALLOC
#define BENCH_DEFAULT_ALLOC "slub"
#endif

/* One key of an operation. Words (words != NULL) or an integer from lo to hi. */
struct bench_key {
	const char *name;
	const char *const *words; /* allowed words, NULL-terminated; NULL: an integer */
	long lo, hi;
	const char *def; /* value if a name does not give the key */
	const char *grid; /* comma-separated values of the default listing */
	const char *help; /* one line, with the unit */
};

/* The values of one case: integers as such, words as their index. */
struct bench_args;
long bench_arg(const struct bench_args *args, const char *key);

/*
 * The key `alloc` is the harness's own, last of each operation and with its default alone in the default listing. An
 * operation that is listed with every allocator ends its keys with this one.
 */
extern const char *const bench_alloc_words[];
#define BENCH_KEY_EVERY_ALLOC                                                                 \
	{                                                                                     \
		"alloc", bench_alloc_words, 0, 0, BENCH_DEFAULT_ALLOC, "slub,jemalloc,glibc", \
			"allocator of the objects"                                            \
	}

struct bench_role {
	const char *name;
	void (*span)(void *ctx, u64 n); /* n operations; runs on the role's thread only */
};

/* What a case tells of itself beside its times. */
struct bench_report;

/* Adds VALUE under NAME, which lives as long as the program; printed to four decimals. */
void bench_report_add(struct bench_report *report, const char *name, double value);

struct bench_case {
	void *ctx;
	unsigned int nr_roles;
	struct bench_role role[BENCH_MAX_ROLES];
	u64 bytes_per_op; /* payload that one operation stands for, 0: none */
	/*
	 * A batch has at least so many: where one operation is long, for the roles to end together; 0: one.
	 */
	u64 least_n;
	u64 ops; /* operations that all roles do together for each of a span's n; 0: one */
	/*
	 * Lumps of deferred work make quantiles of short batches meaningless: such a case is judged by
	 * the CPU time of the whole run. With by_wall, where the roles wait for each other by spinning,
	 * it is the mean wall time of the batches in which they ran together: its batches have to be
	 * long enough to hold such lumps.
	 */
	bool pipeline, by_wall;
	/* Roles sleep where they wait: that a batch counts is told by their overlap alone, not by their CPU time. */
	bool sleeps;
	/*
	 * Proves what is timed, on fresh state, before and after the timing; NULL is not allowed.
	 * 0, or -1 with a sentence in ERR. Runs on role 0's thread while no span runs.
	 */
	int (*check)(void *ctx, char *err, size_t errlen);
	/*
	 * Traced build: performs the operation once from its warm state, with bench_ledger_begin()
	 * and bench_ledger_end(PHASE) around each part that gets a ledger row. NULL: one row around
	 * span(ctx, 1) of every role in turn. Runs on role 0's thread. To get warm, the harness
	 * calls it many times first, uncounted, if there is more than one role; with one role it
	 * runs the span.
	 */
	void (*ledger)(void *ctx);
	/*
	 * Adds what the case found out beside its times, at most BENCH_MAX_REPORT numbers, to what
	 * --skb_sample and --skb_check print. On role 0's thread, after the timing. NULL: nothing.
	 */
	void (*report)(void *ctx, struct bench_report *report);
	void (*teardown)(void *ctx); /* everything that prepare() made; on role 0's thread */
};

struct bench_op {
	const char *name; /* "skb/pskb_expand_head" */
	const char *summary; /* one line */
	const struct bench_key
		*keys; /* ends with a name of NULL; `alloc` is added by the harness */
	/*
	 * Builds the case on role 0's thread, already attached. 0; -EINVAL for values that do not
	 * go together, -EOPNOTSUPP for what this machine cannot do, -ENOMEM; each with a sentence
	 * in ERR.
	 */
	int (*prepare)(const struct bench_args *args, struct bench_case *out, char *err,
		       size_t errlen);
	/*
	 * Pages that the case needs in each zone, for a case that needs more than 32 MB of them;
	 * NULL, or 0: the default. Called before anything is allocated.
	 */
	size_t (*pages)(const struct bench_args *args);
};

/* Registers OP, which must live as long as the program. Before bench_main(). */
void bench_register(const struct bench_op *op);

/* The main program of every bench binary; --help tells the flags. Returns the exit status. */
int bench_main(int argc, char **argv);

/*
 * A ledger row: what was counted between begin and end, under the name PHASE. Nothing in the plain
 * build.
 */
#ifdef SKB_TRACED
void bench_ledger_begin(void);
void bench_ledger_end(const char *phase);
#else
static __always_inline void bench_ledger_begin(void)
{
}
static __always_inline void bench_ledger_end(const char *phase)
{
	(void)phase;
}
#endif

/*
 * One phase of an operation, as ledger() goes through them: FN(CTX), under the name NAME. The
 * traced build counts it into a ledger row; under --skb_instructions=CASE#NAME the plain build runs
 * it where callgrind counts; otherwise it is a call.
 */
void bench_phase(const char *name, void (*fn)(void *ctx), void *ctx);

/*
 * Ticks of a clock cheap enough to be read at each end of a wait; bench_tick_ns() tells how long
 * one is.
 */
static __always_inline u64 bench_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
#endif
}
double bench_tick_ns(void);

/* Time that the calling role has waited, in ticks; the harness resets it before each batch. */
extern __thread u64 bench_waited;

/* Spins until COND holds and books the time as waiting. COND is read through the seam. */
#define bench_wait_until(cond)                              \
	do {                                                \
		if (!(cond)) {                              \
			u64 _t = bench_ticks();             \
			while (!(cond))                     \
				cpu_relax();                \
			bench_waited += bench_ticks() - _t; \
		}                                           \
	} while (0)

/* No code, only promises to the compiler: V is used; all memory may have changed. */
#define bench_use(v)	__asm__ volatile("" : : "r,m"(v) : "memory")
#define bench_clobber() __asm__ volatile("" : : : "memory")

#endif
