/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring_row.h"

#include <stdio.h>

json_object *ring_row_new(const struct ring_row *r)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "experiment", json_object_new_string(r->experiment));
	json_object_object_add(o, "kind", json_object_new_string(r->kind));
	json_object_object_add(o, "hosts", json_object_new_int64(r->hosts));
	json_object_object_add(o, "threads", json_object_new_int64(r->threads));
	json_object_object_add(o, "links", json_object_new_int64(r->links));
	json_object_object_add(o, "bytes", json_object_new_int64((int64_t)r->bytes));
	json_object_object_add(o, "value", json_object_new_double(r->value));
	json_object_object_add(o, "unit", json_object_new_string(r->unit));
	if (r->rate != 0)
		json_object_object_add(o, "rate", json_object_new_double(r->rate));
	return o;
}

void ring_row_print(json_object *o)
{
	puts(json_object_to_json_string(o));
	json_object_put(o);
}
