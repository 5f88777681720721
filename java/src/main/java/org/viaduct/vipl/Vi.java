/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import org.viaduct.vipl.spi.Layout;

/**
 * A VI: one end of a connection, with a send queue and a receive queue.
 *
 * <p>It belongs to one thread, or to the thread of its completion queue. {@link #close} and {@link
 * #disconnect} may be called by any.
 */
public final class Vi implements AutoCloseable {
  private static final int CLOSE_PATIENCE_MS = 10_000;

  private final Nic nic;
  private final long handle;
  private final int number;
  private final Cq sendCq;
  private final Cq recvCq;
  private final Leaks.Watch watch;
  private volatile long maxTransferSize;
  private volatile boolean closed;
  private boolean ended;
  private DescriptorRing sends;
  private DescriptorRing receives;

  /** Descriptors in flight that are so long that no call on this VI may stop the collector. */
  int longInFlight;

  Vi(Nic nic, ViAttributes attributes, Cq sendCq, Cq recvCq) {
    this.nic = nic;
    this.sendCq = sendCq;
    this.recvCq = recvCq;
    try (Scratch s = new Scratch(Layout.VI_SIZE + 16)) {
      int attribs = put(s, nic, attributes);
      int out = s.room(8);
      int code =
          Vipl.vipCreateVi(
              nic.handle(),
              s.address(attribs),
              Cq.handle(sendCq, nic),
              Cq.handle(recvCq, nic),
              s.address(out));
      Codes.check("VipCreateVi", code, attributes + nic.limits());
      handle = s.getLong(out);
    }
    maxTransferSize = attributes.maxTransferSize();
    number = nic.add(this);
    countUse(1);
    Vipx.vipxSetViContext(handle, number + 1L);
    watch = Leaks.watch(this, "a VI of " + nic, null);
  }

  static int put(Scratch s, Nic nic, ViAttributes attributes) {
    int at = s.room(Layout.VI_SIZE);
    s.putShort(at + Layout.VI_LEVEL, attributes.reliability().bit());
    s.putLong(at + Layout.VI_MAX_TRANSFER, attributes.maxTransferSize());
    s.putLong(at + Layout.VI_QOS, 0);
    s.putLong(at + Layout.VI_PTAG, Ptag.handle(attributes.ptag(), nic));
    s.putInt(at + Layout.VI_WRITE, attributes.rdmaWrite() ? 1 : 0);
    s.putInt(at + Layout.VI_READ, attributes.rdmaRead() ? 1 : 0);
    return at;
  }

  static ViAttributes get(Scratch s, int at) {
    return new ViAttributes(
        Reliability.of(s.getShort(at + Layout.VI_LEVEL)),
        s.getLong(at + Layout.VI_MAX_TRANSFER),
        null,
        s.getInt(at + Layout.VI_WRITE) != 0,
        s.getInt(at + Layout.VI_READ) != 0);
  }

  /**
   * Tells the NIC.
   *
   * @return the NIC that made this VI
   */
  public Nic nic() {
    return nic;
  }

  /**
   * Tells the handle.
   *
   * @return the handle, for {@link Vipl}
   */
  public long handle() {
    return handle;
  }

  /**
   * Tells the limit of a descriptor.
   *
   * @return the most bytes
   */
  public long maxTransferSize() {
    return maxTransferSize;
  }

  /**
   * Tells whether it is closed, or being closed.
   *
   * @return whether {@link #close} was called
   */
  public boolean isClosed() {
    return closed;
  }

  /**
   * Makes the ring of the send queue, with two segments: one more than an RDMA needs.
   *
   * @param slots how many descriptors
   * @return the ring; a queue has one at a time
   */
  public DescriptorRing sendRing(int slots) {
    return sendRing(slots, 2);
  }

  /**
   * Makes the ring of the send queue.
   *
   * @param slots how many descriptors
   * @param segments the most segments of one; the address of an RDMA is one, the values of an
   *     atomic operation are another
   * @return the ring; a queue has one at a time
   */
  public synchronized DescriptorRing sendRing(int slots, int segments) {
    checkRing("Vi.sendRing", sends, slots, segments);
    sends = new DescriptorRing(this, false, slots, segments);
    return sends;
  }

  /**
   * Makes the ring of the receive queue, with up to two segments each.
   *
   * @param slots how many descriptors
   * @return the ring; a queue has one at a time
   */
  public DescriptorRing receiveRing(int slots) {
    return receiveRing(slots, 2);
  }

  /**
   * Makes the ring of the receive queue.
   *
   * @param slots how many descriptors
   * @param segments the most segments of one
   * @return the ring; a queue has one at a time
   */
  public synchronized DescriptorRing receiveRing(int slots, int segments) {
    checkRing("Vi.receiveRing", receives, slots, segments);
    receives = new DescriptorRing(this, true, slots, segments);
    return receives;
  }

