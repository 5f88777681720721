/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * echo_server - one thread answers many clients through one completion queue.
 *
 *	echo_server [--max N] [--until N]	serve at most --max clients at a time,
 *						leave after --until clients were served
 *	echo_server --client HOST [-n CLIENTS] [-c COUNT] [-s SIZE]
 *						CLIENTS clients send COUNT messages each
 *
 * Server: an acceptor thread waits for connections, each time briefly, so that it
 * notices when it has to end, and makes a VI for each.  Both queues of every VI
 * complete to one CQ, on which the main thread sleeps.  A client owns SLOTS
 * buffers.  Each is posted as a receive, completes with a message, is posted as
 * a send, completes, and is posted as a receive again.  When the client leaves,
 * the VI enters the error state, so every buffer completes with an error; with
 * the last of them the server frees the client's memory.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <vipl.h>
#include <vipl_ext.h>

#define SLOTS 4
#define MESSAGE_MAX 4096
#define SERVICE "echo"

union address {
	VIP_NET_ADDRESS addr;
	char room[sizeof(VIP_NET_ADDRESS) + 128];
};

struct client;

struct slot {
	VIP_DESCRIPTOR desc; /* first: a descriptor is its slot */
	struct client *client;
	char data[MESSAGE_MAX];
	char pad[64 - sizeof(void *)];
};
_Static_assert(sizeof(struct slot) % VIP_DESCRIPTOR_ALIGNMENT == 0, "slots stay aligned");

struct client {
	struct slot slot[SLOTS];
	pthread_mutex_t joining; /* held while the acceptor still uses the VI */
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE mem;
	unsigned int posted; /* slots that are posted */
};

struct server {
	VIP_NIC_HANDLE nic;
	VIP_CQ_HANDLE cq;
	union address here;
	unsigned long max, until;
	atomic_ulong active, served;
};

/* The attributes of every VI; VipCreateVi() only reads them. */
static VIP_VI_ATTRIBUTES vi_attributes = { .ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
					   .MaxTransferSize = MESSAGE_MAX };
static atomic_bool stop;

static void on_signal(int sig)
{
	atomic_store(&stop, true);
}

/* The server notices a client that leaves by its flushed descriptors; this has nothing to do. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {}

static int failed(const char *call, VIP_RETURN rc)
{
	fprintf(stderr, "echo_server: %s answered %s; vi_info shows hosts and limits\n", call,
		VipxErrorString(rc));
	return 1;
}

static int open_nic(VIP_NIC_HANDLE *nic, union address *here)
{
	VIP_NIC_ATTRIBUTES attrs;
	VIP_RETURN rc = VipOpenNic("nic0", nic);

	if (rc != VIP_SUCCESS)
		return failed("VipOpenNic", rc);
	VipErrorCallback(*nic, NULL, on_error);
	VipQueryNic(*nic, &attrs);
	memset(here, 0, sizeof(*here));
	here->addr.HostAddressLen = attrs.NicAddressLen;
	here->addr.DiscriminatorLen = sizeof(SERVICE) - 1;
	memcpy(here->addr.HostAddress, attrs.LocalNicAddress, attrs.NicAddressLen);
	memcpy(here->addr.HostAddress + attrs.NicAddressLen, SERVICE, sizeof(SERVICE) - 1);
	return 0;
}

static void describe(VIP_DESCRIPTOR *desc, void *data, size_t length, VIP_MEM_HANDLE mem)
{
	VIP_UINT32 bytes = (VIP_UINT32)length;

	*desc = (VIP_DESCRIPTOR){
		.CS = { .Control = VIP_CONTROL_OP_SENDRECV, .SegCount = 1, .Length = bytes },
		.DS[0].Local = { .Data.Address = data, .Handle = mem, .Length = bytes },
	};
}

/* ---- server -------------------------------------------------------------------------------- */

static void client_destroy(struct server *srv, struct client *client)
{
	if (!client)
		return;
	if (client->vi) {
		VipDisconnect(client->vi);
		VipDestroyVi(client->vi);
	}
	if (client->mem)
		VipDeregisterMem(srv->nic, client, client->mem);
	pthread_mutex_destroy(&client->joining);
	free(client);
}

