/* SPDX-License-Identifier: BSD-2-Clause */
/* Service threads, and the places of all roles in one line of configuration. */
#ifndef VS_SERVICE_H
#define VS_SERVICE_H

#define VS_POLLERS_MAX 64
#define VS_AFFINITY_MAX 768
#define VS_SERVICE_BAD 64

#define VS_SERVICE_EXPECTED "none, or poller:N with N from 1 to 64"
#define VS_PLACE_EXPECTED                                                                          \
	"app=, svc= or irq= and processors as in 2-5,8, or device, none; but for app also core, "  \
	"llc, package, other; or strict; or dynamic with svc=, but not svc=core"

/* "poller:2" or "none", which is 0 pollers: 0, or -EINVAL. */
int vs_service_parse(const char *text, unsigned int *pollers);

/*
 * "app=2-5,8,svc=llc,irq=0-1,dynamic" as rules for VIADUCT_AFFINITY.  0; or -EINVAL, with the part that is wrong in
 * `bad`, which is the whole text if that is too long.  `bad` is written in any case.
 */
int vs_place_parse(const char *text, char affinity[VS_AFFINITY_MAX], char bad[VS_SERVICE_BAD]);

#endif
