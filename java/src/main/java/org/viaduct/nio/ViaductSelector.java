/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.IllegalBlockingModeException;
import java.nio.channels.IllegalSelectorException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.spi.AbstractSelectableChannel;
import java.nio.channels.spi.AbstractSelectionKey;
import java.nio.channels.spi.AbstractSelector;
import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import org.viaduct.vipl.spi.Threads;

/**
 * Selects from channels with a stream and all others: the JDK's selector tells of what is on TCP,
 * and sleeps; a set of C has the streams, whose descriptors it adds to the JDK's epoll set.
 */
final class ViaductSelector extends AbstractSelector {
  /** So many calls that found something may pass before the JDK's selector is asked. */
  private static final int PATIENCE = 16;

  /** A thread that cannot be woken by what changes the path of a stream looks again: a virtual one,
   * and any where no descriptor is left. */
  private static final long SLICE_MS = 20;

  private final ViaductSelectorProvider owner;
  private final Selector inner;
  private final long set;
  private final Set<SelectionKey> keys = ConcurrentHashMap.newKeySet();
  private final Set<SelectionKey> publicKeys = Collections.unmodifiableSet(keys);
  private final Selected selected = new Selected();
  private final Queue<ViaductKey> changes = new ConcurrentLinkedQueue<>();
  private final int[] news = new int[2 * NioCalls.NEWS_MOST];
  private ViaductKey[] slots = new ViaductKey[8];
  private boolean hadStreams;
  private boolean innerHasCancelled;
  private volatile boolean woken;
  private int turn;
  private int updated;
  private boolean found;

  /** Whether the holder of the monitor is within the action of a select(Consumer). */
  private boolean acting;

  ViaductSelector(ViaductSelectorProvider provider) throws IOException {
    super(provider);
    owner = provider;
    inner = provider.jdk().openSelector();
    int epoll = NioCalls.epollOf(inner);
    set = epoll < 0 ? 0 : NioCalls.setOpen(epoll);
    if (set == 0) {
      inner.close();
      if (epoll < 0) {
        throw new UnsupportedOperationException(
            "the selectors of this JDK are not those of sun.nio.ch.EPollSelectorImpl, on which "
                + "org.viaduct.nio is built");
      }
      throw new IOException("no memory or no descriptor is left for a selector");
    }
  }

  // ---- keys

  @Override
  protected SelectionKey register(AbstractSelectableChannel ch, int ops, Object attachment) {
    SelectableChannel below;
    if (ch instanceof ViaductSocketChannel c) {
      below = c.inner();
    } else if (ch instanceof ViaductServerSocketChannel c) {
      below = c.inner();
    } else if (ch.provider() == owner.jdk()
        || ch.provider() == owner && NioCalls.descriptorOf(ch) >= 0) {
      // The JDK's own; its System.inheritedChannel() names the provider of the whole machine.
      below = ch;
    } else {
      throw new IllegalSelectorException();
    }
    if (!isOpen()) {
      throw new ClosedSelectorException();
    }
    ViaductKey key = new ViaductKey(this, ch, below);
    key.attach(attachment);
    key.interestOps(ops);
    keys.add(key);
    if (ch instanceof ViaductSocketChannel c) {
      c.addKey(key);
    } else if (ch instanceof ViaductServerSocketChannel c) {
      c.addKey(key);
    }
    changed(key);
    if (!isOpen()) {
      key.cancel();
      keys.remove(key);
      forgetInChannel(key);
      throw new ClosedSelectorException();
    }
    return key;
  }

  private static void forgetInChannel(ViaductKey key) {
    if (key.channel() instanceof ViaductSocketChannel c) {
      c.dropKey(key);
    } else if (key.channel() instanceof ViaductServerSocketChannel c) {
      c.dropKey(key);
    }
  }

  /** Any thread's: the next selection takes notice. */
  void changed(ViaductKey key) {
    if (key.queued.compareAndSet(false, true)) {
      changes.add(key);
    }
  }

  /** For any thread: a selection under way starts again, and returns only if there is something. */
  void lookAgain() {
    if (isOpen()) {
      inner.wakeup();
    }
  }

  private void applyChanges() {
    ViaductKey key;
    while ((key = changes.poll()) != null) {
      key.queued.set(false);
      if (!key.isValid() || !keys.contains(key)) {
        continue;
      }
      int ops = key.asked();
      Stream s = key.channel() instanceof ViaductSocketChannel c ? c.stream() : null;
      if (s == null) {
        askInner(key, ops);
        continue;
      }
      if (key.slot < 0 && s.enter()) {
        addStream(key, s);
      }
      if (key.slot >= 0) {
        NioCalls.setInterest(set, key.slot, eventsOf(ops));
      }
    }
  }

