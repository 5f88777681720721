/* SPDX-License-Identifier: BSD-2-Clause */

import org.viaduct.vipl.DescriptorRing;
import org.viaduct.vipl.Memory;
import org.viaduct.vipl.MemoryAttributes;
import org.viaduct.vipl.NetAddress;
import org.viaduct.vipl.Nic;
import org.viaduct.vipl.Reliability;
import org.viaduct.vipl.Vi;
import org.viaduct.vipl.ViAttributes;
import org.viaduct.vipl.ViConnectException;

/** Collects garbage while another thread polls; safepoint.py reads the log of the JVM. */
public final class Safepoint {
  private static final int SLOTS = 16;
  private static final int BYTES = 64 << 10;
  private static volatile boolean stop;
  private static volatile long received;

  private Safepoint() {}

  /** A step that a thread repeats. */
  private interface Step {
    void run();
  }

  /**
   * Runs it.
   *
   * @param args what is polled: {@code memory} without a call, {@code idle} a VI to which nobody
   *     sends, {@code stream} one that gets messages of 64 KiB; and how many collections
   * @throws InterruptedException never
   */
  public static void main(String[] args) throws InterruptedException {
    Nic near = Nic.open("host0");
    Nic far = Nic.open("host1");
    Memory from = near.register(BYTES, MemoryAttributes.LOCAL);
    Memory to = far.register(BYTES, MemoryAttributes.LOCAL);
    Vi client = near.createVi(ViAttributes.messages(Reliability.DELIVERY, BYTES));
    Vi server = far.createVi(ViAttributes.messages(Reliability.DELIVERY, BYTES));
    connect(near, far, client, server);
    DescriptorRing sends = client.sendRing(SLOTS);
    DescriptorRing receives = server.receiveRing(SLOTS);
    for (int i = 0; i < SLOTS; i++) {
      sends.prepare(i, from, 0, BYTES);
      receives.prepare(i, to, 0, BYTES);
    }
    receives.postMany(0, SLOTS);
    repeat(args[0].equals("memory") ? () -> to.getIntAcquire(0) : () -> receive(receives));
    if (args[0].equals("stream")) {
      long[] sent = {0};
      repeat(() -> send(sends, sent));
    }
    Thread.sleep(1500);
    for (int i = 0; i < Integer.parseInt(args[1]); i++) {
      Thread.sleep(4);
      System.gc();
    }
    stop = true;
    Runtime.getRuntime().halt(0); // the threads still use what would be closed
  }

  private static void connect(Nic near, Nic far, Vi client, Vi server)
      throws InterruptedException {
    NetAddress service = far.address().with("safepoint");
    Thread accepts =
        new Thread(
            () -> {
              try {
                far.waitForConnection(service, 20_000).accept(server);
              } catch (InterruptedException e) {
                throw new IllegalStateException(e);
              }
            });
    accepts.start();
    for (boolean connected = false; !connected; ) {
      try {
        client.connect(near.address().with("client"), service, 20_000);
        connected = true;
      } catch (ViConnectException e) {
        Thread.sleep(5); // nobody waits yet
      }
    }
    accepts.join();
  }

  private static void repeat(Step step) {
    Thread thread =
        new Thread(
            () -> {
              try {
                while (!stop) {
                  step.run();
                }
              } catch (RuntimeException e) {
                e.printStackTrace();
                Runtime.getRuntime().halt(1);
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  private static void receive(DescriptorRing receives) {
    int slot = receives.spin(1000);
    if (DescriptorRing.failed(slot)) {
      throw receives.failure(slot);
    }
    if (slot >= 0) {
      receives.post(slot);
      received++;
    }
  }

  private static void send(DescriptorRing sends, long[] sent) {
    if (sent[0] - received >= SLOTS - 4) {
      Thread.onSpinWait();
      return;
    }
    while (sends.outstanding() >= SLOTS / 2) {
      sends.take(SLOTS);
    }
    sends.post((int) (sent[0]++ % SLOTS));
  }
}
