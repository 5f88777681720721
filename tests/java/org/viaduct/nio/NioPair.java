/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Two connected channels of this process, whose bytes go over a VI. */
final class NioPair implements AutoCloseable {
  static final long PATIENCE_S = 60;

  SocketChannel client;
  SocketChannel server;

  /**
   * Makes pairs until one moves to a VI: on a slow machine an end may give up waiting for the
   * other.
   */
  NioPair() throws Exception {
    connect();
    while (!movesToVi()) {
      close();
      connect();
    }
  }

  private void connect() throws IOException {
    try (ServerSocketChannel listener = ServerSocketChannel.open()) {
      listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      client = SocketChannel.open(listener.getLocalAddress());
      server = listener.accept();
    }
  }

  /** Exchanges bytes until those of both directions go over a VI; false after some seconds. */
  private boolean movesToVi() throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S / 6);
    long before;
    do {
      before = ViaductSelectorProvider.statistics().viBytesSent();
      // The first use of each end waits for that of the other.
      FutureTask<Integer> there = begin(() -> read(server, 4).getInt(0));
      write(client, ByteBuffer.allocate(4).putInt(0, 42));
      if (end(there) != 42) {
        throw new IOException("other bytes arrived");
      }
      write(server, ByteBuffer.allocate(4).putInt(0, 43));
      if (read(client, 4).getInt(0) != 43) {
        throw new IOException("other bytes arrived");
      }
      if (ViaductSelectorProvider.statistics().viBytesSent() - before == 8) {
        return true;
      }
    } while (System.nanoTime() < end);
    return false;
  }

  /** Runs in another thread, which is interrupted by cancel(true). */
  static <T> FutureTask<T> begin(Callable<T> work) {
    FutureTask<T> task = new FutureTask<>(work);
    Thread thread = new Thread(task, "nio-test");
    thread.setDaemon(true);
    thread.start();
    return task;
  }

  /** Writes to the channel without end; returns when it has begun and `reader` has got 1 MiB. */
  static FutureTask<Void> beginWriting(SocketChannel channel, SocketChannel reader)
      throws Exception {
    FutureTask<Void> writer =
        begin(
            () -> {
              for (; ; ) {
                channel.write(ByteBuffer.allocate(1 << 20));
              }
            });
    read(reader, 1 << 20);
    return writer;
  }

  /** Waits for a task; returns its result, or throws what it threw. */
  static <T> T end(FutureTask<T> task) throws Exception {
    try {
      return task.get(PATIENCE_S, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw e;
    } catch (TimeoutException e) {
      throw new AssertionError("a thread did not end", e);
    }
  }

  static ByteBuffer read(SocketChannel from, int bytes) throws IOException {
    ByteBuffer all = ByteBuffer.allocate(bytes);
    while (all.hasRemaining()) {
      if (from.read(all) < 0) {
        throw new IOException("the stream ended after " + all.position() + " bytes");
      }
    }
    return all.flip();
  }

  static void write(SocketChannel to, ByteBuffer all) throws IOException {
    while (all.hasRemaining()) {
      to.write(all);
    }
  }

  @Override
  public void close() throws IOException {
    client.close();
    server.close();
  }
}
