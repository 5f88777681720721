/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vi_bw - bandwidth from the client to the server (of RDMA reads: to the client), or in both
 * directions with --bidir.  A window of messages is outstanding; MB is 10^6 bytes.
 */
#include "pf_run.h"

#define SIZES "1..4M"

static const struct pf_tool tool = {
	.name = "vi_bw",
	.kind = PF_BW,
	.head = PF_HEAD(
		"vi_bw",
		"Measures the bandwidth between two processes over VIs: a window of messages is\n"
		"outstanding, each half window is acknowledged. MB is 10^6 bytes."),
	.title = "Viaduct VI Bandwidth Test",
	.column = "Bandwidth (MB/s)",
	.metric = "bandwidth_mb_per_s",
	.tail = PF_TAIL(
		"  bandwidth_mb_per_s messages_per_s round_avg_us round_min_us round_max_us\n"
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
