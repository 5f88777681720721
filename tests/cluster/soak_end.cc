/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of a flow: sender and receiver. */
#include "soak.h"

#include <cinttypes>
#include <cstdlib>

#include <gtest/gtest.h>

namespace clu {

std::atomic<uint64_t> &at(unsigned flow, unsigned what)
{
	return cell(64 + flow * 32 + what);
}

std::atomic<uint64_t> &quit()
{
	return cell(0);
}

std::atomic<uint64_t> &leave()
{
	return cell(1);
}

std::atomic<uint64_t> &halts()
{
	return cell(2);
}

std::atomic<uint64_t> &halted_now()
{
	return cell(3);
}

std::atomic<uint64_t> &checked_at()
{
	return cell(4);
}

static bool stalled()
{
	int64_t last = static_cast<int64_t>(checked_at());
	return last != 0 && now_ns() - last > kStall;
}

std::atomic<uint64_t> &deaths(unsigned host)
{
	return cell(8 + host);
}

/* ---- one end --------------------------------------------------------------------------------------- */

class Cq {
public:
	explicit Cq(Nic &nic) { NEED_RC(VIP_SUCCESS, VipCreateCQ(nic, 64, &h)); }
	~Cq() { EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(h)); }
	Cq(const Cq &) = delete;
	VIP_CQ_HANDLE h = nullptr;
};

/* Takes the head of a work queue, by one of the calls that there are for it. */
class Queue {
public:
	enum Found { NOTHING, GOOD, BAD, EMPTY };

	Queue(Side s, Takes t) : side(s), takes(t) {}

	Found take(VIP_VI_HANDLE vi, VIP_CQ_HANDLE cq, VIP_DESCRIPTOR **d) const
	{
		const VIP_ULONG ms = 20;
		VIP_VI_HANDLE of = nullptr;
		VIP_BOOLEAN recv = side == OUT;
		VIP_RETURN rc = VIP_SUCCESS;
		*d = nullptr;
		if (takes == CQ_POLL)
			rc = VipCQDone(cq, &of, &recv);
		else if (takes == CQ_WAIT)
			rc = VipCQWait(cq, ms, &of, &recv);
		if (rc == VIP_NOT_DONE || rc == VIP_TIMEOUT)
			return NOTHING;
		NEED_RC(VIP_SUCCESS, rc);
		NEED(!cq || (of == vi && recv == (side == IN)));
		if (takes == WAIT)
			rc = side == OUT ? VipSendWait(vi, ms, d) : VipRecvWait(vi, ms, d);
		else
			rc = side == OUT ? VipSendDone(vi, d) : VipRecvDone(vi, d);
		NEED(!cq || *d);
		if (rc == VIP_NOT_DONE || rc == VIP_TIMEOUT)
			return NOTHING;
		if (rc == VIP_SUCCESS)
			return GOOD;
		NEED_RC(VIP_DESCRIPTOR_ERROR, rc);
		return *d ? BAD : EMPTY;
	}

	bool has_cq() const { return takes == CQ_POLL || takes == CQ_WAIT; }

private:
	Side side;
	Takes takes;
};

/* The only errors that a connection with a correct partner can end with. */
static void need_lost(const VIP_DESCRIPTOR *d)
{
	const VIP_UINT32 lost = VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_DESC_FLUSHED_ERROR |
				VIP_STATUS_PARTIAL_ERROR;
	char names[200];
	VipxStatusString(d->CS.Status, names, sizeof(names));
	if ((d->CS.Status & VIP_STATUS_DONE) == 0 ||
	    (d->CS.Status & VIP_STATUS_ERROR_MASK & ~lost) != 0)
		fail(__FILE__, __LINE__,
		     text("a descriptor of a lost connection, found %s", names));
}

/*
 * The NIC of an end, kept from generation to generation while the host is the same and its agent
 * lives.
 */
struct EndNic {
	std::unique_ptr<Nic> nic;
	unsigned host = 0;
	uint64_t deaths_seen = 0, halts_seen = 0;

	/*
	 * Is an agent stopped, or was one since the last check?  Then a request to it may go unanswered.
	 */
	bool halted() const { return halted_now() != 0 || halts() != halts_seen || stalled(); }
	bool gone() const { return deaths_seen % 2 != 0 || deaths(host) != deaths_seen; }
	void leave()
	{
		if (nic)
			nic->close();
		nic.reset();
	}
};

