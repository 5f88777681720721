/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.viaduct.vipl.VipConstants.*;

import org.viaduct.vipl.spi.Layout;
import org.viaduct.vipl.spi.NativeCalls;
import org.viaduct.vipl.spi.Natives;

/**
 * The descriptors of one queue of a VI, prepared once in slots 0, 1, ... and posted as often as
 * wanted. Posting and completing allocate nothing.
 *
 * <p>A completion is the index of its slot. A negative number is {@link #NONE}, {@link #EMPTY}, or
 * a slot that completed with an error, which {@link #failed} and {@link #failure} tell.
 *
 * <p>A ring belongs to one thread at a time; {@link Vi#close} may come from another.
 */
public final class DescriptorRing extends Descriptors implements AutoCloseable {
  /** Nothing is complete yet. */
  public static final int NONE = -1;

  /** Nothing is posted. */
  public static final int EMPTY = -2;

  /** The most slots that one call of {@link #take} and {@link #postMany} can handle. */
  public static final int BATCH = 256;

  private static final int FAILED = -16;

  /**
   * Data that is copied in some microseconds: the call may keep the collector waiting. Receives
   * count as short whatever their length, since a call takes in no more than the payload buffer.
   */
  private static final long SHORT = 64 << 10;

  private final NativeCalls calls = Natives.calls();
  private final long viHandle;
  private final long base;
  private final int memoryHandle;
  private final int outAt;
  private final long out;
  private final int listAt;
  private final long list;
  private int outstanding;
  private int taken;

  DescriptorRing(Vi vi, boolean receive, int slots, int maxSegments) {
    super(vi, receive, slots, maxSegments, VIP_DESCRIPTOR_ALIGNMENT + 8 * BATCH);
    this.viHandle = vi.handle();
    this.outAt = slots << shift;
    this.listAt = outAt + VIP_DESCRIPTOR_ALIGNMENT;
    this.base = memory.address();
    this.memoryHandle = memory.handle();
    this.out = base + outAt;
    this.list = base + listAt;
  }

  @Override
  DescriptorRing self() {
    return this;
  }

  /**
   * Tells how many slots there are.
   *
   * @return the number given to {@link Vi#sendRing} or {@link Vi#receiveRing}
   */
  public int slots() {
    return slots;
  }

  /**
   * Tells how many descriptors are posted and not yet taken.
   *
   * @return the number
   */
  public int outstanding() {
    return outstanding;
  }

  /**
   * Posts a slot with the length that it was prepared with.
   *
   * @param slot the slot
   */
  public void post(int slot) {
    posted(slot, callPost(slot, ready(slot)));
  }

  /**
   * Posts a slot that has one data segment with a shorter length.
   *
   * @param slot the slot
   * @param bytes how many, up to the length that it was prepared with
   */
  public void post(int slot, long bytes) {
    long whole = state.check(this, slot);
    if (bytes < 0 || bytes > whole || state.segmentAt(slot) < 0) {
      throw RingErrors.length(slot, bytes, whole, state.segmentAt(slot) < 0);
    }
    int at = at(slot);
    buffer.putInt(state.segmentAt(slot) + Layout.SEG_LENGTH, (int) bytes);
    buffer.putInt(at + Layout.DESC_LENGTH, (int) bytes);
    buffer.putInt(at + Layout.DESC_STATUS, 0);
    state.shortened(slot);
    posted(slot, callPost(slot, bytes));
  }

  /** Makes a descriptor as it was prepared; its length. */
  private long ready(int slot) {
    long bytes = state.check(this, slot);
    int at = at(slot);
    buffer.putInt(at + Layout.DESC_LENGTH, (int) bytes);
    buffer.putInt(at + Layout.DESC_STATUS, 0);
    if (state.wasShortened(slot)) {
      buffer.putInt(state.segmentAt(slot) + Layout.SEG_LENGTH, (int) bytes);
    }
    return bytes;
  }

