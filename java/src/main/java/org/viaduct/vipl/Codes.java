/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.viaduct.vipl.VipConstants.*;

/** Names of codes and status bits, and the exceptions that they become. */
final class Codes {
  private static final String[] NAMES = {
    "VIP_SUCCESS",
    "VIP_NOT_DONE",
    "VIP_INVALID_PARAMETER",
    "VIP_ERROR_RESOURCE",
    "VIP_TIMEOUT",
    "VIP_REJECT",
    "VIP_INVALID_RELIABILITY_LEVEL",
    "VIP_INVALID_MTU",
    "VIP_INVALID_QOS",
    "VIP_INVALID_PTAG",
    "VIP_INVALID_RDMAREAD",
    "VIP_DESCRIPTOR_ERROR",
    "VIP_INVALID_STATE",
    "VIP_ERROR_NAMESERVICE",
    "VIP_NO_MATCH",
    "VIP_NOT_REACHABLE",
    "VIP_ERROR_NOT_SUPPORTED",
  };

  private static final String[] STATUS = {
    "DONE",
    "FORMAT_ERROR",
    "PROTECTION_ERROR",
    "LENGTH_ERROR",
    "PARTIAL_ERROR",
    "DESC_FLUSHED_ERROR",
    "TRANSPORT_ERROR",
    "RDMA_PROT_ERROR",
    "REMOTE_DESC_ERROR",
  };

  private Codes() {}

  static String name(int code) {
    return code >= 0 && code < NAMES.length ? NAMES[code] : "code " + code;
  }

  static String status(int status) {
    StringBuilder text = new StringBuilder();
    for (int bit = 0; bit < STATUS.length; bit++) {
      if ((status & 1 << bit) != 0) {
        text.append(text.length() == 0 ? "" : "|").append(STATUS[bit]);
      }
    }
    return text.length() == 0 ? "no bit" : text.toString();
  }

  static String statusRemedy(int status) {
    if ((status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0) {
      return "The connection has ended and this was not done: connect again and repeat it";
    }
    if ((status & VIP_STATUS_TRANSPORT_ERROR) != 0) {
      return "The link or the peer is lost: disconnect, and connect again";
    }
    if ((status & VIP_STATUS_RDMA_PROT_ERROR) != 0) {
      return "The peer's VI and memory must both enable this RDMA, and the range lie within it";
    }
    if ((status & VIP_STATUS_REMOTE_DESC_ERROR) != 0) {
      return "The peer must post a receive that is long enough before a message is sent";
    }
    if ((status & VIP_STATUS_LENGTH_ERROR) != 0) {
      return "Post longer receives, or send no more than they hold";
    }
    if ((status & VIP_STATUS_PROTECTION_ERROR) != 0) {
      return "Memory must stay open until its descriptors are complete, with a tag that fits";
    }
    return "Prepare the slot again";
  }

  /** Throws if the code is none of success. */
  static void check(String call, int code, String object) {
    if (code != VIP_SUCCESS) {
      throw exception(call, code, object);
    }
  }

  static VipException exception(String call, int code, String object) {
    switch (code) {
      case VIP_TIMEOUT:
      case VIP_REJECT:
      case VIP_NO_MATCH:
      case VIP_NOT_REACHABLE:
        return new ViConnectException(call, code, object, connectRemedy(code));
      case VIP_INVALID_RELIABILITY_LEVEL:
      case VIP_INVALID_MTU:
      case VIP_INVALID_QOS:
        if (call.contains("Connect")) {
          return new ViConnectException(call, code, object, "Use the same value at both ends");
        }
        return new VipArgumentException(
            call, code, object, "Use a value that NicAttributes allows");
      case VIP_ERROR_RESOURCE:
        return new ViResourceException(
            call,
            code,
            object,
            "Release what is not needed, or raise the limit; NicAttributes tells the limits, and"
                + " VIADUCT_LOG=info the reason");
      case VIP_INVALID_STATE:
        return new VipStateException(call, code, object, "Disconnect the VI first");
      case VIP_ERROR_NAMESERVICE:
        return new ViConnectException(
            call, code, object, "No such name or address: vi_info lists those of the fabric");
      case VIP_INVALID_PTAG:
        return new VipArgumentException(call, code, object, "Use a tag of this NIC, or none");
      case VIP_INVALID_RDMAREAD:
        return new VipArgumentException(
            call, code, object, "RDMA read needs a reliable level: see NicAttributes");
      case VIP_ERROR_NOT_SUPPORTED:
        return new VipException(call, code, object, "VIADUCT_LOG=info tells the reason");
      default:
        return new VipArgumentException(
            call,
            code,
            object,
            "The object was closed, belongs to another NIC, or a value is out of range");
    }
  }

  private static String connectRemedy(int code) {
    switch (code) {
      case VIP_REJECT:
        return "The server refused: ask for something else";
      case VIP_NO_MATCH:
        return "No program waits on that address now: start the server, or try again";
      case VIP_NOT_REACHABLE:
        return "No such host, or no path to it: Nic.route tells why";
      default:
        return "Try again, or allow more time";
    }
  }
}
