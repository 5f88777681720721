/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside vi_port: a port that this process has as its agent, and what the commands do with it. */
#ifndef PT_H
#define PT_H

#include "port_cdev.h"
#include "port_emu.h"
#include "u_base.h"

enum { EXIT_OK = 0, EXIT_FAIL = 1, EXIT_USAGE = 2 };

struct pt_options {
	double timeout; /* seconds; 0: without end */
	unsigned long bytes;
	bool peer;
	bool serve;
	double seconds; /* below 0: not given */
	const char *json;
};

struct pt_port {
	const char *device;
	const char *cable;	    /* emulated: the name of the cable; NULL of an adapter */
	struct port *port;	    /* with the decorators that the device names */
	struct port_emu_host *host; /* its doorbells */
	int adapter;		    /* a second descriptor of the adapter; -1: emulated */
	double timeout;
	int64_t deadline;
};

/* One line on standard error.  Returns EXIT_FAIL or EXIT_USAGE. */
int U_PRINTF(1, 2) pt_fail(const char *fmt, ...);
int U_PRINTF(1, 2) pt_usage(const char *fmt, ...);
/* The meaning of an error number, in words. */
const char *pt_error(int err);

/* A decimal number or one that begins with 0x.  0, or -EINVAL. */
int pt_number(const char *text, uint64_t max, uint64_t *out);

/* Joins two processes of one user that name the same cable.  0, -ETIMEDOUT, -EPERM, -errno. */
int pt_cable(const char *name, int64_t deadline, int *fd_out);

/* These say what is wrong, and return EXIT_OK or another exit status. */
int pt_open(struct pt_port *t, const char *device, double timeout);
void pt_close(struct pt_port *t);
int pt_enable(struct pt_port *t);
/* Enables the link and waits until it is up. */
int pt_up(struct pt_port *t);

/* A cable whose other end has gone is joined to the next process.  0 or -errno. */
int pt_replug(struct pt_port *t);
bool pt_is_up(struct pt_port *t, uint32_t *generation_out);
uint32_t pt_all_bits(const struct pt_port *t);
/* Serves the port, then sleeps for a moment, or until a doorbell.  0, or -ETIMEDOUT. */
int pt_step(struct pt_port *t, uint32_t ticket);

int pt_list(void);

/* The commands; NULL: the argument is not there. */
int pt_link(struct pt_port *t, const char *what);
int pt_spad(struct pt_port *t, bool peer, const char *index, const char *value);
int pt_ring(struct pt_port *t, const char *bits);
int pt_listen(struct pt_port *t, const char *bits);

/* Bytes that depend on a seed and on their place. */
void pt_pattern(void *buf, size_t len, uint32_t seed);
/* How many bytes differ from the pattern, and where the first is. */
int pt_verify(const void *buf, size_t len, uint32_t seed, size_t *wrong_out, size_t *first_out);

#define PT_BYTES_MAX (UINT32_C(1) << 30)
int pt_transfer(struct pt_port *t, bool serves, size_t bytes);

int pt_selftest(struct pt_port *t, bool serves, double seconds, const char *json);
/* Both ends, on an emulated port of this kind. */
int pt_selftest_alone(const char *kind, double timeout, double seconds, const char *json);
/* Is it the kind of an emulated port, without the name of a cable? */
bool pt_is_kind(const char *device);

#endif
