/* SPDX-License-Identifier: BSD-2-Clause */
/* The first cause of a failure, as one line of text. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "pf_fail.h"

int pf_fail(struct pf_ep *ep, const char *fmt, ...)
{
	va_list ap;

	if (ep->cause[0])
		return -EIO;
	va_start(ap, fmt);
	vsnprintf(ep->cause, sizeof(ep->cause), fmt, ap);
	va_end(ap);
	return -EIO;
}

int pf_lost(struct pf_ep *ep, const char *how)
{
	if (!ep->cause[0])
		ep->peer_lost = true;
	return pf_fail(ep, "the connection to the peer was lost%s%.120s%s", how[0] ? " (" : "", how,
		       how[0] ? ")" : "");
}

int pf_fail_vip(struct pf_ep *ep, const char *what, VIP_RETURN rc)
{
	if (rc == VIP_ERROR_RESOURCE)
		return pf_fail(ep,
			       "%s: %s: memory, descriptors or a port's window are used up; end "
			       "other programs (vi_fabric status) or vi_fabric up with a larger "
			       "--window",
			       what, VipxErrorString(rc));
	return pf_fail(ep, "%s: %s", what, VipxErrorString(rc));
}
