/* SPDX-License-Identifier: BSD-2-Clause */
#include "st_risk.h"

#include <errno.h>

/* When the helper checks whether it is over: soon, or where packets pass relays at its usual pace. */
#define CHECK_NS 2000000u
#define CHECK_RELAYED_NS 500000000u

/* True: close() resets the connection. */
static bool is_reset(const struct linger *l)
{
	return l->l_onoff != 0 && l->l_linger == 0;
}

ST_COLD void st_risk_begin(struct st_stream *s)
{
	bool relayed = s->link != NULL && s->link->relayed;

	if (s->tx.at_risk || s->fd < 0 || st_sys_get_linger(s->fd, &s->tx.linger) != 0)
		return;
	s->tx.at_risk = true;
	if (!is_reset(&s->tx.linger))
		st_sys_linger_reset(s->fd);
	st_look_after(s, st_now_ns() + (relayed ? CHECK_RELAYED_NS : CHECK_NS));
}

ST_COLD void st_risk_end(struct st_stream *s)
{
	struct linger now;

	if (!s->tx.at_risk)
		return;
	s->tx.at_risk = false;
	/* A value that the program has set since then, without st_set_linger(), stays. */
	if (s->fd >= 0 && st_sys_get_linger(s->fd, &now) == 0 && is_reset(&now))
		st_sys_set_linger(s->fd, &s->tx.linger);
}

void st_risk_check(struct st_stream *s)
{
	if (st_likely(!s->tx.at_risk) || s->tx.held_bytes > 0)
		return;
	if (s->tx.path != ST_TX_RING ? s->tx.pend_bytes > 0
				     : VipxFlush(s->link->vi, 0) != VIP_SUCCESS)
		return;
	st_risk_end(s);
}

int st_get_linger(struct st_stream *s, struct linger *linger)
{
	int rc = st_lock(&s->tx_lock);

	if (rc != 0)
		return rc;
	if (s->tx.at_risk)
		*linger = s->tx.linger;
	else
		rc = st_sys_get_linger(s->fd, linger);
	st_unlock(&s->tx_lock);
	return rc;
}

int st_set_linger(struct st_stream *s, const struct linger *linger)
{
	int rc = st_lock(&s->tx_lock);

	if (rc != 0)
		return rc;
	if (s->tx.at_risk)
		s->tx.linger = (struct linger){ linger->l_onoff != 0, linger->l_linger };
	else
		rc = st_sys_set_linger(s->fd, linger);
	st_unlock(&s->tx_lock);
	return rc;
}
