/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.nio.channels.spi.SelectorProvider;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.viaduct.vipl.VipLibraryException;
import org.viaduct.vipl.spi.Loader;

/** Loads the library, reads the rule file, and finds the JDK's own provider; once. */
final class NioLibrary {
  /** A file of rules and of addresses of hosts. */
  static final String RULES_PROPERTY = "org.viaduct.nio.rules";

  private static final int STREAM_VERSION = 2;

  /** The JDK's. */
  static final SelectorProvider JDK;

  /** Whether streams can be made; not under vi_run, whose library serves all sockets. */
  static final boolean ACTIVE;

  static {
    Loader.loadJni("viaduct_nio", "libvistream.so.1", "libvipl.so.1");
    if (NioCalls.streamVersion() < STREAM_VERSION) {
      throw new VipLibraryException(
          "libvistream.so is of version " + NioCalls.streamVersion(),
          "Install one of version " + STREAM_VERSION + " or later");
    }
    JDK = NioCalls.jdkProvider();
    if (JDK == null) {
      throw new UnsupportedOperationException(
          "this JDK has no sun.nio.ch.DefaultSelectorProvider, on which org.viaduct.nio is built; "
              + "leave out -Djava.nio.channels.spi.SelectorProvider");
    }
    String problem = begin();
    if (problem != null && !problem.isEmpty()) {
      throw new IllegalArgumentException(problem);
    }
    ACTIVE = problem == null;
  }

  private NioLibrary() {}

  /** Each line is a rule, or the word map, an address and a host; # begins a comment. */
  private static String begin() {
    String name = System.getProperty(RULES_PROPERTY);
    List<String> rules = new ArrayList<>();
    List<String> map = new ArrayList<>();
    if (name != null) {
      try {
        for (String line : Files.readAllLines(Path.of(name))) {
          String text = line.replaceFirst("#.*", "").strip();
          if (text.startsWith("map ")) {
            map.add(text.substring("map ".length()).strip());
          } else if (!text.isEmpty()) {
            rules.add(text);
          }
        }
      } catch (IOException e) {
        return RULES_PROPERTY + ": " + name + " cannot be read: " + e;
      }
    }
    return NioCalls.begin(String.join(";", rules), String.join(";", map));
  }
}
