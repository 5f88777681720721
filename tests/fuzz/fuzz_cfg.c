/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Environments of VIADUCT_* variables: an accepted value is one that the table
 * allows, a refused one leaves the default in effect.  Sizes are compared with
 * a second, slower parser of the same text.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "fz_input.h"
#include "port.h"
#include "port_fault_opt.h"
#include "u_cfg.h"
#include "w_addr.h"

#define TEXT 200u
#define EXTRA 4u /* unknown variables */

static const char *const extra[EXTRA] = {
	"VIADUCT_FABRICS",
	"VIADUCT_",
	"VIADUCT_X_Y_Z",
	"VIADUCT_LONGER_THAN_ANY_NAME_OF_THE_TABLE_BY_A_GREAT_DEAL_OF_WORDS",
};

/* Words that most values consist of. */
static const char *const words[] = {
	"1k",
	"64M",
	"2G",
	"1T",
	"4096",
	"0x10",
	"18446744073709551615",
	"yes",
	"adaptive",
	"emu",
	"+strict",
	"+fault",
	"drop_db=0.5",
	"torn=1",
	"early_db=1",
	"down_after=3",
	",",
	"=",
	":",
	"debug",
	"ag=info",
	"0",
	"default",
	"host1",
	"-1",
};

static void any_text(struct fz_input *in, char out[TEXT])
{
	uint32_t i, n = fz_pick(in, 4);
	size_t len = 0;
	uint8_t which;

	out[0] = '\0';
	for (i = 0; i < n; i++) {
		which = (uint8_t)fz_get(in, 1);
		if (which < sizeof(words) / sizeof(words[0])) {
			len += (size_t)snprintf(out + len, TEXT - len, "%s", words[which]);
			continue;
		}
		len += fz_fill(in, out + len, which % 32);
		out[len] = '\0';
		len = strlen(out);
	}
}

static void must(bool holds, const char *what, const char *text)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %s\n", what, text);
	abort();
}

/* The second parser: digits, then at most one letter of kmgt. */
static bool bytes_again(const char *text, uint64_t *out)
{
	static const char letters[] = "kmgt";
	unsigned __int128 v = 0;
	const char *p = text, *letter;

	while (*p >= '0' && *p <= '9' && v <= UINT64_MAX)
		v = v * 10 + (unsigned int)(*p++ - '0');
	if (p == text || v > UINT64_MAX)
		return false;
	if (*p != '\0') {
		letter = strchr(letters, *p | 0x20);
		if (letter == NULL || (*p & 0x40) == 0 || p[1] != '\0')
			return false;
		v <<= 10 * (letter - letters + 1);
	}
	*out = (uint64_t)v;
	return v <= UINT64_MAX;
}

static void try_bytes(const char *text)
{
	uint64_t here = 0, there = 0;
	bool ok = u_cfg_parse_bytes(text, &here) == 0;

	must(ok == bytes_again(text, &there), "accepted by one reading only", text);
	must(!ok || here == there, "read in two ways", text);
}

/* Tries the parsers of values that the table keeps as text. */
static void try_texts(const char *text)
{
	struct fault_options faults;
	uid_t owner;
	char name[64];

	if (w_fabric_parse(text, &owner, name) == 0)
		must(w_name_ok(name), "a fabric of an impossible name", text);
	fault_parse(text, &faults);
}

static void value_check(enum u_cfg_id id)
{
	const struct u_cfg_entry *e = &u_cfg_table[id];
	const char *text = u_cfg_str(id), *env = getenv(e->name);
	uint64_t v = u_cfg_uint(id);

	if (u_cfg_origin(id) == U_CFG_FROM_ENV)
		must(env != NULL && strcmp(env, text) == 0, "not what was set", e->name);
	else
		must(strcmp(text, e->fallback) == 0, "not the default", e->name);
	if (e->type != U_CFG_UINT && e->type != U_CFG_BYTES)
		return;
	must(v >= e->min && v <= e->max, "out of range", e->name);
	must(!e->power_of_two || (v & (v - 1)) == 0, "not a power of two", e->name);
}

static void clear(void)
{
	int i;

	for (i = 0; i < U_CFG_COUNT; i++)
		unsetenv(u_cfg_table[i].name);
	for (i = 0; i < (int)EXTRA; i++)
		unsetenv(extra[i]);
	setenv("VIADUCT_LOG_FILE", "/dev/null", 1);
	u_cfg_reset();
}

/* Sets a variable, except the one that names the log file: so nothing but /dev/null is written. */
static void set(uint32_t which, const char *text)
{
	if (which >= U_CFG_COUNT)
		setenv(extra[which - U_CFG_COUNT], text, 1);
	else if (which != U_CFG_LOG_FILE)
		setenv(u_cfg_table[which].name, text, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_input in = { data, size };
	char text[TEXT];
	bool refused = false;
	int i, rc;

	clear();
	while (in.left > 0) {
		uint32_t which = fz_pick(&in, U_CFG_COUNT + EXTRA);

		any_text(&in, text);
		try_bytes(text);
		try_texts(text);
		set(which, text);
	}
	rc = u_cfg_load();
	for (i = 0; i < U_CFG_COUNT; i++) {
		const char *env = getenv(u_cfg_table[i].name);

		value_check((enum u_cfg_id)i);
		refused |= env != NULL && env[0] != '\0' &&
			   u_cfg_origin((enum u_cfg_id)i) != U_CFG_FROM_ENV;
	}
	must(refused == (rc != 0), "the result does not say what was refused", "u_cfg_load");
	clear();
	return 0;
}