  private void addStream(ViaductKey key, Stream s) {
    int slot = NioCalls.setAdd(set, s.handle);
    if (slot < 0) {
      s.leave();
      throw new OutOfMemoryError("no memory is left for a selector");
    }
    if (slot >= slots.length) {
      slots = Arrays.copyOf(slots, 2 * slot);
    }
    slots[slot] = key;
    key.slot = slot;
    key.stream = s;
    hadStreams = true;
    askInner(key, 0);
  }

  private void askInner(ViaductKey key, int ops) {
    try {
      if (key.inner != null) {
        if (key.innerOps != ops) {
          key.inner.interestOps(ops);
        }
      } else if (ops != 0) {
        key.inner = key.below.register(inner, ops, key);
        key.releaseInner(); // cancelled by another thread, which has not seen it
      }
      key.innerOps = ops;
    } catch (ClosedChannelException
        | IllegalBlockingModeException
        | CancelledKeyException e) {
      key.cancel(); // another thread has closed it, or cancelled it and made it blocking again
    }
  }

  private void dropCancelled() {
    Set<SelectionKey> cancelled = cancelledKeys();
    synchronized (cancelled) {
      if (cancelled.isEmpty()) {
        return;
      }
      for (SelectionKey key : cancelled) {
        drop((ViaductKey) key);
      }
      cancelled.clear();
    }
  }

  private void drop(ViaductKey key) {
    keys.remove(key);
    selected.forget(key);
    if (key.slot >= 0) {
      NioCalls.setRemove(set, key.slot);
      slots[key.slot] = null;
      key.slot = -1;
      key.stream.leave();
      key.stream = null;
    }
    if (key.inner != null) {
      key.inner.cancel();
      key.inner = null;
      innerHasCancelled = true;
    }
    deregister((AbstractSelectionKey) key);
    forgetInChannel(key);
  }

  private static int eventsOf(int ops) {
    return ((ops & SelectionKey.OP_READ) != 0 ? NioCalls.IN : 0)
        | ((ops & SelectionKey.OP_WRITE) != 0 ? NioCalls.OUT : 0);
  }

  private static int opsOf(int events) {
    return ((events & NioCalls.IN) != 0 ? SelectionKey.OP_READ : 0)
        | ((events & NioCalls.OUT) != 0 ? SelectionKey.OP_WRITE : 0);
  }

  // ---- selections

  private void tell(ViaductKey key, int ops) {
    int ready = ops & key.asked();
    if (ready == 0 || !key.isValid()) {
      return;
    }
    found = true;
    if (!selected.has(key)) {
      key.ready = ready;
      selected.put(key);
    } else if ((key.ready & ready) != ready) {
      key.ready |= ready;
    } else {
      return;
    }
    if (key.turn != turn) {
      key.turn = turn;
      updated++;
    }
  }

  private void lookAtStreams(boolean spin) {
    int n = NioCalls.NEWS_MOST;
    // Keys that are cancelled during this have news in each look, and none that count.
    int most = slots.length / NioCalls.NEWS_MOST + 1;
    for (int looks = 0; looks < most && n == NioCalls.NEWS_MOST && !found; looks++) {
      n = NioCalls.setLook(set, news, spin && looks == 0);
      for (int i = 0; i < n; i++) {
        ViaductKey key = slots[news[2 * i]];
        int what = news[2 * i + 1];
        int events = what & 0x7fff;
        askInner(key, opsOf(what >>> 16));
        tell(
            key,
            (events & (NioCalls.ERR | NioCalls.HUP)) != 0 ? key.asked() : opsOf(events));
      }
    }
  }

  /** The JDK's selector told of a key; another thread may cancel the key at any time. */
  void innerTold(SelectionKey innerKey) {
    ViaductKey key = (ViaductKey) innerKey.attachment();
    int ready;
    try {
      ready = innerKey.readyOps();
    } catch (CancelledKeyException e) {
      return;
    }
    tell(key, ready & key.innerOps);
  }

  private void askInnerNow() throws IOException {
    innerHasCancelled = false;
    inner.selectNow(this::innerTold);
  }

