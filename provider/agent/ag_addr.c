/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and attributes of connections, compared. */
#include "ag_addr.h"

#include <errno.h>
#include <string.h>

#include "ag_state.h"
#include "w_ctl.h"

bool ag_addr_equal(const struct w_addr *a, const struct w_addr *b)
{
	return ag_addr_compare(a, b) == 0;
}

int ag_addr_compare(const struct w_addr *a, const struct w_addr *b)
{
	uint8_t shorter = a->disc_len < b->disc_len ? a->disc_len : b->disc_len;
	int rc = memcmp(a->host, b->host, W_HOST_ADDR_LEN);

	if (rc == 0)
		rc = memcmp(a->disc, b->disc, shorter);
	if (rc == 0)
		rc = (int)a->disc_len - (int)b->disc_len;
	return rc;
}

int ag_addr_host(const struct ag_agent *a, const uint8_t *host, unsigned int len)
{
	uint8_t wanted[W_HOST_ADDR_LEN];
	unsigned int id;

	if (len != W_HOST_ADDR_LEN)
		return -ENOENT;
	id = (unsigned int)host[4] << 8 | host[5];
	w_host_addr((uint16_t)id, wanted);
	if (memcmp(host, wanted, sizeof(wanted)) != 0 || id >= a->cfg.host_count)
		return -ENOENT;
	return (int)id;
}

enum w_status ag_addr_compare_attrs(const struct w_vi_attrs *a, const struct w_vi_attrs *b)
{
	if (a->reliability != b->reliability)
		return W_BAD_RELIABILITY;
	if (a->max_transfer != b->max_transfer)
		return W_BAD_MTU;
	if (a->qos != b->qos)
		return W_BAD_QOS;
	return W_SUCCESS;
}
