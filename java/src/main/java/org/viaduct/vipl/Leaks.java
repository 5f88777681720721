/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.lang.ref.Cleaner;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Reports objects that were collected without having been closed. It closes none: a thread that
 * knows nothing of the program must not take memory from under a descriptor.
 */
final class Leaks {
  static final Cleaner CLEANER = Cleaner.create();

  private static final System.Logger LOG = System.getLogger("org.viaduct");
  private static final boolean TRACE = Boolean.getBoolean("org.viaduct.leaks.trace");
  private static final AtomicLong REPORTED = new AtomicLong();

  /** Parts of open objects that C still uses: they must not be collected with them. */
  private static final Set<Object> HELD = ConcurrentHashMap.newKeySet();

  private Leaks() {}

  /** Watches one object. */
  static final class Watch implements Runnable {
    private final String what;
    private final Object held;
    private final Throwable made;
    private volatile boolean closed;

    private Watch(String what, Object held) {
      this.what = what;
      this.held = held;
      this.made = TRACE ? new Throwable("made here") : null;
    }

    void closed() {
      closed = true;
      if (held != null) {
        HELD.remove(held);
      }
    }

    @Override
    public void run() {
      if (!closed) {
        REPORTED.incrementAndGet();
        String hint = TRACE ? "" : " (-Dorg.viaduct.leaks.trace=true tells where it was made)";
        LOG.log(System.Logger.Level.WARNING, what + " was not closed" + hint, made);
      }
    }
  }

  /**
   * Begins to watch an object.
   *
   * @param object the object
   * @param what what it is, for people; it must not refer to the object
   * @param held what must live until the object is closed, or null
   * @return what to call when it is closed
   */
  static Watch watch(Object object, String what, Object held) {
    Watch watch = new Watch(what, held);
    if (held != null) {
      HELD.add(held);
    }
    CLEANER.register(object, watch);
    return watch;
  }

  /** How many leaks were reported. */
  static long reported() {
    return REPORTED.get();
  }
}
