/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import java.lang.invoke.MethodHandle;

/** The functions of {@code vipl_ext.h}. Those that cannot sleep are critical. */
abstract class FfmVipx extends FfmVipl implements VipxCalls {
  private static final MethodHandle VIPX_ALLOC_MEM = Link.plain("VipxAllocMem", "IJJJJJ");
  private static final MethodHandle VIPX_FREE_MEM = Link.plain("VipxFreeMem", "IJJI");
  private static final MethodHandle VIPX_ADOPT_MEM = Link.plain("VipxAdoptMem", "IJJJJJJ");
  private static final MethodHandle VIPX_MAP_REMOTE = Link.plain("VipxMapRemote", "IJJJIJ");
  private static final MethodHandle VIPX_UNMAP_REMOTE = Link.plain("VipxUnmapRemote", "IJJ");
  private static final MethodHandle VIPX_FLUSH = Link.plain("VipxFlush", "IJJ");
  private static final MethodHandle VIPX_POST_SENDS = Link.plain("VipxPostSends", "IJJJIJ");
  private static final MethodHandle VIPX_POST_RECVS = Link.critical("VipxPostRecvs", "IJJJIJ");
  private static final MethodHandle VIPX_SENDS_DONE = Link.critical("VipxSendsDone", "IJJJJ");
  private static final MethodHandle VIPX_RECVS_DONE = Link.critical("VipxRecvsDone", "IJJJJ");
  private static final MethodHandle VIPX_SET_VI_CONTEXT = Link.plain("VipxSetViContext", "IJJ");
  private static final MethodHandle VIPX_CQ_TAKE = Link.critical("VipxCQTake", "IJJJJ");
  private static final MethodHandle VIPX_CQ_FD = Link.plain("VipxCQFd", "IJJ");
  private static final MethodHandle VIPX_CQ_ARM = Link.plain("VipxCQArm", "IJ");
  private static final MethodHandle VIPX_PROGRESS = Link.plain("VipxProgress", "IJ");
  private static final MethodHandle VIPX_SET_AFFINITY = Link.plain("VipxSetAffinity", "IJJ");
  private static final MethodHandle VIPX_QUERY_PLACEMENT = Link.plain("VipxQueryPlacement", "IJJJ");
  private static final MethodHandle VIPX_PLACE_THREAD = Link.plain("VipxPlaceThread", "IJJJJJJ");
  private static final MethodHandle VIPX_ERROR_STRING = Link.plain("VipxErrorString", "JI");
  private static final MethodHandle VIPX_STATUS_STRING = Link.plain("VipxStatusString", "IJJJ");
  private static final MethodHandle VIPX_QUERY_ROUTE = Link.plain("VipxQueryRoute", "IJJJ");
  private static final MethodHandle VIPX_QUERY_COUNTERS = Link.plain("VipxQueryCounters", "IJJJ");
  private static final MethodHandle VIPX_QUERY_VERSION = Link.plain("VipxQueryVersion", "IJJ");

  @Override
  public int vipxAllocMem(
      long nicHandle, long length, long memAttribs, long address, long memoryHandle) {
    try {
      return (int) VIPX_ALLOC_MEM.invokeExact(nicHandle, length, memAttribs, address, memoryHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxFreeMem(long nicHandle, long address, int memoryHandle) {
    try {
      return (int) VIPX_FREE_MEM.invokeExact(nicHandle, address, memoryHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxAdoptMem(
      long nicHandle, long address, long length, long memAttribs, long flags, long memoryHandle) {
    try {
      return (int)
          VIPX_ADOPT_MEM.invokeExact(
              nicHandle, address, length, memAttribs, flags, memoryHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxMapRemote(
      long viHandle, long remoteAddress, long length, int remoteMemHandle, long address) {
    try {
      return (int)
          VIPX_MAP_REMOTE.invokeExact(
              viHandle, remoteAddress, length, remoteMemHandle, address);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxUnmapRemote(long viHandle, long address) {
    try {
      return (int) VIPX_UNMAP_REMOTE.invokeExact(viHandle, address);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxFlush(long viHandle, long timeout) {
    try {
      return (int) VIPX_FLUSH.invokeExact(viHandle, timeout);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxPostSends(
      long viHandle, long descriptors, long count, int memoryHandle, long posted) {
    try {
      return (int) VIPX_POST_SENDS.invokeExact(viHandle, descriptors, count, memoryHandle, posted);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxPostRecvs(
      long viHandle, long descriptors, long count, int memoryHandle, long posted) {
    try {
      return (int) VIPX_POST_RECVS.invokeExact(viHandle, descriptors, count, memoryHandle, posted);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxSendsDone(long viHandle, long descriptors, long max, long count) {
    try {
      return (int) VIPX_SENDS_DONE.invokeExact(viHandle, descriptors, max, count);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxRecvsDone(long viHandle, long descriptors, long max, long count) {
    try {
      return (int) VIPX_RECVS_DONE.invokeExact(viHandle, descriptors, max, count);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxSetViContext(long viHandle, long context) {
    try {
      return (int) VIPX_SET_VI_CONTEXT.invokeExact(viHandle, context);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxCQTake(long cqHandle, long completions, long max, long count) {
    try {
      return (int) VIPX_CQ_TAKE.invokeExact(cqHandle, completions, max, count);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxCQFd(long cqHandle, long fd) {
    try {
      return (int) VIPX_CQ_FD.invokeExact(cqHandle, fd);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxCQArm(long cqHandle) {
    try {
      return (int) VIPX_CQ_ARM.invokeExact(cqHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxProgress(long nicHandle) {
    try {
      return (int) VIPX_PROGRESS.invokeExact(nicHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxSetAffinity(long nicHandle, long rules) {
    try {
      return (int) VIPX_SET_AFFINITY.invokeExact(nicHandle, rules);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxQueryPlacement(long nicHandle, long role, long placement) {
    try {
      return (int) VIPX_QUERY_PLACEMENT.invokeExact(nicHandle, role, placement);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxPlaceThread(
      long nicHandle, long role, long index, long count, long flags, long placement) {
    try {
      return (int) VIPX_PLACE_THREAD.invokeExact(nicHandle, role, index, count, flags, placement);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public long vipxErrorString(int code) {
    try {
      return (long) VIPX_ERROR_STRING.invokeExact(code);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxStatusString(long status, long buffer, long length) {
    try {
      return (int) VIPX_STATUS_STRING.invokeExact(status, buffer, length);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxQueryRoute(long nicHandle, long remoteAddr, long route) {
    try {
      return (int) VIPX_QUERY_ROUTE.invokeExact(nicHandle, remoteAddr, route);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxQueryCounters(long nicHandle, long viHandle, long counters) {
    try {
      return (int) VIPX_QUERY_COUNTERS.invokeExact(nicHandle, viHandle, counters);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipxQueryVersion(long extension, long release) {
    try {
      return (int) VIPX_QUERY_VERSION.invokeExact(extension, release);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }
}