class End {
public:
	End(EndNic &s, const Plan &p, Side which)
	    : plan(p), side(which), end_nic(s), queue(which, p.takes[which])
	{
	}
	virtual ~End() {}

	/* Runs the generation; returns the stage in which it ended. */
	Stage run()
	{
		if (!set_up())
			return UNMADE;
		stage(OPEN);
		Stage how = UNMADE;
		if (connect()) {
			stage(CONNECTED);
			how = carry();
		}
		if (how == BROKEN)
			check_error_event();
		vi->destroy();
		return how;
	}

protected:
	virtual void prepare() = 0;
	virtual VIP_RETURN try_connect() = 0;
	/* Carries messages until the generation is complete (WHOLE) or broken (BROKEN). */
	virtual Stage carry() = 0;

	void stage(Stage s) { at(plan.flow, STAGE + side) = plan.generation << 4 | s; }
	Stage peer_stage() const
	{
		uint64_t s = at(plan.flow, STAGE + !side);
		return s >> 4 == plan.generation ? static_cast<Stage>(s & 15) : WAITING;
	}
	bool peer_ended() const { return peer_stage() > FINISHED; }
	std::atomic<uint64_t> &now(Cell what) const { return at(plan.flow, what); }
	bool stopped() const { return now(STOP) == plan.generation || quit() != 0; }
	bool lost() const { return vi->state() == VIP_STATE_ERROR; }
	Queue::Found take(VIP_DESCRIPTOR **d) { return queue.take(*vi, cq ? cq->h : nullptr, d); }

	/* Waits for the other end: when both are here both have received all, and may leave. */
	Stage finish()
	{
		stage(FINISHED);
		while (peer_stage() < FINISHED)
			rest();
		return WHOLE;
	}

	const Plan plan;
	const Side side;
	EndNic &end_nic;
	const Queue queue;
	std::unique_ptr<Cq> cq;
	std::unique_ptr<Slab> slab;
	std::unique_ptr<Vi> vi;

private:
	/*
	 * Opens the NIC and makes the rest; false if the agent was killed before that, which is no failure.
	 */
	bool set_up()
	{
		while (!stopped()) {
			try {
				sit_down();
				if (queue.has_cq())
					cq = std::make_unique<Cq>(*end_nic.nic);
				VIP_CQ_HANDLE h = cq ? cq->h : nullptr;
				vi = std::make_unique<Vi>(*end_nic.nic,
							  attrs(plan.level, plan.longest(), true),
							  side == OUT ? h : nullptr,
							  side == IN ? h : nullptr);
				prepare();
				return true;
			} catch (const std::exception &) {
				if (!end_nic.gone() && !end_nic.halted())
					throw;
				vi.reset();
				cq.reset();
				slab.reset();
			}
			rest();
		}
		return false;
	}

	void sit_down()
	{
		end_nic.halts_seen = halts();
		if (end_nic.nic && (end_nic.host != plan.host[side] || end_nic.gone()))
			end_nic.leave();
		if (end_nic.nic)
			return;
		end_nic.host = plan.host[side];
		end_nic.deaths_seen = deaths(end_nic.host);
		end_nic.nic = std::make_unique<Nic>(text("host%u", end_nic.host));
	}

	bool connect()
	{
		while (!stopped() && !peer_ended() && !end_nic.gone()) {
			VIP_RETURN rc = try_connect();
			if (rc == VIP_SUCCESS)
				return true;
			if (rc != VIP_TIMEOUT && rc != VIP_NO_MATCH && rc != VIP_NOT_REACHABLE &&
			    !end_nic.gone() && peer_stage() != KILLED)
				fail(__FILE__, __LINE__,
				     text("a connection or a reason to wait, found %s",
					  VipxErrorString(rc)));
			rest();
		}
		return false;
	}

	void check_error_event()
	{
		bool gone = end_nic.gone();
		NEED(vi->state() == VIP_STATE_ERROR);
		NEED(end_nic.nic->event(gone ? VIP_ERROR_CATASTROPHIC : VIP_ERROR_CONN_LOST,
					gone ? nullptr : vi->h));
	}
};

