/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import static java.nio.channels.SelectionKey.OP_READ;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.Closeable;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.Pipe;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.FutureTask;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Keys that other threads cancel, and selectors that they close. */
@Timeout(NioPair.PATIENCE_S)
class SelectorKeysTest {
  private static final InetSocketAddress ANY =
      new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);

  /** Selects in a new thread; returns when that is asleep in the kernel. */
  private static FutureTask<Integer> asleepIn(Selector selector) throws Exception {
    Thread[] thread = new Thread[1];
    FutureTask<Integer> there =
        NioPair.begin(
            () -> {
              synchronized (thread) {
                thread[0] = Thread.currentThread();
              }
              return selector.select();
            });
    while (!sleeps(thread)) {
      Thread.sleep(1);
    }
    return there;
  }

  private static boolean sleeps(Thread[] thread) {
    synchronized (thread) {
      StackTraceElement[] at = thread[0] == null ? null : thread[0].getStackTrace();
      return at != null && at.length > 0 && at[0].getClassName().equals("sun.nio.ch.EPoll");
    }
  }

  private static void untilEmpty(Set<SelectionKey> keys) throws Exception {
    while (!keys.isEmpty()) {
      Thread.sleep(1);
    }
  }

  /** More keys than one call of NioCalls.setLook() can report. */
  @Test
  void manyKeysCancelledDuringASelection() throws Exception {
    Selector selector = Selector.open();
    List<Closeable> peers = new ArrayList<>();
    List<SelectionKey> keys = new ArrayList<>();
    try (ServerSocket listener = new ServerSocket()) {
      listener.bind(ANY);
      for (int i = 0; i < NioCalls.NEWS_MOST + 6; i++) {
        SocketChannel c = SocketChannel.open(listener.getLocalSocketAddress());
        peers.add(listener.accept());
        c.configureBlocking(false);
        keys.add(c.register(selector, OP_READ));
      }
      final FutureTask<Integer> there = asleepIn(selector);
      for (SelectionKey key : keys) {
        key.cancel();
        key.channel().close();
      }
      selector.wakeup();
      assertEquals(0, NioPair.end(there));
      assertEquals(Set.of(), selector.keys());
      for (Closeable peer : peers) {
        peer.close();
      }
    }
    selector.close(); // would wait for ever if the selection had not ended
  }

  @Test
  void aKeyCancelledDuringASelectionIsForgottenThere() throws Exception {
    Selector selector = Selector.open();
    Pipe pipe = Pipe.open();
    pipe.source().configureBlocking(false);
    SelectionKey key = pipe.source().register(selector, OP_READ);
    FutureTask<Integer> there = asleepIn(selector);
    key.cancel();
    pipe.sink().write(ByteBuffer.allocate(1));
    untilEmpty(selector.keys());
    selector.wakeup();
    assertEquals(0, NioPair.end(there));
    pipe.source().close();
    pipe.sink().close();
    selector.close();
  }

  @Test
  void aKeyCancelledBetweenEventAndAnswer() throws Exception {
    try (Selector selector = Selector.open();
        SocketChannel c = SocketChannel.open()) {
      c.configureBlocking(false);
      SelectionKey key = c.register(selector, OP_READ);
      SelectionKey below = new CancelledLate();
      below.attach(key);
      ((ViaductSelector) selector).innerTold(below);
      assertEquals(Set.of(), selector.selectedKeys());
    }
  }

  /** A key that is cancelled just after isValid() returned true. */
  private static final class CancelledLate extends SelectionKey {
    @Override
    public SocketChannel channel() {
      return null;
    }

    @Override
    public Selector selector() {
      return null;
    }

    @Override
    public boolean isValid() {
      return true;
    }

    @Override
    public void cancel() {}

    @Override
    public int interestOps() {
      throw new CancelledKeyException();
    }

    @Override
    public SelectionKey interestOps(int ops) {
      throw new CancelledKeyException();
    }

    @Override
    public int readyOps() {
      throw new CancelledKeyException();
    }
  }

  @Test
  void closeEndsASelectionAsWakeupDoes() throws Exception {
    Selector selector = Selector.open();
    try (NioPair pair = new NioPair()) {
      pair.server.configureBlocking(false);
      pair.server.register(selector, OP_READ);
      FutureTask<Integer> there = asleepIn(selector);
      selector.close();
      assertEquals(0, NioPair.end(there));
      assertThrows(ClosedSelectorException.class, selector::select);
      assertFalse(pair.server.isRegistered());
    }
  }

  @Test
  void aPipeMayBlockAgainOnceItsKeyIsCancelled() throws Exception {
    Pipe pipe = Pipe.open();
    try (Pipe.SourceChannel source = pipe.source();
        Pipe.SinkChannel sink = pipe.sink();
        Selector selector = Selector.open()) {
      for (int i = 0; i < 3; i++) {
        source.configureBlocking(false);
        SelectionKey key = source.register(selector, OP_READ);
        sink.write(ByteBuffer.allocate(1));
        assertEquals(1, selector.select());
        key.cancel();
        source.configureBlocking(true);
        assertEquals(1, source.read(ByteBuffer.allocate(2)));
        assertEquals(0, selector.selectNow());
      }
    }
  }

  @Test
  void noSelectionWithinAnAction() throws Exception {
    Pipe pipe = Pipe.open();
    try (Pipe.SourceChannel source = pipe.source();
        Pipe.SinkChannel sink = pipe.sink();
        Selector selector = Selector.open()) {
      source.configureBlocking(false);
      source.register(selector, OP_READ);
      sink.write(ByteBuffer.allocate(1));
      Consumer<SelectionKey> selects =
          key -> assertThrows(IllegalStateException.class, selector::selectNow);
      assertEquals(1, selector.select(selects));
      assertEquals(1, selector.selectNow(selects));
      assertEquals(1, selector.selectNow());
      assertThrows(NullPointerException.class, () -> selector.select(null));
      assertThrows(IllegalArgumentException.class, () -> selector.select(selects, -1));
    }
  }
}
