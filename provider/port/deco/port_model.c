/* SPDX-License-Identifier: BSD-2-Clause */
/* model: stores and doorbells arrive when a link of the profile would have carried them. */
#include "port_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port_deco.h"
#include "port_model_priv.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_thread.h"
#include "u_time.h"

#define MODEL_NAME_MAX 32u

/* ---- registers ---- */

/*
 * A read across the link pushes the stores posted before it; the answer comes a latency later.  Takes the lock,
 * and returns when the answer is there.
 */
static void read_across(struct model *m)
{
	int64_t end;

	pthread_mutex_lock(&m->lock);
	end = model_reserve(m->link, model_work_until(&m->time, 0), 0);
	model_drain(m);
	pthread_mutex_unlock(&m->lock);
	model_wait_until(&m->time, model_lands_at(&m->time, model_lands_at(&m->time, end)));
}

/* Waits as long as a read across the link takes, and until all stores have landed; not for `self`. */
static void model_flush(struct port *p)
{
	struct model *m = model_of(p);

	if (!m->self)
		read_across(m);
	port_flush(p->inner);
}

/*
 * Queues a ring or a write of a scratchpad of the peer, for which the calling thread is busy; waits while the
 * queue is full.  It is lost when the process cannot have a thread.  Takes the lock.
 */
static void post_register(struct model *m, enum model_kind kind, uint32_t n, uint32_t word)
{
	enum model_queue q = kind == MODEL_RING ? MODEL_RINGS : MODEL_STORES;
	struct model_item *item;
	int64_t end;

	model_spend(&m->time, m->time.profile->register_write_ns);
	pthread_mutex_lock(&m->lock);
	item = model_claim(m, q);
	if (item != NULL) {
		end = model_reserve(m->link, model_busy(), model_send_ns(&m->time, sizeof(word)));
		item->due = kind == MODEL_RING ? model_interrupts_at(&m->time, end)
					       : model_lands_at(&m->time, end);
		item->kind = kind;
		item->n = n;
		item->word = word;
		m->combining = false;
		model_commit(m, q);
	}
	pthread_mutex_unlock(&m->lock);
}

/* Rings later, after the stores before it have landed, for `self` at once; lost while the link is down. */
static void model_ring(struct port *p, uint32_t bits)
{
	struct model *m = model_of(p);

	if (m->self)
		port_peer_db_ring(p->inner, bits);
	else if (port_link_state(p->inner, NULL) == PORT_LINK_UP)
		post_register(m, MODEL_RING, bits, 0);
}

/* Takes the time of a register read, except for `self`. */
static uint32_t model_spad_read(struct port *p, unsigned int idx)
{
	struct model *m = model_of(p);

	if (!m->self)
		model_spend(&m->time, m->time.profile->register_read_ns);
	return port_spad_read(p->inner, idx);
}

/* Takes the time of a register write, except for `self`. */
static int model_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	struct model *m = model_of(p);

	if (!m->self)
		model_spend(&m->time, m->time.profile->register_write_ns);
	return port_spad_write(p->inner, idx, v);
}

/* In an agent, and not for `self`, first waits as model_flush() does. */
static uint32_t model_peer_spad_read(struct port *p, unsigned int idx)
{
	struct model *m = model_of(p);

	if (!m->self && m->fd >= 0)
		read_across(m);
	return port_peer_spad_read(p->inner, idx);
}

/*
 * In an agent, and not for `self`, the write arrives later, after the stores before it; -EINVAL and -ENOTCONN
 * are found at once.
 */
static int model_peer_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	struct model *m = model_of(p);

	if (m->self || m->fd < 0)
		return port_peer_spad_write(p->inner, idx, v);
	if (idx >= p->limits.spads)
		return -EINVAL;
	if (port_link_state(p->inner, NULL) != PORT_LINK_UP)
		return -ENOTCONN;
	post_register(m, MODEL_SPAD, idx, v);
	return 0;
}

/* ---- making and ending ---- */

