/* SPDX-License-Identifier: BSD-2-Clause */
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ProcessBuilder.Redirect;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.viaduct.channel.ChannelOptions;
import org.viaduct.channel.RdmaChannel;
import org.viaduct.channel.RdmaServerChannel;
import org.viaduct.vipl.ConnectionRequest;
import org.viaduct.vipl.Cq;
import org.viaduct.vipl.DescriptorRing;
import org.viaduct.vipl.Memory;
import org.viaduct.vipl.MemoryAttributes;
import org.viaduct.vipl.NetAddress;
import org.viaduct.vipl.Nic;
import org.viaduct.vipl.Reliability;
import org.viaduct.vipl.Vi;
import org.viaduct.vipl.ViAttributes;
import org.viaduct.vipl.ViConnectException;
import org.viaduct.vipl.VipClosedException;
import org.viaduct.vipl.VipConstants;
import org.viaduct.vipl.VipException;

/**
 * Everything at once, for a long time: messages whose content is checked, closings, interrupts and
 * aborts by other threads, peers that are killed, and garbage. run_soak.py runs it.
 */
public final class Soak {
  private static final long PATIENCE_MS = 120_000;
  private static final long ROUND_MS = 10_000;
  private static final File NOTHING = new File("/dev/null");
  private static final ChannelOptions OPTIONS = ChannelOptions.DEFAULT.slots(4).slotBytes(1 << 17);
  private static final ViAttributes ATTRIBUTES = ViAttributes.rdma(Reliability.DELIVERY, 1 << 20);
  private static final Pattern WINDOW = Pattern.compile("window (\\d+) of");

  /** Counts of events, over all rounds. */
  private static final Map<String, AtomicInteger> COUNTS = new TreeMap<>();

  private final Nic near;
  private final Nic far;
  private final long end = System.nanoTime() + ROUND_MS * 1_000_000;
  private final AtomicReference<Throwable> problem = new AtomicReference<>();
  private final AtomicInteger services = new AtomicInteger();
  private final Random seeds;

  private Soak(Nic near, Nic far, Random seeds) {
    this.near = near;
    this.far = far;
    this.seeds = seeds;
  }

  /** A worker does one thing again and again. */
  private interface Work {
    void once(Random random) throws Exception;
  }

  /** An action that may fail because another thread ended it. */
  private interface Step {
    void run() throws Exception;
  }

  static {
    for (String name : List.of(
        "messages", "streams", "aborts", "interrupts", "closings", "kills", "collections")) {
      COUNTS.put(name, new AtomicInteger());
    }
  }

  private static void count(String name) {
    COUNTS.get(name).incrementAndGet();
  }

  private static void check(boolean is, String what) {
    if (!is) {
      throw new AssertionError(what);
    }
  }

  private Thread thread(String name, Step step) {
    Thread thread =
        new Thread(
            () -> {
              try {
                step.run();
              } catch (Throwable e) {
                problem.compareAndSet(null, new AssertionError(name, e));
              }
            },
            name);
    thread.start();
    return thread;
  }

  private static void join(Thread thread) throws InterruptedException {
    thread.join(PATIENCE_MS);
    if (thread.isAlive()) {
      AssertionError stuck = new AssertionError(thread.getName() + " does not end");
      stuck.setStackTrace(thread.getStackTrace());
      throw stuck;
    }
  }

  /** Runs workers at the same time until the round is over. */
  private void play(Map<String, Work> works) throws Exception {
    List<Thread> threads = new ArrayList<>();
    works.forEach(
        (name, work) -> {
          Random random = new Random(seeds.nextLong());
          threads.add(
              thread(
                  name,
                  () -> {
                    do {
                      work.once(random);
                    } while (System.nanoTime() < end && problem.get() == null);
                  }));
        });
    for (Thread thread : threads) {
      thread.join(ROUND_MS + 3 * PATIENCE_MS);
      check(!thread.isAlive(), thread.getName() + " does not end");
    }
    if (problem.get() != null) {
      throw new AssertionError("a worker failed", problem.get());
    }
  }

  // ---- channels within this process ----

  private static void fill(ByteBuffer to, int bytes, int number) {
    for (int i = 0; i < bytes; i++) {
      to.put(i, (byte) (i * 7 + number));
    }
  }

