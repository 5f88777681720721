/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.channel;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.viaduct.vipl.DescriptorRing;
import org.viaduct.vipl.Memory;
import org.viaduct.vipl.MemoryAttributes;
import org.viaduct.vipl.NetAddress;
import org.viaduct.vipl.Nic;
import org.viaduct.vipl.Vi;
import org.viaduct.vipl.ViAttributes;
import org.viaduct.vipl.ViConnectException;
import org.viaduct.vipl.ViDescriptorException;
import org.viaduct.vipl.VipClosedException;
import org.viaduct.vipl.VipConstants;
import org.viaduct.vipl.VipException;
import org.viaduct.vipl.spi.Threads;

/**
 * The VI of a channel, its memory and its descriptors.
 *
 * <p>A message is an RDMA write with immediate data: it uses up one receive descriptor, which needs
 * no buffer, and tells its length. A mark without a message is an empty send. The immediate data of
 * both is the count of messages that the sender has released, and a bit that says that it has
 * closed.
 */
final class ChannelEnds implements AutoCloseable {
  /** The bits of a mark that count. */
  static final int COUNT_MASK = 0x7FFFFFFF;

  /** The bit of a mark that says that the sender has closed. */
  static final int END_BIT = 0x80000000;

  /**
   * Receives beyond the slots. A mark is sent when half of the slots, or one, were released since
   * the last: at most three that the other end has not taken, and the end.
   */
  private static final int MARKS = 6;

  private static final int REPOST_MAX = 32;
  private static final int POLLS = 300;
  private static final int SLICE_MS = 50;
  private static final long PAGE = 4096;

  private final Nic nic;
  private final ChannelOptions options;
  private final Vi vi;
  private final Memory inbound;
  private final Memory outbound;
  private final Memory helloMemory;
  private final DescriptorRing sends;
  private final DescriptorRing receives;
  private final ByteBuffer[] in;
  private final ByteBuffer[] out;
  private final int stride;
  private final int outStride;
  private final int repostEvery;
  private Hello peer;
  private ViDescriptorException notSent;
  private int markIndex;
  private int firstUnposted;
  private int unposted;

  ChannelEnds(Nic nic, ChannelOptions options) {
    this.nic = nic;
    this.options = options;
    this.stride = options.slotBytes();
    this.outStride = options.slotBytes();
    int slots = options.slots();
    repostEvery = Math.max(1, Math.min(REPOST_MAX, slots / 2));
    Opened opened = new Opened();
    try {
      inbound = opened.add(nic.allocate(segment(stride), MemoryAttributes.WRITABLE));
      outbound = opened.add(nic.register(segment(outStride), MemoryAttributes.LOCAL));
      helloMemory = opened.add(nic.register(2 * Hello.BYTES, MemoryAttributes.LOCAL));
      vi =
          opened.add(
              nic.createVi(
                  new ViAttributes(
                      options.reliability(),
                      nic.attributes().maxTransferSize(),
                      null,
                      true,
                      false)));
      sends = vi.sendRing(slots + MARKS + 1);
      receives = vi.receiveRing(slots + MARKS + 1 + repostEvery);
      in = views(inbound, stride);
      out = views(outbound, outStride);
      for (int i = 1; i < receives.slots(); i++) {
        receives.prepareEmpty(i);
      }
      receives.prepare(0, helloMemory, Hello.BYTES, Hello.BYTES);
      for (int i = 0; i < receives.slots(); i++) {
        receives.post(i);
      }
      opened.keep();
    } finally {
      opened.close();
    }
  }

  private long segment(int step) {
    return Math.max(PAGE, (long) step * options.slots());
  }

  private ByteBuffer[] views(Memory memory, int step) {
    ByteBuffer[] views = new ByteBuffer[options.slots()];
    for (int i = 0; i < views.length; i++) {
      views[i] = memory.buffer((long) i * step, options.slotBytes());
    }
    return views;
  }

  Vi vi() {
    return vi;
  }

  Hello peer() {
    return peer;
  }

  ByteBuffer in(int slot) {
    return in[slot];
  }

  ByteBuffer out(int slot) {
    return out[slot];
  }

