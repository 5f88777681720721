/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "nvi_req.h"
#include "u_cancel.h"
#include "u_time.h"

int nvi_status_errno(uint32_t status)
{
	static const int table[W_STATUS_MAX] = {
		[W_NO_MATCH] = -ENOMSG,
		[W_REJECTED] = -ECONNREFUSED,
		[W_TIMED_OUT] = -ETIMEDOUT,
		[W_NOT_REACHABLE] = -EHOSTUNREACH,
		[W_NO_RESOURCE] = -ENOSPC,
		[W_BAD_STATE] = -EISCONN,
		[W_BAD_RELIABILITY] = -EPROTOTYPE,
		[W_BAD_MTU] = -EMSGSIZE,
		[W_BAD_QOS] = -EDOM,
		[W_UNKNOWN_NAME] = -ENOENT,
		[W_DENIED] = -EINVAL,
		[W_BAD_VERSION] = -EINVAL,
		[W_BAD_REQUEST] = -EINVAL,
	};

	return status < W_STATUS_MAX ? table[status] : -EPROTO;
}

/* ---- sending --------------------------------------------------------------------------------- */

int nvi_ctl_send(struct nvi_nic *nic, void *msg, enum w_ctl_type type, uint32_t len)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	int err;

	w_ctl_init(msg, type, len);
	err = nvi_out_send(&nic->out, msg, len);
	return err < 0 && err != -ENOMEM ? -ENOTCONN : err;
}

int nvi_ctl_try(struct nvi_nic *nic, void *msg, enum w_ctl_type type, uint32_t len)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();

	w_ctl_init(msg, type, len);
	return nvi_out_try(&nic->out, msg);
}

void nvi_ctl_send_conn(struct nvi_nic *nic, enum w_ctl_type type, uint64_t conn)
{
	struct w_conn msg = { .conn = conn };

	nvi_ctl_send(nic, &msg, type, sizeof(msg));
}

/* ---- waiting for an answer ------------------------------------------------------------------- */

int nvi_req_begin(struct nvi_nic *nic, struct nvi_req *req, struct vi_vi *vi)
{
	pthread_condattr_t attr;
	int err = 0;

	memset(req, 0, sizeof(*req));
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&req->cond, &attr);
	pthread_condattr_destroy(&attr);
	req->fd = -1;
	req->vi = vi;
	pthread_mutex_lock(&nic->ctl_lock);
	if (nic->dead)
		err = -ENOTCONN;
	req->token = ++nic->next_token;
	req->next = nic->reqs;
	nic->reqs = req;
	pthread_mutex_unlock(&nic->ctl_lock);
	if (err != 0)
		nvi_req_end(nic, req);
	return err;
}

void nvi_req_end(struct nvi_nic *nic, struct nvi_req *req)
{
	struct nvi_req **at = &nic->reqs;

	pthread_mutex_lock(&nic->ctl_lock);
	/* The control thread may be opening the connection right now. */
	while (req->opening)
		pthread_cond_wait(&req->cond, &nic->ctl_lock);
	while (*at != NULL && *at != req)
		at = &(*at)->next;
	if (*at == req)
		*at = req->next;
	pthread_mutex_unlock(&nic->ctl_lock);
	if (req->fd >= 0)
		close(req->fd);
	pthread_cond_destroy(&req->cond);
}

struct nvi_req *nvi_req_find(struct nvi_nic *nic, uint64_t token)
{
	struct nvi_req *req = nic->reqs;

	while (req != NULL && req->token != token)
		req = req->next;
	return req;
}

void nvi_req_finish(struct nvi_req *req, const void *answer, int err)
{
	if (answer != NULL)
		memcpy(&req->answer, answer, sizeof(req->answer));
	req->err = err;
	req->done = true;
	pthread_cond_broadcast(&req->cond);
}

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

/* Waits until the request is finished or the deadline passes.  Caller holds ctl_lock. */
static void wait_done(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline)
{
	struct timespec until = { .tv_sec = deadline / 1000000000,
				  .tv_nsec = deadline % 1000000000 };
	int err = 0;

	while (!req->done && err == 0) {
		if (deadline == U_NEVER)
			pthread_cond_wait(&req->cond, &nic->ctl_lock);
		else
			err = pthread_cond_timedwait(&req->cond, &nic->ctl_lock, &until);
	}
}

int nvi_req_wait_cancel(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline, int cancel)
{
	int err;

	pthread_mutex_lock(&nic->ctl_lock);
	pthread_cleanup_push(unlock, &nic->ctl_lock);
	pthread_setcancelstate(cancel, NULL);
	wait_done(nic, req, deadline);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	err = req->done ? req->err : -EINPROGRESS;
	pthread_mutex_unlock(&nic->ctl_lock);
	return err;
}

int nvi_req_wait(struct nvi_nic *nic, struct nvi_req *req, int64_t deadline)
{
	return nvi_req_wait_cancel(nic, req, deadline, PTHREAD_CANCEL_DISABLE);
}

int nvi_ctl_call(struct nvi_nic *nic, struct nvi_req *req, void *msg, enum w_ctl_type type,
		 uint32_t len, uint64_t *token_in_msg)
{
	int err = nvi_req_begin(nic, req, NULL);

	if (err != 0)
		return err;
	*token_in_msg = req->token;
	err = nvi_ctl_send(nic, msg, type, len);
	if (err == 0)
		err = nvi_req_wait(nic, req, u_now_ns() + INT64_C(5000000000));
	if (err == -EINPROGRESS)
		err = -ETIMEDOUT;
	if (err != 0)
		nvi_req_end(nic, req);
	return err;
}
