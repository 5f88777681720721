/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.viaduct.vipl.spi.Handlers;

/** NICs of two neighbours in this process, and VIs of them that are connected. */
final class Pair implements AutoCloseable {
  static final long PATIENCE_MS = 20_000;

  private static final AtomicInteger NUMBERS = new AtomicInteger();
  private static boolean warm;
  private static boolean ready;

  final Nic near;
  final Nic far;
  private final int descriptors;
  private final int handlers;
  private final long leaks;

  Pair() {
    boolean first = !warm;
    if (first) {
      warm = true;
      useAll(); // at first use the library and the virtual machine open some descriptors
    }
    ready |= first;
    descriptors = ready ? openDescriptors().size() : Integer.MAX_VALUE;
    handlers = Handlers.count();
    leaks = Leaks.reported();
    near = Nic.open("host0");
    far = Nic.open("host1");
  }

  private static void useAll() {
    ViAttributes attributes = ViAttributes.rdma(Reliability.DELIVERY, 4096);
    try (Pair pair = new Pair();
        Memory memory = pair.near.register(4096, MemoryAttributes.LOCAL);
        Memory window = pair.far.allocate(4096, MemoryAttributes.SHARED);
        Cq queue = pair.near.createCq(1);
        Vi client = pair.near.createVi(attributes, null, queue);
        Vi server = pair.far.createVi(attributes)) {
      pair.connect(client, server);
      queue.await(1);
      window.buffer();
      memory.buffer();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Descriptors of sockets, events and memory; the files that the virtual machine opens do not
   * count.
   */
  static List<String> openDescriptors() {
    List<String> found = new ArrayList<>();
    File[] links = new File("/proc/self/fd").listFiles();
    for (File link : links == null ? new File[0] : links) {
      try {
        String target = Files.readSymbolicLink(link.toPath()).toString();
        if (!target.startsWith("/") || target.startsWith("/memfd:")) {
          found.add(target);
        }
      } catch (IOException e) {
        continue; // closed meanwhile
      }
    }
    return found;
  }

  /** An address of the far host that nothing else uses. */
  NetAddress service() {
    return far.address().with("service-" + NUMBERS.incrementAndGet());
  }

  void connect(Vi client, Vi server) throws Exception {
    NetAddress service = service();
    CompletableFuture<Void> accepted =
        CompletableFuture.runAsync(
            () -> {
              try (ConnectionRequest request = far.waitForConnection(service, PATIENCE_MS)) {
                request.accept(server);
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
            });
    request(client, service);
    accepted.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
  }

  /** Requests a connection, again and again until the server waits for one. */
  ViAttributes request(Vi client, NetAddress service) throws InterruptedException {
    long end = System.nanoTime() + PATIENCE_MS * 1_000_000;
    while (true) {
      try {
        return client.connect(near.address().with("client"), service, PATIENCE_MS);
      } catch (ViConnectException e) {
        if (e.code() != VipConstants.VIP_NO_MATCH || System.nanoTime() > end) {
          throw e;
        }
      }
    }
  }

  /** Waits for a completion, which must be without error; returns its slot. */
  static int done(DescriptorRing ring) throws InterruptedException {
    int slot = ring.await(PATIENCE_MS);
    if (DescriptorRing.failed(slot)) {
      throw ring.failure(slot);
    }
    assertTrue(slot >= 0, "nothing completed: " + slot);
    return slot;
  }

  /** Closes both NICs, which fails if anything is left, and checks what the process has open. */
  @Override
  public void close() {
    near.close();
    far.close();
    assertEquals(handlers, Handlers.count(), "handlers");
    assertEquals(leaks, Leaks.reported(), "leaks");
    long end = System.nanoTime() + PATIENCE_MS * 1_000_000;
    while (openDescriptors().size() > descriptors && System.nanoTime() < end) {
      Thread.onSpinWait();
    }
    List<String> left = openDescriptors();
    assertTrue(left.size() <= descriptors, left.size() + " of " + descriptors + ": " + left);
  }
}
