/* SPDX-License-Identifier: BSD-2-Clause */
/* Making, running and ending an agent: the event loop. */
#include "ag_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ag_accept.h"
#include "ag_admission.h"
#include "ag_cable.h"
#include "ag_client.h"
#include "ag_connect.h"
#include "ag_dispatch.h"
#include "ag_irq.h"
#include "ag_link.h"
#include "ag_links.h"
#include "ag_list.h"
#include "ag_loop.h"
#include "ag_name.h"
#include "ag_place.h"
#include "ag_ratelimit.h"
#include "ag_record.h"
#include "ag_relay.h"
#include "ag_resume_ask.h"
#include "ag_route.h"
#include "ag_session.h"
#include "ag_setup.h"
#include "ag_state.h"
#include "ag_transfer.h"
#include "ag_watchdog.h"
#include "port.h"
#include "port_host.h"
#include "rt_topo.h"
#include "u_close.h"
#include "u_log.h"
#include "u_membarrier.h"
#include "u_poll.h"
#include "u_random.h"
#include "u_time.h"
#include "w_addr.h"
#include "w_slot.h"

#define SLOTS_DEFAULT 128u
#define PAYLOAD_DEFAULT (256u << 10)
#define EVENTS 64

/* Checks the configuration; a member that is 0, not set, is right.  0, or -EINVAL and the log says why. */
static int cfg_check(const struct ag_cfg *cfg)
{
	if (cfg->fabric == NULL || !w_name_ok(cfg->fabric)) {
		u_error("ag", "fabric name must be 1..63 characters of [A-Za-z0-9._-]");
		return -EINVAL;
	}
	if (cfg->host_count == 0 || cfg->host_count > AG_HOSTS_MAX ||
	    cfg->host_id >= cfg->host_count) {
		u_error("ag", "host %u of %u does not exist; at most %u hosts", cfg->host_id,
			cfg->host_count, AG_HOSTS_MAX);
		return -EINVAL;
	}
	if (cfg->slots != 0 && !w_geometry_ok(cfg->slots, cfg->payload_bytes)) {
		u_error("ag", "slots %u and payload bytes %u are not a geometry of this version",
			cfg->slots, cfg->payload_bytes);
		return -EINVAL;
	}
	if (cfg->db_bits == 1 || cfg->db_bits > PORT_DB_MAX || cfg->spads > PORT_SPAD_MAX ||
	    (cfg->spads != 0 && cfg->spads < AG_SPADS)) {
		u_error("ag", "a port needs 2..%u doorbell bits and 8..%u scratchpads", PORT_DB_MAX,
			PORT_SPAD_MAX);
		return -EINVAL;
	}
	return ag_transfer_check(cfg);
}

/* Gives geometry, doorbell bits, scratchpads and grace_ms their default values where they are 0, not set. */
static void cfg_defaults(struct ag_agent *a)
{
	struct ag_cfg *cfg = &a->cfg;

	a->geometry_by_window = cfg->slots == 0;
	if (cfg->slots == 0) {
		cfg->slots = SLOTS_DEFAULT;
		cfg->payload_bytes = PAYLOAD_DEFAULT;
	}
	if (cfg->db_bits == 0)
		cfg->db_bits = AG_DB_BITS;
	if (cfg->spads == 0)
		cfg->spads = AG_SPADS;
	if (cfg->grace_ms == 0)
		cfg->grace_ms = AG_GRACE_MS;
}

/*
 * Opens the host's adapters, takes fewer doorbell bits than were asked for if an adapter has fewer, and checks
 * the configuration with these.  0 or -errno.
 */
static int host_open(struct ag_agent *a)
{
	const char *names[PORT_PER_HOST];
	struct port_host_cfg cfg = {
		.kind = a->cfg.port_kind != NULL ? a->cfg.port_kind : "emu",
		.adapters = a->cfg.adapters,
		.names = names,
		.ports = rt_topo_ports(a->topo, a->cfg.host_id),
	};
	uint32_t i;
	int rc;

	for (i = 0; i < cfg.ports; i++)
		names[i] = rt_topo_port_name(a->topo, a->cfg.host_id, i);
	rc = port_host_create(&cfg, &a->host);
	if (rc != 0)
		return rc;
	if (port_host_db_bits(a->host) < a->cfg.db_bits)
		a->cfg.db_bits = port_host_db_bits(a->host);
	return cfg_check(&a->cfg);
}

