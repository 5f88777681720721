// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rules of the chips that the kernel drives, as far as an NTB client meets them. */
#include <linux/sizes.h>
#include <linux/string.h>

#include "ivn.h"

static const struct ivn_profile profiles[] = {
	{ "plain", 4, 32, 8, 0, SZ_4K, 1, 0 },
	{ "plx", 4, 16, 8, 0, 0, 1, 0 },
	{ "amd", 2, 16, 8, 0, SZ_4K, 1, IVN_B2B },
	{ "intel", 2, 15, 16, 0, 0, 1, IVN_B2B | IVN_DB_ADDR },
	{ "idt", 4, 32, 0, 4, 4, 1, IVN_B2B | IVN_BY_SENDER },
	{ "switchtec", 2, 32, 64, 0, SZ_4K, SZ_4K, IVN_DB_ADDR | IVN_OWN_SIZE },
	{ "epf", 4, 8, 64, 0, SZ_4K, 1, IVN_NO_MASK | IVN_ONE_BIT | IVN_NO_VECTORS },
	/* Not a chip's: rules that a client has to refuse. */
	{ "noroom", 2, 16, 8, 0, SZ_4K, 1, IVN_NO_ROOM },
	{ "unaligned", 2, 16, 8, 0, SZ_4K, 1, IVN_UNALIGNED },
};

const struct ivn_profile *ivn_profile_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(profiles); i++) {
		if (sysfs_streq(name, profiles[i].name))
			return &profiles[i];
	}
	return NULL;
}

void ivn_profile_align(const struct ivn_dev *ivn, resource_size_t *addr, resource_size_t *size)
{
	*addr = ivn->profile->addr_align ?: ivn->window_bytes;
	*size = ivn->profile->size_align ?: ivn->window_bytes;
}
