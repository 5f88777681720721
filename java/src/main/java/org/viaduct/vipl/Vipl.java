/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import org.viaduct.vipl.spi.NativeCalls;
import org.viaduct.vipl.spi.Natives;

/**
 * The functions of {@code vipl.h}, one method each.
 *
 * <p>Addresses and handles are {@code long}, memory handles {@code int}. Nothing is checked that
 * the C function does not check, and a wrong address ends the process as it does in C. {@link Nic}
 * and the objects that it makes are the safe interface. The full description of each function is
 * its manual page.
 */
public final class Vipl {
  private Vipl() {}

  private static NativeCalls calls() {
    return Natives.calls();
  }

  /**
   * VipOpenNic: open a NIC.
   * @param deviceName in, name of the device, not NULL
   * @param nicHandle out, the handle, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipOpenNic(long deviceName, long nicHandle) {
    return calls().vipOpenNic(deviceName, nicHandle);
  }

  /**
   * VipCloseNic: close a NIC.
   * @param nicHandle in, handle from VipOpenNic()
   * @return a code of {@link VipConstants}
   */
  public static int vipCloseNic(long nicHandle) {
    return calls().vipCloseNic(nicHandle);
  }

  /**
   * VipQueryNic: tell the attributes and limits of a NIC.
   * @param nicHandle in, handle from VipOpenNic()
   * @param nicAttribs out, the attributes, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipQueryNic(long nicHandle, long nicAttribs) {
    return calls().vipQueryNic(nicHandle, nicAttribs);
  }

  /**
   * VipCreateVi: create a VI.
   * @param nicHandle in, handle from VipOpenNic()
   * @param viAttribs in, the attributes, not NULL
   * @param sendCqHandle in, completion queue of the send queue, or NULL for none
   * @param recvCqHandle in, completion queue of the receive queue, or NULL for none
   * @param viHandle out, the VI, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipCreateVi(
      long nicHandle, long viAttribs, long sendCqHandle, long recvCqHandle, long viHandle) {
    return calls().vipCreateVi(nicHandle, viAttribs, sendCqHandle, recvCqHandle, viHandle);
  }

  /**
   * VipDestroyVi: destroy a VI.
   * @param viHandle in, the VI: idle, both queues empty
   * @return a code of {@link VipConstants}
   */
  public static int vipDestroyVi(long viHandle) {
    return calls().vipDestroyVi(viHandle);
  }

  /**
   * VipSetViAttributes: change the attributes of an idle VI.
   * @param viHandle in, the VI, in state VIP_STATE_IDLE
   * @param viAttribs in, all attributes, as for VipCreateVi(), not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipSetViAttributes(long viHandle, long viAttribs) {
    return calls().vipSetViAttributes(viHandle, viAttribs);
  }

  /**
   * VipQueryVi: tell state, attributes and queue emptiness of a VI.
   * @param viHandle in, the VI
   * @param state out, VIP_STATE_*, not NULL
   * @param viAttribs out, the attributes in force, not NULL
   * @param sendQEmpty out, VIP_TRUE if no descriptor is on the send queue, not NULL
   * @param recvQEmpty out, VIP_TRUE if no descriptor is on the receive queue, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipQueryVi(
      long viHandle, long state, long viAttribs, long sendQEmpty, long recvQEmpty) {
    return calls().vipQueryVi(viHandle, state, viAttribs, sendQEmpty, recvQEmpty);
  }

  /**
   * VipConnectWait: wait for a connection request.
   * @param nicHandle in, handle from VipOpenNic()
   * @param localAddr in, address to serve: host address of this NIC and a discriminator of 0 to
   *     MaxDiscriminatorLen bytes, not NULL
   * @param timeout in, milliseconds
   * @param remoteAddr out, the address the client called itself, not NULL
   * @param remoteViAttribs out, attributes of the client's VI, not NULL
   * @param connHandle out, the request, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipConnectWait(
      long nicHandle, long localAddr, long timeout, long remoteAddr, long remoteViAttribs, long
      connHandle) {
    return calls()
        .vipConnectWait(nicHandle, localAddr, timeout, remoteAddr, remoteViAttribs, connHandle);
  }

  /**
   * VipConnectAccept: accept a connection request.
   * @param connHandle in, request from VipConnectWait()
   * @param viHandle in, an idle VI of the same NIC handle
   * @return a code of {@link VipConstants}
   */
  public static int vipConnectAccept(long connHandle, long viHandle) {
    return calls().vipConnectAccept(connHandle, viHandle);
  }

