/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

/** The ways of calling C that this JDK has: this class is in the jar for JDK 22 and later. */
final class Backends {
  private Backends() {}

  /** Whether the foreign function interface can be used. */
  static boolean hasFfm() {
    return true;
  }

  /** Opens libvipl by it; null, or what is wrong with the library. */
  static String openFfm(String path, long version) {
    return Link.open(path, version);
  }

  /** The functions of the library that was opened. */
  static NativeCalls ffm() {
    return new FfmCalls();
  }
}
