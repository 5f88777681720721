/* SPDX-License-Identifier: BSD-2-Clause */
/* The first cause of a failure, as one line of text. */
#ifndef PF_FAIL_H
#define PF_FAIL_H

#include <vipl.h>

#include "pf_state.h"

/* Notes the first cause and returns -EIO. */
int pf_fail(struct pf_ep *ep, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* pf_fail() for a call that returned `rc`; adds a remedy. */
int pf_fail_vip(struct pf_ep *ep, const char *what, VIP_RETURN rc);

/* pf_fail() for a peer or path that is lost; `how` is a detail or "". */
int pf_lost(struct pf_ep *ep, const char *how);

/* The name of a return code, such as "VIP_TIMEOUT", for causes. */
#define PF_VIP(ep, what, rc) pf_fail_vip(ep, what, rc)

#endif
