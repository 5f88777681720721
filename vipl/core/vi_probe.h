/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks whether memory is mapped, and with which rights. */
#ifndef VI_PROBE_H
#define VI_PROBE_H

#include <stdint.h>

/*
 * The rights of the process itself to [addr, addr + len): VI_READ, or VI_READ | VI_WRITE.  -EINVAL
 * when a page is not mapped or not readable; -ENOMEM: not all can be made present.  *rights_out means nothing then.
 *
 * The kernel brings in a page of private anonymous memory at its first use, even if that is under a
 * lock of a VI: it needs memory for that and nothing else.  A page of a file may lie past the end of
 * the file, or come from a file system that answers late or never; so each such page is checked here,
 * where no lock is held.
 */
int vi_probe_range(void *addr, uint64_t len, uint32_t *rights_out);

#endif
