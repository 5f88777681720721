/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.net.ProtocolFamily;
import java.net.StandardProtocolFamily;
import java.nio.channels.Channel;
import java.nio.channels.DatagramChannel;
import java.nio.channels.Pipe;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;

/**
 * Makes channels whose bytes travel over a VI where the other end is on a host of the fabric, and
 * over TCP elsewhere. Which connections are concerned is said by the rules of the file that the
 * property {@code org.viaduct.nio.rules} names, and by the variables of the environment that
 * {@code vi_run} sets. Pipes, datagram channels and channels of Unix sockets are the JDK's.
 *
 * <p>In a process that {@code vi_run} started everything is the JDK's, since the sockets of such a
 * process are served already.
 */
public final class ViaductSelectorProvider extends SelectorProvider {
  private final SelectorProvider jdk;
  private final boolean active;

  /**
   * Loads the library and reads the rules.
   *
   * @throws org.viaduct.vipl.VipLibraryException if the library is missing or of another version
   * @throws IllegalArgumentException if a rule is wrong
   * @throws UnsupportedOperationException if this JDK is not one that the provider can build on
   */
  public ViaductSelectorProvider() {
    jdk = NioLibrary.JDK;
    active = NioLibrary.ACTIVE;
  }

  /**
   * Counts what the channels have done until now.
   *
   * @return the counters of this process
   */
  public static NioStatistics statistics() {
    long[] all = new long[8];
    if (NioLibrary.JDK != null) {
      NioCalls.statistics(all);
    }
    return new NioStatistics(
        all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7]);
  }

  SelectorProvider jdk() {
    return jdk;
  }

  @Override
  public DatagramChannel openDatagramChannel() throws IOException {
    return jdk.openDatagramChannel();
  }

  @Override
  public DatagramChannel openDatagramChannel(ProtocolFamily family) throws IOException {
    return jdk.openDatagramChannel(family);
  }

  @Override
  public Pipe openPipe() throws IOException {
    return jdk.openPipe();
  }

  @Override
  public AbstractSelector openSelector() throws IOException {
    return active ? new ViaductSelector(this) : jdk.openSelector();
  }

  @Override
  public ServerSocketChannel openServerSocketChannel() throws IOException {
    ServerSocketChannel inner = jdk.openServerSocketChannel();
    return active ? new ViaductServerSocketChannel(this, inner) : inner;
  }

  @Override
  public ServerSocketChannel openServerSocketChannel(ProtocolFamily family) throws IOException {
    ServerSocketChannel inner = jdk.openServerSocketChannel(family);
    return active && isInternet(family) ? new ViaductServerSocketChannel(this, inner) : inner;
  }

  @Override
  public SocketChannel openSocketChannel() throws IOException {
    SocketChannel inner = jdk.openSocketChannel();
    return active ? new ViaductSocketChannel(this, inner, false) : inner;
  }

  @Override
  public SocketChannel openSocketChannel(ProtocolFamily family) throws IOException {
    SocketChannel inner = jdk.openSocketChannel(family);
    return active && isInternet(family) ? new ViaductSocketChannel(this, inner, false) : inner;
  }

  @Override
  public Channel inheritedChannel() throws IOException {
    return jdk.inheritedChannel();
  }

  private static boolean isInternet(ProtocolFamily family) {
    return family == StandardProtocolFamily.INET || family == StandardProtocolFamily.INET6;
  }
}
