/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

/** The functions of {@code vipl.h}: the parameters are those of C, in order. */
public interface ViplCalls {
  /** VipOpenNic: open a NIC. */
  int vipOpenNic(long deviceName, long nicHandle);

  /** VipCloseNic: close a NIC. */
  int vipCloseNic(long nicHandle);

  /** VipQueryNic: tell the attributes and limits of a NIC. */
  int vipQueryNic(long nicHandle, long nicAttribs);

  /** VipCreateVi: create a VI. */
  int vipCreateVi(
      long nicHandle, long viAttribs, long sendCqHandle, long recvCqHandle, long viHandle);

  /** VipDestroyVi: destroy a VI. */
  int vipDestroyVi(long viHandle);

  /** VipSetViAttributes: change the attributes of an idle VI. */
  int vipSetViAttributes(long viHandle, long viAttribs);

  /** VipQueryVi: tell state, attributes and queue emptiness of a VI. */
  int vipQueryVi(long viHandle, long state, long viAttribs, long sendQEmpty, long recvQEmpty);

  /** VipConnectWait: wait for a connection request. */
  int vipConnectWait(
      long nicHandle, long localAddr, long timeout, long remoteAddr, long remoteViAttribs, long
      connHandle);

  /** VipConnectAccept: accept a connection request. */
  int vipConnectAccept(long connHandle, long viHandle);

  /** VipConnectReject: refuse a connection request. */
  int vipConnectReject(long connHandle);

  /** VipConnectRequest: ask a server for a connection. */
  int vipConnectRequest(
      long viHandle, long localAddr, long remoteAddr, long timeout, long remoteViAttribs);

  /** VipDisconnect: end a connection. */
  int vipDisconnect(long viHandle);

  /** VipConnectPeerRequest: begin a connection between equals. */
  int vipConnectPeerRequest(long viHandle, long localAddr, long remoteAddr, long timeout);

  /** VipConnectPeerDone: look for the result of a peer request. */
  int vipConnectPeerDone(long viHandle, long remoteViAttribs);

  /** VipConnectPeerWait: wait for the result of a peer request. */
  int vipConnectPeerWait(long viHandle, long remoteViAttribs);

  /** VipPostSend: queue a descriptor on the send queue. */
  int vipPostSend(long viHandle, long descriptorPtr, int memoryHandle);

  /** VipPostRecv: queue a descriptor on the receive queue. */
  int vipPostRecv(long viHandle, long descriptorPtr, int memoryHandle);

  /** VipSendDone: take the first descriptor of the send queue if it is complete. */
  int vipSendDone(long viHandle, long descriptorPtr);

  /** VipRecvDone: take the first descriptor of the receive queue if it is complete. */
  int vipRecvDone(long viHandle, long descriptorPtr);

  /** VipSendWait: wait until the first descriptor of the send queue is complete and take it. */
  int vipSendWait(long viHandle, long timeout, long descriptorPtr);

  /** VipRecvWait: wait until the first descriptor of the receive queue is complete and take it. */
  int vipRecvWait(long viHandle, long timeout, long descriptorPtr);

  /** VipSendNotify: have a handler called when the head of the send queue is complete. */
  int vipSendNotify(long viHandle, long context, long handler);

  /** VipRecvNotify: have a handler called when the head of the receive queue is complete. */
  int vipRecvNotify(long viHandle, long context, long handler);

  /** VipCreateCQ: create a completion queue. */
  int vipCreateCQ(long nicHandle, long entryCount, long cqHandle);

  /** VipResizeCQ: change the size of a completion queue. */
  int vipResizeCQ(long cqHandle, long entryCount);

  /** VipDestroyCQ: destroy a completion queue. */
  int vipDestroyCQ(long cqHandle);

  /** VipCQDone: take an entry from a completion queue. */
  int vipCQDone(long cqHandle, long viHandle, long recvQueue);

  /** VipCQWait: wait for an entry in a completion queue and take it. */
  int vipCQWait(long cqHandle, long timeout, long viHandle, long recvQueue);

  /** VipCQNotify: have a handler called for the next entry of a completion queue. */
  int vipCQNotify(long cqHandle, long context, long handler);

  /** VipCreatePtag: create a protection tag. */
  int vipCreatePtag(long nicHandle, long protectionTag);

  /** VipDestroyPtag: destroy a protection tag. */
  int vipDestroyPtag(long nicHandle, long protectionTag);

  /** VipRegisterMem: register memory. */
  int vipRegisterMem(
      long nicHandle, long virtualAddress, long length, long memAttribs, long memoryHandle);

  /** VipDeregisterMem: end the registration of memory. */
  int vipDeregisterMem(long nicHandle, long virtualAddress, int memoryHandle);

  /** VipSetMemAttributes: change the attributes of registered memory. */
  int vipSetMemAttributes(long nicHandle, long address, int memoryHandle, long memAttribs);

  /** VipQueryMem: tell the attributes of registered memory. */
  int vipQueryMem(long nicHandle, long address, int memoryHandle, long memAttribs);

  /** VipErrorCallback: set the handler of asynchronous errors. */
  int vipErrorCallback(long nicHandle, long context, long handler);

  /** VipQuerySystemManagementInfo: list the NIC addresses of the fabric. */
  int vipQuerySystemManagementInfo(long nicHandle, long infoType, long sysManInfo);

  /** VipNSInit: start the name service. */
  int vipNSInit(long nicHandle, long nSInitInfo);

  /** VipNSGetHostByName: find the address of a host. */
  int vipNSGetHostByName(long nicHandle, long name, long address, long nameIndex);

  /** VipNSGetHostByAddr: find the name of a host. */
  int vipNSGetHostByAddr(long nicHandle, long address, long name, long nameLen);

  /** VipNSShutdown: end the name service. */
  int vipNSShutdown(long nicHandle);
}
