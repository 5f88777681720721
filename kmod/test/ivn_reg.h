/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layout of the shared memory of a link: BAR 2 of the two ivshmem devices that it joins.
 *
 *   page 0     the header, written by the server (tests/vm/vm_link.py) alone
 *   page 1, 2  the registers of port 0 and of port 1
 *   windows    window w of port p, the memory of p that its peer writes, begins at
 *              (1 + p * windows + w) << window_log2; so each is aligned to its size
 *
 * All fields are 32-bit words in the byte order of x86.  Each has one writer, named in its comment, so none needs
 * an atomic operation across guests.  The server reads these numbers from this file.
 */
#ifndef IVN_REG_H
#define IVN_REG_H

#define IVN_MAGIC 0x564e5442
#define IVN_VERSION 1
#define IVN_PORTS 2

/* The header. */
#define IVN_H_MAGIC 0x00
#define IVN_H_VERSION 0x04
#define IVN_H_WINDOWS 0x08     /* windows of each port */
#define IVN_H_WINDOW_LOG2 0x0c /* their size is 1 << this */
#define IVN_H_DOORBELLS 0x10   /* bit b is vector b; vector IVN_H_DOORBELLS tells of the link */
#define IVN_H_CUT 0x14	       /* not 0: no access crosses the link */
#define IVN_H_CHANGES 0x18     /* grows with each change of the words around it */
#define IVN_H_ALIVE 0x20       /* one word for each port: its guest has not ended */

/*
 * The registers of a port; «the port» and «the peer» are the drivers.  ENABLED is odd while the port has enabled
 * its link; the server makes it even when the guest of the port ends.  BUS is where DMA of the port's machine
 * sees the shared memory.  For each message register SENT counts the messages, READ those that were cleared.
 */
#define IVN_PORT_BASE 0x1000 /* of port 0 */
#define IVN_PORT_SIZE 0x1000
#define IVN_R_ENABLED 0x00   /* the port, the server */
#define IVN_R_BUS_LO 0x04    /* the port */
#define IVN_R_BUS_HI 0x08    /* the port */
#define IVN_R_MSG_READ 0x40  /* the port: a word for each message register */
#define IVN_R_SPAD 0x100     /* both, as of scratchpads: the last writer wins */
#define IVN_R_RUNG 0x200     /* the peer: a word for each doorbell bit, how often it was rung */
#define IVN_R_MSG 0x300	     /* the peer: message registers */
#define IVN_R_MSG_SENT 0x340 /* the peer: a word for each of them */

#define IVN_SPADS 64
#define IVN_DOORBELLS 32
#define IVN_MSGS 4

#endif
