/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A virtual thread that slept in C would keep its carrier: a platform thread does it instead. */
public final class Threads {
  /** Thread.isVirtual(), of Java 21; null before. */
  private static final MethodHandle IS_VIRTUAL = isVirtualHandle();

  private Threads() {}

  private static MethodHandle isVirtualHandle() {
    try {
      return MethodHandles.lookup()
          .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  /**
   * Whether the thread that calls is a virtual one.
   *
   * @return false on a JDK that has none
   */
  public static boolean onVirtual() {
    if (IS_VIRTUAL == null) {
      return false;
    }
    try {
      return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
    } catch (Throwable e) {
      throw new IllegalStateException("Thread.isVirtual", e);
    }
  }

  /**
   * Platform threads that sleep for others, and do not keep a program from ending.
   *
   * @param name of each thread
   * @return makes a thread where none is idle
   */
  public static ExecutorService sleepers(String name) {
    return Executors.newCachedThreadPool(
        work -> {
          Thread thread = new Thread(work, name);
          thread.setDaemon(true);
          return thread;
        });
  }
}
