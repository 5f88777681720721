/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

/** The ways of calling C that this JDK has. The jar has another such class for JDK 22 and later. */
final class Backends {
  private Backends() {}

  /** Whether the foreign function interface can be used. */
  static boolean hasFfm() {
    return false;
  }

  /** Opens libvipl by it; null, or what is wrong with the library. */
  static String openFfm(String path, long version) {
    return "this JDK has no foreign function interface (22 or later has)";
  }

  /** The functions of the library that was opened. */
  static NativeCalls ffm() {
    throw new IllegalStateException("no library was opened");
  }
}
