/* SPDX-License-Identifier: MIT */
/*
 * The init of a guest with nodes: the machine's own file system as its root, with what is written there kept in memory,
 * and in it tests/place/inside.py, which does the checks as a user of this tree would.
 *
 * The root is shared by 9p under the tag "root", read-only. The kernel's command line ends with " -- " and the words of the
 * program. What anybody writes lands in /run/skbench-upper/upper, where the program looks whether something was.
 */
#include "tests/hw/guest.h"

#include <sys/wait.h>

#define ROOT  "/root"
#define UPPER "/memory"
#define WORDS 16

static bool mounted(const char *what, const char *where, const char *type, unsigned long flags,
		    const char *options)
{
	mkdir(where, 0755);
	return check(!mount(what, where, type, flags, options), where, "%s: %s", type,
		     strerror(errno));
}

static bool mount_all(void)
{
	return mounted("root", "/host", "9p", MS_RDONLY,
		       "trans=virtio,version=9p2000.L,msize=524288,cache=loose") &&
	       mounted("memory", UPPER, "tmpfs", 0, "size=50%") && !mkdir(UPPER "/upper", 0755) &&
	       !mkdir(UPPER "/work", 0755) &&
	       mounted("root", ROOT, "overlay", 0,
		       "lowerdir=/host,upperdir=" UPPER "/upper,workdir=" UPPER "/work") &&
	       mounted("proc", ROOT "/proc", "proc", 0, NULL) &&
	       mounted("sys", ROOT "/sys", "sysfs", 0, NULL) &&
	       mounted("group", ROOT "/sys/fs/cgroup", "cgroup2", 0, NULL) &&
	       mounted("dev", ROOT "/dev", "devtmpfs", 0, NULL) &&
	       mounted("shm", ROOT "/dev/shm", "tmpfs", 0, NULL) &&
	       mounted("run", ROOT "/run", "tmpfs", 0, NULL) &&
	       mounted(UPPER, ROOT "/run/skbench-upper", NULL, MS_BIND, NULL);
}

/* The words behind " -- " of the kernel's command line, at most WORDS - 1 and NULL. LINE is cut into them. */
static void words_of(char *line, char **words)
{
	char *at = strstr(line, " -- ");
	unsigned int nr = 0;

	for (at = at ? strtok(at + 4, " \n") : NULL; at && nr < WORDS - 1; at = strtok(NULL, " \n"))
		words[nr++] = at;
	words[nr] = NULL;
}

void guest_test(const char *bdf)
{
	char *words[WORDS], *environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
					       "HOME=/tmp", "PYTHONDONTWRITEBYTECODE=1", NULL };
	static char line[4096];
	FILE *f = fopen("/proc/cmdline", "r");
	int status = -1;
	pid_t child;

	(void)bdf; /* no network card here */
	if (!check(f && fgets(line, sizeof(line), f), "command line", "%s", strerror(errno)))
		return;
	fclose(f);
	words_of(line, words);
	if (!check(words[0], "program", "none is named") || !mount_all() ||
	    !check(!write_text(ROOT "/sys/fs/cgroup/cgroup.subtree_control", "+cpuset +memory"),
		   "controllers", "%s", strerror(errno)))
		return;
	child = fork();
	if (!child) {
		if (!chroot(ROOT) && !chdir("/"))
			execve(words[0], words, environment);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	check(!status, "inside", "status 0x%x", status);
}
