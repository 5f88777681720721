/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "u_cfg.h"

static const char *const type_names[] = {
	[U_CFG_STRING] = "text", [U_CFG_UINT] = "number",    [U_CFG_BYTES] = "bytes",
	[U_CFG_ENUM] = "word",	 [U_CFG_BOOL] = "yes or no",
};

static json_object *words_of(const struct u_cfg_entry *e)
{
	json_object *a = json_object_new_array();
	int i;

	for (i = 0; e->words[i]; i++)
		json_object_array_add(a, json_object_new_string(e->words[i]));
	return a;
}

static void add_range(json_object *o, const struct u_cfg_entry *e)
{
	if (e->type == U_CFG_UINT || e->type == U_CFG_BYTES) {
		json_object_object_add(o, "min", json_object_new_uint64(e->min));
		json_object_object_add(o, "max", json_object_new_uint64(e->max));
		json_object_object_add(o, "power_of_two", json_object_new_boolean(e->power_of_two));
	}
	if (e->type == U_CFG_ENUM)
		json_object_object_add(o, "words", words_of(e));
}

/* A variable that is set but not in effect was refused. */
static bool refused(enum u_cfg_id id, const char *set)
{
	return set && set[0] && u_cfg_origin(id) == U_CFG_FROM_DEFAULT;
}

static json_object *entry(enum u_cfg_id id)
{
	const struct u_cfg_entry *e = &u_cfg_table[id];
	const char *set = secure_getenv(e->name);
	json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(e->name));
	json_object_object_add(o, "type", json_object_new_string(type_names[e->type]));
	json_object_object_add(o, "default", json_object_new_string(e->fallback));
	json_object_object_add(o, "value", json_object_new_string(u_cfg_str(id)));
	json_object_object_add(o, "origin",
			       json_object_new_string(u_cfg_origin(id) == U_CFG_FROM_ENV
							      ? "environment"
							      : "default"));
	if (refused(id, set))
		json_object_object_add(o, "refused", json_object_new_string(set));
	add_range(o, e);
	json_object_object_add(o, "help", json_object_new_string(e->help));
	return o;
}

json_object *info_env(bool *bad_out)
{
	json_object *a = json_object_new_array();
	int i;

	*bad_out = u_cfg_load() != 0;
	for (i = 0; i < U_CFG_COUNT; i++)
		json_object_array_add(a, entry((enum u_cfg_id)i));
	return a;
}