  private void checkRing(String call, DescriptorRing old, int slots, int segments) {
    checkOpen(call);
    if (old != null) {
      throw new VipStateException(
          call,
          VipConstants.VIP_INVALID_STATE,
          "the queue has a ring of " + old.slots() + " slots",
          "Close that one first");
    }
    NicAttributes limits = nic.attributes();
    if (slots < 1 || slots > limits.maxDescriptorsPerQueue()) {
      throw new VipArgumentException(
          call,
          VipConstants.VIP_INVALID_PARAMETER,
          slots + " slots, of 1 to " + limits.maxDescriptorsPerQueue(),
          "Stay within NicAttributes.maxDescriptorsPerQueue");
    }
    if (segments < 1 || segments > limits.maxSegmentsPerDesc() + 2) {
      throw new VipArgumentException(
          call,
          VipConstants.VIP_INVALID_PARAMETER,
          segments + " segments, of 1 to " + (limits.maxSegmentsPerDesc() + 2),
          "Stay within NicAttributes.maxSegmentsPerDesc");
    }
  }

  /** The ring of a queue, or null. */
  DescriptorRing ring(boolean receive) {
    return receive ? receives : sends;
  }

  synchronized void forget(DescriptorRing ring) {
    if (ring == sends) {
      sends = null;
    } else if (ring == receives) {
      receives = null;
    }
  }

  boolean usesMemory(Memory memory) {
    DescriptorRing s = sends;
    DescriptorRing r = receives;
    return s != null && s.uses(memory) || r != null && r.uses(memory);
  }

  /**
   * Asks a server for a connection. Post receives before. An interrupt is noticed within 50 ms.
   *
   * @param local the address that the server shall see: {@link Nic#address()}, with a discriminator
   *     or without
   * @param remote the server's address, with the discriminator that it waits on
   * @param milliseconds how long, not 0, or VIP_INFINITE
   * @return the attributes of the server's VI, without a tag
   * @throws InterruptedException if the thread was interrupted; the VI is idle then
   */
  public ViAttributes connect(NetAddress local, NetAddress remote, long milliseconds)
      throws InterruptedException {
    checkOpen("Vi.connect");
    try (Scratch s = new Scratch(Addresses.room(local) + Addresses.room(remote) + Layout.VI_SIZE);
        Interrupts.Watch interrupts = Interrupts.watch(this)) {
      int from = Addresses.put(s, local);
      int to = Addresses.put(s, remote);
      int attribs = s.room(Layout.VI_SIZE);
      int code =
          Vipl.vipConnectRequest(
              handle, s.address(from), s.address(to), milliseconds, s.address(attribs));
      interrupts.check(code);
      if (code != VipConstants.VIP_SUCCESS) {
        checkOpen("Vi.connect");
        throw Codes.exception("VipConnectRequest", code, "from " + local + " to " + remote);
      }
      return get(s, attribs);
    }
  }

  /**
   * Begins a connection between equals: both sides call this.
   *
   * @param local this side's address
   * @param remote the other side's address
   * @param milliseconds how long until it fails, not 0, or VIP_INFINITE
   */
  public void connectPeer(NetAddress local, NetAddress remote, long milliseconds) {
    checkOpen("Vi.connectPeer");
    try (Scratch s = new Scratch(Addresses.room(local) + Addresses.room(remote))) {
      int from = Addresses.put(s, local);
      int to = Addresses.put(s, remote);
      int code =
          Vipl.vipConnectPeerRequest(handle, s.address(from), s.address(to), milliseconds);
      Codes.check("VipConnectPeerRequest", code, "from " + local + " to " + remote);
    }
  }

  /**
   * Looks for the result of {@link #connectPeer}.
   *
   * @return the attributes of the other VI, or null if there is no result yet
   */
  public ViAttributes connectPeerDone() {
    checkOpen("Vi.connectPeerDone");
    try (Scratch s = new Scratch(Layout.VI_SIZE)) {
      int attribs = s.room(Layout.VI_SIZE);
      int code = Vipl.vipConnectPeerDone(handle, s.address(attribs));
      if (code == VipConstants.VIP_NOT_DONE) {
        return null;
      }
      Codes.check("VipConnectPeerDone", code, toString());
      return get(s, attribs);
    }
  }

  /**
   * Waits for the result of {@link #connectPeer}, as long as that allowed.
   *
   * @return the attributes of the other VI
   * @throws InterruptedException if the thread was interrupted; the VI is idle then
   */
  public ViAttributes connectPeerWait() throws InterruptedException {
    checkOpen("Vi.connectPeerWait");
    try (Scratch s = new Scratch(Layout.VI_SIZE);
        Interrupts.Watch interrupts = Interrupts.watch(this)) {
      int attribs = s.room(Layout.VI_SIZE);
      int code = Vipl.vipConnectPeerWait(handle, s.address(attribs));
      interrupts.check(code);
      if (code != VipConstants.VIP_SUCCESS) {
        checkOpen("Vi.connectPeerWait");
        throw Codes.exception("VipConnectPeerWait", code, toString());
      }
      return get(s, attribs);
    }
  }

