/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection requests that VipConnectWait() handed out.  Each is on its NIC's
 * list until it is decided; VipCloseNic() refuses those that are left.  One lock
 * protects all, the first in the order of locks: connecting is rare.
 */
#include <errno.h>
#include <stdlib.h>

#include "vi_conn.h"
#include "vi_handle.h"
#include "vi_objects.h"
#include "vi_provider.h"

static pthread_mutex_t conn_lock = PTHREAD_MUTEX_INITIALIZER;

int vi_conn_create(struct vi_nic *nic, struct vi_conn **out)
{
	struct vi_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL)
		return -ENOMEM;
	conn->nic = nic;
	*out = conn;
	return 0;
}

void vi_conn_free(struct vi_conn *conn)
{
	free(conn);
}

uint64_t vi_conn_publish(struct vi_conn *conn)
{
	struct vi_nic *nic = conn->nic;
	uint64_t id;

	pthread_mutex_lock(&conn_lock);
	id = conn->id = u_idtab_add(VI_TYPE_CONN, conn);
	if (id != 0) {
		conn->prev = NULL;
		conn->next = nic->conns;
		if (nic->conns != NULL)
			nic->conns->prev = conn;
		nic->conns = conn;
	}
	pthread_mutex_unlock(&conn_lock);
	return id;
}

void vi_conn_forked(void)
{
	conn_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

struct vi_conn *vi_conn_take(const void *handle)
{
	struct vi_conn *conn;

	/* Checked without the lock, which in a child of clone() may be held by a thread that it does not have. */
	if (vi_handle_object(handle, VI_TYPE_CONN) == NULL)
		return NULL;
	pthread_mutex_lock(&conn_lock);
	conn = u_idtab_get(vi_handle_id(handle), VI_TYPE_CONN);
	if (conn != NULL && (conn->taken || !vi_ref_get(&conn->nic->ref)))
		conn = NULL;
	if (conn != NULL)
		conn->taken = true;
	pthread_mutex_unlock(&conn_lock);
	return conn;
}

void vi_conn_return(struct vi_conn *conn)
{
	struct vi_nic *nic = conn->nic;

	pthread_mutex_lock(&conn_lock);
	conn->taken = false;
	pthread_mutex_unlock(&conn_lock);
	vi_ref_put(&nic->ref);
}

/* Makes the handle invalid, and takes the request off the NIC's list.  Caller holds conn_lock. */
static void unlink_locked(struct vi_conn *conn)
{
	u_idtab_del(conn->id);
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		conn->nic->conns = conn->next;
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
}

void vi_conn_end(struct vi_conn *conn)
{
	struct vi_nic *nic = conn->nic;

	pthread_mutex_lock(&conn_lock);
	unlink_locked(conn);
	pthread_mutex_unlock(&conn_lock);
	free(conn);
	vi_ref_put(&nic->ref);
}

/*
 * Takes a request off the NIC's list, which the caller frees; its handle is invalid.  NULL: none is left.  Takes
 * conn_lock.
 */
static struct vi_conn *first_left(struct vi_nic *nic)
{
	struct vi_conn *conn;

	pthread_mutex_lock(&conn_lock);
	conn = nic->conns;
	if (conn != NULL)
		unlink_locked(conn);
	pthread_mutex_unlock(&conn_lock);
	return conn;
}

void vi_conn_refuse_all(struct vi_nic *nic)
{
	struct vi_conn *conn;

	while ((conn = first_left(nic)) != NULL) {
		nic->ops->connect_reject(conn);
		free(conn);
	}
}
