/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.AlreadyConnectedException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.IllegalBlockingModeException;
import java.nio.channels.NotYetConnectedException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(NioPair.PATIENCE_S)
class ChannelsTest {
  private static byte[] random(int bytes) {
    byte[] all = new byte[bytes];
    new Random(bytes).nextBytes(all);
    return all;
  }

  @Test
  void providerIsOurs() {
    assertTrue(SelectorProvider.provider() instanceof ViaductSelectorProvider);
  }

  @Test
  void bytesGoOverVis() throws Exception {
    NioStatistics before = ViaductSelectorProvider.statistics();
    byte[] all = random(3_000_001);
    try (NioPair pair = new NioPair()) {
      FutureTask<ByteBuffer> there = NioPair.begin(() -> NioPair.read(pair.server, all.length));
      NioPair.write(pair.client, ByteBuffer.wrap(all));
      assertArrayEquals(all, NioPair.end(there).array());
    }
    NioStatistics after = ViaductSelectorProvider.statistics();
    assertTrue(after.viBytesSent() - before.viBytesSent() >= all.length, after::toString);
    assertTrue(after.viBytesReceived() - before.viBytesReceived() >= all.length, after::toString);
    assertEquals(before.tcpBytesSent(), after.tcpBytesSent());
  }

  @Test
  void gathersAndScatters() throws Exception {
    byte[] all = random(150_000);
    try (NioPair pair = new NioPair()) {
      ByteBuffer direct = ByteBuffer.allocateDirect(100_000);
      direct.put(all, 10, 100_000).flip();
      ByteBuffer[] out = {
        ByteBuffer.wrap(all, 0, 10),
        ByteBuffer.allocate(0),
        direct,
        ByteBuffer.wrap(all, 100_010, 49_990)
      };
      ByteBuffer[] in = {
        ByteBuffer.allocate(3), ByteBuffer.allocateDirect(90_000), ByteBuffer.allocate(59_997)
      };
      FutureTask<Long> there =
          NioPair.begin(
              () -> {
                long n = 0;
                while (in[2].hasRemaining()) {
                  n += pair.server.read(in);
                }
                return n;
              });
      assertEquals(all.length, pair.client.write(out));
      assertEquals(all.length, NioPair.end(there));
      ByteBuffer got = ByteBuffer.allocate(all.length);
      for (ByteBuffer b : in) {
        got.put(b.flip());
      }
      assertArrayEquals(all, got.array());
      assertEquals(0, pair.client.write(ByteBuffer.allocate(0)));
      assertEquals(0, pair.server.read(ByteBuffer.allocate(0)));
      assertThrows(
          IllegalArgumentException.class,
          () -> pair.server.read(ByteBuffer.allocate(1).asReadOnlyBuffer()));
    }
  }

  @Test
  void nonBlockingCallsReturn() throws Exception {
    try (NioPair pair = new NioPair()) {
      pair.client.configureBlocking(false);
      assertEquals(0, pair.client.read(ByteBuffer.allocate(1)));
      ByteBuffer much = ByteBuffer.allocate(1 << 16);
      long sent = 0;
      int n;
      do {
        much.clear();
        n = pair.client.write(much);
        sent += n;
      } while (n > 0);
      assertTrue(sent > 0);
      ByteBuffer got = NioPair.read(pair.server, (int) sent);
      assertEquals(sent, got.remaining());
    }
  }

  @Test
  void halfClose() throws Exception {
    try (NioPair pair = new NioPair()) {
      FutureTask<Integer> end = NioPair.begin(() -> pair.server.read(ByteBuffer.allocate(1)));
      pair.client.shutdownOutput();
      assertEquals(-1, NioPair.end(end));
      assertThrows(
          ClosedChannelException.class, () -> pair.client.write(ByteBuffer.allocate(1)));
      NioPair.write(pair.server, ByteBuffer.allocate(7));
      assertEquals(7, NioPair.read(pair.client, 7).remaining());
      FutureTask<Integer> shut = NioPair.begin(() -> pair.client.read(ByteBuffer.allocate(1)));
      pair.client.shutdownInput();
      assertEquals(-1, NioPair.end(shut));
      assertTrue(pair.client.socket().isInputShutdown());
      assertTrue(pair.client.socket().isOutputShutdown());
    }
  }

  @Test
  void closeWakesThreads() throws Exception {
    try (NioPair pair = new NioPair()) {
      FutureTask<Integer> reader = NioPair.begin(() -> pair.client.read(ByteBuffer.allocate(1)));
      FutureTask<Void> writer = NioPair.beginWriting(pair.client, pair.server);
      pair.client.close();
      assertThrows(ClosedChannelException.class, () -> NioPair.end(reader));
      assertThrows(ClosedChannelException.class, () -> NioPair.end(writer));
      assertThrows(
          ClosedChannelException.class, () -> pair.client.read(ByteBuffer.allocate(1)));
    }
  }

