/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.channel;

import java.nio.ByteBuffer;
import org.viaduct.vipl.DescriptorRing;
import org.viaduct.vipl.NetAddress;
import org.viaduct.vipl.Nic;
import org.viaduct.vipl.ViConnectException;
import org.viaduct.vipl.VipArgumentException;
import org.viaduct.vipl.VipConstants;
import org.viaduct.vipl.VipException;
import org.viaduct.vipl.VipStateException;

/**
 * An end of a connection that carries messages in both directions, several at a time in each.
 *
 * <p>To send, fill {@link #sendSegment} and call {@link #send}. The message is written into a slot
 * of the receiver's segment, which lies in window memory, so nothing is copied on the way. {@link
 * #receive} waits for the next message, and {@link #receiveSegment} shows it where it lies, until
 * the next {@link #receive} or {@link #release}. A sender that has filled all slots of the receiver
 * waits until one is released.
 *
 * <p>A channel belongs to one thread at a time, which may be a virtual one; channels share nothing,
 * so a program gives each thread its own. {@link #abort} alone may be called by any thread. Waiting
 * calls poll for some microseconds and then sleep; an interrupt ends them within 50 ms. They
 * allocate nothing as long as they need not sleep.
 *
 * <p>Two ends that both send without receiving wait for each other for ever, as with sockets.
 */
public final class RdmaChannel implements AutoCloseable {
  /** Result of {@link #receive} when the other end has closed and all messages were received. */
  public static final int END = -1;

  /** Result of {@link #receive(long)} when no message came in time. */
  public static final int TIMEOUT = -2;

  /** How long a client waits for the server's segment, once connected. */
  private static final long HELLO_MS = 10_000;

  private static final long MILLION = 1_000_000;

  private final ChannelEnds ends;
  private final ChannelOptions options;
  private final int maxBytes;
  private final int peerSlots;
  private final int[] lengths;

  /* Sending: counts of messages, and which slot of the own and the peer's segment is next. */
  private long sent;
  private long credit;
  private int outIndex;
  private int peerIndex;

  /* Receiving: arrived >= delivered >= released >= told, the count that the peer knows of. */
  private long arrived;
  private long delivered;
  private long released;
  private long told;
  private int arrivedIndex;
  private int deliveredIndex;
  private ByteBuffer current;
  private boolean peerEnded;
  private boolean closed;

  /** Makes a channel of a connected VI; exchanges the segments. */
  RdmaChannel(ChannelEnds ends, ChannelOptions options, long helloMs)
      throws InterruptedException {
    this.ends = ends;
    this.options = options;
    this.lengths = new int[options.slots()];
    ends.greet(helloMs);
    this.maxBytes = Math.min(options.slotBytes(), ends.peer().slotBytes());
    this.peerSlots = ends.peer().slots();
  }

  /**
   * Connects to a server with the default options, in 10 s at most.
   *
   * @param nic the NIC of this host
   * @param host the server's host
   * @param service the name that the server has
   * @return the connection
   * @throws InterruptedException if the thread was interrupted
   */
  public static RdmaChannel connect(Nic nic, String host, String service)
      throws InterruptedException {
    return connect(nic, host, service, ChannelOptions.DEFAULT, 10_000);
  }

  /**
   * Connects to a server. A server that does not wait yet is asked again until the time is over.
   *
   * @param nic the NIC of this host
   * @param host the server's host
   * @param service the name that the server has
   * @param options slots of this end
   * @param milliseconds how long, at least 1
   * @return the connection
   * @throws InterruptedException if the thread was interrupted
   */
  public static RdmaChannel connect(
      Nic nic, String host, String service, ChannelOptions options, long milliseconds)
      throws InterruptedException {
    NetAddress server = nic.lookup(host).with(discriminator(service));
    ChannelEnds ends = new ChannelEnds(nic, options);
    try {
      ends.connect(server, milliseconds);
      return new RdmaChannel(ends, options, HELLO_MS);
    } catch (InterruptedException | RuntimeException e) {
      ends.close();
      throw e;
    }
  }

  static String discriminator(String service) {
    return "channel/" + service;
  }

  /**
   * Tells the options of this end.
   *
   * @return the options
   */
  public ChannelOptions options() {
    return options;
  }

  /**
   * Tells how many messages can be under way to the other end.
   *
   * @return the slots of the other end
   */
  public int slots() {
    return peerSlots;
  }

  /**
   * Tells the longest message.
   *
   * @return bytes: what a slot of both ends holds
   */
  public int maxBytes() {
    return maxBytes;
  }

  /**
   * The buffer that the next {@link #send} sends. Waits until the message that it carried before
   * has left it.
   *
   * @return a view of memory, its position 0 and its limit {@link #maxBytes}; it is this channel's,
   *     and to be filled before send and not after
   * @throws InterruptedException if the thread was interrupted
   */
  public ByteBuffer sendSegment() throws InterruptedException {
    checkOpen("RdmaChannel.sendSegment");
    ends.freeSend(outIndex);
    return ends.out(outIndex).limit(maxBytes).position(0);
  }

  /**
   * Sends the first bytes of {@link #sendSegment}. Waits until the other end has a slot free;
   * returns before the message has arrived.
   *
   * @param bytes how many, 0 to {@link #maxBytes}
   * @throws InterruptedException if the thread was interrupted; nothing was sent
   */
  public void send(int bytes) throws InterruptedException {
    checkOpen("RdmaChannel.send");
    if (bytes < 0 || bytes > maxBytes) {
      throw tooLong(bytes);
    }
    ends.freeSend(outIndex);
    while (sent - credit >= peerSlots) {
      took(ends.await(VipConstants.VIP_INFINITE), "RdmaChannel.send");
    }
    if (peerEnded) {
      throw ended();
    }
    ends.postMessage(outIndex, peerIndex, bytes, mark(false));
    sent++;
    outIndex = outIndex + 1 == options.slots() ? 0 : outIndex + 1;
    peerIndex = peerIndex + 1 == peerSlots ? 0 : peerIndex + 1;
  }

