/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of the fault decorator; port_fault.h explains them. */
#ifndef PORT_FAULT_OPT_H
#define PORT_FAULT_OPT_H

#include <stdint.h>

struct fault_options {
	double drop_db;
	double spurious_db;
	double early_db;
	double torn;
	uint64_t down_after; /* 0: never */
	uint64_t down_ms;
};

/*
 * Options that the text does not name are 0.  0, or -EINVAL after a log line that names the bad option, and
 * *out is as before.
 */
int fault_parse(const char *text, struct fault_options *out);

#endif
