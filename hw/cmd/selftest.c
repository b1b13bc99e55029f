/* SPDX-License-Identifier: MIT */
#include "hw/cmd/cmd.h"
#include "hw/cmd/device.h"
#include "hw/selftest.h"

#include <string.h>

static const char usage[] =
	"usage: skbench hw selftest [--device DEVICE] [--seed N] [--json FILE] [--pcap FILE]\n\n"
	"Starts the driver on a device and sends packets round through the loopback of the MAC:\n"
	"nothing has to be plugged in. On the model it also looks at times, and fails if the "
	"driver\n"
	"does anything that an 82599 would punish.\n\n"
	"  --device model     the model of an 82599 in this process (default)\n"
	"  --device model:WHAT\n"
	"                     of an X540, X550, X552, X553, or of a PCI device ID (0x1528)\n"
	"  --device BDF       a port that is bound to vfio-pci (skbench hw bind)\n"
	"  --device vfio-user:PATH\n"
	"                     one that another process serves (skbench hw serve)\n"
	"  --vfio HOW         group, cdev or noiommu; without it cdev if there is one, else group\n"
	"  --seed N           what the model draws its delays from (default 1)\n"
	"  --json FILE        one JSON object into FILE (- for standard output)\n"
	"  --pcap FILE        the frames of the first check as pcapng (model only)\n";

static void as_json(FILE *f, const char *device, u64 seed, const struct selftest_row *rows, u32 n,
		    u32 failed)
{
	fprintf(f, "{\"command\": \"hw selftest\", \"device\": ");
	cmd_json_text(f, device);
	fprintf(f, ", \"seed\": %llu, \"checks\": [", (unsigned long long)seed);
	for (u32 i = 0; i < n; i++) {
		fprintf(f, "%s{\"name\": \"%s\", \"passed\": %s, \"text\": ", i ? ", " : "",
			rows[i].name, rows[i].passed ? "true" : "false");
		cmd_json_text(f, rows[i].text);
		fputc('}', f);
	}
	fprintf(f, "], \"failed\": %u}\n", failed);
}

int cmd_selftest(int argc, char **argv)
{
	struct selftest_row rows[SELFTEST_MAX_ROWS];
	struct device_choice choice = { .name = "model" };
	const char *json = NULL, *pcap = NULL, *value;
	FILE *json_file = NULL, *pcap_file = NULL, *text = stdout;
	struct nicdev *dev = NULL;
	bool fault = false, model;
	u64 seed = 1;
	u32 n, failed = 0;
	u16 id = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return CMD_OK;
		}
		if (device_option(argc, argv, &i, &choice, &fault))
			;
		else if ((value = cmd_option(argc, argv, &i, "--seed", &fault)))
			fault |= !cmd_number(value, 0, ~0ull, &seed);
		else if ((value = cmd_option(argc, argv, &i, "--json", &fault)))
			json = value;
		else if ((value = cmd_option(argc, argv, &i, "--pcap", &fault)))
			pcap = value;
		else
			fault = true;
		if (fault)
			return cmd_error(CMD_USAGE, "selftest does not take '%s' (--help)",
					 argv[i]);
	}
	model = device_is_model(&choice, &id, &fault);
	if (fault)
		return cmd_error(CMD_USAGE, "no model of '%s' (--help)", choice.name);
	if (pcap && !model)
		return cmd_error(CMD_USAGE, "--pcap goes with --device model");
	if (device_open(&choice, &dev))
		return CMD_IMPOSSIBLE;
	if ((json && !(json_file = cmd_create(json))) ||
	    (pcap && !(pcap_file = cmd_create(pcap)))) {
		nicdev_close(dev);
		return CMD_USAGE;
	}
	if (json_file == stdout)
		text = NULL;
	n = selftest_run(dev, id, seed, pcap_file, rows);
	for (u32 i = 0; i < n; i++) {
		failed += !rows[i].passed;
		if (text)
			fprintf(text, "%-7s %-21s %s\n", rows[i].passed ? "passed" : "FAILED",
				rows[i].name, rows[i].text);
	}
	if (text)
		fprintf(text, "%u passed, %u failed\n", n - failed, failed);
	if (json_file)
		as_json(json_file, choice.name, seed, rows, n, failed);
	if (json_file && json_file != stdout)
		fclose(json_file);
	if (pcap_file)
		fclose(pcap_file);
	nicdev_close(dev);
	return failed ? CMD_FAILED : CMD_OK;
}
