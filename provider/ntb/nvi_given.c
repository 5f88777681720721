/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "nvi_given.h"

struct nvi_given **nvi_given_bucket(struct nvi_nic *nic, uint64_t conn)
{
	return &nic->given[conn % NVI_CONN_BUCKETS];
}

struct nvi_given **nvi_given_find(struct nvi_nic *nic, uint64_t conn, uint32_t handle, uint64_t map)
{
	struct nvi_given **at = nvi_given_bucket(nic, conn);

	while (*at != NULL && ((*at)->conn != conn || (*at)->handle != handle || (*at)->map != map))
		at = &(*at)->next;
	return at;
}

uint32_t nvi_given_maps(struct nvi_nic *nic, uint64_t conn)
{
	uint32_t n = 0;

	for (struct nvi_given *g = *nvi_given_bucket(nic, conn); g != NULL; g = g->next)
		n += g->conn == conn && g->map != 0;
	return n;
}

void nvi_given_remove(struct nvi_nic *nic, struct nvi_given **at)
{
	struct nvi_given *given = *at;

	*at = given->next;
	given->window->given--;
	free(given);
	pthread_cond_broadcast(&nic->mem_changed);
}

bool nvi_given_enter(struct nvi_nic *nic, struct nvi_window *w, struct nvi_chan *ch, uint64_t conn,
		     uint32_t handle, uint64_t map)
{
	struct nvi_given *given = malloc(sizeof(*given));

	if (given == NULL)
		return false;
	*given = (struct nvi_given){ .next = *nvi_given_bucket(nic, conn),
				     .window = w,
				     .ch = ch,
				     .conn = conn,
				     .map = map,
				     .handle = handle };
	*nvi_given_bucket(nic, conn) = given;
	w->given++;
	return true;
}

void nvi_given_remove_all_of(struct nvi_nic *nic, uint64_t conn)
{
	struct nvi_given **at = nvi_given_bucket(nic, conn);

	while (*at != NULL) {
		if ((*at)->conn == conn)
			nvi_given_remove(nic, at);
		else
			at = &(*at)->next;
	}
}

void nvi_given_forget(struct nvi_nic *nic, uint64_t conn)
{
	pthread_mutex_lock(&nic->mem_lock);
	nvi_given_remove_all_of(nic, conn);
	pthread_mutex_unlock(&nic->mem_lock);
}

void nvi_given_forget_all(struct nvi_nic *nic)
{
	pthread_mutex_lock(&nic->mem_lock);
	for (unsigned int i = 0; i < NVI_CONN_BUCKETS; i++)
		while (nic->given[i] != NULL)
			nvi_given_remove(nic, &nic->given[i]);
	pthread_mutex_unlock(&nic->mem_lock);
}
