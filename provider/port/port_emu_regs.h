/* SPDX-License-Identifier: BSD-2-Clause */
/* The registers and interrupts of one emulated host: port_emu.h. */
#ifndef PORT_EMU_REGS_H
#define PORT_EMU_REGS_H

#include "port.h"

struct port_emu_host;

/* The registers of one emulated host; shared by all its ports.  Interrupts included. */
int port_emu_host_create(struct port_emu_host **out);
/*
 * As above, with interrupt objects of viaduct.ko (port_cdev.h) in the place of doorbells and of the agents'
 * interrupt word.  Takes the descriptors, also when it fails.
 */
int port_emu_host_create_on(int irq_fd, int agent_irq_fd, struct port_emu_host **out);
void port_emu_host_destroy(struct port_emu_host *host);
struct port_irq *port_emu_host_irq(struct port_emu_host *host);
/* Where the agents' doorbell bits interrupt, and no others. */
struct port_irq *port_emu_host_agent_irq(struct port_emu_host *host);
/* Borrowed; for port_irq_open(). */
int port_emu_host_doorbells_fd(const struct port_emu_host *host);
int port_emu_host_status_fd(const struct port_emu_host *host);

/* A client's view of the interrupts of a host.  The descriptors stay the caller's. */
int port_irq_open(int doorbells_fd, int status_fd, struct port_irq **out);
void port_irq_close(struct port_irq *irq);

#endif
