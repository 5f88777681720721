/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Misuse becomes an exception that names what was wrong and what to do. */
class ErrorsTest {
  private static final ViAttributes ATTRIBUTES =
      ViAttributes.messages(Reliability.DELIVERY, 1 << 16);

  private Pair pair;

  @BeforeEach
  void open() {
    pair = new Pair();
  }

  @AfterEach
  void close() {
    pair.close();
  }

  /** Requires an exception of a class whose message has all of the words. */
  private static <T extends VipException> T refused(
      Class<T> type, Executable action, String... words) {
    T problem = assertThrows(type, action);
    for (String word : words) {
      assertTrue(problem.getMessage().contains(word), problem.getMessage() + " lacks " + word);
    }
    assertTrue(problem.remedy().length() > 10, problem.getMessage());
    return problem;
  }

  @Test
  void closedObjectsAreRefused() {
    Vi vi = pair.near.createVi(ATTRIBUTES);
    Memory memory = pair.near.register(4096, MemoryAttributes.LOCAL);
    DescriptorRing ring = vi.sendRing(1).prepare(0, memory, 0, 1);
    DescriptorRing receives = vi.receiveRing(1).prepare(0, memory, 0, 1);
    Cq queue = pair.near.createCq(1);
    Ptag tag = pair.near.createPtag();
    receives.post(0);
    vi.close();
    vi.close();
    memory.close();
    memory.close();
    queue.close();
    queue.close();
    tag.close();
    tag.close();
    refused(VipClosedException.class, vi::state, "VI is closed", "Vi.state");
    refused(VipClosedException.class, vi::disconnect, "closed");
    refused(VipClosedException.class, () -> vi.sendRing(1), "closed");
    refused(VipClosedException.class, () -> ring.post(0), "closed");
    refused(VipClosedException.class, () -> ring.prepareEmpty(0), "closed");
    refused(VipClosedException.class, ring::poll, "closed");
    refused(VipClosedException.class, () -> ring.await(1), "closed");
    refused(VipClosedException.class, () -> receives.spin(10), "closed");
    refused(VipClosedException.class, () -> receives.take(1), "closed");
    refused(VipClosedException.class, () -> memory.buffer(0, 1), "memory is closed");
    refused(VipClosedException.class, () -> memory.getIntAcquire(0), "closed");
    refused(VipClosedException.class, queue::take, "completion queue is closed");
    refused(VipClosedException.class, queue::fd, "closed");
    refused(VipClosedException.class, queue::arm, "closed");
    refused(VipClosedException.class, () -> queue.await(1), "closed");
    Nic nic = Nic.open("host0");
    nic.close();
    nic.close();
    refused(VipClosedException.class, () -> nic.createVi(ATTRIBUTES), "NIC is closed");
    refused(VipClosedException.class, () -> nic.allocate(1, MemoryAttributes.LOCAL), "closed");
    refused(VipClosedException.class, () -> nic.lookup("host0"), "closed");
    refused(VipClosedException.class, nic::counters, "closed");
  }

  @Test
  void foreignAndWrongMemoryIsRefused() {
    try (Vi vi = pair.near.createVi(ATTRIBUTES);
        Memory foreign = pair.far.register(4096, MemoryAttributes.LOCAL);
        Memory own = pair.near.register(4096, MemoryAttributes.LOCAL);
        Memory large = pair.near.register(1 << 20, MemoryAttributes.LOCAL);
        Ptag tag = pair.far.createPtag();
        Cq queue = pair.far.createCq(1)) {
      DescriptorRing ring = vi.sendRing(2);
      refused(
          VipArgumentException.class,
          () -> ring.prepare(0, foreign, 0, 1),
          "not registered with NIC host0",
          "Nic.allocate");
      refused(VipArgumentException.class, () -> ring.prepare(0, own, 4000, 97), "97 bytes", "4096");
      refused(VipArgumentException.class, () -> ring.prepare(0, own, -1, 1), "-1");
      refused(
          VipArgumentException.class,
          () -> ring.prepare(0, large, 0, 65_537),
          "65537 bytes",
          "65536",
          "several parts");
      refused(
          VipArgumentException.class,
          () -> pair.near.register(ByteBuffer.allocate(64), MemoryAttributes.LOCAL),
          "Java heap",
          "allocateDirect");
      refused(
          VipArgumentException.class,
          () -> pair.near.register(0, MemoryAttributes.LOCAL),
          "0 bytes");
      refused(
          VipArgumentException.class,
          () -> pair.near.register(64, new MemoryAttributes(tag, false, false)),
          "NIC host1");
      refused(
          VipArgumentException.class, () -> pair.near.createVi(ATTRIBUTES, queue, null), "host1");
      refused(
          VipArgumentException.class,
          () -> pair.near.createVi(ViAttributes.messages(Reliability.DELIVERY, 1L << 40)),
          "VIP_INVALID_MTU",
          "MaxTransferSize");
      refused(VipArgumentException.class, () -> own.buffer(0, 4097), "4097");
      refused(VipArgumentException.class, () -> own.getLongAcquire(4089), "4089");
    }
  }

