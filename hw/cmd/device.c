/* SPDX-License-Identifier: MIT */
#include "hw/cmd/device.h"
#include "hw/cmd/cmd.h"
#include "hw/ixgbe/ixgbe.h"
#include "hw/vfio/hugepages.h"
#include "hw/vfio/vfio.h"
#include "hw/vfu/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool device_option(int argc, char **argv, int *i, struct device_choice *c, bool *fault)
{
	const char *v;

	if ((v = cmd_option(argc, argv, i, "--device", fault))) {
		c->name = v;
	} else if ((v = cmd_option(argc, argv, i, "--vfio", fault))) {
		c->vfio = v;
		*fault |= vfio_how_parse(v) < 0;
	} else if (!strcmp(argv[*i], "--enable-unsafe-noiommu")) {
		c->unsafe_noiommu = true;
	} else {
		return false;
	}
	return true;
}

bool device_is_model(const struct device_choice *c, u16 *id, bool *fault)
{
	static const char *const names[] = { "82599", "X540", "X550", "X552", "X553" };
	const char *what = c->name + 5;
	u64 number;

	if (strncmp(c->name, "model", 5) || (*what && *what != ':'))
		return false;
	*id = 0;
	if (!*what++)
		return true;
	for (u32 i = 0; i < nr_ixgbe_ids && !*id; i++)
		if (!strcasecmp(what, names[ixgbe_ids[i].mac]))
			*id = ixgbe_ids[i].device;
	if (!*id && !strncmp(what, "0x", 2) && cmd_number(what, 1, 0xffff, &number) &&
	    ixgbe_find_id(number))
		*id = number;
	*fault |= !*id;
	return true;
}

int device_open(const struct device_choice *c, struct nicdev **dev)
{
	const struct sysfs_env env = sysfs_this_machine();
	enum vfio_how how = c->vfio ? (enum vfio_how)vfio_how_parse(c->vfio) : VFIO_ANY;
	struct sysfs_port port;
	char err[640] = "";
	int ret;

	bool fault = false;
	u16 id;

	*dev = NULL;
	if (device_is_model(c, &id, &fault))
		return 0;
	if (!strncmp(c->name, "vfio-user:", 10) || strchr(c->name, '/')) {
		ret = vfu_open(*c->name == 'v' ? c->name + 10 : c->name, dev, err, sizeof(err));
		if (ret)
			cmd_error(CMD_IMPOSSIBLE, "%s", err);
		return ret;
	}
	ret = sysfs_read_port(&env, c->name, &port, err, sizeof(err));
	if (!ret && !port.id) {
		ret = -ENODEV;
		snprintf(err, sizeof(err), "%s: %04x:%04x is no 82599, X540, X550, X552 or X553",
			 c->name, port.vendor, port.device);
	}
	if (!ret)
		ret = vfio_open(&vfio_this_machine, &env, c->name, how, c->unsafe_noiommu, dev, err,
				sizeof(err));
	if (ret)
		cmd_error(CMD_IMPOSSIBLE, "%s", err);
	else if (hugepages_short(env.root, HUGEPAGES_ARENA, err, sizeof(err)))
		cmd_error(CMD_OK, "%s: %s", c->name, err); /* it works without them */
	return ret;
}

void device_slot(const char *name, char *text, size_t len)
{
	const struct sysfs_env env = sysfs_this_machine();
	struct sysfs_port p;
	char err[300];
	u32 mbps;

	text[0] = 0;
	if (strchr(name, '/') || sysfs_read_port(&env, name, &p, err, sizeof(err)))
		return;
	mbps = sysfs_pcie_mbps(p.pcie_gen, p.pcie_lanes);
	if (mbps)
		snprintf(text, len, "PCIe Gen%u x%u: %.1f Gbit/s raw%s", p.pcie_gen, p.pcie_lanes,
			 mbps / 1000.0,
			 mbps < SYSFS_NEED_MBPS ? ", below what 10 Gbit/s takes" : "");
}
