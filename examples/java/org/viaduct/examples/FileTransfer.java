/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.examples;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.viaduct.vipl.Nic;

/**
 * Sends a file, by one connection or several with a part of the file each, and compares the SHA-256
 * of each part at both ends.
 *
 * <pre>
 * FileTransfer receive FOLDER BUFFER THREADS
 * FileTransfer send HOST FILE BUFFER THREADS
 * </pre>
 */
public final class FileTransfer {
  private static final int PORT = 7;
  private static final int HEADER = 24;
  private static final int NAME_MAX = 255;
  private static final int OK = 1;

  private FileTransfer() {}

  /**
   * Sends or receives one file.
   *
   * @param args as above
   * @throws Exception if a file cannot be read or written, or a part arrives with another checksum
   */
  public static void main(String[] args) throws Exception {
    if (args.length == 4 && args[0].equals("receive")) {
      receive(Path.of(args[1]), Integer.parseInt(args[2]), Integer.parseInt(args[3]));
    } else if (args.length == 5 && args[0].equals("send")) {
      send(args[1], Path.of(args[2]), Integer.parseInt(args[3]), Integer.parseInt(args[4]));
    } else {
      System.err.println(
          "usage: FileTransfer receive FOLDER BUFFER THREADS\n"
              + "       FileTransfer send HOST FILE BUFFER THREADS");
      System.exit(2);
    }
  }

  /** The parts of a file, one for each connection. */
  private interface Part {
    Callable<Void> number(int index) throws Exception;
  }

  private static void all(int threads, Part part) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      List<Future<Void>> running = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        running.add(pool.submit(part.number(i)));
      }
      for (Future<Void> one : running) {
        one.get();
      }
    } finally {
      pool.shutdownNow();
    }
  }

  // ---- sending ----

  private static void send(String host, Path path, int buffer, int threads) throws Exception {
    AtomicLong sent = new AtomicLong();
    try (Nic nic = Nic.open();
        FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
      long size = file.size();
      long start = System.nanoTime();
      String name = path.getFileName().toString();
      all(
          threads,
          i ->
              () -> {
                long from = size * i / threads;
                long to = size * (i + 1) / threads;
                try (PCIe server = PCIe.connect(nic, host, PORT, buffer)) {
                  sendPart(server, file, name, from, to, new Progress(sent, size));
                }
                return null;
              });
      double seconds = (System.nanoTime() - start) / 1e9;
      System.out.printf("%d bytes in %.2f s, %.0f MB/s%n", size, seconds, size / seconds / 1e6);
    }
  }

  private static void sendPart(
      PCIe server, FileChannel file, String name, long from, long to, Progress progress)
      throws Exception {
    byte[] text = name.getBytes(StandardCharsets.UTF_8);
    server.sendSegment().putLong(from).putLong(to).putLong(file.size()).put(text);
    server.send(HEADER + text.length);
    MessageDigest sum = sha256();
    for (long at = from; at < to; ) {
      ByteBuffer segment = server.sendSegment();
      segment.limit((int) Math.min(segment.limit(), to - at));
      int bytes = file.read(segment, at);
      if (bytes < 0) {
        throw new IOException("the file has become shorter");
      }
      sum.update(segment.flip());
      server.send(bytes);
      at += bytes;
      progress.more(bytes);
    }
    server.sendSegment().put(sum.digest());
    server.send(sum.getDigestLength());
    ByteBuffer answer = server.receive();
    if (answer == null || answer.get() != OK) {
      throw new IOException("bytes " + from + " to " + to + " did not arrive as they were sent");
    }
  }

  // ---- receiving ----

  private static void receive(Path folder, int buffer, int threads) throws Exception {
    try (Nic nic = Nic.open();
        PCIeServer server = new PCIeServer(nic, PORT, buffer)) {
      all(
          threads,
          i -> {
            PCIe client = server.waitClient();
            return () -> {
              try (client) {
                receivePart(client, folder);
              }
              return null;
            };
          });
    }
    System.out.println("received");
  }

  private static ByteBuffer next(PCIe client) throws IOException, InterruptedException {
    ByteBuffer message = client.receive();
    if (message == null) {
      throw new IOException("the sender has ended before the part did");
    }
    return message;
  }

  private static void receivePart(PCIe client, Path folder) throws Exception {
    ByteBuffer first = next(client);
    if (first.remaining() <= HEADER || first.remaining() > HEADER + NAME_MAX) {
      throw new IOException("not the beginning of a part");
    }
    long from = first.getLong();
    long to = first.getLong();
    long size = first.getLong();
    Path name = Path.of(StandardCharsets.UTF_8.decode(first).toString());
    boolean here = name.getNameCount() == 1 && !name.isAbsolute() && !name.startsWith("..");
    if (from < 0 || to < from || size < to || !here) {
      throw new IOException("a part that is not of a file in this folder: " + name);
    }
    MessageDigest sum = sha256();
    try (FileChannel file =
        FileChannel.open(
            folder.resolve(name), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      file.truncate(size);
      for (long at = from; at < to; ) {
        ByteBuffer message = next(client);
        if (message.remaining() > to - at) {
          throw new IOException("more bytes than the part has");
        }
        sum.update(message.duplicate());
        while (message.hasRemaining()) {
          at += file.write(message, at);
        }
      }
    }
    ByteBuffer told = next(client);
    byte[] digest = new byte[told.remaining()];
    told.get(digest);
    boolean same = MessageDigest.isEqual(digest, sum.digest());
    client.sendSegment().put((byte) (same ? OK : 0));
    client.send(1);
    client.receive(); // the end: the sender has the answer
    if (!same) {
      throw new IOException("bytes " + from + " to " + to + " have another SHA-256");
    }
  }

  private static MessageDigest sha256() throws NoSuchAlgorithmException {
    return MessageDigest.getInstance("SHA-256");
  }

  /** Says every tenth of the file. */
  private static final class Progress {
    private final AtomicLong sent;
    private final long size;

    Progress(AtomicLong sent, long size) {
      this.sent = sent;
      this.size = size;
    }

    void more(int bytes) {
      long now = sent.addAndGet(bytes);
      long tenth = now * 10 / size;
      if (tenth != (now - bytes) * 10 / size) {
        System.err.println(tenth * 10 + " %");
      }
    }
  }
}
