/* SPDX-License-Identifier: BSD-2-Clause */
/* cdev: opens the character device of an adapter and reads its properties. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "port_cdev_device.h"
#include "port_cdev_priv.h"
#include "u_log.h"

int port_cdev_try(const char *path, int *fd_out)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (port_cdev_db_bits(fd) == 0) {
		close(fd);
		return -ENOTTY;
	}
	*fd_out = fd;
	return 0;
}

const char *port_cdev_reason(int err, char text[U_FD_ERROR])
{
	switch (err) {
	case -ENOENT:
		return "it does not exist; is viaduct.ko loaded, and has it accepted the adapter? "
		       "its reasons are in the kernel's log";
	case -EBUSY:
		return "an agent or a tool has it";
	case -ENOTTY:
		return "it is no device of viaduct.ko, or of another version";
	default:
		return u_fd_error(-err, text);
	}
}

int port_cdev_open(const char *path, int *fd_out)
{
	char text[U_FD_ERROR];
	int err = port_cdev_try(path, fd_out);

	if (err != 0)
		u_error("port", "an adapter was sought, %s cannot be used as one: %s", path,
			port_cdev_reason(err, text));
	return err;
}

int port_cdev_ask(int fd, struct port_cdev_info *out)
{
	struct viaduct_info info;

	if (ioctl(fd, VIADUCT_GET_INFO, &info) != 0)
		return -errno;
	*out = (struct port_cdev_info){
		.windows = (uint32_t)u_min64(info.windows, PORT_CDEV_WINDOWS),
		.db_bits = info.db_bits,
		.spads = info.spads,
		.generation = info.generation,
		.up = info.link == VIADUCT_LINK_UP,
	};
	for (unsigned int i = 0; i < out->windows; i++) {
		out->window[i].inbound = info.window[i].inbound;
		out->window[i].outbound = info.window[i].outbound;
	}
	return 0;
}

int port_cdev_irq_make(int fd, int *irq_fd_out)
{
	struct viaduct_irq irq = { 0 };

	if (ioctl(fd, VIADUCT_IRQ, &irq) != 0)
		return -errno;
	*irq_fd_out = irq.fd;
	return 0;
}

uint32_t cdev_bits(uint64_t mask)
{
	uint32_t n = 0;

	while (n < PORT_DB_MAX && (mask >> n & 1) != 0)
		n++;
	return n;
}

uint32_t port_cdev_db_bits(int fd)
{
	struct viaduct_info info;

	return ioctl(fd, VIADUCT_GET_INFO, &info) == 0 && info.abi == VIADUCT_ABI
		       ? cdev_bits(info.db_bits)
		       : 0;
}
