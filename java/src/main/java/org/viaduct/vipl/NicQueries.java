/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.viaduct.vipl.spi.Layout;
import org.viaduct.vipl.spi.NativeCalls;
import org.viaduct.vipl.spi.Natives;

/** Structures of C that tell something of a NIC, made into objects. */
final class NicQueries {
  private NicQueries() {}

  static NicAttributes attributes(long nic) {
    try (Scratch s = new Scratch(Layout.NIC_SIZE)) {
      int at = s.room(Layout.NIC_SIZE);
      Codes.check("VipQueryNic", Vipl.vipQueryNic(nic, s.address(at)), "the NIC");
      NativeCalls calls = Natives.calls();
      byte[] host = new byte[s.getShort(at + Layout.NIC_ADDR_LEN)];
      calls.view(s.getLong(at + Layout.NIC_ADDR), host.length).get(host);
      return new NicAttributes(
          s.textOf(at + Layout.NIC_NAME, 64),
          s.getLong(at + Layout.NIC_HARDWARE),
          s.getLong(at + Layout.NIC_PROVIDER),
          new NetAddress(host, new byte[0]),
          s.getShort(at + Layout.NIC_MAX_DISC),
          s.getLong(at + Layout.NIC_MAX_REG_BYTES),
          s.getLong(at + Layout.NIC_MAX_REG_REGIONS),
          s.getLong(at + Layout.NIC_MAX_REG_BLOCK),
          s.getLong(at + Layout.NIC_MAX_VI),
          s.getLong(at + Layout.NIC_MAX_DESCS),
          s.getLong(at + Layout.NIC_MAX_SEGS),
          s.getLong(at + Layout.NIC_MAX_CQ),
          s.getLong(at + Layout.NIC_MAX_CQ_ENTRIES),
          s.getLong(at + Layout.NIC_MAX_TRANSFER),
          s.getLong(at + Layout.NIC_MTU),
          s.getLong(at + Layout.NIC_MAX_PTAGS),
          s.getShort(at + Layout.NIC_LEVELS),
          s.getShort(at + Layout.NIC_READ_LEVELS));
    }
  }

  static List<NetAddress> discover(long nic, int hostBytes, int hops) {
    int size = Layout.ADDR_HOST + hostBytes + 7 & -8;
    for (int room = 64; ; room *= 2) {
      try (Scratch s = new Scratch(Layout.LIST_SIZE + room * (size + 8) + 16)) {
        int list = s.room(Layout.LIST_SIZE);
        int array = s.room(room * 8);
        int first = s.room(room * size);
        for (int i = 0; i < room; i++) {
          s.putLong(array + 8 * i, s.address(first + i * size));
        }
        s.putLong(list + Layout.LIST_HOPS, hops);
        s.putLong(list + Layout.LIST_ARRAY, s.address(array));
        s.putLong(list + Layout.LIST_COUNT, room);
        int code = Vipl.vipQuerySystemManagementInfo(nic, 1, s.address(list));
        long count = s.getLong(list + Layout.LIST_COUNT);
        if (code == VipConstants.VIP_ERROR_RESOURCE && count > room) {
          continue;
        }
        Codes.check("VipQuerySystemManagementInfo", code, hops + " hops");
        List<NetAddress> found = new ArrayList<>();
        for (int i = 0; i < count; i++) {
          s.putShort(first + i * size + Layout.ADDR_DISC_LEN, 0);
          found.add(Addresses.get(s, first + i * size));
        }
        return found;
      }
    }
  }

  static Route route(long nic, NetAddress address) {
    try (Scratch s = new Scratch(Addresses.room(address) + Layout.ROUTE_SIZE)) {
      int to = Addresses.put(s, address);
      int at = s.room(Layout.ROUTE_SIZE);
      s.putLong(at, Layout.ROUTE_SIZE);
      int code = Vipx.vipxQueryRoute(nic, s.address(to), s.address(at));
      Codes.check("VipxQueryRoute", code, address.toString());
      return new Route(
          s.getLong(at + Layout.ROUTE_REACHABLE) != 0,
          s.getLong(at + Layout.ROUTE_HOPS),
          (int) s.getLong(at + Layout.ROUTE_KIND),
          s.textOf(at + Layout.ROUTE_HOST, 64),
          s.textOf(at + Layout.ROUTE_PORT, 16),
          s.textOf(at + Layout.ROUTE_REASON, 160));
    }
  }

  static Counters counters(long nic, long vi) {
    try (Scratch s = new Scratch(Layout.COUNTERS_SIZE)) {
      int at = s.room(Layout.COUNTERS_SIZE);
      s.putLong(at, Layout.COUNTERS_SIZE);
      Codes.check("VipxQueryCounters", Vipx.vipxQueryCounters(nic, vi, s.address(at)), "counters");
      long[] v = new long[20];
      for (int i = 0; i < v.length; i++) {
        v[i] = s.getLong(at + Layout.COUNTERS_FIRST + 8 * i);
      }
      return new Counters(
          v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13],
          v[14], v[15], v[16], v[17], v[18], v[19]);
    }
  }

  static Placement placement(long nic, int role) {
    try (Scratch s = new Scratch(Layout.PLACE_SIZE)) {
      int at = s.room(Layout.PLACE_SIZE);
      s.putLong(at, Layout.PLACE_SIZE);
      int code = Vipx.vipxQueryPlacement(nic, role, s.address(at));
      Codes.check("VipxQueryPlacement", code, "role " + role);
      return new Placement(
          (int) s.getLong(at + Layout.PLACE_ASKED),
          (int) s.getLong(at + Layout.PLACE_GOT),
          s.getLong(at + Layout.PLACE_AS_ASKED) != 0,
          s.textOf(at + Layout.PLACE_CPUS, 128),
          s.textOf(at + Layout.PLACE_TEXT, 200),
          s.textOf(at + Layout.PLACE_WARNING, 200));
    }
  }

  /** The error descriptor of C, which is valid only now. */
  static AsyncError error(Nic nic, long address) {
    ByteBuffer view =
        Natives.calls().view(address, Layout.ERR_SIZE).order(ByteOrder.nativeOrder());
    return new AsyncError(
        nic.viOf(view.getLong(Layout.ERR_VI)),
        view.getLong(Layout.ERR_DESC),
        (int) view.getLong(Layout.ERR_OP),
        view.getInt(Layout.ERR_RESOURCE),
        view.getInt(Layout.ERR_CODE));
  }
}
