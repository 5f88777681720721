/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_cfg.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "u_base.h"
#include "u_cfg_names.h"
#include "u_cpus.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_log_spec.h"
#include "u_place.h"

#define AREA "u"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

static const char *const wait_words[] = { "spin", "yield", "block", "adaptive", NULL };
const char *const u_cfg_relay_wait_words[] = { "adaptive", "poll", "block", NULL };

const struct u_cfg_entry u_cfg_table[U_CFG_COUNT] = {
	[U_CFG_FABRIC] = { "VIADUCT_FABRIC", U_CFG_STRING, "default", 0, 0, false, NULL,
			   "fabric to use: a name, or owner:name for another user's" },
	[U_CFG_HOST] = { "VIADUCT_HOST", U_CFG_STRING, "", 0, 0, false, NULL,
			 "host this process runs on: name, alias or number; empty: the first" },
	[U_CFG_DEVICE] = { "VIADUCT_DEVICE", U_CFG_STRING, "", 0, 0, false, NULL,
			   "device aliases for VipOpenNic: NAME=HOST,..." },
	[U_CFG_DEFAULT_NIC] = { "VIADUCT_DEFAULT_NIC", U_CFG_BOOL, "yes", 0, 1, false, NULL,
				"yes: unknown device names open the default NIC" },
	[U_CFG_PORT] = { "VIADUCT_PORT", U_CFG_STRING, "emu", 0, 0, false, NULL,
			 "port driver: emu or cdev, with +strict, +fault and +model decorators" },
	[U_CFG_PROFILES] = { "VIADUCT_PROFILES", U_CFG_STRING, "", 0, 0, false, NULL,
			     "profiles of links whose ports have the model decorator: "
			     "A-B=PROFILE or, for one end, A.PORT=PROFILE,...; empty: that of "
			     "VIADUCT_PORT" },
	[U_CFG_ADAPTERS] = { "VIADUCT_ADAPTERS", U_CFG_STRING, "", 0, 0, false, NULL,
			     "adapters of ports of kind cdev: NAME=PATH,...; empty: "
			     "/dev/viaduct0, /dev/viaduct1 ... in the order of the ports" },
	[U_CFG_FAULT] = { "VIADUCT_FAULT", U_CFG_STRING, "", 0, 0, false, NULL,
			  "options of the fault decorator" },
	[U_CFG_SEED] = { "VIADUCT_SEED", U_CFG_UINT, "0", 0, UINT64_MAX, false, NULL,
			 "seed of the strict and fault decorators" },
	[U_CFG_SLOTS] = { "VIADUCT_SLOTS", U_CFG_UINT, "128", 8, 4096, true, NULL,
			  "slots of a VI's fifo; 32 if a window has at most 4M and neither this nor "
			  "VIADUCT_RING_BYTES is set" },
	[U_CFG_RING_BYTES] = { "VIADUCT_RING_BYTES", U_CFG_BYTES, "256k", 4 * KIB, 64 * MIB, true,
			       NULL,
			       "payload bytes of a VI's fifo, over relays up to 16 times; if neither this "
			       "nor VIADUCT_SLOTS is set, 4M for the first connections of an emulated link, "
			       "and 8k, over relays too, if a window has at most 4M" },
	[U_CFG_WINDOW_BYTES] = { "VIADUCT_WINDOW_BYTES", U_CFG_BYTES, "4G", U_CFG_WINDOW_BYTES_MIN,
				 U_CFG_WINDOW_BYTES_MAX, false, NULL,
				 "size of a port's memory window; at most 4M make connections small" },
	[U_CFG_DOORBELLS] = { "VIADUCT_DOORBELLS", U_CFG_UINT, "16", 2, 32, false, NULL,
			      "doorbell bits of a port" },
	[U_CFG_SCRATCHPADS] = { "VIADUCT_SCRATCHPADS", U_CFG_UINT, "8", 8, 64, false, NULL,
				"scratchpad registers of a port" },
	[U_CFG_TOPOLOGY] = { "VIADUCT_TOPOLOGY", U_CFG_STRING, "ring", 0, 0, false, NULL,
			     "links of a fabric that is brought up: ring, chain, mesh:WxH, "
			     "torus:WxH, graph:0-1,..., file:PATH" },
	[U_CFG_RELAY_THREADS] = { "VIADUCT_RELAY_THREADS", U_CFG_UINT, "0", 0, 8, false, NULL,
				  "transfer threads of an agent that relays; 0: one for every four "
				  "processors" },
	[U_CFG_RELAY_CPUS] = { "VIADUCT_RELAY_CPUS", U_CFG_STRING, "", 0, 0, false, NULL,
			       "processors that transfer threads run on, in turn: up to 8, as "
			       "2,3 or 2-5; empty: any" },
	[U_CFG_RELAY_WAIT] = { "VIADUCT_RELAY_WAIT", U_CFG_ENUM, "adaptive", 0, 0, false,
			       u_cfg_relay_wait_words, "how a transfer thread waits for packets" },
	[U_CFG_WAIT] = { "VIADUCT_WAIT", U_CFG_ENUM, "adaptive", 0, 0, false, wait_words,
			 "how a waiting call waits" },
	[U_CFG_AFFINITY] = { "VIADUCT_AFFINITY", U_CFG_STRING, "none", 0, 0, false, NULL,
			     "processors of threads: ROLE=PLACE;..., such as "
			     "transfer=shared-cache;relay=2,3 (placement)" },
	[U_CFG_AGENT] = { "VIADUCT_AGENT", U_CFG_STRING, "", 0, 0, false, NULL,
			  "path of the viaductd started on demand; none: never start one" },
	[U_CFG_LOG] = { "VIADUCT_LOG", U_CFG_STRING, "warn", 0, 0, false, NULL,
			"log level, then area=level,...: error, warn, info, debug; "
			"areas vip, vi, nvi, ag, rl, port, u" },
	[U_CFG_LOG_FILE] = { "VIADUCT_LOG_FILE", U_CFG_STRING, "", 0, 0, false, NULL,
			     "file the log is appended to; empty: standard error" },
	[U_CFG_FD_FROM] = { "VIADUCT_FD_FROM", U_CFG_UINT, "3", STDERR_FILENO + 1, U_FD_FROM_MAX,
			    false, NULL,
			    "least number of the descriptors that the library keeps, where the "
			    "process may have so many" },
};

