/* SPDX-License-Identifier: BSD-2-Clause */

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.viaduct.channel.ChannelOptions;
import org.viaduct.channel.RdmaChannel;
import org.viaduct.channel.RdmaServerChannel;
import org.viaduct.vipl.Nic;

/**
 * Streams and files from one process to another, by channels or by TCP; perf/java_experiments runs
 * it. Server and client get the same steps, in the same order.
 *
 * <pre>
 * Transfers serve channel|tcp FILE STEP...
 * Transfers ask channel|tcp HOST|PORT FILE STEP...
 * STEP: stream:BYTES:COUNT:ROUNDS, file:BUFFER:THREADS:ROUNDS
 * </pre>
 *
 * <p>The client prints a JSON object for each round: the step, and seconds from the first send to
 * the receiver's answer, which it sends when it has all.
 */
public final class Transfers {
  private static final int MEMORY = 64 << 20;
  private static final int MAX_SLOTS = 64;

  private Transfers() {}

  /** A connection that keeps messages apart. */
  private interface Link extends AutoCloseable {
    ByteBuffer out() throws Exception;

    void send(int bytes) throws Exception;

    /** The next message, or null at the end. */
    ByteBuffer in() throws Exception;

    @Override
    void close() throws IOException;
  }

  /** Where links come from. */
  private interface Maker extends AutoCloseable {
    Link link(int step, int bytes) throws Exception;

    @Override
    void close() throws IOException;
  }

  private record Step(boolean file, int bytes, int number, int rounds) {
    static Step of(String text) {
      String[] words = text.split(":");
      return new Step(
          words[0].equals("file"),
          Integer.parseInt(words[1]),
          Integer.parseInt(words[2]),
          Integer.parseInt(words[3]));
    }

    int links() {
      return file ? number : 1;
    }
  }

  // ---- channels ----

  private record ChannelLink(RdmaChannel channel) implements Link {
    @Override
    public ByteBuffer out() throws InterruptedException {
      return channel.sendSegment();
    }

    @Override
    public void send(int bytes) throws InterruptedException {
      channel.send(bytes);
    }

    @Override
    public ByteBuffer in() throws InterruptedException {
      return channel.receive() == RdmaChannel.END ? null : channel.receiveSegment();
    }

    @Override
    public void close() {
      channel.close();
    }
  }

  private static ChannelOptions options(int bytes) {
    int slots = Math.max(2, Math.min(MAX_SLOTS, MEMORY / bytes / 2));
    return ChannelOptions.DEFAULT.slots(slots).slotBytes(bytes);
  }

  private record ChannelMaker(Nic nic, String host) implements Maker {
    @Override
    public Link link(int step, int bytes) throws InterruptedException {
      String name = "transfers" + step;
      if (host != null) {
        return new ChannelLink(RdmaChannel.connect(nic, host, name, options(bytes), 30_000));
      }
      try (RdmaServerChannel server = RdmaServerChannel.open(nic, name, options(bytes))) {
        return new ChannelLink(server.accept());
      }
    }

    @Override
    public void close() {
      nic.close();
    }
  }

  // ---- TCP ----

  private static final class TcpLink implements Link {
    private final SocketChannel socket;
    private final ByteBuffer whole;
    private final ByteBuffer inLength = ByteBuffer.allocateDirect(4);
    private final ByteBuffer in;

    TcpLink(SocketChannel socket, int bytes) throws IOException {
      this.socket = socket;
      socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
      whole = ByteBuffer.allocateDirect(4 + bytes);
      in = ByteBuffer.allocateDirect(bytes);
    }

    @Override
    public ByteBuffer out() {
      return whole.clear().position(4).slice();
    }

    @Override
    public void send(int bytes) throws IOException {
      whole.clear().putInt(0, bytes).limit(4 + bytes);
      while (whole.hasRemaining()) {
        socket.write(whole);
      }
    }

    private boolean fill(ByteBuffer to) throws IOException {
      while (to.hasRemaining()) {
        if (socket.read(to) < 0) {
          return false;
        }
      }
      return true;
    }

    @Override
    public ByteBuffer in() throws IOException {
      inLength.clear();
      if (!fill(inLength)) {
        return null;
      }
      in.clear().limit(inLength.getInt(0));
      return fill(in) ? in.flip() : null;
    }

    @Override
    public void close() throws IOException {
      socket.close();
    }
  }

  private record TcpMaker(ServerSocketChannel server, int port) implements Maker {
    @Override
    public Link link(int step, int bytes) throws IOException {
      if (server != null) {
        return new TcpLink(server.accept(), bytes);
      }
      return new TcpLink(SocketChannel.open(new InetSocketAddress("127.0.0.1", port)), bytes);
    }

    @Override
    public void close() throws IOException {
      if (server != null) {
        server.close();
      }
    }
  }

