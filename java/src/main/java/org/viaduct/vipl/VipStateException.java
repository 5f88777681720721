/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** The object is in a state in which it cannot do that. */
public class VipStateException extends VipException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception.
   *
   * @param call the function of the library, or the method of this binding
   * @param code a code of {@link VipConstants}
   * @param detail what was wrong
   * @param remedy what to do
   */
  public VipStateException(String call, int code, String detail, String remedy) {
    super(call, code, detail, remedy);
  }
}
