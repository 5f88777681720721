/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages: the validator.
 *
 * w_ctl_check() copies the message into a private buffer first, so that it checks one state of a
 * message that another host can still change; the caller, too, must copy it before use.  The
 * functions ..._ok() return 1 if the message or part of one is well-formed, else 0.
 */
#include "w_ctl.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "u_base.h"
#include "w_cm.h"
#include "w_slot.h"
#include "w_tool.h"

/* The most by which a slice may be longer than its geometry needs: the alignment of the port. */
#define SLICE_SLACK (4u << 20)

union message {
	struct w_ctl_hdr hdr;
	struct w_hello hello;
	struct w_welcome welcome;
	struct w_port port;
	struct w_connect connect;
	struct w_arrived arrived;
	struct w_accept accept;
	struct w_linked linked;
	struct w_refused refused;
	struct w_lost_msg lost;
	struct w_conn conn;
	struct w_alloc alloc;
	struct w_tell tell;
	struct w_name name;
	struct w_route route;
	struct w_list list;
	struct w_listed listed;
	struct w_counted counted;
	struct w_admin admin;
	struct w_cm cm;
	struct w_cm_tell cm_tell;
	struct w_cm_links cm_links;
	uint8_t bytes[W_CTL_MAX];
};

#define TEXT_OK(field) (memchr((field), 0, sizeof(field)) != NULL)

static int addr_ok(const struct w_addr *a)
{
	return a->disc_len <= W_DISC_MAX;
}

static int attrs_ok(const struct w_vi_attrs *a)
{
	return (a->flags & ~(W_VI_RDMA_WRITE | W_VI_RDMA_READ)) == 0;
}

/* Is it a geometry of this version, and the slice as long as that needs, with at most SLICE_SLACK more?  1 or 0. */
static int geometry_ok(const struct w_geometry *g)
{
	uint64_t need;

	if (!w_geometry_ok(g->slots, g->payload_bytes) || g->db_bit >= W_DB_BITS_MAX ||
	    g->must_fence > 1)
		return 0;
	need = w_slice_bytes(g->slots, g->payload_bytes);
	return g->slice_len >= need && g->slice_len - need <= SLICE_SLACK;
}

static int hello_ok(const union message *m)
{
	return (m->hello.kind == W_KIND_NIC || m->hello.kind == W_KIND_TOOL) &&
	       TEXT_OK(m->hello.program);
}

static int connect_ok(const union message *m)
{
	return addr_ok(&m->connect.local) && addr_ok(&m->connect.remote) &&
	       attrs_ok(&m->connect.attrs);
}

static int accept_ok(const union message *m)
{
	return attrs_ok(&m->accept.attrs);
}

static int port_again_ok(const union message *m)
{
	return m->conn.conn < W_PORTS_MAX;
}

static int any_ok(const union message *m)
{
	return 1;
}

static int alloc_ok(const union message *m)
{
	return m->alloc.status < W_STATUS_MAX;
}

static int tell_ok(const union message *m)
{
	return m->tell.body_len <= W_TELL_MAX;
}

static int name_ok(const union message *m)
{
	return TEXT_OK(m->name.name) && m->name.status < W_STATUS_MAX;
}

static int route_ok(const union message *m)
{
	return m->route.reachable <= 1 && m->route.path <= 3 && TEXT_OK(m->route.host) &&
	       TEXT_OK(m->route.port_name) && TEXT_OK(m->route.reason);
}

static int list_ok(const union message *m)
{
	return m->list.what >= W_LIST_HOSTS && m->list.what < W_LIST_WHAT_MAX;
}

static int admin_ok(const union message *m)
{
	return m->admin.verb >= W_ADMIN_STOP && m->admin.verb <= W_ADMIN_LEAVE &&
	       TEXT_OK(m->admin.name);
}

/* Is a WELCOME well-formed: its ids, geometry and texts?  1 or 0. */
static int welcome_ok(const union message *m)
{
	const struct w_welcome *w = &m->welcome;

	return w->host_id < w->host_count && w->db_bit < W_DB_BITS_MAX &&
	       w->port_count <= W_PORTS_MAX && w_geometry_ok(w->slots, w->payload_bytes) &&
	       TEXT_OK(w->host_name) && TEXT_OK(w->fabric);
}

static int port_ok(const union message *m)
{
	return m->port.index < W_PORTS_MAX && m->port.link_up <= 1 && TEXT_OK(m->port.view);
}

static int arrived_ok(const union message *m)
{
	return m->arrived.conn != 0 && attrs_ok(&m->arrived.attrs) && addr_ok(&m->arrived.remote);
}