  /** Asks until a server waits there, or the time is over. */
  void connect(NetAddress server, long milliseconds) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
    for (long pause = 1; ; pause = Math.min(2 * pause, SLICE_MS)) {
      long left = Math.max(1, TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime()));
      try {
        Waiter.await(() -> vi.connect(nic.address(), server, left));
        return;
      } catch (ViConnectException e) {
        if (e.code() != VipConstants.VIP_NO_MATCH || System.nanoTime() >= end) {
          throw e;
        }
      }
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(pause));
    }
  }

  /** Tells the other end where the segment lies, and learns that of the other end. */
  void greet(long milliseconds) throws InterruptedException {
    ByteBuffer both = helloMemory.buffer();
    int slots = options.slots();
    new Hello(slots, options.slotBytes(), inbound.address(), inbound.handle()).put(both);
    int slot = sends.slots() - 1;
    sends.prepare(slot, helloMemory, 0, Hello.BYTES);
    sends.post(slot);
    int completion = await(milliseconds);
    if (completion == DescriptorRing.NONE) {
      throw new ViConnectException(
          "RdmaChannel",
          VipConstants.VIP_TIMEOUT,
          "the other end has not said where its segment lies",
          "Use RdmaChannel at both ends");
    }
    if (DescriptorRing.failed(completion) || completion == DescriptorRing.EMPTY) {
      throw lost(completion, "RdmaChannel");
    }
    both.position(Hello.BYTES);
    peer = Hello.get(both.slice(), receives.length(completion));
    freeSend(slot);
    prepare();
    taken();
  }

  private void prepare() {
    int bytes = Math.min(options.slotBytes(), peer.slotBytes());
    receives.prepareEmpty(0);
    for (int i = 0; i < options.slots(); i++) {
      sends.prepareWrite(
          i, outbound, (long) i * outStride, bytes, peer.address(), peer.handle());
    }
    for (int i = options.slots(); i < sends.slots(); i++) {
      sends.prepareEmpty(i);
    }
  }

  // ---- sending ----

  void postMessage(int slot, int peerSlot, int bytes, int mark) {
    sends.target(slot, peer.address() + (long) peerSlot * peer.slotBytes());
    sends.immediate(slot, mark);
    sends.post(slot, bytes);
  }

  /**
   * Sends a mark without a message. One that cannot be sent is left out: the connection is lost
   * then, which the next receive tells when all messages were taken that have arrived.
   */
  void postMark(int mark) {
    int slot = options.slots() + markIndex;
    try {
      awaitQuietly(slot);
      sends.immediate(slot, mark);
      sends.post(slot);
    } catch (VipException e) {
      return;
    }
    markIndex = markIndex + 1 == MARKS ? 0 : markIndex + 1;
  }

  /** Says that this end closes; a connection that is lost has nobody to tell it to. */
  void postEnd(int mark) {
    int slot = sends.slots() - 1;
    try {
      if (peer != null && !vi.isClosed() && !sends.inFlight(slot)) {
        sends.immediate(slot, mark);
        sends.post(slot);
      }
    } catch (VipException e) {
      return; // the disconnection says the same
    }
  }

  /** Takes what is sent, without waiting. */
  private void reap() {
    int count = sends.take(Math.min(DescriptorRing.BATCH, sends.slots()));
    for (int i = 0; i < count; i++) {
      note(sends.taken(i));
    }
  }

  /** Notes a message that was not sent. */
  private void note(int completion) {
    if (DescriptorRing.failed(completion)
        && DescriptorRing.slot(completion) < options.slots()
        && notSent == null) {
      notSent = sends.failure(completion);
    }
  }

  /** Until a slot of the send ring is free; throws if a message was not sent. */
  void freeSend(int slot) throws InterruptedException {
    awaitSend(slot);
    if (notSent != null) {
      throw notSent;
    }
  }

  private void awaitSend(int slot) throws InterruptedException {
    for (int i = 0; sends.inFlight(slot); i++) {
      if (i < POLLS) {
        reap();
      } else {
        note(Threads.onVirtual() ? handOverSend() : sends.await(SLICE_MS));
      }
    }
  }

  private int handOverSend() throws InterruptedException {
    return Waiter.await(() -> sends.await(SLICE_MS));
  }

  /** As awaitSend(), also when interrupted: the other end takes marks without its program. */
  private void awaitQuietly(int slot) {
    boolean interrupted = false;
    while (sends.inFlight(slot)) {
      try {
        awaitSend(slot);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  void freeAllSends() throws InterruptedException {
    for (int i = 0; i < sends.slots(); i++) {
      freeSend(i);
    }
  }

  // ---- receiving ----

  /** The next completion of the receive queue, or NONE after that time. */
  int await(long milliseconds) throws InterruptedException {
    int completion = receives.spin(POLLS);
    if (completion != DescriptorRing.NONE || milliseconds == 0) {
      return completion;
    }
    return Threads.onVirtual() ? handOver(milliseconds) : receives.await(milliseconds);
  }

  private int handOver(long milliseconds) throws InterruptedException {
    return Waiter.await(() -> receives.await(milliseconds));
  }

  boolean isMessage(int slot) {
    return (receives.status(slot) & VipConstants.VIP_STATUS_OP_MASK)
        == VipConstants.VIP_STATUS_OP_REMOTE_RDMA_WRITE;
  }

  int markOf(int slot) {
    if (!receives.hasImmediate(slot)) {
      throw new ViConnectException(
          "RdmaChannel",
          VipConstants.VIP_INVALID_STATE,
          "the other end breaks the protocol: a message without a mark",
          "Close the channel");
    }
    return receives.immediate(slot);
  }

  long lengthOf(int slot) {
    return receives.length(slot);
  }

  /** A receive was taken and read; posts those that were, some at a time. */
  void taken() {
    unposted++;
    if (unposted == repostEvery) {
      receives.postMany(firstUnposted, unposted);
      firstUnposted = (firstUnposted + unposted) % receives.slots();
      unposted = 0;
    }
  }

  /** The exception for a receive that failed. */
  VipException lost(int completion, String call) {
    if (vi.isClosed()) {
      return closedException(call);
    }
    if (completion == DescriptorRing.EMPTY) {
      return new ViConnectException(
          call, VipConstants.VIP_INVALID_STATE, "the connection is lost", "Connect again");
    }
    ViDescriptorException why = receives.failure(completion);
    ViConnectException lost =
        new ViConnectException(
            call,
            VipConstants.VIP_DESCRIPTOR_ERROR,
            "the connection is lost, and the other end has not said that it closes",
            "Connect again");
    lost.initCause(why);
    return lost;
  }

  static VipException closedException(String call) {
    return new VipClosedException(call, "the channel");
  }

  // ---- the end ----

  void abort() {
    vi.close();
  }

  @Override
  public void close() {
    vi.close();
    inbound.close();
    outbound.close();
    helloMemory.close();
  }
}
