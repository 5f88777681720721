/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.channel;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.viaduct.vipl.ViConnectException;
import org.viaduct.vipl.VipConstants;

/**
 * The first message of each end: where its segment lies. Little-endian, as all else on the wire.
 *
 * @param slots how many messages it has room for
 * @param slotBytes bytes from one slot to the next, and the longest message
 * @param address where slot 0 begins
 * @param handle the handle of that memory
 */
record Hello(int slots, int slotBytes, long address, int handle) {
  /** Bytes of the message. */
  static final int BYTES = 32;

  /** "VCHN", and the version of this format. */
  private static final int MAGIC = 0x4E484356;

  private static final int VERSION = 1;

  private static final int MAX_SLOTS = 4096;

  void put(ByteBuffer to) {
    to.order(ByteOrder.LITTLE_ENDIAN);
    to.putInt(0, MAGIC).putInt(4, VERSION).putInt(8, slots).putInt(12, slotBytes);
    to.putLong(16, address).putInt(24, handle).putInt(28, 0);
  }

  /** Reads and checks that of the other end. */
  static Hello get(ByteBuffer from, long bytes) {
    from.order(ByteOrder.LITTLE_ENDIAN);
    if (bytes != BYTES || from.getInt(0) != MAGIC) {
      throw refused("the other end is no RdmaChannel");
    }
    if (from.getInt(4) != VERSION) {
      throw refused("the other end has version " + from.getInt(4) + " of channels, not " + VERSION);
    }
    Hello hello = new Hello(from.getInt(8), from.getInt(12), from.getLong(16), from.getInt(24));
    if (hello.slots < 1 || hello.slots > MAX_SLOTS || hello.slotBytes < 1) {
      throw refused("the other end has " + hello.slots + " slots of " + hello.slotBytes + " bytes");
    }
    return hello;
  }

  private static ViConnectException refused(String detail) {
    return new ViConnectException(
        "RdmaChannel",
        VipConstants.VIP_REJECT,
        detail,
        "Use RdmaChannel of one version at both ends");
  }
}
