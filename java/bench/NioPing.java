/* SPDX-License-Identifier: BSD-2-Clause */

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Arrays;

/**
 * Ping-pong of two processes by NIO alone: {@code serve}, or {@code ping ADDRESS PORT BYTES
 * BATCHES}. Both ends block, poll, or select, as the client says in its first byte.
 */
public final class NioPing {
  private static final String[] WAYS = {"block", "poll", "select"};
  private static final int WARM = 12_000;

  private NioPing() {}

  /**
   * Runs it.
   *
   * @param args what to do
   * @throws IOException what a channel throws
   */
  public static void main(String[] args) throws IOException {
    if (args[0].equals("serve")) {
      try (ServerSocketChannel listener = ServerSocketChannel.open()) {
        listener.bind(new InetSocketAddress(0));
        System.out.println(((InetSocketAddress) listener.getLocalAddress()).getPort());
        for (int i = 0; i < WAYS.length; i++) {
          try (SocketChannel c = listener.accept()) {
            ByteBuffer way = ByteBuffer.allocate(5);
            while (way.hasRemaining()) {
              c.read(way);
            }
            new End(c, way.get(0), way.getInt(1)).echo();
          }
        }
      }
      return;
    }
    InetSocketAddress to = new InetSocketAddress(args[1], Integer.parseInt(args[2]));
    int bytes = Integer.parseInt(args[3]);
    for (int way = 0; way < WAYS.length; way++) {
      try (SocketChannel c = SocketChannel.open(to)) {
        c.write(ByteBuffer.allocate(5).put(0, (byte) way).putInt(1, bytes));
        String told = new End(c, way, bytes).ping(Integer.parseInt(args[4]));
        System.out.println(WAYS[way] + " " + told);
      }
    }
  }

  /** One end of a connection. */
  private static final class End {
    private final SocketChannel c;
    private final int way;
    private final ByteBuffer b;
    private final Selector selector;

    End(SocketChannel c, int way, int bytes) throws IOException {
      this.c = c;
      this.way = way;
      b = ByteBuffer.allocateDirect(bytes);
      selector = way == 2 ? Selector.open() : null;
      c.configureBlocking(way == 0);
      if (selector != null) {
        c.register(selector, SelectionKey.OP_READ);
      }
    }

    private boolean receive() throws IOException {
      b.clear();
      while (b.hasRemaining()) {
        if (selector != null && b.position() == 0) {
          selector.select();
          selector.selectedKeys().clear();
        }
        if (c.read(b) < 0) {
          return false;
        }
      }
      return true;
    }

    private void send() throws IOException {
      b.clear();
      while (b.hasRemaining()) {
        c.write(b);
      }
    }

    void echo() throws IOException {
      while (receive()) {
        send();
      }
      if (selector != null) {
        selector.close();
      }
    }

    /** Half round trips in ns: the least of all batches, and their median. */
    String ping(int batches) throws IOException {
      int each = 200;
      double[] all = new double[batches];
      for (int i = -WARM / each; i < batches; i++) {
        long begin = System.nanoTime();
        for (int n = 0; n < each; n++) {
          send();
          receive();
        }
        if (i >= 0) {
          all[i] = (System.nanoTime() - begin) / 2.0 / each;
        }
      }
      Arrays.sort(all);
      return String.format("%.0f %.0f", all[0], all[batches / 2]);
    }
  }
}