  @Test
  void slotsAreHeldToTheirStates() throws Exception {
    try (Memory memory = pair.near.register(4096, MemoryAttributes.LOCAL);
        Vi vi = pair.near.createVi(ATTRIBUTES)) {
      DescriptorRing ring = vi.receiveRing(2);
      refused(VipStateException.class, () -> ring.post(0), "not prepared", "prepare");
      ring.prepare(0, memory, 0, 16);
      refused(VipArgumentException.class, () -> ring.post(0, 17), "17 bytes", "16");
      refused(
          VipArgumentException.class,
          () -> ring.prepareWrite(1, memory, 0, 1, 0, 0),
          "takes messages only");
      refused(VipArgumentException.class, () -> ring.post(2), "slot 2 of 2");
      ring.post(0);
      refused(VipStateException.class, () -> ring.post(0), "slot 0 is in flight");
      refused(VipStateException.class, () -> ring.prepare(0, memory, 0, 1), "in flight");
      refused(VipStateException.class, memory::close, "in flight", "Close the VI first");
      refused(VipStateException.class, ring::close, "in flight");
      refused(VipStateException.class, () -> vi.receiveRing(1), "has a ring");
      assertEquals(DescriptorRing.NONE, ring.poll());
      assertEquals(DescriptorRing.NONE, ring.await(1));
      vi.disconnect(); // an idle VI keeps its receives for the coming connection
      assertEquals(1, ring.outstanding());
      DescriptorRing sends = vi.sendRing(1, 2);
      refused(
          VipArgumentException.class,
          () -> sends.prepare(0, memory, 0, 1).segment(0, memory, 1, 1).segment(0, memory, 2, 1),
          "3 segments of 2");
      sends.close();
      refused(VipArgumentException.class, () -> vi.sendRing(0), "0 slots");
      refused(VipArgumentException.class, () -> vi.sendRing(1, 100_000), "100000 segments");
    }
  }

  @Test
  void connectionsFailWithAReason() throws Exception {
    try (Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server =
            pair.far.createVi(ViAttributes.messages(Reliability.RECEPTION, 1 << 16))) {
      NetAddress nobody = pair.service();
      ViConnectException none =
          refused(
              ViConnectException.class,
              () -> client.connect(pair.near.address(), nobody, 1000),
              "VIP_NO_MATCH",
              "start the server");
      assertEquals(VipConstants.VIP_NO_MATCH, none.code());
      refused(
          ViConnectException.class, () -> pair.near.lookup("nobody-has-this-name"), "nobody-has");
      refused(
          VipArgumentException.class,
          () -> client.connect(pair.near.address(), nobody, 0),
          "VIP_INVALID_PARAMETER");
      assertEquals(null, pair.far.waitForConnection(nobody, 1));
      NetAddress service = pair.service();
      Thread asks = new Thread(() -> rejected(client, service));
      asks.start();
      try (ConnectionRequest request = pair.far.waitForConnection(service, Pair.PATIENCE_MS)) {
        assertEquals(pair.near.address().with("client"), request.remote());
        assertEquals(ATTRIBUTES, request.attributes());
        refused(
            ViConnectException.class,
            () -> request.accept(server),
            "VIP_INVALID_RELIABILITY_LEVEL",
            "same value at both ends");
      }
      asks.join();
      assertEquals(ViState.IDLE, client.state());
    }
  }

  private void rejected(Vi client, NetAddress service) {
    assertThrows(ViConnectException.class, () -> pair.request(client, service));
  }

  @Test
  void messagesWithoutAReceiveBreakTheConnectionWithAReason() throws Exception {
    try (Memory memory = pair.near.register(4096, MemoryAttributes.LOCAL);
        Vi client = pair.near.createVi(ATTRIBUTES);
        Vi server = pair.far.createVi(ATTRIBUTES)) {
      pair.near.onError(error -> {});
      pair.far.onError(error -> {});
      pair.connect(client, server);
      DescriptorRing sends = client.sendRing(4);
      for (int i = 0; i < 4; i++) {
        sends.prepare(i, memory, 0, 4096);
      }
      sends.postMany(0, 4);
      int failed = 0;
      for (int i = 0; i < 4; i++) {
        int slot = sends.await(Pair.PATIENCE_MS);
        if (DescriptorRing.failed(slot)) {
          failed++;
          assertTrue(sends.failure(slot).remedy().length() > 10);
        }
      }
      assertTrue(failed > 0, "a reliable VI noticed nothing");
      long end = System.nanoTime() + Pair.PATIENCE_MS * 1_000_000;
      while (client.state() != ViState.ERROR) {
        assertTrue(System.nanoTime() < end, "the VI does not break");
      }
      client.disconnect();
      server.disconnect();
      pair.near.onError(null);
      pair.far.onError(null);
    }
  }

  @Test
  void nicTellsWhatIsLeft() {
    Nic nic = Nic.open("host0");
    Memory memory = nic.register(64, MemoryAttributes.LOCAL);
    refused(ViResourceException.class, nic::close, "1 of them are left", "must be closed first");
    Cq queue = nic.createCq(4);
    Vi vi = nic.createVi(ATTRIBUTES, queue, null);
    refused(ViResourceException.class, queue::close, "1 of them are left");
    vi.close();
    queue.close();
    memory.close();
    nic.close();
  }

  @Test
  void unknownDeviceIsRefused() {
    NicAttributes limits = pair.near.attributes();
    assertTrue(limits.maxTransferSize() > 0 && limits.maxVi() > 0, limits.toString());
    assertEquals("host1", pair.near.hostName(pair.near.lookup("host1")));
    assertEquals(pair.far.address(), pair.near.lookup("host1"));
    assertTrue(pair.near.route(pair.far.address()).reachable());
    assertEquals(1, pair.near.route(pair.far.address()).hops());
    assertEquals(2, pair.near.discover(1).size());
    assertTrue(pair.near.placement(1).text().length() > 0);
    refused(VipArgumentException.class, () -> pair.near.setAffinity("nonsense=1"), "nonsense");
    refused(VipArgumentException.class, () -> pair.near.placement(7), "role 7");
    refused(VipArgumentException.class, () -> pair.near.createCq(0), "0 entries", "MaxCQEntries");
  }
}
