/* SPDX-License-Identifier: BSD-2-Clause */
/* The NTB provider: VIs over ports. */
#ifndef NVI_PROVIDER_H
#define NVI_PROVIDER_H

#include "vi_provider.h"

extern const struct vi_provider_ops nvi_provider;

#endif
