/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import org.viaduct.vipl.spi.NativeCalls;
import org.viaduct.vipl.spi.Natives;

/**
 * The functions of {@code vipl_ext.h}, one method each.
 *
 * <p>Addresses and handles are {@code long}, memory handles {@code int}. Nothing is checked that
 * the C function does not check, and a wrong address ends the process as it does in C. {@link Nic}
 * and the objects that it makes are the safe interface. The full description of each function is
 * its manual page.
 */
public final class Vipx {
  private Vipx() {}

  private static NativeCalls calls() {
    return Natives.calls();
  }

  /**
   * VipxAllocMem: allocate registered memory in the window.
   * @param nicHandle in, handle from VipOpenNic()
   * @param length in, bytes, at least 1
   * @param memAttribs in, attributes, or NULL: no protection tag, no RDMA
   * @param address out, start of the memory, page-aligned and zeroed, not NULL
   * @param memoryHandle out, its handle, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipxAllocMem(
      long nicHandle, long length, long memAttribs, long address, long memoryHandle) {
    return calls().vipxAllocMem(nicHandle, length, memAttribs, address, memoryHandle);
  }

  /**
   * VipxFreeMem: free memory of VipxAllocMem.
   * @param nicHandle in, the NIC handle it was allocated with
   * @param address in, the address VipxAllocMem() gave
   * @param memoryHandle in, the handle VipxAllocMem() gave
   * @return a code of {@link VipConstants}
   */
  public static int vipxFreeMem(long nicHandle, long address, int memoryHandle) {
    return calls().vipxFreeMem(nicHandle, address, memoryHandle);
  }

  /**
   * VipxAdoptMem: register memory of the program and make window memory of it.
   * @param nicHandle in, handle from VipOpenNic()
   * @param address in, start of the memory, a multiple of the page size, not NULL
   * @param length in, bytes, a multiple of the page size, at least one page
   * @param memAttribs in, attributes, or NULL: no protection tag, no RDMA
   * @param flags in, 0 or VIPX_ADOPT_NO_WRITERS
   * @param memoryHandle out, its handle, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipxAdoptMem(
      long nicHandle, long address, long length, long memAttribs, long flags, long memoryHandle) {
    return calls().vipxAdoptMem(nicHandle, address, length, memAttribs, flags, memoryHandle);
  }

  /**
   * VipxMapRemote: map window memory of the process at the other end of a connection.
   * @param viHandle in, a connected VI whose other end is a process of this host, or this process
   * @param remoteAddress in, start of the memory, as the other end addresses it
   * @param length in, bytes, at least 1
   * @param remoteMemHandle in, the handle that the other end has of the memory
   * @param address out, where the memory can be loaded and stored, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipxMapRemote(
      long viHandle, long remoteAddress, long length, int remoteMemHandle, long address) {
    return calls().vipxMapRemote(viHandle, remoteAddress, length, remoteMemHandle, address);
  }

  /**
   * VipxUnmapRemote: end a mapping of VipxMapRemote.
   * @param viHandle in, the VI it was made with
   * @param address in, the address VipxMapRemote() gave
   * @return a code of {@link VipConstants}
   */
  public static int vipxUnmapRemote(long viHandle, long address) {
    return calls().vipxUnmapRemote(viHandle, address);
  }

  /**
   * VipxFlush: wait until all that was posted has been executed at the other end.
   * @param viHandle in, a connected VI
   * @param timeout in, milliseconds, or VIP_INFINITE
   * @return a code of {@link VipConstants}
   */
  public static int vipxFlush(long viHandle, long timeout) {
    return calls().vipxFlush(viHandle, timeout);
  }

  /**
   * VipxPostSends: post many descriptors to the send queue of a VI.
   * @param viHandle in, the VI
   * @param descriptors in, Count pointers to descriptors, not NULL
   * @param count in, how many
   * @param memoryHandle in, the handle of the memory in which all of the descriptors lie
   * @param posted out, how many were posted, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipxPostSends(
      long viHandle, long descriptors, long count, int memoryHandle, long posted) {
    return calls().vipxPostSends(viHandle, descriptors, count, memoryHandle, posted);
  }

  /**
   * VipxPostRecvs: post many descriptors to the receive queue of a VI.
   * @param viHandle in, the VI
   * @param descriptors in, Count pointers to descriptors, not NULL
   * @param count in, how many
   * @param memoryHandle in, the handle of the memory in which all of the descriptors lie
   * @param posted out, how many were posted, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipxPostRecvs(
      long viHandle, long descriptors, long count, int memoryHandle, long posted) {
    return calls().vipxPostRecvs(viHandle, descriptors, count, memoryHandle, posted);
  }

  /**
   * VipxSendsDone: take many completed descriptors from the send queue of a VI.
   * @param viHandle in, the VI
   * @param descriptors out, room for Max pointers, not NULL
   * @param max in, the most to take, at least 1
   * @param count out, how many were taken, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipxSendsDone(long viHandle, long descriptors, long max, long count) {
    return calls().vipxSendsDone(viHandle, descriptors, max, count);
  }

  /**
   * VipxRecvsDone: take many completed descriptors from the receive queue of a VI.
   * @param viHandle in, the VI
   * @param descriptors out, room for Max pointers, not NULL
   * @param max in, the most to take, at least 1
   * @param count out, how many were taken, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipxRecvsDone(long viHandle, long descriptors, long max, long count) {
    return calls().vipxRecvsDone(viHandle, descriptors, max, count);
  }

  /**
   * VipxSetViContext: keep a pointer with a VI.
   * @param viHandle in, the VI
   * @param context in, any value
   * @return a code of {@link VipConstants}
   */
  public static int vipxSetViContext(long viHandle, long context) {
    return calls().vipxSetViContext(viHandle, context);
  }

