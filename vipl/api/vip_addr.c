/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "vip_api.h"

int vip_host_in(const struct vi_nic *nic, const VIP_NET_ADDRESS *addr, struct vi_addr *out)
{
	uint16_t len = addr->HostAddressLen;

	if (len != nic->attrs.NicAddressLen || len > sizeof(out->host))
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	out->host_len = len;
	memcpy(out->host, vip_addr_bytes(addr), len);
	return 0;
}

int vip_addr_in(const struct vi_nic *nic, const VIP_NET_ADDRESS *addr, struct vi_addr *out)
{
	uint16_t len = addr->DiscriminatorLen;
	int err = vip_host_in(nic, addr, out);

	if (err != 0)
		return err;
	if (len > nic->attrs.MaxDiscriminatorLen || len > sizeof(out->disc))
		return -EINVAL;
	out->disc_len = len;
	memcpy(out->disc, vip_addr_bytes(addr) + out->host_len, len);
	return 0;
}

int vip_addr_own(const struct vi_nic *nic, const struct vi_addr *addr)
{
	return memcmp(addr->host, nic->attrs.LocalNicAddress, addr->host_len) == 0 ? 0 : -EINVAL;
}

void vip_addr_out(VIP_NET_ADDRESS *addr, const struct vi_addr *in)
{
	addr->HostAddressLen = in->host_len;
	addr->DiscriminatorLen = in->disc_len;
	memcpy(vip_addr_bytes(addr), in->host, in->host_len);
	memcpy(vip_addr_bytes(addr) + in->host_len, in->disc, in->disc_len);
}
