/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures: a line each, or one JSON document at the end. */
#include <json-c/json.h>
#include <stdio.h>

#include "scale.h"

#define SCHEMA "viaduct.scale"

static json_object *results;

void sc_out_begin(void)
{
	results = json_object_new_array();
}

void sc_out_end(void)
{
	json_object_put(results);
}

void sc_emit(const struct sc_config *cfg, const char *test, const char *variant, uint64_t n,
	     double value, const char *unit)
{
	json_object *o;

	if (!cfg->json) {
		printf("%-10s %-28s %12llu %14.2f %s\n", test, variant, (unsigned long long)n,
		       value, unit);
		fflush(stdout);
		return;
	}
	o = json_object_new_object();
	json_object_object_add(o, "test", json_object_new_string(test));
	json_object_object_add(o, "variant", json_object_new_string(variant));
	json_object_object_add(o, "n", json_object_new_int64((int64_t)n));
	json_object_object_add(o, "value", json_object_new_double(value));
	json_object_object_add(o, "unit", json_object_new_string(unit));
	json_object_array_add(results, o);
}

void sc_print_document(void)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "schema", json_object_new_string(SCHEMA));
	json_object_object_add(o, "schema_version", json_object_new_int(1));
	json_object_object_add(o, "tool", json_object_new_string("vi_scale"));
	json_object_object_add(o, "version", json_object_new_string(VIADUCT_VERSION));
	json_object_object_add(o, "results", json_object_get(results));
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}
