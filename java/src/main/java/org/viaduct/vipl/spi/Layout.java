/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/**
 * Offsets and sizes of the structures of C, in bytes. A C program prints them when the library is
 * built, and the binding compares them when it is loaded.
 */
public final class Layout {
  /** Counts the changes of the functions between Java and its library. */
  public static final int BINDING = 1;

  public static final int DESC_NEXT = 0;
  public static final int DESC_NEXT_HANDLE = 8;
  public static final int DESC_SEG_COUNT = 12;
  public static final int DESC_CONTROL = 14;
  public static final int DESC_RESERVED = 16;
  public static final int DESC_IMMEDIATE = 20;
  public static final int DESC_LENGTH = 24;
  public static final int DESC_STATUS = 28;
  public static final int DESC_SEGMENTS = 32;
  public static final int DESC_SIZE = 64;
  public static final int SEG_DATA = 0;
  public static final int SEG_HANDLE = 8;
  public static final int SEG_LENGTH = 12;
  public static final int SEG_SIZE = 16;
  public static final int ATOMIC_OPERAND = 48;
  public static final int ATOMIC_COMPARE = 56;
  public static final int ATOMIC_RESULT = 64;
  public static final int ATOMIC_SIZE = 128;
  public static final int ADDR_HOST_LEN = 0;
  public static final int ADDR_DISC_LEN = 2;
  public static final int ADDR_HOST = 4;
  public static final int NIC_NAME = 0;
  public static final int NIC_HARDWARE = 64;
  public static final int NIC_PROVIDER = 72;
  public static final int NIC_ADDR_LEN = 80;
  public static final int NIC_ADDR = 88;
  public static final int NIC_THREAD_SAFE = 96;
  public static final int NIC_MAX_DISC = 100;
  public static final int NIC_MAX_REG_BYTES = 104;
  public static final int NIC_MAX_REG_REGIONS = 112;
  public static final int NIC_MAX_REG_BLOCK = 120;
  public static final int NIC_MAX_VI = 128;
  public static final int NIC_MAX_DESCS = 136;
  public static final int NIC_MAX_SEGS = 144;
  public static final int NIC_MAX_CQ = 152;
  public static final int NIC_MAX_CQ_ENTRIES = 160;
  public static final int NIC_MAX_TRANSFER = 168;
  public static final int NIC_MTU = 176;
  public static final int NIC_MAX_PTAGS = 184;
  public static final int NIC_LEVELS = 192;
  public static final int NIC_READ_LEVELS = 194;
  public static final int NIC_SIZE = 200;
  public static final int VI_LEVEL = 0;
  public static final int VI_MAX_TRANSFER = 8;
  public static final int VI_QOS = 16;
  public static final int VI_PTAG = 24;
  public static final int VI_WRITE = 32;
  public static final int VI_READ = 36;
  public static final int VI_SIZE = 40;
  public static final int MEM_PTAG = 0;
  public static final int MEM_WRITE = 8;
  public static final int MEM_READ = 12;
  public static final int MEM_SIZE = 16;
  public static final int ERR_NIC = 0;
  public static final int ERR_VI = 8;
  public static final int ERR_CQ = 16;
  public static final int ERR_DESC = 24;
  public static final int ERR_OP = 32;
  public static final int ERR_RESOURCE = 40;
  public static final int ERR_CODE = 44;
  public static final int ERR_SIZE = 48;
  public static final int LIST_HOPS = 0;
  public static final int LIST_ARRAY = 8;
  public static final int LIST_COUNT = 16;
  public static final int LIST_SIZE = 24;
  public static final int ROUTE_REACHABLE = 8;
  public static final int ROUTE_HOPS = 16;
  public static final int ROUTE_KIND = 24;
  public static final int ROUTE_HOST = 32;
  public static final int ROUTE_PORT = 96;
  public static final int ROUTE_REASON = 112;
  public static final int ROUTE_SIZE = 272;
  public static final int COUNTERS_FIRST = 8;
  public static final int COUNTERS_SIZE = 168;
  public static final int COMP_VI = 8;
  public static final int COMP_CONTEXT = 16;
  public static final int COMP_DESC = 24;
  public static final int COMP_RECV = 32;
  public static final int COMP_STATUS = 36;
  public static final int COMP_LENGTH = 40;
  public static final int COMP_SIZE = 48;
  public static final int PLACE_ASKED = 8;
  public static final int PLACE_GOT = 16;
  public static final int PLACE_AS_ASKED = 24;
  public static final int PLACE_CPUS = 32;
  public static final int PLACE_TEXT = 160;
  public static final int PLACE_WARNING = 360;
  public static final int PLACE_SIZE = 560;

  private static final String TABLE = "layout.txt";

  private Layout() {}

  /** The table that the C program printed when this jar was built; null if the jar has none. */
  static String built() throws IOException {
    try (InputStream in = Layout.class.getResourceAsStream(TABLE)) {
      if (in == null) {
        return null;
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  /** Compares the constants with a table of lines "NAME value": null, or what differs. */
  static String difference(String table) {
    Map<String, String> theirs = new TreeMap<>();
    for (String line : table.split("\n")) {
      String[] words = line.split(" ");
      if (words.length == 2) {
        theirs.put(words[0], words[1]);
      }
    }
    for (Map.Entry<String, Integer> ours : constants().entrySet()) {
      String value = theirs.remove(ours.getKey());
      if (!String.valueOf(ours.getValue()).equals(value)) {
        return ours.getKey() + " is " + value + " in C and " + ours.getValue() + " here";
      }
    }
    return theirs.isEmpty() ? null : theirs.keySet().iterator().next() + " is unknown here";
  }

  private static Map<String, Integer> constants() {
    Map<String, Integer> found = new TreeMap<>();
    for (Field field : Layout.class.getDeclaredFields()) {
      if (field.getType() == int.class) {
        try {
          found.put(field.getName(), field.getInt(null));
        } catch (IllegalAccessException e) {
          throw new LinkageError(field.getName(), e);
        }
      }
    }
    return found;
  }
}
