/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.IntSupplier;
import org.viaduct.vipl.spi.Handlers;
import org.viaduct.vipl.spi.Layout;
import org.viaduct.vipl.spi.NativeCalls;
import org.viaduct.vipl.spi.Natives;

/**
 * A NIC that this process has opened. It makes VIs, completion queues, protection tags and memory,
 * which must be closed before it. Any thread may use it.
 */
public final class Nic implements AutoCloseable {
  private static final int CLOSE_PATIENCE_MS = 10_000;
  private static final int WAIT_SLICE_MS = 250;
  private static final int NAME_BYTES = 256;

  private final String device;
  private final long handle;
  private final NicAttributes attributes;
  private final Leaks.Watch watch;
  private final ConcurrentHashMap<Object, List<Long>> handlers = new ConcurrentHashMap<>();
  private final AtomicInteger children = new AtomicInteger();
  private volatile Vi[] vis = {};
  private volatile boolean closed;
  private boolean ended;

  private Nic(String device) {
    this.device = device;
    Natives.calls();
    try (Scratch s = new Scratch(Scratch.sizeOf(device) + 16)) {
      int name = s.text(device);
      int out = s.room(8);
      Codes.check(
          "VipOpenNic",
          Vipl.vipOpenNic(s.address(name), s.address(out)),
          "device \"" + device + "\"; VIADUCT_LOG=info and vi_info tell what is wrong");
      handle = s.getLong(out);
    }
    attributes = NicQueries.attributes(handle);
    Codes.check("VipNSInit", Vipl.vipNSInit(handle, 0), toString());
    watch = Leaks.watch(this, "NIC " + device, null);
  }

  /**
   * Opens a NIC.
   *
   * @param device its name; any name opens the default NIC unless VIADUCT_DEFAULT_NIC says no
   * @return the NIC
   */
  public static Nic open(String device) {
    return new Nic(device);
  }

  /**
   * Opens the default NIC.
   *
   * @return the NIC
   */
  public static Nic open() {
    return new Nic("nic0");
  }

  /**
   * Tells the handle.
   *
   * @return the handle, for {@link Vipl}
   */
  public long handle() {
    if (closed) {
      throw new VipClosedException("Nic", "the NIC");
    }
    return handle;
  }

  /**
   * Tells the attributes and limits.
   *
   * @return the attributes
   */
  public NicAttributes attributes() {
    return attributes;
  }

  /**
   * Tells the host address of this NIC; {@link NetAddress#with(String)} adds a discriminator.
   *
   * @return the address, without a discriminator
   */
  public NetAddress address() {
    return attributes.address();
  }

  /**
   * Creates a VI without completion queues.
   *
   * @param attribs its attributes
   * @return the VI
   */
  public Vi createVi(ViAttributes attribs) {
    return createVi(attribs, null, null);
  }

  /**
   * Creates a VI.
   *
   * @param attribs its attributes
   * @param sendCq the completion queue of its send queue, or null
   * @param recvCq that of its receive queue, or null; may be the same
   * @return the VI
   */
  public Vi createVi(ViAttributes attribs, Cq sendCq, Cq recvCq) {
    return new Vi(this, attribs, sendCq, recvCq);
  }

  /**
   * Creates a completion queue.
   *
   * @param entries one for each descriptor that may be outstanding on its VIs
   * @return the queue
   */
  public Cq createCq(int entries) {
    return new Cq(this, entries);
  }

  /**
   * Creates a protection tag.
   *
   * @return the tag
   */
  public Ptag createPtag() {
    return new Ptag(this);
  }

  /**
   * Allocates window memory, zeroed, into which peers store directly.
   *
   * @param bytes the length
   * @param attribs its attributes
   * @return the memory
   */
  public Memory allocate(long bytes, MemoryAttributes attribs) {
    return Memory.window(this, bytes, attribs);
  }

  /**
   * Allocates ordinary memory, zeroed, and registers it.
   *
   * @param bytes the length
   * @param attribs its attributes
   * @return the memory
   */
  public Memory register(long bytes, MemoryAttributes attribs) {
    return Memory.own(this, bytes, attribs);
  }

  /**
   * Registers a direct buffer, all of it, whatever its position. It is kept until the memory is
   * closed.
   *
   * @param direct the buffer
   * @param attribs its attributes
   * @return the memory
   */
  public Memory register(ByteBuffer direct, MemoryAttributes attribs) {
    return Memory.user(this, direct, attribs);
  }

