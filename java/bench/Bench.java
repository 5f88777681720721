/* SPDX-License-Identifier: BSD-2-Clause */

import java.util.Arrays;
import java.util.Locale;
import org.viaduct.vipl.DescriptorRing;
import org.viaduct.vipl.Memory;
import org.viaduct.vipl.MemoryAttributes;
import org.viaduct.vipl.NetAddress;
import org.viaduct.vipl.Nic;
import org.viaduct.vipl.Reliability;
import org.viaduct.vipl.Vi;
import org.viaduct.vipl.ViAttributes;
import org.viaduct.vipl.ViConnectException;
import org.viaduct.vipl.VipConstants;

/** Ping-pong and stream between two processes, as vi_lat and vi_bw measure; bench.py runs it. */
public final class Bench {
  private static final String USAGE =
      "usage: Bench server|client lat|bw HOST SIZES ITERATIONS WARMUP BATCH";
  /** Few descriptors for ping-pong, as vi_lat has them: they stay in the cache. */
  private static final int LATENCY_SLOTS = 4;

  private static final int WINDOW = 64;
  private static final int HALF = WINDOW / 2;
  private static final int ACK = 4;
  private static final int SPINS = 1000;
  private static final long PATIENCE_NS = 20_000_000_000L;
  private static final long MAX = 1 << 20;

  private final boolean server;
  private final int slots;
  private final Memory data;
  private final DescriptorRing sends;
  private final DescriptorRing receives;
  private int nextSend;
  private int nextReceive;

  private Bench(boolean server, Vi vi, Memory data, int slots) {
    this.server = server;
    this.data = data;
    this.slots = slots;
    sends = vi.sendRing(slots);
    receives = vi.receiveRing(slots);
    for (int i = 0; i < slots; i++) {
      receives.prepare(i, data, MAX, MAX);
    }
    nextReceive = slots - 1;
    receives.postMany(0, server ? slots : slots - 1);
  }

  /**
   * Runs one end.
   *
   * @param args what USAGE says
   * @throws InterruptedException never
   */
  public static void main(String[] args) throws InterruptedException {
    if (args.length != 7) {
      System.err.println(USAGE);
      System.exit(2);
    }
    boolean server = args[0].equals("server");
    int[] sizes = Arrays.stream(args[3].split(",")).mapToInt(Integer::parseInt).toArray();
    try (Nic nic = Nic.open();
        Memory data = nic.register(2 * MAX, MemoryAttributes.LOCAL);
        Vi vi = nic.createVi(ViAttributes.messages(Reliability.DELIVERY, MAX))) {
      int slots = args[1].equals("lat") ? LATENCY_SLOTS : WINDOW;
      Bench bench = new Bench(server, vi, data, slots);
      connect(server, nic, vi, nic.lookup(args[2]).with("java-bench"));
      for (int size : sizes) {
        int iterations = Integer.parseInt(args[4]);
        int warmup = Integer.parseInt(args[5]);
        int batch = Integer.parseInt(args[6]);
        if (args[1].equals("lat")) {
          bench.latency(size, iterations, warmup, batch);
        } else {
          bench.stream(size, iterations, warmup);
        }
      }
      vi.disconnect();
    }
  }

  private static void connect(boolean server, Nic nic, Vi vi, NetAddress address)
      throws InterruptedException {
    if (server) {
      nic.waitForConnection(address, 20_000).accept(vi);
      return;
    }
    long end = System.nanoTime() + PATIENCE_NS;
    while (true) {
      try {
        vi.connect(nic.address().with("client"), address, 20_000);
        return;
      } catch (ViConnectException e) {
        if (e.code() != VipConstants.VIP_NO_MATCH || System.nanoTime() > end) {
          throw e;
        }
      }
    }
  }

  /** Takes the next message; its slot is the next receive, since they complete in order. */
  private void receive() {
    int slot = receives.spin(SPINS);
    if (slot < 0) {
      slot = receiveLong();
    }
    nextReceive = slot;
  }

  private int receiveLong() {
    long end = System.nanoTime() + PATIENCE_NS;
    int slot = DescriptorRing.NONE;
    while (slot == DescriptorRing.NONE) {
      slot = receives.spin(SPINS);
      if (System.nanoTime() > end) {
        throw new IllegalStateException("the peer is silent");
      }
    }
    if (slot < 0) {
      throw receives.failure(slot);
    }
    return slot;
  }

  private void reap(int most) {
    while (sends.outstanding() > most) {
      int taken = sends.take(WINDOW);
      for (int i = 0; i < taken; i++) {
        if (DescriptorRing.failed(sends.taken(i))) {
          throw sends.failure(sends.taken(i));
        }
      }
    }
  }

  /** Sends, then does what can wait: gives the last receive back, and takes completed sends. */
  private void send() {
    sends.post(nextSend);
    nextSend = nextSend + 1 & slots - 1;
    receives.post(nextReceive);
    if (sends.outstanding() == slots) {
      reap(0);
    }
  }

  private void resize(int size) {
    reap(0);
    for (int i = 0; i < slots; i++) {
      sends.prepare(i, data, 0, size);
    }
  }

  private void latency(int size, int iterations, int warmup, int batch) {
    resize(size);
    double[] samples = new double[iterations / batch];
    for (int i = -warmup / batch; i < samples.length; i++) {
      long begin = System.nanoTime();
      exchange(batch);
      if (i >= 0) {
        samples[i] = (System.nanoTime() - begin) / 2000.0 / batch;
      }
    }
    reap(0);
    if (!server) {
      Arrays.sort(samples);
      System.out.printf(
          Locale.ROOT,
          "{\"size\": %d, \"min\": %.4f, \"p50\": %.4f, \"p99\": %.4f}%n",
          size,
          samples[0],
          samples[samples.length / 2],
          samples[(int) (samples.length * 0.99)]);
    }
  }

  private void exchange(int count) {
    for (int i = 0; i < count; i++) {
      if (server) {
        receive();
        send();
      } else {
        send();
        receive();
      }
    }
  }

  /** Half windows of messages; the other end acknowledges each. */
  private void stream(int size, int messages, int warmup) {
    resize(server ? ACK : size);
    halves(warmup / HALF);
    long begin = System.nanoTime();
    halves(messages / HALF);
    double seconds = (System.nanoTime() - begin) / 1e9;
    reap(0);
    if (!server) {
      double rate = (double) messages / HALF * HALF * size / seconds / 1e6;
      System.out.printf(Locale.ROOT, "{\"size\": %d, \"mb_s\": %.1f}%n", size, rate);
    }
  }

  private void halves(int count) {
    for (int i = 0; i < count; i++) {
      if (server) {
        serveHalf();
      } else {
        if (i >= 2) {
          receive();
          receives.post(nextReceive);
        }
        reap(HALF);
        sends.postMany(nextSend, HALF);
        nextSend = nextSend + HALF & WINDOW - 1;
      }
    }
    for (int i = 0; !server && i < Math.min(count, 2); i++) {
      receive();
      receives.post(nextReceive);
    }
  }

  private void serveHalf() {
    int first = -1;
    for (int have = 0; have < HALF; have++) {
      receive();
      first = first < 0 ? nextReceive : first;
    }
    receives.postMany(first, HALF);
    sends.post(nextSend);
    nextSend = nextSend + 1 & WINDOW - 1;
    reap(HALF);
  }
}