/* Is a LINKED or RESUMED well-formed: both geometries, and an id that is not 0?  1 or 0. */
static int linked_ok(const union message *m)
{
	const struct w_linked *l = &m->linked;

	return l->conn != 0 && l->resumable <= 1 && attrs_ok(&l->attrs) &&
	       geometry_ok(&l->inbound) && geometry_ok(&l->outbound) && l->port < W_PORTS_MAX;
}

static int refused_ok(const union message *m)
{
	return m->refused.status < W_STATUS_MAX && TEXT_OK(m->refused.text);
}

static int lost_ok(const union message *m)
{
	return m->lost.reason >= W_LOST_CLOSED && m->lost.reason < W_LOST_MAX;
}

static int listed_ok(const union message *m)
{
	return m->listed.more <= 1 && TEXT_OK(m->listed.text);
}

static int counted_ok(const union message *m)
{
	return TEXT_OK(m->counted.program);
}

static int path_ok(const struct w_path *path)
{
	return path->hops <= W_HOPS_MAX && path->at <= path->hops;
}

/* Is a struct w_cm well-formed?  1 or 0.  Its type decides which fields have to be. */
static int cm_ok(const union message *m)
{
	const struct w_cm *cm = &m->cm;

	if (!path_ok(&cm->path))
		return 0;
	switch (cm->hdr.type) {
	case W_CM_REFUSE:
	case W_CM_CANCEL:
		if (cm->status >= W_STATUS_MAX)
			return 0;
		break;
	case W_CM_CLOSE:
		if (cm->status < W_LOST_CLOSED || cm->status >= W_LOST_MAX)
			return 0;
		break;
	case W_CM_ACCEPT:
	case W_CM_CONFIRM:
		if (!geometry_ok(&cm->geometry) || cm->dst_conn == 0)
			return 0;
		break;
	case W_CM_RESUME:
		if (cm->src_conn == 0 || cm->dst_conn == 0 || cm->status >= W_LOST_MAX)
			return 0;
		break;
	case W_CM_QUERY:
	case W_CM_UNKNOWN:
		if (cm->src_conn == 0 || cm->dst_conn == 0)
			return 0;
		break;
	case W_CM_HEARTBEAT:
		return cm->status <= 1;
	}
	return (cm->src_conn != 0 || cm->dst_conn != 0) && attrs_ok(&cm->attrs) &&
	       addr_ok(&cm->local) && addr_ok(&cm->remote);
}

static int cm_tell_ok(const union message *m)
{
	return m->cm_tell.body_len <= W_TELL_MAX && m->cm_tell.dst_conn != 0 &&
	       path_ok(&m->cm_tell.path);
}

/* Is a link-state update well-formed?  `up` has a bit for each port. */
static int cm_links_ok(const union message *m)
{
	return m->cm_links.up < 1u << W_PORTS_MAX;
}

struct rule {
	uint32_t len;
	int (*ok)(const union message *m);
};