struct value {
	char *text; /* owned; NULL: the default */
	uint64_t number;
};

/* Written under `lock` before `loaded` is set, read only after it was seen set. */
static struct value values[U_CFG_COUNT];
static int load_result;
static _Atomic bool loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the value of the digit, -1 if it is none of this base. */
static int digit_of(char c, unsigned int base)
{
	int digit = -1;

	if (c >= '0' && c <= '9')
		digit = c - '0';
	else if (c >= 'a' && c <= 'f')
		digit = c - 'a' + 10;
	else if (c >= 'A' && c <= 'F')
		digit = c - 'A' + 10;
	return digit < (int)base ? digit : -1;
}

/* Reads digits from *text on, and moves *text past them.  0, or -EINVAL: there is none, or they exceed 64 bits. */
static int digits_parse(const char **text, unsigned int base, uint64_t *out)
{
	uint64_t v = 0;
	const char *p = *text;
	int digit;

	if (digit_of(*p, base) < 0)
		return -EINVAL;
	for (; (digit = digit_of(*p, base)) >= 0; p++) {
		if (v > (UINT64_MAX - (uint64_t)digit) / base)
			return -EINVAL;
		v = v * base + (uint64_t)digit;
	}
	*text = p;
	*out = v;
	return 0;
}

/* Reads the whole text as a number, hexadecimal after "0x".  0, or -EINVAL and leaves *out. */
static int uint_parse(const char *text, uint64_t *out)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	uint64_t v;

	if (hex)
		text += 2;
	if (digits_parse(&text, hex ? 16 : 10, &v) != 0 || *text != '\0')
		return -EINVAL;
	*out = v;
	return 0;
}

