/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.channel;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import org.viaduct.vipl.spi.Threads;

/**
 * Waits in C. A virtual thread that did so would hold its carrier, so it has a platform thread wait
 * in its place and parks until that is done.
 */
final class Waiter {
  private static final ExecutorService POOL = Threads.sleepers("viaduct-waiter");

  private Waiter() {}

  /**
   * A call that waits in C, and ends soon after its thread was interrupted. If it had a result by
   * then, that is returned, and the thread is still interrupted.
   */
  static <T> T await(Callable<T> call) throws InterruptedException {
    try {
      return Threads.onVirtual() ? handOver(call) : call.call();
    } catch (InterruptedException | RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException("a wait threw what it does not declare", e);
    }
  }

  private static <T> T handOver(Callable<T> call) throws Exception {
    Handed<T> handed = new Handed<>(call);
    POOL.execute(handed);
    try {
      return handed.result.get();
    } catch (InterruptedException e) {
      handed.stop();
      if (handed.result.isCompletedExceptionally()) {
        throw e;
      }
      // A result taken since the interrupt must not be lost: the next wait ends by the interrupt.
      Thread.currentThread().interrupt();
      return handed.result.join();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof Error error) {
        throw error;
      }
      throw (Exception) e.getCause();
    }
  }

  /** A call that another thread makes. */
  private static final class Handed<T> implements Runnable {
    final CompletableFuture<T> result = new CompletableFuture<>();
    private final Callable<T> call;
    private Thread runner;
    private boolean stopped;

    Handed(Callable<T> call) {
      this.call = call;
    }

    @Override
    public void run() {
      synchronized (this) {
        if (stopped) {
          result.completeExceptionally(new InterruptedException());
          return;
        }
        runner = Thread.currentThread();
      }
      T value = null;
      Throwable thrown = null;
      try {
        value = call.call();
      } catch (Throwable e) {
        thrown = e;
      }
      synchronized (this) {
        runner = null;
        Thread.interrupted();
      }
      if (thrown == null) {
        result.complete(value);
      } else {
        result.completeExceptionally(thrown);
      }
    }

    /** Returns when the other thread has left the channel, soon after its interrupt. */
    void stop() {
      synchronized (this) {
        stopped = true;
        if (runner != null) {
          runner.interrupt();
        }
      }
      boolean again = false;
      while (!result.isDone()) {
        try {
          result.get();
        } catch (InterruptedException e) {
          again = true;
        } catch (ExecutionException e) {
          break;
        }
      }
      if (again) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
