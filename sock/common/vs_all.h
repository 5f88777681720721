/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What vi_run --all, libvisock.so and vi_forward have agreed on: how a process with the library tells the filter of
 * system calls that it needs no help.
 */
#ifndef VS_ALL_H
#define VS_ALL_H

#include <stdint.h>

/*
 * The sixth argument, which the kernel ignores, of calls that have fewer.  It is no secret: a program that passes it
 * itself makes plain calls of the kernel.
 */
#define VS_ALL_MARK UINT64_C(0x5649414444554354)

#endif