/* Adds the model and its descriptor to the view; a client, which has none, passes the call on. */
static int model_export(struct port *p, char *text, size_t size, int fds[PORT_ATTACH_FDS],
			unsigned int *nfds_out)
{
	struct model *m = model_of(p);
	char segment[MODEL_NAME_MAX + 48];
	int err;

	if (m->fd < 0)
		return port_export_view(p->inner, text, size, fds, nfds_out);
	snprintf(segment, sizeof(segment), "model profile=%s dilation=%" PRIu32,
		 m->time.profile->name, m->time.dilation);
	err = deco_export(p, segment, text, size, fds, nfds_out);
	if (err != 0)
		return err;
	if (*nfds_out == PORT_ATTACH_FDS)
		return -ENOSPC;
	fds[(*nfds_out)++] = m->fd;
	return 0;
}

/* Frees a model, which may be made in part and has no thread.  The port below stays open. */
static void model_free(struct model *m)
{
	for (unsigned int q = 0; q < MODEL_QUEUES; q++)
		free(m->fifo[q].items);
	pthread_cond_destroy(&m->landed);
	pthread_cond_destroy(&m->work);
	pthread_mutex_destroy(&m->lock);
	if (m->link != NULL)
		munmap(m->link, sizeof(*m->link));
	if (m->fd >= 0)
		close(m->fd);
	free(m);
}

/* Waits until all stores have landed, ends the thread, and closes the port below, too. */
static void model_close(struct port *p)
{
	struct model *m = model_of(p);
	bool started;

	pthread_mutex_lock(&m->lock);
	started = m->started;
	if (started)
		model_drain(m);
	m->stop = true;
	pthread_cond_signal(&m->work);
	pthread_mutex_unlock(&m->lock);
	if (started)
		u_thread_join(m->thread);
	port_close(p->inner);
	model_free(m);
}

static const struct port_ops model_ops = {
	.slice_alloc = deco_slice_alloc,
	.slice_free = deco_slice_free,
	.slice_share = deco_slice_share,
	.memory_alloc = deco_memory_alloc,
	.peer_slice_open = deco_peer_slice_open,
	.map = model_map,
	.unmap = model_unmap,
	.flush = model_flush,
	.peer_db_ring = model_ring,
	.db_read = deco_db_read,
	.db_clear = deco_db_clear,
	.db_set_mask = deco_db_set_mask,
	.db_clear_mask = deco_db_clear_mask,
	.spad_read = model_spad_read,
	.spad_write = model_spad_write,
	.peer_spad_read = model_peer_spad_read,
	.peer_spad_write = model_peer_spad_write,
	.link_enable = deco_link_enable,
	.link_disable = deco_link_disable,
	.link_state = deco_link_state,
	.event_fd = deco_event_fd,
	.service = deco_service,
	.export_view = model_export,
	.close = model_close,
};

/* Initialises the lock and both conditions.  0 or -errno. */
static int init_conds(struct model *m)
{
	pthread_condattr_t attr;
	int err = -pthread_condattr_init(&attr);

	if (err != 0)
		return err;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->work, &attr);
	pthread_cond_init(&m->landed, NULL);
	pthread_condattr_destroy(&attr);
	return 0;
}

/* Maps the state of the link, which processes share.  -EINVAL: the descriptor has less. */
static int map_link(struct model *m, int fd)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) != 0 || st.st_size < (off_t)sizeof(*m->link))
		return -EINVAL;
	at = mmap(NULL, sizeof(*m->link), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	m->link = at;
	return 0;
}

/* Makes the model of that port, without its link and its descriptor.  0 or -errno. */
static int model_new(struct port *inner, const struct model_time *time, struct model **out)
{
	struct model *m = calloc(1, sizeof(*m));
	int err;

	if (m == NULL)
		return -ENOMEM;
	err = init_conds(m);
	if (err != 0) {
		free(m);
		return err;
	}
	m->fd = -1;
	m->time = *time;
	m->self = strcmp(inner->limits.name, "self") == 0;
	deco_init(&m->port, &model_ops, "model", inner);
	*out = m;
	return 0;
}

