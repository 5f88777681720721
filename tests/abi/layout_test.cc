/* SPDX-License-Identifier: BSD-2-Clause */
/* Values and layouts of the public headers as a C++ program sees them. */
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <vipl_ext.h>

namespace {

struct Constant {
	const char *name;
	unsigned long long value, expected;
};

/* clang-format off */
#define C(name, expected) {#name, (unsigned long long)(name), expected}
/* clang-format on */

const Constant constants[] = {
	C(VIP_TRUE, 1),
	C(VIP_FALSE, 0),
	C(VIP_INFINITE, 0xFFFFFFFF),
	C(VIP_SUCCESS, 0),
	C(VIP_NOT_DONE, 1),
	C(VIP_INVALID_PARAMETER, 2),
	C(VIP_ERROR_RESOURCE, 3),
	C(VIP_TIMEOUT, 4),
	C(VIP_REJECT, 5),
	C(VIP_INVALID_RELIABILITY_LEVEL, 6),
	C(VIP_INVALID_MTU, 7),
	C(VIP_INVALID_QOS, 8),
	C(VIP_INVALID_PTAG, 9),
	C(VIP_INVALID_RDMAREAD, 10),
	C(VIP_DESCRIPTOR_ERROR, 11),
	C(VIP_INVALID_STATE, 12),
	C(VIP_ERROR_NAMESERVICE, 13),
	C(VIP_NO_MATCH, 14),
	C(VIP_NOT_REACHABLE, 15),
	C(VIP_ERROR_NOT_SUPPORTED, 16),
	C(VIP_SERVICE_UNRELIABLE, 0x01),
	C(VIP_SERVICE_RELIABLE_DELIVERY, 0x02),
	C(VIP_SERVICE_RELIABLE_RECEPTION, 0x04),
	C(VIP_CONTROL_OP_SENDRECV, 0x0),
	C(VIP_CONTROL_OP_RDMAWRITE, 0x1),
	C(VIP_CONTROL_OP_RDMAREAD, 0x2),
	C(VIP_CONTROL_OP_RESERVED, 0x3),
	C(VIP_CONTROL_OP_MASK, 0x3),
	C(VIP_CONTROL_IMMEDIATE, 0x4),
	C(VIP_CONTROL_QFENCE, 0x8),
	C(VIP_CONTROL_RESERVED, 0xFFF0),
	C(VIP_STATUS_DONE, 0x1),
	C(VIP_STATUS_FORMAT_ERROR, 0x2),
	C(VIP_STATUS_PROTECTION_ERROR, 0x4),
	C(VIP_STATUS_LENGTH_ERROR, 0x8),
	C(VIP_STATUS_PARTIAL_ERROR, 0x10),
	C(VIP_STATUS_DESC_FLUSHED_ERROR, 0x20),
	C(VIP_STATUS_TRANSPORT_ERROR, 0x40),
	C(VIP_STATUS_RDMA_PROT_ERROR, 0x80),
	C(VIP_STATUS_REMOTE_DESC_ERROR, 0x100),
	C(VIP_STATUS_ERROR_MASK, 0x1FE),
	C(VIP_STATUS_OP_SEND, 0x00000),
	C(VIP_STATUS_OP_RECEIVE, 0x10000),
	C(VIP_STATUS_OP_RDMA_WRITE, 0x20000),
	C(VIP_STATUS_OP_REMOTE_RDMA_WRITE, 0x30000),
	C(VIP_STATUS_OP_RDMA_READ, 0x40000),
	C(VIP_STATUS_OP_MASK, 0x70000),
	C(VIP_STATUS_IMMEDIATE, 0x80000),
	C(VIP_STATUS_RESERVED, 0xFFF0FE00),
	C(VIP_DESCRIPTOR_ALIGNMENT, 64),
	C(VIP_STATE_IDLE, 0),
	C(VIP_STATE_CONNECTED, 1),
	C(VIP_STATE_CONNECT_PENDING, 2),
	C(VIP_STATE_ERROR, 3),
	C(VIP_RESOURCE_NIC, 0),
	C(VIP_RESOURCE_VI, 1),
	C(VIP_RESOURCE_CQ, 2),
	C(VIP_RESOURCE_DESCRIPTOR, 3),
	C(VIP_ERROR_POST_DESC, 0),
	C(VIP_ERROR_CONN_LOST, 1),
	C(VIP_ERROR_RECVQ_EMPTY, 2),
	C(VIP_ERROR_VI_OVERRUN, 3),
	C(VIP_ERROR_RDMAW_PROT, 4),
	C(VIP_ERROR_RDMAW_DATA, 5),
	C(VIP_ERROR_RDMAW_ABORT, 6),
	C(VIP_ERROR_RDMAR_PROT, 7),
	C(VIP_ERROR_COMP_PROT, 8),
	C(VIP_ERROR_RDMA_TRANSPORT, 9),
	C(VIP_ERROR_CATASTROPHIC, 10),
	C(VIP_SMI_AUTODISCOVERY, 1),
	C(VIPX_VERSION, 5),
	C(VIPX_ADOPT_NO_WRITERS, 1),
	C(VIPX_CONTROL_OP_ATOMIC, 0x3),
	C(VIPX_STATUS_OP_ATOMIC, 0x50000),
	C(VIPX_ATOMIC_FETCH, 1),
	C(VIPX_ATOMIC_SWAP, 2),
	C(VIPX_ATOMIC_COMPARE_SWAP, 3),
	C(VIPX_ATOMIC_ADD, 4),
	C(VIPX_ATOMIC_AND, 5),
	C(VIPX_ATOMIC_OR, 6),
	C(VIPX_ATOMIC_XOR, 7),
	C(VIPX_PATH_NONE, 0),
	C(VIPX_PATH_SELF, 1),
	C(VIPX_PATH_NEIGHBOUR, 2),
	C(VIPX_PATH_RELAYED, 3),
};

TEST(Constants, HaveTheirValues)
{
	for (const Constant &c : constants)
		EXPECT_EQ(c.value, c.expected) << c.name;
}

/* The status bits do not overlap, and the reserved mask has all bits that they leave. */
TEST(Constants, StatusMasksCoverTheWord)
{
	const unsigned used = VIP_STATUS_DONE | VIP_STATUS_ERROR_MASK | VIP_STATUS_OP_MASK |
			      VIP_STATUS_IMMEDIATE;

	EXPECT_EQ(used & VIP_STATUS_RESERVED, 0u);
	EXPECT_EQ(used | VIP_STATUS_RESERVED, 0xFFFFFFFFu);
	EXPECT_EQ(VIP_CONTROL_OP_MASK | VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE |
			  VIP_CONTROL_RESERVED,
		  0xFFFF);
}

/* Both spellings name the same bytes. */
TEST(Layout, SpellingsAreTheSameMemory)
{
	VIP_DESCRIPTOR d;

	EXPECT_EQ((void *)&d.CS, (void *)&d.Control);
	EXPECT_EQ((void *)&d.DS[0], (void *)&d.Data[0]);
	EXPECT_EQ((void *)&d.DS[1].Local.Length, (void *)&d.Data[1].Length);
	EXPECT_EQ((char *)&d.DS[0] - (char *)&d, 32);
	EXPECT_EQ((char *)&d.DS[1] - (char *)&d, 48);
	EXPECT_EQ(sizeof(d), 64u);
}

TEST(Layout, SameInCxx)
{
	EXPECT_TRUE(std::is_standard_layout<VIP_DESCRIPTOR>::value);
	EXPECT_TRUE(std::is_trivial<VIP_DESCRIPTOR>::value);
	EXPECT_EQ(offsetof(VIP_CONTROL_SEGMENT, Status), 28u);
	EXPECT_EQ(offsetof(VIP_DATA_SEGMENT, Length), 12u);
	EXPECT_EQ(offsetof(VIP_NET_ADDRESS, HostAddress), 4u);
	EXPECT_EQ(sizeof(VIP_NET_ADDRESS), 6u);
	EXPECT_EQ(sizeof(VIPX_COUNTERS), 168u);
	EXPECT_EQ(offsetof(VIPX_ROUTE, Size), 0u);
	EXPECT_EQ(offsetof(VIPX_COUNTERS, Size), 0u);
}

TEST(Types, AreThoseOfTheSpecification)
{
	EXPECT_TRUE((std::is_same<VIP_ULONG, unsigned long>::value));
	EXPECT_TRUE((std::is_same<VIP_MEM_HANDLE, uint32_t>::value));
	EXPECT_TRUE((std::is_same<VIP_QOS, void *>::value));
	EXPECT_TRUE((std::is_same<VIP_VI_HANDLE, void *>::value));
	EXPECT_TRUE((std::is_same<VIP_RELIABILITY_LEVEL, unsigned short>::value));
	EXPECT_TRUE((std::is_same<decltype(VIP_NIC_ATTRIBUTES::LocalNicAddress),
				  const VIP_UINT8 *>::value));
	EXPECT_TRUE((std::is_same<decltype(VIP_AUTODISCOVERY_LIST::ADAddrArray),
				  VIP_NET_ADDRESS **>::value));
}

/* Handler parameters are plain function types, so that both ways of declaring one fit. */
TEST(Types, SignaturesAcceptTheTypedefs)
{
	EXPECT_TRUE((
		std::is_same<decltype(&VipErrorCallback),
			     VIP_RETURN (*)(VIP_NIC_HANDLE, VIP_PVOID, VIP_ERROR_HANDLER)>::value));
	EXPECT_TRUE(
		(std::is_same<decltype(&VipRecvNotify),
			      VIP_RETURN (*)(VIP_VI_HANDLE, VIP_PVOID, VIP_VI_CALLBACK)>::value));
	EXPECT_TRUE((std::is_same<decltype(&VipCQNotify), VIP_RETURN (*)(VIP_CQ_HANDLE, VIP_PVOID,
									 VIP_CQ_CALLBACK)>::value));
	EXPECT_TRUE((std::is_same<decltype(&VipOpenNic),
				  VIP_RETURN (*)(const VIP_CHAR *, VIP_NIC_HANDLE *)>::value));
	EXPECT_TRUE((std::is_same<decltype(&VipRegisterMem),
				  VIP_RETURN (*)(VIP_NIC_HANDLE, VIP_PVOID, VIP_ULONG,
						 VIP_MEM_ATTRIBUTES *, VIP_MEM_HANDLE *)>::value));
	EXPECT_TRUE((std::is_same<decltype(&VipConnectWait),
				  VIP_RETURN (*)(VIP_NIC_HANDLE, VIP_NET_ADDRESS *, VIP_ULONG,
						 VIP_NET_ADDRESS *, VIP_VI_ATTRIBUTES *,
						 VIP_CONN_HANDLE *)>::value));
}

} /* namespace */
