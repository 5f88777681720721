/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.viaduct.vipl.spi.Layout;

/**
 * Registered memory. Window memory, of {@link Nic#allocate}, is what peers store into directly:
 * their RDMA writes appear here without any call. Other memory is registered by {@link
 * Nic#register(long, MemoryAttributes)}.
 *
 * <p>Views may be used by any thread. A late access, after {@link #close}, meets private pages with
 * zeros that no peer sees, and does no harm.
 */
public final class Memory implements AutoCloseable {
  private static final VarHandle INT =
      MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
  private static final VarHandle LONG =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

  private final Nic nic;
  private final Mapping mapping;
  private final long address;
  private final int handle;
  private final long length;
  private final boolean window;
  private final Leaks.Watch watch;
  private volatile boolean closed;

  private Memory(
      Nic nic, Mapping mapping, long address, int handle, long length, boolean window) {
    this.nic = nic;
    this.mapping = mapping;
    this.address = address;
    this.handle = handle;
    this.length = length;
    this.window = window;
    nic.opened();
    this.watch = Leaks.watch(this, length + " bytes of memory of " + nic, mapping);
  }

  static Memory window(Nic nic, long length, MemoryAttributes attributes) {
    try (Scratch s = new Scratch(Layout.MEM_SIZE + 32)) {
      int attribs = put(s, nic, attributes);
      int address = s.room(8);
      int handle = s.room(8);
      int code =
          Vipx.vipxAllocMem(
              nic.handle(), length, s.address(attribs), s.address(address), s.address(handle));
      Codes.check("VipxAllocMem", code, length + " bytes" + nic.limits());
      long at = s.getLong(address);
      return new Memory(nic, Mapping.again(at, length), at, s.getInt(handle), length, true);
    }
  }

  static Memory own(Nic nic, long length, MemoryAttributes attributes) {
    if (length < 1 || length > nic.attributes().maxRegisterBlockBytes()) {
      throw new VipArgumentException(
          "Nic.register",
          VipConstants.VIP_INVALID_PARAMETER,
          length + " bytes, of 1 to " + nic.attributes().maxRegisterBlockBytes(),
          "Register several smaller regions");
    }
    Mapping mapping = Mapping.fresh(length);
    return register(nic, mapping, mapping.address(), length, attributes);
  }

  static Memory user(Nic nic, ByteBuffer direct, MemoryAttributes attributes) {
    if (!direct.isDirect() || direct.isReadOnly() || direct.capacity() == 0) {
      throw new VipArgumentException(
          "Nic.register",
          VipConstants.VIP_INVALID_PARAMETER,
          "a buffer that is " + (direct.isDirect() ? "read-only or empty" : "in the Java heap"),
          "Use ByteBuffer.allocateDirect, or Nic.register with a length");
    }
    Mapping mapping = Mapping.of(direct);
    return register(nic, mapping, mapping.address(), direct.capacity(), attributes);
  }

  private static Memory register(
      Nic nic, Mapping mapping, long address, long length, MemoryAttributes attributes) {
    try (Scratch s = new Scratch(Layout.MEM_SIZE + 16)) {
      int attribs = put(s, nic, attributes);
      int handle = s.room(8);
      int code =
          Vipl.vipRegisterMem(
              nic.handle(), address, length, s.address(attribs), s.address(handle));
      Codes.check("VipRegisterMem", code, length + " bytes" + nic.limits());
      return new Memory(nic, mapping, address, s.getInt(handle), length, false);
    }
  }

  private static int put(Scratch s, Nic nic, MemoryAttributes attributes) {
    int at = s.room(Layout.MEM_SIZE);
    s.putLong(at + Layout.MEM_PTAG, Ptag.handle(attributes.ptag(), nic));
    s.putInt(at + Layout.MEM_WRITE, attributes.rdmaWrite() ? 1 : 0);
    s.putInt(at + Layout.MEM_READ, attributes.rdmaRead() ? 1 : 0);
    return at;
  }

  /**
   * Tells the NIC.
   *
   * @return the NIC with which this is registered
   */
  public Nic nic() {
    return nic;
  }

  /**
   * Tells the address that descriptors and peers use.
   *
   * @return the address of the first byte
   */
  public long address() {
    return address;
  }

  /**
   * Tells the memory handle.
   *
   * @return the handle, of 32 bits
   */
  public int handle() {
    return handle;
  }

  /**
   * Tells the length.
   *
   * @return bytes
   */
  public long length() {
    return length;
  }

  /**
   * Tells whether peers store here directly.
   *
   * @return whether this is window memory
   */
  public boolean isWindow() {
    return window;
  }

  /**
   * Tells whether it is closed.
   *
   * @return whether {@link #close} has succeeded
   */
  public boolean isClosed() {
    return closed;
  }

