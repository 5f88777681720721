/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** Reliability levels of a VI. */
public enum Reliability {
  /** At most once; loss is silent. */
  UNRELIABLE(1),
  /** Exactly once, in order, or the connection breaks. */
  DELIVERY(2),
  /** As DELIVERY, and complete when the peer has the data. */
  RECEPTION(4);

  private final int bit;

  Reliability(int bit) {
    this.bit = bit;
  }

  /**
   * Tells the constant of C.
   *
   * @return VIP_SERVICE_*
   */
  public int bit() {
    return bit;
  }

  static Reliability of(int bit) {
    for (Reliability level : values()) {
      if (level.bit == bit) {
        return level;
      }
    }
    throw new VipArgumentException(
        "Reliability.of",
        VipConstants.VIP_INVALID_RELIABILITY_LEVEL,
        bit + " is not one level",
        "Use 1, 2 or 4");
  }
}
