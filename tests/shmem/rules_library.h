/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables of a shared library that a program is linked with. */
#ifndef RULES_LIBRARY_H
#define RULES_LIBRARY_H

#pragma GCC visibility push(default)
long *library_data(void);
long *library_bss(void);
#pragma GCC visibility pop

#endif
