/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Unusual uses; the JDK's channels define the right result. */
@Timeout(NioPair.PATIENCE_S)
class ChannelFaultsTest {
  /** An address whose connections a rule of nio_test.py leaves on TCP. */
  private static final InetSocketAddress ON_TCP = new InetSocketAddress("127.0.0.2", 0);

  private static ByteBuffer of(int bytes, int value) {
    ByteBuffer b = ByteBuffer.allocate(bytes);
    while (b.hasRemaining()) {
      b.put((byte) value);
    }
    return b.flip();
  }

  private static String text(ByteBuffer b) {
    return new String(b.array(), 0, b.limit());
  }

  // ---- buffers

  @Test
  void aBufferThatIsThereTwiceIsSentTwice() throws Exception {
    try (NioPair pair = new NioPair()) {
      ByteBuffer line = ByteBuffer.wrap("\r\n".getBytes());
      ByteBuffer word = ByteBuffer.wrap("abc".getBytes());
      assertEquals(7, pair.client.write(new ByteBuffer[] {line, word, line}));
      assertEquals("\r\nabc\r\n", text(NioPair.read(pair.server, 7)));
      assertFalse(line.hasRemaining());
      assertFalse(word.hasRemaining());
      ByteBuffer other = ByteBuffer.wrap("not sent".getBytes());
      word.flip();
      assertEquals(6, pair.client.write(new ByteBuffer[] {word, word, other}, 0, 2));
      assertEquals("abcabc", text(NioPair.read(pair.server, 6)));
      assertEquals(0, other.position());
      ByteBuffer much = of(100_000, 'x');
      FutureTask<ByteBuffer> there = NioPair.begin(() -> NioPair.read(pair.server, 200_003));
      ByteBuffer end = ByteBuffer.wrap("end".getBytes());
      assertEquals(200_003, pair.client.write(new ByteBuffer[] {much, much, end}));
      assertTrue(text(NioPair.end(there)).endsWith("xxxend"));
    }
  }

  @Test
  void aBufferThatIsThereTwiceIsFilledOnce() throws Exception {
    try (NioPair pair = new NioPair()) {
      ByteBuffer twice = ByteBuffer.allocate(3);
      ByteBuffer other = ByteBuffer.allocate(8);
      NioPair.write(pair.client, ByteBuffer.wrap("abcdef".getBytes()));
      assertEquals(3, pair.server.read(new ByteBuffer[] {twice, twice, other}, 0, 2));
      assertEquals("abc", text(twice));
      assertEquals(0, other.position());
      assertEquals("def", text(NioPair.read(pair.server, 3)));
    }
  }

  /**
   * Allocates buffers of arenas by reflection: Java has these since 22, and this is compiled for
   * 17.
   */
  private static final class Arena {
    private static final String FOREIGN = "java.lang.foreign.";
    private final Class<?> kind = Class.forName(FOREIGN + "Arena");
    private final Object arena;

    Arena(String kindOfArena) throws ReflectiveOperationException {
      arena = kind.getMethod(kindOfArena).invoke(null);
    }

    ByteBuffer allocate(long bytes) throws ReflectiveOperationException {
      Object segment = kind.getMethod("allocate", long.class).invoke(arena, bytes);
      Class<?> segments = Class.forName(FOREIGN + "MemorySegment");
      return (ByteBuffer) segments.getMethod("asByteBuffer").invoke(segment);
    }

    void close() throws ReflectiveOperationException {
      kind.getMethod("close").invoke(arena);
    }
  }

  @Test
  void memoryOfAClosedArenaIsNotUsed() throws Exception {
    assumeTrue(Runtime.version().feature() >= 22);
    try (NioPair pair = new NioPair()) {
      Arena arena = new Arena("ofShared");
      ByteBuffer memory = arena.allocate(1 << 20);
      NioPair.write(pair.client, memory.slice(5, 20_000));
      assertEquals(20_000, NioPair.read(pair.server, 20_000).remaining());
      ByteBuffer slice = memory.slice(1, 100_000);
      arena.close();
      assertThrows(IllegalStateException.class, () -> pair.client.write(memory));
      assertThrows(IllegalStateException.class, () -> pair.client.write(slice));
      NioPair.write(pair.client, of(20_000, 'y'));
      assertThrows(IllegalStateException.class, () -> pair.server.read(memory));
      assertThrows(
          IllegalStateException.class,
          () -> pair.server.read(new ByteBuffer[] {ByteBuffer.allocate(1), slice}));
      assertEquals(of(20_000, 'y'), NioPair.read(pair.server, 20_000), "bytes were lost");
    }
  }

