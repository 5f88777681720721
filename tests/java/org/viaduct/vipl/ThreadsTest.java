/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Interrupts, closings by other threads, handlers, and memory that a thread still has. */
class ThreadsTest {
  private static final ViAttributes ATTRIBUTES =
      ViAttributes.rdma(Reliability.DELIVERY, 1 << 16);

  /** Runs, in a thread of its own, a call that waits. */
  private static final class Waiter {
    private final CountDownLatch begun = new CountDownLatch(1);
    private final FutureTask<Object> task;
    private final Thread thread;

    Waiter(Callable<Object> call) throws InterruptedException {
      task =
          new FutureTask<>(
              () -> {
                begun.countDown();
                return call.call();
              });
      thread = new Thread(task, "waiter");
      thread.start();
      begun.await();
    }

    /** Waits for the end of the call; returns what it threw. */
    Throwable thrown() throws Exception {
      ExecutionException problem =
          assertThrows(
              ExecutionException.class,
              () -> task.get(Pair.PATIENCE_MS, TimeUnit.MILLISECONDS));
      return problem.getCause();
    }

    void interrupted() throws Exception {
      thread.interrupt();
      Throwable thrown = thrown();
      assertTrue(thrown instanceof InterruptedException, String.valueOf(thrown));
    }

    void closed() throws Exception {
      Throwable thrown = thrown();
      assertTrue(thrown instanceof VipClosedException, String.valueOf(thrown));
    }
  }

  @Test
  void interruptsEndWaits() throws Exception {
    try (Pair pair = new Pair();
        Memory memory = pair.near.register(64, MemoryAttributes.LOCAL);
        Cq queue = pair.near.createCq(4);
        Vi vi = pair.near.createVi(ATTRIBUTES);
        Vi peer = pair.near.createVi(ATTRIBUTES)) {
      DescriptorRing receives = vi.receiveRing(1).prepare(0, memory, 0, 64);
      receives.post(0);
      new Waiter(() -> receives.await(VipConstants.VIP_INFINITE)).interrupted();
      new Waiter(() -> queue.await(VipConstants.VIP_INFINITE)).interrupted();
      NetAddress service = pair.service();
      Waiter serves =
          new Waiter(() -> pair.far.waitForConnection(service, VipConstants.VIP_INFINITE));
      serves.interrupted();
      peer.connectPeer(pair.near.address().with("a"), pair.far.address().with("b"), 100_000);
      new Waiter(peer::connectPeerWait).interrupted();
      assertEquals(ViState.IDLE, peer.state());
      assertEquals(DescriptorRing.NONE, receives.poll());
    }
  }

  @Test
  void closingEndsWaits() throws Exception {
    try (Pair pair = new Pair();
        Memory memory = pair.near.register(64, MemoryAttributes.LOCAL)) {
      Vi vi = pair.near.createVi(ATTRIBUTES);
      DescriptorRing receives = vi.receiveRing(1).prepare(0, memory, 0, 64);
      receives.post(0);
      Waiter waits = new Waiter(() -> endlessly(receives));
      vi.close();
      waits.closed();
      Vi polled = pair.near.createVi(ATTRIBUTES);
      DescriptorRing ring = polled.receiveRing(1).prepare(0, memory, 0, 64);
      ring.post(0);
      Waiter polls = new Waiter(() -> pollEndlessly(ring));
      polled.close();
      polls.closed();
      Cq queue = pair.near.createCq(4);
      Waiter sleeps = new Waiter(() -> queueEndlessly(queue));
      queue.close();
      sleeps.closed();
      Nic third = Nic.open("host1");
      NetAddress service = pair.service();
      Waiter serves = new Waiter(() -> third.waitForConnection(service, VipConstants.VIP_INFINITE));
      third.close();
      serves.closed();
    }
  }

  private static Object endlessly(DescriptorRing ring) throws InterruptedException {
    while (true) {
      ring.await(VipConstants.VIP_INFINITE);
    }
  }

  private static Object pollEndlessly(DescriptorRing ring) {
    while (true) {
      int slot = ring.poll();
      if (slot >= 0) {
        return slot;
      }
    }
  }

  private static Object queueEndlessly(Cq queue) throws InterruptedException {
    while (true) {
      queue.await(VipConstants.VIP_INFINITE);
    }
  }

