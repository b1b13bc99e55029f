/* SPDX-License-Identifier: MIT */
#include "prof/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAP_SYS_ADMIN_BIT 21
#define CAP_PERFMON_BIT	  38
#define DEVICES		  "/sys/bus/event_source/devices"

int prof_read_text(const struct prof_machine *m, const char *path, char *out, size_t len)
{
	char full[PATH_MAX];
	size_t have = 0;
	ssize_t got;
	int fd;

	if (snprintf(full, sizeof(full), "%s%s", m->root, path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		got = read(fd, out + have, len - 1 - have);
		have += got > 0 ? (size_t)got : 0;
	} while ((got > 0 && have < len - 1) || (got < 0 && errno == EINTR));
	close(fd);
	if (got < 0)
		return -EIO;
	out[have] = '\0';
	if (have && out[have - 1] == '\n')
		out[have - 1] = '\0';
	return 0;
}

static long read_long(const struct prof_machine *m, const char *path)
{
	char text[32], *end;
	long value;

	if (prof_read_text(m, path, text, sizeof(text)))
		return PROF_UNKNOWN;
	value = strtol(text, &end, 10);
	return end == text || *end ? PROF_UNKNOWN : value;
}

/* The value of the line "KEY : value" in TEXT, copied to OUT; false if there is none. */
static bool line_of(const char *text, const char *key, char *out, size_t len)
{
	size_t n = strlen(key);

	for (const char *at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		const char *value = at + n;

		if (strncmp(at, key, n))
			continue;
		value += strspn(value, " \t");
		if (*value != ':')
			continue;
		value += 1 + strspn(value + 1, " \t");
		snprintf(out, len, "%.*s", (int)strcspn(value, "\n"), value);
		return true;
	}
	return false;
}

static void read_cpu(struct prof_machine *m)
{
	static char text[65536];
	static char line[16384];

	if (prof_read_text(m, "/proc/cpuinfo", text, sizeof(text)))
		return;
	line_of(text, "vendor_id", m->vendor, sizeof(m->vendor));
	if (line_of(text, "cpu family", line, sizeof(line)))
		m->family = (unsigned int)strtoul(line, NULL, 10);
	if (line_of(text, "model", line, sizeof(line)))
		m->model = (unsigned int)strtoul(line, NULL, 10);
	if (line_of(text, "flags", line, sizeof(line))) {
		const char *at = strstr(line, "hypervisor");

		m->hypervisor = at && (at == line || at[-1] == ' ') && (at[10] == ' ' || !at[10]);
	}
}

static void read_rights(struct prof_machine *m)
{
	char text[4096], line[64];
	unsigned long long caps;

	if (prof_read_text(m, "/proc/self/status", text, sizeof(text)) ||
	    !line_of(text, "CapEff", line, sizeof(line)))
		return;
	caps = strtoull(line, NULL, 16);
	m->perfmon = caps >> CAP_PERFMON_BIT & 1 || caps >> CAP_SYS_ADMIN_BIT & 1;
}

/* Addresses are all 0 where the kernel hides them. */
static void read_kernel_names(struct prof_machine *m)
{
	char text[4096];

	if (prof_read_text(m, "/proc/kallsyms", text, sizeof(text)))
		return;
	for (char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (strtoull(at, NULL, 16))
			m->kernel_names = true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct prof_pmu *)a)->name, ((const struct prof_pmu *)b)->name);
}

/* A hybrid CPU's PMUs list their CPUs in `cpus`; that of other CPUs is called cpu, or on Arm armv8_... */
static bool is_cpu_pmu(const char *name)
{
	return !strcmp(name, "cpu") || !strcmp(name, "cpu_core") || !strcmp(name, "cpu_atom") ||
	       !strncmp(name, "armv8_", 6);
}

static void read_pmus(struct prof_machine *m)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s" DEVICES, m->root);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)) && m->nr_cpu_pmus < PROF_MAX_CPU_PMUS) {
		struct prof_pmu *pmu = &m->cpu_pmu[m->nr_cpu_pmus];
		long type;

		if (!is_cpu_pmu(entry->d_name))
			continue;
		snprintf(path, sizeof(path), DEVICES "/%s/type", entry->d_name);
		type = read_long(m, path);
		if (type < 0)
			continue;
		snprintf(pmu->name, sizeof(pmu->name), "%.63s", entry->d_name);
		pmu->type = (u32)type;
		m->nr_cpu_pmus++;
	}
	closedir(dir);
	qsort(m->cpu_pmu, m->nr_cpu_pmus, sizeof(m->cpu_pmu[0]), by_name);
}

