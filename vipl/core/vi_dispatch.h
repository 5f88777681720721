/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VI_DISPATCH_H
#define VI_DISPATCH_H

/*
 * The main function of a dispatcher's thread, for vi_event_create().  Returns NULL when the dispatcher is stopped;
 * frees that if vi_event_destroy() was called from a handler.
 */
void *vi_dispatch(void *dispatcher);

#endif
