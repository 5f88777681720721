/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/**
 * An error that no descriptor can tell, as {@link Nic#onError} gets it.
 *
 * @param vi the VI, or null
 * @param descriptor the address of the descriptor, or 0
 * @param opCode VIP_STATUS_OP_*
 * @param resourceCode VIP_RESOURCE_*: 0 the NIC, 1 a VI, 2 a completion queue, 3 a descriptor
 * @param errorCode VIP_ERROR_*: its number in {@code vipl.h}
 */
public record AsyncError(Vi vi, long descriptor, int opCode, int resourceCode, int errorCode) {
  private static final String[] NAMES = {
    "POST_DESC",
    "CONN_LOST",
    "RECVQ_EMPTY",
    "VI_OVERRUN",
    "RDMAW_PROT",
    "RDMAW_DATA",
    "RDMAW_ABORT",
    "RDMAR_PROT",
    "COMP_PROT",
    "RDMA_TRANSPORT",
    "CATASTROPHIC",
  };

  /**
   * Names the error.
   *
   * @return its name without VIP_ERROR_
   */
  public String name() {
    return errorCode >= 0 && errorCode < NAMES.length ? NAMES[errorCode] : "error " + errorCode;
  }
}
