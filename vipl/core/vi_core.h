/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Includes all objects of the Virtual Interface Architecture, for a provider: NIC, protection tag,
 * memory region (translation and protection table), VI, work queue, completion queue.  They are
 * state machines and rules only: the provider moves packets (vi_provider.h).
 *
 * Locks, in order of taking: nic->lock, cq->lock, vi->rx_lock, vi->tx_lock,
 * event lock.  No lock is held while a consumer's handler runs.  The provider's
 * progress() and doorbell_rung() may be called with a cq->lock held.
 */
#ifndef VI_CORE_H
#define VI_CORE_H

#include "vi_conn.h"
#include "vi_cq.h"
#include "vi_cq_list.h"
#include "vi_cq_notify.h"
#include "vi_cq_poll.h"
#include "vi_event.h"
#include "vi_fork.h"
#include "vi_handle.h"
#include "vi_limits.h"
#include "vi_mem.h"
#include "vi_nic.h"
#include "vi_objects.h"
#include "vi_ptag.h"
#include "vi_sg.h"
#include "vi_status.h"
#include "vi_tpt.h"
#include "vi_vi.h"
#include "vi_wait.h"
#include "vi_wq.h"

#endif
