/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.util.Arrays;

/** The state of a ring's slots that is known without looking into the descriptors. */
final class RingSlots {
  private static final byte PREPARED = 1;
  private static final byte IN_FLIGHT = 2;
  private static final byte SHORTENED = 4;

  private final byte[] flags;
  private final long[] length;
  private final int[] segmentAt;
  private final int[] segments;
  private final Memory[] data;
  private final int perSlot;

  RingSlots(int slots, int maxSegments) {
    flags = new byte[slots];
    length = new long[slots];
    segmentAt = new int[slots];
    segments = new int[slots];
    perSlot = maxSegments;
    data = new Memory[slots * maxSegments];
  }

  void begin(int slot) {
    flags[slot] = PREPARED;
    length[slot] = 0;
    segmentAt[slot] = -1;
    segments[slot] = 0;
    Arrays.fill(data, slot * perSlot, (slot + 1) * perSlot, null);
  }

  /** Notes a data segment: its place in the ring counts if it is the only one. */
  void add(int slot, Memory memory, long total, int at) {
    data[slot * perSlot + segments[slot]++] = memory;
    length[slot] = total;
    segmentAt[slot] = segments[slot] == 1 ? at : -1;
  }

  long length(int slot) {
    return length[slot];
  }

  void length(int slot, long bytes) {
    length[slot] = bytes;
    segmentAt[slot] = -1;
  }

  /** Where the only data segment lies; -1 if there is not exactly one. */
  int segmentAt(int slot) {
    return segmentAt[slot];
  }

  /** The length of a slot that can be posted; throws if it cannot. */
  long check(Descriptors ring, int slot) {
    if (slot < 0 || slot >= flags.length || (flags[slot] & (PREPARED | IN_FLIGHT)) != PREPARED) {
      throw RingErrors.slot("post", ring, slot);
    }
    if (ring.vi.isClosed()) {
      throw new VipClosedException("DescriptorRing.post", "the VI");
    }
    return length[slot];
  }

  boolean prepared(int slot) {
    return (flags[slot] & PREPARED) != 0;
  }

  boolean inFlight(int slot) {
    return (flags[slot] & IN_FLIGHT) != 0;
  }

  void shortened(int slot) {
    flags[slot] |= SHORTENED;
  }

  /** Whether the segment must get its length back, which is then thought to be done. */
  boolean wasShortened(int slot) {
    boolean was = (flags[slot] & SHORTENED) != 0;
    flags[slot] &= ~SHORTENED;
    return was;
  }

  long post(int slot) {
    flags[slot] |= IN_FLIGHT;
    return length[slot];
  }

  long complete(int slot) {
    flags[slot] &= ~IN_FLIGHT;
    return length[slot];
  }

  void abandon() {
    for (int slot = 0; slot < flags.length; slot++) {
      flags[slot] &= ~IN_FLIGHT;
    }
  }

  boolean uses(Memory memory) {
    for (int slot = 0; slot < flags.length; slot++) {
      for (int i = 0; inFlight(slot) && i < segments[slot]; i++) {
        if (data[slot * perSlot + i] == memory) {
          return true;
        }
      }
    }
    return false;
  }
}
