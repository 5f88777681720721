/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt objects of viaduct.ko: threads sleep on them when doorbells come from an adapter. */
#ifndef PORT_CDEV_IRQ_H
#define PORT_CDEV_IRQ_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Maps the page of the object.  0, -EINVAL when the descriptor is not of an interrupt object, or an
 * error of mmap().
 */
int cdev_irq_map(int fd, void **page_out);

/*
 * Sleeps while the count of the page is `ticket`, until one of `bits` is raised.  0 when one may
 * have been, -ETIMEDOUT, -EINTR.
 */
int cdev_irq_wait(int fd, uint32_t ticket, uint32_t bits, int64_t timeout_ns);

/* Wakes threads that sleep on one of `bits`; the caller has added to the count before. */
void cdev_irq_wake(int fd, uint32_t bits);

#endif
