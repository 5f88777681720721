/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <vipl.h>
#include <vipl_ext.h>

#include "info.h"

static void put_int(json_object *o, const char *key, uint64_t v)
{
	json_object_object_add(o, key, json_object_new_uint64(v));
}

static void put_levels(json_object *o, const char *key, unsigned int mask)
{
	json_object *a = json_object_new_array();

	if (mask & VIP_SERVICE_UNRELIABLE)
		json_object_array_add(a, json_object_new_string("unreliable"));
	if (mask & VIP_SERVICE_RELIABLE_DELIVERY)
		json_object_array_add(a, json_object_new_string("delivery"));
	if (mask & VIP_SERVICE_RELIABLE_RECEPTION)
		json_object_array_add(a, json_object_new_string("reception"));
	json_object_object_add(o, key, a);
}

static void put_address(json_object *o, const VIP_NIC_ATTRIBUTES *a)
{
	char text[3 * 64 + 1] = "";
	int i;

	for (i = 0; i < a->NicAddressLen && i < 64; i++)
		snprintf(text + (i ? 3 * i - 1 : 0), 4, "%s%02x", i ? ":" : "",
			 a->LocalNicAddress[i]);
	json_object_object_add(o, "local_nic_address", json_object_new_string(text));
}

/* In the order of VIP_NIC_ATTRIBUTES. */
static json_object *attributes(const VIP_NIC_ATTRIBUTES *a)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(a->Name));
	put_int(o, "hardware_version", a->HardwareVersion);
	put_int(o, "provider_version", a->ProviderVersion);
	put_int(o, "nic_address_bytes", a->NicAddressLen);
	put_address(o, a);
	json_object_object_add(o, "thread_safe", json_object_new_boolean(a->ThreadSafe));
	put_int(o, "max_discriminator_bytes", a->MaxDiscriminatorLen);
	put_int(o, "max_register_bytes", a->MaxRegisterBytes);
	put_int(o, "max_register_regions", a->MaxRegisterRegions);
	put_int(o, "max_register_block_bytes", a->MaxRegisterBlockBytes);
	put_int(o, "max_vi", a->MaxVI);
	put_int(o, "max_descriptors_per_queue", a->MaxDescriptorsPerQueue);
	put_int(o, "max_segments_per_desc", a->MaxSegmentsPerDesc);
	put_int(o, "max_cq", a->MaxCQ);
	put_int(o, "max_cq_entries", a->MaxCQEntries);
	put_int(o, "max_transfer_bytes", a->MaxTransferSize);
	put_int(o, "native_mtu_bytes", a->NativeMTU);
	put_int(o, "max_ptags", a->MaxPtags);
	put_levels(o, "reliability_levels", a->ReliabilityLevelSupport);
	put_levels(o, "rdma_read_levels", a->RDMAReadSupport);
	return o;
}

json_object *info_nic(const char *device)
{
	VIP_NIC_ATTRIBUTES a;
	VIP_NIC_HANDLE nic;
	json_object *o = NULL;
	VIP_RETURN rc = VipOpenNic(device ? device : "nic0", &nic);

	if (rc) {
		fprintf(stderr, "vi_info: opening the NIC: %s\n", VipxErrorString(rc));
		return NULL;
	}
	rc = VipQueryNic(nic, &a);
	if (rc)
		fprintf(stderr, "vi_info: asking the NIC: %s\n", VipxErrorString(rc));
	else
		o = attributes(&a);
	VipCloseNic(nic);
	return o;
}