  /**
   * Waits for a connection request. An interrupt is noticed within 250 ms, and so is {@link #close}
   * of another thread. Between these looks the address is not waited on for some microseconds: a
   * request that comes just then gets VIP_NO_MATCH and has to be repeated.
   *
   * @param local the address to serve: {@link #address()} with a discriminator
   * @param milliseconds how long; 0 looks once; or VIP_INFINITE
   * @return the request, or null after that time
   * @throws InterruptedException if the thread was interrupted
   */
  public ConnectionRequest waitForConnection(NetAddress local, long milliseconds)
      throws InterruptedException {
    int room =
        Layout.ADDR_HOST + local.host().length + Math.max(255, attributes.maxDiscriminatorLen());
    try (Scratch s = new Scratch(Addresses.room(local) + room + Layout.VI_SIZE + 32)) {
      int at = Addresses.put(s, local);
      int remote = s.room(room);
      int attribs = s.room(Layout.VI_SIZE);
      int out = s.room(8);
      Slices slices = new Slices(milliseconds, WAIT_SLICE_MS);
      while (true) {
        long slice = slices.next();
        int code =
            Vipl.vipConnectWait(
                handle(),
                s.address(at),
                slice,
                s.address(remote),
                s.address(attribs),
                s.address(out));
        if (code == VipConstants.VIP_SUCCESS) {
          return new ConnectionRequest(
              s.getLong(out), Addresses.get(s, remote), Vi.get(s, attribs));
        }
        if (code != VipConstants.VIP_TIMEOUT) {
          handle();
          throw Codes.exception("VipConnectWait", code, "on " + local);
        }
        if (slices.over()) {
          return null;
        }
      }
    }
  }

  /**
   * Finds the address of a host.
   *
   * @param name its name or alias
   * @return its first address, without a discriminator
   */
  public NetAddress lookup(String name) {
    return lookup(name, 0);
  }

  /**
   * Finds an address of a host.
   *
   * @param name its name or alias
   * @param index which of its addresses, from 0
   * @return the address, without a discriminator
   */
  public NetAddress lookup(String name, int index) {
    int room = Layout.ADDR_HOST + attributes.address().host().length;
    try (Scratch s = new Scratch(Scratch.sizeOf(name) + room + 16)) {
      int text = s.text(name);
      int at = s.room(room);
      int code = Vipl.vipNSGetHostByName(handle(), s.address(text), s.address(at), index);
      Codes.check("VipNSGetHostByName", code, "\"" + name + "\"");
      s.putShort(at + Layout.ADDR_DISC_LEN, 0);
      return Addresses.get(s, at);
    }
  }

  /**
   * Finds the name of a host.
   *
   * @param address its address
   * @return its name
   */
  public String hostName(NetAddress address) {
    try (Scratch s = new Scratch(Addresses.room(address) + NAME_BYTES + 16)) {
      int at = Addresses.put(s, address);
      int name = s.room(NAME_BYTES);
      int length = s.room(8);
      s.putLong(length, NAME_BYTES);
      int code =
          Vipl.vipNSGetHostByAddr(handle(), s.address(at), s.address(name), s.address(length));
      Codes.check("VipNSGetHostByAddr", code, address.toString());
      return new String(s.bytes(name, (int) s.getLong(length)), StandardCharsets.UTF_8);
    }
  }

  /**
   * Lists the NIC addresses of the fabric.
   *
   * @param hops how far to look; 0: this host only
   * @return the addresses, the nearest first
   */
  public List<NetAddress> discover(int hops) {
    return NicQueries.discover(handle(), attributes.address().host().length, hops);
  }

  /**
   * Tells how packets to a host travel.
   *
   * @param address the host
   * @return the route now
   */
  public Route route(NetAddress address) {
    return NicQueries.route(handle(), address);
  }

  /**
   * Tells the counters.
   *
   * @return sums over all VIs of this NIC, also those that are closed
   */
  public Counters counters() {
    return NicQueries.counters(handle(), 0);
  }

  Counters counters(long vi) {
    return NicQueries.counters(handle(), vi);
  }

  /**
   * Moves packets of all VIs now.
   *
   * @return whether there were some
   */
  public boolean progress() {
    int code = Vipx.vipxProgress(handle);
    if (code == VipConstants.VIP_SUCCESS || code == VipConstants.VIP_NOT_DONE) {
      return code == VipConstants.VIP_SUCCESS;
    }
    throw Codes.exception("VipxProgress", code, toString());
  }

  /**
   * Places the threads of this NIC on processors; the calling thread is the application's.
   *
   * @param rules as in VIADUCT_AFFINITY; null: those of that variable
   */
  public void setAffinity(String rules) {
    String text = rules == null ? "" : rules;
    try (Scratch s = new Scratch(Scratch.sizeOf(text))) {
      int at = s.text(text);
      int code = Vipx.vipxSetAffinity(handle(), rules == null ? 0 : s.address(at));
      Codes.check("VipxSetAffinity", code, "rules \"" + text + "\"");
    }
  }