  /**
   * VipConnectReject: refuse a connection request.
   * @param connHandle in, request from VipConnectWait()
   * @return a code of {@link VipConstants}
   */
  public static int vipConnectReject(long connHandle) {
    return calls().vipConnectReject(connHandle);
  }

  /**
   * VipConnectRequest: ask a server for a connection.
   * @param viHandle in, an idle VI
   * @param localAddr in, the address the server shall see: host address of this NIC and a
   *     discriminator, not NULL
   * @param remoteAddr in, the server's address: host address and the discriminator it waits on, not
   *     NULL
   * @param timeout in, milliseconds, not 0
   * @param remoteViAttribs out, attributes of the server's VI, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipConnectRequest(
      long viHandle, long localAddr, long remoteAddr, long timeout, long remoteViAttribs) {
    return calls().vipConnectRequest(viHandle, localAddr, remoteAddr, timeout, remoteViAttribs);
  }

  /**
   * VipDisconnect: end a connection.
   * @param viHandle in, the VI, in any state
   * @return a code of {@link VipConstants}
   */
  public static int vipDisconnect(long viHandle) {
    return calls().vipDisconnect(viHandle);
  }

  /**
   * VipConnectPeerRequest: begin a connection between equals.
   * @param viHandle in, an idle VI
   * @param localAddr in, this side's address: host address of this NIC and a discriminator, not
   *     NULL
   * @param remoteAddr in, the other side's address, not NULL
   * @param timeout in, milliseconds from now until the attempt fails, not 0
   * @return a code of {@link VipConstants}
   */
  public static int vipConnectPeerRequest(
      long viHandle, long localAddr, long remoteAddr, long timeout) {
    return calls().vipConnectPeerRequest(viHandle, localAddr, remoteAddr, timeout);
  }

  /**
   * VipConnectPeerDone: look for the result of a peer request.
   * @param viHandle in, a VI with a peer request
   * @param remoteViAttribs out, attributes of the peer's VI, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipConnectPeerDone(long viHandle, long remoteViAttribs) {
    return calls().vipConnectPeerDone(viHandle, remoteViAttribs);
  }

  /**
   * VipConnectPeerWait: wait for the result of a peer request.
   * @param viHandle in, a VI with a peer request
   * @param remoteViAttribs out, attributes of the peer's VI, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipConnectPeerWait(long viHandle, long remoteViAttribs) {
    return calls().vipConnectPeerWait(viHandle, remoteViAttribs);
  }

  /**
   * VipPostSend: queue a descriptor on the send queue.
   * @param viHandle in, the VI, in any state
   * @param descriptorPtr in, the descriptor: at a multiple of VIP_DESCRIPTOR_ALIGNMENT, inside
   *     registered memory, not NULL
   * @param memoryHandle in, handle of the memory that holds the descriptor
   * @return a code of {@link VipConstants}
   */
  public static int vipPostSend(long viHandle, long descriptorPtr, int memoryHandle) {
    return calls().vipPostSend(viHandle, descriptorPtr, memoryHandle);
  }

  /**
   * VipPostRecv: queue a descriptor on the receive queue.
   * @param viHandle in, the VI, in any state
   * @param descriptorPtr in, the descriptor: at a multiple of VIP_DESCRIPTOR_ALIGNMENT, inside
   *     registered memory, not NULL
   * @param memoryHandle in, handle of the memory that holds the descriptor
   * @return a code of {@link VipConstants}
   */
  public static int vipPostRecv(long viHandle, long descriptorPtr, int memoryHandle) {
    return calls().vipPostRecv(viHandle, descriptorPtr, memoryHandle);
  }

