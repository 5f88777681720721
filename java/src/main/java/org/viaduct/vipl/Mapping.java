/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicInteger;
import org.viaduct.vipl.spi.NativeCalls;
import org.viaduct.vipl.spi.Natives;

/**
 * The address range through which Java sees memory. It stays mapped as long as a buffer of it can
 * be reached, also after the memory was closed: a late access then meets private pages, and the
 * process does not end. The memory that C uses is given back at once.
 */
final class Mapping {
  private static final int STEP_SHIFT = 30;
  private static final long STEP = 1L << STEP_SHIFT;
  private static final long PAGE = 4096;
  private static final long ROOT_LIMIT = Integer.MAX_VALUE & -PAGE;

  /** The longest view that every place can have. */
  static final long VIEW_LIMIT = ROOT_LIMIT - STEP;

  private final long address;
  private final ByteBuffer[] roots;
  private final Owner owner;

  /** The part that remains when nothing refers to the roots: it must not refer to them. */
  private static final class Owner {
    final NativeCalls calls = Natives.calls();
    final long address;
    final long length;
    final AtomicInteger roots = new AtomicInteger();
    volatile boolean ours;

    Owner(long address, long length, boolean ours) {
      this.address = address;
      this.length = length;
      this.ours = ours;
    }

    void rootIsGone() {
      if (roots.decrementAndGet() == 0 && ours) {
        calls.unmap(address, length);
      }
    }
  }

  private Mapping(long address, long length, boolean ours) {
    this.address = address;
    this.owner = new Owner(address, length, ours);
    int count = (int) Math.max(1, (length + STEP - 1) >>> STEP_SHIFT);
    this.roots = new ByteBuffer[count];
    owner.roots.set(count);
    Owner last = owner;
    for (int i = 0; i < count; i++) {
      long from = i * STEP;
      int bytes = (int) Math.min(length - from, ROOT_LIMIT);
      roots[i] = owner.calls.view(address + from, bytes).order(ByteOrder.nativeOrder());
      Leaks.CLEANER.register(roots[i], last::rootIsGone);
    }
  }

  private Mapping(ByteBuffer users, long address) {
    this.address = address;
    this.owner = new Owner(address, users.capacity(), false);
    this.roots = new ByteBuffer[] {users.duplicate().clear().order(ByteOrder.nativeOrder())};
  }

  /** New private memory of whole pages. */
  static Mapping fresh(long length) {
    NativeCalls calls = Natives.calls();
    long bytes = Math.addExact(length, PAGE - 1) & -PAGE;
    long address = calls.map(bytes);
    if (address == 0) {
      throw new ViResourceException(
          "mmap",
          VipConstants.VIP_ERROR_RESOURCE,
          "no memory for " + bytes + " bytes",
          "Ask for less, or raise the limit of the process (ulimit -v)");
    }
    return new Mapping(address, bytes, true);
  }

  /** A second view of memory of the library, or where the system gives none, that memory. */
  static Mapping again(long address, long length) {
    long bytes = Math.addExact(length, PAGE - 1) & -PAGE;
    long second = Natives.calls().mapAgain(address, bytes);
    return second != 0 ? new Mapping(second, bytes, true) : new Mapping(address, bytes, false);
  }

  /** The buffer of a program, which stays its own. */
  static Mapping of(ByteBuffer direct) {
    return new Mapping(direct, Natives.calls().addressOf(direct));
  }

  long address() {
    return address;
  }

  /** The buffer in which a place lies, and its index there. */
  ByteBuffer root(long offset) {
    return roots[(int) (offset >>> STEP_SHIFT)];
  }

  static int index(long offset) {
    return (int) (offset & STEP - 1);
  }

  ByteBuffer view(long offset, int length) {
    return root(offset).slice(index(offset), length).order(ByteOrder.nativeOrder());
  }

  /** Exchanges shared pages for private ones, so that late accesses reach nobody's memory. */
  void detach() {
    if (owner.ours) {
      owner.calls.mapBlank(owner.address, owner.length, true);
    }
  }

  /** Fills the range of memory that the library has unmapped, if nothing else is there yet. */
  void fillGap() {
    if (!owner.ours && owner.calls.mapBlank(owner.address, owner.length, false) == 0) {
      owner.ours = true;
    }
  }
}
