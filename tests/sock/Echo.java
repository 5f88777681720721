/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests blocking sockets, channels of a selector, and a socket that another thread closes, all
 * within one virtual machine.
 */
import java.io.DataInputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Arrays;

class Echo {
  static final InetAddress HERE = InetAddress.getLoopbackAddress();

  static void check(boolean ok, String what) {
    if (!ok)
      throw new AssertionError(what);
  }

  static byte[] pattern(int n) {
    byte[] b = new byte[n];
    for (int i = 0; i < n; i++)
      b[i] = (byte) (i * 7 + i / 251);
    return b;
  }

  static Thread start(Work work) {
    Thread t = new Thread(() -> {
      try {
        work.run();
      } catch (Throwable e) {
        e.printStackTrace();
        System.exit(1);
      }
    });
    t.start();
    return t;
  }

  interface Work {
    void run() throws Exception;
  }

  /* An echo server with a thread, until the end of the stream. */
  static void serve(Socket s) throws Exception {
    byte[] b = new byte[8192];
    InputStream in = s.getInputStream();
    OutputStream out = s.getOutputStream();
    int n;

    while ((n = in.read(b)) >= 0)
      out.write(b, 0, n);
    s.close();
  }

  /* Sends from a thread of its own, reads all back, and sees the end. */
  static void exchange(Socket s, int bytes) throws Exception {
    byte[] want = pattern(bytes), got = new byte[bytes];
    Thread t = start(() -> {
      s.getOutputStream().write(want);
      s.shutdownOutput();
    });

    new DataInputStream(s.getInputStream()).readFully(got);
    check(Arrays.equals(want, got), "another content");
    check(s.getInputStream().read() == -1, "no end of the stream");
    t.join();
    s.close();
  }

  static void blocking() throws Exception {
    try (ServerSocket listener = new ServerSocket(0, 50, HERE)) {
      for (int bytes : new int[] { 1, 1000, 3000000 }) {
        Socket c = new Socket(HERE, listener.getLocalPort());
        Socket a = listener.accept();
        Thread t = start(() -> serve(a));

        exchange(c, bytes);
        t.join();
      }
    }
  }

  /* A read with a time limit, then one that ends since another thread closes the socket. */
  static void endsOfReads() throws Exception {
    try (ServerSocket listener = new ServerSocket(0, 50, HERE)) {
      Socket c = new Socket(HERE, listener.getLocalPort());
      Socket a = listener.accept();

      a.getOutputStream().write(1);
      check(c.getInputStream().read() == 1, "no byte");
      c.setSoTimeout(50);
      try {
        c.getInputStream().read();
        check(false, "no end of time");
      } catch (SocketTimeoutException e) {
        c.setSoTimeout(0);
      }
      Thread reader = Thread.currentThread();
      Thread t = start(() -> {
        while (reader.getStackTrace().length == 0 || !within(reader, "read"))
          Thread.onSpinWait();
        c.close();
      });
      try {
        int n = c.getInputStream().read();
        check(false, "read " + n + " of a closed socket");
      } catch (SocketException e) {
        t.join();
      }
      check(a.getInputStream().read() == -1, "no end of the stream");
      a.close();
    }
  }

  static boolean within(Thread t, String method) {
    return Arrays.stream(t.getStackTrace()).anyMatch(f -> f.getMethodName().equals(method));
  }

  /* One thread with a selector serves all; a full socket is registered for writing. */
  static void select(ServerSocketChannel listener, int connections) throws Exception {
    Selector selector = Selector.open();
    int ended = 0;

    listener.configureBlocking(false);
    listener.register(selector, SelectionKey.OP_ACCEPT);
    while (ended < connections) {
      selector.select();
      for (SelectionKey key : selector.selectedKeys()) {
        if (key.isAcceptable()) {
          SocketChannel s = listener.accept();

          s.configureBlocking(false);
          s.register(selector, SelectionKey.OP_READ, ByteBuffer.allocate(100000));
        } else if (move(key)) {
          ended++;
        }
      }
      selector.selectedKeys().clear();
    }
    selector.close();
  }

  static boolean move(SelectionKey key) throws Exception {
    SocketChannel s = (SocketChannel) key.channel();
    ByteBuffer b = (ByteBuffer) key.attachment();
    int n = s.read(b);

    b.flip();
    s.write(b);
    b.compact();
    if (n < 0 && b.position() == 0) {
      s.close();
      return true;
    }
    key.interestOps((b.hasRemaining() ? SelectionKey.OP_READ : 0) |
        (b.position() > 0 ? SelectionKey.OP_WRITE : 0));
    return false;
  }

  static void selected() throws Exception {
    ServerSocketChannel listener = ServerSocketChannel.open();
    Thread[] all = new Thread[8];
    Thread server;

    listener.bind(new InetSocketAddress(HERE, 0));
    server = start(() -> select(listener, all.length));
    int port = ((InetSocketAddress) listener.getLocalAddress()).getPort();
    for (int i = 0; i < all.length; i++)
      all[i] = start(() -> exchange(new Socket(HERE, port), 500000));
    for (Thread t : all)
      t.join();
    server.join();
    listener.close();
  }

  public static void main(String[] args) throws Exception {
    blocking();
    endsOfReads();
    selected();
    System.out.println("ok");
  }
}
