/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedChannelException;

/** Bytes between buffers and the stream of a channel, under the channel's locks. */
final class Transfer {
  /** As many take part in a read at most. */
  private static final int BUFFERS_MOST = 1024;

  private final ViaductSocketChannel channel;

  /** For a write: where the next byte of each buffer lies. */
  private int[] at = new int[1];

  Transfer(ViaductSocketChannel channel) {
    this.channel = channel;
  }

  int receive(Stream s, ByteBuffer[] all, int from, int end, long ns) throws IOException {
    if (channel.isReset()) {
      throw Stream.failure(-NioCalls.ECONNRESET);
    }
    if (channel.isInputShut()) {
      return -1;
    }
    long room = 0;
    int first = end;
    for (int i = end - 1; i >= from; i--) {
      if (all[i].isReadOnly()) {
        throw new IllegalArgumentException("Read-only buffer");
      }
      room += all[i].remaining();
      first = all[i].hasRemaining() ? i : first;
    }
    if (room == 0) {
      return 0;
    }
    s.settle();
    int last = Math.min(end, first + BUFFERS_MOST);
    int rc =
        channel.isBlocking() ? await(s, all, first, last, ns) : take(s, all, first, last);
    if (rc > 0) {
      return rc;
    }
    if (rc == 0 || channel.isInputShut()) {
      return -1;
    }
    if (rc == -NioCalls.EAGAIN) {
      return 0;
    }
    throw failed(rc);
  }

  /** Takes bytes, or sleeps until some are there, for a time in ns; -1: without end. */
  private int await(Stream s, ByteBuffer[] all, int first, int last, long ns)
      throws IOException {
    long until = ns < 0 ? 0 : System.nanoTime() + ns;
    int rc = -NioCalls.EAGAIN;
    channel.beginCall();
    try {
      rc = take(s, all, first, last);
      while (rc == -NioCalls.EAGAIN && channel.isOpen() && !channel.isInputShut()) {
        long left = ns < 0 ? -1 : until - System.nanoTime();
        if (ns >= 0 && left <= 0) {
          throw new SocketTimeoutException("Read timed out");
        }
        int slept = s.sleep(NioCalls.IN, left);
        if (noSleep(slept)) {
          throw failed(slept);
        }
        rc = take(s, all, first, last);
      }
    } finally {
      channel.endCall(rc >= 0 || channel.isInputShut());
    }
    return rc;
  }

  /** Whether a thread could not sleep at all, as for want of a descriptor. */
  private static boolean noSleep(int slept) {
    return slept < 0 && slept != -NioCalls.EAGAIN && slept != -NioCalls.EBADF;
  }

  /** Takes bytes that are there: how many, 0 at the end, or a negative errno. */
  private int take(Stream s, ByteBuffer[] all, int first, int last) {
    ByteBuffer b = all[first];
    long place = Pieces.place(b, b.remaining());
    if (place != 0) {
      int n = s.receive(place + b.position(), b.remaining());
      b.position(b.position() + Math.max(0, n));
      return n;
    }
    int room = Pieces.room(all, first, last);
    Pieces.Piece piece = Pieces.take();
    try {
      int n = s.receive(piece.address, room);
      Pieces.scatter(piece, all, first, n);
      return n;
    } finally {
      Pieces.give(piece);
    }
  }

  private IOException failed(int rc) {
    if (!channel.isOpen() || rc == -NioCalls.EBADF) {
      return new ClosedChannelException();
    }
    if (rc == -NioCalls.ECONNRESET) {
      channel.setReset();
    }
    return Stream.failure(rc);
  }

  long send(Stream s, ByteBuffer[] all, int from, int end) throws IOException {
    if (channel.isOutputShut()) {
      throw new AsynchronousCloseException();
    }
    s.settle();
    if (!channel.isBlocking()) {
      return sendAll(s, all, from, end, false);
    }
    long sent = 0;
    channel.beginCall();
    try {
      sent = sendAll(s, all, from, end, true);
    } finally {
      channel.endCall(sent > 0 || channel.isOpen());
    }
    return sent;
  }

  private long sendAll(Stream s, ByteBuffer[] all, int from, int end, boolean blocking)
      throws IOException {
    long left = noteStarts(all, from, end);
    long done = 0;
    int first = from;
    while (left > 0) {
      while (at[first] == all[first].limit()) {
        first++;
      }
      int want = all[first].limit() - at[first];
      int rc;
      long place = Pieces.place(all[first], want);
      if (place != 0) {
        rc = s.send(place + at[first], want);
      } else {
        Pieces.Piece piece = Pieces.take();
        try {
          want = Pieces.gather(piece, all, at, first, end);
          rc = s.send(piece.address, want);
        } finally {
          Pieces.give(piece);
        }
      }
      if (rc > 0) {
        Pieces.advance(all, at, first, rc);
        done += rc;
        left -= rc;
      }
      if (rc < want) {
        int why = blocking ? awaitRoom(s, rc) : rc;
        if (!blocking || why != 0) {
          return sentOrFailed(done, why);
        }
      }
    }
    return done;
  }

  /** Notes where each buffer's bytes begin, and tells how many there are. */
  private long noteStarts(ByteBuffer[] all, int from, int end) {
    if (at.length < end) {
      at = new int[end];
    }
    for (int i = from; i < end; i++) {
      at[i] = all[i].position();
    }
    return Pieces.remaining(all, from, end);
  }

  /** After a send that took less than it could: 0, a blocking call goes on; else why not. */
  private int awaitRoom(Stream s, int rc) {
    if (rc < 0 && rc != -NioCalls.EAGAIN) {
      return rc;
    }
    int slept = channel.isOpen() ? s.sleep(NioCalls.OUT, -1) : -NioCalls.EBADF;
    if (noSleep(slept)) {
      return slept;
    }
    return channel.isOpen() ? 0 : -NioCalls.EAGAIN;
  }

  private long sentOrFailed(long done, int rc) throws IOException {
    if (done == 0 && channel.isOutputShut()) {
      throw new AsynchronousCloseException();
    }
    if (done > 0 || rc >= 0 || rc == -NioCalls.EAGAIN) {
      return done;
    }
    IOException e = failed(rc);
    throw e instanceof SocketException ? new IOException(NioCalls.errorText(-rc)) : e;
  }
}
