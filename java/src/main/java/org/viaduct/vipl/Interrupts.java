/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Ends calls of C that wait for a connection when their thread is interrupted. A thread inside C
 * cannot notice that itself, so a thread of this class looks, as long as there is such a call, and
 * disconnects the VI.
 */
final class Interrupts {
  private static final int PERIOD_MS = 20;
  private static final Set<Watch> WATCHED = ConcurrentHashMap.newKeySet();
  private static final Object LOCK = new Object();
  private static boolean running;

  private Interrupts() {}

  /** One call that waits. */
  static final class Watch implements AutoCloseable {
    private final Thread thread = Thread.currentThread();
    private final Vi vi;
    private boolean done;
    private boolean ended;

    private Watch(Vi vi) {
      this.vi = vi;
    }

    private synchronized void look() {
      if (!done && thread.isInterrupted()) {
        Vipl.vipDisconnect(vi.handle());
        ended = true;
      }
    }

    /** Throws if this ended the call, or the VI was connected just before that. */
    synchronized void check(int code) throws InterruptedException {
      done = true;
      if (ended) {
        Thread.interrupted();
        throw new InterruptedException("Vi.connect was interrupted (code " + code + ")");
      }
    }

    @Override
    public void close() {
      synchronized (this) {
        done = true;
      }
      WATCHED.remove(this);
    }
  }

  static Watch watch(Vi vi) throws InterruptedException {
    if (Thread.interrupted()) {
      Vipl.vipDisconnect(vi.handle());
      throw new InterruptedException();
    }
    Watch watch = new Watch(vi);
    synchronized (LOCK) {
      WATCHED.add(watch);
      if (!running) {
        running = true;
        Thread thread = new Thread(Interrupts::run, "viaduct-interrupts");
        thread.setDaemon(true);
        thread.start();
      }
    }
    return watch;
  }

  private static void run() {
    while (true) {
      synchronized (LOCK) {
        if (WATCHED.isEmpty()) {
          running = false;
          return;
        }
      }
      for (Watch watch : WATCHED) {
        watch.look();
      }
      try {
        Thread.sleep(PERIOD_MS);
      } catch (InterruptedException e) {
        continue; // nobody has a reason to interrupt this thread
      }
    }
  }
}
