/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** An argument was refused, by the library or before the call. */
public class VipArgumentException extends VipException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception.
   *
   * @param call the function of the library, or the method of this binding
   * @param code a code of {@link VipConstants}
   * @param detail what was wrong
   * @param remedy what to do
   */
  public VipArgumentException(String call, int code, String detail, String remedy) {
    super(call, code, detail, remedy);
  }
}