  private static void compare(ByteBuffer got, int bytes, int number) {
    check(got.remaining() == bytes, got.remaining() + " bytes, not " + bytes);
    for (int i = 0; i < bytes; i++) {
      check(got.get(i) == (byte) (i * 7 + number), "byte " + i + " of message " + number);
    }
  }

  private static int length(int number) {
    return number % 13 == 0 ? OPTIONS.slotBytes() : number * 37 % 4096;
  }

  private static void sendAll(RdmaChannel channel, int count) throws InterruptedException {
    for (int i = 0; i < count; i++) {
      fill(channel.sendSegment(), length(i), i);
      channel.send(length(i));
    }
  }

  private static int receiveAll(RdmaChannel channel) throws InterruptedException {
    int number = 0;
    while (channel.receive() != RdmaChannel.END) {
      compare(channel.receiveSegment(), length(number), number);
      number++;
      count("messages");
    }
    return number;
  }

  private RdmaChannel connect(Nic from, String to, String service) throws InterruptedException {
    return RdmaChannel.connect(from, to, service, OPTIONS, PATIENCE_MS);
  }

  /** Sends a stream that another thread may break in one of several ways. */
  private void stream(Random random) throws Exception {
    String service = "stream" + services.incrementAndGet();
    int way = random.nextInt(3);
    AtomicReference<RdmaChannel> served = new AtomicReference<>();
    int count = 1 + random.nextInt(200);
    try (RdmaServerChannel server = RdmaServerChannel.open(far, service, OPTIONS)) {
      Thread receives =
          thread(
              "receiver",
              () -> {
                try (RdmaChannel channel = server.accept(PATIENCE_MS)) {
                  check(channel != null, "no client came");
                  served.set(channel);
                  int got = receiveAll(channel);
                  check(way != 0 || got == count, got + " messages of " + count);
                } catch (InterruptedException | VipException e) {
                  check(way != 0, "nobody broke it: " + e);
                }
              });
      Thread breaks =
          thread("breaker", () -> breakIt(way, random.nextInt(2_000_000), receives, served));
      try (RdmaChannel channel = connect(near, "host1", service)) {
        sendAll(channel, count);
      } catch (VipException e) {
        check(way != 0, "nobody broke it: " + e);
      }
      join(breaks);
      join(receives);
      count("streams");
    }
  }

  private static void breakIt(
      int way, long nanoseconds, Thread receives, AtomicReference<RdmaChannel> served) {
    RdmaChannel channel = null;
    while (channel == null && receives.isAlive()) {
      channel = served.get();
      Thread.onSpinWait();
    }
    if (way == 0 || channel == null) {
      return;
    }
    long then = System.nanoTime() + nanoseconds;
    while (System.nanoTime() < then) {
      Thread.onSpinWait();
    }
    if (way == 1) {
      count("aborts");
      channel.abort();
    } else {
      count("interrupts");
      receives.interrupt();
    }
  }

  // ---- VIs within this process, which other threads close ----

  private void connect(Vi client, Vi server) throws Exception {
    NetAddress service = far.address().with("vi" + services.incrementAndGet());
    Thread accepts =
        thread(
            "acceptor",
            () -> {
              try (ConnectionRequest request = far.waitForConnection(service, PATIENCE_MS)) {
                check(request != null, "no client came");
                request.accept(server);
              }
            });
    long latest = System.nanoTime() + PATIENCE_MS * 1_000_000;
    while (true) {
      try {
        client.connect(near.address().with("client"), service, PATIENCE_MS);
        break;
      } catch (ViConnectException e) {
        check(e.code() == VipConstants.VIP_NO_MATCH && System.nanoTime() < latest, e.toString());
      }
    }
    join(accepts);
  }

