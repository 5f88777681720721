/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** A protection tag: a VI with a tag uses memory with that tag, or with none. */
public final class Ptag implements AutoCloseable {
  private final Nic nic;
  private final long handle;
  private final Leaks.Watch watch;
  private boolean closed;

  Ptag(Nic nic) {
    this.nic = nic;
    try (Scratch s = new Scratch(16)) {
      int out = s.room(8);
      Codes.check(
          "VipCreatePtag", Vipl.vipCreatePtag(nic.handle(), s.address(out)), nic.toString());
      handle = s.getLong(out);
    }
    nic.opened();
    watch = Leaks.watch(this, "a protection tag of " + nic, null);
  }

  /**
   * Tells the NIC.
   *
   * @return the NIC that made this tag
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

  /** The handle for a call with a NIC; 0 for no tag. */
  static long handle(Ptag tag, Nic nic) {
    if (tag == null) {
      return 0;
    }
    if (tag.nic != nic) {
      throw new VipArgumentException(
          "Ptag",
          VipConstants.VIP_INVALID_PTAG,
          "the tag is of " + tag.nic + ", not of " + nic,
          "Make the tag with the NIC of the VI or memory");
    }
    return tag.handle;
  }

  /** Destroys the tag; no VI and no memory may have it any more. */
  @Override
  public synchronized void close() {
    if (!closed) {
      int code = Vipl.vipDestroyPtag(nic.handle(), handle);
      Codes.check("VipDestroyPtag", code, "a VI or memory may have the tag");
      closed = true;
      nic.ended();
      watch.closed();
    }
  }
}
