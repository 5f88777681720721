/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ending a connection: taking it from its process, freeing it, and telling the process that it is
 * lost.
 */
#include "ag_end.h"

#include "ag_client.h"
#include "ag_conn.h"
#include "ag_share.h"
#include "ag_suspend.h"
#include "w_ctl.h"

void ag_end_detach(struct ag_conn *conn)
{
	if (conn->client == NULL)
		return;
	ag_share_conn_end(conn);
	ag_conn_leave_client(conn);
}

void ag_end_free(struct ag_conn *conn)
{
	ag_end_detach(conn);
	ag_conn_slice_free(conn);
	ag_suspend_forget(conn);
	ag_conn_remove(conn);
}

void ag_end_tell_lost(struct ag_conn *conn, enum w_lost reason)
{
	struct w_lost_msg m = { .conn = conn->id, .reason = reason };

	w_ctl_init(&m, W_LOST, sizeof(m));
	if (conn->client != NULL)
		ag_client_send(conn->client, &m, NULL, 0);
}
