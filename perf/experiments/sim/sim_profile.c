/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "sim.h"
#include "w_slot.h"

enum unit {
	UNIT_NS,   /* to microseconds */
	UNIT_RATE, /* bytes per second, to bytes per microsecond */
	UNIT_COUNT,
};

struct key {
	const char *name;
	enum unit unit;
	size_t offset;
};

#define KEY(name, unit, field)                                                                     \
	{                                                                                          \
		name, unit, offsetof(struct sim_profile, field)                                    \
	}

static const struct key keys[] = {
	KEY("link_bytes_per_second", UNIT_RATE, link_rate),
	KEY("link_latency_ns", UNIT_NS, link_latency),
	KEY("register_write_ns", UNIT_NS, register_write),
	KEY("register_read_ns", UNIT_NS, register_read),
	KEY("interrupt_ns", UNIT_NS, interrupt),
	KEY("dma_setup_ns", UNIT_NS, dma_setup),
	KEY("copy_bytes_per_second", UNIT_RATE, copy_rate),
	KEY("send_fragment_ns", UNIT_NS, send_fragment),
	KEY("relay_fragment_ns", UNIT_NS, relay_fragment),
	KEY("receive_fragment_ns", UNIT_NS, receive_fragment),
	KEY("shared_cores", UNIT_COUNT, cores),
	KEY("core_switch_ns", UNIT_NS, core_switch),
};

static double *field_of(struct sim_profile *p, const struct key *k)
{
	return (double *)(void *)((char *)p + k->offset);
}

static bool number_of(struct json_object *root, const char *name, double *out)
{
	struct json_object *entry, *value;

	if (!json_object_object_get_ex(root, name, &entry) ||
	    !json_object_object_get_ex(entry, "value", &value) ||
	    !(json_object_is_type(value, json_type_double) ||
	      json_object_is_type(value, json_type_int)))
		return false;
	*out = json_object_get_double(value);
	return isfinite(*out);
}

static bool plausible(const struct key *k, double value)
{
	switch (k->unit) {
	case UNIT_RATE:
		return value >= 1e3 && value <= 1e15;
	case UNIT_COUNT:
		return value >= 0 && value <= 65536 && value == floor(value);
	default:
		return value >= 0 && value <= 1e12;
	}
}

static double scaled(const struct key *k, double value)
{
	switch (k->unit) {
	case UNIT_RATE:
		return value / 1e6;
	case UNIT_NS:
		return value / 1e3;
	default:
		return value;
	}
}

static int key_read(struct json_object *const *roots, const char *const *paths, unsigned int count,
		    const struct key *k, struct sim_profile *out, char *why, size_t size)
{
	struct json_object *entry;
	double value;

	for (unsigned int i = 0; i < count; i++) {
		if (!json_object_object_get_ex(roots[i], k->name, &entry))
			continue;
		if (!number_of(roots[i], k->name, &value) || !plausible(k, value)) {
			snprintf(why, size, "%s: %s must be {\"value\": NUMBER, \"source\": TEXT}",
				 paths[i], k->name);
			return -EINVAL;
		}
		*field_of(out, k) = scaled(k, value);
		return 0;
	}
	snprintf(why, size, "%s: no %s, and no other profile file has it", paths[0], k->name);
	return -EINVAL;
}

static int keys_read(struct json_object *const *roots, const char *const *paths, unsigned int count,
		     struct sim_profile *out, char *why, size_t size)
{
	int err = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && err == 0; i++)
		err = key_read(roots, paths, count, &keys[i], out, why, size);
	return err;
}

int sim_profile_read(const char *const *paths, unsigned int count, struct sim_profile *out,
		     char *why, size_t size)
{
	struct json_object *roots[SIM_PROFILES] = { NULL };
	unsigned int loaded = 0;
	int err = 0;

	while (loaded < count && err == 0) {
		roots[loaded] = json_object_from_file(paths[loaded]);
		if (!json_object_is_type(roots[loaded], json_type_object)) {
			snprintf(why, size, "profile %s: not a readable JSON object",
				 paths[loaded]);
			err = -EINVAL;
		}
		loaded++;
	}
	if (err == 0)
		err = keys_read(roots, paths, count, out, why, size);
	for (unsigned int i = 0; i < loaded; i++)
		json_object_put(roots[i]);
	return err;
}

uint32_t sim_wire_bytes(uint32_t payload)
{
	uint32_t lines = (payload + W_PAYLOAD_ALIGN - 1) / W_PAYLOAD_ALIGN;

	if (payload <= W_HEAD_INLINE)
		return W_PAYLOAD_ALIGN;
	if (payload <= W_INLINE_MAX)
		return W_SLOT_BYTES;
	return (lines + 1) * W_PAYLOAD_ALIGN;
}

double sim_link_rate(const struct sim_profile *p)
{
	return p->dma || p->link_rate < p->copy_rate ? p->link_rate : p->copy_rate;
}

/* A DMA engine carries payload that does not fit into a slot; without one the thread stores it. */
struct sim_cost sim_cost_of(const struct sim_profile *p, uint32_t payload)
{
	struct sim_cost c = { p->send_fragment, p->relay_fragment, p->receive_fragment, 0 };

	c.link = sim_wire_bytes(payload) / sim_link_rate(p);
	if (p->dma && payload > W_INLINE_MAX) {
		c.send += p->dma_setup;
		c.relay += p->dma_setup;
	}
	c.receive += payload / p->copy_rate;
	return c;
}