  /**
   * Tells where a thread was placed.
   *
   * @param role VIPX_ROLE_*: 0 the application's, 1 the one that moves packets
   * @return the placement
   */
  public Placement placement(int role) {
    return NicQueries.placement(handle(), role);
  }

  /**
   * Has a handler called for each error that no descriptor tells: a lost connection, a message
   * without a receive, a refused RDMA write. It runs in a thread of the library, and others wait
   * for its return.
   *
   * @param handler the handler, or null: errors go to the log
   */
  public void onError(Consumer<AsyncError> handler) {
    long number = 0;
    long function = 0;
    if (handler != null) {
      number = Handlers.add((error, b, c) -> handler.accept(NicQueries.error(this, error)));
      function = Natives.calls().handler(NativeCalls.HANDLER_ERROR);
    }
    int code = Vipl.vipErrorCallback(handle(), number, function);
    if (code != VipConstants.VIP_SUCCESS) {
      Handlers.remove(number);
      throw Codes.exception("VipErrorCallback", code, toString());
    }
    forget(this);
    keep(this, number);
  }

  /** Remembers a handler's number until its object is closed. */
  void keep(Object object, long number) {
    if (number != 0) {
      handlers.computeIfAbsent(object, k -> new ArrayList<>()).add(number);
    }
  }

  /** Forgets the handlers of an object that is gone. */
  void forget(Object object) {
    List<Long> numbers = handlers.remove(object);
    if (numbers != null) {
      numbers.forEach(Handlers::remove);
    }
  }

  synchronized int add(Vi vi) {
    Vi[] old = vis;
    int free = Arrays.asList(old).indexOf(null);
    int number = free >= 0 ? free : old.length;
    Vi[] copy = Arrays.copyOf(old, Math.max(old.length, number + 1));
    copy[number] = vi;
    vis = copy;
    return number;
  }

  synchronized void remove(int number) {
    Vi[] copy = vis.clone();
    forget(copy[number]);
    copy[number] = null;
    vis = copy;
  }

  /** The VI of a number, or null. */
  Vi vi(int number) {
    Vi[] all = vis;
    return number >= 0 && number < all.length ? all[number] : null;
  }

  /** The VI of a handle, or null. */
  Vi viOf(long viHandle) {
    for (Vi vi : vis) {
      if (vi != null && vi.handle() == viHandle) {
        return vi;
      }
    }
    return null;
  }

  void checkNotInFlight(Memory memory) {
    for (Vi vi : vis) {
      if (vi != null && vi.usesMemory(memory)) {
        throw new VipStateException(
            "Memory.close",
            VipConstants.VIP_ERROR_RESOURCE,
            "descriptors of " + vi + " that use this memory are in flight",
            "Close the VI first, or disconnect it and take its descriptors");
      }
    }
  }

  String limits() {
    return attributes == null
        ? ""
        : "; limits: MaxVI "
            + attributes.maxVi()
            + ", MaxCQ "
            + attributes.maxCq()
            + ", MaxCQEntries "
            + attributes.maxCqEntries()
            + ", MaxTransferSize "
            + attributes.maxTransferSize()
            + ", MaxRegisterRegions "
            + attributes.maxRegisterRegions()
            + ", MaxRegisterBlockBytes "
            + attributes.maxRegisterBlockBytes();
  }

  /** Repeats the end of an object without users while another thread is inside a call with it. */
  void retry(String call, AtomicInteger users, String object, IntSupplier end) {
    long limit = System.nanoTime() + CLOSE_PATIENCE_MS * 1_000_000L;
    int code = end.getAsInt();
    while (code == VipConstants.VIP_ERROR_RESOURCE
        && users.get() == 0
        && System.nanoTime() < limit) {
      Thread.yield();
      code = end.getAsInt();
    }
    Codes.check(call, code, object + "; " + users.get() + " of them are left");
  }

  /** Counts an object of this NIC. */
  void opened() {
    children.incrementAndGet();
  }

  /** Counts its end. */
  void ended() {
    children.decrementAndGet();
  }

  /** Closes the NIC. VIs, completion queues, memory and tags must be closed before. */
  @Override
  public synchronized void close() {
    if (ended) {
      return;
    }
    closed = true;
    try {
      retry(
          "VipCloseNic",
          children,
          "VIs, completion queues, memory and tags must be closed first",
          () -> Vipl.vipCloseNic(handle));
      ended = true;
      forget(this);
      watch.closed();
    } finally {
      closed = ended;
    }
  }

  @Override
  public String toString() {
    return "NIC " + device;
  }
}
