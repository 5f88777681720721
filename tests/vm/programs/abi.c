// SPDX-License-Identifier: BSD-2-Clause
/* Compiles only where structures of the kernel module's interface have the layout that the module has. */
#include <stddef.h>

#include "../../../kmod/viaduct_ioctl.h"

#ifdef __cplusplus
#define ASSERT(cond) static_assert(cond, #cond)
#else
#define ASSERT(cond) _Static_assert(cond, #cond)
#endif

ASSERT(sizeof(struct viaduct_status) == 272 && offsetof(struct viaduct_status, db_count) == 16);
ASSERT(sizeof(struct viaduct_window) == 16);
ASSERT(sizeof(struct viaduct_info) == 160 && offsetof(struct viaduct_info, window) == 32);
ASSERT(sizeof(struct viaduct_traits) == 16);
ASSERT(sizeof(struct viaduct_slice) == 32 && offsetof(struct viaduct_slice, fd) == 24);
ASSERT(sizeof(struct viaduct_adopt) == 32 && offsetof(struct viaduct_adopt, fd) == 28);
ASSERT(sizeof(struct viaduct_end) == 8);
ASSERT(sizeof(struct viaduct_client) == 16 && offsetof(struct viaduct_client, fd) == 8);
ASSERT(sizeof(struct viaduct_bind) == 16 && offsetof(struct viaduct_bind, eventfd) == 8);
ASSERT(sizeof(struct viaduct_ring) == 8);
ASSERT(sizeof(struct viaduct_link) == 8);
ASSERT(sizeof(struct viaduct_spad) == 16);
ASSERT(sizeof(struct viaduct_pin) == 24 && offsetof(struct viaduct_pin, region) == 16);
ASSERT(sizeof(struct viaduct_unpin) == 8);
ASSERT(sizeof(struct viaduct_copy) == 40 && offsetof(struct viaduct_copy, ticket) == 32);
ASSERT(sizeof(struct viaduct_copied) == 32 && offsetof(struct viaduct_copied, error) == 24);
ASSERT(VIADUCT_GET_INFO == 0x80a0b700 && VIADUCT_SLICE == 0xc020b708 &&
       VIADUCT_ADOPT == 0xc020b70e && VIADUCT_GET_TRAITS == 0x8010b705);
