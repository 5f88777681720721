/* SPDX-License-Identifier: BSD-2-Clause */
/* The transfer threads: how many there are, their start and their end. */
#include "ag_transfer.h"

#include <errno.h>

#include "ag_cfg.h"
#include "ag_link.h"
#include "ag_loop.h"
#include "ag_place.h"
#include "ag_state.h"
#include "port.h"
#include "rl_relay.h"
#include "rt_topo.h"
#include "u_log.h"
#include "u_processors.h"

static_assert(AG_RELAY_THREADS_MAX == RL_THREADS_MAX, "RL_THREADS_MAX");

/* Called by transfer threads: makes the event loop look for circuits that broke. */
static void notify(void *arg)
{
	struct ag_agent *a = arg;

	atomic_store(&a->relay_broken, true);
	ag_loop_wake(a);
}

/* Returns the default number of threads: a quarter of the processors that the agent may use, 1 to RL_THREADS_MAX. */
static unsigned int threads_by_default(void)
{
	unsigned int n = u_processors_count() / 4;

	return n < 1 ? 1 : n > RL_THREADS_MAX ? RL_THREADS_MAX : n;
}

/* Can this host relay?  Only one with two links has something to relay. */
static bool can_relay(const struct ag_agent *a)
{
	return rt_topo_ports(a->topo, a->cfg.host_id) > 2;
}

/*
 * Returns the number of transfer threads of a host that relays: that of the configuration, which
 * ag_transfer_check() has accepted, or the default, limited by the doorbell bits.
 */
static unsigned int threads_of(const struct ag_agent *a)
{
	unsigned int n = threads_by_default(), most = a->cfg.db_bits - AG_DB_BITS_RESERVED;

	if (a->cfg.relay_threads != 0)
		return a->cfg.relay_threads;
	return n < most ? n : most;
}

int ag_transfer_check(const struct ag_cfg *cfg)
{
	unsigned int bits = cfg->db_bits != 0 ? cfg->db_bits : AG_DB_BITS;

	if (cfg->relay_threads > AG_RELAY_THREADS_MAX ||
	    cfg->relay_threads > bits - AG_DB_BITS_RESERVED) {
		u_error("ag",
			"transfer threads: found %u, at most %u, and one for each of %u doorbell "
			"bits but %u",
			cfg->relay_threads, AG_RELAY_THREADS_MAX, bits, AG_DB_BITS_RESERVED);
		return -EINVAL;
	}
	if (cfg->relay_cpu_count > AG_RELAY_CPUS_MAX || cfg->relay_wait > RL_BLOCK) {
		u_error("ag",
			"processors for transfer threads, and the way to wait: found %u and %u, "
			"at most %u and %u",
			cfg->relay_cpu_count, cfg->relay_wait, AG_RELAY_CPUS_MAX, RL_BLOCK);
		return -EINVAL;
	}
	return 0;
}

int ag_transfer_open(struct ag_agent *a)
{
	struct port *ports[PORT_PER_HOST];
	struct rl_cfg cfg = {
		.wait = (enum rl_wait)a->cfg.relay_wait,
		.cpus = ag_place_cpus(a),
		.first_db_bit = AG_DB_BIT + 1,
		.irq = a->irq,
		.ports = ports,
		.port_count = a->link_count - 1,
		.notify = notify,
		.notify_arg = a,
	};
	uint32_t i;

	if (a->relay_threads == 0)
		return 0;
	cfg.threads = a->relay_threads;
	for (i = 1; i < a->link_count; i++)
		ports[i - 1] = a->links[i].port;
	return rl_open(&cfg, &a->relay);
}

void ag_transfer_close(struct ag_agent *a)
{
	rl_close(a->relay);
	a->relay = NULL;
}

void ag_transfer_choose(struct ag_agent *a)
{
	a->relay_threads = can_relay(a) && a->cfg.db_bits > AG_DB_BITS_RESERVED ? threads_of(a) : 0;
}