/* Makes a page of zeros in memory that keeps its size, for all processes of the port.  0 or -errno. */
static int sealed_page(int *fd_out)
{
	int fd = u_fd_above_std(memfd_create("viaduct-model", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	int err = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, 4096) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		err = -errno;
	if (err != 0)
		close(fd);
	else
		*fd_out = fd;
	return err;
}

uint32_t port_model_dilation_max(const struct port_model_profile *profile)
{
	return model_dilation_max(profile, PORT_MODEL_DILATION_MAX);
}

/* Finds the profile, and reads the dilation, 1 to the greatest that it allows; NULL: 1.  False: there is none. */
static bool time_parse(const char *name, const char *dilation, struct model_time *out)
{
	const struct port_model_profile *profile = port_model_profile_find(name);
	char *end = NULL;
	unsigned long factor = 1;

	if (profile == NULL)
		return false;
	if (dilation != NULL) {
		factor = *dilation >= '0' && *dilation <= '9' ? strtoul(dilation, &end, 10) : 0;
		if (factor == 0 || factor > port_model_dilation_max(profile) || *end != '\0')
			return false;
	}
	out->dilation = (uint32_t)factor;
	out->profile = profile;
	return true;
}

/* Parses PROFILE or PROFILE:DILATION; "" is gen3x8.  False: they are malformed or unknown. */
static bool options_parse(const char *options, struct model_time *out)
{
	char copy[MODEL_NAME_MAX];
	char *dilation;

	if (strlen(options) >= sizeof(copy))
		return false;
	memcpy(copy, options, strlen(options) + 1);
	dilation = strchr(copy, ':');
	if (dilation != NULL)
		*dilation++ = '\0';
	return time_parse(*options != '\0' ? copy : "gen3x8", dilation, out);
}

int port_model_check(const char *options)
{
	struct model_time time;

	return options_parse(options, &time) ? 0 : -EINVAL;
}

int port_model_wrap(struct port *inner, const char *options, struct port **out)
{
	char names[PORT_MODEL_NAMES_MAX];
	struct model_time time;
	struct model *m;
	int err = port_ops_check(&model_ops);

	if (err == 0 && !options_parse(options, &time)) {
		u_error("port",
			"a model PROFILE[:DILATION] was sought, \"%s\" is none; use one of %s, with a "
			"dilation of up to %u, less on slow links",
			options, port_model_profile_names(names), PORT_MODEL_DILATION_MAX);
		return -EINVAL;
	}
	if (err == 0)
		err = model_new(inner, &time, &m);
	if (err != 0)
		return err;
	err = sealed_page(&m->fd);
	if (err == 0)
		err = map_link(m, m->fd);
	if (err != 0) {
		model_free(m);
		return err;
	}
	*out = &m->port;
	return 0;
}

int port_model_attach(struct port *inner, const char *segment, int fd, struct port **out)
{
	char name[MODEL_NAME_MAX];
	char dilation[16];
	struct model_time time;
	struct model *m;
	int end = 0;
	int err;

	if (sscanf(segment, "model profile=%31s dilation=%15s%n", name, dilation, &end) != 2 ||
	    segment[end] != '\0' || !time_parse(name, dilation, &time))
		return -EINVAL;
	err = model_new(inner, &time, &m);
	if (err != 0)
		return err;
	err = map_link(m, fd);
	if (err != 0) {
		model_free(m);
		return err;
	}
	*out = &m->port;
	return 0;
}

/* ---- for programs that charge their own work ---- */

/* Returns the times of the model among the port's decorators; NULL: there is none. */
static const struct model_time *time_of(struct port *p)
{
	while (p != NULL && p->ops != &model_ops)
		p = p->inner;
	return p != NULL ? &model_of(p)->time : NULL;
}

const struct port_model_profile *port_model_profile(struct port *p)
{
	const struct model_time *t = time_of(p);

	return t != NULL ? t->profile : NULL;
}

uint32_t port_model_dilation(struct port *p)
{
	const struct model_time *t = time_of(p);

	return t != NULL ? t->dilation : 1;
}

int64_t port_model_now_ns(struct port *p)
{
	const struct model_time *t = time_of(p);
	int64_t now = u_now_ns();

	return t == NULL ? now : (model_busy() > now ? model_busy() : now) / t->dilation;
}

void port_model_spend(struct port *p, int64_t ns)
{
	const struct model_time *t = time_of(p);

	if (t != NULL)
		model_spend(t, ns);
}

void port_model_copy(struct port *p, void *dst, const void *src, size_t n)
{
	const struct model_time *t = time_of(p);

	memcpy(dst, src, n);
	if (t != NULL)
		model_spend(t, model_copy_ns(t->profile, n));
}
