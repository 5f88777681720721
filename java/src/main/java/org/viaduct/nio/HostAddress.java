/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.SocketChannel;

/** Addresses of a process that stands for one of several hosts of this machine. */
final class HostAddress {
  private static final int BOUND = NioCalls.boundAddress();

  private HostAddress() {}

  private static InetAddress own() throws IOException {
    return InetAddress.getByAddress(
        new byte[] {
          (byte) (BOUND >> 24), (byte) (BOUND >> 16), (byte) (BOUND >> 8), (byte) BOUND
        });
  }

  /** The address of this host in the place of any. */
  static SocketAddress forBind(SocketAddress local) throws IOException {
    if (BOUND == 0) {
      return local;
    }
    if (local == null) {
      return new InetSocketAddress(own(), 0);
    }
    if (local instanceof InetSocketAddress a
        && !a.isUnresolved()
        && a.getAddress().isAnyLocalAddress()) {
      return new InetSocketAddress(own(), a.getPort());
    }
    return local;
  }

  /** Before a connection to an emulated host: binds a channel that has no address to this one's. */
  static void bindSource(SocketChannel inner, SocketAddress remote) throws IOException {
    if (BOUND == 0 || !(remote instanceof InetSocketAddress a) || a.isUnresolved()) {
      return;
    }
    byte[] b = a.getAddress().getAddress();
    if (b.length == 4
        && b[0] == 127
        && b[1] == 77
        && inner.isOpen()
        && !inner.isConnected()
        && !inner.isConnectionPending()
        && inner.getLocalAddress() == null) {
      inner.bind(new InetSocketAddress(own(), 0));
    }
  }
}
