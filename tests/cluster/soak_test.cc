/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eight hosts in a ring, flows between hosts drawn at random, and a disturber: links fall, two at a time
 * too, so that hosts are cut off from each other, and agents die, of hosts that only relay and of hosts
 * with processes.
 *
 * A flow is two processes and one connection after the other, each of a *life*: hosts, level,
 * service, sizes and ways to wait are drawn anew.  What must hold:
 *
 *  - on a reliable connection messages arrive once, whole and in order, up to where it breaks; at
 *    reliable reception whatever succeeded arrived;
 *  - on an unreliable one the receiver sees numbers that grow, and counts what it drops;
 *  - when a connection breaks both ends are told, and it does so only if something happened to it;
 *  - no flow stands still;
 *  - in the end nothing is left.
 *
 * CLUSTER_SOAK_SECONDS says for how long, CLUSTER_SOAK_LOUD=1 shows what happens meanwhile, and
 * what all do when a flow has not moved for a second; the quick run counts disturbances and messages.
 */
#include "flow.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>

#include <gtest/gtest.h>

using namespace clu;

constexpr unsigned kHosts = 8, kFlows = 10;
constexpr size_t kWindow = 8;		      /* messages of a reliable flow under way */
constexpr size_t kAhead = 48, kReceives = 16; /* of an unreliable one: some meet no receive */
constexpr size_t kUnreliableLongest = 64u << 10;
constexpr unsigned kStill = 20; /* seconds without a step of a flow are too many */

bool is_loud()
{
	static const bool loud = getenv("CLUSTER_SOAK_LOUD") != nullptr;
	return loud;
}

/* ---- what ends and test tell each other ----------------------------------------------------------- */

enum Cell : unsigned {
	/* The life that is planned; written last. */
	LIFE,
	LEVEL,
	SERVICE,
	HOST,		  /* of either end */
	TAKES = HOST + 2, /* likewise */
	WINDOWED = TAKES + 2,
	TARGET,
	STOP, /* the life that is to end before its target */
	/* The sender. */
	POSTED,
	DONE,	/* succeeded, without a failure before */
	LATE,	/* the bits of those that succeeded behind the first failure */
	FAILED, /* came back with an error */
	LIMIT,
	/* The receiver. */
	ADDRESS,
	HANDLE,
	TAKEN, /* numbers below may be used again, kWindow or kAhead further on */
	ARRIVED,
	DROPPED,
	/* Life and stage of either end, as one. */
	STAGE,
	CELLS = STAGE + 2
};

enum Side : unsigned { OUT, IN };
enum Stage : uint64_t { WAITING, OPEN, CONNECTED, FINISHED, WHOLE, BROKEN, UNMADE };
enum Service { MIXED, SENDS, IMMEDIATE, WRITES, WRITES_IMM, READS, SERVICES };
enum Takes { POLL, WAIT, CQ_POLL, CQ_WAIT, TAKES_COUNT };

static const char *const stage_names[] = { "waiting", "open",	"connected", "finished",
					   "whole",   "broken", "unmade" };
static const char *const service_names[] = { "mixed",  "sends",	     "immediate",
					     "writes", "writes imm", "reads" };
static const char *const takes_names[] = { "poll", "wait", "cq poll", "cq wait" };

static std::atomic<uint64_t> &at(unsigned flow, unsigned what)
{
	return cell(64 + flow * 32 + what);
}

static std::atomic<uint64_t> &quit()
{
	return cell(0);
}

/* Grows before the agent of a host is killed, and when there is another: odd between. */
static std::atomic<uint64_t> &deaths(unsigned host)
{
	return cell(8 + host);
}

struct Plan {
	unsigned flow;
	uint64_t life;
	VIP_RELIABILITY_LEVEL level;
	Service service;
	unsigned host[2];
	Takes takes[2];
	bool windowed;
	uint64_t target;

	explicit Plan(unsigned f)
	    : flow(f), life(at(f, LIFE)), level(static_cast<VIP_RELIABILITY_LEVEL>(at(f, LEVEL))),
	      service(static_cast<Service>(at(f, SERVICE).load())), windowed(at(f, WINDOWED) != 0),
	      target(at(f, TARGET))
	{
		for (unsigned side = 0; side < 2; side++) {
			host[side] = static_cast<unsigned>(at(f, HOST + side));
			takes[side] = static_cast<Takes>(at(f, TAKES + side).load());
		}
	}

