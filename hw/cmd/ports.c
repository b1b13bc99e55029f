/* SPDX-License-Identifier: MIT */
/* list, bind, unbind. */
#include "hw/cmd/cmd.h"
#include "hw/vfio/hugepages.h"
#include "hw/vfio/sysfs.h"

#include <errno.h>
#include <string.h>

#define MAX_PORTS  64
#define TEXT_BYTES 640

/* What stands between PORT and its use, or that nothing does. */
static const char *obstacle(const struct sysfs_env *env, const struct sysfs_port *p, char *text,
			    size_t len)
{
	/* The port itself is one of them, while a kernel driver has it. */
	const bool itself = p->driver[0] && strcmp(p->driver, "vfio-pci");
	char blockers[400];

	if (p->default_route)
		return "carries the default route: never taken";
	if (p->group < 0)
		return "no IOMMU: switch VT-d or AMD-Vi on, boot with intel_iommu=on";
	if (p->noiommu)
		return "no IOMMU (vfio's unsafe mode): --vfio noiommu";
	if (sysfs_blockers(env, p->group, blockers, sizeof(blockers)) > itself) {
		snprintf(text, len, "others of its IOMMU group are in use: %s", blockers);
		return text;
	}
	if (!strcmp(p->driver, "vfio-pci"))
		return "ready";
	if (p->route[0])
		return "has routes: bind takes --force";
	if (p->vfs)
		return "has virtual functions: remove them first";
	return "can be bound";
}

static void print_port(const struct sysfs_env *env, const struct sysfs_port *p)
{
	char text[TEXT_BYTES];
	u32 mbps = sysfs_pcie_mbps(p->pcie_gen, p->pcie_lanes);

	printf("%s  %04x:%04x  %s (%s)\n", p->bdf, p->vendor, p->device, p->id->name,
	       ixgbe_id_tested(p->id) ? "tested on the model" : "accepted, not tested");
	printf("    driver %s, ", p->driver[0] ? p->driver : "none");
	if (p->group >= 0)
		printf("IOMMU group %d, ", p->group);
	if (p->node >= 0)
		printf("node %d, ", p->node);
	if (p->iface[0])
		printf("%s is %s\n", p->iface, p->up ? "up" : "down");
	else
		printf("no interface\n");
	if (mbps) {
		printf("    PCIe Gen%u x%u: %.1f Gbit/s raw", p->pcie_gen, p->pcie_lanes,
		       mbps / 1000.0);
		if (mbps < SYSFS_NEED_MBPS)
			printf(", below what 10 Gbit/s takes (the card has Gen%u x%u)",
			       p->pcie_max_gen, p->pcie_max_lanes);
		putchar('\n');
	}
	printf("    %s\n", obstacle(env, p, text, sizeof(text)));
}

static void json_port(FILE *f, const struct sysfs_env *env, const struct sysfs_port *p)
{
	char text[TEXT_BYTES];

	fprintf(f, "{\"bdf\": \"%s\", \"id\": \"%04x:%04x\", \"name\": ", p->bdf, p->vendor,
		p->device);
	cmd_json_text(f, p->id->name);
	fprintf(f, ", \"tested\": %s, \"driver\": ", ixgbe_id_tested(p->id) ? "true" : "false");
	cmd_json_text(f, p->driver);
	fprintf(f, ", \"iommu_group\": ");
	if (p->group < 0)
		fprintf(f, "null");
	else
		fprintf(f, "%d", p->group);
	fprintf(f, ", \"node\": %d, \"interface\": ", p->node);
	cmd_json_text(f, p->iface);
	fprintf(f, ", \"default_route\": %s, \"pcie_mbps\": %u, \"state\": ",
		p->default_route ? "true" : "false", sysfs_pcie_mbps(p->pcie_gen, p->pcie_lanes));
	cmd_json_text(f, obstacle(env, p, text, sizeof(text)));
	fputc('}', f);
}

/* What the text says of them, and the numbers that it comes from; null where the kernel has none. */
static void json_hugepages(FILE *f, const struct sysfs_env *env)
{
	const struct hugepages p = hugepages_read(env->root);
	char text[TEXT_BYTES];
	bool shortage = hugepages_short(env->root, HUGEPAGES_ARENA, text, sizeof(text));

	fprintf(f, "\"huge_pages\": {\"needed_bytes\": %llu, \"page_kb\": ",
		(unsigned long long)HUGEPAGES_ARENA);
	if (p.kb)
		fprintf(f, "%llu, \"total\": %llu, \"free\": %llu, \"reserved\": %llu", p.kb,
			p.total, p.free, p.reserved);
	else
		fputs("null, \"total\": null, \"free\": null, \"reserved\": null", f);
	fprintf(f, ", \"enough\": %s, \"state\": ", shortage ? "false" : "true");
	cmd_json_text(f, text);
	fputc('}', f);
}

