/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_rate - messages per second, with a window of messages outstanding on each VI. */
#include "pf_run.h"

#define SIZES "1..1k"

static const struct pf_tool tool = {
	.name = "vi_rate",
	.kind = PF_RATE,
	.head = PF_HEAD(
		"vi_rate",
		"Measures how many messages per second go from one process to another over VIs: a\n"
		"window of messages is outstanding, each half window is acknowledged."),
	.title = "Viaduct VI Message Rate Test",
	.column = "Messages/s",
	.metric = "messages_per_s",
	.tail = PF_TAIL(
		"  messages_per_s bandwidth_mb_per_s round_avg_us round_min_us round_max_us\n"
		"  round_stddev_us round_p50_us round_p99_us ... (time of half a window)",
		SIZES),
	.sizes = SIZES,
	.window = 64,
	.prepare = pf_fill_source,
	.client = pf_stream_client,
	.server = pf_stream_server,
};

int main(int argc, char **argv)
{
	return pf_main(&tool, argc, argv);
}
