/* SPDX-License-Identifier: BSD-2-Clause */
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.viaduct.channel.ChannelOptions;
import org.viaduct.channel.RdmaChannel;
import org.viaduct.channel.RdmaServerChannel;
import org.viaduct.vipl.Nic;
import org.viaduct.vipl.Reliability;
import org.viaduct.vipl.ViConnectException;
import org.viaduct.vipl.VipArgumentException;
import org.viaduct.vipl.VipClosedException;
import org.viaduct.vipl.VipException;
import org.viaduct.vipl.VipStateException;

/** Channels of two threads of a process. Each method whose name begins with «test» is a test. */
public class ChannelTest {
  static final long PATIENCE_S = 120;
  static final ChannelOptions SMALL = ChannelOptions.DEFAULT.slots(4).slotBytes(8192);

  final Nic nic;
  final String host;
  final ExecutorService pool;
  private int services;

  ChannelTest(Nic nic, ExecutorService pool) {
    this.nic = nic;
    this.host = nic.hostName(nic.address());
    this.pool = pool;
  }

  /** The part of the test that one end plays. */
  interface Part {
    void play(RdmaChannel channel) throws Exception;
  }

  void pair(ChannelOptions server, ChannelOptions client, Part serve, Part ask)
      throws Exception {
    String service = "test" + services++;
    try (RdmaServerChannel listener = RdmaServerChannel.open(nic, service, server)) {
      Future<Void> served =
          pool.submit(
              () -> {
                try (RdmaChannel channel = listener.accept(PATIENCE_S * 1000)) {
                  check(channel != null, "no client");
                  serve.play(channel);
                }
                return null;
              });
      Future<Void> asked =
          pool.submit(
              () -> {
                try (RdmaChannel channel =
                    RdmaChannel.connect(nic, host, service, client, PATIENCE_S * 1000)) {
                  ask.play(channel);
                }
                return null;
              });
      asked.get(PATIENCE_S, TimeUnit.SECONDS);
      served.get(PATIENCE_S, TimeUnit.SECONDS);
    }
  }

  static void check(boolean is, String what) {
    if (!is) {
      throw new AssertionError(what);
    }
  }

  static <T extends Throwable> T thrown(Class<T> kind, Callable<?> call) {
    try {
      call.call();
    } catch (Throwable e) {
      check(kind.isInstance(e), "expected " + kind + ", got " + e);
      return kind.cast(e);
    }
    throw new AssertionError("expected " + kind);
  }

  static void end(AutoCloseable object) throws Exception {
    object.close();
  }

