/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Handlers that threads of the library call. C gets a number as its context; nothing that a handler
 * throws reaches C.
 */
public final class Handlers {
  /** Gets what C gave: its meaning depends on the kind of handler. */
  @FunctionalInterface
  public interface Handler {
    /**
     * Is called by a thread of the library.
     *
     * @param first the NIC, or the address of the error descriptor
     * @param second the VI
     * @param third the descriptor, or whether the entry is of the receive queue
     */
    void call(long first, long second, long third);
  }

  private static final System.Logger LOG = System.getLogger("org.viaduct");
  private static final ConcurrentHashMap<Long, Handler> TABLE = new ConcurrentHashMap<>();
  private static final AtomicLong NEXT = new AtomicLong(1);

  private Handlers() {}

  /** Keeps a handler: the number for C. */
  public static long add(Handler handler) {
    long number = NEXT.getAndIncrement();
    TABLE.put(number, handler);
    return number;
  }

  /** Forgets a handler; whether it was there. */
  public static boolean remove(long number) {
    return TABLE.remove(number) != null;
  }

  /** How many are kept. */
  public static int count() {
    return TABLE.size();
  }

  /** VIP_VI_CALLBACK: once for each number. */
  public static void vi(long number, long nic, long vi, long descriptor) {
    run(TABLE.remove(number), nic, vi, descriptor);
  }

  /** VIP_CQ_CALLBACK: once for each number. */
  public static void cq(long number, long nic, long vi, int receive) {
    run(TABLE.remove(number), nic, vi, receive);
  }

  /** VIP_ERROR_HANDLER: as often as there are errors. */
  public static void error(long number, long descriptor) {
    run(TABLE.get(number), descriptor, 0, 0);
  }

  private static void run(Handler handler, long first, long second, long third) {
    if (handler == null) {
      return;
    }
    try {
      handler.call(first, second, third);
    } catch (Throwable problem) {
      LOG.log(System.Logger.Level.ERROR, "a handler of Viaduct threw an exception", problem);
    }
  }
}
