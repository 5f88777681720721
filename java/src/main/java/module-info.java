/* SPDX-License-Identifier: BSD-2-Clause */

/** Viaduct for Java: VIs over PCIe non-transparent bridges and over emulated fabrics. */
module org.viaduct {
  exports org.viaduct.channel;
  exports org.viaduct.nio;
  exports org.viaduct.vipl;
}