  /**
   * VipSendDone: take the first descriptor of the send queue if it is complete.
   * @param viHandle in, the VI
   * @param descriptorPtr out, the descriptor, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipSendDone(long viHandle, long descriptorPtr) {
    return calls().vipSendDone(viHandle, descriptorPtr);
  }

  /**
   * VipRecvDone: take the first descriptor of the receive queue if it is complete.
   * @param viHandle in, the VI
   * @param descriptorPtr out, the descriptor, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipRecvDone(long viHandle, long descriptorPtr) {
    return calls().vipRecvDone(viHandle, descriptorPtr);
  }

  /**
   * VipSendWait: wait until the first descriptor of the send queue is complete and take it.
   * @param viHandle in, the VI
   * @param timeout in, milliseconds
   * @param descriptorPtr out, the descriptor, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipSendWait(long viHandle, long timeout, long descriptorPtr) {
    return calls().vipSendWait(viHandle, timeout, descriptorPtr);
  }

  /**
   * VipRecvWait: wait until the first descriptor of the receive queue is complete and take it.
   * @param viHandle in, the VI
   * @param timeout in, milliseconds
   * @param descriptorPtr out, the descriptor, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipRecvWait(long viHandle, long timeout, long descriptorPtr) {
    return calls().vipRecvWait(viHandle, timeout, descriptorPtr);
  }

  /**
   * VipSendNotify: have a handler called when the first descriptor of the send queue is complete.
   * @param viHandle in, the VI
   * @param context in, passed to the handler, may be NULL
   * @param handler in, the handler, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipSendNotify(long viHandle, long context, long handler) {
    return calls().vipSendNotify(viHandle, context, handler);
  }

  /**
   * VipRecvNotify: have a handler called when the first descriptor of the receive queue is
   * complete.
   * @param viHandle in, the VI
   * @param context in, passed to the handler, may be NULL
   * @param handler in, the handler, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipRecvNotify(long viHandle, long context, long handler) {
    return calls().vipRecvNotify(viHandle, context, handler);
  }

  /**
   * VipCreateCQ: create a completion queue.
   * @param nicHandle in, handle from VipOpenNic()
   * @param entryCount in, entries wanted, 1 to MaxCQEntries
   * @param cqHandle out, the queue, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipCreateCQ(long nicHandle, long entryCount, long cqHandle) {
    return calls().vipCreateCQ(nicHandle, entryCount, cqHandle);
  }

  /**
   * VipResizeCQ: change the size of a completion queue.
   * @param cqHandle in, the queue
   * @param entryCount in, entries wanted, 1 to MaxCQEntries, at least those now in the queue
   * @return a code of {@link VipConstants}
   */
  public static int vipResizeCQ(long cqHandle, long entryCount) {
    return calls().vipResizeCQ(cqHandle, entryCount);
  }

  /**
   * VipDestroyCQ: destroy a completion queue.
   * @param cqHandle in, the queue, with no VI associated
   * @return a code of {@link VipConstants}
   */
  public static int vipDestroyCQ(long cqHandle) {
    return calls().vipDestroyCQ(cqHandle);
  }

  /**
   * VipCQDone: take an entry from a completion queue.
   * @param cqHandle in, the queue
   * @param viHandle out, the VI that completed a descriptor, not NULL
   * @param recvQueue out, VIP_TRUE: of its receive queue, VIP_FALSE: of its send queue, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipCQDone(long cqHandle, long viHandle, long recvQueue) {
    return calls().vipCQDone(cqHandle, viHandle, recvQueue);
  }

  /**
   * VipCQWait: wait for an entry in a completion queue and take it.
   * @param cqHandle in, the queue
   * @param timeout in, milliseconds
   * @param viHandle out, the VI that completed a descriptor, not NULL
   * @param recvQueue out, VIP_TRUE: of its receive queue, VIP_FALSE: of its send queue, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipCQWait(long cqHandle, long timeout, long viHandle, long recvQueue) {
    return calls().vipCQWait(cqHandle, timeout, viHandle, recvQueue);
  }

  /**
   * VipCQNotify: have a handler called for the next entry of a completion queue.
   * @param cqHandle in, the queue
   * @param context in, passed to the handler, may be NULL
   * @param handler in, the handler, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipCQNotify(long cqHandle, long context, long handler) {
    return calls().vipCQNotify(cqHandle, context, handler);
  }

  /**
   * VipCreatePtag: create a protection tag.
   * @param nicHandle in, handle from VipOpenNic()
   * @param protectionTag out, the tag, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipCreatePtag(long nicHandle, long protectionTag) {
    return calls().vipCreatePtag(nicHandle, protectionTag);
  }

  /**
   * VipDestroyPtag: destroy a protection tag.
   * @param nicHandle in, the NIC handle that created it
   * @param protectionTag in, the tag, used by no VI and no memory region
   * @return a code of {@link VipConstants}
   */
  public static int vipDestroyPtag(long nicHandle, long protectionTag) {
    return calls().vipDestroyPtag(nicHandle, protectionTag);
  }

