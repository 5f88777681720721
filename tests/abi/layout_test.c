/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes and offsets of every structure of the specification, checked by the
 * compiler: programs and other libraries were built against them.
 */
#include <vipl_ext.h>

#define AT(type, member, offset)                                                                   \
	_Static_assert(offsetof(type, member) == (offset), #type "." #member " at " #offset)
#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " has " #size " bytes")
#define SAME(type, a, b)                                                                           \
	_Static_assert(offsetof(type, a) == offsetof(type, b), #type ": " #a " and " #b)

#define P sizeof(void *)
#define L sizeof(unsigned long)

SIZE(VIP_CHAR, 1);
SIZE(VIP_UCHAR, 1);
SIZE(VIP_USHORT, 2);
SIZE(VIP_ULONG, sizeof(long));
SIZE(VIP_UINT8, 1);
SIZE(VIP_UINT16, 2);
SIZE(VIP_UINT32, 4);
SIZE(VIP_UINT64, 8);
SIZE(VIP_MEM_HANDLE, 4);
SIZE(VIP_RELIABILITY_LEVEL, 2);
SIZE(VIP_BOOLEAN, sizeof(int));

SIZE(VIP_PVOID64, 8);
AT(VIP_PVOID64, AddressBits, 0);
AT(VIP_PVOID64, Address, 0);
AT(VIP_PVOID64, Descriptor, 0);

SIZE(VIP_CONTROL_SEGMENT, 32);
AT(VIP_CONTROL_SEGMENT, Next, 0);
AT(VIP_CONTROL_SEGMENT, NextHandle, 8);
AT(VIP_CONTROL_SEGMENT, SegCount, 12);
AT(VIP_CONTROL_SEGMENT, Control, 14);
AT(VIP_CONTROL_SEGMENT, Reserved, 16);
AT(VIP_CONTROL_SEGMENT, ImmediateData, 20);
AT(VIP_CONTROL_SEGMENT, Length, 24);
AT(VIP_CONTROL_SEGMENT, Status, 28);

SIZE(VIP_ADDRESS_SEGMENT, 16);
AT(VIP_ADDRESS_SEGMENT, Data, 0);
AT(VIP_ADDRESS_SEGMENT, Handle, 8);
AT(VIP_ADDRESS_SEGMENT, Reserved, 12);

SIZE(VIP_DATA_SEGMENT, 16);
AT(VIP_DATA_SEGMENT, Data, 0);
AT(VIP_DATA_SEGMENT, Handle, 8);
AT(VIP_DATA_SEGMENT, Length, 12);

SIZE(VIP_DESCRIPTOR_SEGMENT, 16);
AT(VIP_DESCRIPTOR_SEGMENT, Remote, 0);
AT(VIP_DESCRIPTOR_SEGMENT, Local, 0);

SIZE(VIP_DESCRIPTOR, 64);
AT(VIP_DESCRIPTOR, CS, 0);
AT(VIP_DESCRIPTOR, Control, 0);
AT(VIP_DESCRIPTOR, DS, 32);
AT(VIP_DESCRIPTOR, Data, 32);
SAME(VIP_DESCRIPTOR, DS[1].Local.Length, Data[1].Length);
SAME(VIP_DESCRIPTOR, CS.Status, Control.Status);
_Static_assert(_Alignof(VIP_DESCRIPTOR) == _Alignof(VIP_UINT64), "no alignment attribute");

SIZE(VIP_NET_ADDRESS, 6);
AT(VIP_NET_ADDRESS, HostAddressLen, 0);
AT(VIP_NET_ADDRESS, DiscriminatorLen, 2);
AT(VIP_NET_ADDRESS, HostAddress, 4);

AT(VIP_NIC_ATTRIBUTES, Name, 0);
AT(VIP_NIC_ATTRIBUTES, HardwareVersion, 64);
AT(VIP_NIC_ATTRIBUTES, ProviderVersion, 64 + L);
AT(VIP_NIC_ATTRIBUTES, NicAddressLen, 64 + 2 * L);
AT(VIP_NIC_ATTRIBUTES, LocalNicAddress, 64 + 2 * L + P);
AT(VIP_NIC_ATTRIBUTES, ThreadSafe, 64 + 2 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, MaxDiscriminatorLen, 64 + 2 * L + 2 * P + 4);
AT(VIP_NIC_ATTRIBUTES, MaxRegisterBytes, 72 + 2 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, MaxRegisterRegions, 72 + 3 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, MaxRegisterBlockBytes, 72 + 4 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, MaxVI, 72 + 5 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, MaxDescriptorsPerQueue, 72 + 6 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, MaxSegmentsPerDesc, 72 + 7 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, MaxCQ, 72 + 8 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, MaxCQEntries, 72 + 9 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, MaxTransferSize, 72 + 10 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, NativeMTU, 72 + 11 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, MaxPtags, 72 + 12 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, ReliabilityLevelSupport, 72 + 13 * L + 2 * P);
AT(VIP_NIC_ATTRIBUTES, RDMAReadSupport, 74 + 13 * L + 2 * P);
SIZE(VIP_NIC_ATTRIBUTES, 72 + 13 * L + 2 * P + L);

AT(VIP_VI_ATTRIBUTES, ReliabilityLevel, 0);
AT(VIP_VI_ATTRIBUTES, MaxTransferSize, L);
AT(VIP_VI_ATTRIBUTES, QoS, 2 * L);
AT(VIP_VI_ATTRIBUTES, Ptag, 2 * L + P);
AT(VIP_VI_ATTRIBUTES, EnableRdmaWrite, 2 * L + 2 * P);
AT(VIP_VI_ATTRIBUTES, EnableRdmaRead, 2 * L + 2 * P + 4);
SIZE(VIP_VI_ATTRIBUTES, 2 * L + 2 * P + 8);

AT(VIP_MEM_ATTRIBUTES, Ptag, 0);
AT(VIP_MEM_ATTRIBUTES, EnableRdmaWrite, P);
AT(VIP_MEM_ATTRIBUTES, EnableRdmaRead, P + 4);
SIZE(VIP_MEM_ATTRIBUTES, P + 8);

AT(VIP_ERROR_DESCRIPTOR, NicHandle, 0);
AT(VIP_ERROR_DESCRIPTOR, ViHandle, P);
AT(VIP_ERROR_DESCRIPTOR, CQHandle, 2 * P);
AT(VIP_ERROR_DESCRIPTOR, DescriptorPtr, 3 * P);
AT(VIP_ERROR_DESCRIPTOR, OpCode, 4 * P);
AT(VIP_ERROR_DESCRIPTOR, ResourceCode, 4 * P + L);
AT(VIP_ERROR_DESCRIPTOR, ErrorCode, 4 * P + L + 4);
SIZE(VIP_ERROR_DESCRIPTOR, 4 * P + L + 8);

AT(VIP_AUTODISCOVERY_LIST, NumberOfHops, 0);
AT(VIP_AUTODISCOVERY_LIST, ADAddrArray, L);
AT(VIP_AUTODISCOVERY_LIST, NumAdAddrs, L + P);
SIZE(VIP_AUTODISCOVERY_LIST, 2 * L + P);

/* Extensions: the size is first, and the members of version 1 keep their places. */
AT(VIPX_ROUTE, Size, 0);
AT(VIPX_ROUTE, Reachable, L);
AT(VIPX_ROUTE, Hops, 2 * L);
AT(VIPX_ROUTE, PathKind, 3 * L);
AT(VIPX_ROUTE, Host, 4 * L);
AT(VIPX_ROUTE, Port, 4 * L + 64);
AT(VIPX_ROUTE, Reason, 4 * L + 80);
SIZE(VIPX_ROUTE, 4 * L + 240);

AT(VIPX_ATOMIC_SEGMENT, Operand, 0);
AT(VIPX_ATOMIC_SEGMENT, Compare, 8);
SIZE(VIPX_ATOMIC_SEGMENT, 16);
AT(VIPX_ATOMIC_DESCRIPTOR, CS, 0);
AT(VIPX_ATOMIC_DESCRIPTOR, Remote, 32);
AT(VIPX_ATOMIC_DESCRIPTOR, Atomic, 48);
AT(VIPX_ATOMIC_DESCRIPTOR, Result, 64);
SIZE(VIPX_ATOMIC_DESCRIPTOR, 128);

AT(VIPX_COMPLETION, Size, 0);
AT(VIPX_COMPLETION, ViHandle, L);
AT(VIPX_COMPLETION, Context, 2 * L);
AT(VIPX_COMPLETION, DescriptorPtr, 3 * L);
AT(VIPX_COMPLETION, RecvQueue, 4 * L);
AT(VIPX_COMPLETION, Status, 4 * L + 4);
AT(VIPX_COMPLETION, Length, 4 * L + 8);
AT(VIPX_COMPLETION, Reserved, 4 * L + 12);
SIZE(VIPX_COMPLETION, 4 * L + 16);

AT(VIPX_COUNTERS, Size, 0);
AT(VIPX_COUNTERS, SendsPosted, 8);
AT(VIPX_COUNTERS, RecvsPosted, 16);
AT(VIPX_COUNTERS, MessagesSent, 24);
AT(VIPX_COUNTERS, MessagesReceived, 32);
AT(VIPX_COUNTERS, BytesSent, 40);
AT(VIPX_COUNTERS, BytesReceived, 48);
AT(VIPX_COUNTERS, RdmaWrites, 56);
AT(VIPX_COUNTERS, RdmaReads, 64);
AT(VIPX_COUNTERS, SlotsSent, 72);
AT(VIPX_COUNTERS, SlotsReceived, 80);
AT(VIPX_COUNTERS, Dropped, 88);
AT(VIPX_COUNTERS, RecvQueueEmpty, 96);
AT(VIPX_COUNTERS, ProtectionErrors, 104);
AT(VIPX_COUNTERS, ProtocolErrors, 112);
AT(VIPX_COUNTERS, DoorbellsRung, 120);
AT(VIPX_COUNTERS, DoorbellsTaken, 128);
AT(VIPX_COUNTERS, Sleeps, 136);
AT(VIPX_COUNTERS, Stalls, 144);
AT(VIPX_COUNTERS, ConnectionsOpened, 152);
AT(VIPX_COUNTERS, ConnectionsLost, 160);
SIZE(VIPX_COUNTERS, 168);

int main(void)
{
	return 0;
}
