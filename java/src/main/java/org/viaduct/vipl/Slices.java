/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/**
 * Cuts a wait into parts. A thread in a call of C does not notice an interrupt, so it comes back
 * now and then to look.
 */
final class Slices {
  private static final long MILLION = 1_000_000;

  private final long slice;
  private final boolean endless;
  private final long end;
  private boolean last;

  Slices(long milliseconds) {
    this(milliseconds, 50);
  }

  Slices(long milliseconds, long slice) {
    if (milliseconds < 0) {
      throw new VipArgumentException(
          "wait",
          VipConstants.VIP_INVALID_PARAMETER,
          milliseconds + " ms",
          "Use 0 to look once, or VipConstants.VIP_INFINITE");
    }
    this.slice = slice;
    this.endless = milliseconds >= VipConstants.VIP_INFINITE;
    this.end = endless ? 0 : System.nanoTime() + milliseconds * MILLION;
  }

  /** The milliseconds of the next part; throws if the thread was interrupted. */
  long next() throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    if (endless) {
      return slice;
    }
    long left = end - System.nanoTime();
    last = left <= slice * MILLION;
    return last ? Math.max(0, (left + MILLION - 1) / MILLION) : slice;
  }

  /** Whether the last part is over. */
  boolean over() {
    return last;
  }
}