/* Posts the receives, before a connection exists: the client may send at once. */
static int client_post(struct client *client)
{
	struct slot *slot;

	for (slot = client->slot; slot < client->slot + SLOTS; slot++) {
		slot->client = client;
		describe(&slot->desc, slot->data, MESSAGE_MAX, client->mem);
		if (VipPostRecv(client->vi, &slot->desc, client->mem) != VIP_SUCCESS)
			break;
		client->posted++;
	}
	return client->posted ? 0 : -1;
}

/* A client with its VI, not connected, receives posted. */
static struct client *client_create(struct server *srv)
{
	struct client *client = aligned_alloc(64, (sizeof(*client) + 63) & ~(size_t)63);

	if (!client)
		return NULL;
	memset(client, 0, sizeof(*client));
	pthread_mutex_init(&client->joining, NULL);
	if (VipRegisterMem(srv->nic, client, sizeof(*client), NULL, &client->mem) != VIP_SUCCESS ||
	    VipCreateVi(srv->nic, &vi_attributes, srv->cq, srv->cq, &client->vi) != VIP_SUCCESS ||
	    client_post(client)) {
		client_destroy(srv, client);
		return NULL;
	}
	return client;
}

/*
 * From here on the main thread gets completions and may end the client, but not
 * before `joining` is free.  After a failure the disconnect flushes the receives,
 * so that the main thread ends the client in the same way.
 */
static void client_join(struct client *client, VIP_CONN_HANDLE conn)
{
	pthread_mutex_lock(&client->joining);
	if (VipConnectAccept(conn, client->vi) != VIP_SUCCESS) {
		VipConnectReject(conn);
		VipDisconnect(client->vi);
	}
	pthread_mutex_unlock(&client->joining);
}

static void admit(struct server *srv, VIP_CONN_HANDLE conn)
{
	struct client *client = NULL;

	if (atomic_load(&srv->active) < srv->max)
		client = client_create(srv);
	if (!client) {
		fprintf(stderr,
			"echo_server: a client was refused: %lu are served, at most %lu; see --max\n",
			atomic_load(&srv->active), srv->max);
		VipConnectReject(conn);
		return;
	}
	atomic_fetch_add(&srv->active, 1);
	client_join(client, conn);
}

static void *acceptor(void *arg)
{
	struct server *srv = arg;
	VIP_VI_ATTRIBUTES attrs;
	union address from;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;

	while (!atomic_load(&stop)) {
		rc = VipConnectWait(srv->nic, &srv->here.addr, 100, &from.addr, &attrs, &conn);
		if (rc == VIP_SUCCESS) {
			admit(srv, conn);
		} else if (rc != VIP_TIMEOUT) {
			failed("VipConnectWait", rc);
			atomic_store(&stop, true);
		}
	}
	return NULL;
}

/* A slot completed and is not posted again. */
static void retire(struct server *srv, struct client *client)
{
	if (--client->posted)
		return;
	pthread_mutex_lock(&client->joining);
	pthread_mutex_unlock(&client->joining);
	client_destroy(srv, client);
	atomic_fetch_sub(&srv->active, 1);
	atomic_fetch_add(&srv->served, 1);
}

static void echo(struct server *srv, struct slot *slot, bool received)
{
	struct client *client = slot->client;
	VIP_DESCRIPTOR *desc = &slot->desc;
	VIP_UINT32 length = desc->CS.Length;
	VIP_RETURN rc;

	if (desc->CS.Status & VIP_STATUS_ERROR_MASK) {
		retire(srv, client);
		return;
	}
	describe(desc, slot->data, received ? length : MESSAGE_MAX, client->mem);
	rc = (received ? VipPostSend : VipPostRecv)(client->vi, desc, client->mem);
	if (rc != VIP_SUCCESS)
		retire(srv, client);
}

