/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.viaduct.vipl.VipConstants.*;

/** The exceptions of rings, apart from the code that runs for each message. */
final class RingErrors {
  private RingErrors() {}

  private static VipArgumentException argument(String call, String detail, String remedy) {
    return new VipArgumentException(
        "DescriptorRing." + call, VIP_INVALID_PARAMETER, detail, remedy);
  }

  static VipException slot(String call, Descriptors ring, int slot) {
    if (ring.closed) {
      return new VipClosedException("DescriptorRing." + call, "the ring");
    }
    if (slot < 0 || slot >= ring.slots) {
      return argument(call, "slot " + slot + " of " + ring.slots, "Slots count from 0");
    }
    if (ring.state.inFlight(slot)) {
      return new VipStateException(
          "DescriptorRing." + call,
          VIP_INVALID_STATE,
          "slot " + slot + " is in flight",
          "Use it again when poll, take or await has given it back");
    }
    return new VipStateException(
        "DescriptorRing." + call,
        VIP_INVALID_STATE,
        "slot " + slot + " is not prepared",
        "Call prepare first");
  }

  static VipException foreign(Memory data, Vi vi) {
    return argument(
        "prepare",
        data + " is not registered with " + vi.nic(),
        "Use memory of Nic.allocate or Nic.register of the VI's NIC");
  }

  static VipException tooLong(long bytes, Vi vi) {
    return new VipArgumentException(
        "DescriptorRing.prepare",
        VIP_INVALID_MTU,
        bytes
            + " bytes, more than the "
            + vi.maxTransferSize()
            + " that ViAttributes.maxTransferSize allows (NIC: "
            + vi.nic().attributes().maxTransferSize()
            + ")",
        "Send it in several parts, or make the VIs of both ends with a larger maximum");
  }

  static VipException length(int slot, long bytes, long whole, boolean several) {
    if (several) {
      return argument(
          "post",
          "slot " + slot + " has not exactly one data segment",
          "Post it without a length");
    }
    return argument(
        "post",
        bytes + " bytes in slot " + slot + ", which was prepared for " + whole,
        "Prepare it for the most that it shall carry");
  }

  static VipException count(int count, int limit) {
    return argument("take", count + " of " + limit, "Stay within the limit");
  }

  static VipException segments(String call, int count, int limit) {
    return argument(
        call,
        count + " segments of " + limit,
        "Make the ring with more: Vi.sendRing(slots, segments)");
  }

  static VipException receiveOnly(String call) {
    return argument(call, "a receive ring takes messages only", "Use the send ring");
  }

  static VipException foreignDescriptor(Vi vi) {
    return new VipStateException(
        "DescriptorRing.poll",
        VIP_INVALID_STATE,
        "a descriptor that is not of this ring was taken from " + vi,
        "Do not post to a VI with Vipl while a ring of it is in use");
  }

  static VipException post(Descriptors ring, int slot, int code) {
    String call = ring.receive ? "VipPostRecv" : "VipPostSend";
    if (ring.vi.isClosed()) {
      return new VipClosedException(call, ring.vi.toString());
    }
    if (code == VIP_ERROR_RESOURCE) {
      return new ViResourceException(
          call,
          code,
          "the queue holds MaxDescriptorsPerQueue, "
              + ring.vi.nic().attributes().maxDescriptorsPerQueue(),
          "Take completed descriptors, then post again");
    }
    return Codes.exception(call, code, "slot " + slot + " of " + ring.vi);
  }
}
