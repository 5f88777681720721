/* SPDX-License-Identifier: BSD-2-Clause */
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.viaduct.channel.RdmaChannel;
import org.viaduct.channel.RdmaServerChannel;
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

/** Peers that are no channels or break the protocol, and interrupts just as something arrives. */
final class ChannelFaultsTest extends ChannelTest {
  ChannelFaultsTest(Nic nic, ExecutorService pool) {
    super(nic, pool);
  }

  /** Makes a VI with the attributes that a server of channels requires. */
  private Vi stranger() {
    return nic.createVi(
        new ViAttributes(
            Reliability.DELIVERY, nic.attributes().maxTransferSize(), null, true, false));
  }

  void testAStrangerIsDropped() throws Exception {
    try (RdmaServerChannel listener = RdmaServerChannel.open(nic, "strange", SMALL);
        Vi vi = stranger()) {
      Future<Integer> served =
          pool.submit(
              () -> {
                try (RdmaChannel channel = listener.accept(PATIENCE_S * 1000)) {
                  return channel.receive();
                }
              });
      var receives = vi.receiveRing(4);
      for (int i = 0; i < 4; i++) {
        receives.prepareEmpty(i).post(i);
      }
      connect(vi, nic.address().with("channel/strange"));
      vi.sendRing(1).prepareEmpty(0).post(0);
      end(RdmaChannel.connect(nic, host, "strange", SMALL, PATIENCE_S * 1000));
      check(served.get(PATIENCE_S, TimeUnit.SECONDS) == RdmaChannel.END, "end");
    }
  }

  void testAClientThatSaysNothingIsDropped() throws Exception {
    try (RdmaServerChannel listener = RdmaServerChannel.open(nic, "silent", SMALL);
        Vi vi = stranger()) {
      CountDownLatch connected = new CountDownLatch(1);
      Future<?> served =
          pool.submit(
              () -> {
                while (connected.getCount() > 0) {
                  check(listener.accept(300) == null, "a client");
                }
                return null;
              });
      var receives = vi.receiveRing(4);
      Memory room = nic.register(4096, MemoryAttributes.LOCAL);
      for (int i = 0; i < 4; i++) {
        receives.prepare(i, room, 0, 4096).post(i);
      }
      connect(vi, nic.address().with("channel/silent"));
      connected.countDown();
      served.get(PATIENCE_S, TimeUnit.SECONDS);
      end(vi);
      end(room);
    }
  }

  /** The messages that the test's own peer sends in place of a channel. */
  private interface Marks {
    void send(DescriptorRing ring) throws Exception;
  }

  /** Runs a server that sends messages, and a peer that begins as a channel does. */
  private void withPeer(String service, int messages, Part serve, Marks marks) throws Exception {
    try (RdmaServerChannel listener = RdmaServerChannel.open(nic, service, SMALL);
        Vi vi = stranger()) {
      Future<?> served =
          pool.submit(
              () -> {
                try (RdmaChannel channel = listener.accept(PATIENCE_S * 1000)) {
                  for (int i = 0; i < messages; i++) {
                    channel.sendSegment();
                    channel.send(0);
                  }
                  serve.play(channel);
                }
                return null;
              });
      Memory slot = nic.allocate(4096, MemoryAttributes.WRITABLE);
      Memory hello = nic.register(4096, MemoryAttributes.LOCAL);
      var receives = vi.receiveRing(messages + 8);
      receives.prepare(0, hello, 64, 64).post(0);
      for (int i = 1; i < receives.slots(); i++) {
        receives.prepareEmpty(i).post(i);
      }
      connect(vi, nic.address().with("channel/" + service));
      ByteBuffer b = hello.buffer().order(ByteOrder.LITTLE_ENDIAN);
      b.putInt(0, 0x4E484356).putInt(4, 1).putInt(8, messages + 1).putInt(12, 1);
      b.putLong(16, slot.address()).putInt(24, slot.handle()).putInt(28, 0);
      var sends = vi.sendRing(2);
      sends.prepare(0, hello, 0, 32).post(0);
      for (int i = 0; i <= messages; i++) {
        check(!DescriptorRing.failed(receives.await(PATIENCE_S * 1000)), "a message");
      }
      marks.send(sends.prepareEmpty(1));
      served.get(PATIENCE_S, TimeUnit.SECONDS);
      end(vi);
      end(slot);
      end(hello);
    }
  }

