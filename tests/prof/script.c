/* SPDX-License-Identifier: MIT */
/*
 * A kernel that a test plays: linked into skb-prof-scripted in front of the system calls that libperf makes.
 *
 * SKB_PROF_SCRIPT names a file with one rule a line; the first that fits answers perf_event_open():
 *
 *   open [type=N] [config=N] [user=0|1] [grouped=0|1] [times=N] errno=N
 *   open ...                              value=N [enabled=N] [running=N] [readerrno=N] [mmaperrno=N]
 *
 * user is exclude_kernel, grouped tells whether a leader was named, times how often the rule holds. Without a rule
 * that fits the answer is ENOENT. Each call is written to SKB_PROF_CALLS, a line each.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_FDS 1024
#define ANY	(-1LL)

struct rule {
	long long type, config, user, grouped, times;
	int error, read_error, mmap_error;
	unsigned long long value, enabled, running;
};

static struct rule rules[64];
static unsigned int nr_rules;
static const struct rule *played[MAX_FDS]; /* by file descriptor; NULL: a real one */

long __real_syscall(long number, ...);
ssize_t __real_read(int fd, void *buf, size_t len);
int __real_ioctl(int fd, unsigned long request, ...);
void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
long __wrap_syscall(long number, ...);
ssize_t __wrap_read(int fd, void *buf, size_t len);
int __wrap_ioctl(int fd, unsigned long request, ...);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);

static void wrong(const char *what)
{
	fprintf(stderr, "script: %s\n", what);
	exit(99);
}

static void take_word(struct rule *rule, const char *word)
{
	const char *equals = strchr(word, '=');
	long long value;

	if (!equals)
		wrong(word);
	value = strtoll(equals + 1, NULL, 0);
#define TAKE(name, field)                                     \
	if (!strncmp(word, name "=", sizeof(name))) {         \
		rule->field = (__typeof__(rule->field))value; \
		return;                                       \
	}
	TAKE("type", type)
	TAKE("config", config)
	TAKE("user", user)
	TAKE("grouped", grouped)
	TAKE("times", times)
	TAKE("errno", error)
	TAKE("value", value)
	TAKE("enabled", enabled)
	TAKE("running", running)
	TAKE("readerrno", read_error)
	TAKE("mmaperrno", mmap_error)
#undef TAKE
	wrong(word);
}

static void read_rules(void)
{
	const char *path = getenv("SKB_PROF_SCRIPT");
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[256];

	if (!f)
		wrong("SKB_PROF_SCRIPT names no file");
	while (fgets(line, sizeof(line), f)) {
		struct rule *rule = &rules[nr_rules];
		char *save = NULL, *word = strtok_r(line, " \n", &save);

		if (!word)
			continue;
		if (strcmp(word, "open") || nr_rules == 64)
			wrong(line);
		*rule = (struct rule){ ANY, ANY, ANY, ANY, ANY, 0, 0, 0, 0, 1000, 1000 };
		while ((word = strtok_r(NULL, " \n", &save)))
			take_word(rule, word);
		nr_rules++;
	}
	fclose(f);
}

static bool fits(const struct rule *rule, const struct perf_event_attr *attr, int group)
{
	return rule->times && (rule->type == ANY || rule->type == attr->type) &&
	       (rule->config == ANY || (unsigned long long)rule->config == attr->config) &&
	       (rule->user == ANY || rule->user == attr->exclude_kernel) &&
	       (rule->grouped == ANY || rule->grouped == (group >= 0));
}

static void note(const struct perf_event_attr *attr, int pid, int group, int answer)
{
	const char *path = getenv("SKB_PROF_CALLS");
	FILE *f = path ? fopen(path, "ae") : NULL;

	if (!f)
		return;
	fprintf(f, "type=%u config=0x%llx user=%d grouped=%d self=%d answer=%d\n", attr->type,
		(unsigned long long)attr->config, (int)attr->exclude_kernel, group >= 0, !pid,
		answer < 0 ? -errno : 0);
	fclose(f);
}

static int play_open(const struct perf_event_attr *attr, int pid, int group)
{
	int fd;

	if (!nr_rules)
		read_rules();
	errno = ENOENT;
	fd = -1;
	for (unsigned int i = 0; i < nr_rules; i++) {
		struct rule *rule = &rules[i];

		if (!fits(rule, attr, group))
			continue;
		if (rule->times > 0)
			rule->times--;
		errno = rule->error;
		if (!rule->error) {
			fd = eventfd(0, EFD_CLOEXEC);
			if (fd < 0 || fd >= MAX_FDS)
				wrong("too many events");
			played[fd] = rule;
		}
		break;
	}
	note(attr, pid, group, fd);
	return fd;
}

long __wrap_syscall(long number, ...)
{
	const struct perf_event_attr *attr;
	int pid, group;
	va_list ap;

	va_start(ap, number);
	if (number != __NR_perf_event_open)
		wrong("a system call that is not scripted");
	attr = va_arg(ap, const struct perf_event_attr *);
	pid = va_arg(ap, int);
	(void)va_arg(ap, int);
	group = va_arg(ap, int);
	va_end(ap);
	return play_open(attr, pid, group);
}

static const struct rule *of(int fd)
{
	return fd >= 0 && fd < MAX_FDS ? played[fd] : NULL;
}

ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	const struct rule *rule = of(fd);
	unsigned long long answer[3];

	if (!rule)
		return __real_read(fd, buf, len);
	if (rule->read_error) {
		errno = rule->read_error;
		return -1;
	}
	answer[0] = rule->value;
	answer[1] = rule->enabled;
	answer[2] = rule->running;
	if (len > sizeof(answer))
		len = sizeof(answer);
	memcpy(buf, answer, len);
	return (ssize_t)len;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	if (of(fd))
		return 0;
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	return __real_ioctl(fd, request, arg);
}

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	const struct rule *rule = of(fd);

	if (!rule)
		return __real_mmap(at, len, prot, flags, fd, off);
	if (rule->mmap_error) {
		errno = rule->mmap_error;
		return MAP_FAILED;
	}
	return __real_mmap(at, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