  @Test
  void wakeupEndsAWaitOnce() throws Exception {
    try (Pair pair = new Pair();
        Cq queue = pair.near.createCq(4)) {
      Waiter sleeps = new Waiter(() -> queue.await(VipConstants.VIP_INFINITE));
      queue.wakeup();
      assertEquals(0, sleeps.task.get(Pair.PATIENCE_MS, TimeUnit.MILLISECONDS));
      assertEquals(0, queue.await(1));
      queue.wakeup();
      assertEquals(0, queue.await(VipConstants.VIP_INFINITE));
    }
  }

  @Test
  void buffersOfClosedMemoryReadZeros() throws Exception {
    try (Pair pair = new Pair();
        Memory source = pair.near.register(4096, MemoryAttributes.LOCAL);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      pair.connect(client, server);
      Memory window = pair.far.allocate(1 << 16, MemoryAttributes.WRITABLE);
      Memory own = pair.far.register(1 << 16, MemoryAttributes.WRITABLE);
      ByteBuffer late = window.buffer();
      ByteBuffer plain = own.buffer();
      source.buffer().putInt(0, 77);
      DescriptorRing sends = client.sendRing(2);
      sends.prepareWrite(0, source, 0, 4, window.address(), window.handle());
      sends.prepareWrite(1, source, 0, 4, own.address(), own.handle());
      sends.postMany(0, 2);
      Pair.done(sends);
      Pair.done(sends);
      assertTrue(client.flush(Pair.PATIENCE_MS));
      assertEquals(77, late.getInt(0));
      assertEquals(77, plain.getInt(0));
      window.close();
      own.close();
      assertEquals(0, late.getInt(0));
      assertEquals(0, plain.getInt(0));
      late.putInt(65_532, 1);
      assertEquals(1, late.getInt(65_532));
      try (Memory next = pair.far.allocate(1 << 16, MemoryAttributes.WRITABLE)) {
        late.putInt(0, 5);
        assertEquals(0, next.buffer().getInt(0)); // the pages are not shared with the new owner
      }
    }
  }

  @Test
  void handlersAreCalled() throws Exception {
    BlockingQueue<AsyncError> errors = new LinkedBlockingQueue<>();
    BlockingQueue<Vi> entries = new LinkedBlockingQueue<>();
    try (Pair pair = new Pair();
        Memory memory = pair.far.register(64, MemoryAttributes.LOCAL);
        Cq queue = pair.far.createCq(4);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES, null, queue)) {
      pair.far.onError(
          error -> {
            errors.add(error);
            throw new IllegalStateException("thrown by the test: a line in the log");
          });
      pair.connect(client, server);
      DescriptorRing receives = server.receiveRing(2);
      receives.prepare(0, memory, 0, 64).post(0);
      queue.onEntry((vi, receive) -> entries.add(vi));
      DescriptorRing sends = client.sendRing(1).prepareEmpty(0);
      sends.post(0);
      Pair.done(sends);
      assertSame(server, entries.poll(Pair.PATIENCE_MS, TimeUnit.MILLISECONDS));
      assertEquals(0, receives.poll());
      queue.onEntry((vi, receive) -> entries.add(vi)); // the end of the queue cancels it
      client.disconnect();
      AsyncError lost = errors.poll(Pair.PATIENCE_MS, TimeUnit.MILLISECONDS);
      assertEquals("CONN_LOST", lost.name());
      assertSame(server, lost.vi());
    }
    assertTrue(entries.isEmpty());
  }

  @Test
  void leaksAreReportedAndNotClosed() throws Exception {
    long before = Leaks.reported();
    Nic nic = Nic.open("host0");
    long handle = forget(nic);
    long end = System.nanoTime() + Pair.PATIENCE_MS * 1_000_000;
    while (Leaks.reported() == before && System.nanoTime() < end) {
      System.gc();
      Thread.onSpinWait();
    }
    assertEquals(before + 1, Leaks.reported());
    assertEquals(VipConstants.VIP_SUCCESS, Vipl.vipDestroyPtag(nic.handle(), handle));
    nic.ended();
    nic.close();
    assertFalse(handle == 0);
  }

  private static long forget(Nic nic) {
    return nic.createPtag().handle();
  }
}
