/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts of devices, and the processors that the kernel lets them interrupt. */
#ifndef U_IRQ_H
#define U_IRQ_H

#include "u_cpuset.h"

#define U_IRQ_FOLDER "/proc/irq"

/*
 * Lists the numbers of a device's interrupts, lowest first: those of MSI, else that of its pin.  If there are more
 * than `max`, gives any `max` of them.  `device` is its folder in sysfs.  Returns how many.
 */
int u_irq_find(const char *device, int *irqs, int max);

/*
 * Has the kernel deliver an interrupt to some of these processors; `folder` is U_IRQ_FOLDER except in tests.  0, or
 * -errno: -EACCES without the right, -ENOENT, -EIO if the kernel manages the interrupt by itself.
 */
int u_irq_move(const char *folder, int irq, const struct u_cpuset *cpus);

#endif
