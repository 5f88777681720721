/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that are all alike, with as little between the calls as can be. */
#ifndef PF_CALLS_H
#define PF_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "pf_state.h"

/*
 * Are all messages of a size alike?  So are sends of one buffer and one direction, without --verify, in
 * vi_rate and vi_bw.  Their descriptors are prepared once, so that little but the calls is timed.
 */
bool pf_posts_unchanged(const struct pf_ep *ep);
/* Prepares all send descriptors for such messages; none is posted. */
void pf_prepare_all(struct pf_ep *ep, uint32_t size);
/* Posts the next n messages of VI k, with --batch by one call of at most so many. */
int pf_post_again(struct pf_ep *ep, uint32_t k, uint32_t n);
/*
 * Takes 1 to `most` messages of VI k, and posts their receives again; with --batch by a call each.  With --cq and
 * --batch a call takes those of other VIs too, which then have come, and pf_flush() posts the receives.
 */
int pf_receive_again(struct pf_ep *ep, uint32_t k, uint32_t most, uint32_t size,
		     uint32_t *count_out);

#endif
