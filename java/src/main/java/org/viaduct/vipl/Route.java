/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/**
 * How packets to a host travel.
 *
 * @param reachable whether there is a path
 * @param hops links to cross; 0 to the own host
 * @param pathKind 0 no path, 1 this host, 2 a neighbour, 3 through other hosts
 * @param host the name of the host
 * @param port the local port by which packets leave
 * @param reason why this path, or why not reachable
 */
public record Route(
    boolean reachable, long hops, int pathKind, String host, String port, String reason) {}
