/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** The native library is missing, of a wrong version, or laid out otherwise than this binding. */
public class VipLibraryException extends VipException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes an exception.
   *
   * @param detail what was found, and in each place that was tried
   * @param remedy what to do
   */
  public VipLibraryException(String detail, String remedy) {
    super("load", VipConstants.VIP_ERROR_NOT_SUPPORTED, detail, remedy);
  }
}
