/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.viaduct.vipl.VipConstants.*;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.viaduct.vipl.spi.Handlers;
import org.viaduct.vipl.spi.Layout;
import org.viaduct.vipl.spi.NativeCalls;
import org.viaduct.vipl.spi.Natives;

/**
 * A completion queue of many VIs. {@link #take} takes completed descriptors of all of them, and the
 * entries are read by their index until the next take. Nothing is allocated.
 *
 * <p>It belongs to one thread, and so do its VIs; {@link #wakeup} may be called by any.
 */
public final class Cq implements AutoCloseable {
  /** The most entries that one take gives. */
  public static final int BATCH = 64;

  private static final int POLL_BYTES = 16;
  private static final short POLLIN = 1;
  private static final int SPINS = 200;

  private final NativeCalls calls = Natives.calls();
  private final Nic nic;
  private final long handle;
  private final int entries;
  private final Memory memory;
  private final ByteBuffer buffer;
  private final int countAt = BATCH * Layout.COMP_SIZE;
  private final int pollAt = countAt + 8;
  private final Vi[] vis = new Vi[BATCH];
  private final int[] slots = new int[BATCH];
  private final Leaks.Watch watch;
  private final int wakeFd;
  private final AtomicInteger users = new AtomicInteger();
  private int taken;
  private volatile boolean woken;
  private volatile boolean closed;

  Cq(Nic nic, int entries) {
    this.nic = nic;
    this.entries = entries;
    try (Scratch s = new Scratch(8)) {
      int out = s.room(8);
      Codes.check(
          "VipCreateCQ",
          Vipl.vipCreateCQ(nic.handle(), entries, s.address(out)),
          entries + " entries" + nic.limits());
      handle = s.getLong(out);
    }
    memory = Memory.own(nic, pollAt + POLL_BYTES, MemoryAttributes.LOCAL);
    buffer = memory.buffer();
    buffer.putLong(0, Layout.COMP_SIZE);
    wakeFd = calls.eventfd();
    if (wakeFd < 0) {
      memory.close();
      Vipl.vipDestroyCQ(handle);
      throw new ViResourceException(
          "eventfd", VIP_ERROR_RESOURCE, "no descriptor left", "Raise the limit (ulimit -n)");
    }
    nic.opened();
    watch = Leaks.watch(this, "a completion queue of " + nic, null);
  }

  static long handle(Cq cq, Nic nic) {
    if (cq == null) {
      return 0;
    }
    cq.checkOpen("Nic.createVi");
    if (cq.nic != nic) {
      throw new VipArgumentException(
          "Nic.createVi",
          VIP_INVALID_PARAMETER,
          "the completion queue is of " + cq.nic + ", not of " + nic,
          "Make it with the NIC of the VI");
    }
    return cq.handle;
  }

  /** Counts a VI that begins or ends to use the queue. */
  void used(int change) {
    users.addAndGet(change);
  }

  /**
   * Tells the NIC.
   *
   * @return the NIC that made this queue
   */
  public Nic nic() {
    return nic;
  }

  /**
   * Tells the handle.
   *
   * @return the handle, for {@link Vipl}
   */
  public long handle() {
    return handle;
  }

  /**
   * Takes what is complete, without waiting.
   *
   * @return how many entries, 0 to {@link #BATCH}
   */
  public int take() {
    long base = memory.address();
    int code = calls.vipxCQTake(handle, base, BATCH, base + countAt);
    if (code == VIP_NOT_DONE) {
      taken = 0;
      return 0;
    }
    if (code != VIP_SUCCESS) {
      taken = 0;
      checkOpen("Cq.take");
      throw Codes.exception("VipxCQTake", code, toString());
    }
    int count = (int) buffer.getLong(countAt);
    for (int i = 0; i < count; i++) {
      int at = i * Layout.COMP_SIZE;
      Vi vi = nic.vi((int) buffer.getLong(at + Layout.COMP_CONTEXT) - 1);
      DescriptorRing ring = vi == null ? null : vi.ring(buffer.getInt(at + Layout.COMP_RECV) != 0);
      vis[i] = vi;
      slots[i] = ring == null ? -1 : ring.completedAt(buffer.getLong(at + Layout.COMP_DESC));
    }
    taken = count;
    return count;
  }

  /**
   * Waits for entries and takes them. An interrupt is noticed within 50 ms, {@link #wakeup} at
   * once.
   *
   * @param milliseconds how long, or VIP_INFINITE
   * @return how many; 0 after that time, and after a wake-up
   * @throws InterruptedException if the thread was interrupted, also before the call
   */
  public int await(long milliseconds) throws InterruptedException {
    for (int i = 0; i < SPINS; i++) {
      int count = take();
      if (count != 0 || woken) {
        return awake(count);
      }
      Thread.onSpinWait();
    }
    Slices slices = new Slices(milliseconds);
    int fd = fd();
    while (true) {
      long slice = slices.next();
      arm();
      int count = take();
      if (count != 0 || woken) {
        return awake(count);
      }
      sleep(fd, (int) slice);
      count = take();
      if (count != 0 || woken || slices.over()) {
        return awake(count);
      }
    }
  }

  private int awake(int count) {
    if (woken) {
      woken = false;
      calls.eventClear(wakeFd);
      checkOpen("Cq.await");
    }
    return count;
  }

