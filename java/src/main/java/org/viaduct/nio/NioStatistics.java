/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

/**
 * Counts of what the channels of this process have done since it began.
 *
 * @param viBytesSent bytes that were sent over VIs
 * @param viBytesReceived bytes that were received over VIs
 * @param tcpBytesSent bytes that channels with a rule sent by TCP
 * @param tcpBytesReceived bytes that channels with a rule received by TCP
 * @param promotions directions of connections that moved to a VI
 * @param demotions directions that moved back to TCP, or attempts that ended there
 * @param attempts attempts to promote a connection
 * @param resets connections that ended because a VI was lost with bytes under way
 */
public record NioStatistics(
    long viBytesSent,
    long viBytesReceived,
    long tcpBytesSent,
    long tcpBytesReceived,
    long promotions,
    long demotions,
    long attempts,
    long resets) {}
