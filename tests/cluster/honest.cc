/* SPDX-License-Identifier: BSD-2-Clause */
#include "honest.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

namespace clu {

/* The cells of all, and those of each honest process. */
enum { STOP, READY, LEAVE };
enum { MESSAGES, LONGEST_MESSAGE, CONNECTIONS, LONGEST_CONNECT, LONGEST_OPEN, CELLS = 8 };
constexpr size_t kFirst = 16, kStills = 256, kProcessorStills = 320, kBytes = 600;
constexpr size_t kProcessors = 64;	  /* as many are watched */
constexpr uint64_t kLongest = 1000000000; /* ns */

static std::atomic<uint64_t> &mine(unsigned who, unsigned what)
{
	return cell(kFirst + who * CELLS + what);
}

bool over()
{
	return cell(STOP) != 0;
}

unsigned honest_seconds(const char *variable)
{
	const char *given = getenv(variable);

	return given != nullptr ? static_cast<unsigned>(atoi(given))
				: static_cast<unsigned>(scaled(5, 600));
}

/* ---- servers ------------------------------------------------------------------------------------- */

static void fill(Slab &slab, size_t i, uint64_t number)
{
	for (size_t k = 0; k < kBytes; k++)
		slab.data(i)[k] = static_cast<char>(number * 31 + k * 7);
	memcpy(slab.data(i), &number, sizeof(number));
}

static bool same(Slab &slab, size_t i, uint64_t number)
{
	for (size_t k = sizeof(number); k < kBytes; k++) {
		if (slab.data(i)[k] != static_cast<char>(number * 31 + k * 7))
			return false;
	}
	return memcmp(slab.data(i), &number, sizeof(number)) == 0;
}

/* Answers each message, until its connection ends. */
static void echo_all(Vi &vi, Slab &slab)
{
	VIP_DESCRIPTOR *d;

	for (;;) {
		VIP_RETURN rc = VipRecvWait(vi, 1000, &d);

		if (rc == VIP_TIMEOUT)
			continue;
		if (rc != VIP_SUCCESS)
			return;
		memcpy(slab.data(2), slab.data(slab.index(d)), kBytes);
		post_recv(vi, slab, slab.fill(slab.index(d), kBytes));
		if (VipPostSend(vi, slab.fill(2, kBytes), slab.h) != VIP_SUCCESS)
			return;
		do {
			rc = VipSendWait(vi, 1000, &d);
		} while (rc == VIP_TIMEOUT);
		if (rc != VIP_SUCCESS)
			return;
	}
}

static bool accept_one(Nic &nic, Vi &vi, const std::string &disc)
{
	Addr here(nic, disc), remote(nic, std::string(64, 'x'));
	VIP_VI_ATTRIBUTES remote_attrs;
	VIP_CONN_HANDLE conn;

	while (cell(LEAVE) == 0) {
		VIP_RETURN rc = VipConnectWait(nic, here, 200, remote, &remote_attrs, &conn);

		if (rc == VIP_TIMEOUT)
			continue;
		NEED_RC(VIP_SUCCESS, rc);
		NEED_RC(VIP_SUCCESS, VipConnectAccept(conn, vi));
		return true;
	}
	return false;
}

/* host disc: until no client is left */
ROLE(honest_server)
{
	Nic nic("host" + args.at(0));
	Slab slab(nic, 3, kBytes);

	cell(READY)++;
	while (cell(LEAVE) == 0) {
		Vi vi(nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION));

		post_recv(vi, slab, slab.fill(0, kBytes));
		post_recv(vi, slab, slab.fill(1, kBytes));
		if (accept_one(nic, vi, args.at(1)))
			echo_all(vi, slab);
		vi.disconnect();
	}
}

/* ---- clients ------------------------------------------------------------------------------------- */

/*
 * Notes how long something took, less the time that this process stood still or, if that is more, a processor: an
 * agent may have been about to run there.
 */
class Timed {
public:
	Timed(std::atomic<uint64_t> &longest, const Standstill::Record &r)
	    : longest_(longest), record_(r), began_(now_ns()), still_(r.ns()),
	      taken_(stood_still(kProcessorStills, kProcessors))
	{
	}

	~Timed()
	{
		int64_t taken = stood_still(kProcessorStills, kProcessors) - taken_;
		int64_t took = now_ns() - began_ - std::max(record_.ns() - still_, taken);

		if (took > static_cast<int64_t>(longest_.load()))
			longest_ = static_cast<uint64_t>(took);
	}

private:
	std::atomic<uint64_t> &longest_;
	const Standstill::Record &record_;
	const int64_t began_, still_, taken_;
};

class Client {
public:
	Client(unsigned number, const Args &args)
	    : who(number), device("host" + args.at(1)),
	      remote(static_cast<unsigned>(std::stoul(args.at(2)))), disc(args.at(3)),
	      record(standstill(kStills + 2 * number)), watch(record)
	{
		open();
	}

	/* One connection, for one message or for as long as the run lasts. */
	void talk(bool standing)
	{
		std::unique_ptr<Vi> vi = connect();

		do {
			exchange(*vi);
		} while (standing && !over());
		vi->disconnect();
	}

	/* Opens the NIC again; the old one is closed before. */
	void reopen()
	{
		slab.reset();
		nic.reset();
		open();
	}

private:
	void open()
	{
		Timed timed(mine(who, LONGEST_OPEN), record);

		nic = std::make_unique<Nic>(device);
		slab = std::make_unique<Slab>(*nic, 2, kBytes);
	}

