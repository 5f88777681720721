/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

/** Messages between neighbours: content, lengths, immediate data, queues of completions. */
class MessagesTest {
  private static final ViAttributes ATTRIBUTES =
      ViAttributes.messages(Reliability.DELIVERY, 1 << 20);
  private static final int BYTES = 1 << 18;
  private static final int SPINS = 1000;
  private static final int ROUNDS = 5;

  @Test
  void contentArrivesInEverySize() throws Exception {
    try (Pair pair = new Pair();
        Memory from = pair.near.register(BYTES, MemoryAttributes.LOCAL);
        Memory to = pair.far.allocate(BYTES, MemoryAttributes.LOCAL);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      DescriptorRing sends = client.sendRing(1).prepare(0, from, 0, BYTES);
      DescriptorRing receives = server.receiveRing(1).prepare(0, to, 0, BYTES);
      pair.connect(client, server);
      for (int size : new int[] {0, 1, 63, 64, 4096, 65_537, BYTES}) {
        ByteBuffer source = from.buffer();
        for (int i = 0; i < size; i++) {
          source.put(i, (byte) (i * 31 + size));
        }
        receives.post(0);
        sends.post(0, size);
        assertEquals(0, Pair.done(receives));
        assertEquals(0, Pair.done(sends));
        assertEquals(size, receives.length(0));
        assertFalse(receives.hasImmediate(0));
        assertEquals(from.buffer(0, size), to.buffer(0, size));
      }
      assertEquals(7, client.counters().sendsPosted());
      assertEquals(DescriptorRing.EMPTY, sends.poll());
    }
  }

  /** Long receives leave the calls of a VI fast; only long sends make them slower. */
  @Test
  void onlyLongSendsMakeCallsSlower() throws Exception {
    try (Pair pair = new Pair();
        Memory from = pair.near.register(BYTES, MemoryAttributes.LOCAL);
        Memory to = pair.far.register(BYTES, MemoryAttributes.LOCAL);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      DescriptorRing sends = client.sendRing(2).prepare(0, from, 0, BYTES).prepare(1, from, 0, 64);
      DescriptorRing receives =
          server.receiveRing(2).prepare(0, to, 0, BYTES).prepare(1, to, 0, BYTES);
      receives.postMany(0, 2);
      assertEquals(0, server.longInFlight);
      pair.connect(client, server);
      sends.post(0);
      assertEquals(1, client.longInFlight);
      sends.post(1);
      assertEquals(1, client.longInFlight);
      assertEquals(0, Pair.done(receives));
      assertEquals(0, Pair.done(sends));
      assertEquals(0, client.longInFlight);
      assertEquals(1, Pair.done(receives));
      assertEquals(1, Pair.done(sends));
      assertEquals(0, client.longInFlight);
      assertEquals(0, server.longInFlight);
    }
  }

  @Test
  void immediateDataAndSegmentsTravel() throws Exception {
    try (Pair pair = new Pair();
        Memory from = pair.near.register(4096, MemoryAttributes.LOCAL);
        Memory to = pair.far.register(ByteBuffer.allocateDirect(4096), MemoryAttributes.LOCAL);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      from.buffer().putLong(0, 11).putLong(1024, 12).putLong(2048, 13);
      DescriptorRing sends = client.sendRing(2, 3);
      DescriptorRing receives = server.receiveRing(2);
      sends.prepare(0, from, 0, 8).segment(0, from, 1024, 8).segment(0, from, 2048, 8);
      sends.prepareEmpty(1);
      sends.immediate(0, 0x12345678);
      sends.immediate(1, -1);
      receives.prepare(0, to, 0, 16).segment(0, to, 100, 100);
      receives.prepareEmpty(1);
      receives.postMany(0, 2);
      pair.connect(client, server);
      sends.postMany(0, 2);
      assertEquals(0, Pair.done(receives));
      assertEquals(1, Pair.done(receives));
      assertEquals(24, receives.length(0));
      assertTrue(receives.hasImmediate(0));
      assertEquals(0x12345678, receives.immediate(0));
      assertEquals(-1, receives.immediate(1));
      assertEquals(11, to.buffer().getLong(0));
      assertEquals(12, to.buffer().getLong(8));
      assertEquals(13, to.buffer().getLong(100));
    }
  }