  /** Sleeps in the JDK's selector; milliseconds may be 0: without end. */
  private void sleep(long milliseconds) throws IOException {
    if (!hadStreams) {
      inner.select(this::innerTold, milliseconds);
      return;
    }
    int how = NioCalls.setSleep(set, !Threads.onVirtual());
    try {
      if (how == NioCalls.SLEEP_NOT) {
        inner.selectNow(this::innerTold);
      } else if (how == NioCalls.SLEEP_SHORT && (milliseconds == 0 || milliseconds > SLICE_MS)) {
        inner.select(this::innerTold, SLICE_MS);
      } else {
        inner.select(this::innerTold, milliseconds);
      }
    } finally {
      NioCalls.setAwake(set);
    }
  }

  /** Milliseconds as those of select(long); negative: not at all. */
  private int run(long milliseconds) throws IOException {
    long end = milliseconds > 0 ? System.nanoTime() + milliseconds * 1000000 : 0;
    boolean sleeps = milliseconds >= 0;
    updated = 0;
    found = false;
    turn++;
    for (boolean over = false; ; ) {
      dropCancelled();
      if (innerHasCancelled) {
        askInnerNow();
      }
      applyChanges();
      if (hadStreams) {
        lookAtStreams(sleeps && !over && !found && !woken);
      }
      boolean told = woken || !isOpen() || Thread.currentThread().isInterrupted();
      if (found || over || !sleeps || told) {
        break;
      }
      long left = 0;
      if (milliseconds > 0) {
        left = (end - System.nanoTime() + 999999) / 1000000;
        over = left <= 0;
      }
      if (!over) {
        sleep(left);
      }
    }
    // Closed by another thread, which waits for the monitor: all is there still, as after wakeup().
    if (!found || turn % PATIENCE == 0) {
      askInnerNow();
    }
    woken = false;
    dropCancelled();
    return updated;
  }

  private int selectFor(long milliseconds) throws IOException {
    synchronized (this) {
      if (!isOpen()) {
        throw new ClosedSelectorException();
      }
      if (acting) {
        throw new IllegalStateException("select in progress");
      }
      synchronized (selected) {
        return run(milliseconds);
      }
    }
  }

  /** An action, within which this selector does not select. */
  private Consumer<SelectionKey> alone(Consumer<SelectionKey> action) {
    Objects.requireNonNull(action);
    return key -> {
      acting = true;
      try {
        action.accept(key);
      } finally {
        acting = false;
      }
    };
  }

  @Override
  public int select(Consumer<SelectionKey> action, long timeout) throws IOException {
    return super.select(alone(action), timeout);
  }

  @Override
  public int selectNow(Consumer<SelectionKey> action) throws IOException {
    return super.selectNow(alone(action));
  }

  @Override
  public int select() throws IOException {
    return selectFor(0);
  }

  @Override
  public int select(long timeout) throws IOException {
    if (timeout < 0) {
      throw new IllegalArgumentException("Negative timeout");
    }
    return selectFor(Math.min(timeout, Integer.MAX_VALUE));
  }

  @Override
  public int selectNow() throws IOException {
    return selectFor(-1);
  }

  @Override
  public Selector wakeup() {
    woken = true;
    inner.wakeup();
    return this;
  }

  @Override
  protected void implCloseSelector() throws IOException {
    wakeup();
    synchronized (this) {
      synchronized (selected) {
        for (SelectionKey key : keys) {
          key.cancel();
        }
        dropCancelled();
        NioCalls.setClose(set);
        inner.close();
      }
    }
  }

  @Override
  public Set<SelectionKey> keys() {
    if (!isOpen()) {
      throw new ClosedSelectorException();
    }
    return publicKeys;
  }

  @Override
  public Set<SelectionKey> selectedKeys() {
    if (!isOpen()) {
      throw new ClosedSelectorException();
    }
    return selected;
  }

  /** Keys that the program may take out, and not put in. */
  private static final class Selected extends AbstractSet<SelectionKey> {
    private final Set<SelectionKey> all = new HashSet<>();

    boolean has(SelectionKey key) {
      return all.contains(key);
    }

    void put(SelectionKey key) {
      all.add(key);
    }

    void forget(SelectionKey key) {
      all.remove(key);
    }

    @Override
    public Iterator<SelectionKey> iterator() {
      return all.iterator();
    }

    @Override
    public int size() {
      return all.size();
    }

    @Override
    public boolean contains(Object key) {
      return all.contains(key);
    }

    @Override
    public boolean remove(Object key) {
      return all.remove(key);
    }

    @Override
    public void clear() {
      all.clear();
    }
  }
}
