/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_DISPATCH_H
#define VI_DISPATCH_H

/* The main function of a dispatcher's thread, for vi_event_create(). */
void *vi_dispatch(void *dispatcher);

#endif