/* The exponent of two that a suffix stands for: 10 for "k", 0 for none, -1 for an unknown one. */
static int suffix_shift(const char *suffix)
{
	static const char letters[] = "kKmMgGtT";
	const char *hit;

	if (suffix[0] == '\0')
		return 0;
	hit = strchr(letters, suffix[0]);
	if (hit == NULL || suffix[1] != '\0')
		return -1;
	return (int)((hit - letters) / 2 + 1) * 10;
}

int u_cfg_parse_bytes(const char *text, uint64_t *out)
{
	uint64_t v;
	int shift;

	if (digits_parse(&text, 10, &v) != 0)
		return -EINVAL;
	shift = suffix_shift(text);
	if (shift < 0 || v > UINT64_MAX >> shift)
		return -EINVAL;
	*out = v << shift;
	return 0;
}

/* Gives the index of the word among `words`; -EINVAL: it is none of them. */
static int word_parse(const char *const *words, const char *text, uint64_t *out)
{
	for (uint64_t i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], text) == 0) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Reads yes, on, true and 1 as 1; no, off, false and 0 as 0.  0, or -EINVAL, also for capitals. */
static int bool_parse(const char *text, uint64_t *out)
{
	static const char *const words[] = { "no",   "yes", "off", "on", "false",
					     "true", "0",   "1",   NULL };
	uint64_t i;

	if (word_parse(words, text, &i) != 0)
		return -EINVAL;
	*out = i & 1;
	return 0;
}

/* Reads a UINT or BYTES; -EINVAL also if it is not within the limits, or has to be a power of two and is none. */
static int number_parse(const struct u_cfg_entry *e, const char *text, uint64_t *out)
{
	uint64_t v;
	int rc = e->type == U_CFG_BYTES ? u_cfg_parse_bytes(text, &v) : uint_parse(text, &v);

	if (rc != 0 || v < e->min || v > e->max)
		return -EINVAL;
	if (e->power_of_two && (v & (v - 1)) != 0)
		return -EINVAL;
	*out = v;
	return 0;
}

/* Checks NAME=HOST,... with one equals sign in each pair.  0, or -EINVAL, also for an empty text. */
static int pairs_check(const char *text)
{
	size_t name, length;

	for (;;) {
		name = strcspn(text, "=,");
		if (name == 0 || text[name] != '=')
			return -EINVAL;
		text += name + 1;
		length = strcspn(text, "=,");
		if (length == 0 || text[length] == '=')
			return -EINVAL;
		if (text[length] == '\0')
			return 0;
		text += length + 1;
	}
}

/* Checks the text of a variable; 0 also for those whose text is checked where it is used.  -EINVAL, -E2BIG. */
static int string_check(const struct u_cfg_entry *e, const char *text)
{
	int cpus[U_CFG_RELAY_CPUS_MAX];
	char error[U_PLACE_ERROR];
	struct u_place_rules rules;
	struct u_log_spec spec;
	unsigned int count;

	if (e == &u_cfg_table[U_CFG_LOG])
		return u_log_spec_parse(text, &spec);
	if (e == &u_cfg_table[U_CFG_DEVICE] && text[0] != '\0')
		return pairs_check(text);
	if (e == &u_cfg_table[U_CFG_AFFINITY])
		return u_place_parse(text, &rules, error);
	if (e == &u_cfg_table[U_CFG_RELAY_CPUS])
		return u_cpus_parse(text, U_CFG_RELAY_CPUS_MAX, cpus, &count);
	return 0;
}

/* Checks a text, and reads its value, which strings do not have: they leave *out.  0, -EINVAL or -E2BIG. */
static int value_parse(const struct u_cfg_entry *e, const char *text, uint64_t *out)
{
	switch (e->type) {
	case U_CFG_STRING:
		return string_check(e, text);
	case U_CFG_UINT:
	case U_CFG_BYTES:
		return number_parse(e, text, out);
	case U_CFG_ENUM:
		return word_parse(e->words, text, out);
	case U_CFG_BOOL:
		return bool_parse(text, out);
	}
	return -EINVAL;
}

/* Writes the words, of which NULL is the end, as "a, b"; cut if need be. */
static void words_join(const char *const *words, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (int i = 0; words[i] != NULL && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ", ",
					 words[i]);
}

