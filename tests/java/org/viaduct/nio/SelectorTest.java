/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import static java.nio.channels.SelectionKey.OP_ACCEPT;
import static java.nio.channels.SelectionKey.OP_CONNECT;
import static java.nio.channels.SelectionKey.OP_READ;
import static java.nio.channels.SelectionKey.OP_WRITE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.DatagramChannel;
import java.nio.channels.IllegalBlockingModeException;
import java.nio.channels.IllegalSelectorException;
import java.nio.channels.Pipe;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelectableChannel;
import java.nio.channels.spi.SelectorProvider;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(NioPair.PATIENCE_S)
class SelectorTest {
  private static final InetSocketAddress ANY =
      new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);

  private static ByteBuffer bytes(int n) {
    return ByteBuffer.allocate(n);
  }

  /**
   * Selects until a channel is ready; the time limit of the test ends a call that never returns.
   */
  private static Set<SelectableChannel> ready(Selector selector) throws IOException {
    Set<SelectableChannel> found = new HashSet<>();
    selector.selectedKeys().clear();
    selector.select();
    for (SelectionKey key : selector.selectedKeys()) {
      found.add(key.channel());
    }
    return found;
  }

  @Test
  void readinessOfAChannelOnAVi() throws Exception {
    try (NioPair pair = new NioPair();
        Selector selector = Selector.open()) {
      pair.server.configureBlocking(false);
      SelectionKey key = pair.server.register(selector, OP_READ, "attached");
      assertEquals("attached", key.attachment());
      assertSame(key, pair.server.keyFor(selector));
      assertEquals(0, selector.selectNow());
      assertEquals(0, selector.select(1));
      pair.client.write(bytes(5));
      assertEquals(1, selector.select());
      assertEquals(Set.of(key), selector.selectedKeys());
      assertEquals(OP_READ, key.readyOps());
      assertEquals(0, selector.select(), "still selected, and nothing new");
      assertEquals(5, pair.server.read(bytes(10)));
      selector.selectedKeys().clear();
      assertEquals(0, selector.selectNow());
      key.interestOps(OP_READ | OP_WRITE);
      assertEquals(1, selector.select());
      assertEquals(OP_WRITE, key.readyOps());
      selector.selectedKeys().clear();
      key.interestOps(0);
      pair.client.write(bytes(1));
      assertEquals(0, selector.select(1));
      key.interestOps(OP_READ);
      assertEquals(1, selector.select(k -> assertSame(key, k)));
    }
  }

  @Test
  void aSleepEndsWhenBytesArrive() throws Exception {
    try (NioPair pair = new NioPair();
        Selector selector = Selector.open()) {
      pair.server.configureBlocking(false);
      pair.server.register(selector, OP_READ);
      FutureTask<Integer> echo =
          NioPair.begin(
              () -> {
                int n = 0;
                while (n < 300) {
                  assertEquals(1, selector.select());
                  selector.selectedKeys().clear();
                  ByteBuffer b = bytes(8);
                  n += pair.server.read(b);
                  pair.server.write(b.flip());
                }
                return n;
              });
      for (int i = 0; i < 300; i++) {
        pair.client.write(bytes(1));
        NioPair.read(pair.client, 1);
      }
      assertEquals(300, NioPair.end(echo));
    }
  }

  @Test
  void roomComesBack() throws Exception {
    try (NioPair pair = new NioPair();
        Selector selector = Selector.open()) {
      pair.client.configureBlocking(false);
      SelectionKey key = pair.client.register(selector, OP_WRITE);
      long sent = 0;
      do {
        int n;
        while ((n = pair.client.write(bytes(1 << 16))) > 0) {
          sent += n;
        }
        selector.selectedKeys().clear();
      } while (selector.select(1) > 0);
      FutureTask<Integer> there = NioPair.begin(selector::select);
      NioPair.read(pair.server, (int) sent);
      assertEquals(1, NioPair.end(there));
      assertEquals(OP_WRITE, key.readyOps());
    }
  }

  @Test
  void theEndIsReadable() throws Exception {
    try (NioPair pair = new NioPair();
        Selector selector = Selector.open()) {
      pair.server.configureBlocking(false);
      pair.server.register(selector, OP_READ);
      FutureTask<Integer> there = NioPair.begin(selector::select);
      pair.client.close();
      assertEquals(1, NioPair.end(there));
      assertEquals(-1, pair.server.read(bytes(1)));
    }
  }

  @Test
  void wakeupsAndInterrupts() throws Exception {
    Selector selector = Selector.open();
    try (NioPair pair = new NioPair()) {
      pair.server.configureBlocking(false);
      pair.server.register(selector, OP_READ);
      assertSame(selector, selector.wakeup());
      assertEquals(0, selector.select());
      FutureTask<Integer> there = NioPair.begin(selector::select);
      selector.wakeup();
      assertEquals(0, NioPair.end(there));
      CountDownLatch begun = new CountDownLatch(1);
      Thread[] thread = new Thread[1];
      FutureTask<Boolean> interrupted =
          NioPair.begin(
              () -> {
                thread[0] = Thread.currentThread();
                begun.countDown();
                assertEquals(0, selector.select());
                return Thread.interrupted();
              });
      begun.await();
      thread[0].interrupt();
      assertTrue(NioPair.end(interrupted));
      selector.close();
      assertThrows(ClosedSelectorException.class, selector::selectNow);
      assertThrows(ClosedSelectorException.class, selector::keys);
      assertFalse(pair.server.isRegistered());
    }
  }

  @Test
  void connectsAndAccepts() throws Exception {
    try (Selector selector = Selector.open();
        ServerSocketChannel listener = ServerSocketChannel.open();
        SocketChannel client = SocketChannel.open()) {
      listener.bind(ANY).configureBlocking(false);
      assertNull(listener.accept());
      listener.register(selector, OP_ACCEPT);
      client.configureBlocking(false);
      SelectionKey key = client.register(selector, OP_CONNECT);
      SocketChannel server = null;
      boolean connected = client.connect(listener.getLocalAddress());
      while (server == null || !connected) {
        Set<SelectableChannel> found = ready(selector);
        if (found.contains(listener)) {
          server = listener.accept();
        }
        if (found.contains(client)) {
          connected = client.finishConnect();
          key.interestOps(OP_READ);
        }
      }
      assertNotNull(server);
      try (SocketChannel s = server) {
        FutureTask<Integer> there = NioPair.begin(() -> s.write(bytes(9)));
        assertEquals(Set.of(client), ready(selector));
        assertEquals(9, NioPair.end(there));
        assertEquals(9, client.read(bytes(10)));
      }
    }
  }

  @Test
  void oneSelectorHasAllKinds() throws Exception {
    try (NioPair pair = new NioPair();
        Selector selector = Selector.open();
        ServerSocket plain = new ServerSocket()) {
      plain.bind(ANY);
      SocketChannel tcp = SocketChannel.open(plain.getLocalSocketAddress());
      Socket peer = plain.accept();
      DatagramChannel datagrams = DatagramChannel.open().bind(ANY);
      Pipe pipe = Pipe.open();
      Set<SelectableChannel> all =
          Set.of(pair.server, tcp, datagrams, pipe.source());
      for (SelectableChannel channel : all) {
        channel.configureBlocking(false);
        channel.register(selector, OP_READ);
      }
      assertEquals(0, selector.select(1));
      pipe.sink().write(bytes(1));
      assertEquals(Set.of(pipe.source()), ready(selector));
      pipe.source().read(bytes(1));
      pair.client.write(bytes(1));
      assertEquals(Set.of(pair.server), ready(selector));
      pair.server.read(bytes(1));
      peer.getOutputStream().write(new byte[3]);
      assertEquals(Set.of(tcp), ready(selector));
      assertEquals(3, tcp.read(bytes(9)));
      datagrams.send(bytes(2), datagrams.getLocalAddress());
      assertEquals(Set.of(datagrams), ready(selector));
      datagrams.receive(bytes(2));
      peer.getOutputStream().write(1);
      pair.client.write(bytes(1));
      pipe.sink().write(bytes(1));
      Set<SelectableChannel> seen = new HashSet<>();
      while (seen.size() < 3) {
        seen.addAll(ready(selector));
      }
      assertEquals(Set.of(tcp, pair.server, pipe.source()), seen);
      for (SelectableChannel channel : all) {
        channel.close();
      }
      peer.close();
      selector.selectNow();
      assertEquals(Set.of(), selector.keys());
    }
  }

  @Test
  void foreignChannelsAreRefused() throws Exception {
    try (Selector selector = Selector.open();
        SocketChannel ours = SocketChannel.open();
        Selector jdk = NioLibrary.JDK.openSelector()) {
      AbstractSelectableChannel foreign = new Foreign();
      foreign.configureBlocking(false);
      assertThrows(IllegalSelectorException.class, () -> foreign.register(selector, OP_READ));
      ours.configureBlocking(false);
      assertThrows(IllegalSelectorException.class, () -> ours.register(jdk, OP_READ));
      assertThrows(IllegalArgumentException.class, () -> ours.register(selector, OP_ACCEPT));
      ours.configureBlocking(true);
      assertThrows(IllegalBlockingModeException.class, () -> ours.register(selector, OP_READ));
      assertThrows(IllegalArgumentException.class, () -> selector.select(-1));
      assertThrows(
          UnsupportedOperationException.class, () -> selector.selectedKeys().add(null));
      assertThrows(UnsupportedOperationException.class, () -> selector.keys().clear());
    }
  }

  @Test
  void cancelledKeysAreForgotten() throws Exception {
    try (NioPair pair = new NioPair();
        Selector selector = Selector.open()) {
      for (int i = 0; i < 50; i++) {
        pair.server.configureBlocking(false);
        SelectionKey key = pair.server.register(selector, OP_READ);
        assertThrows(
            IllegalBlockingModeException.class, () -> pair.server.configureBlocking(true));
        pair.client.write(bytes(1));
        assertEquals(1, selector.select());
        key.cancel();
        assertFalse(key.isValid());
        assertThrows(CancelledKeyException.class, key::readyOps);
        pair.server.configureBlocking(true);
        assertEquals(0, selector.selectNow());
        assertEquals(Set.of(), selector.keys());
        assertEquals(Set.of(), selector.selectedKeys());
        assertNull(pair.server.keyFor(selector));
        assertEquals(1, pair.server.read(bytes(2)));
      }
    }
  }

  /** An echo server with one selector, and clients that send and receive at random. */
  @Test
  void manyConnections() throws Exception {
    int count = 12;
    int each = 60_000;
    NioStatistics before = ViaductSelectorProvider.statistics();
    try (Selector selector = Selector.open();
        ServerSocketChannel listener = ServerSocketChannel.open()) {
      listener.bind(ANY).configureBlocking(false);
      listener.register(selector, OP_ACCEPT);
      FutureTask<Integer> server = NioPair.begin(() -> serve(selector, listener, count));
      List<FutureTask<Long>> clients = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        int seed = i;
        clients.add(NioPair.begin(() -> exchange(listener.getLocalAddress(), each, seed)));
      }
      for (FutureTask<Long> client : clients) {
        assertEquals(each, NioPair.end(client));
      }
      assertEquals(count, NioPair.end(server));
    }
    NioStatistics after = ViaductSelectorProvider.statistics();
    assertTrue(after.viBytesReceived() - before.viBytesReceived() > each, after::toString);
  }

  private static int serve(Selector selector, ServerSocketChannel listener, int count)
      throws IOException {
    int ended = 0;
    while (ended < count) {
      selector.select();
      for (SelectionKey key : selector.selectedKeys()) {
        if (key.isAcceptable()) {
          SocketChannel c = listener.accept();
          if (c != null) {
            c.configureBlocking(false);
            c.register(selector, OP_READ, ByteBuffer.allocate(4096).limit(0));
          }
        } else {
          ended += echo(key) ? 1 : 0;
        }
      }
      selector.selectedKeys().clear();
    }
    return ended;
  }

  /** Echoes what the channel has; returns true at the end of its stream. */
  private static boolean echo(SelectionKey key) throws IOException {
    SocketChannel c = (SocketChannel) key.channel();
    ByteBuffer b = (ByteBuffer) key.attachment();
    if (!b.hasRemaining()) {
      b.clear();
      if (c.read(b) < 0) {
        c.close();
        return true;
      }
      b.flip();
    }
    c.write(b);
    key.interestOps(b.hasRemaining() ? OP_WRITE : OP_READ);
    return false;
  }

  private static long exchange(java.net.SocketAddress to, int bytes, int seed) throws IOException {
    Random random = new Random(seed);
    long got = 0;
    try (SocketChannel c = SocketChannel.open(to)) {
      while (got < bytes) {
        int n = Math.min(1 + random.nextInt(3000), (int) (bytes - got));
        byte[] out = new byte[n];
        random.nextBytes(out);
        NioPair.write(c, ByteBuffer.wrap(out));
        assertEquals(ByteBuffer.wrap(out), NioPair.read(c, n));
        got += n;
      }
    }
    return got;
  }

  /** A channel whose provider is neither ours nor the JDK's. */
  private static final class Foreign extends AbstractSelectableChannel {
    Foreign() {
      super(
          new SelectorProvider() {
            @Override
            public DatagramChannel openDatagramChannel() {
              return null;
            }

            @Override
            public DatagramChannel openDatagramChannel(java.net.ProtocolFamily family) {
              return null;
            }

            @Override
            public Pipe openPipe() {
              return null;
            }

            @Override
            public java.nio.channels.spi.AbstractSelector openSelector() {
              return null;
            }

            @Override
            public ServerSocketChannel openServerSocketChannel() {
              return null;
            }

            @Override
            public SocketChannel openSocketChannel() {
              return null;
            }
          });
    }

    @Override
    public int validOps() {
      return OP_READ;
    }

    @Override
    protected void implCloseSelectableChannel() {}

    @Override
    protected void implConfigureBlocking(boolean block) {}
  }
}
