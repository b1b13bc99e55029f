/* SPDX-License-Identifier: MIT */
/*
 * The face of Google Benchmark: its flags, filter, console and JSON over the default cases. A quick look only: it knows
 * neither whether the threads ran together nor what a process is worth, and what it prints for T threads is the time of
 * an operation divided by T.
 *
 * The library makes new threads every round, which is why each run pins, attaches and undoes; and it aborts if a thread
 * leaves before its loop is over, which is why errors go through SkipWithError() and the loop goes on to its end.
 */
#include "benches/harness/face.h"

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

extern "C" const char *bench_program;

namespace
{

const char label[] = "quick look: not a sample (see scripts/skbench run)";

/* The exit status of what ran: a case that was filtered out does not count. */
std::atomic<int> worst{ 0 };

void note(int status)
{
	int seen = worst.load();

	while (status > seen && !worst.compare_exchange_weak(seen, status))
		;
}

void run_role(benchmark::State &state, size_t i)
{
	const auto role = static_cast<unsigned int>(state.thread_index());
	const benchmark::IterationCount n = state.max_iterations;
	const int entered = face_enter(i, role);

	if (entered)
		state.SkipWithError(face_reason(i));
	while (state.KeepRunningBatch(n)) {
		/* Another role may have failed: none may wait for it. */
		if (face_failed(i))
			state.SkipWithError(face_reason(i));
		else
			face_span(i, role, static_cast<uint64_t>(n));
	}
	if (face_leave(i, role))
		state.SkipWithError(face_reason(i));
	note(face_failed(i));
	if (role == 0)
		state.SetLabel(label);
}

/* What the library would answer with its usage text and status 0, or not at all. */
const char *wrong_value(const char *arg)
{
	const char *formats[] = { "console", "json", "csv" };
	const char *value = std::strchr(arg, '=');

	if (!std::strncmp(arg, "--benchmark_perf_counters=", 26) && arg[26])
		return "timing runs carry no counters: see scripts/skbench profile";
	if (std::strncmp(arg, "--benchmark_format=", 19) &&
	    std::strncmp(arg, "--benchmark_out_format=", 23))
		return nullptr;
	for (const char *format : formats)
		if (!std::strcmp(value + 1, format))
			return nullptr;
	return "the format must be console, json or csv";
}

int usage(const char *arg, const char *why)
{
	std::fprintf(stderr, "%s: %s: %s\n", bench_program, arg, why);
	return 2;
}

} // namespace

int gbench_run(int argc, char **argv, const bench_options *o)
{
	for (int i = 1; i < argc; i++)
		if (const char *why = wrong_value(argv[i]))
			return usage(argv[i], why);
	benchmark::Initialize(&argc, argv);
	if (argc > 1)
		return usage(argv[1], "no such flag, or a value that it does not take: see --help");
	if (int status = face_open(o))
		return status;
	for (size_t i = 0; i < face_nr_cases(); i++) {
		auto *b = benchmark::RegisterBenchmark(
			face_name(i), [i](benchmark::State &state) { run_role(state, i); });

		b->UseRealTime();
		if (face_nr_roles(i) > 1)
			b->Threads(static_cast<int>(face_nr_roles(i)));
	}
	const size_t ran = benchmark::RunSpecifiedBenchmarks();
	benchmark::Shutdown();
	if (!ran)
		return usage("--benchmark_filter", "matches no case (--benchmark_list_tests)");
	return worst.load();
}
