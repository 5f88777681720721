/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of the port contract (port.h). */
#ifndef PORT_TYPES_H
#define PORT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port_irq.h"
#include "u_out.h"

#define PORT_NAME_MAX 16
#define PORT_KIND_MAX 48 /* the name of a kind with its NUL, as port_decorate() takes it */
#define PORT_DB_MAX 32	 /* doorbell bits that a port can have; 16 by default */
#define PORT_SPAD_MAX 64 /* scratchpads that a port can have; 8 by default */
#define PORT_PER_HOST 8	 /* ports of one host, `self` included */
#define PORT_ATTACH_FDS 2
#define PORT_VIEW_MAX 256 /* view text with its NUL */

struct port;

/* Does a port read across the link before a ring, as the adapter would let the ring overtake stores? */
enum port_reads_back { PORT_READS_BACK_NO, PORT_READS_BACK_YES, PORT_READS_BACK_UNKNOWN };

struct port_limits {
	char name[PORT_NAME_MAX]; /* "self", "left", "right", ... */
	char kind[PORT_KIND_MAX]; /* "emu", "emu+strict", "cdev", ... */
	uint32_t db_bits;
	uint32_t spads;
	uint64_t window_bytes; /* memory window: the sum of all inbound slices; 0: not known yet */
	uint32_t slice_align;  /* the alignment of slices, a power of two >= 4096 */
	/*
	 * Are the processes at its other end on another machine?  If so, membarrier() does not
	 * reach them.
	 */
	bool far;
	enum port_reads_back reads_back; /* unknown: viaduct.ko is too old to say */
};

/* An inbound slice: memory of this host that the peer may write. */
struct port_slice {
	uint32_t id; /* names it to the peer; unique in one generation of the link */
	int fd;	     /* only a process that has it can map the slice; owned by the caller */
	size_t len;
};

enum port_dir { PORT_INBOUND, PORT_OUTBOUND };

struct port_map {
	void *base; /* inbound: cached memory.  outbound: store only, through `out` */
	size_t len;
	struct u_out out; /* for outbound maps */
	void *priv;	  /* the back end's own */
};

enum port_link { PORT_LINK_DOWN, PORT_LINK_UP };

/*
 * The operations of a back end or a decorator; the functions of those names in port.h describe
 * them.
 */
struct port_ops {
	int (*slice_alloc)(struct port *p, size_t len, struct port_slice *out);
	void (*slice_free)(struct port *p, uint32_t id);
	void (*slice_end)(struct port *p, uint32_t id);				  /* optional */
	int (*slice_share)(struct port *p, int fd, size_t len, uint32_t *id_out); /* optional */
	int (*memory_alloc)(struct port *p, size_t len, struct port_slice *out);  /* optional */
	int (*peer_slice_open)(struct port *p, uint32_t id, size_t len, int *fd_out);
	int (*map)(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out);
	void (*unmap)(struct port *p, struct port_map *map);
	void (*flush)(struct port *p);

	void (*peer_db_ring)(struct port *p, uint32_t bits);
	uint32_t (*db_read)(struct port *p);
	void (*db_clear)(struct port *p, uint32_t bits);
	void (*db_set_mask)(struct port *p, uint32_t bits);
	void (*db_clear_mask)(struct port *p, uint32_t bits);

	uint32_t (*spad_read)(struct port *p, unsigned int idx);
	int (*spad_write)(struct port *p, unsigned int idx, uint32_t v);
	uint32_t (*peer_spad_read)(struct port *p, unsigned int idx);
	int (*peer_spad_write)(struct port *p, unsigned int idx, uint32_t v);

	int (*link_enable)(struct port *p);
	void (*link_disable)(struct port *p);
	enum port_link (*link_state)(struct port *p, uint32_t *generation_out);

	int (*event_fd)(struct port *p); /* optional */
	int (*service)(struct port *p);	 /* optional */

	int (*export_view)(struct port *p, char *text, size_t size, int fds[PORT_ATTACH_FDS],
			   unsigned int *nfds_out);
	void (*view_end)(struct port *p, int fd); /* optional */
	void (*close)(struct port *p);
};

struct port {
	const struct port_ops *ops;
	struct port_limits limits;
	struct port_irq *irq; /* the interrupts of this host's doorbells; shared by its ports */
	struct port *inner;   /* decorators: the port wrapped */
};

#endif
