/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** A descriptor completed with an error. */
public class ViDescriptorException extends VipException {
  private static final long serialVersionUID = 1L;

  /** The slot of the descriptor, or -1. */
  private final int slot;

  /** Its status. */
  private final int status;

  /**
   * Makes an exception.
   *
   * @param call what was called
   * @param slot the slot of the descriptor, or -1
   * @param status its status, bits of {@link VipConstants}
   */
  public ViDescriptorException(String call, int slot, int status) {
    super(
        call,
        VipConstants.VIP_DESCRIPTOR_ERROR,
        "slot " + slot + " completed with " + Codes.status(status),
        Codes.statusRemedy(status));
    this.slot = slot;
    this.status = status;
  }

  /**
   * Tells the slot.
   *
   * @return the slot of the descriptor in its ring
   */
  public int slot() {
    return slot;
  }

  /**
   * Tells the status.
   *
   * @return bits of {@link VipConstants}
   */
  public int status() {
    return status;
  }

  /**
   * Tells whether the descriptor was given back undone, because the VI was disconnected or broke.
   *
   * @return whether it was flushed
   */
  public boolean flushed() {
    return (status & VipConstants.VIP_STATUS_DESC_FLUSHED_ERROR) != 0;
  }
}
