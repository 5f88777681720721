/* SPDX-License-Identifier: BSD-2-Clause */
/* The application's threads on the processors that the rule for them says. */
#ifndef VS_PLACE_H
#define VS_PLACE_H

/* Once the NIC is open, and before that many threads may have been made. */
void vs_place_threads(void *nic);

#endif