  @Test
  void interruptCloses() throws Exception {
    try (NioPair pair = new NioPair()) {
      CountDownLatch begun = new CountDownLatch(1);
      Thread[] reader = new Thread[1];
      FutureTask<Boolean> interrupted =
          NioPair.begin(
              () -> {
                reader[0] = Thread.currentThread();
                begun.countDown();
                assertThrows(
                    ClosedByInterruptException.class,
                    () -> pair.client.read(ByteBuffer.allocate(1)));
                return Thread.interrupted();
              });
      begun.await();
      reader[0].interrupt();
      assertTrue(NioPair.end(interrupted));
      assertFalse(pair.client.isOpen());
      assertEquals(-1, pair.server.read(ByteBuffer.allocate(1)));
    }
  }

  @Test
  void resetIsTold() throws Exception {
    try (NioPair pair = new NioPair()) {
      pair.client.setOption(StandardSocketOptions.SO_LINGER, 0);
      pair.client.close();
      assertThrows(
          IOException.class,
          () -> {
            while (pair.server.read(ByteBuffer.allocate(1)) >= 0) {
              Thread.onSpinWait();
            }
          });
    }
  }

  @Test
  void misuseIsRefusedAsByTheJdk() throws Exception {
    try (SocketChannel fresh = SocketChannel.open()) {
      assertThrows(NotYetConnectedException.class, () -> fresh.read(ByteBuffer.allocate(1)));
      assertThrows(NotYetConnectedException.class, () -> fresh.write(ByteBuffer.allocate(1)));
      assertThrows(NotYetConnectedException.class, fresh::shutdownOutput);
      assertFalse(fresh.isConnected());
      assertNull(fresh.getRemoteAddress());
    }
    try (NioPair pair = new NioPair()) {
      assertThrows(
          AlreadyConnectedException.class,
          () -> pair.client.connect(pair.server.getLocalAddress()));
      assertTrue(pair.client.finishConnect());
      pair.client.configureBlocking(false);
      assertThrows(
          IllegalBlockingModeException.class,
          () -> pair.client.socket().getInputStream().read());
    }
    int port;
    try (ServerSocketChannel gone = ServerSocketChannel.open()) {
      gone.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      port = gone.socket().getLocalPort();
    }
    SocketChannel refused = SocketChannel.open();
    assertThrows(
        ConnectException.class,
        () -> refused.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port)));
    assertFalse(refused.isOpen());
  }

  @Test
  void addressesAndOptions() throws Exception {
    try (NioPair pair = new NioPair()) {
      assertEquals(pair.client.getLocalAddress(), pair.server.getRemoteAddress());
      assertEquals(pair.server.getLocalAddress(), pair.client.socket().getRemoteSocketAddress());
      pair.client.setOption(StandardSocketOptions.TCP_NODELAY, true);
      assertTrue(pair.client.socket().getTcpNoDelay());
      assertSame(pair.client, pair.client.socket().getChannel());
      assertTrue(pair.client.supportedOptions().contains(StandardSocketOptions.SO_KEEPALIVE));
    }
  }

  @Test
  void adaptorsHaveStreamsAndTimeLimits() throws Exception {
    try (ServerSocketChannel listener = ServerSocketChannel.open()) {
      ServerSocket socket = listener.socket();
      socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      socket.setSoTimeout(1);
      assertThrows(SocketTimeoutException.class, socket::accept);
      socket.setSoTimeout(0);
      Socket client = SocketChannel.open().socket();
      client.connect(socket.getLocalSocketAddress(), 10_000);
      Socket server = socket.accept();
      assertNotNull(server.getChannel());
      try (client;
          server) {
        FutureTask<Integer> got =
            NioPair.begin(
                () -> {
                  InputStream in = server.getInputStream();
                  byte[] some = in.readNBytes(1000);
                  server.getOutputStream().write(some);
                  return in.read();
                });
        OutputStream out = client.getOutputStream();
        byte[] all = random(1000);
        out.write(all);
        assertArrayEquals(all, client.getInputStream().readNBytes(1000));
        client.setSoTimeout(1);
        assertThrows(SocketTimeoutException.class, () -> client.getInputStream().read());
        assertEquals(0, client.getInputStream().available());
        client.shutdownOutput();
        assertEquals(-1, NioPair.end(got));
      }
    }
  }

  @Test
  void urgentDataStaysWithTcp() throws Exception {
    try (NioPair pair = new NioPair()) {
      pair.server.socket().setOOBInline(true);
      FutureTask<ByteBuffer> got = NioPair.begin(() -> NioPair.read(pair.server, 9));
      NioPair.write(pair.client, ByteBuffer.wrap("12345678".getBytes()));
      pair.client.socket().sendUrgentData('9');
      assertEquals("123456789", new String(NioPair.end(got).array()));
    }
  }

  @Test
  void filesAreTransferred(@TempDir Path folder) throws Exception {
    byte[] all = random(1_000_000);
    Path from = folder.resolve("from");
    Path to = folder.resolve("to");
    Files.write(from, all);
    try (NioPair pair = new NioPair();
        FileChannel in = FileChannel.open(from);
        FileChannel out =
            FileChannel.open(to, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      FutureTask<Long> there =
          NioPair.begin(
              () -> {
                long n = 0;
                while (n < all.length) {
                  n += out.transferFrom(pair.server, n, all.length - n);
                }
                return n;
              });
      long n = 0;
      while (n < all.length) {
        n += in.transferTo(n, all.length - n, pair.client);
      }
      assertEquals(all.length, NioPair.end(there));
    }
    assertArrayEquals(all, Files.readAllBytes(to));
  }
}