/* Writes which values a variable may have: "one of yes, no", "a number from 0 to 8"; for a string, its help text. */
static void value_expected(const struct u_cfg_entry *e, char *out, size_t size)
{
	static const char *const bool_words[] = { "yes", "no", NULL };
	char words[128];

	if (e->type == U_CFG_ENUM || e->type == U_CFG_BOOL) {
		words_join(e->type == U_CFG_BOOL ? bool_words : e->words, words, sizeof(words));
		snprintf(out, size, "one of %s", words);
	} else if (e->type == U_CFG_STRING) {
		snprintf(out, size, "%s", e->help);
	} else {
		snprintf(out, size, "%s from %llu to %llu%s",
			 e->power_of_two ? "a power of two" : "a number",
			 (unsigned long long)e->min, (unsigned long long)e->max,
			 e->type == U_CFG_BYTES ? " (suffixes k, M, G)" : "");
	}
}

/* Logs that the text of a variable was refused, and what it should be. */
static U_COLD void value_refuse(const struct u_cfg_entry *e, const char *text)
{
	char expected[256], error[U_PLACE_ERROR];
	struct u_place_rules rules;

	if (e == &u_cfg_table[U_CFG_AFFINITY]) {
		u_place_parse(text, &rules, error);
		u_error(AREA, "%s is '%.80s': %s; correct or unset it", e->name, text, error);
		return;
	}
	value_expected(e, expected, sizeof(expected));
	u_error(AREA, "%s is '%s', should be %s; correct or unset it", e->name, text, expected);
}

/*
 * Loads a variable; 0, or -errno after a log line.  An empty one counts as unset.  A refused one leaves the default
 * in effect.
 */
static int value_load(enum u_cfg_id id)
{
	const struct u_cfg_entry *e = &u_cfg_table[id];
	struct value *v = &values[id];
	const char *text = secure_getenv(e->name);
	uint64_t number = 0;

	value_parse(e, e->fallback, &v->number);
	if (text == NULL || text[0] == '\0')
		return 0;
	if (value_parse(e, text, &number) != 0) {
		value_refuse(e, text);
		return -EINVAL;
	}
	v->text = strdup(text);
	if (v->text == NULL) {
		u_error(AREA, "%s: no memory for its value", e->name);
		return -ENOMEM;
	}
	v->number = number;
	return 0;
}

/* Loads all variables; sets load_result and `loaded`.  Caller holds `lock`. */
static void load_locked(void)
{
	const char *names[U_CFG_COUNT];

	load_result = 0;
	for (int i = 0; i < U_CFG_COUNT; i++) {
		int rc = value_load((enum u_cfg_id)i);

		names[i] = u_cfg_table[i].name;
		if (rc != 0)
			load_result = rc;
	}
	u_cfg_names_check(names, U_CFG_COUNT);
	atomic_store_explicit(&loaded, true, memory_order_release);
}

void u_cfg_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

int u_cfg_load(void)
{
	if (u_likely(atomic_load_explicit(&loaded, memory_order_acquire)))
		return load_result;
	pthread_mutex_lock(&lock);
	if (!atomic_load_explicit(&loaded, memory_order_relaxed))
		load_locked();
	pthread_mutex_unlock(&lock);
	return load_result;
}

static const struct value *value_get(enum u_cfg_id id)
{
	u_cfg_load();
	return &values[id];
}

const char *u_cfg_str(enum u_cfg_id id)
{
	const struct value *v = value_get(id);

	return v->text != NULL ? v->text : u_cfg_table[id].fallback;
}

uint64_t u_cfg_uint(enum u_cfg_id id)
{
	return value_get(id)->number;
}

enum u_cfg_origin u_cfg_origin(enum u_cfg_id id)
{
	return value_get(id)->text != NULL ? U_CFG_FROM_ENV : U_CFG_FROM_DEFAULT;
}

void u_cfg_reset(void)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < U_CFG_COUNT; i++) {
		free(values[i].text);
		values[i] = (struct value){ 0 };
	}
	atomic_store_explicit(&loaded, false, memory_order_relaxed);
	u_log_reset();
	pthread_mutex_unlock(&lock);
}