  private void closing(Random random) throws Exception {
    Cq queue = near.createCq(64);
    Memory from = near.register(1 << 18, MemoryAttributes.LOCAL);
    Memory window = far.allocate(1 << 18, MemoryAttributes.WRITABLE);
    Vi client = near.createVi(ATTRIBUTES, queue, null);
    Vi server = far.createVi(ATTRIBUTES);
    connect(client, server);
    DescriptorRing sends = client.sendRing(8);
    DescriptorRing receives = client.receiveRing(1).prepare(0, from, 0, 64);
    receives.post(0);
    ByteBuffer seen = window.buffer();
    Thread writes = thread("writer", () -> write(sends, queue, from, window, random.nextInt(2)));
    Thread waits =
        thread(
            "waiter",
            () -> {
              try {
                receives.await(VipConstants.VIP_INFINITE);
              } catch (VipClosedException | InterruptedException e) {
                check(Thread.currentThread().getName().equals("waiter"), e.toString());
              }
            });
    long then = System.nanoTime() + random.nextInt(3_000_000);
    while (System.nanoTime() < then) {
      check(seen.get(0) == 0 || seen.get(0) == 1, "window memory has " + seen.get(0));
    }
    if (random.nextBoolean()) {
      count("interrupts");
      waits.interrupt();
    }
    count("closings");
    server.close();
    client.close();
    queue.close();
    join(writes);
    join(waits);
    window.close();
    from.close();
    check(seen.get(1 << 17) == 0, "a buffer of closed memory still shows the window");
    seen.put(0, (byte) 3); // must not end the process
  }

