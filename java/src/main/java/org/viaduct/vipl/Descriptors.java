/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.viaduct.vipl.VipConstants.*;

import java.nio.ByteBuffer;
import org.viaduct.vipl.spi.Layout;

/** Descriptors in registered memory, and what their slots hold; {@link DescriptorRing} posts. */
abstract class Descriptors {
  final Vi vi;
  final boolean receive;
  final int slots;
  final int shift;
  final int maxSegments;
  final Memory memory;
  final ByteBuffer buffer;
  final RingSlots state;
  boolean closed;

  Descriptors(Vi vi, boolean receive, int slots, int maxSegments, int more) {
    this.vi = vi;
    this.receive = receive;
    this.slots = slots;
    this.maxSegments = maxSegments;
    int bytes = Layout.DESC_SEGMENTS + Layout.SEG_SIZE * maxSegments;
    this.shift = 32 - Integer.numberOfLeadingZeros(Math.max(bytes, Layout.DESC_SIZE) - 1);
    this.memory =
        Memory.own(vi.nic(), Math.addExact((long) slots << shift, more), MemoryAttributes.LOCAL);
    this.buffer = memory.buffer();
    this.state = new RingSlots(slots, maxSegments);
  }

  abstract DescriptorRing self();

  /**
   * Tells whether a slot is posted and not yet taken.
   *
   * @param slot the slot
   * @return whether the library has it
   */
  public boolean inFlight(int slot) {
    return state.inFlight(slot);
  }

  /**
   * Prepares a slot for a message: from or into a part of memory.
   *
   * @param slot the slot
   * @param data where the data lies
   * @param offset where it begins there
   * @param bytes how many; of a receive, the most
   * @return this ring
   */
  public DescriptorRing prepare(int slot, Memory data, long offset, long bytes) {
    begin("prepare", slot, VIP_CONTROL_OP_SENDRECV, 0);
    return segment(slot, data, offset, bytes);
  }

  /**
   * Prepares a slot for a message without data: immediate data only, or nothing.
   *
   * @param slot the slot
   * @return this ring
   */
  public DescriptorRing prepareEmpty(int slot) {
    begin("prepareEmpty", slot, VIP_CONTROL_OP_SENDRECV, 0);
    return self();
  }

  /**
   * Prepares a slot for an RDMA write.
   *
   * @param slot the slot
   * @param data where the data lies
   * @param offset where it begins there
   * @param bytes how many
   * @param remoteAddress where it goes, an address of the peer
   * @param remoteHandle the peer's handle of that memory
   * @return this ring
   */
  public DescriptorRing prepareWrite(
      int slot, Memory data, long offset, long bytes, long remoteAddress, int remoteHandle) {
    beginRemote("prepareWrite", slot, VIP_CONTROL_OP_RDMAWRITE, remoteAddress, remoteHandle);
    return segment(slot, data, offset, bytes);
  }

  /**
   * Prepares a slot for an RDMA read.
   *
   * @param slot the slot
   * @param data where the data goes
   * @param offset where it begins there
   * @param bytes how many
   * @param remoteAddress where it comes from, an address of the peer
   * @param remoteHandle the peer's handle of that memory
   * @return this ring
   */
  public DescriptorRing prepareRead(
      int slot, Memory data, long offset, long bytes, long remoteAddress, int remoteHandle) {
    beginRemote("prepareRead", slot, VIP_CONTROL_OP_RDMAREAD, remoteAddress, remoteHandle);
    return segment(slot, data, offset, bytes);
  }

  /**
   * Prepares a slot for an atomic operation on 4 or 8 bytes of the peer; the ring must have been
   * made with at least three segments, four where the old value is wanted.
   *
   * @param slot the slot
   * @param operation VIPX_ATOMIC_* of {@link VipConstants}
   * @param bytes 4 or 8
   * @param remoteAddress the operand, an address of the peer
   * @param remoteHandle the peer's handle of that memory
   * @param result where the old value goes, or null
   * @param offset where it goes there
   * @return this ring; {@link #operands} sets the values
   */
  public DescriptorRing prepareAtomic(
      int slot,
      int operation,
      int bytes,
      long remoteAddress,
      int remoteHandle,
      Memory result,
      long offset) {
    checkSegments("prepareAtomic", result == null ? 2 : 3);
    beginRemote("prepareAtomic", slot, VIPX_CONTROL_OP_ATOMIC, remoteAddress, remoteHandle);
    int at = at(slot);
    buffer.putShort(at + Layout.DESC_SEG_COUNT, (short) 2);
    buffer.putInt(at + Layout.DESC_IMMEDIATE, operation);
    if (result != null) {
      segment(slot, result, offset, bytes);
    }
    buffer.putInt(at + Layout.DESC_LENGTH, bytes);
    state.length(slot, bytes);
    return self();
  }

  /**
   * Sets the values of an atomic operation.
   *
   * @param slot a slot of {@link #prepareAtomic}, not in flight
   * @param operand the operand
   * @param compare what is compared, for VIPX_ATOMIC_COMPARE_SWAP
   */
  public void operands(int slot, long operand, long compare) {
    checkFree("operands", slot);
    checkSegments("operands", 2);
    buffer.putLong(at(slot) + Layout.ATOMIC_OPERAND, operand);
    buffer.putLong(at(slot) + Layout.ATOMIC_COMPARE, compare);
  }

