/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A host address and a discriminator, which names a listener on that host. */
public final class NetAddress {
  private static final byte[] NONE = {};

  private final byte[] host;
  private final byte[] discriminator;

  /**
   * Makes an address; the arrays are copied.
   *
   * @param host bytes of the host address
   * @param discriminator bytes of the discriminator, may be empty
   */
  public NetAddress(byte[] host, byte[] discriminator) {
    this.host = host.clone();
    this.discriminator = discriminator.clone();
    if (host.length > 0xFFFF || discriminator.length > 0xFFFF) {
      throw new VipArgumentException(
          "NetAddress",
          VipConstants.VIP_INVALID_PARAMETER,
          "host of " + host.length + " and discriminator of " + discriminator.length + " bytes",
          "Use no more than NicAttributes says");
    }
  }

  /**
   * The host of this address with another discriminator.
   *
   * @param bytes the discriminator
   * @return a new address
   */
  public NetAddress with(byte... bytes) {
    return new NetAddress(host, bytes);
  }

  /**
   * The host of this address with a text as its discriminator, in UTF-8.
   *
   * @param text the discriminator
   * @return a new address
   */
  public NetAddress with(String text) {
    return new NetAddress(host, text.getBytes(StandardCharsets.UTF_8));
  }

  /**
   * The host of this address without a discriminator.
   *
   * @return a new address
   */
  public NetAddress hostOnly() {
    return new NetAddress(host, NONE);
  }

  /**
   * Copies the host address.
   *
   * @return its bytes
   */
  public byte[] host() {
    return host.clone();
  }

  /**
   * Copies the discriminator.
   *
   * @return its bytes
   */
  public byte[] discriminator() {
    return discriminator.clone();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof NetAddress
        && Arrays.equals(host, ((NetAddress) other).host)
        && Arrays.equals(discriminator, ((NetAddress) other).discriminator);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(host) * 31 + Arrays.hashCode(discriminator);
  }

  @Override
  public String toString() {
    return hex(host) + "/" + hex(discriminator);
  }

  private static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (byte b : bytes) {
      text.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
    }
    return text.toString();
  }
}