/*
 * Makes the ports and links of the host, and starts the thread that waits for their doorbells where one is
 * needed.  0 or -errno; what was made stays for ag_destroy().
 */
static int ports_open(struct ag_agent *a)
{
	uint32_t i, count = rt_topo_ports(a->topo, a->cfg.host_id);
	int rc;

	a->irq = port_host_irq(a->host);
	a->agent_irq = port_host_agent_irq(a->host);
	for (i = 0; i < count; i++) {
		rc = ag_links_create(a, i);
		if (rc != 0)
			return rc;
		a->link_count = i + 1;
	}
	if (count == 1 || a->cfg.stepped)
		return 0; /* no thread: there is no neighbour that can ring, or ag_step() checks for rings */
	return ag_irq_start(a);
}

/*
 * Returns an agent with a copy of the configuration, which cfg_check() accepted, defaults filled in, and with empty
 * tables; it has opened nothing.  NULL: no memory.
 */
static struct ag_agent *agent_alloc(const struct ag_cfg *cfg)
{
	struct ag_agent *a = calloc(1, sizeof(*a));
	uint32_t i;

	if (a != NULL)
		a->links = calloc(PORT_PER_HOST, sizeof(*a->links));
	if (a == NULL || a->links == NULL) {
		free(a);
		return NULL;
	}
	a->cfg = *cfg;
	cfg_defaults(a);
	memcpy(a->fabric, cfg->fabric, strlen(cfg->fabric) + 1);
	a->cfg.fabric = a->fabric;
	if (cfg->relay_cpu_count > 0)
		memcpy(a->relay_cpus, cfg->relay_cpus, cfg->relay_cpu_count * sizeof(int));
	a->cfg.relay_cpus = a->relay_cpus;
	a->epoll = a->wake = a->listen_sock = a->spare_fd = -1;
	u_random(&a->hash_key, sizeof(a->hash_key));
	ag_ratelimits_init(a->ratelimit);
	ag_admission_limits(a);
	a->clients_at = U_NEVER;
	ag_list_init(&a->clients);
	ag_list_init(&a->holders);
	ag_list_init(&a->linked);
	ag_list_init(&a->listens);
	ag_list_init(&a->offers);
	ag_list_init(&a->resuming);
	ag_list_init(&a->retired);
	for (i = 0; i < AG_HASH; i++) {
		ag_list_init(&a->hash[i]);
		ag_list_init(&a->circuits[i]);
	}
	return a;
}

/*
 * Opens those of descriptors 0..2 that are closed, so that nothing is printed into a socket or a
 * register page that would get their number.  0 or -errno.
 */
