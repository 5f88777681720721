/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.channel;

import java.util.ArrayDeque;
import java.util.Deque;
import org.viaduct.vipl.Memory;
import org.viaduct.vipl.Vi;

/** Objects that a constructor has opened so far: closed, the last first, if it fails. */
final class Opened implements AutoCloseable {
  private final Deque<Runnable> ends = new ArrayDeque<>();

  Memory add(Memory memory) {
    ends.push(memory::close);
    return memory;
  }

  Vi add(Vi vi) {
    ends.push(vi::close);
    return vi;
  }

  /** All is well. */
  void keep() {
    ends.clear();
  }

  @Override
  public void close() {
    while (!ends.isEmpty()) {
      ends.pop().run();
    }
  }
}
