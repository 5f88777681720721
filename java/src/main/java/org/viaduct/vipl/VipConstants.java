/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** The constants of {@code vipl.h} and {@code vipl_ext.h}. */
public final class VipConstants {
  /** Done. */
  public static final int VIP_SUCCESS = 0;
  /** Not complete yet, or nothing there. */
  public static final int VIP_NOT_DONE = 1;
  /** A handle, pointer or value is not valid. */
  public static final int VIP_INVALID_PARAMETER = 2;
  /** A limit was reached, or the object is in use. */
  public static final int VIP_ERROR_RESOURCE = 3;
  /** The time given has passed. */
  public static final int VIP_TIMEOUT = 4;
  /** The server refused the connection. */
  public static final int VIP_REJECT = 5;
  /** Not a supported level, or not the peer's. */
  public static final int VIP_INVALID_RELIABILITY_LEVEL = 6;
  /** Maximum transfer size out of range, or not the peer's. */
  public static final int VIP_INVALID_MTU = 7;
  /** Quality of service not supported, or not the peer's. */
  public static final int VIP_INVALID_QOS = 8;
  /** Not a protection tag of this NIC handle. */
  public static final int VIP_INVALID_PTAG = 9;
  /** RDMA read is not offered at this level. */
  public static final int VIP_INVALID_RDMAREAD = 10;
  /** Completed with an error in its Status, or queue empty. */
  public static final int VIP_DESCRIPTOR_ERROR = 11;
  /** Not allowed in the state of the VI. */
  public static final int VIP_INVALID_STATE = 12;
  /** Name or address unknown. */
  public static final int VIP_ERROR_NAMESERVICE = 13;
  /** No program waits on that address now. */
  public static final int VIP_NO_MATCH = 14;
  /** No such host, or no path to it. */
  public static final int VIP_NOT_REACHABLE = 15;
  /** Optional and not offered. */
  public static final int VIP_ERROR_NOT_SUPPORTED = 16;

  /** Wait without end. */
  public static final long VIP_INFINITE = 0xFFFFFFFFL;

  /** Operation of a descriptor: a message. */
  public static final int VIP_CONTROL_OP_SENDRECV = 0;
  /** Operation of a descriptor: write into memory of the peer. */
  public static final int VIP_CONTROL_OP_RDMAWRITE = 1;
  /** Operation of a descriptor: read from memory of the peer. */
  public static final int VIP_CONTROL_OP_RDMAREAD = 2;
  /** Operation of a descriptor: an atomic operation on memory of the peer. */
  public static final int VIPX_CONTROL_OP_ATOMIC = 3;
  /** The bits of Control that hold the operation. */
  public static final int VIP_CONTROL_OP_MASK = 3;
  /** Immediate data goes along. */
  public static final int VIP_CONTROL_IMMEDIATE = 4;
  /** Start when all earlier descriptors of the queue are complete. */
  public static final int VIP_CONTROL_QFENCE = 8;

  /** Complete; set together with all other bits. */
  public static final int VIP_STATUS_DONE = 0x1;
  /** Malformed descriptor. */
  public static final int VIP_STATUS_FORMAT_ERROR = 0x2;
  /** Local memory not registered or not permitted. */
  public static final int VIP_STATUS_PROTECTION_ERROR = 0x4;
  /** Too long, or not the sum of the segments. */
  public static final int VIP_STATUS_LENGTH_ERROR = 0x8;
  /** Some of the data may have been moved. */
  public static final int VIP_STATUS_PARTIAL_ERROR = 0x10;
  /** Not done: disconnected or in error. */
  public static final int VIP_STATUS_DESC_FLUSHED_ERROR = 0x20;
  /** Link or peer lost. */
  public static final int VIP_STATUS_TRANSPORT_ERROR = 0x40;
  /** The peer refused the RDMA. */
  public static final int VIP_STATUS_RDMA_PROT_ERROR = 0x80;
  /** No fit receive at the peer. */
  public static final int VIP_STATUS_REMOTE_DESC_ERROR = 0x100;
  /** All errors. */
  public static final int VIP_STATUS_ERROR_MASK = 0x1FE;
  /** A send completed. */
  public static final int VIP_STATUS_OP_SEND = 0;
  /** A receive completed. */
  public static final int VIP_STATUS_OP_RECEIVE = 0x10000;
  /** An RDMA write completed. */
  public static final int VIP_STATUS_OP_RDMA_WRITE = 0x20000;
  /** A receive was used up by a peer's write with immediate data. */
  public static final int VIP_STATUS_OP_REMOTE_RDMA_WRITE = 0x30000;
  /** An RDMA read completed. */
  public static final int VIP_STATUS_OP_RDMA_READ = 0x40000;
  /** An atomic operation completed. */
  public static final int VIPX_STATUS_OP_ATOMIC = 0x50000;
  /** The bits of Status that hold the operation. */
  public static final int VIP_STATUS_OP_MASK = 0x70000;
  /** Immediate data of a receive is valid. */
  public static final int VIP_STATUS_IMMEDIATE = 0x80000;

  /** A descriptor starts at a multiple of this, inside registered memory. */
  public static final int VIP_DESCRIPTOR_ALIGNMENT = 64;

  /** Atomic operation: fetch the old value. */
  public static final int VIPX_ATOMIC_FETCH = 1;
  /** Atomic operation: exchange. */
  public static final int VIPX_ATOMIC_SWAP = 2;
  /** Atomic operation: exchange if the old value is the compared one. */
  public static final int VIPX_ATOMIC_COMPARE_SWAP = 3;
  /** Atomic operation: add. */
  public static final int VIPX_ATOMIC_ADD = 4;
  /** Atomic operation: and. */
  public static final int VIPX_ATOMIC_AND = 5;
  /** Atomic operation: or. */
  public static final int VIPX_ATOMIC_OR = 6;
  /** Atomic operation: exclusive or. */
  public static final int VIPX_ATOMIC_XOR = 7;

  /** VipxAdoptMem: nothing else writes there during the call. */
  public static final long VIPX_ADOPT_NO_WRITERS = 1;
  /** The version of {@code vipl_ext.h} that this binding was written for. */
  public static final int VIPX_VERSION = 5;

  private VipConstants() {}
}
