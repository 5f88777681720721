/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.examples;

import org.viaduct.channel.ChannelOptions;
import org.viaduct.channel.RdmaServerChannel;
import org.viaduct.vipl.Nic;

/** A server by the names of a published system. */
public final class PCIeServer implements AutoCloseable {
  private final RdmaServerChannel server;

  /**
   * Makes a server.
   *
   * @param nic the NIC of this host
   * @param port its number
   * @param bytes the length of the segments
   */
  public PCIeServer(Nic nic, int port, int bytes) {
    server = RdmaServerChannel.open(nic, name(port), ChannelOptions.DEFAULT.slotBytes(bytes));
  }

  static String name(int port) {
    return "pcie" + port;
  }

  /**
   * Waits for a client.
   *
   * @return its connection
   * @throws InterruptedException if the thread was interrupted
   */
  public PCIe waitClient() throws InterruptedException {
    return new PCIe(server.waitClient());
  }

  @Override
  public void close() {
    server.close();
  }
}
