/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * Connections that carry messages through memory that both ends reach: the sender's buffer is
 * written into a slot of the receiver's segment, and the receiver reads it there.
 *
 * <p>A {@link org.viaduct.channel.RdmaServerChannel} waits for clients, {@link
 * org.viaduct.channel.RdmaChannel} is an end of a connection, and {@link
 * org.viaduct.channel.ChannelOptions} says how many messages of which length can be under way.
 */
package org.viaduct.channel;
