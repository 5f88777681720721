/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder mpp/ is deprecated since OpenSHMEM 1.1. */
#ifndef MPP_SHMEMX_H
#define MPP_SHMEMX_H

#include "../shmemx.h"

#endif
