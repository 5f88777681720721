/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.nio.ByteBuffer;
import java.nio.channels.Channel;
import java.nio.channels.Selector;
import java.nio.channels.spi.SelectorProvider;

/** The calls of C: streams of sockets, and the part of a selector that concerns them. */
final class NioCalls {
  /** Events of streams, as those of poll(). */
  static final int IN = 0x1;

  static final int OUT = 0x4;
  static final int ERR = 0x8;
  static final int HUP = 0x10;

  static final int EBADF = 9;
  static final int EAGAIN = 11;
  static final int EPIPE = 32;
  static final int ENOTCONN = 107;
  static final int ECONNRESET = 104;
  static final int ETIMEDOUT = 110;

  static final int SHUT_RD = 0;
  static final int SHUT_WR = 1;

  /** The most pairs that one look gives. */
  static final int NEWS_MOST = 64;

  /** A selector that is about to sleep: it must not, for a short time only, or as long as asked. */
  static final int SLEEP_NOT = 0;

  static final int SLEEP_SHORT = 1;
  static final int SLEEP_LONG = 2;

  private NioCalls() {}

  static native String begin(String rules, String map);

  static native int streamVersion();

  static native int boundAddress();

  static native void statistics(long[] out);

  static native long address(ByteBuffer direct);

  /** As address(); 0 for memory of an arena, which may be closed at any time. */
  static native long place(ByteBuffer direct);

  static native SelectorProvider jdkProvider();

  static native int descriptorOf(Channel channel);

  static native int epollOf(Selector selector);

  static native long create(int fd, boolean accepted);

  static native void settle(long stream);

  static native int receive(long stream, long address, int count);

  static native int send(long stream, long address, int count);

  static native int sleep(long stream, int events, long ns);

  static native long readable(long stream);

  static native int shutdown(long stream, int how);

  static native int demote(long stream);

  static native String errorText(int errno);

  static native void close(long stream, boolean blocking);

  static native void free(long stream);

  static native long setOpen(int epollFd);

  static native void setClose(long set);

  static native int setAdd(long set, long stream);

  static native void setRemove(long set, int slot);

  static native void setInterest(long set, int slot, int events);

  static native int setLook(long set, int[] out, boolean spin);

  static native int setSleep(long set, boolean registered);

  static native void setAwake(long set);
}