void prof_machine_read(struct prof_machine *m, const char *root)
{
	*m = (struct prof_machine){ .root = root };
	m->paranoid = read_long(m, "/proc/sys/kernel/perf_event_paranoid");
	m->kptr_restrict = read_long(m, "/proc/sys/kernel/kptr_restrict");
	m->mlock_kb = read_long(m, "/proc/sys/kernel/perf_event_mlock_kb");
	read_cpu(m);
	read_rights(m);
	read_kernel_names(m);
	read_pmus(m);
}

/* --- events of a PMU ---------------------------------------------------------------------------------------- */

/* Puts VALUE into the bits that FORMAT ("config:0-7,32-35") names: 0, or -EINVAL if it does not fit. */
static int put_bits(const char *format, u64 value, struct perf_event_attr *attr)
{
	__u64 *word;
	const char *at = strchr(format, ':');

	if (!at)
		return -EINVAL;
	if (!strncmp(format, "config:", 7))
		word = &attr->config;
	else if (!strncmp(format, "config1:", 8))
		word = &attr->config1;
	else if (!strncmp(format, "config2:", 8))
		word = &attr->config2;
	else
		return -EINVAL;
	while (*at == ':' || *at == ',') {
		char *end;
		unsigned long lo = strtoul(at + 1, &end, 10), hi = lo;

		if (*end == '-')
			hi = strtoul(end + 1, &end, 10);
		if (end == at + 1 || hi > 63 || lo > hi)
			return -EINVAL;
		for (unsigned long bit = lo; bit <= hi; bit++, value >>= 1)
			*word |= (value & 1) << bit;
		at = end;
	}
	return value ? -EINVAL : 0;
}

static bool plain_word(const char *s)
{
	return *s && !strchr(s, '/') && *s != '.';
}

static int put_term(const struct prof_machine *m, const char *pmu, char *term,
		    struct perf_event_attr *attr, double *scale, bool nested);

static int put_terms(const struct prof_machine *m, const char *pmu, const char *terms,
		     struct perf_event_attr *attr, double *scale, bool nested)
{
	char copy[512], *save = NULL;

	if (snprintf(copy, sizeof(copy), "%s", terms) >= (int)sizeof(copy))
		return -EINVAL;
	for (char *term = strtok_r(copy, ",", &save); term; term = strtok_r(NULL, ",", &save)) {
		int ret = put_term(m, pmu, term, attr, scale, nested);

		if (ret)
			return ret;
	}
	return 0;
}

/* The event called NAME, whose terms and scale the kernel tells. */
static int put_event(const struct prof_machine *m, const char *pmu, const char *name,
		     struct perf_event_attr *attr, double *scale)
{
	char path[256], text[512];

	snprintf(path, sizeof(path), DEVICES "/%s/events/%s", pmu, name);
	if (prof_read_text(m, path, text, sizeof(text)))
		return -ENOENT;
	snprintf(path, sizeof(path), DEVICES "/%s/events/%s.scale", pmu, name);
	if (put_terms(m, pmu, text, attr, scale, true))
		return -EINVAL;
	if (!prof_read_text(m, path, text, sizeof(text)))
		*scale = strtod(text, NULL);
	return 0;
}

static int put_term(const struct prof_machine *m, const char *pmu, char *term,
		    struct perf_event_attr *attr, double *scale, bool nested)
{
	char *equals = strchr(term, '='), *end, path[256], format[128];
	u64 value = 1;

	if (equals) {
		*equals = '\0';
		value = strtoull(equals + 1, &end, 0);
		if (end == equals + 1 || *end)
			return -EINVAL;
	}
	if (!plain_word(term) || strlen(term) > 64)
		return -ENOENT;
	if (!strcmp(term, "config")) {
		attr->config |= value;
		return 0;
	}
	snprintf(path, sizeof(path), DEVICES "/%s/format/%s", pmu, term);
	if (!prof_read_text(m, path, format, sizeof(format)))
		return put_bits(format, value, attr);
	return equals || nested ? -ENOENT : put_event(m, pmu, term, attr, scale);
}

int prof_pmu_event(const struct prof_machine *m, const char *pmu, const char *terms,
		   struct perf_event_attr *attr, double *scale)
{
	char path[256];
	long type;

	if (!plain_word(pmu) || strlen(pmu) > 64)
		return -ENODEV;
	snprintf(path, sizeof(path), DEVICES "/%s/type", pmu);
	type = read_long(m, path);
	if (type < 0)
		return -ENODEV;
	attr->type = (u32)type;
	return put_terms(m, pmu, terms, attr, scale, false);
}
