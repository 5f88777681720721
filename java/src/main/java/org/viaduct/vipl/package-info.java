/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * The Virtual Interface Provider Library for Java.
 *
 * <p>{@link org.viaduct.vipl.Nic} opens a NIC and makes all other objects. {@link
 * org.viaduct.vipl.DescriptorRing} posts and completes transfers without allocating. {@link
 * org.viaduct.vipl.Vipl} and {@link org.viaduct.vipl.Vipx} are the C functions themselves.
 */
package org.viaduct.vipl;
