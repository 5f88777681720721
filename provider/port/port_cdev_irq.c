/* SPDX-License-Identifier: BSD-2-Clause */
#include "port_cdev_irq.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "../../kmod/viaduct_ioctl.h"
#include "u_fd.h"

int cdev_irq_map(int fd, void **page_out)
{
	void *page;

	if (!u_fd_of_module(fd, "irq"))
		return -EINVAL;
	page = mmap(NULL, sizeof(struct viaduct_irq_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (page == MAP_FAILED)
		return -errno;
	*page_out = page;
	return 0;
}

int cdev_irq_wait(int fd, uint32_t ticket, uint32_t bits, int64_t timeout_ns)
{
	struct viaduct_irq_wait request = { .db_bits = bits,
					    .timeout_ns = timeout_ns,
					    .ticket = ticket };

	return ioctl(fd, VIADUCT_IRQ_WAIT, &request) == 0 ? 0 : -errno;
}

void cdev_irq_wake(int fd, uint32_t bits)
{
	struct viaduct_ring raise = { .db_bits = bits };

	ioctl(fd, VIADUCT_IRQ_RAISE, &raise);
}
