/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import org.viaduct.vipl.spi.Layout;

/** Addresses as C has them. */
final class Addresses {
  private Addresses() {}

  static int room(NetAddress address) {
    return Layout.ADDR_HOST + address.host().length + address.discriminator().length + 8;
  }

  static int put(Scratch s, NetAddress address) {
    byte[] host = address.host();
    byte[] discriminator = address.discriminator();
    int at = s.room(Layout.ADDR_HOST + host.length + discriminator.length);
    s.putShort(at + Layout.ADDR_HOST_LEN, host.length);
    s.putShort(at + Layout.ADDR_DISC_LEN, discriminator.length);
    s.bytes(at + Layout.ADDR_HOST, host);
    s.bytes(at + Layout.ADDR_HOST + host.length, discriminator);
    return at;
  }

  static NetAddress get(Scratch s, int at) {
    int host = s.getShort(at + Layout.ADDR_HOST_LEN);
    int discriminator = s.getShort(at + Layout.ADDR_DISC_LEN);
    return new NetAddress(
        s.bytes(at + Layout.ADDR_HOST, host),
        s.bytes(at + Layout.ADDR_HOST + host, discriminator));
  }
}
