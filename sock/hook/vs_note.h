/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a socket that change how its bytes move, noted here in addition to the kernel. */
#ifndef VS_NOTE_H
#define VS_NOTE_H

#include <sys/socket.h>

#include "vs_obj.h"

/* An int of `len` bytes at most, as an option may be shorter. */
int vs_int_of(const void *v, socklen_t len);
/* Notes the size of the kernel's buffer after SO_RCVBUF or SO_SNDBUF was set; does nothing for other options. */
void vs_note_buffer(struct vs_sock *k, int fd, int name);
/* Note an option of SOL_SOCKET, or of IPPROTO_TCP, that the kernel has taken; those that are not noted do nothing. */
void vs_note_socket(struct vs_sock *k, int name, const void *v, socklen_t len);
void vs_note_tcp(struct vs_sock *k, int name, const void *v, socklen_t len);
/*
 * Asks the kernel for all of them but TCP_NODELAY, and notes them, for a socket made from one without an object.
 * The kernel does not tell whether buffers were set.
 */
void vs_note_all(struct vs_sock *k, int fd);

#endif