  private int callPost(int slot, long bytes) {
    long descriptor = base + at(slot);
    if (receive) {
      return calls.vipPostRecv(viHandle, descriptor, memoryHandle);
    }
    if (bytes <= SHORT && vi.longInFlight == 0) {
      return calls.postSendShort(viHandle, descriptor, memoryHandle);
    }
    return calls.vipPostSend(viHandle, descriptor, memoryHandle);
  }

  private void posted(int slot, int code) {
    if (code != VIP_SUCCESS) {
      throw RingErrors.post(this, slot, code);
    }
    took(slot);
  }

  private void took(int slot) {
    outstanding++;
    if (state.post(slot) > SHORT && !receive) {
      vi.longInFlight++;
    }
  }

  /**
   * Posts slots of one ring one after the other, with one call: first, first + 1, ..., and slot 0
   * after the last one.
   *
   * @param first the first slot
   * @param count how many, {@link #BATCH} at most
   */
  public void postMany(int first, int count) {
    if (count < 0 || count > Math.min(BATCH, slots)) {
      throw RingErrors.count(count, Math.min(BATCH, slots));
    }
    int slot = first;
    for (int i = 0; i < count; i++, slot = slot + 1 == slots ? 0 : slot + 1) {
      ready(slot);
      buffer.putLong(listAt + 8 * i, base + at(slot));
    }
    int code =
        receive
            ? calls.vipxPostRecvs(viHandle, list, count, memoryHandle, out)
            : calls.vipxPostSends(viHandle, list, count, memoryHandle, out);
    int done = (int) buffer.getLong(outAt);
    slot = first;
    for (int i = 0; i < done; i++, slot = slot + 1 == slots ? 0 : slot + 1) {
      took(slot);
    }
    if (code != VIP_SUCCESS) {
      throw RingErrors.post(this, slot, code);
    }
  }

  /**
   * Takes the oldest descriptor if it is complete.
   *
   * @return its slot, {@link #NONE}, {@link #EMPTY}, or a failed slot
   */
  public int poll() {
    int code;
    if (vi.longInFlight == 0) {
      code = receive ? calls.vipRecvDone(viHandle, out) : calls.vipSendDone(viHandle, out);
    } else {
      code = receive ? calls.recvDoneLong(viHandle, out) : calls.sendDoneLong(viHandle, out);
    }
    return result(code);
  }

  /**
   * Polls until a descriptor is complete, some times at most: cheaper than a loop of {@link #poll}
   * where calls are dear. For short transfers.
   *
   * @param times how often
   * @return as {@link #poll}
   */
  public int spin(int times) {
    if (!receive) {
      return poll();
    }
    return result(
        vi.longInFlight == 0
            ? calls.recvSpin(viHandle, out, times)
            : calls.recvSpinLong(viHandle, out, times));
  }

  private int result(int code) {
    if (code == VIP_NOT_DONE || code == VIP_TIMEOUT) {
      return NONE;
    }
    if (code == VIP_SUCCESS) {
      return completed(slotOf(buffer.getLong(outAt)));
    }
    return failedResult(code);
  }

  private int failedResult(int code) {
    if (code == VIP_DESCRIPTOR_ERROR) {
      long descriptor = buffer.getLong(outAt);
      return descriptor == 0 ? EMPTY : FAILED - completed(slotOf(descriptor));
    }
    if (vi.isClosed()) {
      throw new VipClosedException("DescriptorRing.poll", "the VI");
    }
    throw Codes.exception(receive ? "VipRecvDone" : "VipSendDone", code, vi.toString());
  }

  private int slotOf(long descriptor) {
    long slot = descriptor - base >>> shift;
    if (slot < 0 || slot >= slots) {
      throw RingErrors.foreignDescriptor(vi);
    }
    return (int) slot;
  }

  /** Accounts for a descriptor that was taken: its slot. */
  int completed(int slot) {
    outstanding--;
    if (state.complete(slot) > SHORT && !receive) {
      vi.longInFlight--;
    }
    return slot;
  }

