/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.util.Objects;

/**
 * Attributes of a VI.
 *
 * @param reliability the level; equal at both ends
 * @param maxTransferSize the most bytes of one descriptor; equal at both ends
 * @param ptag the protection tag, or null: memory of any tag
 * @param rdmaWrite whether the peer may write into memory here
 * @param rdmaRead whether the peer may read from memory here
 */
public record ViAttributes(
    Reliability reliability,
    long maxTransferSize,
    Ptag ptag,
    boolean rdmaWrite,
    boolean rdmaRead) {

  /**
   * Checks that a level is given.
   *
   * @param reliability not null
   * @param maxTransferSize as the VI's
   * @param ptag or null
   * @param rdmaWrite whether the peer may write
   * @param rdmaRead whether the peer may read
   */
  public ViAttributes {
    Objects.requireNonNull(reliability, "reliability");
  }

  /**
   * Attributes for messages alone, without a tag.
   *
   * @param reliability the level
   * @param maxTransferSize the most bytes of one descriptor
   * @return the attributes
   */
  public static ViAttributes messages(Reliability reliability, long maxTransferSize) {
    return new ViAttributes(reliability, maxTransferSize, null, false, false);
  }

  /**
   * Attributes for messages and RDMA in both directions, without a tag. RDMA read is enabled at
   * reliable levels.
   *
   * @param reliability the level
   * @param maxTransferSize the most bytes of one descriptor
   * @return the attributes
   */
  public static ViAttributes rdma(Reliability reliability, long maxTransferSize) {
    boolean read = reliability != Reliability.UNRELIABLE;
    return new ViAttributes(reliability, maxTransferSize, null, true, read);
  }
}
