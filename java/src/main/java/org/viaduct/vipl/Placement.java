/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/**
 * Where a thread was placed, and why there.
 *
 * @param asked VIPX_PLACE_* that was asked for
 * @param got VIPX_PLACE_* that was got
 * @param asAsked whether they agree
 * @param cpus the processors, as in "2-5,8"; empty: not placed
 * @param text one line: asked, got, and why
 * @param warning one line, or empty
 */
public record Placement(
    int asked, int got, boolean asAsked, String cpus, String text, String warning) {}
