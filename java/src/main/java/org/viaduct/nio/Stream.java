/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.net.SocketException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.viaduct.vipl.spi.Threads;

/** A stream of C, which is freed when it is closed and nobody uses it. */
final class Stream {
  private static final ExecutorService SLEEPERS = Threads.sleepers("viaduct-nio-sleep");

  final long handle;
  private final AtomicInteger users = new AtomicInteger(1);
  private volatile boolean settled;
  private final AtomicBoolean closed = new AtomicBoolean();

  Stream(long handle) {
    this.handle = handle;
  }

  /** Before a use, which ends with leave(). False: it is closed. */
  boolean enter() {
    int n;
    do {
      n = users.get();
      if (n == 0) {
        return false;
      }
    } while (!users.compareAndSet(n, n + 1));
    return true;
  }

  void leave() {
    if (users.decrementAndGet() == 0) {
      NioCalls.free(handle);
    }
  }

  /** Threads that sleep for it wake. */
  void close(boolean blocking) {
    if (closed.compareAndSet(false, true)) {
      NioCalls.close(handle, blocking);
      leave();
    }
  }

  /** Bytes, 0 at the end, or a negative errno. */
  int receive(long address, int count) {
    return NioCalls.receive(handle, address, count);
  }

  int send(long address, int count) {
    return NioCalls.send(handle, address, count);
  }

  void shutdown(int how) throws IOException {
    int rc = NioCalls.shutdown(handle, how);
    if (rc < 0 && rc != -NioCalls.ENOTCONN) {
      throw failure(rc);
    }
  }

  /** Before the first bytes of a connection that a rule promotes at once: waits for it, briefly. */
  void settle() {
    if (!settled) {
      settled = true;
      NioCalls.settle(handle);
    }
  }

  /** Sleeps for events, for a time in ns or, with -1, without end; 0 or a negative errno. */
  int sleep(int events, long ns) {
    return Threads.onVirtual()
        ? CompletableFuture.supplyAsync(() -> NioCalls.sleep(handle, events, ns), SLEEPERS).join()
        : NioCalls.sleep(handle, events, ns);
  }

  static IOException failure(int rc) {
    switch (-rc) {
      case NioCalls.ECONNRESET:
        return new SocketException("Connection reset");
      case NioCalls.ENOTCONN:
        return new SocketException("the connection belongs to another process");
      default:
        return new IOException(NioCalls.errorText(-rc));
    }
  }
}
