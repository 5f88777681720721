/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that use registers: the link, scratchpads, doorbells. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pt.h"
#include "u_time.h"

#define LINGER_NS 300000000

/* ---- the link -------------------------------------------------------------------------------- */

static void tell_state(bool up, uint32_t generation)
{
	if (up)
		printf("link: up generation %" PRIu32 "\n", generation);
	else
		puts("link: down");
	fflush(stdout);
}

static bool tell_link(struct pt_port *t)
{
	uint32_t generation;
	bool up = pt_is_up(t, &generation);

	tell_state(up, generation);
	return up;
}

/* Until the peer's end, or the end of the time. */
static int link_up(struct pt_port *t)
{
	int rc = pt_up(t);

	if (rc != EXIT_OK)
		return rc;
	tell_link(t);
	while (pt_is_up(t, NULL) && pt_step(t, port_irq_ticket(t->port->irq)) == 0)
		;
	port_link_disable(t->port);
	tell_link(t);
	return EXIT_OK;
}

/* Tells what has changed, also a time for which the link was up between two calls. */
static bool tell_changes(struct pt_port *t, bool was_up, uint32_t *generation)
{
	const uint32_t was = *generation;
	bool up = pt_is_up(t, generation);

	if (was_up && (!up || *generation != was))
		tell_state(false, 0);
	if (*generation != was || (up && !was_up))
		tell_state(true, *generation);
	if (!up && *generation != was)
		tell_state(false, 0);
	return up;
}

static int link_watch(struct pt_port *t)
{
	bool up = tell_link(t), seen = false;
	uint32_t first, generation;
	int rc;

	port_link_state(t->port, &first);
	generation = first;
	rc = pt_enable(t);
	while (rc == EXIT_OK && pt_step(t, port_irq_ticket(t->port->irq)) == 0) {
		up = tell_changes(t, up, &generation);
		seen = seen || up || generation != first;
		if (pt_replug(t) != 0)
			break;
	}
	if (rc == EXIT_OK && !seen)
		return pt_fail("%s: the link was not up in %g s", t->device, t->timeout);
	return rc;
}

/* An adapter's link that this process has not enabled can only be down: it is the only one here. */
static int link_tell(struct pt_port *t)
{
	struct port_cdev_info info;

	if (t->adapter >= 0 && port_cdev_ask(t->adapter, &info) != 0)
		return pt_fail("%s: the adapter was removed", t->device);
	if (pt_is_up(t, NULL))
		tell_link(t);
	else
		puts("link: down, not enabled at this end; 'link up' enables it");
	return EXIT_OK;
}

int pt_link(struct pt_port *t, const char *what)
{
	if (what == NULL)
		return link_tell(t);
	if (strcmp(what, "up") == 0)
		return link_up(t);
	if (strcmp(what, "watch") == 0)
		return link_watch(t);
	port_link_disable(t->port);
	tell_link(t);
	return EXIT_OK;
}

/* ---- scratchpads ----------------------------------------------------------------------------- */

static uint32_t pad_read(struct pt_port *t, bool peer, unsigned int i)
{
	return peer ? port_peer_spad_read(t->port, i) : port_spad_read(t->port, i);
}

static void pad_tell(struct pt_port *t, bool peer, unsigned int i)
{
	printf("%s%u: 0x%08" PRIx32 "\n", peer ? "peer spad" : "spad", i, pad_read(t, peer, i));
}

/* Some adapters send scratchpads as messages, again after 128 ms at most, and lose them with the link. */
static void linger(struct pt_port *t)
{
	const int64_t until = u_now_ns() + LINGER_NS;

	while (u_now_ns() < until && pt_step(t, port_irq_ticket(t->port->irq)) == 0)
		;
}

static int pad_write(struct pt_port *t, bool peer, unsigned int i, uint32_t v)
{
	int err = peer ? port_peer_spad_write(t->port, i, v) : port_spad_write(t->port, i, v);

	return err == 0 ? EXIT_OK
			: pt_fail("%s: writing scratchpad %u: %s", t->device, i, pt_error(err));
}

int pt_spad(struct pt_port *t, bool peer, const char *index, const char *value)
{
	uint32_t count = t->port->limits.spads;
	uint64_t i = 0, v = 0;
	int rc;

	if (count == 0)
		return pt_fail("%s has no scratchpads", t->device);
	if (index != NULL && pt_number(index, count - 1, &i) != 0)
		return pt_usage("scratchpad %s was named, %s has 0 to %" PRIu32, index, t->device,
				count - 1);
	if (value != NULL && pt_number(value, UINT32_MAX, &v) != 0)
		return pt_usage("the value %s was given, a scratchpad holds 0 to 0xffffffff",
				value);
	rc = peer ? pt_up(t) : EXIT_OK;
	if (rc == EXIT_OK && value != NULL)
		rc = pad_write(t, peer, (unsigned int)i, (uint32_t)v);
	if (rc != EXIT_OK)
		return rc;
	if (index != NULL)
		pad_tell(t, peer, (unsigned int)i);
	for (unsigned int n = 0; index == NULL && n < count; n++)
		pad_tell(t, peer, n);
	if (peer && !pt_is_up(t, NULL))
		return pt_fail("%s: the link went down; what was read counts for nothing",
			       t->device);
	if (peer && value != NULL)
		linger(t);
	return EXIT_OK;
}

/* ---- doorbells ------------------------------------------------------------------------------- */

static int bits_parse(struct pt_port *t, const char *text, uint32_t *out)
{
	uint64_t v = 0;

	if (pt_number(text, pt_all_bits(t), &v) != 0 || v == 0)
		return pt_usage("doorbell bits %s were named, a mask from 1 to 0x%" PRIx32
				" was expected of %s",
				text, pt_all_bits(t), t->device);
	*out = (uint32_t)v;
	return EXIT_OK;
}

int pt_ring(struct pt_port *t, const char *text)
{
	uint32_t bits = 0;
	int rc = bits_parse(t, text, &bits);

	if (rc == EXIT_OK)
		rc = pt_up(t);
	if (rc != EXIT_OK)
		return rc;
	port_peer_db_ring(t->port, bits);
	port_flush(t->port);
	printf("rang: 0x%" PRIx32 "\n", bits);
	return EXIT_OK;
}

int pt_listen(struct pt_port *t, const char *text)
{
	uint32_t wanted = pt_all_bits(t), heard = 0, bits, ticket;
	int rc = text != NULL ? bits_parse(t, text, &wanted) : EXIT_OK;

	if (rc == EXIT_OK)
		rc = pt_enable(t);
	while (rc == EXIT_OK) {
		ticket = port_irq_ticket(t->port->irq);
		bits = port_db_read(t->port);
		port_db_clear(t->port, bits);
		if (bits != 0) {
			printf("rung: 0x%" PRIx32 "\n", bits);
			fflush(stdout);
		}
		heard |= bits;
		if (text != NULL && (wanted & ~heard) == 0)
			return EXIT_OK;
		/*
		 * When pt_step() has seen a process end, the bits that it rang are taken above before
		 * another one is waited for, whose cable clears them.
		 */
		if (pt_replug(t) != 0 || pt_step(t, ticket) != 0)
			break;
	}
	if (rc != EXIT_OK || (text == NULL && heard != 0))
		return rc;
	return pt_fail("%s: in %g s none rang 0x%" PRIx32 "; the link is %s", t->device, t->timeout,
		       wanted & ~heard, pt_is_up(t, NULL) ? "up" : "down");
}
