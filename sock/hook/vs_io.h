/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of a TCP socket that has an object: recvmsg(), sendmsg() and calls that can be made from these. */
#ifndef VS_IO_H
#define VS_IO_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "vs_obj.h"

/*
 * As the calls: bytes, or -1 and errno, first an error that a call has kept which had moved bytes; SIGPIPE is sent.
 * The fields of the message are set that the kernel sets for TCP.  A stream ignores control data and the address;
 * MSG_OOB moves it to the kernel.
 */
ssize_t vs_io_recv(struct vs_obj *o, int fd, struct msghdr *m, int flags);
ssize_t vs_io_send(struct vs_obj *o, int fd, const struct msghdr *m, int flags);

/* As these, with one buffer. */
ssize_t vs_io_recv1(struct vs_obj *o, int fd, void *buf, size_t n, int flags);
ssize_t vs_io_send1(struct vs_obj *o, int fd, const void *buf, size_t n, int flags);

/* As sendfile(): only what was sent counts as read. */
ssize_t vs_io_sendfile(struct vs_obj *o, int out, int in, off64_t *at, size_t n);
/* As splice(), from the socket `fd` and to it; a socket that is no stream is left to the kernel. */
ssize_t vs_io_splice_in(struct vs_obj *o, int fd, int out, off64_t *at, size_t n,
			unsigned int flags);
ssize_t vs_io_splice_out(struct vs_obj *o, int in, off64_t *at, int fd, size_t n,
			 unsigned int flags);

#endif
