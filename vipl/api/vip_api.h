/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts that the functions of the API share.  Each checks its arguments, resolves the handle, makes
 * one call down and translates the result.  Symbols are public because vipl.h and vipl_ext.h
 * declare them so.
 */
#ifndef VIP_API_H
#define VIP_API_H

#include "u_cancel.h"
#include "vi_handle.h"
#include "vi_nic.h"
#include "vi_provider.h"
#include "vi_status.h"

/*
 * Returns VIP_INVALID_PARAMETER, for a polling call or a post whose handle, or another argument, is not valid; logs a
 * parent's handle, once in a process.
 */
VIP_RETURN vip_refuse(const void *handle);

/*
 * Copies and checks an address of the consumer.  0, or -EINVAL: the host part has not the length of the NIC's, or the
 * discriminator is too long; then *out means nothing.  Any host will do: see vip_addr_own().
 */
int vip_addr_in(const struct vi_nic *nic, const VIP_NET_ADDRESS *addr, struct vi_addr *out);

/* As vip_addr_in() for the host part only; the discriminator is ignored, and empty in *out. */
int vip_host_in(const struct vi_nic *nic, const VIP_NET_ADDRESS *addr, struct vi_addr *out);

/* Is it an address of this NIC? 0 or -EINVAL. */
int vip_addr_own(const struct vi_nic *nic, const struct vi_addr *addr);

/* Writes the lengths and as many bytes as they say, no more; `addr` has room for them. */
void vip_addr_out(VIP_NET_ADDRESS *addr, const struct vi_addr *in);

/* The bytes of a VIP_NET_ADDRESS; the structure declares only the first. */
static inline uint8_t *vip_addr_bytes(const VIP_NET_ADDRESS *addr)
{
	return (uint8_t *)addr + offsetof(VIP_NET_ADDRESS, HostAddress);
}

#endif
