/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PARTING_H
#define PARTING_H

extern int parting_fd __attribute__((visibility("default"))); /* the connection; -1: none */

#endif
