/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.examples;

import java.nio.ByteBuffer;
import org.viaduct.channel.ChannelOptions;
import org.viaduct.channel.RdmaChannel;
import org.viaduct.vipl.Nic;

/**
 * A connection by the names of a published system, which had one buffer of each direction: {@code
 * connect}, {@code send}, {@code receive}, {@code sendDone}. Here several are under way.
 */
public final class PCIe implements AutoCloseable {
  private final RdmaChannel channel;

  PCIe(RdmaChannel channel) {
    this.channel = channel;
  }

  /**
   * Connects.
   *
   * @param nic the NIC of this host
   * @param host the server's host
   * @param port the server's number
   * @param bytes the length of the segments
   * @return the connection
   * @throws InterruptedException if the thread was interrupted
   */
  public static PCIe connect(Nic nic, String host, int port, int bytes)
      throws InterruptedException {
    ChannelOptions options = ChannelOptions.DEFAULT.slotBytes(bytes);
    return new PCIe(RdmaChannel.connect(nic, host, PCIeServer.name(port), options, 10_000));
  }

  /**
   * The segment to fill.
   *
   * @return the segment; after each send it is another one
   * @throws InterruptedException if the thread was interrupted
   */
  public ByteBuffer sendSegment() throws InterruptedException {
    return channel.sendSegment();
  }

  /**
   * Sends the first bytes of the segment.
   *
   * @param bytes how many
   * @throws InterruptedException if the thread was interrupted
   */
  public void send(int bytes) throws InterruptedException {
    channel.send(bytes);
  }

  /**
   * Waits for a message.
   *
   * @return the segment that has it, or null at the end
   * @throws InterruptedException if the thread was interrupted
   */
  public ByteBuffer receive() throws InterruptedException {
    return channel.receive() == RdmaChannel.END ? null : channel.receiveSegment();
  }

  /**
   * Waits until all was sent.
   *
   * @throws InterruptedException if the thread was interrupted
   */
  public void sendDone() throws InterruptedException {
    channel.sendDone();
  }

  @Override
  public void close() {
    channel.close();
  }
}
