/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** Memory outside the heap that bytes pass through; a few pieces are kept. */
final class Pieces {
  static final int BYTES = 64 << 10;

  /** From here on a direct buffer is used where it lies, unless it is an arena's. */
  static final int DIRECT_FROM = 8 << 10;

  private static final int KEPT = 16;
  private static final AtomicReferenceArray<Piece> FREE = new AtomicReferenceArray<>(KEPT);

  private Pieces() {}

  /** One of them. */
  static final class Piece {
    final ByteBuffer bytes = ByteBuffer.allocateDirect(BYTES);
    final long address = NioCalls.address(bytes);
  }

  /** Where the bytes of a direct buffer can be used; 0: they pass through a piece. */
  static long place(ByteBuffer b, int bytes) {
    return bytes >= DIRECT_FROM && b.isDirect() ? NioCalls.place(b) : 0;
  }

  static Piece take() {
    int at = (int) Thread.currentThread().getId() & (KEPT - 1);
    Piece piece = FREE.getAndSet(at, null);
    return piece != null ? piece : new Piece();
  }

  static void give(Piece piece) {
    FREE.lazySet((int) Thread.currentThread().getId() & (KEPT - 1), piece);
  }

  /** Copies the bytes of buffers from the given positions on, as far as there is room. */
  static int gather(Piece piece, ByteBuffer[] all, int[] at, int from, int end) {
    int n = 0;
    for (int i = from; i < end && n < BYTES; i++) {
      int more = Math.min(all[i].limit() - at[i], BYTES - n);
      piece.bytes.put(n, all[i], at[i], more);
      n += more;
    }
    return n;
  }

  /**
   * Moves the positions of buffers whose first bytes were sent. Each place in the array has its
   * own, as a buffer may be there twice and is sent twice then.
   */
  static void advance(ByteBuffer[] all, int[] at, int from, int bytes) {
    int left = bytes;
    for (int i = from; left > 0; i++) {
      int some = Math.min(all[i].limit() - at[i], left);
      at[i] += some;
      all[i].position(at[i]);
      left -= some;
    }
  }

  /** How much the buffers can take, up to a piece; one that is there twice counts once. */
  static int room(ByteBuffer[] all, int from, int end) {
    int n = 0;
    for (int i = from; i < end && n < BYTES; i++) {
      boolean again = false;
      for (int k = from; k < i && !again; k++) {
        again = all[k] == all[i];
      }
      n += again || !usable(all[i]) ? 0 : Math.min(all[i].remaining(), BYTES - n);
    }
    return n;
  }

  /** Whether there is room. Throws if the memory's arena is closed, or another thread's. */
  private static boolean usable(ByteBuffer b) {
    if (!b.hasRemaining()) {
      return false;
    }
    if (b.isDirect()) {
      b.get(b.position());
    }
    return true;
  }

  static void scatter(Piece piece, ByteBuffer[] all, int from, int bytes) {
    int done = 0;
    for (int i = from; done < bytes; i++) {
      ByteBuffer b = all[i];
      int some = Math.min(b.remaining(), bytes - done);
      b.put(b.position(), piece.bytes, done, some);
      b.position(b.position() + some);
      done += some;
    }
  }

  static long remaining(ByteBuffer[] all, int from, int end) {
    long n = 0;
    for (int i = from; i < end; i++) {
      n += all[i].remaining();
    }
    return n;
  }
}