  /** The slot of a descriptor that {@link Cq} took; -1 if it is not of this ring. */
  int completedAt(long descriptor) {
    long slot = descriptor - base >>> shift;
    return slot < 0 || slot >= slots ? -1 : completed((int) slot);
  }

  /**
   * Takes many descriptors that are complete, oldest first, with one call. It ends after one that
   * failed.
   *
   * @param max the most, 1 to {@link #BATCH}
   * @return how many; {@link #taken} tells which
   */
  public int take(int max) {
    if (max < 1 || max > BATCH) {
      throw RingErrors.count(max, BATCH);
    }
    int code;
    if (receive) {
      code = calls.vipxRecvsDone(viHandle, list, max, out);
    } else if (vi.longInFlight == 0) {
      code = calls.vipxSendsDone(viHandle, list, max, out);
    } else {
      code = calls.sendsDoneLong(viHandle, list, max, out);
    }
    taken = 0;
    if (code == VIP_NOT_DONE) {
      return 0;
    }
    if (code != VIP_SUCCESS && code != VIP_DESCRIPTOR_ERROR) {
      return failedResult(code);
    }
    taken = (int) buffer.getLong(outAt);
    for (int i = 0; i < taken; i++) {
      completed(slotOf(buffer.getLong(listAt + 8 * i)));
    }
    return taken;
  }

  /**
   * Tells a slot of the last {@link #take}.
   *
   * @param index from 0
   * @return the slot, or a failed slot
   */
  public int taken(int index) {
    if (index < 0 || index >= taken) {
      throw RingErrors.count(index, taken);
    }
    int slot = slotOf(buffer.getLong(listAt + 8 * index));
    return (status(slot) & VIP_STATUS_ERROR_MASK) == 0 ? slot : FAILED - slot;
  }

  /**
   * Waits for the oldest descriptor and takes it. The queue has no completion queue. An interrupt
   * is noticed within 50 ms.
   *
   * @param milliseconds how long, or VIP_INFINITE
   * @return as {@link #poll}; {@link #NONE} after that time
   * @throws InterruptedException if the thread was interrupted, also before the call
   */
  public int await(long milliseconds) throws InterruptedException {
    Slices slices = new Slices(milliseconds);
    while (true) {
      if (vi.isClosed()) {
        throw new VipClosedException("DescriptorRing.await", "the VI");
      }
      long slice = slices.next();
      int code =
          receive
              ? calls.vipRecvWait(viHandle, slice, out)
              : calls.vipSendWait(viHandle, slice, out);
      if (code != VIP_TIMEOUT || slices.over()) {
        return result(code);
      }
    }
  }

  /**
   * Tells whether a completion is a failed slot.
   *
   * @param completion what {@link #poll}, {@link #await} or {@link #taken} gave
   * @return whether it is one
   */
  public static boolean failed(int completion) {
    return completion <= FAILED;
  }

  /**
   * Tells the slot of a completion.
   *
   * @param completion a slot or a failed slot
   * @return the slot
   */
  public static int slot(int completion) {
    return completion <= FAILED ? FAILED - completion : completion;
  }

  /**
   * Tells why a slot failed.
   *
   * @param completion a failed slot
   * @return an exception that tells it, not thrown
   */
  public ViDescriptorException failure(int completion) {
    int slot = slot(completion);
    return new ViDescriptorException(receive ? "receive" : "send", slot, status(slot));
  }

  /** Whether a descriptor in flight uses a region. */
  boolean uses(Memory data) {
    return data == memory ? outstanding > 0 : slotsUse(data);
  }

  Memory memory() {
    return memory;
  }

  boolean isClosed() {
    return closed;
  }

  boolean isReceive() {
    return receive;
  }

  /** Frees the descriptors of a VI that is gone. */
  void abandon() {
    outstanding = 0;
    state.abandon();
    close();
  }

  /** Frees the descriptors. Refused while some are in flight: close or disconnect the VI first. */
  @Override
  public void close() {
    if (!closed) {
      memory.close();
      closed = true;
      vi.forget(this);
    }
  }
}
