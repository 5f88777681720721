/* SPDX-License-Identifier: BSD-2-Clause */
#include "ag_place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ag_state.h"
#include "port_host.h"
#include "rl_relay.h"
#include "u_affinity.h"
#include "u_irq.h"

#define IRQS_MAX 64
#define ALL_MAX (RL_THREADS_MAX + IRQS_MAX)
#define NAME_BYTES 24

/* The placement of the transfer threads and, after them in each array, of the interrupts of the adapters. */
struct ag_place {
	struct u_affinity *affinity;
	uint32_t threads, all;
	int irqs[IRQS_MAX];
	struct u_place_ask asks[ALL_MAX];
	struct u_place_decision decisions[ALL_MAX];
	char names[ALL_MAX][NAME_BYTES];
	char refused[IRQS_MAX][U_PLACE_TEXT]; /* "": it was moved, or there was nothing to do */
	struct u_cpuset cpus[RL_THREADS_MAX];
};

/*
 * Overwrites the rule for `relay`, from wherever it is, by a list of the processors that the configuration
 * names; it names at least one.
 */
static void take_relay_cpus(const struct ag_agent *a, struct u_place_rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	rule->where = U_PLACE_LIST;
	for (uint32_t i = 0; i < a->cfg.relay_cpu_count; i++)
		u_cpuset_add(&rule->list, a->cfg.relay_cpus[i]);
}

/*
 * Notes the processors of each thread: one, in the order of the configuration, if that names any, else those
 * that decide() found.
 */
static void choose_cpus(const struct ag_agent *a, struct ag_place *p)
{
	for (uint32_t i = 0; i < p->threads; i++) {
		if (a->cfg.relay_cpu_count > 0) {
			memset(&p->decisions[i].cpus, 0, sizeof(p->decisions[i].cpus));
			u_cpuset_add(&p->decisions[i].cpus,
				     a->cfg.relay_cpus[i % a->cfg.relay_cpu_count]);
		}
		p->cpus[i] = p->decisions[i].cpus;
	}
}

/* Decides by the rules, without moving anything, where each transfer thread and interrupt is to run.  0 or -errno. */
static int decide(const struct ag_agent *a, struct ag_place *p)
{
	const char *names[ALL_MAX];

	for (uint32_t i = 0; i < p->all; i++) {
		bool irq = i >= p->threads;

		p->asks[i] = (struct u_place_ask){
			.role = irq ? U_PLACE_INTERRUPT : U_PLACE_RELAY,
			.index = irq ? i - p->threads : i,
			.count = irq ? p->all - p->threads : p->threads,
			.polls = !irq && a->cfg.relay_wait == RL_POLL,
		};
		if (irq)
			snprintf(p->names[i], NAME_BYTES, "interrupt %d", p->irqs[i - p->threads]);
		else
			snprintf(p->names[i], NAME_BYTES, "vi-relay%u", i);
		names[i] = p->names[i];
	}
	return u_affinity_decide(p->affinity, p->asks, names, p->all, p->decisions);
}

/* ---- interrupts ---- */

/* Writes the numbers of the interrupts of the host's adapters, at most IRQS_MAX, and returns how many it wrote. */
static int find_irqs(const struct ag_agent *a, int irqs[IRQS_MAX])
{
	char folder[64];
	int n = 0;

	for (uint32_t i = 1; i < a->link_count; i++) {
		if (port_host_adapter(a->host, i, folder, sizeof(folder)))
			n += u_irq_find(folder, irqs + n, IRQS_MAX - n);
	}
	return n;
}

/*
 * Moves the interrupts that have a decision, also after one could not be moved, which p->refused explains.  0;
 * or, where the rules are strict, the error of the first that could not be moved.
 */
static int move_irqs(struct ag_place *p)
{
	int rc, first = 0;

	for (uint32_t i = 0; i < p->all - p->threads; i++) {
		const struct u_place_decision *d = &p->decisions[p->threads + i];

		rc = u_cpuset_empty(&d->cpus)
			     ? 0
			     : u_affinity_move_irq(U_IRQ_FOLDER, p->irqs[i], d, p->refused[i]);
		first = first == 0 ? rc : first;
	}
	return p->affinity->rules.strict ? first : 0;
}

/* ---- all ---- */

/* Returns whether the ports to neighbours are adapters.  All of a host are of one kind, so the first one tells. */
static bool has_adapters(const struct ag_agent *a)
{
	char folder[64];

	return a->link_count > 1 && port_host_adapter(a->host, 1, folder, sizeof(folder));
}

int ag_place_open(struct ag_agent *a)
{
	struct ag_place *p;
	int rc;

	if (a->relay_threads == 0 && !has_adapters(a))
		return 0;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	a->place = p;
	p->threads = p->all = a->relay_threads;
	rc = u_affinity_open(NULL, U_AFFINITY_FOREIGN, &p->affinity);
	if (rc != 0)
		return rc;
	if (a->cfg.relay_cpu_count > 0)
		take_relay_cpus(a, &p->affinity->rules.of[U_PLACE_RELAY]);
	if (p->affinity->rules.of[U_PLACE_INTERRUPT].where != U_PLACE_NONE)
		p->all += (uint32_t)find_irqs(a, p->irqs);
	rc = decide(a, p);
	if (rc == 0)
		choose_cpus(a, p);
	return rc == 0 ? move_irqs(p) : rc;
}

void ag_place_close(struct ag_agent *a)
{
	if (a->place != NULL)
		u_affinity_close(a->place->affinity);
	free(a->place);
	a->place = NULL;
}

const struct u_cpuset *ag_place_cpus(const struct ag_agent *a)
{
	return a->place != NULL ? a->place->cpus : NULL;
}

/* Makes a text fit for a JSON string: characters that have a meaning there become blanks. */
static void clean(char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
			*text = ' ';
	}
}

/*
 * Writes an item, the threads' before the interrupts': 2n is the decision for thread or interrupt n, 2n+1 the
 * warning about it, which may be "".
 */
int ag_place_item(const struct ag_agent *a, uint32_t i, char *text, size_t size)
{
	const struct ag_place *p = a->place;
	char line[U_PLACE_TEXT], cpus[U_CPUSET_TEXT];
	uint32_t n = i / 2;
	const char *refused;

	if (p == NULL || n >= p->all)
		return -ENOENT;
	refused = n < p->threads ? "" : p->refused[n - p->threads];
	if (i % 2 != 0) {
		u_place_warning(p->asks, p->all, n, &p->decisions[n], line);
		if (refused[0] != '\0')
			snprintf(line, sizeof(line), "%s", refused);
		clean(line);
		snprintf(text, size, "{\"thread\":\"%s\",\"warning\":\"%s\"}", p->names[n], line);
		return 0;
	}
	u_affinity_text(p->affinity, &p->asks[n], &p->decisions[n], line);
	clean(line);
	u_cpuset_text(n < p->threads ? &p->cpus[n] : &p->decisions[n].cpus, cpus, sizeof(cpus));
	snprintf(text, size, "{\"thread\":\"%s\",\"as_asked\":%s,\"cpus\":\"%s\",\"text\":\"%s\"}",
		 p->names[n],
		 u_place_met(&p->decisions[n]) && refused[0] == '\0' ? "true" : "false", cpus,
		 line);
	return 0;
}
