/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of providers: the one place that knows them all. */
#include "nvi_provider.h"
#include "vi_provider.h"

const struct vi_provider_ops *const vi_providers[] = {
	&nvi_provider,
	NULL,
};
