/* SPDX-License-Identifier: BSD-2-Clause */
/* What all units of this folder use. */
#ifndef VS_BASE_H
#define VS_BASE_H

#define vs_likely(x) __builtin_expect(!!(x), 1)
#define vs_unlikely(x) __builtin_expect(!!(x), 0)

/* What the descriptors of an object are. */
enum vs_kind { VS_SOCKET, VS_EPOLL };

#endif
