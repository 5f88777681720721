/* SPDX-License-Identifier: BSD-2-Clause */
/* The report, as text and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "pst_priv.h"

#define SCHEMA "viaduct.selftest"
#define SCHEMA_VERSION 1
#define SLOW_MBS 200.0

static const char *const states[] = {
	[PST_KEPT] = "kept", [PST_BROKEN] = "broken", [PST_NOT_TESTABLE] = "not testable"
};

const char *pst_state_name(enum pst_state state)
{
	return states[state];
}

/* As of struct port_limits; JSON has true, false and null. */
static const char *const reads_back[] = {
	[PORT_READS_BACK_NO] = "no read across the link before a ring",
	[PORT_READS_BACK_YES] = "each ring after a read across the link",
	[PORT_READS_BACK_UNKNOWN] =
		"not known whether rings come after a read across the link: viaduct.ko is too old to say"
};

/* ---- text --------------------------------------------------------------------------------------- */

/* What was tried in a clause, in words; "" if nothing counts it. */
static const char *what_of(const struct pst_verdict *v)
{
	for (unsigned int i = 0; i < pst_clause_count; i++) {
		if (pst_clauses[i].id == v->id)
			return pst_clauses[i].what;
	}
	return "";
}

void pst_text_verdict(FILE *to, const struct pst_verdict *v)
{
	const char *what = what_of(v);
	uint32_t extra = v->way[0].extra + v->way[1].extra;

	fprintf(to, "%-12s  %-10s  %s\n", states[v->state], v->id, v->rule);
	if (v->state == PST_KEPT && what[0] != '\0') {
		fprintf(to, "%26s%" PRIu32 " and %" PRIu32 " %s", "", v->way[0].tried,
			v->way[1].tried, what);
		if (extra != 0)
			fprintf(to, ", %" PRIu32 " more than was asked for", extra);
		fputc('\n', to);
	}
	if (v->text[0] != '\0')
		fprintf(to, "%26s%s\n", "", v->text);
	if (v->state != PST_BROKEN)
		return;
	for (unsigned int way = 0; way < 2; way++) {
		const struct pst_counts *c = &v->way[way];

		if (c->wrong == 0)
			continue;
		fprintf(to, "%26s%s the peer: %" PRIu32 " wrong of %" PRIu32, "",
			way == 0 ? "to" : "from", c->wrong, c->tried);
		if (c->late_most_ns != 0)
			fprintf(to, ", late by %.1f us, at most %.1f us", c->late50_ns / 1e3,
				c->late_most_ns / 1e3);
		fputc('\n', to);
	}
	fprintf(to, "%26sneeded by: %s\n", "", v->needs);
}

/* The rate of the fastest stores, in MB/s; 0 if none were measured. */
static double fastest(const struct pst_report *r)
{
	double most = 0;

	for (unsigned int i = 0; i < r->measures; i++) {
		if (r->measure[i].bytes != 0 && r->measure[i].mid > most)
			most = r->measure[i].mid;
	}
	return most;
}

/* A line for each: rates of stores have a number of bytes, times have none. */
static void text_measures(FILE *to, const struct pst_report *r)
{
	for (unsigned int i = 0; i < r->measures; i++) {
		const struct pst_measure *m = &r->measure[i];

		if (m->bytes != 0)
			fprintf(to, "%s of %-22zu  %10.1f %s\n", m->name, m->bytes, m->mid,
				m->unit);
		else
			fprintf(to, "%-32s  %10.2f %s, 99 of 100 within %.2f %s\n", m->name, m->mid,
				m->unit, m->p99, m->unit);
	}
	if (fastest(r) > 0 && fastest(r) < SLOW_MBS)
		fprintf(to,
			"stores are slow: a mapping that is not write-combining is like that\n");
}

void pst_text(FILE *to, const struct pst_report *r, const struct pst_place *place)
{
	unsigned int kept = 0, not_testable = 0;

	for (unsigned int i = 0; i < r->clauses; i++) {
		kept += r->clause[i].state == PST_KEPT;
		not_testable += r->clause[i].state == PST_NOT_TESTABLE;
	}
	fputc('\n', to);
	text_measures(to, r);
	fprintf(to,
		"\n%s: kind %s, %" PRIu32 " doorbell bits, %" PRIu32
		" scratchpads, windows of %" PRIu64 " bytes\n",
		place->device, r->limits.kind, r->limits.db_bits, r->limits.spads,
		r->limits.window_bytes);
	fprintf(to, "driver %s, chip %s, kernel %s, kernel of the peer %s\n",
		place->driver[0] != '\0' ? place->driver : "-",
		place->chip[0] != '\0' ? place->chip : "-", place->kernel,
		r->peer_kernel[0] != '\0' ? r->peer_kernel : "-");
	fprintf(to, "%s\n", reads_back[r->limits.reads_back]);
	fprintf(to, "%u kept, %u broken, %u not testable, in %.1f s\n", kept, r->broken,
		not_testable, r->seconds);
}

