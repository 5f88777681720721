/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.systems;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;

/**
 * Writes files into the cluster of {@link HdfsCluster}, reads them and compares every byte, each
 * thread its own file. One line for each round: MB/s and processor seconds of both processes for
 * each GB, of writing and of reading.
 */
public final class HdfsClient {
  private static final int BUFFER = 1 << 20;
  /** Random bytes; the number of a buffer of a file gives the place where it begins in them. */
  private static final byte[] PATTERN = new byte[2 * BUFFER];

  private final FileSystem files;
  private final ProcessHandle server;
  private final int threads;
  private final int buffersEach;

  private HdfsClient(FileSystem files, ProcessHandle server, int threads, int megabytes) {
    this.files = files;
    this.server = server;
    this.threads = threads;
    this.buffersEach = megabytes / threads;
  }

  /**
   * Runs the rounds.
   *
   * @param args port of the name node, id of the cluster's process, threads, MB in each round,
   *     rounds, seed
   * @throws Exception if a call fails, or a file has another content than was written
   */
  public static void main(String[] args) throws Exception {
    new Random(Long.parseLong(args[5])).nextBytes(PATTERN);
    Configuration conf = new HdfsConfiguration();
    conf.setBoolean("dfs.client.read.shortcircuit", false);
    conf.setInt("dfs.replication", 1);
    conf.setLong("dfs.blocksize", 64L << 20);
    ProcessHandle server = ProcessHandle.of(Long.parseLong(args[1])).orElseThrow();
    try (FileSystem files = FileSystem.get(URI.create("hdfs://127.0.0.1:" + args[0]), conf)) {
      HdfsClient client = new HdfsClient(files, server, Integer.parseInt(args[2]),
          Integer.parseInt(args[3]));
      for (int round = 0; round < Integer.parseInt(args[4]); round++) {
        System.out.println(client.round());
      }
    }
    Counts.write();
    System.exit(0);
  }

  private interface Work {
    void run(int thread) throws IOException;
  }

  private String round() throws Exception {
    String written = phase("write", this::write);
    String read = phase("read", this::read);
    for (int i = 0; i < threads; i++) {
      files.delete(path(i), false);
    }
    return "{" + written + ", " + read + "}";
  }

  private String phase(String name, Work work) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      Duration cpu = cpu();
      long start = System.nanoTime();
      List<Future<?>> all = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        int thread = i;
        all.add(pool.submit(() -> {
          work.run(thread);
          return null;
        }));
      }
      for (Future<?> one : all) {
        one.get();
      }
      double seconds = (System.nanoTime() - start) / 1e9;
      double used = cpu().minus(cpu).toNanos() / 1e9;
      double megabytes = (double) threads * buffersEach * BUFFER / 1e6;
      return String.format(
          "\"%s_mbps\": %.1f, \"%s_cpu_s_per_gb\": %.2f",
          name, megabytes / seconds, name, used / megabytes * 1e3);
    } finally {
      pool.shutdownNow();
    }
  }

  private Duration cpu() {
    return server.info().totalCpuDuration().orElseThrow()
        .plus(ProcessHandle.current().info().totalCpuDuration().orElseThrow());
  }

  private static Path path(int thread) {
    return new Path("/file" + thread);
  }

  private static int place(int thread, int buffer) {
    return (int) ((buffer * 4099L + thread * 65537L) % BUFFER);
  }

  private void write(int thread) throws IOException {
    try (OutputStream out = files.create(path(thread), true)) {
      for (int i = 0; i < buffersEach; i++) {
        out.write(PATTERN, place(thread, i), BUFFER);
      }
    }
  }

  private void read(int thread) throws IOException {
    byte[] got = new byte[BUFFER];
    try (InputStream in = files.open(path(thread))) {
      for (int i = 0; i < buffersEach; i++) {
        int n = in.readNBytes(got, 0, BUFFER);
        int from = place(thread, i);
        if (n != BUFFER || !Arrays.equals(got, 0, BUFFER, PATTERN, from, from + BUFFER)) {
          throw new IOException(
              "file " + thread + ": other bytes in buffer " + i + " than were written");
        }
      }
      if (in.read() >= 0) {
        throw new IOException("file " + thread + " is too long");
      }
    }
  }
}
