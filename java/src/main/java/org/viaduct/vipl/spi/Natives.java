/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import org.viaduct.vipl.VipLibraryException;

/** The native library, loaded with the first use. */
public final class Natives {
  private Natives() {}

  private static final class Holder {
    static final NativeCalls CALLS;
    static final VipLibraryException FAILURE;

    static {
      NativeCalls calls = null;
      VipLibraryException failure = null;
      try {
        calls = Loader.load();
      } catch (VipLibraryException e) {
        failure = e;
      }
      CALLS = calls;
      FAILURE = failure;
    }
  }

  /** The functions; throws what went wrong, each time, if the library could not be loaded. */
  public static NativeCalls calls() {
    NativeCalls calls = Holder.CALLS;
    if (calls == null) {
      throw again(Holder.FAILURE);
    }
    return calls;
  }

  private static VipLibraryException again(VipLibraryException first) {
    VipLibraryException copy = new VipLibraryException(first.detail(), first.remedy());
    copy.initCause(first);
    return copy;
  }
}
