/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;

/** Calls through the foreign function interface. */
final class FfmCalls extends FfmVipx implements NativeCalls {
  private static final MethodHandle POST_SEND_SHORT = Link.critical("VipPostSend", "IJJI");
  private static final MethodHandle SEND_DONE_LONG = Link.plain("VipSendDone", "IJJ");
  private static final MethodHandle RECV_DONE_LONG = Link.plain("VipRecvDone", "IJJ");
  private static final MethodHandle SENDS_DONE_LONG = Link.plain("VipxSendsDone", "IJJJJ");
  private static final MethodHandle MMAP = Link.system("mmap", "JJJIIIJ");
  private static final MethodHandle MREMAP = Link.system("mremap", "JJJJI");
  private static final MethodHandle MUNMAP = Link.system("munmap", "IJJ");
  private static final MethodHandle EVENTFD = Link.system("eventfd", "III");
  private static final MethodHandle EVENTFD_WRITE = Link.system("eventfd_write", "IIJ");
  private static final MethodHandle EVENTFD_READ = Link.system("eventfd_read", "IIJ");
  private static final MethodHandle CLOSE = Link.system("close", "II");
  private static final MethodHandle POLL = Link.system("poll", "IJJI");
  private static final MethodHandle EPOLL_CREATE1 = Link.system("epoll_create1", "II");
  private static final MethodHandle EPOLL_CTL = Link.system("epoll_ctl", "IIIIJ");
  private static final MethodHandle EPOLL_WAIT = Link.system("epoll_wait", "IIJII");
  private static final long[] HANDLERS = new long[3];

  private static final int PROT_READ_WRITE = 3;
  private static final int MAP_PRIVATE_ANONYMOUS = 0x22;
  private static final int MAP_FIXED = 0x10;
  private static final int MAP_FIXED_NOREPLACE = 0x100000;
  private static final int MAP_NORESERVE = 0x4000;
  private static final int MREMAP_MAYMOVE = 1;
  private static final int CLOEXEC = 0x80000;
  private static final int NONBLOCK = 0x800;

  /** Polls before the first pause, which costs as much as half a message. */
  private static final int EAGER = 100;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      HANDLERS[HANDLER_VI] = handler(lookup, "vi", "VJJJJ", long.class);
      HANDLERS[HANDLER_CQ] = handler(lookup, "cq", "VJJJI", int.class);
      HANDLERS[HANDLER_ERROR] =
          Link.upcall(
              lookup.findStatic(
                  Handlers.class,
                  "error",
                  MethodType.methodType(void.class, long.class, long.class)),
              "VJJ");
    } catch (ReflectiveOperationException e) {
      throw new LinkageError("Handlers", e);
    }
  }

  private static long handler(MethodHandles.Lookup lookup, String name, String types, Class<?> last)
      throws ReflectiveOperationException {
    MethodType type = MethodType.methodType(void.class, long.class, long.class, long.class, last);
    return Link.upcall(lookup.findStatic(Handlers.class, name, type), types);
  }

  @Override
  public String name() {
    return "ffm";
  }

  @Override
  public int postSendShort(long vi, long descriptor, int memoryHandle) {
    try {
      return (int) POST_SEND_SHORT.invokeExact(vi, descriptor, memoryHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int sendDoneLong(long vi, long descriptor) {
    try {
      return (int) SEND_DONE_LONG.invokeExact(vi, descriptor);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int recvDoneLong(long vi, long descriptor) {
    try {
      return (int) RECV_DONE_LONG.invokeExact(vi, descriptor);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int sendsDoneLong(long vi, long descriptors, long max, long count) {
    try {
      return (int) SENDS_DONE_LONG.invokeExact(vi, descriptors, max, count);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int recvSpin(long vi, long descriptor, int times) {
    int code = vipRecvDone(vi, descriptor);
    for (int i = 1; code == 1 && i < times; i++) {
      if (i >= EAGER) {
        Thread.onSpinWait();
      }
      code = vipRecvDone(vi, descriptor);
    }
    return code;
  }

  @Override
  public int recvSpinLong(long vi, long descriptor, int times) {
    int code = recvDoneLong(vi, descriptor);
    for (int i = 1; code == 1 && i < times; i++) {
      if (i >= EAGER) {
        Thread.onSpinWait();
      }
      code = recvDoneLong(vi, descriptor);
    }
    return code;
  }

  @Override
  public long handler(int kind) {
    return HANDLERS[kind];
  }

  @Override
  public ByteBuffer view(long address, int length) {
    return MemorySegment.ofAddress(address).reinterpret(length).asByteBuffer();
  }

  @Override
  public long addressOf(ByteBuffer direct) {
    return MemorySegment.ofBuffer(direct.duplicate().clear()).address();
  }

  @Override
  public String text(long address) {
    return Link.text(address);
  }

  private static long mmap(long address, long length, int flags) {
    try {
      long got = (long) MMAP.invokeExact(address, length, PROT_READ_WRITE, flags, -1, 0L);
      return got == -1 ? 0 : got;
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public long map(long length) {
    return mmap(0, length, MAP_PRIVATE_ANONYMOUS);
  }

  @Override
  public long mapAgain(long address, long length) {
    try {
      long got = (long) MREMAP.invokeExact(address, 0L, length, MREMAP_MAYMOVE);
      return got == -1 ? 0 : got;
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int mapBlank(long address, long length, boolean replace) {
    int place = replace ? MAP_FIXED : MAP_FIXED_NOREPLACE;
    long got = mmap(address, length, MAP_PRIVATE_ANONYMOUS | MAP_NORESERVE | place);
    if (got != 0 && got != address) {
      unmap(got, length); // a kernel before 4.17 takes the address as a wish
    }
    return got == address ? 0 : -1;
  }

  @Override
  public int unmap(long address, long length) {
    try {
      return (int) MUNMAP.invokeExact(address, length);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int eventfd() {
    try {
      return (int) EVENTFD.invokeExact(0, CLOEXEC | NONBLOCK);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int eventSet(int fd) {
    try {
      return (int) EVENTFD_WRITE.invokeExact(fd, 1L);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int eventClear(int fd) {
    try (Arena arena = Arena.ofConfined()) {
      long value = arena.allocate(8).address();
      return (int) EVENTFD_READ.invokeExact(fd, value);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int closeFd(int fd) {
    try {
      return (int) CLOSE.invokeExact(fd);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int poll(long fds, int count, int milliseconds) {
    try {
      return (int) POLL.invokeExact(fds, (long) count, milliseconds);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int epollCreate() {
    try {
      return (int) EPOLL_CREATE1.invokeExact(CLOEXEC);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int epollControl(int epoll, int operation, int fd, long event) {
    try {
      return (int) EPOLL_CTL.invokeExact(epoll, operation, fd, event);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int epollWait(int epoll, long events, int max, int milliseconds) {
    try {
      return (int) EPOLL_WAIT.invokeExact(epoll, events, max, milliseconds);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }
}