  private static void write(
      DescriptorRing sends, Cq queue, Memory from, Memory window, int way) {
    from.buffer().put(0, (byte) 1);
    try {
      for (int i = 0; i < 8; i++) {
        sends.prepareWrite(i, from, 0, 65_536 >> (i * way), window.address(), window.handle());
      }
      while (true) {
        sends.postMany(0, 8);
        while (sends.outstanding() > 0) {
          if (queue.await(1000) > 0 && queue.failed(0)) {
            return; // the server has been closed first
          }
        }
      }
    } catch (VipException e) {
      return; // closed under this thread, or not connected any more
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  // ---- peers that are killed ----

  private void kill(Random random, List<String> peer, Path log) throws Exception {
    String service = "peer" + services.incrementAndGet();
    try (RdmaServerChannel server = RdmaServerChannel.open(near, service, OPTIONS)) {
      List<String> command = new ArrayList<>(peer);
      command.add(service);
      ProcessBuilder builder = new ProcessBuilder(command);
      builder.environment().put("VIADUCT_HOST", "host1");
      builder.redirectInput(NOTHING).redirectErrorStream(true);
      builder.redirectOutput(Redirect.appendTo(log.toFile()));
      Process process = builder.start();
      try (RdmaChannel channel = server.accept(PATIENCE_MS)) {
        check(channel != null, "the peer did not come");
        int echoes = random.nextInt(500);
        Thread kills = null;
        for (int i = 0; i < echoes || kills != null; i++) {
          if (i == echoes / 2) {
            kills = thread("killer", process::destroyForcibly);
          }
          fill(channel.sendSegment(), length(i), i);
          channel.send(length(i));
          check(channel.receive() != RdmaChannel.END, "the peer ended by itself");
          compare(channel.receiveSegment(), length(i), i);
          count("messages");
        }
        process.destroyForcibly();
        check(channel.receive() == RdmaChannel.END, "a message of nobody");
        check(false, "a peer that was killed has said that it closes");
      } catch (VipException e) {
        check(e instanceof ViConnectException, "not a loss of the connection: " + e);
        count("kills");
      } finally {
        process.destroyForcibly().waitFor();
      }
    }
  }

  /** The peer: sends back what it receives, until it is killed. */
  private static void echo(String service) throws InterruptedException {
    try (Nic nic = Nic.open();
        RdmaChannel channel = RdmaChannel.connect(nic, "host0", service, OPTIONS, PATIENCE_MS)) {
      while (channel.receive() != RdmaChannel.END) {
        int bytes = channel.receiveSegment().remaining();
        channel.sendSegment().put(channel.receiveSegment());
        channel.send(bytes);
      }
    } catch (ViConnectException e) {
      return; // the driver has ended
    }
  }

  // ---- garbage, so that the collector always works ----

  private static void garbage(Random random) {
    List<byte[]> kept = new ArrayList<>();
    for (int i = 0; i < 4000; i++) {
      byte[] block = new byte[random.nextInt(20_000)];
      if (i % 16 == 0) {
        kept.add(block);
      }
    }
    check(kept.size() == 250, "blocks");
    if (random.nextInt(20) == 0) {
      System.gc();
      count("collections");
    }
  }

  // ---- what is left after a round ----

  /** Descriptors of sockets, events and memory, and mappings of memory that is shared. */
  private static int[] open(List<String> names) throws IOException {
    File[] links = new File("/proc/self/fd").listFiles();
    for (File link : links == null ? new File[0] : links) {
      try {
        String target = Files.readSymbolicLink(link.toPath()).toString();
        if (!target.startsWith("/") || target.startsWith("/memfd:")) {
          names.add(target);
        }
      } catch (IOException e) {
        continue; // closed meanwhile
      }
    }
    int mappings = 0;
    for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
      mappings += line.contains("/memfd:") && !line.contains("java_heap") ? 1 : 0;
    }
    return new int[] {names.size(), mappings};
  }

  /** The bytes of windows that the agents have allotted to programs and to links. */
  private static long windows(String fabric) throws Exception {
    ProcessBuilder builder = new ProcessBuilder(fabric, "status").redirectInput(NOTHING);
    Process asked = builder.redirectErrorStream(true).start();
    String text;
    try (InputStream said = asked.getInputStream()) {
      text = new String(said.readAllBytes(), StandardCharsets.UTF_8);
    }
    check(asked.waitFor() == 0, text);
    long sum = 0;
    for (Matcher m = WINDOW.matcher(text); m.find(); ) {
      sum += Long.parseLong(m.group(1));
    }
    return sum;
  }

  private static long[] left(String fabric, List<String> names) throws Exception {
    int[] open = open(names);
    return new long[] {open[0], open[1], windows(fabric)};
  }

  /**
   * Waits until no more is in use than before: agents clean up after dead programs, and threads
   * end, some time later.
   */
  private static long[] settled(String fabric, long[] before) throws Exception {
    long latest = System.nanoTime() + PATIENCE_MS * 1_000_000;
    while (true) {
      List<String> names = new ArrayList<>();
      long[] now = left(fabric, names);
      boolean more = false;
      for (int i = 0; before != null && i < now.length; i++) {
        more |= now[i] > before[i];
      }
      if (!more) {
        return now;
      }
      check(
          System.nanoTime() < latest,
          String.format(
              "descriptors, mappings, window bytes: %s, at the beginning %s; %s",
              Arrays.toString(now), Arrays.toString(before), names));
      System.gc(); // the mapping of a buffer is removed when the buffer is collected
    }
  }

  private static void round(Random seeds, List<String> peer, Path log) throws Exception {
    try (Nic near = Nic.open("host0");
        Nic far = Nic.open("host1")) {
      near.onError(error -> {});
      far.onError(error -> {});
      Soak soak = new Soak(near, far, seeds);
      soak.play(
          Map.of(
              "stream", soak::stream,
              "other stream", soak::stream,
              "closing", soak::closing,
              "kill", random -> soak.kill(random, peer, log),
              "garbage", Soak::garbage));
      near.onError(null);
      far.onError(null);
    } // closing fails if a VI, a region or a queue is left
  }

  private static void drive(long seconds, long seed, String fabric, Path log, List<String> peer)
      throws Exception {
    Random seeds = new Random(seed);
    long latest = System.nanoTime() + seconds * 1_000_000_000;
    round(seeds, peer, log); // the first use opens what stays open
    left(fabric, new ArrayList<>()); // so does the first check: JDK 17 keeps a socket for files
    long[] before = settled(fabric, null);
    int rounds = 1;
    do {
      round(seeds, peer, log);
      rounds++;
      long[] now = settled(fabric, before);
      System.out.println(
          "round " + rounds + ": " + COUNTS + ", left: descriptors " + now[0] + " of " + before[0]
              + ", mappings " + now[1] + " of " + before[1]
              + ", window bytes " + now[2] + " of " + before[2]);
    } while (System.nanoTime() < latest);
    for (String name : COUNTS.keySet()) {
      check(COUNTS.get(name).get() > 0, "no " + name);
    }
  }

  /**
   * Drives the soak, or is a peer.
   *
   * @param args {@code drive SECONDS SEED VI_FABRIC LOG PEER_COMMAND...}, or {@code peer SERVICE}
   * @throws Exception if something is wrong
   */
  public static void main(String[] args) throws Exception {
    if (args[0].equals("peer")) {
      echo(args[1]);
      return;
    }
    List<String> words = List.of(args);
    drive(
        Long.parseLong(args[1]),
        Long.parseLong(args[2]),
        args[3],
        Path.of(args[4]),
        words.subList(5, words.size()));
  }
}