  @Test
  void memoryOfAnotherThreadsArenaIsNotUsed() throws Exception {
    assumeTrue(Runtime.version().feature() >= 22);
    try (NioPair pair = new NioPair()) {
      ByteBuffer memory = new Arena("ofConfined").allocate(1 << 20);
      FutureTask<Integer> other = NioPair.begin(() -> pair.client.write(memory));
      RuntimeException e = assertThrows(RuntimeException.class, () -> NioPair.end(other));
      assertEquals("WrongThreadException", e.getClass().getSimpleName());
    }
  }

  /** Waits until the thread waits in C, as the top of its stack shows. */
  private static void awaitSleep(Thread thread) {
    StackTraceElement[] stack;
    do {
      Thread.yield();
      stack = thread.getStackTrace();
    } while (stack.length == 0 || !stack[0].getMethodName().equals("sleep"));
  }

  @Test
  void threadsThatWaitHoldNoMemory() throws Exception {
    BufferPoolMXBean direct =
        ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .filter(pool -> pool.getName().equals("direct"))
            .findFirst()
            .orElseThrow();
    int kept = 16;
    List<NioPair> pairs = new ArrayList<>();
    List<Thread> readers = new ArrayList<>();
    try {
      for (int i = 0; i < 3 * kept; i++) {
        pairs.add(new NioPair());
      }
      long before = direct.getCount();
      for (NioPair pair : pairs) {
        Thread thread = new Thread(() -> readQuietly(pair.server));
        thread.setDaemon(true);
        thread.start();
        readers.add(thread);
      }
      readers.forEach(ChannelFaultsTest::awaitSleep);
      long more = direct.getCount() - before;
      assertTrue(more <= kept, more + " pieces");
    } finally {
      for (NioPair pair : pairs) {
        pair.close();
      }
    }
    for (Thread reader : readers) {
      reader.join();
    }
  }

  private static void readQuietly(SocketChannel channel) {
    try {
      channel.read(ByteBuffer.allocate(1));
    } catch (IOException e) {
      return; // the test closes the channels
    }
  }

  // ---- errors

  @Test
  void withoutADescriptorACallThatWaitsFails() throws Exception {
    List<InputStream> all = new ArrayList<>();
    try (NioPair pair = new NioPair()) {
      pair.client.socket().setSoTimeout(1000);
      long end = System.nanoTime() + NioPair.PATIENCE_S * 1_000_000_000L;
      try {
        IOException none = null;
        // A read times out that got what another thread has closed meanwhile, of an earlier test.
        while (none == null || none instanceof SocketTimeoutException) {
          assertTrue(System.nanoTime() < end, "a call that waits always gets a descriptor");
          fill(all);
          FutureTask<Integer> reader =
              NioPair.begin(() -> pair.client.socket().getInputStream().read());
          none = assertThrows(IOException.class, () -> NioPair.end(reader));
        }
        assertEquals("Too many open files", none.getMessage());
        fill(all);
        FutureTask<Integer> writer =
            NioPair.begin(
                () -> {
                  int n;
                  do {
                    n = pair.server.write(ByteBuffer.allocate(1 << 20));
                  } while (n > 0);
                  return n;
                });
        IOException e = assertThrows(IOException.class, () -> NioPair.end(writer));
        assertEquals("Too many open files", e.getMessage());
      } finally {
        for (InputStream one : all) {
          one.close();
        }
      }
      assertTrue(pair.client.isOpen());
    }
  }

  /** Opens files until no descriptor is left. */
  private static void fill(List<InputStream> all) {
    int most = 100_000;
    try {
      while (all.size() < most) {
        all.add(new FileInputStream("/dev/null"));
      }
    } catch (IOException e) {
      return;
    }
    throw new AssertionError("no limit of descriptors");
  }

