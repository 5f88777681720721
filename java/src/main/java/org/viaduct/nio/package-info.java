/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * A provider of channels whose TCP connections between hosts of a fabric are carried by VIs.
 * Programs use it unchanged, with {@code
 * -Djava.nio.channels.spi.SelectorProvider=org.viaduct.nio.ViaductSelectorProvider}.
 */
package org.viaduct.nio;
