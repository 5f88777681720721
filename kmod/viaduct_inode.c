// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Inodes of slices: each has the mappings of its slice alone. */
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "viaduct.h"

#define FS_MAGIC 0x76696164

static struct vfsmount *mount;
static int mount_count;

static int init_fs(struct fs_context *fc)
{
	return init_pseudo(fc, FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type fs_type = {
	.name = "viaduct", /* without owner: the mount, which the module holds, would hold the module */
	.init_fs_context = init_fs,
	.kill_sb = kill_anon_super,
};

int vd_inode_init(void)
{
	return simple_pin_fs(&fs_type, &mount, &mount_count);
}

void vd_inode_fini(void)
{
	simple_release_fs(&mount, &mount_count);
}

/* An error pointer at failure. */
struct inode *vd_inode_new(void)
{
	return alloc_anon_inode(mount->mnt_sb);
}