static void serve_completion(struct server *srv)
{
	VIP_DESCRIPTOR *desc = NULL;
	VIP_BOOLEAN received;
	VIP_VI_HANDLE vi;

	if (VipCQWait(srv->cq, 100, &vi, &received) != VIP_SUCCESS)
		return;
	(received ? VipRecvDone : VipSendDone)(vi, &desc);
	if (desc)
		echo(srv, (struct slot *)desc, received);
}

static int run_server(struct server *srv)
{
	struct sigaction act = { .sa_handler = on_signal };
	pthread_t thread;
	VIP_RETURN rc;

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	if (open_nic(&srv->nic, &srv->here))
		return 1;
	rc = VipCreateCQ(srv->nic, srv->max * SLOTS * 2, &srv->cq);
	if (rc != VIP_SUCCESS)
		return failed("VipCreateCQ", rc);
	if (pthread_create(&thread, NULL, acceptor, srv)) {
		fprintf(stderr, "echo_server: no thread for accepting: %s; raise ulimit -u\n",
			strerror(errno));
		return 1;
	}
	printf("echo_server: ready, at most %lu clients\n", srv->max);
	fflush(stdout);
	while (!atomic_load(&stop) && (!srv->until || atomic_load(&srv->served) < srv->until))
		serve_completion(srv);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	printf("echo_server: %lu clients served\n", atomic_load(&srv->served));
	VipDestroyCQ(srv->cq);
	VipCloseNic(srv->nic); /* memory of remaining clients is freed when the process ends */
	return 0;
}

/* ---- client -------------------------------------------------------------------------------- */

struct caller {
	_Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR send, recv;
	char out[MESSAGE_MAX], in[MESSAGE_MAX];
	VIP_NIC_HANDLE nic;
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE mem;
	union address here, there;
	unsigned long number, count, size;
	pthread_t thread;
	int result;
};

static int call_connect(struct caller *c)
{
	struct timespec pause = { 0, 5000000 };
	VIP_VI_ATTRIBUTES attrs;
	VIP_RETURN rc;
	int tries = 2000;

	while ((rc = VipConnectRequest(c->vi, &c->here.addr, &c->there.addr, 10000, &attrs)) ==
		       VIP_NO_MATCH &&
	       tries--)
		nanosleep(&pause, NULL);
	return rc == VIP_SUCCESS ? 0 : failed("VipConnectRequest", rc);
}

/* One message there and back, compared. */
static int call_once(struct caller *c, unsigned long turn)
{
	VIP_DESCRIPTOR *done;
	unsigned long i;
	VIP_RETURN rc;

	for (i = 0; i < c->size; i++)
		c->out[i] = (char)(c->number * 31 + turn * 7 + i);
	memset(c->in, 0, c->size);
	describe(&c->recv, c->in, MESSAGE_MAX, c->mem);
	describe(&c->send, c->out, c->size, c->mem);
	rc = VipPostRecv(c->vi, &c->recv, c->mem);
	if (rc == VIP_SUCCESS)
		rc = VipPostSend(c->vi, &c->send, c->mem);
	if (rc == VIP_SUCCESS)
		rc = VipSendWait(c->vi, 10000, &done);
	if (rc == VIP_SUCCESS)
		rc = VipRecvWait(c->vi, 10000, &done);
	if (rc != VIP_SUCCESS)
		return failed("the exchange of a message", rc);
	if (c->recv.CS.Length == c->size && !memcmp(c->in, c->out, c->size))
		return 0;
	fprintf(stderr, "echo_server: client %lu sent %lu bytes and got other ones back\n",
		c->number, c->size);
	return -1;
}

static void *caller_run(void *arg)
{
	struct caller *c = arg;
	VIP_DESCRIPTOR *done;
	unsigned long i;

	c->result = -1;
	if (VipRegisterMem(c->nic, c, sizeof(*c), NULL, &c->mem) != VIP_SUCCESS)
		return NULL;
	if (VipCreateVi(c->nic, &vi_attributes, NULL, NULL, &c->vi) == VIP_SUCCESS) {
		c->result = call_connect(c);
		for (i = 0; i < c->count && !c->result; i++)
			c->result = call_once(c, i);
		VipDisconnect(c->vi);
		while (VipRecvDone(c->vi, &done), done)
			;
		while (VipSendDone(c->vi, &done), done)
			;
		VipDestroyVi(c->vi);
	}
	VipDeregisterMem(c->nic, c, c->mem);
	return NULL;
}