  private static void fill(ByteBuffer to, int bytes, long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < bytes; i++) {
      to.put(i, (byte) random.nextInt());
    }
  }

  private static void compare(ByteBuffer got, int bytes, long seed) {
    check(got.remaining() == bytes, got.remaining() + " bytes, not " + bytes);
    Random random = new Random(seed);
    for (int i = 0; i < bytes; i++) {
      byte want = (byte) random.nextInt();
      check(got.get(i) == want, "byte " + i + " of message " + seed + " is wrong");
    }
  }

  private static void sendAll(RdmaChannel channel, int count, long seed) throws Exception {
    Random lengths = new Random(seed);
    for (int i = 0; i < count; i++) {
      int bytes = lengths.nextInt(channel.maxBytes() + 1);
      fill(channel.sendSegment(), bytes, seed + i);
      channel.send(bytes);
    }
  }

  private static void receiveAll(RdmaChannel channel, int count, long seed, int max)
      throws Exception {
    Random lengths = new Random(seed);
    for (int i = 0; i < count; i++) {
      int bytes = lengths.nextInt(max + 1);
      check(channel.receive() == bytes, "message " + i + " has another length");
      compare(channel.receiveSegment(), bytes, seed + i);
    }
    check(channel.receive() == RdmaChannel.END, "more than was sent");
    check(channel.receive() == RdmaChannel.END, "the end is not there twice");
  }

  void testStreamsOfAllLengths() throws Exception {
    int[][] shapes = {{1, 1}, {1, 5}, {2, 3}, {3, 2}, {8, 1}, {70, 9}};
    for (int[] shape : shapes) {
      for (Reliability level : new Reliability[] {Reliability.DELIVERY, Reliability.RECEPTION}) {
        ChannelOptions a = SMALL.reliability(level).slots(shape[0]);
        ChannelOptions b = SMALL.reliability(level).slots(shape[1]);
        pair(a, b, c -> receiveAll(c, 300, 1, 8192), c -> sendAll(c, 300, 1));
        pair(a, b, c -> sendAll(c, 300, 2), c -> receiveAll(c, 300, 2, 8192));
      }
    }
  }

  void testTheShorterSlotCounts() throws Exception {
    pair(
        SMALL.slotBytes(100),
        SMALL,
        c -> receiveAll(c, 200, 5, 100),
        c -> {
          check(c.maxBytes() == 100, "maxBytes");
          VipArgumentException e = thrown(VipArgumentException.class, () -> {
            c.send(101);
            return null;
          });
          check(e.getMessage().contains("slotBytes"), e.getMessage());
          sendAll(c, 200, 5);
        });
  }

  void testLongMessages() throws Exception {
    ChannelOptions options = ChannelOptions.DEFAULT.slots(2).slotBytes(3 << 20);
    pair(options, options, c -> receiveAll(c, 12, 9, 3 << 20), c -> sendAll(c, 12, 9));
  }

  void testThereAndBack() throws Exception {
    pair(
        SMALL,
        SMALL.slots(1),
        c -> {
          while (c.receive() != RdmaChannel.END) {
            int bytes = c.receiveSegment().remaining();
            c.sendSegment().put(c.receiveSegment());
            c.send(bytes);
          }
        },
        c -> {
          for (int i = 0; i < 3000; i++) {
            fill(c.sendSegment(), i % 70, i);
            c.send(i % 70);
            check(c.receive() == i % 70, "length");
            compare(c.receiveSegment(), i % 70, i);
          }
        });
  }

  void testASenderWaitsForSlots() throws Exception {
    CountDownLatch full = new CountDownLatch(1);
    pair(
        SMALL,
        SMALL,
        c -> {
          full.await();
          receiveAll(c, 12, 3, 8192);
        },
        c -> {
          check(c.slots() == 4, "slots");
          sendAll(c, 4, 3);
          Thread sender = Thread.currentThread();
          Thread other = new Thread(sender::interrupt);
          other.start();
          thrown(InterruptedException.class, () -> {
            c.sendSegment();
            c.send(1);
            return null;
          });
          other.join();
          full.countDown();
          Random lengths = new Random(3);
          for (int i = 0; i < 12; i++) {
            int bytes = lengths.nextInt(8193);
            if (i >= 4) {
              fill(c.sendSegment(), bytes, 3 + i);
              c.send(bytes);
            }
          }
          c.sendDone();
        });
  }

  void testTimeoutAndInterrupt() throws Exception {
    CountDownLatch done = new CountDownLatch(1);
    pair(
        SMALL,
        SMALL,
        c -> done.await(),
        c -> {
          check(c.receive(0) == RdmaChannel.TIMEOUT, "0 ms");
          check(c.receive(30) == RdmaChannel.TIMEOUT, "30 ms");
          thrown(VipStateException.class, c::receiveSegment);
          Thread receiver = Thread.currentThread();
          Thread other = new Thread(receiver::interrupt);
          other.start();
          thrown(InterruptedException.class, c::receive);
          other.join();
          done.countDown();
          check(c.receive() == RdmaChannel.END, "end");
        });
  }

  void testAbortFromAnotherThread() throws Exception {
    pair(
        SMALL,
        SMALL,
        c -> thrown(ViConnectException.class, c::receive),
        c -> {
          Thread other = new Thread(c::abort);
          other.start();
          thrown(VipException.class, c::receive);
          other.join();
          end(c);
          thrown(VipClosedException.class, c::receive);
          thrown(VipClosedException.class, c::sendSegment);
        });
  }

  void testAPeerThatClosedIsToldFrom() throws Exception {
    pair(
        SMALL,
        SMALL,
        c -> {
          c.sendSegment();
          c.send(7);
        },
        c -> {
          check(c.receive() == 7, "length");
          check(c.receive() == RdmaChannel.END, "end");
          thrown(ViConnectException.class, () -> {
            c.send(1);
            return null;
          });
        });
  }

  void testOptionsAreChecked() {
    thrown(VipArgumentException.class, () -> ChannelOptions.DEFAULT.slots(0));
    thrown(VipArgumentException.class, () -> ChannelOptions.DEFAULT.slotBytes(-1));
    thrown(VipArgumentException.class, () -> SMALL.reliability(Reliability.UNRELIABLE));
    ViConnectException e =
        thrown(
            ViConnectException.class,
            () -> RdmaChannel.connect(nic, host, "nobody", SMALL, 50));
    check(e.getMessage().contains("NO_MATCH"), e.getMessage());
    thrown(ViConnectException.class, () -> RdmaChannel.connect(nic, "nowhere", "x", SMALL, 50));
  }

  void testAcceptEnds() throws Exception {
    try (RdmaServerChannel listener = RdmaServerChannel.open(nic, "ends")) {
      check(listener.accept(20) == null, "a client");
      Future<?> waits = pool.submit(() -> thrown(VipClosedException.class, listener::waitClient));
      end(listener);
      waits.get(PATIENCE_S, TimeUnit.SECONDS);
    }
  }

  /** Calls that have to sleep allocate, so the round with the least counts. */
  void testNothingIsAllocated() throws Exception {
    var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    int rounds = 20;
    int count = 50_000;
    pair(
        SMALL,
        SMALL,
        c -> {
          for (int i = 0; i < rounds * count; i++) {
            c.receive();
          }
          check(c.receive() == RdmaChannel.END, "end");
        },
        c -> {
          long least = Long.MAX_VALUE;
          for (int round = 0; round < rounds; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < count; i++) {
              c.sendSegment();
              c.send(64);
            }
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
          }
          check(least < count, least + " bytes allocated for " + count + " messages");
        });
  }

  /** Platform threads, or virtual ones; null if this Java, before 21, has none. */
  private static ExecutorService pool(boolean virtual) throws Exception {
    if (!virtual) {
      return Executors.newCachedThreadPool();
    }
    try {
      Method make = Executors.class.getMethod("newVirtualThreadPerTaskExecutor");
      return (ExecutorService) make.invoke(null);
    } catch (NoSuchMethodException e) {
      return null;
    }
  }

  private static int runAll(Nic nic, boolean virtual, List<String> names) throws Exception {
    String kind = virtual ? "virtual threads" : "platform threads";
    ExecutorService pool = pool(virtual);
    if (pool == null) {
      System.out.println("skipped " + kind + ": Java " + System.getProperty("java.version"));
      return 0;
    }
    int failed = runAll(new ChannelTest(nic, pool), kind, names);
    failed += runAll(new ChannelFaultsTest(nic, pool), kind, names);
    pool.shutdownNow();
    return failed;
  }

  private static int runAll(ChannelTest test, String kind, List<String> names) throws Exception {
    int failed = 0;
    for (Method method : test.getClass().getDeclaredMethods()) {
      String name = method.getName();
      if (!name.startsWith("test") || !names.isEmpty() && !names.contains(name)) {
        continue;
      }
      try {
        method.invoke(test);
        System.out.println("ok " + name + ", " + kind);
      } catch (InvocationTargetException e) {
        System.out.println("FAILED " + name + ", " + kind);
        e.getCause().printStackTrace(System.out);
        failed++;
      }
    }
    return failed;
  }

  /**
   * Runs the tests.
   *
   * @param args names of tests; none: all
   * @throws Exception if the fabric cannot be reached
   */
  public static void main(String[] args) throws Exception {
    int failed = 0;
    try (Nic nic = Nic.open()) {
      for (boolean virtual : new boolean[] {false, true}) {
        failed += runAll(nic, virtual, List.of(args));
      }
    }
    System.exit(failed == 0 ? 0 : 1);
  }
}
