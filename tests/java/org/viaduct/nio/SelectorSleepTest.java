/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Events that wake a sleeping selector, and the descriptors of its threads. */
@Timeout(NioPair.PATIENCE_S)
class SelectorSleepTest {
  /** The descriptors of threads have numbers from this one on. */
  private static final int LOW = 1000;

  private static final int SPARE = 100;
  private static final int TRIES = 20;

  /** Connected channels that have not been used, so that their bytes are on TCP. */
  private record Ends(SocketChannel client, SocketChannel server) implements AutoCloseable {
    static Ends make() throws IOException {
      try (ServerSocketChannel listener = ServerSocketChannel.open()) {
        listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        return new Ends(SocketChannel.open(listener.getLocalAddress()), listener.accept());
      }
    }

    long stream() {
      return ((ViaductSocketChannel) server).stream().handle;
    }

    @Override
    public void close() throws IOException {
      client.close();
      server.close();
    }
  }

  @Test
  void changesOfOtherConnectionsDoNotEndTheSleep() throws Exception {
    try (Ends ends = Ends.make();
        Selector selector = NioLibrary.JDK.openSelector()) {
      long set = NioCalls.setOpen(NioCalls.epollOf(selector));
      int slot = NioCalls.setAdd(set, ends.stream());
      NioCalls.setInterest(set, slot, NioCalls.IN);
      assertEquals(1, NioCalls.setLook(set, new int[2 * NioCalls.NEWS_MOST], false));
      CountDownLatch begun = new CountDownLatch(1);
      AtomicBoolean told = new AtomicBoolean();
      FutureTask<Boolean> early =
          NioPair.begin(
              () -> {
                assertEquals(NioCalls.SLEEP_LONG, NioCalls.setSleep(set, true));
                begun.countDown();
                selector.select();
                boolean wasTold = told.get();
                NioCalls.setAwake(set);
                return !wasTold;
              });
      begun.await();
      new NioPair().close(); // two streams that change their paths
      told.set(true);
      selector.wakeup();
      assertFalse(NioPair.end(early), "it woke for another connection");
      NioCalls.setRemove(set, slot);
      NioCalls.setClose(set);
    }
  }

  @Test
  void aLookFindsWhatChangedOfAnIdleConnection() throws Exception {
    try (Ends ends = Ends.make();
        Selector selector = NioLibrary.JDK.openSelector()) {
      long set = NioCalls.setOpen(NioCalls.epollOf(selector));
      int[] news = new int[2 * NioCalls.NEWS_MOST];
      int slot = NioCalls.setAdd(set, ends.stream());
      for (int events : new int[] {NioCalls.IN, NioCalls.OUT, NioCalls.IN}) {
        NioCalls.setInterest(set, slot, events);
        assertEquals(1, NioCalls.setLook(set, news, false));
        assertEquals(events, news[1] >>> 16, "what the kernel has to be asked for");
        assertEquals(0, NioCalls.setLook(set, news, false));
        assertEquals(0, NioCalls.setLook(set, news, false));
      }
      ends.server.shutdownInput();
      assertEquals(1, NioCalls.setLook(set, news, false));
      assertEquals(NioCalls.IN, news[1] & 0x7fff & NioCalls.IN);
      NioCalls.setRemove(set, slot);
      NioCalls.setClose(set);
    }
  }

  /** All event descriptors, among them those of threads that have slept. */
  private static Set<Integer> eventDescriptors() throws IOException {
    Set<Integer> all = new TreeSet<>();
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      for (Path file : (Iterable<Path>) files::iterator) {
        try {
          if (Files.readSymbolicLink(file).toString().equals("anon_inode:[eventfd]")) {
            all.add(Integer.valueOf(file.getFileName().toString()));
          }
        } catch (IOException e) {
          continue; // closed meanwhile
        }
      }
    }
    return all;
  }

  /** Lets a thread sleep in the set, and end; returns the number that its descriptor had. */
  private static int threadThatEnds(long set) throws Exception {
    Set<Integer> before = eventDescriptors();
    CountDownLatch slept = new CountDownLatch(1);
    CountDownLatch seen = new CountDownLatch(1);
    FutureTask<Path> thread =
        NioPair.begin(
            () -> {
              Path self = Files.readSymbolicLink(Path.of("/proc/thread-self"));
              NioCalls.setSleep(set, true);
              NioCalls.setAwake(set);
              slept.countDown();
              seen.await();
              return Path.of("/proc").resolve(self);
            });
    slept.await();
    Set<Integer> after = eventDescriptors();
    after.removeAll(before);
    after.removeIf(fd -> fd < LOW);
    int fd = after.iterator().next();
    seen.countDown();
    Path self = NioPair.end(thread);
    while (Files.exists(self)) {
      Thread.yield(); // the kernel's thread, which owns the descriptor, ends after Java's
    }
    return fd;
  }

  /** Opens pipes with all free numbers up to some beyond that one; whether one's source has it. */
  private static boolean takeNumber(int number, List<Pipe> pipes) throws Exception {
    boolean taken = false;
    for (int fd = 0; fd < number + SPARE; ) {
      Pipe pipe = Pipe.open();
      pipes.add(pipe);
      fd = NioCalls.descriptorOf(pipe.source());
      taken |= fd == number;
      if (NioCalls.descriptorOf(pipe.sink()) == number) {
        pipe.sink().close(); // so that the next pipe's source gets the number
      }
    }
    return taken;
  }

  private static void closeAll(List<Pipe> pipes) throws Exception {
    for (Pipe pipe : pipes) {
      pipe.source().close();
      pipe.sink().close();
    }
    pipes.clear();
  }

  @Test
  void theNumberOfAThreadThatEndedMayBeAnotherFiles() throws Exception {
    List<Pipe> pipes = new ArrayList<>();
    try (Selector selector = NioLibrary.JDK.openSelector()) {
      long set = NioCalls.setOpen(NioCalls.epollOf(selector));
      int tries = 0;
      while (!takeNumber(threadThatEnds(set), pipes)) {
        closeAll(pipes); // another thread of this process was first
        assertTrue(++tries < TRIES);
      }
      int count = 0;
      for (Pipe pipe : pipes) {
        if (NioCalls.descriptorOf(pipe.source()) >= LOW && pipe.sink().isOpen()) {
          pipe.source().configureBlocking(false).register(selector, SelectionKey.OP_READ);
          pipe.sink().write(ByteBuffer.allocate(1));
          count++;
        }
      }
      assertEquals(count, selector.selectNow());
      selector.selectedKeys().clear();
      NioCalls.setSleep(set, true);
      NioCalls.setAwake(set);
      assertEquals(count, selector.selectNow());
      NioCalls.setClose(set);
    } finally {
      closeAll(pipes);
    }
  }
}
