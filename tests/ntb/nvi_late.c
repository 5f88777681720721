/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_late.h"

#include <errno.h>
#include <stdlib.h>

#include "nvi_resume.h"
#include "vi_cq_list.h"
#include "vi_post_hot.h"
#include "vi_take_hot.h"

#define ENDED 99u /* the agent's name of a connection that is over */

struct nvi_late {
	_Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR desc;
	VIP_MEM_HANDLE handle;
	struct nvi_loop *loop;
	struct vi_nic *nic;
	struct vi_cq *cq;
	struct vi_vi *vi;
	struct nvi_chan *ch; /* that of all VIs */
};

static int create(struct nvi_late *late)
{
	VIP_VI_ATTRIBUTES attrs = { .ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
				    .MaxTransferSize = 1u << 20 };

	return vi_vi_create(late->nic, &attrs, late->cq, late->cq, &late->vi);
}

static int destroy(struct nvi_late *late)
{
	return vi_vi_destroy(late->vi, atomic_load(&late->vi->id));
}

struct nvi_late *nvi_late_open(struct nvi_loop *loop)
{
	struct nvi_late *late = aligned_alloc(U_LINE, u_align_up(sizeof(*late), U_LINE));

	memset(late, 0, sizeof(*late));
	late->loop = loop;
	late->nic = nvi_loop_nic(loop);
	late->handle = nvi_loop_register(loop, &late->desc, sizeof(late->desc));
	if (late->handle == 0 || vi_cq_create(late->nic, 8, &late->cq) != 0 || create(late) != 0)
		return NULL;
	late->ch = late->vi->prov;
	return late;
}

void nvi_late_close(struct nvi_late *late)
{
	if (destroy(late) != 0 || vi_cq_destroy(late->cq, atomic_load(&late->cq->id)) != 0)
		abort();
	nvi_loop_deregister(late->loop, &late->desc, late->handle);
	free(late);
}

/* Completes a posted receive to the CQ and takes it, then replaces the VI. */
static int use_and_replace(struct nvi_late *late)
{
	VIP_DESCRIPTOR *got;
	int err;

	late->nic->ops->disconnect(late->vi);
	if (vi_recv_done(late->vi, atomic_load(&late->vi->id), &got) != 2)
		return -EIO;
	err = destroy(late);
	if (err == 0)
		err = create(late);
	return err == 0 && late->vi->prov != late->ch ? -ESTALE : err;
}

int nvi_late_replace(struct nvi_late *late)
{
	int err = vi_post_recv(late->vi, atomic_load(&late->vi->id), &late->desc, late->handle);

	return err != 0 ? err : use_and_replace(late);
}

int nvi_late_suspend(struct nvi_late *late)
{
	struct w_consumed consumed;

	return nvi_chan_suspend(late->ch, late->ch->nic, ENDED, &consumed);
}

bool nvi_late_stays_watched(struct nvi_late *late)
{
	struct vi_wq *rq = &late->vi->rq;
	bool stays;

	if (vi_post_recv(late->vi, atomic_load(&late->vi->id), &late->desc, late->handle) != 0 ||
	    nvi_late_hot(late) != 1)
		return false;
	u_biased_take(&late->vi->rx_lock);
	atomic_store(&rq->hot, VI_WQ_WATCHED);
	u_biased_drop(&late->vi->rx_lock);
	stays = nvi_late_suspend(late) == -ENOTCONN && atomic_load(&rq->hot) == VI_WQ_WATCHED;
	return use_and_replace(late) == 0 && stays;
}

uint32_t nvi_late_hot(struct nvi_late *late)
{
	uint32_t count;

	u_biased_take(&late->cq->lock);
	vi_cq_poll_marked(late->cq);
	count = late->cq->hot_count;
	u_biased_drop(&late->cq->lock);
	return count;
}