class Sender : public End {
public:
	Sender(EndNic &s, const Plan &p) : End(s, p, OUT) {}

private:
	void prepare() override
	{
		slab = std::make_unique<Slab>(*end_nic.nic, kWindow, plan.longest(), true);
	}

	VIP_RETURN try_connect() override
	{
		Addr here(*end_nic.nic, plan.disc() + "?"), there(plan.host[IN], plan.disc());
		VIP_VI_ATTRIBUTES remote;
		return VipConnectRequest(*vi, here, there, 1000, &remote);
	}

	Stage carry() override
	{
		for (;;) {
			if (limit == UINT64_MAX && posted % 4 == 0 &&
			    (posted >= plan.target || stopped()))
				now(LIMIT) = limit = posted;
			if (may_post()) {
				post();
				continue;
			}
			VIP_DESCRIPTOR *d;
			Queue::Found found = take(&d);
			if (d) {
				taken(found, d);
				continue;
			}
			if (back == posted && (failed > 0 || lost()))
				return BROKEN;
			if (done == limit && now(TAKEN) == limit)
				return finish();
			rest();
		}
	}

	bool may_post() const
	{
		return posted < limit && failed == 0 && posted - back < kWindow &&
		       posted - now(TAKEN) < plan.window();
	}

	void post()
	{
		uint64_t place = now(ADDRESS) + posted % plan.window() * plan.longest();
		VIP_DESCRIPTOR *d = fill_message(*slab, posted % kWindow, plan.kind(posted),
						 plan.id(posted), plan.length(posted), place,
						 static_cast<VIP_MEM_HANDLE>(now(HANDLE)));
		now(POSTED) = ++posted;
		post_send(*vi, *slab, d);
	}

	void taken(Queue::Found found, VIP_DESCRIPTOR *d)
	{
		uint64_t number = back++;
		NEED(slab->index(d) == number % kWindow);
		if (found == Queue::BAD) {
			need_lost(d);
			now(FAILED) = ++failed;
			return;
		}
		if (plan.kind(number) == READ)
			NEED(holds(slab->data(number % kWindow), plan.id(number),
				   plan.length(number)));
		/*
		 * One after the first failure may have succeeded while an earlier one, such as a read, was
		 * under way.
		 */
		if (failed > 0)
			now(LATE) |= UINT64_C(1) << (number - done);
		else
			now(DONE) = ++done;
	}

	uint64_t posted = 0, back = 0, done = 0, failed = 0, limit = UINT64_MAX;
};

/* Memory that the peer writes to and reads from: registered, or of the window. */
class Target {
public:
	Target(Nic &n, const Plan &plan) : nic(n), stride(plan.longest())
	{
		size_t count = plan.window();
		if (plan.windowed) {
			VIP_MEM_ATTRIBUTES a = { nullptr, VIP_TRUE, VIP_TRUE };
			VIP_PVOID p;
			NEED_RC(VIP_SUCCESS, VipxAllocMem(nic, count * stride, &a, &p, &h));
			base = static_cast<char *>(p);
			return;
		}
		slab = std::make_unique<Slab>(nic, count, stride, true);
		base = slab->data(0);
		h = slab->h;
	}
	~Target()
	{
		if (!slab) {
			EXPECT_EQ(VIP_SUCCESS, VipxFreeMem(nic, base, h));
		}
	}
	Target(const Target &) = delete;
	char *at(uint64_t place) { return base + place * stride; }
	VIP_MEM_HANDLE h = 0;

private:
	Nic &nic;
	size_t stride;
	std::unique_ptr<Slab> slab;
	char *base;
};

class Receiver : public End {
public:
	Receiver(EndNic &s, const Plan &p) : End(s, p, IN) {}

protected:
	char *place(uint64_t number) { return memory->at(number % plan.window()); }

	void prepare() override
	{
		size_t receives = plan.reliable() ? 2 * kWindow : kReceives;
		memory = std::make_unique<Target>(*end_nic.nic, plan);
		slab = std::make_unique<Slab>(*end_nic.nic, receives, plan.longest(), true);
		for (size_t i = 0; i < receives; i++)
			post(i);
		now(ADDRESS) = reinterpret_cast<uintptr_t>(memory->at(0));
		now(HANDLE) = memory->h;
	}

