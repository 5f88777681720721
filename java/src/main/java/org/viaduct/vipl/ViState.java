/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** States of a VI, in the order of C. */
public enum ViState {
  /** Not connected. */
  IDLE,
  /** Transfers are processed. */
  CONNECTED,
  /** A request is under way. */
  CONNECT_PENDING,
  /** The connection is lost: disconnect. */
  ERROR
}
