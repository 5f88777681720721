// SPDX-License-Identifier: BSD-2-Clause
// The validator of slots: it takes what a correct peer may send next, and nothing else.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <random>

extern "C" {
#include "u_base.h"
}
// w_slot.h uses C11 atomics; the tests only need the checks and the arithmetic.
extern "C" {
#include "w_slot_cxx.h"
}

namespace {

struct Slot {
	uint8_t op, flags;
	uint16_t reserved;
	uint32_t arg, frag;
	uint32_t rdma_length;
};

class SlotCheck : public ::testing::Test {
protected:
	int check(const Slot &s)
	{
		return wx_slot_check(stream, s.op, s.flags, s.reserved, s.arg, s.frag,
				     s.rdma_length, &inline_off);
	}
	void SetUp() override { stream = wx_stream_new(1 << 20, 16384); }
	void TearDown() override { wx_stream_free(stream); }

	struct w_stream *stream = nullptr;
	uint32_t inline_off = 99;
};

constexpr uint8_t SEND = 1, WRITE = 2, READ_REQ = 3, READ_RESP = 4, ABORT = 5, NOP = 6, ATOMIC = 7;
constexpr uint8_t FIRST = 1, LAST = 2, IMM = 4, RING = 8, ACK = 16, PLACED = 32, PACKED = 64,
		  REWOUND = 128;

TEST_F(SlotCheck, AcceptsWhatIsSent)
{
	const Slot good[] = {
		{ SEND, FIRST | LAST, 0, 0, 0, 0 },
		{ SEND, FIRST | LAST, 0, 0, 112, 0 },
		{ SEND, FIRST | LAST | IMM, 0, 0xffffffff, 48, 0 },
		{ SEND, FIRST | LAST | RING | ACK, 0, 0, 4096, 0 },
		{ SEND, FIRST | LAST | RING | REWOUND, 0, 0, 4096, 0 },
		{ SEND, FIRST | LAST | RING | REWOUND | ACK | IMM, 0, 7, 1, 0 },
		{ SEND, FIRST | RING, 0, 5000, 4096, 0 },
		{ SEND, LAST | RING, 0, 0, 904, 0 },
		{ SEND, FIRST | RING | IMM, 0, 5000, 4096, 0 },
		{ SEND, LAST | RING | IMM, 0, 7, 904, 0 },
		{ WRITE, FIRST | LAST, 0, 0, 96, 0 },
		{ WRITE, FIRST | RING, 0, 4100, 4096, 0 },
		{ WRITE, LAST, 0, 0, 4, 0 },
		{ READ_REQ, FIRST | LAST, 0, 0, 16, 1 << 20 },
		{ READ_REQ, FIRST | LAST, 0, 0, 32, 1 << 20 }, // with an offer
		{ READ_RESP, FIRST | LAST, 0, 0, 10, 0 },
		{ ATOMIC, FIRST | LAST, 0, 0, 40, 4 },
		{ ATOMIC, FIRST | LAST | ACK, 0, 0, 40, 8 },
		{ READ_RESP, FIRST | LAST, 0, 0, 0, 0 },
		{ READ_RESP, FIRST | LAST | PLACED, 0, 0, 1, 0 },
		{ READ_RESP, FIRST | LAST | PLACED | ACK, 0, 0, 1 << 20, 0 },
		{ SEND, FIRST | RING, 0, 5000, 4096, 0 },
		{ ABORT, LAST, 0, 0, 0, 0 },
		{ SEND, FIRST | LAST, 0, 0, 1, 0 },
		{ NOP, ACK, 0, 0, 0, 0 },
		{ SEND, FIRST | RING, 0, 5000, 4096, 0 },
		{ NOP, ACK, 0, 0, 0, 0 },
		{ SEND, LAST | RING, 0, 0, 904, 0 },
		{ SEND, FIRST | LAST | PLACED, 0, 0, 1, 0 },
		{ SEND, FIRST | LAST | PLACED | IMM | ACK, 0, 9, 1 << 20, 0 },
		{ WRITE, FIRST | LAST | PLACED | IMM, 0, 9, 1 << 20, 0 },
		{ SEND, FIRST | LAST | PACKED, 0, 2, 1, 0 },
		{ SEND, FIRST | LAST | PACKED, 0, 2, 56, 0 },
		{ SEND, FIRST | LAST | PACKED, 0, 28, 4, 0 },
		{ SEND, FIRST | LAST | PACKED | ACK, 0, 112, 1, 0 },
		{ SEND, FIRST | LAST, 0, 0, 1, 0 },
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		EXPECT_EQ(check(good[i]), 0) << "slot " << i;
}

TEST_F(SlotCheck, RefusesOutsideAMessage)
{
	const Slot bad[] = {
		{ 0, FIRST | LAST, 0, 0, 0, 0 },
		{ 8, FIRST | LAST, 0, 0, 0, 0 },
		{ 255, FIRST | LAST, 0, 0, 0, 0 },
		{ SEND, 0, 0, 0, 1, 0 },		      // not first
		{ SEND, LAST, 0, 0, 1, 0 },		      // not first
		{ SEND, FIRST | LAST | REWOUND, 0, 0, 1, 0 }, // no payload in the payload buffer
		{ SEND, FIRST | LAST | REWOUND | PLACED, 0, 0, 4096, 0 },
		{ SEND, FIRST | LAST | REWOUND | PACKED, 0, 2, 4, 0 },
		{ SEND, FIRST | LAST | REWOUND | RING, 0, 0, 0, 0 },
		{ NOP, REWOUND | ACK, 0, 0, 0, 0 },
		{ READ_REQ, FIRST | LAST | REWOUND, 0, 0, 16, 0 },
		{ SEND, FIRST | LAST | PLACED, 0, 0, 0, 0 }, // nothing was placed
		{ SEND, FIRST | LAST | PLACED, 0, 0, (1 << 20) + 1, 0 },
		{ SEND, FIRST | LAST | PLACED | RING, 0, 0, 4096, 0 }, // in two places
		{ SEND, FIRST | LAST | PLACED, 0, 5, 4096, 0 },	       // arg without meaning
		{ SEND, FIRST | PLACED, 0, 8192, 4096, 0 },	       // not whole
		{ SEND, LAST | PLACED, 0, 0, 4096, 0 },		       // not first
		{ SEND, PLACED, 0, 0, 4096, 0 },		       //
		{ WRITE, FIRST | LAST | PLACED, 0, 0, 4096, 0 },       // takes no receive
		{ WRITE, FIRST | LAST | PLACED | IMM, 0, 0, 4096, 8 }, // length in its address
		{ READ_RESP, FIRST | LAST | PLACED, 0, 0, 0, 0 },      // nothing was placed
		{ READ_RESP, FIRST | LAST | PLACED, 0, 0, (1 << 20) + 1, 0 },
		{ READ_RESP, FIRST | LAST | PLACED | RING, 0, 0, 4096, 0 },
		{ READ_RESP, FIRST | LAST | PLACED | REWOUND, 0, 0, 4096, 0 },
		{ READ_RESP, FIRST | LAST | PLACED | IMM, 0, 0, 4096, 0 },
		{ READ_RESP, FIRST | LAST | PLACED, 0, 5, 4096, 0 },
		{ READ_RESP, FIRST | PLACED, 0, 8192, 4096, 0 }, // not whole
		{ READ_RESP, LAST | PLACED, 0, 0, 4096, 0 },
		{ READ_REQ, FIRST | LAST | PLACED, 0, 0, 16, 1 },
		{ ABORT, LAST | PLACED, 0, 0, 0, 0 },
		{ NOP, ACK | PLACED, 0, 0, 0, 0 },
		{ SEND, FIRST | LAST | PACKED, 0, 0, 4, 0 },  // packed: none
		{ SEND, FIRST | LAST | PACKED, 0, 1, 4, 0 },  // one
		{ SEND, FIRST | LAST | PACKED, 0, 2, 0, 0 },  // empty ones
		{ SEND, FIRST | LAST | PACKED, 0, 29, 4, 0 }, // one too many
		{ SEND, FIRST | LAST | PACKED, 0, 113, 1, 0 },
		{ SEND, FIRST | LAST | PACKED, 0, 2, 57, 0 },	     // too long
		{ SEND, FIRST | LAST | PACKED, 0, 65536, 65536, 0 }, // products beyond 32 bits
		{ SEND, FIRST | LAST | PACKED, 0, 2, 0x80000001, 0 },
		{ SEND, FIRST | LAST | PACKED, 0, 0xffffffff, 1, 0 },
		{ SEND, FIRST | LAST | PACKED, 1, 2, 4, 0 },	    // reserved
		{ SEND, FIRST | PACKED, 0, 2, 4, 0 },		    // not whole
		{ SEND, LAST | PACKED, 0, 2, 4, 0 },		    //
		{ SEND, PACKED, 0, 2, 4, 0 },			    //
		{ SEND, FIRST | LAST | PACKED | IMM, 0, 2, 4, 0 },  // no room for it in arg
		{ SEND, FIRST | LAST | PACKED | RING, 0, 2, 4, 0 }, // not inline
		{ SEND, FIRST | LAST | PACKED | PLACED, 0, 2, 4, 0 },
		{ WRITE, FIRST | LAST | PACKED, 0, 2, 4, 0 },
		{ READ_RESP, FIRST | LAST | PACKED, 0, 2, 4, 0 },
		{ READ_REQ, FIRST | LAST | PACKED, 0, 2, 16, 0 },
		{ ABORT, LAST | PACKED, 0, 0, 0, 0 },
		{ NOP, ACK | PACKED, 0, 0, 0, 0 },
		{ SEND, FIRST | LAST, 1, 0, 1, 0 },		    // reserved
		{ SEND, FIRST | LAST, 0, 1, 1, 0 },		    // arg without meaning
		{ SEND, FIRST | LAST, 0, 0, 113, 0 },		    // longer than inline
		{ SEND, FIRST | LAST | RING, 0, 0, 0, 0 },	    // nothing in the ring
		{ SEND, FIRST | LAST | RING, 0, 0, 4097, 0 },	    // longer than a fragment
		{ SEND, FIRST | LAST | RING, 0, 0, 0xffffffff, 0 }, //
		{ SEND, FIRST, 0, 112, 112, 0 },		    // whole but not last
		{ SEND, FIRST, 0, 100, 112, 0 },		    // more than the whole
		{ SEND, FIRST, 0, 200, 0, 0 },			    // empty and not last
		{ SEND, FIRST | RING, 0, (1 << 20) + 1, 4096, 0 },  // too long for the VI
		{ WRITE, FIRST | LAST, 0, 0, 97, 0 },		    // no room after the address
		{ WRITE, FIRST | LAST, 0, 0, 8, 8 },		    // length in a write's address
		{ READ_REQ, FIRST | LAST, 0, 0, 15, 0 },
		{ READ_REQ, FIRST | LAST, 0, 0, 17, 0 },
		{ READ_REQ, FIRST | LAST, 0, 0, 31, 0 },
		{ READ_REQ, FIRST | LAST, 0, 0, 33, 0 },
		{ READ_REQ, FIRST | LAST, 0, 0, 48, 0 },
		{ READ_REQ, FIRST | LAST, 0, 0, 32, (1 << 20) + 1 },
		{ READ_REQ, FIRST | LAST, 0, 0, 16, (1 << 20) + 1 },
		{ READ_REQ, FIRST | LAST | RING, 0, 0, 16, 0 },
		{ READ_REQ, FIRST, 0, 0, 16, 0 },
		{ READ_RESP, FIRST | LAST | IMM, 0, 0, 1, 0 },
		{ 8, ACK, 0, 0, 0, 0 },
		{ ATOMIC, FIRST | LAST, 0, 0, 40, 0 }, // sizes that no operand has
		{ ATOMIC, FIRST | LAST, 0, 0, 40, 2 },
		{ ATOMIC, FIRST | LAST, 0, 0, 40, 12 },
		{ ATOMIC, FIRST | LAST, 0, 0, 40, 0x80000008 },
		{ ATOMIC, FIRST | LAST, 0, 0, 16, 8 }, // without operands
		{ ATOMIC, FIRST | LAST, 0, 0, 41, 8 },
		{ ATOMIC, FIRST | LAST, 0, 1, 40, 8 },
		{ ATOMIC, FIRST | LAST, 1, 0, 40, 8 },
		{ ATOMIC, FIRST, 0, 0, 40, 8 },
		{ ATOMIC, LAST, 0, 0, 40, 8 },
		{ ATOMIC, FIRST | LAST | IMM, 0, 0, 40, 8 },
		{ ATOMIC, FIRST | LAST | RING, 0, 0, 40, 8 },
		{ ATOMIC, FIRST | LAST | PLACED, 0, 0, 40, 8 },
		{ NOP, 0, 0, 0, 0, 0 },
		{ NOP, ACK | LAST, 0, 0, 0, 0 },
		{ NOP, ACK | RING, 0, 0, 1, 0 },
		{ NOP, ACK, 0, 1, 0, 0 },
		{ NOP, ACK, 0, 0, 1, 0 },
		{ NOP, ACK, 1, 0, 0, 0 },
		{ ABORT, LAST, 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_EQ(check(bad[i]), -EPROTO) << "slot " << i;
	EXPECT_EQ(check({ SEND, FIRST | LAST, 0, 0, 1, 0 }), 0) << "a refusal changes nothing";
}

TEST_F(SlotCheck, RefusesInsideAMessage)
{
	ASSERT_EQ(check({ SEND, FIRST | RING, 0, 5000, 4096, 0 }), 0);
	EXPECT_EQ(check({ SEND, FIRST | LAST, 0, 0, 1, 0 }), -EPROTO);
	EXPECT_EQ(check({ WRITE, LAST | RING, 0, 0, 904, 0 }), -EPROTO);
	EXPECT_EQ(check({ SEND, LAST | RING, 0, 0, 903, 0 }), -EPROTO);
	EXPECT_EQ(check({ SEND, LAST | RING, 0, 0, 905, 0 }), -EPROTO);
	EXPECT_EQ(check({ SEND, RING, 0, 0, 904, 0 }), -EPROTO);
	EXPECT_EQ(check({ SEND, LAST | RING | IMM, 0, 1, 904, 0 }), -EPROTO);
	EXPECT_EQ(check({ READ_REQ, FIRST | LAST, 0, 0, 16, 1 }), -EPROTO);
	EXPECT_EQ(check({ ATOMIC, FIRST | LAST, 0, 0, 40, 8 }), -EPROTO);
	EXPECT_EQ(check({ SEND, FIRST | LAST | PLACED, 0, 0, 904, 0 }), -EPROTO);
	EXPECT_EQ(check({ SEND, LAST | PLACED, 0, 0, 904, 0 }), -EPROTO);
	EXPECT_EQ(check({ SEND, FIRST | LAST | PACKED, 0, 2, 4, 0 }), -EPROTO);
	EXPECT_EQ(check({ SEND, LAST | PACKED, 0, 2, 452, 0 }), -EPROTO);
	EXPECT_EQ(check({ SEND, LAST | RING, 0, 0, 904, 0 }), 0);
}

TEST_F(SlotCheck, RefusesPackedMessagesThatTheViDoesNotTake)
{
	wx_stream_free(stream);
	stream = wx_stream_new(8, 16384);
	EXPECT_EQ(check({ SEND, FIRST | LAST | PACKED, 0, 14, 8, 0 }), 0);
	EXPECT_EQ(check({ SEND, FIRST | LAST | PACKED, 0, 2, 9, 0 }), -EPROTO);
}

TEST(SlotArithmetic, APackedSlotCountsItsMessages)
{
	EXPECT_EQ(wx_receives(SEND, FIRST | LAST, 0), 1u);
	EXPECT_EQ(wx_receives(SEND, FIRST | LAST | IMM, 9), 1u);
	EXPECT_EQ(wx_receives(SEND, FIRST, 5000), 1u);
	EXPECT_EQ(wx_receives(SEND, LAST, 0), 0u);
	EXPECT_EQ(wx_receives(WRITE, FIRST | LAST, 0), 0u);
	EXPECT_EQ(wx_receives(WRITE, FIRST | LAST | IMM, 9), 1u);
	EXPECT_EQ(wx_receives(NOP, ACK, 0), 0u);
	EXPECT_EQ(wx_receives(SEND, FIRST | LAST | PACKED, 28), 28u);
}

TEST(SlotArithmetic, AnErrorNamesSlotAndMessage)
{
	for (uint32_t slot : { 0u, 7u, 0xffffffffu })
		for (uint32_t message : { 0u, 1u, 111u })
			for (uint32_t why = 0; why < 7; why++)
				EXPECT_TRUE(wx_error_holds(slot, message, why));
}

TEST(SlotArithmetic, SequencesAreNeverTrivialAndDifferByLap)
{
	for (uint32_t n :
	     { 0u, 1u, 0x3fffffffu, 0x40000000u, 0x7fffffffu, 0x80000000u, 0xffffffffu }) {
		EXPECT_NE(wx_seq(n), 0u);
		EXPECT_NE(wx_seq(n), 0xffffffffu);
		for (uint32_t lap = 8; lap <= 4096; lap *= 2)
			EXPECT_NE(wx_seq(n), wx_seq(n + lap));
	}
}

TEST(SlotArithmetic, ARewoundPayloadLiesAtTheBeginning)
{
	std::mt19937 gen(1);
	const uint32_t ring = 16384;
	uint64_t cursor = 0;

	EXPECT_EQ(wx_payload_rewind(0, ring), 0u);
	for (int i = 0; i < 10000; i++) {
		uint64_t before = cursor;

		cursor = wx_payload_rewind(cursor, ring);
		EXPECT_GE(cursor, before);
		EXPECT_LT(cursor - before, ring);
		EXPECT_EQ(wx_payload_place(&cursor, ring, 1 + gen() % (ring / 4)), 0u);
		for (uint32_t more = gen() % 10; more > 0; more--)
			wx_payload_place(&cursor, ring, 1 + gen() % (ring / 4));
	}
}

TEST(SlotArithmetic, PayloadPlacesInOnePieceAndNeverOverlapsWhatIsLive)
{
	std::mt19937 gen(1);
	const uint32_t ring = 16384;
	uint64_t cursor = 0;

	for (int i = 0; i < 100000; i++) {
		uint32_t len = 1 + gen() % (ring / 4);
		uint64_t before = cursor;
		uint32_t at = wx_payload_place(&cursor, ring, len);

		ASSERT_EQ(at % 64, 0u);
		ASSERT_LE(at + len, ring);
		ASSERT_GE(cursor - before, len);
		ASSERT_LT(cursor - before, uint64_t{ 2 } * (len + 64) + ring / 4);
		ASSERT_EQ((cursor - 1) / ring, (cursor - ((len + 63) & ~63u)) / ring);
	}
}

TEST(SlotArithmetic, DoorbellIsDueFromItsSlotOn)
{
	for (uint32_t slot : { 0u, 5u, 0x1fffffffu, 0x20000000u, 0xfffffffeu, 0xffffffffu }) {
		uint32_t notify = wx_notify(1, slot);

		EXPECT_FALSE(wx_notify_due(notify, slot));
		EXPECT_FALSE(wx_notify_due(notify, slot - 1));
		EXPECT_TRUE(wx_notify_due(notify, slot + 1));
		EXPECT_TRUE(wx_notify_due(notify, slot + 4096));
		EXPECT_FALSE(wx_notify_due(wx_notify(2, slot), slot + 1));
		EXPECT_TRUE(wx_notify_due(wx_notify(7, slot), slot + 1));
		EXPECT_FALSE(wx_notify_due(wx_notify(6, slot), slot + 1));
	}
	EXPECT_FALSE(wx_notify_due(0, 5));
}

TEST(SlotGeometry, RefusesWhatThisVersionDoesNotUse)
{
	EXPECT_TRUE(wx_geometry_ok(8, 4096));
	EXPECT_TRUE(wx_geometry_ok(4096, 64u << 20));
	for (uint32_t slots : { 0u, 4u, 9u, 8192u, 0xffffffffu })
		EXPECT_FALSE(wx_geometry_ok(slots, 4096)) << slots;
	for (uint32_t ring : { 0u, 2048u, 5000u, 128u << 20, 0xffffffffu })
		EXPECT_FALSE(wx_geometry_ok(8, ring)) << ring;
}

} // namespace