  private static void mark(DescriptorRing ring, int count) throws InterruptedException {
    ring.immediate(1, count);
    ring.post(1);
    while (ring.inFlight(1)) {
      ring.await(PATIENCE_S * 1000);
    }
  }

  void testAMarkThatSaysNothingEndsTheChannel() throws Exception {
    withPeer(
        "marks",
        1,
        c -> thrown(ViConnectException.class, () -> c.receive(PATIENCE_S * 100)),
        ring -> {
          mark(ring, 1);
          mark(ring, 1);
        });
  }

  /** A peer that only releases segments, slowly, has not ended when a receive of 1 s has. */
  void testMarksDoNotProlongAReceive() throws Exception {
    int marks = 200;
    CountDownLatch ended = new CountDownLatch(1);
    withPeer(
        "slow",
        marks,
        c -> {
          check(c.receive(1000) == RdmaChannel.TIMEOUT, "a message");
          ended.countDown();
        },
        ring -> {
          int sent = 0;
          while (!ended.await(50, TimeUnit.MILLISECONDS)) {
            check(sent < marks, "all was released meanwhile");
            mark(ring, ++sent);
          }
        });
  }

  /** A message that arrives between an interrupt and its notice is not lost. */
  void testInterruptsLoseNoMessage() throws Exception {
    int rounds = 8;
    BlockingQueue<Thread> waiting = new LinkedBlockingQueue<>();
    pair(
        SMALL,
        SMALL,
        c -> {
          for (int i = 0; i < rounds; i++) {
            Thread receiver = waiting.take();
            Thread.sleep(70); // so that in most rounds it waits by then; any moment will do
            receiver.interrupt();
            c.sendSegment().putInt(0, i);
            c.send(4);
          }
        },
        c -> {
          for (int i = 0; i < rounds; i++) {
            waiting.add(Thread.currentThread());
            check(receiveInterrupted(c) == 4, "message " + i + " is lost");
            check(c.receiveSegment().getInt(0) == i, "another message than " + i);
          }
        });
  }

  /** Receives the next message in a thread that is interrupted once; returns its length. */
  private static int receiveInterrupted(RdmaChannel channel) throws InterruptedException {
    int got;
    try {
      got = channel.receive(20_000);
    } catch (InterruptedException e) {
      return channel.receive(20_000);
    }
    while (!Thread.interrupted()) {
      Thread.onSpinWait();
    }
    return got;
  }

  /** A client that comes between an interrupt and its notice is served, or waits for the next. */
  void testInterruptsLoseNoClient() throws Exception {
    try (RdmaServerChannel listener = RdmaServerChannel.open(nic, "interrupted", SMALL)) {
      for (int i = 0; i < 4; i++) {
        BlockingQueue<Thread> waiting = new LinkedBlockingQueue<>();
        Future<Integer> served = pool.submit(() -> serveInterrupted(listener, waiting));
        Thread server = waiting.take();
        Thread.sleep(70 + 35 * i); // at different moments of its wait; the test passes at any
        server.interrupt();
        end(RdmaChannel.connect(nic, host, "interrupted", SMALL, 20_000));
        check(served.get(PATIENCE_S, TimeUnit.SECONDS) == RdmaChannel.END, "end");
      }
    }
  }

  private static int serveInterrupted(RdmaServerChannel listener, BlockingQueue<Thread> waiting)
      throws Exception {
    waiting.add(Thread.currentThread());
    RdmaChannel taken;
    try {
      taken = listener.accept();
    } catch (InterruptedException e) {
      taken = listener.accept();
    }
    try (RdmaChannel channel = taken) {
      Thread.interrupted();
      return channel.receive();
    }
  }

  private void connect(Vi vi, NetAddress to) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (true) {
      try {
        vi.connect(nic.address(), to, 60_000);
        return;
      } catch (ViConnectException e) {
        check(e.code() == VipConstants.VIP_NO_MATCH && System.nanoTime() < end, e.toString());
      }
    }
  }
}