  /**
   * A view of all of it, if it is no longer than a buffer can be.
   *
   * @return a new view in the order of bytes of the processor
   */
  public ByteBuffer buffer() {
    return buffer(0, length);
  }

  /**
   * A view of a part.
   *
   * @param offset where it begins
   * @param bytes its length: 1 GiB is possible everywhere
   * @return a new view in the order of bytes of the processor
   */
  public ByteBuffer buffer(long offset, long bytes) {
    checkRange("Memory.buffer", offset, bytes);
    if (bytes > Mapping.VIEW_LIMIT && bytes + Mapping.index(offset) > mappingLimit(offset)) {
      throw new VipArgumentException(
          "Memory.buffer",
          VipConstants.VIP_INVALID_PARAMETER,
          bytes + " bytes, of " + Mapping.VIEW_LIMIT,
          "Take several views");
    }
    return mapping.view(offset, (int) bytes);
  }

  private long mappingLimit(long offset) {
    return mapping.root(Math.min(offset, length - 1)).capacity();
  }

  /**
   * Reads 4 bytes; what the peer wrote before them is seen after.
   *
   * @param offset a multiple of 4
   * @return the value
   */
  public int getIntAcquire(long offset) {
    return (int) INT.getAcquire(rootOf(offset, 4), Mapping.index(offset));
  }

  /**
   * Reads 8 bytes; what the peer wrote before them is seen after.
   *
   * @param offset a multiple of 8
   * @return the value
   */
  public long getLongAcquire(long offset) {
    return (long) LONG.getAcquire(rootOf(offset, 8), Mapping.index(offset));
  }

  /**
   * Writes 4 bytes, after all that this thread wrote before.
   *
   * @param offset a multiple of 4
   * @param value the value
   */
  public void setIntRelease(long offset, int value) {
    INT.setRelease(rootOf(offset, 4), Mapping.index(offset), value);
  }

  /**
   * Writes 8 bytes, after all that this thread wrote before.
   *
   * @param offset a multiple of 8
   * @param value the value
   */
  public void setLongRelease(long offset, long value) {
    LONG.setRelease(rootOf(offset, 8), Mapping.index(offset), value);
  }

  private ByteBuffer rootOf(long offset, int bytes) {
    checkRange("Memory", offset, bytes);
    return mapping.root(offset);
  }

  void checkRange(String call, long offset, long bytes) {
    if (closed || (offset | bytes) < 0 || bytes > length || offset > length - bytes) {
      throw badRange(call, offset, bytes);
    }
  }

  private VipException badRange(String call, long offset, long bytes) {
    if (closed) {
      return new VipClosedException(call, "the memory");
    }
    return new VipArgumentException(
        call,
        VipConstants.VIP_INVALID_PARAMETER,
        bytes + " bytes from " + offset + " in memory of " + length + " bytes",
        "Stay within the memory");
  }

  /**
   * Asks for the attributes in force; the tag is not told.
   *
   * @return the attributes, without a tag
   */
  public MemoryAttributes attributes() {
    try (Scratch s = new Scratch(Layout.MEM_SIZE)) {
      int at = s.room(Layout.MEM_SIZE);
      Codes.check(
          "VipQueryMem", Vipl.vipQueryMem(nic.handle(), address, handle, s.address(at)), "memory");
      return new MemoryAttributes(
          null, s.getInt(at + Layout.MEM_WRITE) != 0, s.getInt(at + Layout.MEM_READ) != 0);
    }
  }

  /**
   * Changes all attributes. Accesses of peers that the new ones do not allow have ended on return,
   * which may take two seconds.
   *
   * @param attributes the new ones
   */
  public void setAttributes(MemoryAttributes attributes) {
    try (Scratch s = new Scratch(Layout.MEM_SIZE)) {
      int at = put(s, nic, attributes);
      int code = Vipl.vipSetMemAttributes(nic.handle(), address, handle, s.address(at));
      Codes.check("VipSetMemAttributes", code, "memory of " + length + " bytes");
    }
  }

  /**
   * Ends the registration. Window memory is given back, which may wait up to two seconds for peers
   * that store into it. Refused while descriptors of this memory are in flight.
   */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    nic.checkNotInFlight(this);
    if (window) {
      mapping.detach();
      Codes.check("VipxFreeMem", Vipx.vipxFreeMem(nic.handle(), address, handle), "window memory");
      mapping.fillGap();
    } else {
      int code = Vipl.vipDeregisterMem(nic.handle(), address, handle);
      Codes.check("VipDeregisterMem", code, "memory of " + length + " bytes");
      mapping.detach();
    }
    closed = true;
    nic.ended();
    watch.closed();
  }

  @Override
  public String toString() {
    return (window ? "window memory" : "memory") + " of " + length + " bytes of " + nic;
  }
}
