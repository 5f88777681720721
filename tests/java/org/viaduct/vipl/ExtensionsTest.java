/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.viaduct.vipl.spi.Handlers;
import org.viaduct.vipl.spi.Layout;
import org.viaduct.vipl.spi.NativeCalls;
import org.viaduct.vipl.spi.Natives;

/** Functions of C that no object of this package calls, by their names in Vipl and Vipx. */
class ExtensionsTest {
  private static final ViAttributes ATTRIBUTES = ViAttributes.rdma(Reliability.DELIVERY, 1 << 16);
  private static final int ROLE_SERVICE = 2;
  private static final long PAGE = 4096;

  private static void connect(Pair pair, Nic nic, Vi client, Vi server) throws Exception {
    NetAddress service = nic.address().with("here");
    CompletableFuture<Void> accepted =
        CompletableFuture.runAsync(
            () -> {
              try (ConnectionRequest request = nic.waitForConnection(service, Pair.PATIENCE_MS)) {
                request.accept(server);
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
            });
    pair.request(client, service);
    accepted.get(Pair.PATIENCE_MS, TimeUnit.MILLISECONDS);
  }

  private static ByteBuffer view(long address, int bytes) {
    return Natives.calls().view(address, bytes).order(ByteOrder.nativeOrder());
  }

  @Test
  void memoryOfTheOtherEndIsMapped() throws Exception {
    try (Pair pair = new Pair();
        Scratch s = new Scratch(64);
        Memory window = pair.near.allocate(2 * PAGE, MemoryAttributes.SHARED);
        Memory plain = pair.near.register(PAGE, MemoryAttributes.SHARED);
        Memory beyond = pair.far.allocate(PAGE, MemoryAttributes.SHARED);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.near.createVi(ATTRIBUTES);
        Vi distant = pair.near.createVi(ATTRIBUTES);
        Vi far = pair.far.createVi(ATTRIBUTES)) {
      final int at = s.room(8);
      long vi = client.handle();
      assertEquals(
          VipConstants.VIP_INVALID_STATE,
          Vipx.vipxMapRemote(vi, window.address(), PAGE, window.handle(), s.address(at)));
      connect(pair, pair.near, client, server);
      pair.connect(distant, far);
      assertEquals(
          0, Vipx.vipxMapRemote(vi, window.address() + PAGE, PAGE, window.handle(), s.address(at)));
      long mapped = s.getLong(at);
      assertNotEquals(window.address() + PAGE, mapped);
      view(mapped, 8).putLong(0, 77);
      assertEquals(77, window.getLongAcquire(PAGE));
      window.setLongRelease(PAGE, 78);
      assertEquals(78, view(mapped, 8).getLong(0));
      assertEquals(0, Vipx.vipxUnmapRemote(vi, mapped));
      assertEquals(VipConstants.VIP_INVALID_PARAMETER, Vipx.vipxUnmapRemote(vi, mapped));
      assertNotEquals(
          0, Vipx.vipxMapRemote(vi, window.address(), 3 * PAGE, window.handle(), s.address(at)));
      assertEquals(
          VipConstants.VIP_ERROR_NOT_SUPPORTED,
          Vipx.vipxMapRemote(vi, plain.address(), PAGE, plain.handle(), s.address(at)));
      assertEquals(
          VipConstants.VIP_ERROR_NOT_SUPPORTED,
          Vipx.vipxMapRemote(
              distant.handle(), beyond.address(), PAGE, beyond.handle(), s.address(at)));
    }
  }

  @Test
  void memoryOfTheProgramBecomesWindowMemory() throws Exception {
    NativeCalls calls = Natives.calls();
    long address = calls.map(4 * PAGE);
    try (Pair pair = new Pair();
        Scratch s = new Scratch(128);
        Memory source = pair.near.register(PAGE, MemoryAttributes.LOCAL);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      final int attributes = s.room(Layout.MEM_SIZE);
      final int handle = s.room(8);
      final long nic = pair.far.handle();
      s.putInt(attributes + Layout.MEM_WRITE, 1);
      view(address, 8).putLong(0, 11);
      assertEquals(
          VipConstants.VIP_INVALID_PARAMETER,
          Vipx.vipxAdoptMem(nic, address + 1, PAGE, s.address(attributes), 1, s.address(handle)));
      assertEquals(
          0,
          Vipx.vipxAdoptMem(
              nic,
              address,
              4 * PAGE,
              s.address(attributes),
              VipConstants.VIPX_ADOPT_NO_WRITERS,
              s.address(handle)));
      int adopted = s.getInt(handle);
      assertEquals(11, view(address, 8).getLong(0));
      pair.connect(client, server);
      source.setLongRelease(0, 12);
      DescriptorRing sends = client.sendRing(1);
      sends.prepareWrite(0, source, 0, 8, address + 3 * PAGE, adopted).post(0);
      Pair.done(sends);
      assertTrue(client.flush(Pair.PATIENCE_MS));
      assertEquals(12, view(address + 3 * PAGE, 8).getLong(0));
      assertEquals(
          VipConstants.VIP_INVALID_PARAMETER, Vipx.vipxFreeMem(nic, address, adopted));
      assertEquals(0, Vipl.vipDeregisterMem(nic, address, adopted));
      assertEquals(12, view(address + 3 * PAGE, 8).getLong(0)); // given back with its content
    }
    assertEquals(0, calls.unmap(address, 4 * PAGE));
  }

  private static void place(Nic nic, BlockingQueue<String> said) {
    try (Scratch s = new Scratch(2 * Layout.PLACE_SIZE)) {
      int at = s.room(Layout.PLACE_SIZE);
      s.putLong(at, Layout.PLACE_SIZE);
      int bad = Vipx.vipxPlaceThread(nic.handle(), ROLE_SERVICE, 1, 1, 0, s.address(at));
      int code = Vipx.vipxPlaceThread(nic.handle(), ROLE_SERVICE, 0, 1, 0, s.address(at));
      said.add(bad + " " + code + " " + s.textOf(at + Layout.PLACE_CPUS, 128));
    }
  }

  /** The first processor that this thread may use. */
  private static String allowed() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/thread-self/status"))) {
      if (line.startsWith("Cpus_allowed_list:")) {
        return line.split("\\s+")[1].split("[,-]")[0];
      }
    }
    throw new AssertionError("no Cpus_allowed_list");
  }

  @Test
  void threadsArePlacedByTheRules() throws Exception {
    BlockingQueue<String> said = new LinkedBlockingQueue<>();
    String cpu = allowed(); // with the first file JDK 17 opens a socket, which stays open
    try (Pair pair = new Pair()) {
      pair.near.setAffinity("service=" + cpu);
      Thread thread = new Thread(() -> place(pair.near, said)); // its binding ends with it
      thread.start();
      assertEquals(
          VipConstants.VIP_INVALID_PARAMETER + " 0 " + cpu,
          said.poll(Pair.PATIENCE_MS, TimeUnit.MILLISECONDS));
      thread.join();
    }
  }

  @Test
  void notifyHandlersAreCalledOnceWithTheDescriptor() throws Exception {
    BlockingQueue<long[]> calls = new LinkedBlockingQueue<>();
    try (Pair pair = new Pair();
        Memory memory = pair.far.register(64, MemoryAttributes.LOCAL);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      long function = Natives.calls().handler(NativeCalls.HANDLER_VI);
      DescriptorRing receives = server.receiveRing(1).prepare(0, memory, 0, 64);
      receives.post(0);
      pair.connect(client, server);
      int kept = Handlers.count();
      long number =
          Handlers.add((nic, vi, descriptor) -> calls.add(new long[] {nic, vi, descriptor}));
      assertEquals(0, Vipl.vipRecvNotify(server.handle(), number, function));
      DescriptorRing sends = client.sendRing(1).prepareEmpty(0);
      long other =
          Handlers.add(
              (nic, vi, descriptor) -> {
                calls.add(new long[] {nic, vi, 0});
                throw new IllegalStateException("thrown by the test: a line in the log");
              });
      sends.post(0);
      long[] got = calls.poll(Pair.PATIENCE_MS, TimeUnit.MILLISECONDS);
      assertEquals(pair.far.handle(), got[0]);
      assertEquals(server.handle(), got[1]);
      assertNotEquals(0, got[2]);
      assertEquals(0, Vipl.vipSendNotify(client.handle(), other, function));
      got = calls.poll(Pair.PATIENCE_MS, TimeUnit.MILLISECONDS);
      assertEquals(client.handle(), got[1]);
      assertEquals(kept, Handlers.count(), "a handler is kept after its call");
      assertTrue(calls.isEmpty());
      assertNotEquals(0, Vipl.vipRecvNotify(0, number, function));
    }
  }
}
