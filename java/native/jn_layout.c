/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The offsets and sizes on which Java relies: those of Layout.java, under the names that they have there.
 */
#include "jn_layout.h"
#include <stdio.h>
#include <vipl.h>
#include <vipl_ext.h>

#ifndef JN_BINDING
#define JN_BINDING 1 /* counts the changes of the functions between Java and this library */
#endif

static const struct {
	const char *name;
	size_t value;
} table[] = {
	{ "BINDING", JN_BINDING },
	{ "DESC_NEXT", offsetof(VIP_DESCRIPTOR, CS.Next) },
	{ "DESC_NEXT_HANDLE", offsetof(VIP_DESCRIPTOR, CS.NextHandle) },
	{ "DESC_SEG_COUNT", offsetof(VIP_DESCRIPTOR, CS.SegCount) },
	{ "DESC_CONTROL", offsetof(VIP_DESCRIPTOR, CS.Control) },
	{ "DESC_RESERVED", offsetof(VIP_DESCRIPTOR, CS.Reserved) },
	{ "DESC_IMMEDIATE", offsetof(VIP_DESCRIPTOR, CS.ImmediateData) },
	{ "DESC_LENGTH", offsetof(VIP_DESCRIPTOR, CS.Length) },
	{ "DESC_STATUS", offsetof(VIP_DESCRIPTOR, CS.Status) },
	{ "DESC_SEGMENTS", offsetof(VIP_DESCRIPTOR, DS) },
	{ "DESC_SIZE", sizeof(VIP_DESCRIPTOR) },
	{ "SEG_DATA", offsetof(VIP_DATA_SEGMENT, Data) },
	{ "SEG_HANDLE", offsetof(VIP_DATA_SEGMENT, Handle) },
	{ "SEG_LENGTH", offsetof(VIP_DATA_SEGMENT, Length) },
	{ "SEG_SIZE", sizeof(VIP_DATA_SEGMENT) },
	{ "ATOMIC_OPERAND", offsetof(VIPX_ATOMIC_DESCRIPTOR, Atomic.Operand) },
	{ "ATOMIC_COMPARE", offsetof(VIPX_ATOMIC_DESCRIPTOR, Atomic.Compare) },
	{ "ATOMIC_RESULT", offsetof(VIPX_ATOMIC_DESCRIPTOR, Result) },
	{ "ATOMIC_SIZE", sizeof(VIPX_ATOMIC_DESCRIPTOR) },
	{ "ADDR_HOST_LEN", offsetof(VIP_NET_ADDRESS, HostAddressLen) },
	{ "ADDR_DISC_LEN", offsetof(VIP_NET_ADDRESS, DiscriminatorLen) },
	{ "ADDR_HOST", offsetof(VIP_NET_ADDRESS, HostAddress) },
	{ "NIC_NAME", offsetof(VIP_NIC_ATTRIBUTES, Name) },
	{ "NIC_HARDWARE", offsetof(VIP_NIC_ATTRIBUTES, HardwareVersion) },
	{ "NIC_PROVIDER", offsetof(VIP_NIC_ATTRIBUTES, ProviderVersion) },
	{ "NIC_ADDR_LEN", offsetof(VIP_NIC_ATTRIBUTES, NicAddressLen) },
	{ "NIC_ADDR", offsetof(VIP_NIC_ATTRIBUTES, LocalNicAddress) },
	{ "NIC_THREAD_SAFE", offsetof(VIP_NIC_ATTRIBUTES, ThreadSafe) },
	{ "NIC_MAX_DISC", offsetof(VIP_NIC_ATTRIBUTES, MaxDiscriminatorLen) },
	{ "NIC_MAX_REG_BYTES", offsetof(VIP_NIC_ATTRIBUTES, MaxRegisterBytes) },
	{ "NIC_MAX_REG_REGIONS", offsetof(VIP_NIC_ATTRIBUTES, MaxRegisterRegions) },
	{ "NIC_MAX_REG_BLOCK", offsetof(VIP_NIC_ATTRIBUTES, MaxRegisterBlockBytes) },
	{ "NIC_MAX_VI", offsetof(VIP_NIC_ATTRIBUTES, MaxVI) },
	{ "NIC_MAX_DESCS", offsetof(VIP_NIC_ATTRIBUTES, MaxDescriptorsPerQueue) },
	{ "NIC_MAX_SEGS", offsetof(VIP_NIC_ATTRIBUTES, MaxSegmentsPerDesc) },
	{ "NIC_MAX_CQ", offsetof(VIP_NIC_ATTRIBUTES, MaxCQ) },
	{ "NIC_MAX_CQ_ENTRIES", offsetof(VIP_NIC_ATTRIBUTES, MaxCQEntries) },
	{ "NIC_MAX_TRANSFER", offsetof(VIP_NIC_ATTRIBUTES, MaxTransferSize) },
	{ "NIC_MTU", offsetof(VIP_NIC_ATTRIBUTES, NativeMTU) },
	{ "NIC_MAX_PTAGS", offsetof(VIP_NIC_ATTRIBUTES, MaxPtags) },
	{ "NIC_LEVELS", offsetof(VIP_NIC_ATTRIBUTES, ReliabilityLevelSupport) },
	{ "NIC_READ_LEVELS", offsetof(VIP_NIC_ATTRIBUTES, RDMAReadSupport) },
	{ "NIC_SIZE", sizeof(VIP_NIC_ATTRIBUTES) },
	{ "VI_LEVEL", offsetof(VIP_VI_ATTRIBUTES, ReliabilityLevel) },
	{ "VI_MAX_TRANSFER", offsetof(VIP_VI_ATTRIBUTES, MaxTransferSize) },
	{ "VI_QOS", offsetof(VIP_VI_ATTRIBUTES, QoS) },
	{ "VI_PTAG", offsetof(VIP_VI_ATTRIBUTES, Ptag) },
	{ "VI_WRITE", offsetof(VIP_VI_ATTRIBUTES, EnableRdmaWrite) },
	{ "VI_READ", offsetof(VIP_VI_ATTRIBUTES, EnableRdmaRead) },
	{ "VI_SIZE", sizeof(VIP_VI_ATTRIBUTES) },
	{ "MEM_PTAG", offsetof(VIP_MEM_ATTRIBUTES, Ptag) },
	{ "MEM_WRITE", offsetof(VIP_MEM_ATTRIBUTES, EnableRdmaWrite) },
	{ "MEM_READ", offsetof(VIP_MEM_ATTRIBUTES, EnableRdmaRead) },
	{ "MEM_SIZE", sizeof(VIP_MEM_ATTRIBUTES) },
	{ "ERR_NIC", offsetof(VIP_ERROR_DESCRIPTOR, NicHandle) },
	{ "ERR_VI", offsetof(VIP_ERROR_DESCRIPTOR, ViHandle) },
	{ "ERR_CQ", offsetof(VIP_ERROR_DESCRIPTOR, CQHandle) },
	{ "ERR_DESC", offsetof(VIP_ERROR_DESCRIPTOR, DescriptorPtr) },
	{ "ERR_OP", offsetof(VIP_ERROR_DESCRIPTOR, OpCode) },
	{ "ERR_RESOURCE", offsetof(VIP_ERROR_DESCRIPTOR, ResourceCode) },
	{ "ERR_CODE", offsetof(VIP_ERROR_DESCRIPTOR, ErrorCode) },
	{ "ERR_SIZE", sizeof(VIP_ERROR_DESCRIPTOR) },
	{ "LIST_HOPS", offsetof(VIP_AUTODISCOVERY_LIST, NumberOfHops) },
	{ "LIST_ARRAY", offsetof(VIP_AUTODISCOVERY_LIST, ADAddrArray) },
	{ "LIST_COUNT", offsetof(VIP_AUTODISCOVERY_LIST, NumAdAddrs) },
	{ "LIST_SIZE", sizeof(VIP_AUTODISCOVERY_LIST) },
	{ "ROUTE_REACHABLE", offsetof(VIPX_ROUTE, Reachable) },
	{ "ROUTE_HOPS", offsetof(VIPX_ROUTE, Hops) },
	{ "ROUTE_KIND", offsetof(VIPX_ROUTE, PathKind) },
	{ "ROUTE_HOST", offsetof(VIPX_ROUTE, Host) },
	{ "ROUTE_PORT", offsetof(VIPX_ROUTE, Port) },
	{ "ROUTE_REASON", offsetof(VIPX_ROUTE, Reason) },
	{ "ROUTE_SIZE", sizeof(VIPX_ROUTE) },
	{ "COUNTERS_FIRST", offsetof(VIPX_COUNTERS, SendsPosted) },
	{ "COUNTERS_SIZE", sizeof(VIPX_COUNTERS) },
	{ "COMP_VI", offsetof(VIPX_COMPLETION, ViHandle) },
	{ "COMP_CONTEXT", offsetof(VIPX_COMPLETION, Context) },
	{ "COMP_DESC", offsetof(VIPX_COMPLETION, DescriptorPtr) },
	{ "COMP_RECV", offsetof(VIPX_COMPLETION, RecvQueue) },
	{ "COMP_STATUS", offsetof(VIPX_COMPLETION, Status) },
	{ "COMP_LENGTH", offsetof(VIPX_COMPLETION, Length) },
	{ "COMP_SIZE", sizeof(VIPX_COMPLETION) },
	{ "PLACE_ASKED", offsetof(VIPX_PLACEMENT, Asked) },
	{ "PLACE_GOT", offsetof(VIPX_PLACEMENT, Got) },
	{ "PLACE_AS_ASKED", offsetof(VIPX_PLACEMENT, AsAsked) },
	{ "PLACE_CPUS", offsetof(VIPX_PLACEMENT, Cpus) },
	{ "PLACE_TEXT", offsetof(VIPX_PLACEMENT, Text) },
	{ "PLACE_WARNING", offsetof(VIPX_PLACEMENT, Warning) },
	{ "PLACE_SIZE", sizeof(VIPX_PLACEMENT) },
};

int jn_layout_print(char *text, size_t size)
{
	size_t i, used = 0;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int added = snprintf(text + used, size - used, "%s %zu\n", table[i].name,
				     table[i].value);

		if (added < 0 || (size_t)added >= size - used)
			return -1;
		used += (size_t)added;
	}
	return 0;
}
