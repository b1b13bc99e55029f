/* SPDX-License-Identifier: MIT */
/*
 * To be preloaded: memory and threads land elsewhere than the program asks for. What it shows is that the checks of
 * inside.py are not satisfied by a program's own word.
 *
 *   SKB_WRONG=memory  mbind() to one node binds to node SKB_WRONG_NODE
 *   SKB_WRONG=cpu     sched_setaffinity() to one CPU goes to the one beside it
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int wrong(const char *what)
{
	const char *told = getenv("SKB_WRONG");

	return told && !strcmp(told, what);
}

long syscall(long number, ...)
{
	static long (*real)(long, ...);
	unsigned long mask;
	va_list ap;
	long a[6];

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (number == SYS_mbind && wrong("memory")) {
		mask = 1UL << atoi(getenv("SKB_WRONG_NODE"));
		a[3] = (long)&mask;
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	cpu_set_t other;

	if (!wrong("cpu"))
		return (int)syscall(SYS_sched_setaffinity, (long)pid, size, set) < 0 ? -1 : 0;
	CPU_ZERO(&other);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set))
			CPU_SET(cpu ^ 1, &other);
	return (int)syscall(SYS_sched_setaffinity, (long)pid, sizeof(other), &other) < 0 ? -1 : 0;
}