  /**
   * Adds a data segment to a slot that is prepared: gather or scatter.
   *
   * @param slot the slot
   * @param data the memory
   * @param offset where the segment begins there
   * @param bytes its length
   * @return this ring
   */
  public DescriptorRing segment(int slot, Memory data, long offset, long bytes) {
    checkFree("segment", slot);
    data.checkRange("DescriptorRing.segment", offset, bytes);
    if (data.nic() != vi.nic()) {
      throw RingErrors.foreign(data, vi);
    }
    int at = at(slot);
    int count = buffer.getShort(at + Layout.DESC_SEG_COUNT);
    checkSegments("segment", count + 1);
    long total = state.length(slot) + bytes;
    if (total > vi.maxTransferSize()) {
      throw RingErrors.tooLong(total, vi);
    }
    int seg = at + Layout.DESC_SEGMENTS + count * Layout.SEG_SIZE;
    buffer.putLong(seg + Layout.SEG_DATA, data.address() + offset);
    buffer.putInt(seg + Layout.SEG_HANDLE, data.handle());
    buffer.putInt(seg + Layout.SEG_LENGTH, (int) bytes);
    buffer.putShort(at + Layout.DESC_SEG_COUNT, (short) (count + 1));
    buffer.putInt(at + Layout.DESC_LENGTH, (int) total);
    state.add(slot, data, total, seg);
    return self();
  }

  /**
   * Sets the immediate data that goes along with a send or write.
   *
   * @param slot the slot, not in flight
   * @param value the data
   */
  public void immediate(int slot, int value) {
    checkFree("immediate", slot);
    int at = at(slot);
    buffer.putInt(at + Layout.DESC_IMMEDIATE, value);
    buffer.putShort(
        at + Layout.DESC_CONTROL,
        (short) (buffer.getShort(at + Layout.DESC_CONTROL) | VIP_CONTROL_IMMEDIATE));
  }

  /**
   * Has a descriptor start when all earlier ones of the queue are complete.
   *
   * @param slot the slot, not in flight
   * @return this ring
   */
  public DescriptorRing fence(int slot) {
    checkFree("fence", slot);
    int at = at(slot) + Layout.DESC_CONTROL;
    buffer.putShort(at, (short) (buffer.getShort(at) | VIP_CONTROL_QFENCE));
    return self();
  }

  /**
   * Directs an RDMA slot to another place of the same peer's memory.
   *
   * @param slot a slot of {@link #prepareWrite} or {@link #prepareRead}, not in flight
   * @param remoteAddress an address of the peer
   */
  public void target(int slot, long remoteAddress) {
    checkFree("target", slot);
    buffer.putLong(at(slot) + Layout.DESC_SEGMENTS + Layout.SEG_DATA, remoteAddress);
  }

  /**
   * Tells the status of a completed slot.
   *
   * @param slot the slot
   * @return bits of {@link VipConstants}
   */
  public int status(int slot) {
    return buffer.getInt(at(slot) + Layout.DESC_STATUS);
  }

  /**
   * Tells the length of a completed slot.
   *
   * @param slot the slot
   * @return bytes received, or sent
   */
  public long length(int slot) {
    return buffer.getInt(at(slot) + Layout.DESC_LENGTH) & 0xFFFFFFFFL;
  }

  /**
   * Tells whether a completed receive has immediate data.
   *
   * @param slot the slot
   * @return whether the sender gave some
   */
  public boolean hasImmediate(int slot) {
    return (status(slot) & VIP_STATUS_IMMEDIATE) != 0;
  }

  /**
   * Tells the immediate data of a completed receive.
   *
   * @param slot the slot
   * @return the sender's value
   */
  public int immediate(int slot) {
    return buffer.getInt(at(slot) + Layout.DESC_IMMEDIATE);
  }

  /** Whether a descriptor in flight has a segment in a region. */
  boolean slotsUse(Memory data) {
    return state.uses(data);
  }

  final int at(int slot) {
    return slot << shift;
  }

  void begin(String call, int slot, int operation, int segments) {
    checkFree(call, slot);
    if (receive && operation != VIP_CONTROL_OP_SENDRECV) {
      throw RingErrors.receiveOnly(call);
    }
    int at = at(slot);
    for (int i = 0; i < 1 << shift; i += 8) {
      buffer.putLong(at + i, 0);
    }
    buffer.putShort(at + Layout.DESC_CONTROL, (short) operation);
    buffer.putShort(at + Layout.DESC_SEG_COUNT, (short) segments);
    state.begin(slot);
  }

  void beginRemote(String call, int slot, int operation, long address, int handle) {
    begin(call, slot, operation, 1);
    int at = at(slot) + Layout.DESC_SEGMENTS;
    buffer.putLong(at + Layout.SEG_DATA, address);
    buffer.putInt(at + Layout.SEG_HANDLE, handle);
  }

  void checkFree(String call, int slot) {
    if (closed || slot < 0 || slot >= slots || state.inFlight(slot)) {
      throw RingErrors.slot(call, this, slot);
    }
  }

  void checkSegments(String call, int count) {
    if (count > maxSegments) {
      throw RingErrors.segments(call, count, maxSegments);
    }
  }
}