	VIP_RETURN try_connect() override
	{
		Addr here(*end_nic.nic, plan.disc()), remote(*end_nic.nic, plan.disc());
		VIP_VI_ATTRIBUTES attributes;
		VIP_CONN_HANDLE conn;
		VIP_RETURN rc = VipConnectWait(*end_nic.nic, here, 100, remote, &attributes, &conn);
		if (rc != VIP_SUCCESS)
			return rc;
		rc = VipConnectAccept(conn, *vi);
		if (rc != VIP_SUCCESS)
			VipConnectReject(conn);
		return rc;
	}

	/* Fails unless the completed receive holds the message of this number. */
	void need_message(const VIP_DESCRIPTOR *d, uint64_t number)
	{
		Kind kind = plan.kind(number);
		bool written = kind == WRITE_IMM;
		VIP_UINT32 op = written ? VIP_STATUS_OP_REMOTE_RDMA_WRITE : VIP_STATUS_OP_RECEIVE;
		const char *data = written ? place(number) : slab->data(slab->index(d));
		if ((d->CS.Status & VIP_STATUS_OP_MASK) != op ||
		    ((d->CS.Status & VIP_STATUS_IMMEDIATE) != 0) != (kind != SEND) ||
		    d->CS.Length != plan.length(number) ||
		    (kind != SEND && d->CS.ImmediateData != static_cast<VIP_UINT32>(number)) ||
		    !holds(data, plan.id(number), plan.length(number)))
			fail(__FILE__, __LINE__,
			     text("message %" PRIu64 " of %zu bytes of kind %d, found %u bytes, "
				  "status %x, immediate data %u, its beginning %016" PRIx64,
				  number, plan.length(number), kind, d->CS.Length, d->CS.Status,
				  d->CS.ImmediateData, beginning(data)));
	}

	void post(size_t i)
	{
		post_recv(*vi, *slab, slab->fill(i, plan.longest()));
		outstanding++;
	}

	/* Takes a receive; once one has failed, none may succeed. */
	Queue::Found take_one(VIP_DESCRIPTOR **d)
	{
		Queue::Found found = take(d);
		NEED(found != Queue::EMPTY && (found != Queue::GOOD || !flushed));
		if (found == Queue::BAD) {
			need_lost(*d);
			flushed = true;
		}
		outstanding -= *d ? 1 : 0;
		return found;
	}

	static uint64_t beginning(const char *data)
	{
		uint64_t word;
		memcpy(&word, data, sizeof(word));
		return word;
	}

	std::unique_ptr<Target> memory;
	size_t outstanding = 0;

private:
	bool flushed = false;
};

class ReliableReceiver : public Receiver {
public:
	using Receiver::Receiver;

private:
	void prepare() override
	{
		Receiver::prepare();
		for (uint64_t number = 0; number < kWindow; number++)
			show(number);
	}

	/* Stores the content for a read, before the peer may use its number. */
	void show(uint64_t number)
	{
		if (plan.kind(number) == READ)
			put(place(number), plan.id(number), plan.length(number));
	}

	Stage carry() override
	{
		while (next != now(LIMIT)) {
			uint64_t number = next;
			while (plan.kind(number) == WRITE)
				number++;
			if (lost())
				return drain();
			if (plan.kind(number) != READ) {
				if (!receive())
					rest();
			} else if (now(DONE) > number) {
				arrived(number);
				settle();
			} else {
				rest();
			}
		}
		return finish();
	}

	/* Returns false if there was nothing. */
	bool receive()
	{
		VIP_DESCRIPTOR *d;
		if (take_one(&d) != Queue::GOOD)
			return false;
		received(d);
		settle();
		post(slab->index(d));
		return true;
	}

	void received(const VIP_DESCRIPTOR *d)
	{
		uint64_t number = next;
		while (!notifies(plan.kind(number)))
			number++;
		need_message(d, number);
		arrived(number);
	}

	/* Notes that this message has arrived, and checks that all before it have. */
	void arrived(uint64_t number)
	{
		for (uint64_t n = next; n < number; n++)
			NEED(plan.kind(n) != WRITE || is_written(n));
		now(ARRIVED) = next = number + 1;
	}

	bool is_written(uint64_t number)
	{
		return holds(place(number), plan.id(number), plan.length(number));
	}