  private void sleep(int fd, int milliseconds) {
    buffer.putInt(pollAt, fd);
    buffer.putShort(pollAt + 4, POLLIN);
    buffer.putInt(pollAt + 8, wakeFd);
    buffer.putShort(pollAt + 12, POLLIN);
    calls.poll(memory.address() + pollAt, 2, milliseconds);
  }

  /** Ends a wait of another thread, or the next one if none waits. */
  public void wakeup() {
    woken = true;
    if (!closed) {
      calls.eventSet(wakeFd);
    }
  }

  /**
   * Tells the VI of an entry.
   *
   * @param index from 0 to below what {@link #take} gave
   * @return the VI, or null if it has been closed since
   */
  public Vi vi(int index) {
    return vis[check(index)];
  }

  /**
   * Tells the queue of an entry.
   *
   * @param index as for {@link #vi}
   * @return whether it is of the receive queue
   */
  public boolean isReceive(int index) {
    return buffer.getInt(check(index) * Layout.COMP_SIZE + Layout.COMP_RECV) != 0;
  }

  /**
   * Tells the slot of an entry.
   *
   * @param index as for {@link #vi}
   * @return its slot in the ring of the queue; -1 if it was not posted by a ring
   */
  public int slot(int index) {
    return slots[check(index)];
  }

  /**
   * Tells the status of an entry.
   *
   * @param index as for {@link #vi}
   * @return bits of {@link VipConstants}
   */
  public int status(int index) {
    return buffer.getInt(check(index) * Layout.COMP_SIZE + Layout.COMP_STATUS);
  }

  /**
   * Tells whether an entry completed with an error.
   *
   * @param index as for {@link #vi}
   * @return whether it did
   */
  public boolean failed(int index) {
    return (status(index) & VIP_STATUS_ERROR_MASK) != 0;
  }

  /**
   * Tells the length of an entry.
   *
   * @param index as for {@link #vi}
   * @return bytes received or sent
   */
  public long length(int index) {
    return buffer.getInt(check(index) * Layout.COMP_SIZE + Layout.COMP_LENGTH) & 0xFFFFFFFFL;
  }

  private int check(int index) {
    if (index < 0 || index >= taken) {
      throw new VipArgumentException(
          "Cq",
          VIP_INVALID_PARAMETER,
          "entry " + index + " of " + taken,
          "Entries are those of the last take");
    }
    return index;
  }

  /**
   * Changes the number of entries.
   *
   * @param count how many, at least those that are there
   */
  public void resize(int count) {
    checkOpen("Cq.resize");
    Codes.check("VipResizeCQ", Vipl.vipResizeCQ(handle, count), count + " entries" + nic.limits());
  }

  /**
   * Tells the file descriptor, for poll and epoll; it is the queue's.
   *
   * @return the descriptor: readable when the queue was armed and has an entry
   */
  public int fd() {
    checkOpen("Cq.fd");
    try (Scratch s = new Scratch(8)) {
      int out = s.room(8);
      Codes.check("VipxCQFd", Vipx.vipxCQFd(handle, s.address(out)), "ulimit -n limits them");
      return s.getInt(out);
    }
  }

  /** Arms the file descriptor for the next entry. */
  public void arm() {
    int code = Vipx.vipxCQArm(handle);
    if (code != VIP_SUCCESS) {
      checkOpen("Cq.arm");
      throw Codes.exception("VipxCQArm", code, toString());
    }
  }

  /** Gets one entry of a completion queue, in a thread of the library. */
  @FunctionalInterface
  public interface Handler {
    /**
     * Is called once. The descriptor is still on its queue: take it from the ring.
     *
     * @param vi the VI, or null if it has been closed since
     * @param receive whether the entry is of its receive queue
     */
    void entry(Vi vi, boolean receive);
  }

  /**
   * Has a handler called for the next entry, once. It runs in a thread of the library, and other
   * handlers wait for its return.
   *
   * @param handler the handler
   */
  public void onEntry(Handler handler) {
    checkOpen("Cq.onEntry");
    long number =
        Handlers.add((n, vi, receive) -> handler.entry(nic.viOf(vi), receive != 0));
    int code = Vipl.vipCQNotify(handle, number, calls.handler(NativeCalls.HANDLER_CQ));
    if (code != VIP_SUCCESS) {
      Handlers.remove(number);
      throw Codes.exception("VipCQNotify", code, toString());
    }
    nic.keep(this, number);
  }

  private void checkOpen(String call) {
    if (closed) {
      throw new VipClosedException(call, "the completion queue");
    }
  }

  /** Destroys the queue; its VIs must be closed. A thread that waits here is woken. */
  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      wakeup();
      closed = true;
      try {
        nic.retry("VipDestroyCQ", users, "its VIs must be closed first", this::destroy);
      } catch (VipException e) {
        closed = false;
        throw e;
      }
      nic.ended();
      nic.forget(this);
      memory.close();
      calls.closeFd(wakeFd);
      watch.closed();
    }
  }

  private int destroy() {
    return Vipl.vipDestroyCQ(handle);
  }

  @Override
  public String toString() {
    return "completion queue of " + entries + " entries of " + nic;
  }
}
