/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Writes, reads and atomic operations on memory of the other end. */
class RdmaTest {
  private static final ViAttributes ATTRIBUTES = ViAttributes.rdma(Reliability.DELIVERY, 1 << 20);

  @Test
  void writesAndReadsMoveBytes() throws Exception {
    try (Pair pair = new Pair();
        Memory here = pair.near.register(1 << 17, MemoryAttributes.LOCAL);
        Memory there = pair.far.register(1 << 17, MemoryAttributes.SHARED);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      pair.connect(client, server);
      for (int i = 0; i < 1 << 16; i++) {
        here.buffer().put(i, (byte) (i * 7));
      }
      DescriptorRing sends = client.sendRing(2);
      sends.prepareWrite(0, here, 0, 1 << 16, there.address() + 100, there.handle());
      sends.prepareRead(1, here, 1 << 16, 1 << 16, there.address() + 100, there.handle());
      sends.fence(1);
      sends.post(0);
      sends.post(1);
      assertEquals(0, Pair.done(sends));
      assertEquals(1, Pair.done(sends));
      assertEquals(here.buffer(0, 1 << 16), there.buffer(100, 1 << 16));
      assertEquals(here.buffer(0, 1 << 16), here.buffer(1 << 16, 1 << 16));
    }
  }

  @Test
  void windowMemoryIsPolledWithoutCalls() throws Exception {
    try (Pair pair = new Pair();
        Memory here = pair.near.register(4096, MemoryAttributes.LOCAL);
        Memory window = pair.far.allocate(8192, MemoryAttributes.WRITABLE);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      pair.connect(client, server);
      DescriptorRing sends = client.sendRing(2);
      sends.prepareWrite(0, here, 0, 1024, window.address(), window.handle());
      sends.prepareWrite(1, here, 2048, 4, window.address() + 4096, window.handle());
      assertTrue(window.isWindow());
      for (int round = 1; round <= 200; round++) {
        here.buffer().putInt(1020, -round).putInt(2048, round);
        sends.postMany(0, 2);
        long end = System.nanoTime() + Pair.PATIENCE_MS * 1_000_000;
        int spins = 0;
        while (window.getIntAcquire(4096) != round) {
          if (++spins % 1000 == 0) {
            pair.far.progress();
            assertEquals(ViState.CONNECTED, server.state());
            assertTrue(System.nanoTime() < end, "the flag does not come");
          }
        }
        assertEquals(-round, window.buffer().getInt(1020));
        Pair.done(sends);
        Pair.done(sends);
      }
    }
  }

  @Test
  void atomicOperationsReturnTheOldValue() throws Exception {
    try (Pair pair = new Pair();
        Memory here = pair.near.register(4096, MemoryAttributes.LOCAL);
        Memory there = pair.far.allocate(4096, MemoryAttributes.SHARED);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      pair.connect(client, server);
      there.setLongRelease(64, 40);
      DescriptorRing sends = client.sendRing(2, 4);
      sends.prepareAtomic(
          0, VipConstants.VIPX_ATOMIC_ADD, 8, there.address() + 64, there.handle(), here, 8);
      sends.operands(0, 2, 0);
      sends.post(0);
      Pair.done(sends);
      assertEquals(40, here.getLongAcquire(8));
      assertEquals(42, there.getLongAcquire(64));
      sends.prepareAtomic(
          1,
          VipConstants.VIPX_ATOMIC_COMPARE_SWAP,
          8,
          there.address() + 64,
          there.handle(),
          here,
          0);
      sends.operands(1, 7, 41);
      sends.post(1);
      Pair.done(sends);
      assertEquals(42, here.getLongAcquire(0));
      assertEquals(42, there.getLongAcquire(64));
    }
  }

  @Test
  void writeWithImmediateDataUsesAReceive() throws Exception {
    try (Pair pair = new Pair();
        Memory here = pair.near.register(4096, MemoryAttributes.LOCAL);
        Memory there = pair.far.register(4096, MemoryAttributes.WRITABLE);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      DescriptorRing receives = server.receiveRing(1).prepareEmpty(0);
      receives.post(0);
      pair.connect(client, server);
      here.buffer().putInt(0, 99);
      DescriptorRing sends = client.sendRing(1);
      sends.prepareWrite(0, here, 0, 4, there.address() + 8, there.handle()).immediate(0, 5);
      sends.post(0);
      assertEquals(0, Pair.done(receives));
      assertEquals(5, receives.immediate(0));
      assertEquals(
          VipConstants.VIP_STATUS_OP_REMOTE_RDMA_WRITE,
          receives.status(0) & VipConstants.VIP_STATUS_OP_MASK);
      assertEquals(99, there.buffer().getInt(8));
      Pair.done(sends);
    }
  }

  @Test
  void writesIntoClosedMemoryAreRefusedWithAReason() throws Exception {
    try (Pair pair = new Pair();
        Memory here = pair.near.register(4096, MemoryAttributes.LOCAL);
        Memory there = pair.far.register(4096, MemoryAttributes.LOCAL);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      pair.near.onError(error -> {});
      pair.far.onError(error -> {});
      pair.connect(client, server);
      DescriptorRing sends = client.sendRing(1);
      sends.prepareWrite(0, here, 0, 8192 / 2, there.address(), there.handle());
      sends.post(0);
      ViDescriptorException problem =
          assertThrows(ViDescriptorException.class, () -> failing(sends));
      assertFalse(problem.flushed());
      assertTrue(problem.getMessage().contains("RDMA_PROT_ERROR"), problem.getMessage());
      assertTrue(problem.remedy().contains("must both enable"), problem.remedy());
      assertEquals(ViState.ERROR, client.state());
      pair.near.onError(null);
      pair.far.onError(null);
    }
  }

  private static void failing(DescriptorRing ring) throws InterruptedException {
    Pair.done(ring);
  }
}
