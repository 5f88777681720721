/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits, as VipQueryNic reports them. */
#ifndef VI_LIMITS_H
#define VI_LIMITS_H

#define VI_MAX_TRANSFER 0x40000000ul /* 1 GiB */
#define VI_MAX_SEGMENTS 253u	     /* address segment included: 252 data segments with RDMA */
#define VI_MAX_DESCRIPTORS 4096u     /* per work queue */
#define VI_MAX_VIS 65536u
#define VI_MAX_CQS 16384u
#define VI_MAX_CQ_ENTRIES (1u << 24)
#define VI_MAX_PTAGS 65536u
#define VI_MAX_REGIONS ((1u << 18) - 1)
#define VI_MAX_REGISTER_BYTES (1ul << 46) /* sum of all regions, even if they overlap */

#endif
