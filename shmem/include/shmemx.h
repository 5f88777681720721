/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shmemx.h - what Viaduct offers beyond OpenSHMEM 1.6: nothing so far
 */
#ifndef SHMEMX_H
#define SHMEMX_H

#include "shmem.h"

#endif
