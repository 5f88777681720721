/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** A call failed: names the call, the code, what was wrong, and what to do. */
public class VipException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** The call that failed. */
  private final String call;

  /** One of {@link VipConstants}. */
  private final int code;

  /** The fault. */
  private final String detail;

  /** The remedy. */
  private final String remedy;

  /**
   * Makes an exception.
   *
   * @param call the function of the library, or the method of this binding
   * @param code a code of {@link VipConstants}
   * @param detail what was wrong, with the values and limits concerned
   * @param remedy what to do
   */
  public VipException(String call, int code, String detail, String remedy) {
    super(call + ": " + Codes.name(code) + ": " + detail + ". " + remedy);
    this.call = call;
    this.code = code;
    this.detail = detail;
    this.remedy = remedy;
  }

  /**
   * Tells what was called.
   *
   * @return the function of the library, or the method of this binding
   */
  public String call() {
    return call;
  }

  /**
   * Tells the return code.
   *
   * @return a code of {@link VipConstants}
   */
  public int code() {
    return code;
  }

  /**
   * Tells what was wrong.
   *
   * @return the values and limits concerned
   */
  public String detail() {
    return detail;
  }

  /**
   * Tells what to do.
   *
   * @return a sentence
   */
  public String remedy() {
    return remedy;
  }
}