  @Test
  void completionQueueTellsViAndSlot() throws Exception {
    try (Pair pair = new Pair();
        Memory data = pair.near.register(4096, MemoryAttributes.LOCAL);
        Memory far = pair.far.register(4096, MemoryAttributes.LOCAL);
        Cq queue = pair.far.createCq(64);
        Vi one = pair.near.createVi(ATTRIBUTES);
        Vi two = pair.near.createVi(ATTRIBUTES);
        Vi first = pair.far.createVi(ATTRIBUTES, queue, queue);
        Vi second = pair.far.createVi(ATTRIBUTES, queue, queue)) {
      for (Vi vi : new Vi[] {first, second}) {
        DescriptorRing receives = vi.receiveRing(4);
        for (int i = 0; i < 4; i++) {
          receives.prepare(i, far, 1024L * i, 1024).post(i);
        }
      }
      pair.connect(one, first);
      pair.connect(two, second);
      DescriptorRing ones = one.sendRing(1).prepare(0, data, 0, 100);
      DescriptorRing twos = two.sendRing(1).prepare(0, data, 0, 200);
      for (int i = 0; i < 4; i++) {
        for (DescriptorRing ring : new DescriptorRing[] {ones, twos}) {
          ring.post(0);
          assertEquals(1, queue.await(Pair.PATIENCE_MS));
          assertSame(ring == ones ? first : second, queue.vi(0));
          assertTrue(queue.isReceive(0));
          assertEquals(i, queue.slot(0));
          assertEquals(ring == ones ? 100 : 200, queue.length(0));
          assertFalse(queue.failed(0));
          Pair.done(ring);
        }
      }
      assertEquals(0, queue.take());
      assertEquals(0, first.ring(true).outstanding());
    }
  }

  /** Sends and receives a stream of messages. */
  private static final class Stream {
    private final DescriptorRing sends;
    private final DescriptorRing receives;
    private int next;

    Stream(Vi client, Vi server, Memory from, Memory to) {
      sends = client.sendRing(64);
      receives = server.receiveRing(64);
      for (int i = 0; i < 64; i++) {
        sends.prepare(i, from, 64L * i, 64);
        receives.prepare(i, to, 64L * i, 64).post(i);
      }
    }

    void run(int count) {
      for (int i = 0; i < count; i += 32) {
        sends.postMany(next, 32);
        next = (next + 32) % 64;
        for (int taken = 0; taken < 32; taken++) {
          int slot = DescriptorRing.NONE;
          while (slot == DescriptorRing.NONE) {
            slot = receives.spin(SPINS);
          }
          receives.post(slot, 64);
        }
        while (sends.outstanding() > 0) {
          sends.take(32);
        }
      }
    }
  }

  @Test
  void nothingIsAllocatedForMessages() throws Exception {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (Pair pair = new Pair();
        Memory from = pair.near.register(4096, MemoryAttributes.LOCAL);
        Memory to = pair.far.register(4096, MemoryAttributes.LOCAL);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      Stream stream = new Stream(client, server, from, to);
      pair.connect(client, server);
      long self = Thread.currentThread().getId();
      stream.run(100_000);
      threads.getThreadAllocatedBytes(self);
      long before = threads.getThreadAllocatedBytes(self);
      long cost = threads.getThreadAllocatedBytes(self) - before; // of the call itself
      long allocated = Long.MAX_VALUE;
      int rounds = 0;
      // The virtual machine allocates some bytes once, when compiled code whose assumptions no
      // longer hold returns to the interpreter; bytes that messages allocate show in every round.
      while (allocated != 0 && rounds < ROUNDS) {
        before = threads.getThreadAllocatedBytes(self);
        stream.run(1_000_000);
        allocated = threads.getThreadAllocatedBytes(self) - before - cost;
        rounds++;
      }
      assertEquals(0, allocated, "bytes for a million messages");
      assertEquals(100_000 + 1_000_000L * rounds, client.counters().sendsPosted());
    }
  }
}