	void settle()
	{
		for (uint64_t n = now(TAKEN); n < next; n++)
			show(n + kWindow);
		now(TAKEN) = next;
	}

	/* Takes all that came before the connection broke. */
	Stage drain()
	{
		VIP_DESCRIPTOR *d;
		while (outstanding > 0) {
			Queue::Found found = take_one(&d);
			if (found == Queue::GOOD)
				received(d);
			else if (found == Queue::NOTHING)
				rest();
		}
		/* One whose attempt failed asks again, and this end has to answer. */
		while (peer_stage() >= CONNECTED && peer_stage() < FINISHED)
			rest();
		if (plan.level == VIP_SERVICE_RELIABLE_RECEPTION)
			need_succeeded();
		return BROKEN;
	}

	/* Fails unless all that succeeded has arrived, also writes that complete no receive. */
	void need_succeeded()
	{
		uint64_t done = now(DONE), late = now(LATE), posted = now(POSTED);
		for (uint64_t n = next; n < posted; n++) {
			Kind kind = plan.kind(n);
			if (n >= done && (late >> (n - done) & 1) == 0)
				continue;
			if (kind != READ && (kind != WRITE || !is_written(n)))
				fail(__FILE__, __LINE__,
				     text("message %" PRIu64 " of kind %d, which succeeded", n,
					  kind));
			now(ARRIVED)++;
		}
	}

	uint64_t next = 0;
};

class UnreliableReceiver : public Receiver {
public:
	using Receiver::Receiver;

private:
	Stage carry() override
	{
		for (;;) {
			VIPX_COUNTERS c = end_nic.nic->counters(*vi);
			uint64_t seen = c.MessagesReceived + c.Dropped;
			bool broken = lost();
			while (receive())
				;
			now(DROPPED) = c.Dropped;
			if (broken && outstanding == 0)
				return BROKEN;
			/*
			 * The messages below this number have been checked, and their memory may be written
			 * over.
			 */
			now(TAKEN) = seen;
			if (seen == now(LIMIT) && now(ARRIVED) + c.Dropped == seen)
				return finish();
			rest();
		}
	}

	/* Returns false if there was nothing. */
	bool receive()
	{
		VIP_DESCRIPTOR *d;
		if (outstanding == 0)
			return false;
		Queue::Found found = take_one(&d);
		if (found == Queue::GOOD)
			received(d);
		return found != Queue::NOTHING;
	}

	void received(const VIP_DESCRIPTOR *d)
	{
		bool numbered = (d->CS.Status & VIP_STATUS_IMMEDIATE) != 0;
		uint64_t number = numbered ? d->CS.ImmediateData
					   : beginning(slab->data(slab->index(d))) & UINT32_MAX;
		if (number < next)
			fail(__FILE__, __LINE__,
			     text("a number from %" PRIu64 " on, found %" PRIu64, next, number));
		need_message(d, number);
		next = number + 1;
		now(ARRIVED)++;
		if (!lost())
			post(slab->index(d));
	}

	uint64_t next = 0;
};

static std::unique_ptr<End> end_of(EndNic &end_nic, const Plan &plan, Side side)
{
	if (side == OUT)
		return std::make_unique<Sender>(end_nic, plan);
	if (plan.reliable())
		return std::make_unique<ReliableReceiver>(end_nic, plan);
	return std::make_unique<UnreliableReceiver>(end_nic, plan);
}

/* FLOW, SIDE, GENERATION that an earlier process of this end has ended */
ROLE(end)
{
	unsigned flow = static_cast<unsigned>(atoi(args[0].c_str()));
	Side side = static_cast<Side>(atoi(args[1].c_str()));
	EndNic end_nic;
	uint64_t generation = static_cast<uint64_t>(atoll(args[2].c_str()));
	while (quit() == 0) {
		if (at(flow, GENERATION) == generation) {
			if (leave() != 0)
				end_nic.leave();
			rest();
			continue;
		}
		Plan plan(flow);
		Stage how = end_of(end_nic, plan, side)->run();
		NEED(!::testing::Test::HasFailure());
		generation = plan.generation;
		at(flow, STAGE + side) = generation << 4 | how;
	}
	end_nic.leave();
}

} // namespace clu
