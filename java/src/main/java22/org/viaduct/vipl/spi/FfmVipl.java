/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import java.lang.invoke.MethodHandle;

/** The functions of {@code vipl.h}. Those that cannot sleep are critical. */
abstract class FfmVipl implements ViplCalls {
  private static final MethodHandle VIP_OPEN_NIC = Link.plain("VipOpenNic", "IJJ");
  private static final MethodHandle VIP_CLOSE_NIC = Link.plain("VipCloseNic", "IJ");
  private static final MethodHandle VIP_QUERY_NIC = Link.plain("VipQueryNic", "IJJ");
  private static final MethodHandle VIP_CREATE_VI = Link.plain("VipCreateVi", "IJJJJJ");
  private static final MethodHandle VIP_DESTROY_VI = Link.plain("VipDestroyVi", "IJ");
  private static final MethodHandle VIP_SET_VI_ATTRIBUTES = Link.plain("VipSetViAttributes", "IJJ");
  private static final MethodHandle VIP_QUERY_VI = Link.plain("VipQueryVi", "IJJJJJ");
  private static final MethodHandle VIP_CONNECT_WAIT = Link.plain("VipConnectWait", "IJJJJJJ");
  private static final MethodHandle VIP_CONNECT_ACCEPT = Link.plain("VipConnectAccept", "IJJ");
  private static final MethodHandle VIP_CONNECT_REJECT = Link.plain("VipConnectReject", "IJ");
  private static final MethodHandle VIP_CONNECT_REQUEST = Link.plain("VipConnectRequest", "IJJJJJ");
  private static final MethodHandle VIP_DISCONNECT = Link.plain("VipDisconnect", "IJ");
  private static final MethodHandle VIP_CONNECT_PEER_REQUEST =
      Link.plain("VipConnectPeerRequest", "IJJJJ");
  private static final MethodHandle VIP_CONNECT_PEER_DONE = Link.plain("VipConnectPeerDone", "IJJ");
  private static final MethodHandle VIP_CONNECT_PEER_WAIT = Link.plain("VipConnectPeerWait", "IJJ");
  private static final MethodHandle VIP_POST_SEND = Link.plain("VipPostSend", "IJJI");
  private static final MethodHandle VIP_POST_RECV = Link.critical("VipPostRecv", "IJJI");
  private static final MethodHandle VIP_SEND_DONE = Link.critical("VipSendDone", "IJJ");
  private static final MethodHandle VIP_RECV_DONE = Link.critical("VipRecvDone", "IJJ");
  private static final MethodHandle VIP_SEND_WAIT = Link.plain("VipSendWait", "IJJJ");
  private static final MethodHandle VIP_RECV_WAIT = Link.plain("VipRecvWait", "IJJJ");
  private static final MethodHandle VIP_SEND_NOTIFY = Link.plain("VipSendNotify", "IJJJ");
  private static final MethodHandle VIP_RECV_NOTIFY = Link.plain("VipRecvNotify", "IJJJ");
  private static final MethodHandle VIP_CREATE_CQ = Link.plain("VipCreateCQ", "IJJJ");
  private static final MethodHandle VIP_RESIZE_CQ = Link.plain("VipResizeCQ", "IJJ");
  private static final MethodHandle VIP_DESTROY_CQ = Link.plain("VipDestroyCQ", "IJ");
  private static final MethodHandle VIP_CQ_DONE = Link.critical("VipCQDone", "IJJJ");
  private static final MethodHandle VIP_CQ_WAIT = Link.plain("VipCQWait", "IJJJJ");
  private static final MethodHandle VIP_CQ_NOTIFY = Link.plain("VipCQNotify", "IJJJ");
  private static final MethodHandle VIP_CREATE_PTAG = Link.plain("VipCreatePtag", "IJJ");
  private static final MethodHandle VIP_DESTROY_PTAG = Link.plain("VipDestroyPtag", "IJJ");
  private static final MethodHandle VIP_REGISTER_MEM = Link.plain("VipRegisterMem", "IJJJJJ");
  private static final MethodHandle VIP_DEREGISTER_MEM = Link.plain("VipDeregisterMem", "IJJI");
  private static final MethodHandle VIP_SET_MEM_ATTRIBUTES =
      Link.plain("VipSetMemAttributes", "IJJIJ");
  private static final MethodHandle VIP_QUERY_MEM = Link.plain("VipQueryMem", "IJJIJ");
  private static final MethodHandle VIP_ERROR_CALLBACK = Link.plain("VipErrorCallback", "IJJJ");
  private static final MethodHandle VIP_QUERY_SYSTEM_MANAGEMENT_INFO =
      Link.plain("VipQuerySystemManagementInfo", "IJJJ");
  private static final MethodHandle VIP_NS_INIT = Link.plain("VipNSInit", "IJJ");
  private static final MethodHandle VIP_NS_GET_HOST_BY_NAME =
      Link.plain("VipNSGetHostByName", "IJJJJ");
  private static final MethodHandle VIP_NS_GET_HOST_BY_ADDR =
      Link.plain("VipNSGetHostByAddr", "IJJJJ");
  private static final MethodHandle VIP_NS_SHUTDOWN = Link.plain("VipNSShutdown", "IJ");