  /**
   * Ends the connection; the VI is idle then. Descriptors in flight complete, flushed, and must
   * still be taken. On reliable levels it waits for sends under way, some seconds at most.
   */
  public void disconnect() {
    int code = Vipl.vipDisconnect(handle);
    if (code != VipConstants.VIP_SUCCESS) {
      checkOpen("Vi.disconnect");
      throw Codes.exception("VipDisconnect", code, toString());
    }
  }

  /**
   * Tells the state.
   *
   * @return the state now
   */
  public ViState state() {
    try (Scratch s = new Scratch(Layout.VI_SIZE + 24)) {
      return ViState.values()[s.getInt(query(s))];
    }
  }

  /**
   * Tells the attributes in force; the tag is not told.
   *
   * @return the attributes, without a tag
   */
  public ViAttributes attributes() {
    try (Scratch s = new Scratch(Layout.VI_SIZE + 24)) {
      return get(s, query(s) + 24);
    }
  }

  private int query(Scratch s) {
    checkOpen("Vi.state");
    int state = s.room(24);
    int attribs = s.room(Layout.VI_SIZE);
    int code =
        Vipl.vipQueryVi(
            handle,
            s.address(state),
            s.address(attribs),
            s.address(state + 8),
            s.address(state + 16));
    Codes.check("VipQueryVi", code, toString());
    return state;
  }

  /**
   * Changes all attributes of an idle VI.
   *
   * @param attributes the new ones
   */
  public void setAttributes(ViAttributes attributes) {
    checkOpen("Vi.setAttributes");
    try (Scratch s = new Scratch(Layout.VI_SIZE)) {
      int at = put(s, nic, attributes);
      int code = Vipl.vipSetViAttributes(handle, s.address(at));
      Codes.check("VipSetViAttributes", code, attributes + nic.limits());
      maxTransferSize = attributes.maxTransferSize();
    }
  }

  /**
   * Waits until all that was posted has been executed at the other end.
   *
   * @param milliseconds how long; 0 looks once
   * @return whether it has been
   * @throws InterruptedException if the thread was interrupted
   */
  public boolean flush(long milliseconds) throws InterruptedException {
    checkOpen("Vi.flush");
    Slices slices = new Slices(milliseconds);
    while (true) {
      int code = Vipx.vipxFlush(handle, slices.next());
      if (code != VipConstants.VIP_TIMEOUT) {
        Codes.check("VipxFlush", code, toString());
        return true;
      }
      if (slices.over()) {
        return false;
      }
    }
  }

  /**
   * Tells the counters.
   *
   * @return the totals of this VI
   */
  public Counters counters() {
    checkOpen("Vi.counters");
    return nic.counters(handle);
  }

  void checkOpen(String call) {
    if (closed) {
      throw new VipClosedException(call, "the VI");
    }
  }

  /**
   * Disconnects, takes all descriptors that are left, destroys the VI and closes its rings. Another
   * thread that uses the VI during the call gets a {@link VipClosedException}.
   */
  @Override
  public void close() {
    closed = true;
    synchronized (this) {
      if (ended) {
        return;
      }
      Vipl.vipDisconnect(handle);
      destroy();
      ended = true;
      nic.remove(number);
      countUse(-1);
      watch.closed();
      endRing(sends);
      endRing(receives);
    }
  }

  private void countUse(int change) {
    if (sendCq != null) {
      sendCq.used(change);
    }
    if (recvCq != null) {
      recvCq.used(change);
    }
    if (change > 0) {
      nic.opened();
    } else {
      nic.ended();
    }
  }

  private void destroy() {
    long end = System.nanoTime() + CLOSE_PATIENCE_MS * 1_000_000L;
    try (Scratch s = new Scratch(8)) {
      int out = s.room(8);
      while (true) {
        reap(s, out);
        int code = Vipl.vipDestroyVi(handle);
        if (code == VipConstants.VIP_SUCCESS) {
          return;
        }
        if (code != VipConstants.VIP_ERROR_RESOURCE || System.nanoTime() > end) {
          throw Codes.exception(
              "VipDestroyVi", code, "descriptors are left, or a thread is inside a call: " + this);
        }
        Thread.yield();
      }
    }
  }

  private void reap(Scratch s, int out) {
    do {
      s.putLong(out, 0);
      Vipl.vipSendDone(handle, s.address(out));
    } while (s.getLong(out) != 0);
    do {
      s.putLong(out, 0);
      Vipl.vipRecvDone(handle, s.address(out));
    } while (s.getLong(out) != 0);
  }

  private static void endRing(DescriptorRing ring) {
    if (ring != null) {
      ring.abandon();
    }
  }

  @Override
  public String toString() {
    return "VI " + Long.toHexString(handle) + " of " + nic;
  }
}