/* ---- JSON --------------------------------------------------------------------------------------- */

/* A text that is not known becomes null. */
static void put_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, text[0] != '\0' ? json_object_new_string(text) : NULL);
}

static void put_number(struct json_object *o, const char *key, uint64_t v)
{
	json_object_object_add(o, key, json_object_new_int64((int64_t)v));
}

/* What was seen in one direction. */
static struct json_object *json_counts(const struct pst_counts *c)
{
	struct json_object *o = json_object_new_object();

	put_number(o, "tried", c->tried);
	put_number(o, "wrong", c->wrong);
	put_number(o, "extra", c->extra);
	if (c->late_most_ns != 0) {
		put_number(o, "late_p50_ns", c->late50_ns);
		put_number(o, "late_max_ns", c->late_most_ns);
	}
	return o;
}

static struct json_object *json_clause(const struct pst_verdict *v)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "id", v->id);
	put_text(o, "rule", v->rule);
	put_text(o, "state", states[v->state]);
	put_text(o, "text", v->text);
	put_text(o, "needed_by", v->needs);
	json_object_object_add(o, "to_peer", json_counts(&v->way[0]));
	json_object_object_add(o, "from_peer", json_counts(&v->way[1]));
	return o;
}

/* A rate of stores has `bytes` and `value`, a time has percentiles. */
static struct json_object *json_measure(const struct pst_measure *m)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "name", m->name);
	put_text(o, "unit", m->unit);
	if (m->bytes != 0) {
		put_number(o, "bytes", m->bytes);
		json_object_object_add(o, "value", json_object_new_double(m->mid));
	} else {
		json_object_object_add(o, "p50", json_object_new_double(m->mid));
		json_object_object_add(o, "p99", json_object_new_double(m->p99));
	}
	return o;
}

/* The port, its adapter, and the hosts at both ends. */
static struct json_object *json_port(const struct pst_report *r, const struct pst_place *place)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "device", place->device);
	put_text(o, "kind", r->limits.kind);
	put_text(o, "driver", place->driver);
	put_text(o, "chip", place->chip);
	put_text(o, "kernel", place->kernel);
	put_text(o, "machine", place->machine);
	put_text(o, "peer_kernel", r->peer_kernel);
	put_number(o, "doorbell_bits", r->limits.db_bits);
	put_number(o, "scratchpads", r->limits.spads);
	put_number(o, "window_bytes", r->limits.window_bytes);
	put_number(o, "slice_align", r->limits.slice_align);
	json_object_object_add(o, "reads_back",
			       r->limits.reads_back == PORT_READS_BACK_UNKNOWN
				       ? NULL
				       : json_object_new_boolean(r->limits.reads_back ==
								 PORT_READS_BACK_YES));
	return o;
}

int pst_json(FILE *to, const struct pst_report *r, const struct pst_place *place)
{
	struct json_object *o = json_object_new_object(), *clauses = json_object_new_array(),
			   *measures = json_object_new_array();
	int err = 0;

	json_object_object_add(o, "schema", json_object_new_string(SCHEMA));
	json_object_object_add(o, "schema_version", json_object_new_int(SCHEMA_VERSION));
	json_object_object_add(
		o, "state", json_object_new_string(states[r->broken != 0 ? PST_BROKEN : PST_KEPT]));
	json_object_object_add(o, "port", json_port(r, place));
	for (unsigned int i = 0; i < r->clauses; i++)
		json_object_array_add(clauses, json_clause(&r->clause[i]));
	json_object_object_add(o, "clauses", clauses);
	for (unsigned int i = 0; i < r->measures; i++)
		json_object_array_add(measures, json_measure(&r->measure[i]));
	json_object_object_add(o, "measures", measures);
	json_object_object_add(o, "seconds", json_object_new_double(r->seconds));
	if (fprintf(to, "%s\n",
		    json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
							      JSON_C_TO_STRING_NOSLASHESCAPE)) < 0)
		err = -EIO;
	json_object_put(o);
	return err;
}
