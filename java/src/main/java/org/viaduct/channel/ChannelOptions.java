/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.channel;

import org.viaduct.vipl.Reliability;
import org.viaduct.vipl.VipArgumentException;
import org.viaduct.vipl.VipConstants;

/**
 * Sizes and reliability of one end of a connection. The ends may differ in slots and their length,
 * but not in reliability.
 *
 * @param slots how many messages can be under way to this end, and how many it can have under way,
 *     1 to 4,096
 * @param slotBytes the longest message, 1 to 1 GiB; the shorter one of both ends counts
 * @param reliability {@link Reliability#DELIVERY} or {@link Reliability#RECEPTION}
 */
public record ChannelOptions(int slots, int slotBytes, Reliability reliability) {
  /** Eight slots of 1 MiB, reliable delivery. */
  public static final ChannelOptions DEFAULT =
      new ChannelOptions(8, 1 << 20, Reliability.DELIVERY);

  private static final int MAX_SLOTS = 4096;
  private static final int MAX_SLOT_BYTES = 1 << 30;

  /**
   * Checks the limits.
   *
   * @param slots as above
   * @param slotBytes as above
   * @param reliability as above
   */
  public ChannelOptions {
    if (slots < 1 || slots > MAX_SLOTS) {
      throw bad(slots + " slots, of 1 to " + MAX_SLOTS, "Use fewer, longer messages");
    }
    if (slotBytes < 1 || slotBytes > MAX_SLOT_BYTES) {
      throw bad(
          slotBytes + " bytes in a slot, of 1 to " + MAX_SLOT_BYTES,
          "Send long data as several messages");
    }
    if (reliability != Reliability.DELIVERY && reliability != Reliability.RECEPTION) {
      throw bad("reliability " + reliability, "Credits need a reliable level");
    }
  }

  private static VipArgumentException bad(String detail, String remedy) {
    return new VipArgumentException(
        "ChannelOptions", VipConstants.VIP_INVALID_PARAMETER, detail, remedy);
  }

  /**
   * These options with another number of slots.
   *
   * @param count how many
   * @return new options
   */
  public ChannelOptions slots(int count) {
    return new ChannelOptions(count, slotBytes, reliability);
  }

  /**
   * These options with slots of another length.
   *
   * @param bytes the length
   * @return new options
   */
  public ChannelOptions slotBytes(int bytes) {
    return new ChannelOptions(slots, bytes, reliability);
  }

  /**
   * These options with another level.
   *
   * @param level the level
   * @return new options
   */
  public ChannelOptions reliability(Reliability level) {
    return new ChannelOptions(slots, slotBytes, level);
  }
}
