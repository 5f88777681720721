/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.systems;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The counters of the channels of org.viaduct.nio in this process. */
final class Counts {
  /** Names of counters in the file, as vi_run writes them, and those of the provider's record. */
  private static final String[][] NAMES = {
    {"vi_bytes_sent", "viBytesSent"},
    {"vi_bytes_received", "viBytesReceived"},
    {"tcp_bytes_sent", "tcpBytesSent"},
    {"promotions", "promotions"},
    {"resets", "resets"},
  };

  private Counts() {
  }

  /**
   * Writes the counters to the file that the property {@code systems.counts} names, if it is set.
   */
  static void write() throws ReflectiveOperationException, IOException {
    String file = System.getProperty("systems.counts");
    if (file == null) {
      return;
    }
    Class<?> provider = Class.forName("org.viaduct.nio.ViaductSelectorProvider");
    Object all = provider.getMethod("statistics").invoke(null);
    StringBuilder text = new StringBuilder();
    for (String[] name : NAMES) {
      text.append(text.length() == 0 ? "" : ", ").append('"').append(name[0]).append("\": ")
          .append(all.getClass().getMethod(name[1]).invoke(all));
    }
    Files.writeString(Path.of(file), "{\"all\": {" + text + "}}");
  }
}
