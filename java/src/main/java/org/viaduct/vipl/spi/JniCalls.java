/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import java.nio.ByteBuffer;

/** Calls through the Java Native Interface: every JDK from 17 on has it. */
final class JniCalls implements NativeCalls {
  /** The name of the library in java/native, without "lib" and ".so". */
  static final String LIBRARY = "viaduct_java";

  JniCalls() {}

  /** The layout that the library was compiled with, as lines "NAME value". */
  static native String layout();

  /** Opens libvipl; null, or what is wrong with it. */
  static native String open(String path, long version);

  @Override
  public String name() {
    return "jni";
  }

  @Override
  public native int recvSpin(long vi, long descriptor, int times);

  @Override
  public native long handler(int kind);

  @Override
  public native ByteBuffer view(long address, int length);

  @Override
  public native long addressOf(ByteBuffer direct);

  @Override
  public native String text(long address);

  @Override
  public native long map(long length);

  @Override
  public native long mapAgain(long address, long length);

  @Override
  public native int mapBlank(long address, long length, boolean replace);

  @Override
  public native int unmap(long address, long length);

  @Override
  public native int eventfd();

  @Override
  public native int eventSet(int fd);

  @Override
  public native int eventClear(int fd);

  @Override
  public native int closeFd(int fd);

  @Override
  public native int poll(long fds, int count, int milliseconds);

  @Override
  public native int epollCreate();

  @Override
  public native int epollControl(int epoll, int operation, int fd, long event);

  @Override
  public native int epollWait(int epoll, long events, int max, int milliseconds);

  @Override
  public native int vipOpenNic(long deviceName, long nicHandle);

  @Override
  public native int vipCloseNic(long nicHandle);

  @Override
  public native int vipQueryNic(long nicHandle, long nicAttribs);

  @Override
  public native int vipCreateVi(
      long nicHandle, long viAttribs, long sendCqHandle, long recvCqHandle, long viHandle);

  @Override
  public native int vipDestroyVi(long viHandle);

  @Override
  public native int vipSetViAttributes(long viHandle, long viAttribs);

  @Override
  public native int vipQueryVi(
      long viHandle, long state, long viAttribs, long sendQEmpty, long recvQEmpty);

  @Override
  public native int vipConnectWait(
      long nicHandle, long localAddr, long timeout, long remoteAddr, long remoteViAttribs, long
      connHandle);

  @Override
  public native int vipConnectAccept(long connHandle, long viHandle);

  @Override
  public native int vipConnectReject(long connHandle);

  @Override
  public native int vipConnectRequest(
      long viHandle, long localAddr, long remoteAddr, long timeout, long remoteViAttribs);

  @Override
  public native int vipDisconnect(long viHandle);

  @Override
  public native int vipConnectPeerRequest(
      long viHandle, long localAddr, long remoteAddr, long timeout);

  @Override
  public native int vipConnectPeerDone(long viHandle, long remoteViAttribs);

  @Override
  public native int vipConnectPeerWait(long viHandle, long remoteViAttribs);

  @Override
  public native int vipPostSend(long viHandle, long descriptorPtr, int memoryHandle);

  @Override
  public native int vipPostRecv(long viHandle, long descriptorPtr, int memoryHandle);

  @Override
  public native int vipSendDone(long viHandle, long descriptorPtr);

  @Override
  public native int vipRecvDone(long viHandle, long descriptorPtr);

  @Override
  public native int vipSendWait(long viHandle, long timeout, long descriptorPtr);

  @Override
  public native int vipRecvWait(long viHandle, long timeout, long descriptorPtr);

  @Override
  public native int vipSendNotify(long viHandle, long context, long handler);

  @Override
  public native int vipRecvNotify(long viHandle, long context, long handler);

  @Override
  public native int vipCreateCQ(long nicHandle, long entryCount, long cqHandle);

  @Override
  public native int vipResizeCQ(long cqHandle, long entryCount);

  @Override
  public native int vipDestroyCQ(long cqHandle);

  @Override
  public native int vipCQDone(long cqHandle, long viHandle, long recvQueue);

  @Override
  public native int vipCQWait(long cqHandle, long timeout, long viHandle, long recvQueue);

  @Override
  public native int vipCQNotify(long cqHandle, long context, long handler);

  @Override
  public native int vipCreatePtag(long nicHandle, long protectionTag);

  @Override
  public native int vipDestroyPtag(long nicHandle, long protectionTag);

  @Override
  public native int vipRegisterMem(
      long nicHandle, long virtualAddress, long length, long memAttribs, long memoryHandle);

  @Override
  public native int vipDeregisterMem(long nicHandle, long virtualAddress, int memoryHandle);

  @Override
  public native int vipSetMemAttributes(
      long nicHandle, long address, int memoryHandle, long memAttribs);

  @Override
  public native int vipQueryMem(long nicHandle, long address, int memoryHandle, long memAttribs);

  @Override
  public native int vipErrorCallback(long nicHandle, long context, long handler);

  @Override
  public native int vipQuerySystemManagementInfo(long nicHandle, long infoType, long sysManInfo);

  @Override
  public native int vipNSInit(long nicHandle, long nSInitInfo);

  @Override
  public native int vipNSGetHostByName(long nicHandle, long name, long address, long nameIndex);

  @Override
  public native int vipNSGetHostByAddr(long nicHandle, long address, long name, long nameLen);

  @Override
  public native int vipNSShutdown(long nicHandle);

  @Override
  public native int vipxAllocMem(
      long nicHandle, long length, long memAttribs, long address, long memoryHandle);

  @Override
  public native int vipxFreeMem(long nicHandle, long address, int memoryHandle);

  @Override
  public native int vipxAdoptMem(
      long nicHandle, long address, long length, long memAttribs, long flags, long memoryHandle);

  @Override
  public native int vipxMapRemote(
      long viHandle, long remoteAddress, long length, int remoteMemHandle, long address);

  @Override
  public native int vipxUnmapRemote(long viHandle, long address);

  @Override
  public native int vipxFlush(long viHandle, long timeout);

  @Override
  public native int vipxPostSends(
      long viHandle, long descriptors, long count, int memoryHandle, long posted);

  @Override
  public native int vipxPostRecvs(
      long viHandle, long descriptors, long count, int memoryHandle, long posted);

  @Override
  public native int vipxSendsDone(long viHandle, long descriptors, long max, long count);

  @Override
  public native int vipxRecvsDone(long viHandle, long descriptors, long max, long count);

  @Override
  public native int vipxSetViContext(long viHandle, long context);

  @Override
  public native int vipxCQTake(long cqHandle, long completions, long max, long count);

  @Override
  public native int vipxCQFd(long cqHandle, long fd);

  @Override
  public native int vipxCQArm(long cqHandle);

  @Override
  public native int vipxProgress(long nicHandle);

  @Override
  public native int vipxSetAffinity(long nicHandle, long rules);

  @Override
  public native int vipxQueryPlacement(long nicHandle, long role, long placement);

  @Override
  public native int vipxPlaceThread(
      long nicHandle, long role, long index, long count, long flags, long placement);

  @Override
  public native long vipxErrorString(int code);

  @Override
  public native int vipxStatusString(long status, long buffer, long length);

  @Override
  public native int vipxQueryRoute(long nicHandle, long remoteAddr, long route);

  @Override
  public native int vipxQueryCounters(long nicHandle, long viHandle, long counters);

  @Override
  public native int vipxQueryVersion(long extension, long release);
}
