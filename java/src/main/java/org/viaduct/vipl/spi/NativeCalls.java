/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import java.nio.ByteBuffer;

/**
 * The calls that each way of calling C offers: the functions of the library, and the few of the
 * system that the binding needs.
 *
 * <p>The way that the foreign function interface calls short functions keeps the collector waiting
 * until they return. So functions that may take long have a second spelling, or are never called
 * that way.
 */
public interface NativeCalls extends ViplCalls, VipxCalls {
  /** The handler for a send queue whose head is complete. */
  int HANDLER_VI = 0;

  /** The handler for a completion queue that has an entry. */
  int HANDLER_CQ = 1;

  /** The handler for an asynchronous error. */
  int HANDLER_ERROR = 2;

  /** Which way this is: jni or ffm. */
  String name();

  /** VipPostSend of a descriptor whose data is copied in some microseconds. */
  default int postSendShort(long vi, long descriptor, int memoryHandle) {
    return vipPostSend(vi, descriptor, memoryHandle);
  }

  /** VipSendDone of a VI with long transfers under way, which the call may have to copy. */
  default int sendDoneLong(long vi, long descriptor) {
    return vipSendDone(vi, descriptor);
  }

  /** VipRecvDone of such a VI. */
  default int recvDoneLong(long vi, long descriptor) {
    return vipRecvDone(vi, descriptor);
  }

  /** VipxSendsDone of such a VI. */
  default int sendsDoneLong(long vi, long descriptors, long max, long count) {
    return vipxSendsDone(vi, descriptors, max, count);
  }

  /** VipRecvDone until it gives something else than VIP_NOT_DONE, some times at most. */
  int recvSpin(long vi, long descriptor, int times);

  /** As {@link #recvSpin}, for a VI with long sends under way. */
  default int recvSpinLong(long vi, long descriptor, int times) {
    return recvSpin(vi, descriptor, times);
  }

  /** The address of a C function that calls the handlers of this process: HANDLER_. */
  long handler(int kind);

  /** A view of native memory; the memory stays the caller's. */
  ByteBuffer view(long address, int length);

  /** The address of the first byte of a direct buffer, whatever its position. */
  long addressOf(ByteBuffer direct);

  /** The text at an address, which ends with a zero byte. */
  String text(long address);

  /** Maps private zeroed memory of whole pages; 0 if there is none. */
  long map(long length);

  /** Maps shared memory a second time; 0 if the system does not allow that. */
  long mapAgain(long address, long length);

  /**
   * Puts private zeroed memory at an address: in the place of what is mapped there, in one step, or
   * only if nothing is; 0 or -1.
   */
  int mapBlank(long address, long length, boolean replace);

  /** Ends a mapping; 0 or -1. */
  int unmap(long address, long length);

  /** A new event descriptor, closed in children; -1 if there is none. */
  int eventfd();

  /** Makes an event descriptor readable; 0 or -1. */
  int eventSet(int fd);

  /** Makes it not readable; 0 or -1. */
  int eventClear(int fd);

  /** Closes a descriptor; 0 or -1. */
  int closeFd(int fd);

  /** As poll(2) does: an array of struct pollfd. */
  int poll(long fds, int count, int milliseconds);

  /** A new epoll descriptor, closed in children; -1 if there is none. */
  int epollCreate();

  /** As epoll_ctl(2) does: the event is a struct epoll_event, or 0. */
  int epollControl(int epoll, int operation, int fd, long event);

  /** As epoll_wait(2) does. */
  int epollWait(int epoll, long events, int max, int milliseconds);
}
