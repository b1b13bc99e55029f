/* SPDX-License-Identifier: MIT */
#include "hw/cmd/stop.h"

#include <signal.h>
#include <string.h>

volatile int stop_wanted;

static void want(int number)
{
	(void)number;
	stop_wanted = 1;
}

void stop_on_signals(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = want;
	action.sa_flags = SA_RESETHAND;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}