static const struct rule rules[] = {
	[W_HELLO] = { sizeof(struct w_hello), hello_ok },
	[W_LISTEN] = { sizeof(struct w_connect), connect_ok },
	[W_UNLISTEN] = { sizeof(struct w_token), any_ok },
	[W_CONNECT] = { sizeof(struct w_connect), connect_ok },
	[W_PEER] = { sizeof(struct w_connect), connect_ok },
	[W_CANCEL] = { sizeof(struct w_token), any_ok },
	[W_ACCEPT] = { sizeof(struct w_accept), accept_ok },
	[W_REJECT] = { sizeof(struct w_conn), any_ok },
	[W_CONFIRM] = { sizeof(struct w_conn), any_ok },
	[W_CLOSE] = { sizeof(struct w_conn), any_ok },
	[W_ALLOC] = { sizeof(struct w_alloc), alloc_ok },
	[W_FREE] = { sizeof(struct w_alloc), alloc_ok },
	[W_TELL] = { sizeof(struct w_tell), tell_ok },
	[W_NAME] = { sizeof(struct w_name), name_ok },
	[W_ADDR_NAME] = { sizeof(struct w_name), name_ok },
	[W_ROUTE] = { sizeof(struct w_route), route_ok },
	[W_LIST] = { sizeof(struct w_list), list_ok },
	[W_ADMIN] = { sizeof(struct w_admin), admin_ok },
	[W_COUNT] = { sizeof(struct w_count), any_ok },
	[W_COUNTED] = { sizeof(struct w_counted), counted_ok },
	[W_PORT_AGAIN] = { sizeof(struct w_conn), port_again_ok },
	[W_SUSPENDED] = { sizeof(struct w_suspended), any_ok },
	[W_SUSPEND] = { sizeof(struct w_conn), any_ok },
	[W_RESUMED] = { sizeof(struct w_linked), linked_ok },
	[W_WELCOME] = { sizeof(struct w_welcome), welcome_ok },
	[W_PORT] = { sizeof(struct w_port), port_ok },
	[W_UNLISTENED] = { sizeof(struct w_token), any_ok },
	[W_ARRIVED] = { sizeof(struct w_arrived), arrived_ok },
	[W_LINKED] = { sizeof(struct w_linked), linked_ok },
	[W_REFUSED] = { sizeof(struct w_refused), refused_ok },
	[W_LOST] = { sizeof(struct w_lost_msg), lost_ok },
	[W_ALLOCATED] = { sizeof(struct w_alloc), alloc_ok },
	[W_TOLD] = { sizeof(struct w_tell), tell_ok },
	[W_NAMED] = { sizeof(struct w_name), name_ok },
	[W_ROUTED] = { sizeof(struct w_route), route_ok },
	[W_LISTED] = { sizeof(struct w_listed), listed_ok },
	[W_DONE] = { sizeof(struct w_refused), refused_ok },
	[W_CM_REQ] = { sizeof(struct w_cm), cm_ok },
	[W_CM_REFUSE] = { sizeof(struct w_cm), cm_ok },
	[W_CM_ACCEPT] = { sizeof(struct w_cm), cm_ok },
	[W_CM_CONFIRM] = { sizeof(struct w_cm), cm_ok },
	[W_CM_CANCEL] = { sizeof(struct w_cm), cm_ok },
	[W_CM_CLOSE] = { sizeof(struct w_cm), cm_ok },
	[W_CM_PEER] = { sizeof(struct w_cm), cm_ok },
	[W_CM_PEER_CANCEL] = { sizeof(struct w_cm), cm_ok },
	[W_CM_TELL] = { sizeof(struct w_cm_tell), cm_tell_ok },
	[W_CM_HEARTBEAT] = { sizeof(struct w_cm), cm_ok },
	[W_CM_LINKS] = { sizeof(struct w_cm_links), cm_links_ok },
	[W_CM_RESUME] = { sizeof(struct w_cm), cm_ok },
	[W_CM_QUERY] = { sizeof(struct w_cm), cm_ok },
	[W_CM_UNKNOWN] = { sizeof(struct w_cm), cm_ok },
};

int w_ctl_check(const void *msg, uint32_t len)
{
	const struct rule *rule;
	union message m;

	if (len < sizeof(m.hdr) || len > sizeof(m))
		return -EPROTO;
	memcpy(&m, msg, len);
	if (m.hdr.magic != W_CTL_MAGIC)
		return -EPROTO;
	if (m.hdr.version != W_CTL_VERSION)
		return -EPROTONOSUPPORT;
	if (m.hdr.type >= U_ARRAY_SIZE(rules))
		return -EPROTO;
	rule = &rules[m.hdr.type];
	if (rule->ok == NULL || rule->len != len || m.hdr.len != len || m.hdr.reserved != 0)
		return -EPROTO;
	return rule->ok(&m) ? m.hdr.type : -EPROTO;
}

void w_ctl_init(void *msg, enum w_ctl_type type, uint32_t len)
{
	struct w_ctl_hdr hdr = {
		.magic = W_CTL_MAGIC,
		.version = W_CTL_VERSION,
		.type = (uint16_t)type,
		.len = len,
	};

	memcpy(msg, &hdr, sizeof(hdr));
}

/* Returns a text for people; "unknown status" for a number that is none. */
const char *w_status_text(enum w_status status)
{
	static const char *const texts[W_STATUS_MAX] = {
		[W_SUCCESS] = "done",
		[W_NO_MATCH] = "nobody waits at that address",
		[W_REJECTED] = "the server rejected the connection",
		[W_TIMED_OUT] = "the request timed out or was withdrawn",
		[W_NOT_REACHABLE] = "the host cannot be reached",
		[W_NO_RESOURCE] = "no window memory, descriptors or table space left",
		[W_BAD_STATE] = "not in a state that allows it",
		[W_BAD_RELIABILITY] = "the reliability levels of the two VIs differ",
		[W_BAD_MTU] = "the maximum transfer sizes of the two VIs differ",
		[W_BAD_QOS] = "the qualities of service of the two VIs differ",
		[W_UNKNOWN_NAME] = "no such name",
		[W_DENIED] = "not allowed",
		[W_BAD_VERSION] = "another version of the control protocol",
		[W_BAD_REQUEST] = "the request makes no sense",
	};

	if ((unsigned int)status >= W_STATUS_MAX)
		return "unknown status";
	return texts[status];
}
