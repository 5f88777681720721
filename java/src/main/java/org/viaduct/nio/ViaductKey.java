/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.nio.channels.CancelledKeyException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.spi.AbstractSelectionKey;
import java.util.concurrent.atomic.AtomicBoolean;

/** A channel's registration; fields that are not said to be any thread's are the selector's. */
final class ViaductKey extends AbstractSelectionKey {
  private final ViaductSelector selector;
  private final SelectableChannel channel;

  /** The JDK's channel below, or the channel itself. */
  final SelectableChannel below;

  /** Whether it is in the selector's queue of changes; any thread's. */
  final AtomicBoolean queued = new AtomicBoolean();

  private volatile int interest;
  volatile int ready;
  int turn;
  int slot = -1;
  Stream stream;
  volatile SelectionKey inner;
  int innerOps;

  ViaductKey(ViaductSelector selector, SelectableChannel channel, SelectableChannel below) {
    this.selector = selector;
    this.channel = channel;
    this.below = below;
  }

  @Override
  public SelectableChannel channel() {
    return channel;
  }

  /**
   * The selector. cancel(), which is final, asks for it as soon as the key is no longer valid: then
   * the key below is cancelled too, which would keep a channel of the JDK from blocking again.
   */
  @Override
  public Selector selector() {
    releaseInner();
    return selector;
  }

  private void check() {
    if (!isValid()) {
      throw new CancelledKeyException();
    }
  }

  @Override
  public int interestOps() {
    check();
    return interest;
  }

  /** Those asked for last, of a cancelled key too. */
  int asked() {
    return interest;
  }

  @Override
  public SelectionKey interestOps(int ops) {
    check();
    if ((ops & ~channel.validOps()) != 0) {
      throw new IllegalArgumentException();
    }
    if (interest != ops) {
      interest = ops;
      selector.changed(this);
    }
    return this;
  }

  @Override
  public int readyOps() {
    check();
    return ready;
  }

  /** By the thread that connected the channel: the selector looks at its stream from now on. */
  void streamMade() {
    selector.changed(this);
    selector.lookAgain();
  }

  /** A cancelled key must not prevent that the channel blocks again. */
  void releaseInner() {
    SelectionKey key = inner;
    if (key != null && !isValid()) {
      key.cancel();
    }
  }
}