  @Test
  void aWriteTellsOfResetsAndShutdowns() throws Exception {
    try (NioPair pair = new NioPair()) {
      FutureTask<Void> writer = NioPair.beginWriting(pair.client, pair.server);
      pair.client.shutdownOutput();
      assertSame(
          AsynchronousCloseException.class,
          assertThrows(IOException.class, () -> NioPair.end(writer)).getClass());
      assertThrows(
          AsynchronousCloseException.class, () -> pair.client.write(ByteBuffer.allocate(1)));
    }
    try (NioPair pair = new NioPair()) {
      pair.client.setOption(java.net.StandardSocketOptions.SO_LINGER, 0);
      pair.client.close();
      IOException e =
          assertThrows(
              IOException.class,
              () -> {
                for (; ; ) {
                  pair.server.write(ByteBuffer.allocate(1));
                }
              });
      assertSame(IOException.class, e.getClass());
      assertTrue(
          List.of("Connection reset by peer", "Broken pipe").contains(e.getMessage()), e::toString);
    }
  }

  @Test
  void theStateIsCheckedBeforeTheBuffer() throws Exception {
    ByteBuffer readOnly = ByteBuffer.allocate(1).asReadOnlyBuffer();
    ByteBuffer[] array = {readOnly};
    SocketChannel fresh = SocketChannel.open();
    assertThrows(NotYetConnectedException.class, () -> fresh.read(readOnly));
    assertThrows(NotYetConnectedException.class, () -> fresh.read(array));
    fresh.close();
    assertThrows(ClosedChannelException.class, () -> fresh.read(readOnly));
    try (NioPair pair = new NioPair()) {
      assertThrows(IllegalArgumentException.class, () -> pair.client.read(readOnly));
      assertThrows(IllegalArgumentException.class, () -> pair.client.read(array));
    }
  }

  // ---- adaptors and states

  @Test
  void adaptorsAreShutTwiceAndClosed() throws Exception {
    try (NioPair pair = new NioPair()) {
      Socket socket = pair.server.socket();
      InputStream in = socket.getInputStream();
      NioPair.write(pair.client, ByteBuffer.allocate(10));
      while (in.available() < 10) {
        Thread.yield();
      }
      socket.shutdownInput();
      socket.shutdownInput();
      assertEquals(0, in.available());
      assertEquals(-1, in.read());
      socket.shutdownOutput();
      socket.shutdownOutput();
      assertTrue(socket.isConnected());
      socket.close();
      assertThrows(ClosedChannelException.class, in::read);
      assertFalse(pair.server.isConnected());
      assertFalse(socket.isConnected());
    }
  }

  /** Makes a connection that stays on TCP. */
  private static SocketChannel onTcp(ServerSocketChannel listener) throws IOException {
    SocketChannel channel = SocketChannel.open(listener.getLocalAddress());
    assertNull(((ViaductSocketChannel) channel).stream());
    return channel;
  }

  @Test
  void streamsOfAConnectionOnTcpCloseIt() throws Exception {
    try (ServerSocketChannel listener = ServerSocketChannel.open().bind(ON_TCP);
        SocketChannel a = onTcp(listener);
        SocketChannel b = onTcp(listener);
        SocketChannel c = onTcp(listener);
        SocketChannel peer = listener.accept()) {
      OutputStream out = a.socket().getOutputStream();
      out.write(7);
      out.write(new byte[] {8, 9});
      InputStream in = peer.socket().getInputStream();
      assertEquals(7, in.read());
      assertEquals(2, in.readNBytes(2).length);
      out.close();
      assertFalse(a.isOpen());
      assertTrue(a.socket().isClosed());
      b.socket().getInputStream().close();
      assertFalse(b.isOpen());
      FutureTask<Integer> reader =
          NioPair.begin(
              () -> {
                Thread.currentThread().interrupt();
                return c.socket().getInputStream().read();
              });
      assertThrows(ClosedByInterruptException.class, () -> NioPair.end(reader));
      assertFalse(c.isOpen());
    }
  }
}