	std::unique_ptr<Vi> connect()
	{
		auto vi = std::make_unique<Vi>(*nic, attrs(VIP_SERVICE_RELIABLE_RECEPTION));
		Timed timed(mine(who, LONGEST_CONNECT), record);

		NEED_RC(VIP_SUCCESS, request(*nic, *vi, remote, disc));
		mine(who, CONNECTIONS)++;
		return vi;
	}

	void exchange(Vi &vi)
	{
		uint64_t number = ++mine(who, MESSAGES);
		VIP_DESCRIPTOR *d;
		Timed timed(mine(who, LONGEST_MESSAGE), record);

		fill(*slab, 0, number);
		memset(slab->data(1), 0, kBytes);
		post_recv(vi, *slab, slab->fill(1, kBytes));
		post_send(vi, *slab, slab->fill(0, kBytes));
		sent(vi);
		d = received(vi);
		NEED(slab->index(d) == 1 && same(*slab, 1, number));
	}

	const unsigned who;
	const std::string device;
	const unsigned remote;
	const std::string disc;
	Standstill::Record &record;
	Standstill watch;
	std::unique_ptr<Nic> nic;
	std::unique_ptr<Slab> slab;
};

/* number host remote disc kind */
ROLE(honest_client)
{
	Client c(static_cast<unsigned>(std::stoul(args.at(0))), args);

	while (!over()) {
		c.talk(args.at(4) == "pair");
		if (args.at(4) == "comer")
			c.reopen();
	}
}

/* ---- the run ------------------------------------------------------------------------------------- */

Honest::Honest(const HonestPlan &p)
    : plan(p), processors(watch_processors(kProcessorStills, kProcessors))
{
	for (unsigned i = 0; i < plan.all(); i++)
		all.push_back(role("honest_server",
				   { text("%u", (i + 1) % plan.hosts), text("good%u", i) }));
	NEED(until([this] { return cell(READY) == plan.all(); }));
	for (unsigned i = 0; i < plan.all(); i++) {
		/* One pair and one maker stay on their host. */
		unsigned remote = (i + 1) % plan.hosts;
		unsigned host = i == 1 || i == plan.pairs ? remote : i % plan.hosts;
		const char *kind = i < plan.pairs		  ? "pair"
				   : i < plan.pairs + plan.makers ? "maker"
								  : "comer";

		all.push_back(
			role("honest_client", { text("%u", i), text("%u", host), text("%u", remote),
						text("good%u", i), kind }));
	}
	for (unsigned i = 0; i < plan.all(); i++)
		NEED(until([i, this] { return mine(i, CONNECTIONS) > (i < plan.pairs ? 0 : 2); }));
}

void Honest::run(unsigned seconds, const std::function<void()> &beside)
{
	int64_t end = now_ns() + seconds * INT64_C(1000000000);

	until(
		[&] {
			beside();
			return now_ns() >= end || std::any_of(all.begin(), all.end(),
							      [](Process &p) { return p.ended(); });
		},
		(seconds + kSeconds) * 1000);
	for (Process &p : all)
		EXPECT_FALSE(p.ended()) << "an honest process ended: " << p.wait();
}

void Honest::expect_more()
{
	for (unsigned i = plan.pairs; i < plan.all(); i++) {
		uint64_t before = mine(i, CONNECTIONS);

		EXPECT_TRUE(until([&] { return mine(i, CONNECTIONS) > before + 1; })) << i;
	}
}

void Honest::stop()
{
	cell(STOP) = 1;
	for (size_t i = plan.all(); i < all.size(); i++)
		EXPECT_EQ(all[i].wait(), 0);
	cell(LEAVE) = 1;
	for (unsigned i = 0; i < plan.all(); i++)
		EXPECT_EQ(all[i].wait(), 0);
}

static double ms(unsigned who, unsigned what)
{
	return static_cast<double>(mine(who, what)) / 1e6;
}

void Honest::report() const
{
	printf("processors stood still for %.1f ms in all\n",
	       static_cast<double>(stood_still(kProcessorStills, kProcessors)) / 1e6);
	for (unsigned i = 0; i < plan.all(); i++) {
		printf("%s %u: %" PRIu64 " messages, the longest %.1f ms; %" PRIu64
		       " connections, the longest %.1f ms",
		       i < plan.pairs		      ? "standing"
		       : i < plan.pairs + plan.makers ? "maker"
						      : "comer",
		       i, mine(i, MESSAGES).load(), ms(i, LONGEST_MESSAGE),
		       mine(i, CONNECTIONS).load(), ms(i, LONGEST_CONNECT));
		if (i >= plan.pairs + plan.makers)
			printf("; to open a NIC %.1f ms", ms(i, LONGEST_OPEN));
		printf("\n");
		EXPECT_GT(mine(i, MESSAGES), 0u);
		for (unsigned what : { LONGEST_MESSAGE, LONGEST_CONNECT, LONGEST_OPEN })
			EXPECT_TRUE(!stress() || mine(i, what) < kLongest)
				<< "the longest wait of honest process " << i;
	}
}

void Honest::end(std::vector<Process> &others)
{
	expect_more();
	for (Process &p : others)
		p.kill(SIGKILL);
	expect_more();
	stop();
	others.clear();
	report();
}

void expect_nobody(Fabric &fabric, unsigned hosts)
{
	for (unsigned host = 0; host < hosts; host++)
		EXPECT_TRUE(until([&] {
			return fabric.clients(host) == 0 && fabric.connections(host) == 0;
		})) << fabric.report(host);
}

void print_deeds(const char *who, size_t first, const char *const names[], unsigned count)
{
	for (unsigned d = 0; d < count; d++)
		printf("%s%s%s %" PRIu64, d ? "" : who, d ? ", " : ": ", names[d],
		       cell(first + d).load());
	printf("\n");
}

} // namespace clu
