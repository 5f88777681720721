/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** A limit was reached or an object is in use; the message names the limit. */
public class ViResourceException extends VipException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception.
   *
   * @param call the function of the library, or the method of this binding
   * @param code a code of {@link VipConstants}
   * @param detail what was wrong
   * @param remedy what to do
   */
  public ViResourceException(String call, int code, String detail, String remedy) {
    super(call, code, detail, remedy);
  }
}
