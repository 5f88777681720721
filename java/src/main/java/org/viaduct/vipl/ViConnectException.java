/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** A connection was not made: no listener, no path, refused, too late, or other attributes. */
public class ViConnectException extends VipException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception.
   *
   * @param call the function of the library, or the method of this binding
   * @param code a code of {@link VipConstants}
   * @param detail what was wrong
   * @param remedy what to do
   */
  public ViConnectException(String call, int code, String detail, String remedy) {
    super(call, code, detail, remedy);
  }
}
