/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/**
 * Attributes of registered memory.
 *
 * @param ptag the protection tag, or null: the default one
 * @param rdmaWrite whether peers may write there
 * @param rdmaRead whether peers may read there
 */
public record MemoryAttributes(Ptag ptag, boolean rdmaWrite, boolean rdmaRead) {
  /** No RDMA, no tag. */
  public static final MemoryAttributes LOCAL = new MemoryAttributes(null, false, false);

  /** Peers may write, no tag. */
  public static final MemoryAttributes WRITABLE = new MemoryAttributes(null, true, false);

  /** Peers may write and read, no tag. */
  public static final MemoryAttributes SHARED = new MemoryAttributes(null, true, true);
}