  /**
   * VipRegisterMem: register memory.
   * @param nicHandle in, handle from VipOpenNic()
   * @param virtualAddress in, start, any alignment, not NULL
   * @param length in, bytes, 1 to MaxRegisterBlockBytes, which is the memory of the machine
   * @param memAttribs in, attributes, or NULL: no protection tag, no RDMA
   * @param memoryHandle out, the handle, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipRegisterMem(
      long nicHandle, long virtualAddress, long length, long memAttribs, long memoryHandle) {
    return calls().vipRegisterMem(nicHandle, virtualAddress, length, memAttribs, memoryHandle);
  }

  /**
   * VipDeregisterMem: end the registration of memory.
   * @param nicHandle in, the NIC handle it was registered with
   * @param virtualAddress in, the address given to VipRegisterMem()
   * @param memoryHandle in, the handle
   * @return a code of {@link VipConstants}
   */
  public static int vipDeregisterMem(long nicHandle, long virtualAddress, int memoryHandle) {
    return calls().vipDeregisterMem(nicHandle, virtualAddress, memoryHandle);
  }

  /**
   * VipSetMemAttributes: change the attributes of registered memory.
   * @param nicHandle in, the NIC handle it was registered with
   * @param address in, the address given to VipRegisterMem()
   * @param memoryHandle in, the handle
   * @param memAttribs in, all attributes, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipSetMemAttributes(
      long nicHandle, long address, int memoryHandle, long memAttribs) {
    return calls().vipSetMemAttributes(nicHandle, address, memoryHandle, memAttribs);
  }

  /**
   * VipQueryMem: tell the attributes of registered memory.
   * @param nicHandle in, the NIC handle it was registered with
   * @param address in, the address given to VipRegisterMem()
   * @param memoryHandle in, the handle
   * @param memAttribs out, the attributes, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipQueryMem(long nicHandle, long address, int memoryHandle, long memAttribs) {
    return calls().vipQueryMem(nicHandle, address, memoryHandle, memAttribs);
  }

  /**
   * VipErrorCallback: set the handler of asynchronous errors.
   * @param nicHandle in, handle from VipOpenNic()
   * @param context in, passed to the handler, may be NULL
   * @param handler in, the handler, or NULL for the default one, which writes a line to the log,
   *     but not when the peer has disconnected and nothing was lost: no send is left, the peer
   *     received all
   * @return a code of {@link VipConstants}
   */
  public static int vipErrorCallback(long nicHandle, long context, long handler) {
    return calls().vipErrorCallback(nicHandle, context, handler);
  }

  /**
   * VipQuerySystemManagementInfo: list the NIC addresses of the fabric.
   * @param nicHandle in, handle from VipOpenNic()
   * @param infoType in, VIP_SMI_AUTODISCOVERY
   * @param sysManInfo in/out, a VIP_AUTODISCOVERY_LIST, not NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipQuerySystemManagementInfo(long nicHandle, long infoType, long sysManInfo) {
    return calls().vipQuerySystemManagementInfo(nicHandle, infoType, sysManInfo);
  }

  /**
   * VipNSInit: start the name service.
   * @param nicHandle in, handle from VipOpenNic()
   * @param nSInitInfo in, ignored: NULL
   * @return a code of {@link VipConstants}
   */
  public static int vipNSInit(long nicHandle, long nSInitInfo) {
    return calls().vipNSInit(nicHandle, nSInitInfo);
  }

  /**
   * VipNSGetHostByName: find the address of a host.
   * @param nicHandle in, handle from VipOpenNic(), after VipNSInit()
   * @param name in, name or alias of the host, not NULL
   * @param address out, HostAddressLen and that many bytes of HostAddress are written, nothing
   *     else: a discriminator length or further bytes stay as they are
   * @param nameIndex in, which address of the host, from 0
   * @return a code of {@link VipConstants}
   */
  public static int vipNSGetHostByName(long nicHandle, long name, long address, long nameIndex) {
    return calls().vipNSGetHostByName(nicHandle, name, address, nameIndex);
  }

  /**
   * VipNSGetHostByAddr: find the name of a host.
   * @param nicHandle in, handle from VipOpenNic(), after VipNSInit()
   * @param address in, host address
   * @param name out, the name, ended by a zero byte, not NULL
   * @param nameLen in/out, in: bytes of room in Name
   * @return a code of {@link VipConstants}
   */
  public static int vipNSGetHostByAddr(long nicHandle, long address, long name, long nameLen) {
    return calls().vipNSGetHostByAddr(nicHandle, address, name, nameLen);
  }

  /**
   * VipNSShutdown: end the name service.
   * @param nicHandle in, handle from VipOpenNic()
   * @return a code of {@link VipConstants}
   */
  public static int vipNSShutdown(long nicHandle) {
    return calls().vipNSShutdown(nicHandle);
  }
}