static const char list_usage[] = "usage: skbench hw list [--json FILE]\n\n"
				 "The ports of the 82599, X540, X550, X552 and X553 in this "
				 "machine: driver, IOMMU group, slot,\n"
				 "and what stands between each and its use. Changes nothing.\n";

int cmd_list(int argc, char **argv)
{
	static struct sysfs_port ports[MAX_PORTS];
	struct sysfs_env env = sysfs_this_machine();
	const char *json = NULL;
	char text[TEXT_BYTES];
	FILE *f = NULL;
	u32 n;

	for (int i = 1; i < argc; i++) {
		bool fault = false;
		const char *v;

		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(list_usage, stdout);
			return CMD_OK;
		}
		if ((v = cmd_option(argc, argv, &i, "--json", &fault)))
			json = v;
		else if ((v = cmd_option(argc, argv, &i, "--root", &fault)))
			env.root = v; /* another tree than /, for the tests */
		else
			fault = true;
		if (fault)
			return cmd_error(CMD_USAGE, "list does not take '%s' (--help)", argv[i]);
	}
	if (json && !(f = cmd_create(json)))
		return CMD_USAGE;
	n = min(sysfs_list(&env, ports, MAX_PORTS), (u32)MAX_PORTS);
	for (u32 i = 0; i < n && f != stdout; i++)
		print_port(&env, &ports[i]);
	if (n && f != stdout && hugepages_short(env.root, HUGEPAGES_ARENA, text, sizeof(text)))
		printf("%s\n", text);
	if (!n && f != stdout)
		printf("no 82599, X540, X550, X552 or X553 in this machine: --device model runs "
		       "without one\n");
	if (f) {
		fprintf(f, "{\"command\": \"hw list\", ");
		json_hugepages(f, &env);
		fputs(", \"ports\": [", f);
		for (u32 i = 0; i < n; i++) {
			if (i)
				fputs(", ", f);
			json_port(f, &env, &ports[i]);
		}
		fputs("]}\n", f);
		if (f != stdout)
			fclose(f);
	}
	return CMD_OK;
}

static const char bind_usage[] =
	"usage: skbench hw bind BDF [--force]\n"
	"       skbench hw unbind BDF\n\n"
	"bind takes a port from its driver and gives it to vfio-pci; unbind gives it back and "
	"leaves\n"
	"everything as it was. As root. A port that carries the default route is never taken; one\n"
	"whose interface has other routes only with --force, and not from an ssh session. Bind "
	"once\n"
	"for a campaign: drivers have been seen to crash when rebound thousands of times.\n";

static int cmd_binding(int argc, char **argv, bool take)
{
	struct sysfs_env env = sysfs_this_machine();
	const char *bdf = NULL;
	bool force = false;
	char err[TEXT_BYTES] = "";
	int ret;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(bind_usage, stdout);
			return CMD_OK;
		}
		if (take && !strcmp(argv[i], "--force"))
			force = true;
		else if (argv[i][0] != '-' && !bdf)
			bdf = argv[i];
		else
			return cmd_error(CMD_USAGE, "%s does not take '%s' (--help)", argv[0],
					 argv[i]);
	}
	if (!bdf)
		return cmd_error(CMD_USAGE, "%s needs a PCI address (skbench hw list)", argv[0]);
	ret = take ? sysfs_bind(&env, bdf, force, err, sizeof(err))
		   : sysfs_unbind(&env, bdf, err, sizeof(err));
	if (ret)
		return cmd_error(ret == -EINVAL && !strstr(err, "vfio") ? CMD_USAGE
									: CMD_IMPOSSIBLE,
				 "%s", err);
	printf("%s is %s\n", bdf, take ? "with vfio-pci" : "as it was");
	return CMD_OK;
}

int cmd_bind(int argc, char **argv)
{
	return cmd_binding(argc, argv, true);
}

int cmd_unbind(int argc, char **argv)
{
	return cmd_binding(argc, argv, false);
}