static int run_callers(struct caller *all, unsigned long clients)
{
	unsigned long i, started, bad = 0;
	struct timespec from, to;
	double seconds;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (started = 0; started < clients; started++)
		if (pthread_create(&all[started].thread, NULL, caller_run, &all[started]))
			break;
	for (i = 0; i < started; i++) {
		pthread_join(all[i].thread, NULL);
		bad += all[i].result != 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	bad += clients - started;
	seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	printf("echo_server: %lu clients, %lu messages of %lu bytes each in %.3f s, %lu failed\n",
	       clients, all->count, all->size, seconds, bad);
	return bad ? 1 : 0;
}

static int run_client(char *host, unsigned long clients, unsigned long count, unsigned long size)
{
	struct caller *all = aligned_alloc(64, clients * sizeof(*all));
	union address here, there;
	VIP_NIC_HANDLE nic;
	unsigned long i;
	int result = 1;
	VIP_RETURN rc;

	if (!all || open_nic(&nic, &here)) {
		free(all);
		return 1;
	}
	there = here;
	VipNSInit(nic, NULL);
	rc = VipNSGetHostByName(nic, host, &there.addr, 0);
	if (rc == VIP_SUCCESS) {
		for (i = 0; i < clients; i++)
			all[i] = (struct caller){ .nic = nic,
						  .here = here,
						  .there = there,
						  .number = i,
						  .count = count,
						  .size = size };
		result = run_callers(all, clients);
	} else {
		fprintf(stderr, "echo_server: host %s: %s; vi_info lists the names\n", host,
			VipxErrorString(rc));
	}
	VipCloseNic(nic);
	free(all);
	return result;
}

/* ---- options ------------------------------------------------------------------------------- */

static int usage(FILE *out)
{
	fputs("usage: echo_server [--max N] [--until N]\n"
	      "       echo_server --client HOST [-n CLIENTS] [-c COUNT] [-s SIZE]\n"
	      "  --max N        serve at most N clients at a time (64)\n"
	      "  --until N      leave after N clients have come and gone (never)\n"
	      "  --client HOST  be clients of the server on HOST\n"
	      "  -n CLIENTS     how many (8)\n"
	      "  -c COUNT       messages of each (1000)\n"
	      "  -s SIZE        bytes of a message, 1 to 4096 (64)\n",
	      out);
	return out == stdout ? 0 : 2;
}

static bool number(const char *text, unsigned long min, unsigned long max, unsigned long *out)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min || value > max) {
		fprintf(stderr, "echo_server: a number from %lu to %lu is needed, not \"%s\"\n",
			min, max, text);
		return false;
	}
	*out = value;
	return true;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "max", 1, NULL, 'm' },
						 { "until", 1, NULL, 'u' },
						 { "client", 1, NULL, 'C' },
						 { "help", 0, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	static struct server srv = { .max = 64 };
	unsigned long clients = 8, count = 1000, size = 64;
	char *host = NULL;
	bool good = true;
	int opt;

	while ((opt = getopt_long(argc, argv, "n:c:s:h", options, NULL)) != -1) {
		switch (opt) {
		case 'm':
			good &= number(optarg, 1, 10000, &srv.max);
			break;
		case 'u':
			good &= number(optarg, 1, ~0ul, &srv.until);
			break;
		case 'n':
			good &= number(optarg, 1, 10000, &clients);
			break;
		case 'c':
			good &= number(optarg, 1, ~0ul, &count);
			break;
		case 's':
			good &= number(optarg, 1, MESSAGE_MAX, &size);
			break;
		case 'C':
			host = optarg;
			break;
		case 'h':
			return usage(stdout);
		default:
			return usage(stderr);
		}
	}
	if (optind < argc)
		return usage(stderr);
	if (!good)
		return 2;
	return host ? run_client(host, clients, count, size) : run_server(&srv);
}
