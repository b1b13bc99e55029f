/* SPDX-License-Identifier: MIT */
#include "hw/vfio/hugepages.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES 512

struct hugepages hugepages_read(const char *root)
{
	struct hugepages p = { 0 };
	char line[PATH_BYTES];
	FILE *f;

	snprintf(line, sizeof(line), "%s/proc/meminfo", root);
	f = fopen(line, "r");
	if (!f)
		return p;
	while (fgets(line, sizeof(line), f)) {
		(void)!sscanf(line, "HugePages_Total: %llu", &p.total);
		(void)!sscanf(line, "HugePages_Free: %llu", &p.free);
		(void)!sscanf(line, "HugePages_Rsvd: %llu", &p.reserved);
		(void)!sscanf(line, "Hugepagesize: %llu", &p.kb);
	}
	fclose(f);
	return p;
}

static bool holds_files(const char *root, const char *mount)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s%s", root, mount);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)))
		found = strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	if (dir)
		closedir(dir);
	return found;
}

/* " /dev/hugepages ..." of the mounts that hold files. */
static void find_files(const char *root, char *text, size_t len)
{
	char line[PATH_BYTES], mount[256], type[64];
	size_t at = 0;
	FILE *f;

	text[0] = 0;
	snprintf(line, sizeof(line), "%s/proc/mounts", root);
	f = fopen(line, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %255s %63s", mount, type) == 2 &&
		    !strcmp(type, "hugetlbfs") && holds_files(root, mount) && at < len)
			at += snprintf(text + at, len - at, " %s", mount);
	if (f)
		fclose(f);
}

bool hugepages_short(const char *root, u64 bytes, char *text, size_t len)
{
	const struct hugepages p = hugepages_read(root);
	const unsigned long long free = p.free > p.reserved ? p.free - p.reserved : 0;
	const unsigned long long need = p.kb ? DIV_ROUND_UP(bytes, p.kb * 1024) : 0;
	char files[300];

	text[0] = 0;
	if (!p.kb) {
		snprintf(text, len, "huge pages: this kernel tells of none (CONFIG_HUGETLBFS)");
		return true;
	}
	if (free >= need)
		return false;
	if (!p.total) {
		snprintf(text, len,
			 "huge pages: none reserved, small ones are used: as root, sysctl "
			 "vm.nr_hugepages=%llu",
			 need);
		return true;
	}
	find_files(root, files, sizeof(files));
	snprintf(text, len, "huge pages: reserved %llu, free %llu, needed %llu%s%s", p.total, free,
		 need,
		 *files ? "; there are files, stale ones perhaps, in"
			: ": more by sysctl vm.nr_hugepages, or end who uses them",
		 files);
	return true;
}
