/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the application's threads on the processors that the rule for them names. */
#ifndef VS_PLACE_H
#define VS_PLACE_H

/* To be called once the NIC is open; many threads may have been made before.  Does nothing if no rule names some. */
void vs_place_threads(void *nic);

#endif