  private VipException tooLong(int bytes) {
    return new VipArgumentException(
        "RdmaChannel.send",
        VipConstants.VIP_INVALID_PARAMETER,
        bytes
            + " bytes, of 0 to "
            + maxBytes
            + " (slots here have "
            + options.slotBytes()
            + " bytes, at the other end "
            + ends.peer().slotBytes()
            + ")",
        "Send it in several messages, or give both ends longer slots by ChannelOptions.slotBytes");
  }

  private static VipException ended() {
    return new ViConnectException(
        "RdmaChannel.send",
        VipConstants.VIP_INVALID_STATE,
        "the other end has closed the channel",
        "Connect again");
  }

  /** The number sent with a message: how many this end has released, and whether it closes. */
  private int mark(boolean end) {
    told = released;
    return (int) released & ChannelEnds.COUNT_MASK | (end ? ChannelEnds.END_BIT : 0);
  }

  /**
   * Waits until all that was sent has left the send segments: at the level RECEPTION the other end
   * has it then.
   *
   * @throws InterruptedException if the thread was interrupted
   */
  public void sendDone() throws InterruptedException {
    checkOpen("RdmaChannel.sendDone");
    ends.freeAllSends();
  }

  /**
   * Waits for the next message, and releases the one before.
   *
   * @return its length, or {@link #END}
   * @throws InterruptedException if the thread was interrupted
   */
  public int receive() throws InterruptedException {
    return receive(VipConstants.VIP_INFINITE);
  }

  /**
   * Waits for the next message for some time, and releases the one before.
   *
   * @param milliseconds how long; 0 looks once
   * @return its length, or {@link #END}, or {@link #TIMEOUT}
   * @throws InterruptedException if the thread was interrupted
   */
  public int receive(long milliseconds) throws InterruptedException {
    checkOpen("RdmaChannel.receive");
    release();
    boolean limited = milliseconds > 0 && milliseconds < VipConstants.VIP_INFINITE;
    long end = limited && arrived == delivered ? System.nanoTime() + milliseconds * MILLION : 0;
    long left = milliseconds;
    while (arrived == delivered) {
      if (peerEnded) {
        return END;
      }
      int completion = ends.await(left);
      if (completion == DescriptorRing.NONE) {
        return TIMEOUT;
      }
      took(completion, "RdmaChannel.receive");
      if (limited) {
        left = Math.max(0, (end - System.nanoTime() + MILLION - 1) / MILLION);
      }
    }
    int bytes = lengths[deliveredIndex];
    current = ends.in(deliveredIndex).limit(bytes).position(0);
    delivered++;
    deliveredIndex = deliveredIndex + 1 == options.slots() ? 0 : deliveredIndex + 1;
    return bytes;
  }

  /**
   * The message that {@link #receive} told of, where it lies.
   *
   * @return a view of window memory, its position 0 and its limit the message's length; it is this
   *     channel's, and changes when the message was released
   */
  public ByteBuffer receiveSegment() {
    if (current == null) {
      throw new VipStateException(
          "RdmaChannel.receiveSegment",
          VipConstants.VIP_INVALID_STATE,
          "no message is held",
          "Call receive first, and use the message before release");
    }
    return current;
  }

  /** Gives the slot of the last message back, so that the other end can fill it. */
  public void release() {
    if (current == null) {
      return;
    }
    current = null;
    released++;
    if (released - told >= Math.max(1, options.slots() / 2) && !peerEnded) {
      ends.postMark(mark(false));
    }
  }

  /** Accounts for what arrived: a message, or a mark without one. */
  private void took(int completion, String call) {
    if (DescriptorRing.failed(completion) || completion == DescriptorRing.EMPTY) {
      throw ends.lost(completion, call);
    }
    int mark = ends.markOf(completion);
    int more = mark - (int) credit & ChannelEnds.COUNT_MASK;
    if (more > sent - credit) {
      throw malformed("it has released more messages than were sent");
    }
    if (more == 0 && mark >= 0 && !ends.isMessage(completion)) {
      throw malformed("it has sent a mark that says nothing new");
    }
    credit += more;
    if (ends.isMessage(completion)) {
      long bytes = ends.lengthOf(completion);
      if (arrived - released >= options.slots() || bytes > options.slotBytes()) {
        throw malformed("it has sent more than there is room for");
      }
      lengths[arrivedIndex] = (int) bytes;
      arrivedIndex = arrivedIndex + 1 == options.slots() ? 0 : arrivedIndex + 1;
      arrived++;
    }
    peerEnded |= mark < 0;
    ends.taken();
  }

  private static VipException malformed(String what) {
    return new ViConnectException(
        "RdmaChannel",
        VipConstants.VIP_INVALID_STATE,
        "the other end breaks the protocol: " + what,
        "Close the channel");
  }

  private void checkOpen(String call) {
    if (closed) {
      throw ChannelEnds.closedException(call);
    }
  }

  /** Breaks the connection; calls of its owner end, who still has to close it. */
  public void abort() {
    ends.abort();
  }

  /**
   * Closes this end. The other end gets what was sent, then {@link #END}. Waits for messages under
   * way, some seconds at most.
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    current = null;
    if (!peerEnded) {
      ends.postEnd(mark(true));
    }
    ends.close();
  }
}
