/* SPDX-License-Identifier: BSD-2-Clause */
#include "vi_place.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "u_affinity.h"
#include "vi_mover.h"
#include "vi_provider.h"

static_assert((int)VIPX_ROLE_APPLICATION == (int)U_PLACE_APPLICATION, "roles");
static_assert((int)VIPX_ROLE_TRANSFER == (int)U_PLACE_TRANSFER, "roles");
static_assert((int)VIPX_ROLE_SERVICE == (int)U_PLACE_SERVICE, "roles");
static_assert((int)VIPX_PLACE_LIST == (int)U_PLACE_LIST, "places");
static_assert(sizeof(((VIPX_PLACEMENT *)0)->Cpus) == U_CPUSET_TEXT, "processors");
static_assert(sizeof(((VIPX_PLACEMENT *)0)->Text) == U_PLACE_TEXT, "texts");

#define NIC_THREADS 2 /* in the order of the roles: the application's and the library's */

static const struct u_place_ask of_nic[NIC_THREADS] = {
	{ .role = U_PLACE_APPLICATION, .count = 1 },
	{ .role = U_PLACE_TRANSFER, .count = 1 },
};

/* Describes decision `d` for asks[i], one of `n`, in *out; leaves out->Size. */
static void fill(const struct u_affinity *a, const struct u_place_ask *asks, unsigned int n,
		 unsigned int i, const struct u_place_decision *d, VIPX_PLACEMENT *out)
{
	out->Asked = (VIP_ULONG)a->rules.of[asks[i].role].where;
	out->Got = (VIP_ULONG)d->got;
	out->AsAsked = u_place_met(d) ? VIP_TRUE : VIP_FALSE;
	u_cpuset_text(&d->cpus, out->Cpus, sizeof(out->Cpus));
	u_affinity_text(a, &asks[i], d, out->Text);
	u_place_warning(asks, n, i, d, out->Warning);
}

/*
 * Binds the NIC's transfer thread, if it has one, and the calling thread as was decided.  0 or -errno; then one of
 * them may have moved.  Caller holds place_lock.
 */
static int move(struct vi_nic *nic, const struct u_affinity *a, const struct u_place_decision *d)
{
	int err = nic->ops->place(nic, a, &d[U_PLACE_TRANSFER]);

	/* A provider without such a thread has nothing to move. */
	if (err == -EOPNOTSUPP)
		err = 0;
	return err != 0 ? err : u_affinity_move_self(a, &d[U_PLACE_APPLICATION]);
}

int vi_place_nic(struct vi_nic *nic, const char *rules)
{
	static const char *const names[NIC_THREADS] = { "the application's thread", "vi-xfer" };
	struct u_place_decision d[NIC_THREADS];
	struct u_place_ask asks[NIC_THREADS];
	struct u_affinity *a, *old = NULL;
	struct vi_mover *mover = NULL;
	int err = u_affinity_open(rules, 0, &a);

	if (err != 0)
		return err;
	memcpy(asks, of_nic, sizeof(asks));
	asks[U_PLACE_APPLICATION].polls = a->c.application_polls;
	err = u_affinity_decide(a, asks, names, NIC_THREADS, d);
	pthread_mutex_lock(&nic->place_lock);
	if (err == 0 && (u_affinity_asked(a) || nic->affinity != NULL))
		err = move(nic, a, d);
	if (err == 0) {
		for (unsigned int i = 0; i < NIC_THREADS; i++)
			fill(a, asks, NIC_THREADS, i, &d[i], &nic->placed[i]);
		old = nic->affinity;
		mover = nic->mover;
		nic->affinity = a;
		nic->mover = NULL;
		a = NULL;
	}
	pthread_mutex_unlock(&nic->place_lock);
	vi_mover_destroy(mover);
	u_affinity_close(old);
	u_affinity_close(a);
	return err;
}

void vi_place_fini(struct vi_nic *nic)
{
	vi_mover_destroy(nic->mover);
	u_affinity_close(nic->affinity);
	nic->mover = NULL;
	nic->affinity = NULL;
}

int vi_place_query(struct vi_nic *nic, uint64_t role, VIPX_PLACEMENT *out)
{
	VIP_ULONG size = out->Size;

	if (role >= NIC_THREADS)
		return -EINVAL;
	pthread_mutex_lock(&nic->place_lock);
	*out = nic->placed[role];
	pthread_mutex_unlock(&nic->place_lock);
	out->Size = size;
	return 0;
}

/*
 * Decides the place of the calling thread in view of that of the library's, which may be the same processor.  *mine is
 * set in any case, *out, except Size, with 0 only.  -ENXIO as u_affinity_decide().
 */
static int decide(const struct u_affinity *a, const struct u_place_ask *ask,
		  struct u_place_decision *mine, VIPX_PLACEMENT *out)
{
	const char *const names[] = { u_place_role_words[ask->role], NULL };
	const struct u_place_ask asks[] = { *ask, of_nic[U_PLACE_TRANSFER] };
	struct u_place_decision d[2];
	int err = u_affinity_decide(a, asks, names, 2, d);

	*mine = d[0];
	if (err == 0)
		fill(a, asks, 2, 0, &d[0], out);
	return err;
}

/* Has the calling thread moved by load from now on if the rules say so; place_lock is held.  0 or -errno. */
static int move_later(struct vi_nic *nic, const struct u_place_ask *ask,
		      const struct u_place_decision *d)
{
	if (!nic->affinity->rules.dynamic || ask->role != U_PLACE_SERVICE ||
	    u_cpuset_empty(&d->cpus) || d->got == U_PLACE_SAME_CORE)
		return 0;
	if (nic->mover == NULL)
		nic->mover = vi_mover_create(nic->affinity, &nic->place_lock);
	return nic->mover != NULL ? vi_mover_add(nic->mover, ask->index, &d->cpus) : -ENOMEM;
}

int vi_place_thread(struct vi_nic *nic, const struct u_place_ask *ask, VIPX_PLACEMENT *out)
{
	struct u_place_decision d;
	int err;

	pthread_mutex_lock(&nic->place_lock);
	err = decide(nic->affinity, ask, &d, out);
	if (err == 0)
		err = u_affinity_move_self(nic->affinity, &d);
	if (err == 0)
		err = move_later(nic, ask, &d);
	pthread_mutex_unlock(&nic->place_lock);
	return err;
}