static int std_fds_fill(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int ag_create(const struct ag_cfg *cfg, struct ag_agent **out)
{
	struct ag_agent *a;
	int rc;

	rc = cfg_check(cfg);
	if (rc == 0)
		rc = std_fds_fill();
	if (rc != 0)
		return rc;
	a = agent_alloc(cfg);
	if (a == NULL)
		return -ENOMEM;
	u_membarrier_register();
	rc = ag_name_init(a, cfg);
	if (rc == 0)
		rc = ag_route_init(a);
	if (rc == 0)
		rc = host_open(a);
	if (rc == 0)
		ag_transfer_choose(a);
	if (rc == 0)
		rc = ag_loop_open(a);
	if (rc == 0)
		rc = ag_accept_open(a);
	if (rc == 0)
		rc = ports_open(a);
	if (rc == 0)
		rc = ag_place_open(a);
	if (rc == 0)
		rc = ag_transfer_open(a);
	if (rc != 0) {
		ag_destroy(a);
		return rc;
	}
	a->idle_since = u_now_ns();
	*out = a;
	return 0;
}

/*
 * Handles a doorbell or ag_stop(): clears the agent's bit of each port, then checks everything that a ring announces.
 */
static void on_wake(struct ag_agent *a)
{
	uint64_t count;
	uint32_t i;

	if (read(a->wake, &count, sizeof(count)) < 0 && errno != EAGAIN)
		u_error("ag", "reading the wake-up descriptor: %s", strerror(errno));
	for (i = 1; i < a->link_count; i++) {
		port_db_clear(a->links[i].port, UINT32_C(1) << AG_DB_BIT);
		ag_setup_check(&a->links[i]);
		ag_record_receive(&a->links[i]);
	}
}

/* Handles one event of epoll.  One for a client that has been freed meanwhile is ignored. */
static void on_event(struct ag_agent *a, const struct epoll_event *ev)
{
	uint32_t kind = (uint32_t)(ev->data.u64 >> 32);
	uint32_t index = (uint32_t)ev->data.u64;

	switch (kind) {
	case AG_EV_WAKE:
		on_wake(a);
		break;
	case AG_EV_LISTEN:
		ag_accept(a);
		break;
	case AG_EV_CABLE:
		ag_cable_accept(&a->links[index]);
		break;
	case AG_EV_PORT:
		ag_setup_service(&a->links[index]);
		break;
	case AG_EV_CLIENT:
		if (index < a->client_slots && a->client_slot[index] != NULL)
			ag_dispatch_event(a->client_slot[index], ev->events);
		break;
	case AG_EV_PROCESS:
		if (index < a->client_slots && a->client_slot[index] != NULL)
			ag_dispatch_ended(a->client_slot[index]);
		break;
	}
}

/*
 * After each batch of events: handles records to self, frees clients that left, ends broken circuits, writes queued
 * records, and reads paused clients again.  The loop ends because every exchange of records with self ends.
 */
static void settle(struct ag_agent *a)
{
	uint32_t i;

	do {
		ag_record_drain_self(a);
		ag_session_reap(a);
	} while (!ag_list_empty(&a->links[0].queue));
	ag_relay_settle(a);
	for (i = 1; i < a->link_count; i++)
		ag_record_pump(&a->links[i]);
	ag_client_resume(a);
}

static int64_t earlier(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

/*
 * Returns when the agent leaves because no process has a NIC open, or U_NEVER.  While one has, the idle time
 * begins at `now`.
 */
static int64_t idle_deadline(struct ag_agent *a, int64_t now)
{
	if (!a->cfg.leave_when_idle)
		return U_NEVER;
	if (a->nic_count > 0) {
		a->idle_since = now;
		return U_NEVER;
	}
	return a->idle_since + (int64_t)a->cfg.grace_ms * 1000000;
}

/* Does everything that is due, in all units, and returns the time at which something is due next. */
static int64_t timers(struct ag_agent *a)
{
	int64_t now = u_now_ns(), next = ag_accept_timer(a, now);
	uint32_t i;

	for (i = 1; i < a->link_count; i++)
		next = earlier(next, ag_links_timers(&a->links[i], now));
	next = earlier(next, ag_route_timers(a, now));
	next = earlier(next, ag_connect_timers(a, now));
	next = earlier(next, ag_resume_timers(a, now));
	for (i = 0; i < a->link_count; i++)
		next = earlier(next, ag_ratelimits_tell(a->links[i].ratelimit, AG_LINK_RATELIMITS));
	next = earlier(next, ag_ratelimits_tell(a->ratelimit, AG_RATELIMITS));
	next = earlier(next, u_close_timers(now));
	next = earlier(next, ag_client_timers(a, now));
	return earlier(next, idle_deadline(a, now));
}

/* Returns whether the agent was told to stop, or may leave when idle and no process has had a NIC for cfg.grace_ms. */
static bool leaving(struct ag_agent *a)
{
	int64_t now = u_now_ns();

	return atomic_load(&a->stop) || idle_deadline(a, now) <= now;
}

/* Waits until `until`, 0: not at all, for events, and handles them and the records to self they cause.  0 or -errno. */
static int serve(struct ag_agent *a, int64_t until)
{
	struct epoll_event events[EVENTS];
	int i, n;

	ag_watchdog_rest(&a->watchdog);
	n = u_poll_events(a->epoll, events, EVENTS, until);
	ag_watchdog_work(&a->watchdog);
	for (i = 0; i < n; i++) {
		on_event(a, &events[i]);
		ag_record_drain_self(a);
	}
	return n < 0 ? n : 0;
}

int ag_step(struct ag_agent *a, int64_t *until)
{
	bool rung = a->cfg.stepped && ag_irq_rung(a);
	int rc = serve(a, rung ? 0 : *until);

	if (rc != 0)
		return rc;
	if (rung)
		on_wake(a);
	do {
		a->dirty = false;
		settle(a);
		*until = timers(a);
	} while (a->dirty);
	return leaving(a) ? 1 : 0;
}

int ag_run(struct ag_agent *a)
{
	int rc = ag_watchdog_start(&a->watchdog, &a->ratelimit[AG_RATELIMIT_STAND], a->cfg.host_id);
	int64_t until = 0;

	if (rc != 0)
		return rc;
	ag_accept_lower_spare(a);
	while ((rc = ag_step(a, &until)) == 0)
		;
	ag_watchdog_stop(&a->watchdog);
	return rc < 0 ? rc : 0;
}

void ag_stop(struct ag_agent *a)
{
	ag_loop_stop(a);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void ag_destroy(struct ag_agent *a)
{
	struct ag_list *pos, *tmp;
	uint32_t i;

	if (a == NULL)
		return;
	a->ending = true;
	/*
	 * Addresses are freed first: a process that sees its socket close may start the next agent
	 * at once.
	 */
	ag_accept_close(a);
	for (i = 0; i < a->link_count; i++) {
		if (a->links[i].cable_sock >= 0)
			u_hang_up_listener(a->links[i].cable_sock);
		a->links[i].cable_sock = -1;
	}
	ag_list_each(pos, tmp, &a->clients)
		ag_session_end(ag_list_entry(pos, struct ag_client, node));
	ag_irq_end(a);
	for (i = a->link_count; i-- > 0;)
		ag_relay_link_down(&a->links[i]);
	ag_transfer_close(a);
	ag_place_close(a);
	for (i = a->link_count; i-- > 0;)
		ag_links_destroy(&a->links[i]);
	port_host_destroy(a->host);
	free(a->client_slot);
	free(a->conn_slot);
	ag_name_free(a);
	ag_route_free(a);
	close_fd(a->spare_fd);
	close_fd(a->wake);
	close_fd(a->epoll);
	free(a->links);
	free(a);
}

/* Returns the number of entries in the fullest bucket of a table. */
static uint32_t longest_of(const struct ag_list table[AG_HASH])
{
	const struct ag_list *pos;
	uint32_t i, n, longest = 0;

	for (i = 0; i < AG_HASH; i++) {
		for (n = 0, pos = table[i].next; pos != &table[i]; pos = pos->next)
			n++;
		longest = n > longest ? n : longest;
	}
	return longest;
}

void ag_usage(const struct ag_agent *a, struct ag_usage *out)
{
	struct ag_list *pos, *tmp;
	uint32_t i;

	memset(out, 0, sizeof(*out));
	out->clients = a->client_count;
	out->conns = a->conn_count;
	out->circuits = a->circuit_count;
	out->longest_circuits = longest_of(a->circuits);
	out->longest_conns = longest_of(a->hash);
	out->relay_dropped = a->relay_dropped;
	out->relay_refused = a->relay_refused;
	ag_list_each(pos, tmp, &a->clients)
	{
		out->listens += ag_list_entry(pos, struct ag_client, node)->listen_count;
		out->allocs += ag_list_entry(pos, struct ag_client, node)->alloc_count;
	}
	for (i = 0; i < a->link_count; i++) {
		out->offers += a->links[i].offer_count;
		out->window_used += a->links[i].window_used;
	}
}