	bool reliable() const { return level != VIP_SERVICE_UNRELIABLE; }
	size_t longest() const { return reliable() ? kLongest : kUnreliableLongest; }
	size_t window() const { return reliable() ? kWindow : kAhead; }
	uint64_t id(uint64_t number) const { return life << 32 | number; }
	std::string disc() const { return text("soak%u.%" PRIu64, flow, life); }

	/* Every fourth message completes a receive, so that writes before it can be looked at. */
	Kind kind(uint64_t number) const
	{
		static const Kind of_service[] = { SEND, SEND, SEND_IMM, WRITE, WRITE_IMM, READ };
		static const Kind any[] = { SEND, SEND_IMM, WRITE, WRITE_IMM, READ };
		Kind k = of_service[service];
		if (service == MIXED || mix(id(number) + 3) % 8 == 0)
			k = any[mix(id(number) + 5) % 5];
		return !notifies(k) && (number % 4 == 3 || !reliable()) ? SEND : k;
	}

	/* Mostly short. */
	size_t length(uint64_t number) const
	{
		uint64_t x = mix(id(number) + 77), y = x >> 12;
		size_t least = !reliable() && kind(number) == SEND ? sizeof(uint64_t) : 0;
		if (reliable() && x % 500 == 0)
			return y % kLongest;
		return least + y % (x % 8 == 0 ? kUnreliableLongest - least : 300);
	}
};

/* ---- one end --------------------------------------------------------------------------------------- */

class Cq {
public:
	explicit Cq(Nic &nic) { NEED_RC(VIP_SUCCESS, VipCreateCQ(nic, 64, &h)); }
	~Cq() { EXPECT_EQ(VIP_SUCCESS, VipDestroyCQ(h)); }
	Cq(const Cq &) = delete;
	VIP_CQ_HANDLE h = nullptr;
};

/* The head of a work queue, looked at in one of the ways there are. */
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

/* The NIC of an end, kept from life to life while the host is the same and its agent lives. */
struct Seat {
	std::unique_ptr<Nic> nic;
	unsigned host = 0;
	uint64_t deaths_seen = 0;

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
	End(Seat &s, const Plan &p, Side which)
	    : plan(p), side(which), seat(s), queue(which, p.takes[which])
	{
	}
	virtual ~End() {}

	/* Returns how it ended. */
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
			told();
		vi->destroy();
		return how;
	}

protected:
	virtual void prepare() = 0;
	virtual VIP_RETURN try_connect() = 0;
	/* Until it is whole or broken. */
	virtual Stage carry() = 0;

	void stage(Stage s) { at(plan.flow, STAGE + side) = plan.life << 4 | s; }
	Stage peer_stage() const
	{
		uint64_t s = at(plan.flow, STAGE + !side);
		return s >> 4 == plan.life ? static_cast<Stage>(s & 15) : WAITING;
	}
	bool peer_ended() const { return peer_stage() > FINISHED; }
	std::atomic<uint64_t> &now(Cell what) const { return at(plan.flow, what); }
	bool stopped() const { return now(STOP) == plan.life || quit() != 0; }
	bool lost() const { return vi->state() == VIP_STATE_ERROR; }
	Queue::Found take(VIP_DESCRIPTOR **d) { return queue.take(*vi, cq ? cq->h : nullptr, d); }

	/* Both ends have got all when both are here, and may leave. */
	Stage finish()
	{
		stage(FINISHED);
		while (peer_stage() < FINISHED)
			rest();
		return WHOLE;
	}

	const Plan plan;
	const Side side;
	Seat &seat;
	const Queue queue;
	std::unique_ptr<Cq> cq;
	std::unique_ptr<Slab> slab;
	std::unique_ptr<Vi> vi;

