/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Random;

/**
 * A program that knows only NIO, for tests with peers in other processes: {@code serve}; {@code
 * talk ADDRESS PORT}, which compares what an echo server sends back; {@code end ADDRESS PORT},
 * which waits for the end of a connection; {@code inherited}, which selects from a listening socket
 * that it was started with, and echoes a byte. The last line of the output has the bytes that went
 * over VIs.
 */
public final class Peer {
  private static final int ROUNDS = 2000;
  private static final int STREAM = 4_000_000;

  private Peer() {}

  /**
   * Runs the program.
   *
   * @param args the command
   * @throws Exception what a channel throws
   */
  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "serve":
        serve();
        break;
      case "talk":
        talk(new InetSocketAddress(args[1], Integer.parseInt(args[2])));
        break;
      case "inherited":
        inherited();
        break;
      case "end":
        end(new InetSocketAddress(args[1], Integer.parseInt(args[2])));
        break;
      default:
        throw new IllegalArgumentException(args[0]);
    }
    if (System.getProperty("java.nio.channels.spi.SelectorProvider") != null) {
      NioStatistics s = ViaductSelectorProvider.statistics();
      System.out.println("vi " + s.viBytesSent() + " " + s.viBytesReceived());
    }
  }

  /** Echoes until two connections have sent much, the second one with a selector. */
  private static void serve() throws IOException {
    try (ServerSocketChannel listener = ServerSocketChannel.open()) {
      listener.bind(new InetSocketAddress(0));
      System.out.println(((InetSocketAddress) listener.getLocalAddress()).getPort());
      for (int i = 0; i < 2; ) {
        try (SocketChannel c = listener.accept();
            Selector selector = Selector.open()) {
          i += echo(c, i == 0 ? null : selector) >= STREAM ? 1 : 0;
        }
      }
    }
  }

  private static long echo(SocketChannel c, Selector selector) throws IOException {
    ByteBuffer b = ByteBuffer.allocateDirect(1 << 16);
    if (selector != null) {
      c.configureBlocking(false);
      c.register(selector, SelectionKey.OP_READ);
    }
    long all = 0;
    while (read(c, selector, b) >= 0) {
      b.flip();
      all += b.remaining();
      while (b.hasRemaining()) {
        c.write(b);
      }
      b.clear();
    }
    return all;
  }

  /**
   * Connects; with -Dpeer.vi=true returns a connection that has moved to a VI, and makes another if
   * an end gives up waiting for the other, as on a slow machine.
   */
  private static SocketChannel connect(InetSocketAddress to) throws IOException {
    while (true) {
      SocketChannel c = SocketChannel.open(to);
      if (!Boolean.getBoolean("peer.vi") || moves(c)) {
        return c;
      }
      c.close();
    }
  }

  private static boolean moves(SocketChannel c) throws IOException {
    long end = System.nanoTime() + 10_000_000_000L;
    Random random = new Random(2);
    while (System.nanoTime() < end) {
      NioStatistics before = ViaductSelectorProvider.statistics();
      exchange(c, null, random, 64);
      NioStatistics after = ViaductSelectorProvider.statistics();
      if (after.viBytesSent() - before.viBytesSent() == 64
          && after.viBytesReceived() - before.viBytesReceived() == 64) {
        return true;
      }
    }
    return false;
  }

  private static int read(SocketChannel c, Selector selector, ByteBuffer b) throws IOException {
    int n = c.read(b);
    while (n == 0 && selector != null) {
      selector.select();
      selector.selectedKeys().clear();
      n = c.read(b);
    }
    return n;
  }

  private static void talk(InetSocketAddress to) throws Exception {
    for (boolean selects : new boolean[] {false, true}) {
      try (SocketChannel c = connect(to);
          Selector selector = Selector.open()) {
        if (selects) {
          c.configureBlocking(false);
          c.register(selector, SelectionKey.OP_READ);
        }
        Random random = new Random(1);
        for (int i = 0; i < ROUNDS; i++) {
          exchange(c, selects ? selector : null, random, 1 + random.nextInt(200));
        }
        for (int sent = 0; sent < STREAM; sent += 40_000) {
          exchange(c, selects ? selector : null, random, 40_000);
        }
        c.shutdownOutput();
        if (read(c, selects ? selector : null, ByteBuffer.allocate(1)) != -1) {
          throw new IOException("more came than was sent");
        }
      }
    }
  }

  private static void exchange(SocketChannel c, Selector selector, Random random, int bytes)
      throws IOException {
    byte[] out = new byte[bytes];
    random.nextBytes(out);
    ByteBuffer b = ByteBuffer.wrap(out);
    ByteBuffer back = ByteBuffer.allocate(bytes);
    while (b.hasRemaining()) {
      c.write(b);
    }
    while (back.hasRemaining()) {
      if (read(c, selector, back) < 0) {
        throw new IOException("the connection ended early");
      }
    }
    if (!back.flip().equals(ByteBuffer.wrap(out))) {
      throw new IOException("other bytes came back");
    }
  }

  private static void inherited() throws IOException {
    try (ServerSocketChannel listener = (ServerSocketChannel) System.inheritedChannel();
        Selector selector = Selector.open()) {
      listener.configureBlocking(false);
      listener.register(selector, SelectionKey.OP_ACCEPT);
      selector.select();
      try (SocketChannel c = listener.accept()) {
        ByteBuffer b = ByteBuffer.allocate(1);
        c.read(b);
        c.write(b.flip());
      }
    }
  }

  private static void end(InetSocketAddress to) throws IOException {
    try (SocketChannel c = connect(to);
        Selector selector = Selector.open()) {
      c.configureBlocking(false);
      c.register(selector, SelectionKey.OP_READ);
      System.out.println("waits");
      try {
        if (read(c, selector, ByteBuffer.allocate(1)) > 0) {
          throw new IllegalStateException("bytes came that nobody sent");
        }
        System.out.println("end");
      } catch (IOException e) {
        System.out.println("end by " + e.getMessage());
      }
    }
  }
}