  /**
   * VipxCQTake: take many completed descriptors of the VIs of a completion queue.
   * @param cqHandle in, the queue
   * @param completions in/out, in: Size of the first entry
   * @param max in, the most to take, at least 1
   * @param count out, how many were taken, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipxCQTake(long cqHandle, long completions, long max, long count) {
    return calls().vipxCQTake(cqHandle, completions, max, count);
  }

  /**
   * VipxCQFd: tell the file descriptor of a completion queue.
   * @param cqHandle in, the queue
   * @param fd out, a file descriptor for poll(2) and epoll(7), not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipxCQFd(long cqHandle, long fd) {
    return calls().vipxCQFd(cqHandle, fd);
  }

  /**
   * VipxCQArm: arm the file descriptor of a completion queue.
   * @param cqHandle in, the queue
   * @return a code of {@link VipConstants}
   */
  public static int vipxCQArm(long cqHandle) {
    return calls().vipxCQArm(cqHandle);
  }

  /**
   * VipxProgress: move packets of all VIs of a NIC now.
   * @param nicHandle in, handle from VipOpenNic()
   * @return a code of {@link VipConstants}
   */
  public static int vipxProgress(long nicHandle) {
    return calls().vipxProgress(nicHandle);
  }

  /**
   * VipxSetAffinity: place the threads of a NIC on processors.
   * @param nicHandle in, handle from VipOpenNic()
   * @param rules in, rules as in VIADUCT_AFFINITY, such as "transfer=shared-cache"
   * @return a code of {@link VipConstants}
   */
  public static int vipxSetAffinity(long nicHandle, long rules) {
    return calls().vipxSetAffinity(nicHandle, rules);
  }

  /**
   * VipxQueryPlacement: tell where a thread of a NIC was placed.
   * @param nicHandle in, handle from VipOpenNic()
   * @param role in, VIPX_ROLE_APPLICATION, for the thread that opened the NIC or called
   *     VipxSetAffinity() last, or VIPX_ROLE_TRANSFER
   * @param placement in/out, in: Size
   * @return a code of {@link VipConstants}
   */
  public static int vipxQueryPlacement(long nicHandle, long role, long placement) {
    return calls().vipxQueryPlacement(nicHandle, role, placement);
  }

  /**
   * VipxPlaceThread: place the calling thread.
   * @param nicHandle in, handle from VipOpenNic(): by the rules that this NIC has
   * @param role in, VIPX_ROLE_SERVICE, or VIPX_ROLE_APPLICATION
   * @param index in, number of the thread among those of the role, from 0
   * @param count in, how many threads of the role there are, at least 1
   * @param flags in, 0 or VIPX_PLACE_POLLS
   * @param placement in/out, in: Size
   * @return a code of {@link VipConstants}
   */
  public static int vipxPlaceThread(
      long nicHandle, long role, long index, long count, long flags, long placement) {
    return calls().vipxPlaceThread(nicHandle, role, index, count, flags, placement);
  }

  /**
   * VipxErrorString: tell the name of a return code.
   * @param code in, a return code
   * @return the address of the name, ended by a zero byte
   */
  public static long vipxErrorString(int code) {
    return calls().vipxErrorString(code);
  }

  /**
   * VipxStatusString: name the bits of a descriptor status.
   * @param status in, the Status of a descriptor
   * @param buffer out, the names without VIP_STATUS_, separated by '|', ended by a zero byte, such
   *     as "DONE|LENGTH_ERROR|OP_RECEIVE"
   * @param length in, bytes of room in Buffer, at least 1
   * @return a code of {@link VipConstants}
   */
  public static int vipxStatusString(long status, long buffer, long length) {
    return calls().vipxStatusString(status, buffer, length);
  }

  /**
   * VipxQueryRoute: tell the route of packets to a host.
   * @param nicHandle in, handle from VipOpenNic()
   * @param remoteAddr in, address of the host
   * @param route in/out, in: Size
   * @return a code of {@link VipConstants}
   */
  public static int vipxQueryRoute(long nicHandle, long remoteAddr, long route) {
    return calls().vipxQueryRoute(nicHandle, remoteAddr, route);
  }

  /**
   * VipxQueryCounters: tell the counters of a NIC or a VI.
   * @param nicHandle in, handle from VipOpenNic()
   * @param viHandle in, a VI of this NIC handle, or NULL: sums over all VIs of the handle, also
   *     those destroyed
   * @param counters in/out, in: Size
   * @return a code of {@link VipConstants}
   */
  public static int vipxQueryCounters(long nicHandle, long viHandle, long counters) {
    return calls().vipxQueryCounters(nicHandle, viHandle, counters);
  }

  /**
   * VipxQueryVersion: tell the version of the library.
   * @param extension out, VIPX_VERSION of the library, or NULL
   * @param release out, its release, such as "1.4.0", or NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipxQueryVersion(long extension, long release) {
    return calls().vipxQueryVersion(extension, release);
  }
}
