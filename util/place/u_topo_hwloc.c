/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the topology by hwloc.  Inline functions of its headers call functions that this file does not load, so it
 * uses none of them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <hwloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "u_topo_read.h"

#define LIBRARY "libhwloc.so.15"
#define SERIES 2 /* of its interface */

/* The functions of hwloc that this file calls. */
struct hwloc {
	void *library;
	__typeof__(hwloc_get_api_version) *api_version;
	__typeof__(hwloc_topology_init) *init;
	__typeof__(hwloc_topology_set_flags) *set_flags;
	__typeof__(hwloc_topology_set_synthetic) *set_synthetic;
	__typeof__(hwloc_topology_load) *load;
	__typeof__(hwloc_topology_destroy) *destroy;
	__typeof__(hwloc_get_type_depth) *type_depth;
	__typeof__(hwloc_get_nbobjs_by_depth) *count;
	__typeof__(hwloc_get_obj_by_depth) *object;
	__typeof__(hwloc_bitmap_first) *first;
};

/* Writes the error line, and returns `rc`. */
static int __attribute__((format(printf, 3, 4)))
fail(int rc, char error[U_TOPO_ERROR], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, U_TOPO_ERROR, format, args);
	va_end(args);
	return rc;
}

/* Looks up the functions of the library. 0; or -ENOENT with a line: one is missing, or its interface is another. */
static int find(struct hwloc *h, char error[U_TOPO_ERROR])
{
	const struct {
		const char *name;
		void *into;
	} functions[] = {
		{ "hwloc_get_api_version", &h->api_version },
		{ "hwloc_topology_init", &h->init },
		{ "hwloc_topology_set_flags", &h->set_flags },
		{ "hwloc_topology_set_synthetic", &h->set_synthetic },
		{ "hwloc_topology_load", &h->load },
		{ "hwloc_topology_destroy", &h->destroy },
		{ "hwloc_get_type_depth", &h->type_depth },
		{ "hwloc_get_nbobjs_by_depth", &h->count },
		{ "hwloc_get_obj_by_depth", &h->object },
		{ "hwloc_bitmap_first", &h->first },
	};
	void *at;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		at = dlsym(h->library, functions[i].name);
		if (at == NULL)
			return fail(-ENOENT, error, "%s has no %s", LIBRARY, functions[i].name);
		memcpy(functions[i].into, &at, sizeof(at));
	}
	if (h->api_version() >> 16 != SERIES)
		return fail(-ENOENT, error, "%s has interface %x instead of %d", LIBRARY,
			    h->api_version() >> 16, SERIES);
	return 0;
}

/*
 * Loads hwloc, for the caller to dlclose() h->library. 0; or -ENOENT with a line, and closed. The library is never
 * unmapped, since hwloc loads libraries of devices that fail when they are unmapped.
 */
static int load(struct hwloc *h, char error[U_TOPO_ERROR])
{
	int rc;

	h->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (h->library == NULL)
		return fail(-ENOENT, error, "%.90s; install hwloc (Debian: libhwloc15)", dlerror());
	rc = find(h, error);
	if (rc != 0)
		dlclose(h->library);
	return rc;
}

/* Is it a cache of level 2 to 5? */
static bool is_shared_cache(hwloc_obj_type_t type)
{
	return type >= HWLOC_OBJ_L2CACHE && type <= HWLOC_OBJ_L5CACHE;
}

/* Describes a processor.  On the way up from it the last cache below the package is the largest. */
static void describe(const struct hwloc *h, hwloc_obj_t pu, int index, struct u_topo_cpu *cpu)
{
	hwloc_obj_t o;

	*cpu = (struct u_topo_cpu){
		.os = (int)pu->os_index,
		.core = index,
		.cache = U_TOPO_NONE,
		.package = 0,
		.node = pu->nodeset != NULL ? h->first(pu->nodeset) : U_TOPO_NONE,
	};
	for (o = pu->parent; o != NULL; o = o->parent) {
		if (o->type == HWLOC_OBJ_CORE)
			cpu->core = (int)o->logical_index;
		if (is_shared_cache(o->type)) {
			cpu->cache = (int)o->logical_index;
			cpu->cache_level = 1 + (int)(o->type - HWLOC_OBJ_L1CACHE);
		}
		if (o->type == HWLOC_OBJ_PACKAGE) {
			cpu->package = (int)o->logical_index;
			break;
		}
	}
}

/* Makes *out, for free(), from what hwloc has found. 0; or -EIO or -ENOMEM with a line. */
static int copy(const struct hwloc *h, hwloc_topology_t topology, struct u_topo **out,
		char error[U_TOPO_ERROR])
{
	int depth = h->type_depth(topology, HWLOC_OBJ_PU);
	int i, n = depth >= 0 ? (int)h->count(topology, depth) : 0;
	struct u_topo *topo;

	if (n == 0)
		return fail(-EIO, error, "hwloc finds no processors");
	topo = calloc(1, sizeof(*topo) + (size_t)n * sizeof(topo->cpus[0]));
	if (topo == NULL)
		return fail(-ENOMEM, error, "no memory for the topology of %d processor%s", n,
			    n == 1 ? "" : "s");
	topo->count = n;
	for (i = 0; i < n; i++)
		describe(h, h->object(topology, depth, (unsigned int)i), i, &topo->cpus[i]);
	*out = topo;
	return 0;
}

/* Includes processors that are online but that the process may not use; and keeps hwloc from moving the thread. */
static void set_flags(const struct hwloc *h, hwloc_topology_t topology)
{
	unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;

#if HWLOC_API_VERSION >= 0x00020500
	if (h->set_flags(topology, flags | HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING) == 0)
		return;
#endif
	h->set_flags(topology, flags);
}

/* As u_topo_read(), by a library that is loaded. */
static int read_topology(const struct hwloc *h, const char *synthetic, struct u_topo **out,
			 char error[U_TOPO_ERROR])
{
	hwloc_topology_t topology;
	int rc = -EIO;

	if (h->init(&topology) != 0)
		return fail(-ENOMEM, error, "hwloc has no memory");
	set_flags(h, topology);
	if (synthetic != NULL && h->set_synthetic(topology, synthetic) != 0)
		rc = fail(-EINVAL, error, "hwloc cannot make a machine of '%.80s'", synthetic);
	else if (h->load(topology) != 0)
		rc = fail(-EIO, error, "hwloc cannot read this machine: %s", strerror(errno));
	else
		rc = copy(h, topology, out, error);
	h->destroy(topology);
	return rc;
}

int u_topo_read(const char *synthetic, struct u_topo **out, char error[U_TOPO_ERROR])
{
	struct hwloc h;
	int rc = load(&h, error);

	if (rc != 0)
		return rc;
	rc = read_topology(&h, synthetic, out, error);
	dlclose(h.library);
	return rc;
}
