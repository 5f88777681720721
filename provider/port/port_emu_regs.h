/* SPDX-License-Identifier: BSD-2-Clause */
/* The registers and interrupts of one emulated host: port_emu.h. */
#ifndef PORT_EMU_REGS_H
#define PORT_EMU_REGS_H

#include "port.h"

struct port_emu_host;

/* Makes the registers and interrupts of one emulated host, which all its ports share. */
int port_emu_host_create(struct port_emu_host **out);
/*
 * As port_emu_host_create(), with interrupt objects of viaduct.ko (port_cdev.h) in the place of doorbells and
 * of the agents' interrupt word; -1: memory is made, as there.  Takes the descriptors, and closes them on
 * failure.
 */
int port_emu_host_create_on(int irq_fd, int agent_irq_fd, struct port_emu_host **out);
/* Also closes the descriptors that port_emu_host_create_on() took.  Its ports were closed before.  Accepts NULL. */
void port_emu_host_destroy(struct port_emu_host *host);
struct port_irq *port_emu_host_irq(struct port_emu_host *host);
/* Returns the interrupts of the agents' doorbell bits only. */
struct port_irq *port_emu_host_agent_irq(struct port_emu_host *host);
/* Return descriptors for port_irq_open(), which stay the host's. */
int port_emu_host_doorbells_fd(const struct port_emu_host *host);
int port_emu_host_status_fd(const struct port_emu_host *host);

/*
 * Makes a client's view of the interrupts of a host.  The descriptors stay the caller's.  0 or -errno;
 * descriptors that are refused are logged.
 */
int port_irq_open(int doorbells_fd, int status_fd, struct port_irq **out);

/* Accepts NULL.  Not for the interrupts that a port_emu_host has; its views were closed before. */
void port_irq_close(struct port_irq *irq);

#endif
