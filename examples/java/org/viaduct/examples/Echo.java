/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.examples;

import java.nio.ByteBuffer;
import org.viaduct.channel.RdmaChannel;
import org.viaduct.channel.RdmaServerChannel;
import org.viaduct.vipl.Nic;

/**
 * Messages there and back: {@code Echo CLIENTS} serves so many, a thread for each, and {@code Echo
 * HOST BYTES COUNT} measures.
 */
public final class Echo {
  private static final int WARM = 20_000;

  private Echo() {}

  /**
   * Serves or measures.
   *
   * @param args as above
   * @throws InterruptedException never: nothing interrupts the threads
   */
  public static void main(String[] args) throws InterruptedException {
    if (args.length != 1 && args.length != 3) {
      System.err.println("usage: Echo CLIENTS | Echo HOST BYTES COUNT");
      System.exit(2);
    }
    try (Nic nic = Nic.open()) {
      if (args.length == 1) {
        serve(nic, Integer.parseInt(args[0]));
      } else {
        ask(nic, args[0], Integer.parseInt(args[1]), Integer.parseInt(args[2]));
      }
    }
  }

  private static void serve(Nic nic, int clients) throws InterruptedException {
    Thread[] threads = new Thread[clients];
    try (RdmaServerChannel server = RdmaServerChannel.open(nic, "echo")) {
      for (int i = 0; i < clients; i++) {
        RdmaChannel client = server.accept();
        threads[i] = new Thread(() -> echo(client));
        threads[i].start();
      }
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static void echo(RdmaChannel client) {
    try (client) {
      for (int bytes = client.receive(); bytes != RdmaChannel.END; bytes = client.receive()) {
        client.sendSegment().put(client.receiveSegment());
        client.send(bytes);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void ask(Nic nic, String host, int bytes, int count) throws InterruptedException {
    long[] times = new long[count];
    try (RdmaChannel server = RdmaChannel.connect(nic, host, "echo")) {
      for (int i = -WARM; i < count; i++) {
        long start = System.nanoTime();
        ByteBuffer out = server.sendSegment();
        if (bytes >= 8) {
          out.putLong(0, i);
        }
        server.send(bytes);
        int got = server.receive();
        if (got != bytes || bytes >= 8 && server.receiveSegment().getLong(0) != i) {
          throw new IllegalStateException("message " + i + " came back as another");
        }
        if (i >= 0) {
          times[i] = System.nanoTime() - start;
        }
      }
    }
    java.util.Arrays.sort(times);
    System.out.printf(
        "%d bytes, half of a round trip: %.2f us at least, %.2f us median, %.2f us of 99 %%%n",
        bytes, times[0] / 2e3, times[count / 2] / 2e3, times[count * 99 / 100] / 2e3);
  }
}
