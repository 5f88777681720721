// SPDX-License-Identifier: BSD-2-Clause
#include "vf_notify.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int listener = -1;
/* The kernel's structures may be longer than those of the header. */
static struct seccomp_notif *room;
static struct seccomp_notif_resp *reply;
static struct seccomp_notif_sizes sizes;

int vf_notify_init(int fd)
{
	struct seccomp_notif_addfd probe = { .flags = SECCOMP_ADDFD_FLAG_SEND,
					     .srcfd = (uint32_t)fd };

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0)
		return -errno;
	if (sizes.seccomp_notif < sizeof(*room))
		sizes.seccomp_notif = sizeof(*room);
	if (sizes.seccomp_notif_resp < sizeof(*reply))
		sizes.seccomp_notif_resp = sizeof(*reply);
	room = calloc(1, sizes.seccomp_notif);
	reply = calloc(1, sizes.seccomp_notif_resp);
	if (!room || !reply)
		return -ENOMEM;
	listener = fd;
	/* No call has this number: a kernel that knows the flag, of 5.14 or later, says so. */
	probe.id = UINT64_MAX;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &probe) != 0 && errno != ENOENT)
		return errno == EINVAL ? -EOPNOTSUPP : -errno;
	return 0;
}

bool vf_notify_next(struct vf_call *call)
{
	memset(room, 0, sizes.seccomp_notif);
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, room) != 0)
		return false;
	call->id = room->id;
	call->thread = (pid_t)room->pid;
	call->number = room->data.nr;
	memcpy(call->args, room->data.args, sizeof(call->args));
	return true;
}

bool vf_notify_valid(uint64_t id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static bool answer(uint64_t id, int result, uint32_t flags)
{
	memset(reply, 0, sizes.seccomp_notif_resp);
	reply->id = id;
	reply->flags = flags;
	reply->val = result < 0 ? 0 : result;
	reply->error = result < 0 ? result : 0;
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, reply) == 0;
}

void vf_notify_go_on(uint64_t id)
{
	answer(id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

bool vf_notify_answer(uint64_t id, int result)
{
	return answer(id, result, 0);
}

int vf_notify_give(uint64_t id, int fd, bool cloexec)
{
	struct seccomp_notif_addfd add = { .id = id,
					   .flags = SECCOMP_ADDFD_FLAG_SEND,
					   .srcfd = (uint32_t)fd,
					   .newfd_flags = cloexec ? O_CLOEXEC : 0 };

	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 ? -errno : 0;
}
