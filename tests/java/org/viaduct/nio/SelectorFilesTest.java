/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.channels.Selector;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads that get no descriptor. */
@Timeout(NioPair.PATIENCE_S)
class SelectorFilesTest {
  /**
   * Lowers the limit of open files below the number of open ones; the process restores it at its
   * end.
   */
  private static Process limit() throws IOException {
    String script =
        "limit=$(prlimit --pid $0 --nofile --noheadings --raw --output SOFT) || exit 1; "
            + "prlimit --pid $0 --nofile=3: && echo; read x; prlimit --pid $0 --nofile=$limit:";
    String me = Long.toString(ProcessHandle.current().pid());
    Process shell = new ProcessBuilder("sh", "-c", script, me).start();
    assertEquals('\n', shell.getInputStream().read());
    return shell;
  }

  @Test
  void aThreadThatGetsNoDescriptorSleepsForShortTimes() throws Exception {
    try (Selector selector = NioLibrary.JDK.openSelector()) {
      long set = NioCalls.setOpen(NioCalls.epollOf(selector));
      Process shell = limit();
      int how;
      try {
        how =
            NioPair.end(
                NioPair.begin(
                    () -> {
                      int sleep = NioCalls.setSleep(set, true);
                      NioCalls.setAwake(set);
                      return sleep;
                    }));
      } finally {
        shell.getOutputStream().close();
        shell.waitFor();
      }
      assertEquals(NioCalls.SLEEP_SHORT, how);
      assertEquals(NioCalls.SLEEP_LONG, NioCalls.setSleep(set, true));
      NioCalls.setAwake(set);
      NioCalls.setClose(set);
    }
  }
}
