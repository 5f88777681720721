/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder mpp/ is deprecated since OpenSHMEM 1.1. */
#ifndef MPP_SHMEM_H
#define MPP_SHMEM_H

#include "../shmem.h"
#include "../shmemx.h"

#endif