  // ---- steps ----

  private static void sendPart(Link link, FileChannel file, long from, long to) throws Exception {
    for (long at = from; at < to; ) {
      ByteBuffer segment = link.out();
      segment.limit((int) Math.min(segment.limit(), to - at));
      int bytes = file.read(segment, at);
      link.send(bytes);
      at += bytes;
    }
  }

  private static void receivePart(Link link, FileChannel file, long from, long to)
      throws Exception {
    for (long at = from; at < to; ) {
      ByteBuffer message = link.in();
      while (message.hasRemaining()) {
        at += file.write(message, at);
      }
    }
  }

  private static void send(Link link, Step step, int part, FileChannel file) throws Exception {
    if (step.file()) {
      long size = file.size();
      sendPart(
          link, file, size * part / step.number(), size * (part + 1) / step.number());
      return;
    }
    for (int i = 0; i < step.number(); i++) {
      link.out();
      link.send(step.bytes());
    }
  }

  private static void receive(Link link, Step step, int part, FileChannel file, long size)
      throws Exception {
    if (step.file()) {
      receivePart(
          link, file, size * part / step.number(), size * (part + 1) / step.number());
      return;
    }
    for (int i = 0; i < step.number(); i++) {
      if (link.in().remaining() != step.bytes()) {
        throw new IllegalStateException("a message of another length");
      }
    }
  }

  private static void all(ExecutorService pool, List<Callable<Void>> parts) throws Exception {
    for (Future<Void> one : pool.invokeAll(parts)) {
      one.get();
    }
  }

  private static List<Link> links(Maker maker, int index, Step step) throws Exception {
    List<Link> links = new ArrayList<>();
    for (int i = 0; i < step.links(); i++) {
      links.add(maker.link(index, Math.max(8, step.bytes())));
    }
    return links;
  }

  /** A client tells the length of the file by its first message; a server answers each round. */
  private static void play(Maker maker, boolean client, int index, Step step, Path path)
      throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(step.links());
    List<Link> links = links(maker, index, step);
    StandardOpenOption how = client ? StandardOpenOption.READ : StandardOpenOption.WRITE;
    try (FileChannel file = FileChannel.open(path, how)) {
      for (int round = 0; round < step.rounds(); round++) {
        long start = System.nanoTime();
        List<Callable<Void>> parts = new ArrayList<>();
        for (int i = 0; i < links.size(); i++) {
          int part = i;
          Link link = links.get(i);
          parts.add(
              client ? () -> ask(link, step, part, file) : () -> serve(link, step, part, file));
        }
        all(pool, parts);
        if (client) {
          long bytes = step.file() ? file.size() : (long) step.bytes() * step.number();
          double seconds = (System.nanoTime() - start) / 1e9;
          System.out.printf(
              Locale.ROOT,
              "{\"kind\": \"%s\", \"bytes\": %d, \"number\": %d, \"round\": %d, \"seconds\": %.9f,"
                  + " \"mb_per_s\": %.2f}%n",
              step.file() ? "file" : "stream",
              step.bytes(),
              step.number(),
              round,
              seconds,
              bytes / seconds / 1e6);
        }
      }
    } finally {
      for (Link link : links) {
        link.close();
      }
      pool.shutdown();
    }
  }

  private static Void ask(Link link, Step step, int part, FileChannel file) throws Exception {
    link.out().putLong(0, file.size());
    link.send(8);
    send(link, step, part, file);
    if (link.in() == null) {
      throw new IllegalStateException("the receiver has ended");
    }
    return null;
  }

  private static Void serve(Link link, Step step, int part, FileChannel file) throws Exception {
    long size = link.in().getLong(0);
    receive(link, step, part, file, size);
    link.out();
    link.send(1);
    return null;
  }

  private static Maker maker(boolean client, boolean tcp, String where) throws IOException {
    if (!tcp) {
      return new ChannelMaker(Nic.open(), client ? where : null);
    }
    if (client) {
      return new TcpMaker(null, Integer.parseInt(where));
    }
    ServerSocketChannel server = ServerSocketChannel.open();
    server.bind(new InetSocketAddress("127.0.0.1", 0));
    return new TcpMaker(server, server.socket().getLocalPort());
  }

  /**
   * Serves or asks.
   *
   * @param args as above
   * @throws Exception if a step fails
   */
  public static void main(String[] args) throws Exception {
    boolean client = args[0].equals("ask");
    int first = client ? 4 : 3;
    try (Maker maker = maker(client, args[1].equals("tcp"), args[2])) {
      if (!client) {
        System.out.println("ready " + (maker instanceof TcpMaker tcp ? tcp.port() : 0));
      }
      for (int i = first; i < args.length; i++) {
        play(maker, client, i - first, Step.of(args[i]), Path.of(args[first - 1]));
      }
    }
  }
}
