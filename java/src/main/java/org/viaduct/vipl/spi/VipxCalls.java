/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

/** The functions of {@code vipl_ext.h}: the parameters are those of C, in order. */
public interface VipxCalls {
  /** VipxAllocMem: allocate registered memory in the window. */
  int vipxAllocMem(long nicHandle, long length, long memAttribs, long address, long memoryHandle);

  /** VipxFreeMem: free memory of VipxAllocMem. */
  int vipxFreeMem(long nicHandle, long address, int memoryHandle);

  /** VipxAdoptMem: register memory of the program and make window memory of it. */
  int vipxAdoptMem(
      long nicHandle, long address, long length, long memAttribs, long flags, long memoryHandle);

  /** VipxMapRemote: map window memory of the process at the other end of a connection. */
  int vipxMapRemote(
      long viHandle, long remoteAddress, long length, int remoteMemHandle, long address);

  /** VipxUnmapRemote: end a mapping of VipxMapRemote. */
  int vipxUnmapRemote(long viHandle, long address);

  /** VipxFlush: wait until all that was posted has been executed at the other end. */
  int vipxFlush(long viHandle, long timeout);

  /** VipxPostSends: post many descriptors to the send queue of a VI. */
  int vipxPostSends(long viHandle, long descriptors, long count, int memoryHandle, long posted);

  /** VipxPostRecvs: post many descriptors to the receive queue of a VI. */
  int vipxPostRecvs(long viHandle, long descriptors, long count, int memoryHandle, long posted);

  /** VipxSendsDone: take many completed descriptors from the send queue of a VI. */
  int vipxSendsDone(long viHandle, long descriptors, long max, long count);

  /** VipxRecvsDone: take many completed descriptors from the receive queue of a VI. */
  int vipxRecvsDone(long viHandle, long descriptors, long max, long count);

  /** VipxSetViContext: keep a pointer with a VI. */
  int vipxSetViContext(long viHandle, long context);

  /** VipxCQTake: take many completed descriptors of the VIs of a completion queue. */
  int vipxCQTake(long cqHandle, long completions, long max, long count);

  /** VipxCQFd: tell the file descriptor of a completion queue. */
  int vipxCQFd(long cqHandle, long fd);

  /** VipxCQArm: arm the file descriptor of a completion queue. */
  int vipxCQArm(long cqHandle);

  /** VipxProgress: move packets of all VIs of a NIC now. */
  int vipxProgress(long nicHandle);

  /** VipxSetAffinity: place the threads of a NIC on processors. */
  int vipxSetAffinity(long nicHandle, long rules);

  /** VipxQueryPlacement: tell where a thread of a NIC was placed. */
  int vipxQueryPlacement(long nicHandle, long role, long placement);

  /** VipxPlaceThread: place the calling thread. */
  int vipxPlaceThread(
      long nicHandle, long role, long index, long count, long flags, long placement);

  /** VipxErrorString: tell the name of a return code. */
  long vipxErrorString(int code);

  /** VipxStatusString: name the bits of a descriptor status. */
  int vipxStatusString(long status, long buffer, long length);

  /** VipxQueryRoute: tell the route of packets to a host. */
  int vipxQueryRoute(long nicHandle, long remoteAddr, long route);

  /** VipxQueryCounters: tell the counters of a NIC or a VI. */
  int vipxQueryCounters(long nicHandle, long viHandle, long counters);

  /** VipxQueryVersion: tell the version of the library. */
  int vipxQueryVersion(long extension, long release);
}
