/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.viaduct.vipl.spi.Natives;

/** Native memory for the structures of one call that is not on the path of a message. */
final class Scratch implements AutoCloseable {
  private static final int ALIGNMENT = 8;

  private final ByteBuffer memory;
  private final long base;
  private int used;

  Scratch(int bytes) {
    memory = ByteBuffer.allocateDirect(bytes + ALIGNMENT).order(ByteOrder.nativeOrder());
    base = Natives.calls().addressOf(memory);
    used = (int) (-base & ALIGNMENT - 1);
  }

  /** Room for a structure: its place for the calls of this class. */
  int room(int bytes) {
    int at = used;
    used = Math.addExact(at, bytes + ALIGNMENT - 1 & -ALIGNMENT);
    if (used > memory.capacity()) {
      throw new IllegalStateException("scratch memory of " + memory.capacity() + " bytes");
    }
    return at;
  }

  /** The place of a text with a zero byte at its end. */
  int text(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    int at = room(bytes.length + 1);
    memory.put(at, bytes);
    memory.put(at + bytes.length, (byte) 0);
    return at;
  }

  /** The bytes of room that a text needs. */
  static int sizeOf(String text) {
    return text.getBytes(StandardCharsets.UTF_8).length + 1 + ALIGNMENT;
  }

  long address(int at) {
    return base + at;
  }

  byte[] bytes(int at, int length) {
    byte[] copy = new byte[length];
    memory.get(at, copy);
    return copy;
  }

  /** The text of a fixed field, up to a zero byte. */
  String textOf(int at, int length) {
    byte[] copy = bytes(at, length);
    int end = 0;
    while (end < length && copy[end] != 0) {
      end++;
    }
    return new String(copy, 0, end, StandardCharsets.UTF_8);
  }

  void bytes(int at, byte[] from) {
    memory.put(at, from);
  }

  long getLong(int at) {
    return memory.getLong(at);
  }

  int getInt(int at) {
    return memory.getInt(at);
  }

  int getShort(int at) {
    return memory.getShort(at) & 0xFFFF;
  }

  void putLong(int at, long value) {
    memory.putLong(at, value);
  }

  void putInt(int at, int value) {
    memory.putInt(at, value);
  }

  void putShort(int at, int value) {
    memory.putShort(at, (short) value);
  }

  /** Keeps the memory until here. */
  @Override
  public void close() {
    Reference.reachabilityFence(memory);
  }
}