  @Override
  public int vipOpenNic(long deviceName, long nicHandle) {
    try {
      return (int) VIP_OPEN_NIC.invokeExact(deviceName, nicHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipCloseNic(long nicHandle) {
    try {
      return (int) VIP_CLOSE_NIC.invokeExact(nicHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipQueryNic(long nicHandle, long nicAttribs) {
    try {
      return (int) VIP_QUERY_NIC.invokeExact(nicHandle, nicAttribs);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipCreateVi(
      long nicHandle, long viAttribs, long sendCqHandle, long recvCqHandle, long viHandle) {
    try {
      return (int)
          VIP_CREATE_VI.invokeExact(
              nicHandle, viAttribs, sendCqHandle, recvCqHandle, viHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipDestroyVi(long viHandle) {
    try {
      return (int) VIP_DESTROY_VI.invokeExact(viHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipSetViAttributes(long viHandle, long viAttribs) {
    try {
      return (int) VIP_SET_VI_ATTRIBUTES.invokeExact(viHandle, viAttribs);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipQueryVi(
      long viHandle, long state, long viAttribs, long sendQEmpty, long recvQEmpty) {
    try {
      return (int) VIP_QUERY_VI.invokeExact(viHandle, state, viAttribs, sendQEmpty, recvQEmpty);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipConnectWait(
      long nicHandle, long localAddr, long timeout, long remoteAddr, long remoteViAttribs, long
      connHandle) {
    try {
      return (int)
          VIP_CONNECT_WAIT.invokeExact(
              nicHandle, localAddr, timeout, remoteAddr, remoteViAttribs, connHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipConnectAccept(long connHandle, long viHandle) {
    try {
      return (int) VIP_CONNECT_ACCEPT.invokeExact(connHandle, viHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipConnectReject(long connHandle) {
    try {
      return (int) VIP_CONNECT_REJECT.invokeExact(connHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipConnectRequest(
      long viHandle, long localAddr, long remoteAddr, long timeout, long remoteViAttribs) {
    try {
      return (int)
          VIP_CONNECT_REQUEST.invokeExact(
              viHandle, localAddr, remoteAddr, timeout, remoteViAttribs);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipDisconnect(long viHandle) {
    try {
      return (int) VIP_DISCONNECT.invokeExact(viHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipConnectPeerRequest(long viHandle, long localAddr, long remoteAddr, long timeout) {
    try {
      return (int) VIP_CONNECT_PEER_REQUEST.invokeExact(viHandle, localAddr, remoteAddr, timeout);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipConnectPeerDone(long viHandle, long remoteViAttribs) {
    try {
      return (int) VIP_CONNECT_PEER_DONE.invokeExact(viHandle, remoteViAttribs);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipConnectPeerWait(long viHandle, long remoteViAttribs) {
    try {
      return (int) VIP_CONNECT_PEER_WAIT.invokeExact(viHandle, remoteViAttribs);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipPostSend(long viHandle, long descriptorPtr, int memoryHandle) {
    try {
      return (int) VIP_POST_SEND.invokeExact(viHandle, descriptorPtr, memoryHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipPostRecv(long viHandle, long descriptorPtr, int memoryHandle) {
    try {
      return (int) VIP_POST_RECV.invokeExact(viHandle, descriptorPtr, memoryHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipSendDone(long viHandle, long descriptorPtr) {
    try {
      return (int) VIP_SEND_DONE.invokeExact(viHandle, descriptorPtr);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipRecvDone(long viHandle, long descriptorPtr) {
    try {
      return (int) VIP_RECV_DONE.invokeExact(viHandle, descriptorPtr);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipSendWait(long viHandle, long timeout, long descriptorPtr) {
    try {
      return (int) VIP_SEND_WAIT.invokeExact(viHandle, timeout, descriptorPtr);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipRecvWait(long viHandle, long timeout, long descriptorPtr) {
    try {
      return (int) VIP_RECV_WAIT.invokeExact(viHandle, timeout, descriptorPtr);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipSendNotify(long viHandle, long context, long handler) {
    try {
      return (int) VIP_SEND_NOTIFY.invokeExact(viHandle, context, handler);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipRecvNotify(long viHandle, long context, long handler) {
    try {
      return (int) VIP_RECV_NOTIFY.invokeExact(viHandle, context, handler);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipCreateCQ(long nicHandle, long entryCount, long cqHandle) {
    try {
      return (int) VIP_CREATE_CQ.invokeExact(nicHandle, entryCount, cqHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipResizeCQ(long cqHandle, long entryCount) {
    try {
      return (int) VIP_RESIZE_CQ.invokeExact(cqHandle, entryCount);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipDestroyCQ(long cqHandle) {
    try {
      return (int) VIP_DESTROY_CQ.invokeExact(cqHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipCQDone(long cqHandle, long viHandle, long recvQueue) {
    try {
      return (int) VIP_CQ_DONE.invokeExact(cqHandle, viHandle, recvQueue);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipCQWait(long cqHandle, long timeout, long viHandle, long recvQueue) {
    try {
      return (int) VIP_CQ_WAIT.invokeExact(cqHandle, timeout, viHandle, recvQueue);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipCQNotify(long cqHandle, long context, long handler) {
    try {
      return (int) VIP_CQ_NOTIFY.invokeExact(cqHandle, context, handler);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipCreatePtag(long nicHandle, long protectionTag) {
    try {
      return (int) VIP_CREATE_PTAG.invokeExact(nicHandle, protectionTag);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipDestroyPtag(long nicHandle, long protectionTag) {
    try {
      return (int) VIP_DESTROY_PTAG.invokeExact(nicHandle, protectionTag);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipRegisterMem(
      long nicHandle, long virtualAddress, long length, long memAttribs, long memoryHandle) {
    try {
      return (int)
          VIP_REGISTER_MEM.invokeExact(
              nicHandle, virtualAddress, length, memAttribs, memoryHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipDeregisterMem(long nicHandle, long virtualAddress, int memoryHandle) {
    try {
      return (int) VIP_DEREGISTER_MEM.invokeExact(nicHandle, virtualAddress, memoryHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipSetMemAttributes(long nicHandle, long address, int memoryHandle, long memAttribs) {
    try {
      return (int) VIP_SET_MEM_ATTRIBUTES.invokeExact(nicHandle, address, memoryHandle, memAttribs);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipQueryMem(long nicHandle, long address, int memoryHandle, long memAttribs) {
    try {
      return (int) VIP_QUERY_MEM.invokeExact(nicHandle, address, memoryHandle, memAttribs);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipErrorCallback(long nicHandle, long context, long handler) {
    try {
      return (int) VIP_ERROR_CALLBACK.invokeExact(nicHandle, context, handler);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipQuerySystemManagementInfo(long nicHandle, long infoType, long sysManInfo) {
    try {
      return (int) VIP_QUERY_SYSTEM_MANAGEMENT_INFO.invokeExact(nicHandle, infoType, sysManInfo);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipNSInit(long nicHandle, long nSInitInfo) {
    try {
      return (int) VIP_NS_INIT.invokeExact(nicHandle, nSInitInfo);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipNSGetHostByName(long nicHandle, long name, long address, long nameIndex) {
    try {
      return (int) VIP_NS_GET_HOST_BY_NAME.invokeExact(nicHandle, name, address, nameIndex);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipNSGetHostByAddr(long nicHandle, long address, long name, long nameLen) {
    try {
      return (int) VIP_NS_GET_HOST_BY_ADDR.invokeExact(nicHandle, address, name, nameLen);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }

  @Override
  public int vipNSShutdown(long nicHandle) {
    try {
      return (int) VIP_NS_SHUTDOWN.invokeExact(nicHandle);
    } catch (Throwable problem) {
      throw Link.failed(problem);
    }
  }
}