private:
	/* What fails because the agent has been killed is no failure. */
	bool set_up()
	{
		while (!stopped()) {
			try {
				sit_down();
				if (queue.has_cq())
					cq = std::make_unique<Cq>(*seat.nic);
				VIP_CQ_HANDLE h = cq ? cq->h : nullptr;
				vi = std::make_unique<Vi>(*seat.nic,
							  attrs(plan.level, plan.longest(), true),
							  side == OUT ? h : nullptr,
							  side == IN ? h : nullptr);
				prepare();
				return true;
			} catch (const std::exception &) {
				if (!seat.gone())
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
		if (seat.nic && (seat.host != plan.host[side] || seat.gone()))
			seat.leave();
		if (seat.nic)
			return;
		seat.host = plan.host[side];
		seat.deaths_seen = deaths(seat.host);
		seat.nic = std::make_unique<Nic>(text("host%u", seat.host));
	}

	bool connect()
	{
		while (!stopped() && !peer_ended() && !seat.gone()) {
			VIP_RETURN rc = try_connect();
			if (rc == VIP_SUCCESS)
				return true;
			if (rc != VIP_TIMEOUT && rc != VIP_NO_MATCH && rc != VIP_NOT_REACHABLE &&
			    !seat.gone())
				fail(__FILE__, __LINE__,
				     text("a connection or a reason to wait, found %s",
					  VipxErrorString(rc)));
			rest();
		}
		return false;
	}

	void told()
	{
		bool gone = seat.gone();
		NEED(vi->state() == VIP_STATE_ERROR);
		NEED(seat.nic->event(gone ? VIP_ERROR_CATASTROPHIC : VIP_ERROR_CONN_LOST,
				     gone ? nullptr : vi->h));
	}
};

class Sender : public End {
public:
	Sender(Seat &s, const Plan &p) : End(s, p, OUT) {}

private:
	void prepare() override
	{
		slab = std::make_unique<Slab>(*seat.nic, kWindow, plan.longest(), true);
	}

	VIP_RETURN try_connect() override
	{
		Addr here(*seat.nic, plan.disc() + "?"), there(plan.host[IN], plan.disc());
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
		/* It may have succeeded while one before it, such as a read, was under way. */
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
	Receiver(Seat &s, const Plan &p) : End(s, p, IN) {}

protected:
	char *place(uint64_t number) { return memory->at(number % plan.window()); }

	void prepare() override
	{
		size_t receives = plan.reliable() ? 2 * kWindow : kReceives;
		memory = std::make_unique<Target>(*seat.nic, plan);
		slab = std::make_unique<Slab>(*seat.nic, receives, plan.longest(), true);
		for (size_t i = 0; i < receives; i++)
			post(i);
		now(ADDRESS) = reinterpret_cast<uintptr_t>(memory->at(0));
		now(HANDLE) = memory->h;
	}

	VIP_RETURN try_connect() override
	{
		Addr here(*seat.nic, plan.disc()), remote(*seat.nic, plan.disc());
		VIP_VI_ATTRIBUTES attributes;
		VIP_CONN_HANDLE conn;
		VIP_RETURN rc = VipConnectWait(*seat.nic, here, 100, remote, &attributes, &conn);
		if (rc != VIP_SUCCESS)
			return rc;
		rc = VipConnectAccept(conn, *vi);
		if (rc != VIP_SUCCESS)
			VipConnectReject(conn);
		return rc;
	}

	/* Of a completed receive. */
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

	/* Receives succeed, and when one has failed all that follow fail. */
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

	/* What a read finds is put there before its number may be used. */
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

	/* And so has all before it. */
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

	/* All that came before the connection broke. */
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
		while (peer_stage() < FINISHED)
			rest();
		if (plan.level == VIP_SERVICE_RELIABLE_RECEPTION)
			need_succeeded();
		return BROKEN;
	}

	/* Whatever succeeded has arrived, also what no receive tells of. */
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
			VIPX_COUNTERS c = seat.nic->counters(*vi);
			uint64_t seen = c.MessagesReceived + c.Dropped;
			bool broken = lost();
			while (receive())
				;
			now(DROPPED) = c.Dropped;
			if (broken && outstanding == 0)
				return BROKEN;
			/* What this covers has been looked at, and may be written over. */
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
		bool told = (d->CS.Status & VIP_STATUS_IMMEDIATE) != 0;
		uint64_t number = told ? d->CS.ImmediateData
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

static std::unique_ptr<End> end_of(Seat &seat, const Plan &plan, Side side)
{
	if (side == OUT)
		return std::make_unique<Sender>(seat, plan);
	if (plan.reliable())
		return std::make_unique<ReliableReceiver>(seat, plan);
	return std::make_unique<UnreliableReceiver>(seat, plan);
}

/* FLOW, SIDE */
ROLE(end)
{
	unsigned flow = static_cast<unsigned>(atoi(args[0].c_str()));
	Side side = static_cast<Side>(atoi(args[1].c_str()));
	Seat seat;
	uint64_t life = 0;
	while (quit() == 0) {
		if (at(flow, LIFE) == life) {
			rest();
			continue;
		}
		Plan plan(flow);
		Stage how = end_of(seat, plan, side)->run();
		NEED(!::testing::Test::HasFailure());
		life = plan.life;
		at(flow, STAGE + side) = life << 4 | how;
	}
	seat.leave();
}

/* ---- the test -------------------------------------------------------------------------------------- */

/* What happened to the ways of a life. */
enum Trouble : unsigned { NONE = 0, FALL = 1, DEATH = 2, CUT = 4, OWN_DEATH = 8 };

struct Totals {
	uint64_t lives = 0, whole = 0, broken = 0, unmade = 0;
	uint64_t in_spite = 0; /* broken though there was a way, when both ends had it */
	uint64_t posted = 0, done = 0, failed = 0, arrived = 0, dropped = 0;
	uint64_t arrived_failed = 0; /* reported failed, and had arrived */
};

class Soak {
public:
	Soak() : random(6)
	{
		for (unsigned f = 0; f < kFlows; f++) {
			plan(f);
			for (unsigned side = 0; side < 2; side++)
				flows[f].ends[side] =
					role("end", { std::to_string(f), std::to_string(side) },
					     { { "VIADUCT_LOG", "error" } });
		}
	}

	/* So many messages more arrive. */
	void advance(uint64_t messages)
	{
		uint64_t goal = arrived() + messages;
		pump("messages to arrive", [&] { return arrived() >= goal; });
	}

	void fall()
	{
		unsigned link = below(kHosts), ways = below(3);
		note("link %u falls", link);
		set_link(link, ways, false);
		advance(below(200));
		set_link(link, ways, true);
		wait_links();
		falls++;
	}

	/* Hosts between the links are cut off from the others, until all have been told; or for a moment. */
	void cut()
	{
		unsigned one = below(kHosts), two = (one + 1 + below(kHosts - 1)) % kHosts;
		bool moment = below(4) == 0;
		note("links %u and %u fall", one, two);
		set_link(one, 0, false);
		advance(below(50));
		set_link(two, 1, false);
		std::array<uint64_t, kFlows> lives = apart();
		if (!moment)
			pump("both ends to be told", [&] { return ended(lives); });
		set_link(one, 0, true);
		if (!moment)
			advance(below(50));
		set_link(two, 1, true);
		wait_links();
		cuts++;
	}

	/* Of a host without processes. */
	void kill_relay()
	{
		unsigned host = below(kHosts);
		barred = host;
		note("host %u is cleared", host);
		for (unsigned f = 0; f < kFlows; f++)
			if (is_at(f, host))
				at(f, STOP) = flows[f].life;
		pump("processes to leave a host", [&] { return fabric.clients(host) == 0; });
		die(host);
		advance(below(200));
		live(host);
		relay_deaths++;
	}

	/* Of a host with processes, mostly. */
	void kill_agent()
	{
		unsigned host = below(kHosts);
		std::array<uint64_t, kFlows> lives{};
		barred = host;
		for (unsigned f = 0; f < kFlows; f++)
			lives[f] = is_at(f, host) ? flows[f].life : 0;
		die(host);
		pump("processes of a dead agent to be told", [&] { return ended(lives); });
		live(host);
		agent_deaths++;
	}

	/* A flow goes elsewhere. */
	void move()
	{
		unsigned f = below(kFlows);
		at(f, STOP) = flows[f].life;
	}

	void end()
	{
		closing = true;
		for (unsigned f = 0; f < kFlows; f++)
			at(f, STOP) = flows[f].life;
		pump("flows to end", [&] {
			return std::all_of(flows.begin(), flows.end(),
					   [](const Flow &flow) { return flow.life == 0; });
		});
		quit() = 1;
		for (auto &flow : flows)
			for (auto &end : flow.ends)
				EXPECT_EQ(0, end.wait());
		show();
		expect_idle(fabric, idle);
	}

	uint64_t arrived() const
	{
		uint64_t sum = past;
		for (unsigned f = 0; f < kFlows; f++)
			sum += flows[f].life != 0 ? at(f, ARRIVED).load() : 0;
		return sum;
	}

	unsigned below(unsigned n) { return static_cast<unsigned>(random.below(n)); }

private:
	struct Flow {
		std::array<Process, 2> ends;
		uint64_t life = 0; /* that is under way */
		unsigned trouble = NONE;
		bool again = false; /* between the same hosts */
		uint64_t steps = 0, arrived = 0;
		int64_t since = 0;
		bool shown = false; /* it stands still, and that was said */
	};

	/* ---- flows ---- */

	void draw_host(unsigned f, Side side)
	{
		unsigned host;
		do
			host = below(kHosts);
		while (host == barred);
		at(f, HOST + side) = host;
	}

	void plan(unsigned f)
	{
		static const VIP_RELIABILITY_LEVEL levels[] = { VIP_SERVICE_UNRELIABLE,
								VIP_SERVICE_RELIABLE_DELIVERY,
								VIP_SERVICE_RELIABLE_RECEPTION };
		Flow &flow = flows[f];
		if (!flow.again || is_at(f, barred)) {
			draw_host(f, OUT);
			draw_host(f, IN);
		}
		at(f, LEVEL) = levels[(below(5) + 1) / 2];
		at(f, SERVICE) = below(SERVICES);
		at(f, TAKES + OUT) = below(TAKES_COUNT);
		at(f, TAKES + IN) = below(TAKES_COUNT);
		at(f, WINDOWED) = below(2);
		at(f, TARGET) = 1 + below(below(8) == 0 ? 8000 : 800);
		at(f, LIMIT) = UINT64_MAX;
		for (Cell what : { POSTED, DONE, LATE, FAILED, TAKEN, ARRIVED, DROPPED })
			at(f, what) = 0;
		flow.since = now_ns();
		flow.trouble = trouble_now(f);
		/* The board is stored in order, and ends look at the life first. */
		at(f, LIFE) = flow.life = ++lives_planned;
	}

	bool is_at(unsigned f, unsigned host) const
	{
		return at(f, HOST + OUT) == host || at(f, HOST + IN) == host;
	}

	static Stage stage(unsigned f, unsigned side, uint64_t life)
	{
		uint64_t s = at(f, STAGE + side);
		return s >> 4 == life ? static_cast<Stage>(s & 15) : WAITING;
	}

	bool ended(const std::array<uint64_t, kFlows> &lives) const
	{
		for (unsigned f = 0; f < kFlows; f++)
			if (lives[f] != 0 && flows[f].life == lives[f])
				return false;
		return true;
	}

	void tick()
	{
		for (unsigned f = 0; f < kFlows; f++) {
			Flow &flow = flows[f];
			for (unsigned side = 0; side < 2; side++)
				if (flow.ends[side].ended())
					fail(__FILE__, __LINE__,
					     text("process %u of flow %u to go on", side, f));
			if (flow.life == 0)
				continue;
			if (stage(f, OUT, flow.life) > FINISHED &&
			    stage(f, IN, flow.life) > FINISHED) {
				audit(f);
				flow.life = 0;
				if (!closing)
					plan(f);
				continue;
			}
			watch(f);
		}
	}

	/* Somebody who is cut off has a reason to stand still. */
	void watch(unsigned f)
	{
		Flow &flow = flows[f];
		uint64_t steps = flow.life;
		for (Cell what : { POSTED, DONE, FAILED, TAKEN, ARRIVED, STAGE })
			steps = mix(steps ^ at(f, what));
		steps = mix(steps ^ at(f, STAGE + IN));
		bool excused = (trouble_now(f) & (CUT | OWN_DEATH)) != 0;
		if (!excused)
			longest = std::max(longest, now_ns() - flow.since);
		if (excused || steps != flow.steps) {
			flow.since = now_ns();
			flow.shown = false;
		}
		flow.steps = steps;
		if (is_loud() && !flow.shown && now_ns() - flow.since > 1000000000) {
			flow.shown = true;
			note("flow %u has not moved for a second", f);
			show_stacks(f);
		}
		if (now_ns() - flow.since > int64_t{ sanitized() ? 4 : 1 } * kStill * 1000000000) {
			show_stacks(f);
			fail(__FILE__, __LINE__, text("flow %u not to stand still", f));
		}
	}

	void pump(const std::string &what, const std::function<bool()> &good)
	{
		bool was_good;
		try {
			was_good = until(
				[&] {
					tick();
					return good();
				},
				3 * kStill * 1000);
			if (!was_good)
				fail(__FILE__, __LINE__, what);
		} catch (const std::exception &) {
			show_state();
			throw;
		}
	}

	/* ---- what is known of a life that has ended ---- */

	static uint64_t bits(uint64_t x) { return static_cast<uint64_t>(__builtin_popcountl(x)); }

	struct Account {
		explicit Account(const Plan &p)
		    : out(stage(p.flow, OUT, p.life)), in(stage(p.flow, IN, p.life)),
		      posted(at(p.flow, POSTED)), done(at(p.flow, DONE) + bits(at(p.flow, LATE))),
		      failed(at(p.flow, FAILED)), came(at(p.flow, ARRIVED)),
		      dropped(at(p.flow, DROPPED))
		{
		}
		bool broken() const { return out == BROKEN || in == BROKEN; }
		bool unmade() const { return out == UNMADE && in == UNMADE; }
		const Stage out, in;
		const uint64_t posted, done, failed, came, dropped;
	};

	void audit(unsigned f)
	{
		Plan p(f);
		Account a(p);
		std::string how = text("%s: %s, %s; %" PRIu64 " posted, %" PRIu64
				       " succeeded, %" PRIu64 " failed, %" PRIu64
				       " arrived, %" PRIu64 " dropped",
				       life_text(p).c_str(), stage_names[a.out], stage_names[a.in],
				       a.posted, a.done, a.failed, a.came, a.dropped);
		if (a.out != WHOLE || a.in != WHOLE)
			note("%s", how.c_str());
		need(a.came + a.dropped <= a.posted, "more arrived than was posted", how);
		need(a.posted == a.done + a.failed, "descriptors that did not come back", how);
		need(a.out != WHOLE || a.posted == a.done, "failures of a whole connection", how);
		need(a.in != WHOLE || a.posted == a.came + a.dropped, "losses", how);
		need(!p.reliable() || a.dropped == 0, "drops of a reliable connection", how);
		need(p.level != VIP_SERVICE_RELIABLE_RECEPTION || a.done <= a.came,
		     "success of what did not arrive", how);
		need(!a.broken() || flows[f].trouble != NONE, "broken without a reason", how);
		add_up(f, p, a);
	}

	static void need(bool good, const char *else_what, const std::string &how)
	{
		if (!good)
			throw std::runtime_error(text("%s: %s", else_what, how.c_str()));
	}

	void add_up(unsigned f, const Plan &p, const Account &a)
	{
		Flow &flow = flows[f];
		Totals &t = totals[p.level == VIP_SERVICE_UNRELIABLE	      ? 0
				   : p.level == VIP_SERVICE_RELIABLE_DELIVERY ? 1
									      : 2];
		bool both_had_it = a.out != UNMADE && a.in != UNMADE;
		if (a.broken() && both_had_it && p.reliable() &&
		    (flow.trouble & (CUT | OWN_DEATH)) == 0) {
			t.in_spite++;
			note("though there was a way");
		}
		t.lives++;
		t.whole += a.out == WHOLE && a.in == WHOLE;
		t.broken += a.broken();
		t.unmade += a.unmade();
		t.posted += a.posted;
		t.done += a.done;
		t.failed += a.failed;
		t.arrived += a.came;
		t.dropped += a.dropped;
		t.arrived_failed += p.reliable() && a.came > a.done ? a.came - a.done : 0;
		past += a.came;
		flow.arrived += a.came;
		flow.again = a.broken() && below(2) == 0;
	}

	/* ---- trouble ---- */

	/* Link i joins hosts i and i+1. `ways`: one end takes it down, the other, or both. */
	void set_link(unsigned link, unsigned ways, bool up)
	{
		if (!up) {
			down[link] = true;
			for (unsigned f = 0; f < kFlows; f++)
				flows[f].trouble |= trouble_now(f);
		}
		if (ways != 1)
			fabric.link(link, "right", up);
		if (ways != 0)
			fabric.link((link + 1) % kHosts, "left", up);
		if (up)
			down[link] = false;
	}

	void wait_links()
	{
		pump("links to come up", [&] { return fabric.links_up(); });
	}

	void die(unsigned host)
	{
		dead = host;
		for (unsigned f = 0; f < kFlows; f++) {
			flows[f].trouble |= trouble_now(f);
			/* It might not have begun, and could not. */
			if (is_at(f, host))
				at(f, STOP) = flows[f].life;
		}
		note("agent %u dies", host);
		deaths(host)++;
		fabric.kill(host);
	}

	void live(unsigned host)
	{
		fabric.restart(host);
		deaths(host)++;
		wait_links();
		dead = barred = kHosts;
	}

	/* Whether hosts can reach each other to the right. */
	bool is_way(unsigned from, unsigned to) const
	{
		for (unsigned host = from; host != to; host = (host + 1) % kHosts)
			if (down[host] || (host != from && host == dead))
				return false;
		return true;
	}

	unsigned trouble_now(unsigned f) const
	{
		unsigned a = static_cast<unsigned>(at(f, HOST + OUT));
		unsigned b = static_cast<unsigned>(at(f, HOST + IN));
		unsigned t = NONE;
		if (std::any_of(down.begin(), down.end(), [](bool is) { return is; }))
			t |= FALL;
		if (dead < kHosts)
			t |= a == dead || b == dead ? OWN_DEATH : DEATH;
		if (!is_way(a, b) && !is_way(b, a))
			t |= CUT;
		return t;
	}

	/* The lives whose ends cannot reach each other. */
	std::array<uint64_t, kFlows> apart() const
	{
		std::array<uint64_t, kFlows> lives{};
		for (unsigned f = 0; f < kFlows; f++)
			if ((trouble_now(f) & CUT) != 0 &&
			    std::max(stage(f, OUT, flows[f].life), stage(f, IN, flows[f].life)) >=
				    CONNECTED)
				lives[f] = flows[f].life;
		return lives;
	}

	/* ---- what is shown ---- */

	__attribute__((format(printf, 2, 3))) void note(const char *format, ...)
	{
		char line[500];
		va_list ap;
		va_start(ap, format);
		vsnprintf(line, sizeof(line), format, ap);
		va_end(ap);
		notes.push_back(
			text("%9.3f %s", static_cast<double>(now_ns() - begun) / 1e9, line));
		if (is_loud())
			printf("%s\n", notes.back().c_str());
		if (notes.size() > 100)
			notes.pop_front();
	}

	static std::string life_text(const Plan &p)
	{
		static const char *const levels[] = { "", "unreliable", "delivery", "",
						      "reception" };
		return text("flow %u life %" PRIu64 " host %u (%s) to %u (%s), %s, %s%s", p.flow,
			    p.life, p.host[OUT], takes_names[p.takes[OUT]], p.host[IN],
			    takes_names[p.takes[IN]], levels[p.level], service_names[p.service],
			    p.windowed ? ", window" : "");
	}

	void show_state()
	{
		for (auto &line : notes)
			printf("%s\n", line.c_str());
		for (unsigned f = 0; f < kFlows; f++) {
			Plan p(f);
			printf("%s: %s, %s, trouble %x, for %.1f s; limit %" PRIu64
			       ", target %" PRIu64 ", posted %" PRIu64 ", succeeded %" PRIu64
			       ", failed %" PRIu64 ", taken %" PRIu64 ", arrived %" PRIu64
			       ", dropped %" PRIu64 "%s\n",
			       life_text(p).c_str(), stage_names[stage(f, OUT, p.life)],
			       stage_names[stage(f, IN, p.life)], flows[f].trouble,
			       static_cast<double>(now_ns() - flows[f].since) / 1e9,
			       at(f, LIMIT).load(), p.target, at(f, POSTED).load(),
			       at(f, DONE).load(), at(f, FAILED).load(), at(f, TAKEN).load(),
			       at(f, ARRIVED).load(), at(f, DROPPED).load(),
			       at(f, STOP) == p.life ? ", stopped" : "");
		}
		fflush(stdout);
	}

	void show_stacks(unsigned f)
	{
		for (unsigned host = 0; host < kHosts; host++)
			if (host != dead)
				printf("host %u\n%s%s", host, fabric.report(host).c_str(),
				       stacks(fabric.agent(host).pid()).c_str());
		for (unsigned side = 0; side < 2; side++)
			printf("flow %u side %u\n%s", f, side,
			       stacks(flows[f].ends[side].pid()).c_str());
		fflush(stdout);
	}

	void show() const
	{
		static const char *const levels[] = { "unreliable", "delivery", "reception" };
		for (unsigned i = 0; i < 3; i++) {
			const Totals &t = totals[i];
			printf("%-10s %6" PRIu64 " connections: %" PRIu64 " whole, %" PRIu64
			       " broken (%" PRIu64 " though there was a way), %" PRIu64
			       " not made; %" PRIu64 " messages: %" PRIu64 " succeeded, %" PRIu64
			       " reported failed (%" PRIu64 " arrived all the same), %" PRIu64
			       " arrived, %" PRIu64 " dropped\n",
			       levels[i], t.lives, t.whole, t.broken, t.in_spite, t.unmade,
			       t.posted, t.done, t.failed, t.arrived_failed, t.arrived, t.dropped);
		}
		printf("%u falls of links, %u cuts, %u deaths of relays, %u of agents with processes; "
		       "longest standstill of a flow %.1f s\n",
		       falls, cuts, relay_deaths, agent_deaths, static_cast<double>(longest) / 1e9);
		for (auto &flow : flows)
			EXPECT_GT(flow.arrived, 0u) << "of flow " << &flow - flows.data();
	}

	Fabric fabric{ kHosts };
	const std::vector<uint64_t> idle = windows(fabric);
	const int64_t begun = now_ns();
	Random random;
	std::array<Flow, kFlows> flows;
	std::array<bool, kHosts> down{};
	unsigned barred = kHosts, dead = kHosts;
	bool closing = false;
	uint64_t lives_planned = 0, past = 0;
	int64_t longest = 0;
	std::array<Totals, 3> totals;
	unsigned falls = 0, cuts = 0, relay_deaths = 0, agent_deaths = 0;
	std::deque<std::string> notes;
};

enum Disturbance { ONE_FALL, TWO_FALLS, RELAY_DIES, AGENT_DIES, FLOW_MOVES };

static void disturb(Soak &soak, Disturbance what)
{
	switch (what) {
	case ONE_FALL:
		return soak.fall();
	case TWO_FALLS:
		return soak.cut();
	case RELAY_DIES:
		return soak.kill_relay();
	case AGENT_DIES:
		return soak.kill_agent();
	case FLOW_MOVES:
		return soak.move();
	}
}

TEST(Soak, EverythingAtOnce)
{
	static const Disturbance kinds[] = { ONE_FALL,	 RELAY_DIES, ONE_FALL, TWO_FALLS,
					     ONE_FALL,	 FLOW_MOVES, ONE_FALL, ONE_FALL,
					     RELAY_DIES, TWO_FALLS,  ONE_FALL, AGENT_DIES,
					     ONE_FALL,	 FLOW_MOVES };
	const char *given = getenv("CLUSTER_SOAK_SECONDS");
	unsigned seconds = given ? static_cast<unsigned>(atoi(given)) : stress() ? 600 : 0;
	Await awaited("the soak", seconds + 180);
	board_clear();
	Soak soak;
	/* Each kind for sure, then whatever comes. */
	for (Disturbance kind : kinds) {
		soak.advance(soak.below(800));
		disturb(soak, kind);
	}
	if (seconds == 0) {
		soak.advance(scaled(10000, 0));
	} else {
		for (int64_t end = now_ns() + int64_t{ seconds } * 1000000000; now_ns() < end;) {
			disturb(soak, kinds[soak.below(std::size(kinds))]);
			soak.advance(soak.below(400));
		}
	}
	soak.end();
}
