/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.io.IOException;
import java.nio.channels.spi.SelectorProvider;
import java.nio.file.Files;
import java.nio.file.Path;
import org.viaduct.vipl.spi.Natives;

/** Loads libraries and prints the outcome: loader_test.py runs it. */
public final class Probe {
  private Probe() {}

  /**
   * Prints the way of calling C, or the exception, twice; or, for each word of {@code vipl} and
   * {@code nio}, what was loaded, and then the number of copies of libvipl.
   *
   * @param args none, or those words
   * @throws IOException never
   */
  public static void main(String[] args) throws IOException {
    for (String what : args.length == 0 ? new String[] {"vipl", "vipl"} : args) {
      try {
        System.out.println("loaded " + loaded(what));
      } catch (VipLibraryException e) {
        System.out.println("refused " + e.getMessage());
      }
    }
    if (args.length > 0) {
      System.out.println("copies " + copies());
    }
  }

  private static String loaded(String what) throws IOException {
    if (what.equals("vipl")) {
      return Natives.calls().name();
    }
    SelectorProvider.provider().openSocketChannel().close();
    return SelectorProvider.provider().getClass().getSimpleName();
  }

  private static long copies() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/maps")).stream()
        .filter(line -> line.contains("libvipl.so"))
        .map(line -> line.split(" +")[4])
        .distinct()
        .count();
  }
}
