/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and attributes of connections, compared. */
#ifndef AG_ADDR_H
#define AG_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_state.h"
#include "w_addr.h"
#include "w_ctl.h"

/* Compares as memcmp() does: by host, then by discriminator; one that is the beginning of another is less. */
int ag_addr_compare(const struct w_addr *a, const struct w_addr *b);
bool ag_addr_equal(const struct w_addr *a, const struct w_addr *b);

/* Returns the id of the host with a host address of `len` bytes, or -ENOENT: it is not in this fabric. */
int ag_addr_host(const struct ag_agent *a, const uint8_t *host, unsigned int len);

/*
 * Are reliability, largest transfer and quality of service equal?  W_SUCCESS, or the status of the first that is not.
 */
enum w_status ag_addr_compare_attrs(const struct w_vi_attrs *a, const struct w_vi_attrs *b);

#endif
