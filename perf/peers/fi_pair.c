/* SPDX-License-Identifier: BSD-2-Clause */
/* pair.h over tagged messages of libfabric, whose provider is shm: the program starts the other process itself. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define TAG 1
#define NAME_MAX_BYTES 512

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *sent, *received;
static struct fid_ep *ep;
static fi_addr_t other;
static struct fi_context contexts[PAIR_WINDOW];
static pid_t child;
static bool done;

static void check(const char *what, long rc)
{
	if (rc == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-rc));
	exit(1);
}

/* ---- the endpoint -------------------------------------------------------------------------------------------- */

static void choose_provider(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		check("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup("shm");
	check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
}

static void open_endpoint(void)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr table = { .type = FI_AV_TABLE, .count = 2 };

	choose_provider();
	check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	check("fi_domain", fi_domain(fabric, info, &domain, NULL));
	check("fi_av_open", fi_av_open(domain, &table, &av, NULL));
	check("fi_cq_open", fi_cq_open(domain, &cq, &sent, NULL));
	check("fi_cq_open", fi_cq_open(domain, &cq, &received, NULL));
	check("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
	check("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
	check("fi_ep_bind", fi_ep_bind(ep, &sent->fid, FI_TRANSMIT));
	check("fi_ep_bind", fi_ep_bind(ep, &received->fid, FI_RECV));
	check("fi_enable", fi_enable(ep));
}

static void find_other(int sock)
{
	char mine[NAME_MAX_BYTES], theirs[NAME_MAX_BYTES];
	size_t len = sizeof(mine);

	memset(mine, 0, sizeof(mine));
	check("fi_getname", fi_getname(&ep->fid, mine, &len));
	if (send(sock, mine, sizeof(mine), MSG_NOSIGNAL) != (ssize_t)sizeof(mine) ||
	    recv(sock, theirs, sizeof(theirs), MSG_WAITALL) != (ssize_t)sizeof(theirs))
		check("the other process", -FI_ECONNABORTED);
	if (fi_av_insert(av, theirs, 1, &other, 0, NULL) != 1)
		check("fi_av_insert", -FI_EINVAL);
}

/* The process that ends early ends the other one, which would wait for it. */
static void end_other(void)
{
	if (!done)
		kill(child > 0 ? child : getppid(), SIGTERM);
}

const char *pair_version(void)
{
	int any = 0; /* not read */
	const char *text = fi_tostr(&any, FI_TYPE_VERSION);

	return text ? text : "";
}

int pair_open(int *argc, char ***argv)
{
	int socks[2], rank;

	(void)argc;
	(void)argv;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, socks) != 0) {
		perror("socketpair");
		exit(1);
	}
	fflush(stdout);
	child = fork();
	if (child < 0) {
		perror("fork");
		exit(1);
	}
	rank = child == 0;
	if (rank == 1)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	atexit(end_other);
	close(socks[!rank]);
	open_endpoint();
	find_other(socks[rank]);
	close(socks[rank]);
	return rank;
}

void pair_close(void)
{
	int status;

	done = true;
	fi_close(&ep->fid);
	fi_close(&sent->fid);
	fi_close(&received->fid);
	fi_close(&av->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	if (child > 0 && waitpid(child, &status, 0) == child && status != 0)
		exit(1);
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

/* Progress of all operations; how many of those that the queue tells about are done. */
static int progress(struct fid_cq *cq)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_entry done[PAIR_WINDOW];
	ssize_t n = fi_cq_read(cq, done, PAIR_WINDOW);

	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) > 0)
		n = -error.err;
	if (n < 0)
		check("an operation", n);
	return (int)n;
}

static ssize_t post(bool sends, void *buf, int size, void *context)
{
	return sends ? fi_tsend(ep, buf, (size_t)size, NULL, other, TAG, context)
		     : fi_trecv(ep, buf, (size_t)size, NULL, other, TAG, 0, context);
}

/* Posts `count` operations as there is room, until all are done. */
static void do_many(bool sends, void *buf, int size, int count)
{
	int posted = 0, completed = 0;
	ssize_t rc;

	while (completed < count) {
		rc = -FI_EAGAIN;
		if (posted < count)
			rc = post(sends, buf, size, &contexts[posted]);
		if (rc == 0)
			posted++;
		else if (rc == -FI_EAGAIN)
			completed += progress(sends ? sent : received);
		else
			check("posting an operation", rc);
	}
}

void pair_send_many(const void *buf, int size, int count)
{
	do_many(true, (void *)buf, size, count);
}

void pair_recv_many(void *buf, int size, int count)
{
	do_many(false, buf, size, count);
}

void pair_send(const void *buf, int size)
{
	ssize_t rc;

	if ((size_t)size > info->tx_attr->inject_size) {
		pair_send_many(buf, size, 1);
		return;
	}
	/* No queue tells about these. */
	while ((rc = fi_tinject(ep, buf, (size_t)size, other, TAG)) == -FI_EAGAIN)
		progress(received);
	check("fi_tinject", rc);
}

void pair_recv(void *buf, int size)
{
	pair_recv_many(buf, size, 1);
}
