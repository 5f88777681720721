/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** The object was closed, maybe by another thread during the call. */
public class VipClosedException extends VipStateException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception.
   *
   * @param call the method that was called
   * @param object what is closed
   */
  public VipClosedException(String call, String object) {
    super(
        call,
        VipConstants.VIP_INVALID_STATE,
        object + " is closed",
        "Make a new one; close objects after the threads that use them have ended");
  }
}
