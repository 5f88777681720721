/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CL_PRIV_H
#define CL_PRIV_H

#include "cl_client.h"
#include "u_base.h"

#define CL_TIMEOUT_MS 5000

/* Writes the one line for people. */
void cl_error(char *error, const char *fmt, ...) U_PRINTF(2, 3);

/* Writes that the limit of descriptors is reached; for -EMFILE. */
void cl_error_fds(char *error);

/*
 * Receives one checked message within CL_TIMEOUT_MS.  Returns its type, or
 * -ETIMEDOUT, -EPIPE (hang-up), -EPROTO, -EPROTONOSUPPORT, -EMFILE.  Descriptors are the
 * caller's, and above those of standard input, output and error.
 */
int cl_recv(int sock, void *buf, int fds[W_CTL_FDS], unsigned int *nfds_out);

#endif
