/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.systems;

import java.io.File;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * A ZooKeeper server by itself, or a client that writes nodes, reads them, and waits for a watch
 * each time.
 */
public final class ZooKeeperNode {
  private static final int NODES = 300;
  private static final int TIMEOUT_MS = 60_000;

  private ZooKeeperNode() {
  }

  /**
   * A server prints its port and ends with its input; a client needs the port.
   *
   * @param args {@code server} and its folder, or {@code client} and the port
   * @throws Exception if a node has other bytes than were written
   */
  public static void main(String[] args) throws Exception {
    if (args[0].equals("server")) {
      serve(new File(args[1]));
    } else {
      ask(Integer.parseInt(args[1]));
    }
    Counts.write();
    System.exit(0);
  }

  private static void serve(File folder) throws Exception {
    System.setProperty("zookeeper.forceSync", "no");
    System.setProperty("zookeeper.admin.enableServer", "false");
    ZooKeeperServer server =
        new ZooKeeperServer(new File(folder, "snap"), new File(folder, "log"), 2000);
    NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
    factory.configure(new InetSocketAddress("127.0.0.1", 0), 100);
    factory.startup(server);
    System.out.println("port " + factory.getLocalPort());
    System.out.flush();
    while (System.in.read() >= 0) {
      // Wait for the end of the input.
    }
    factory.shutdown();
  }

  private static void ask(int port) throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    try (ZooKeeper keeper = new ZooKeeper("127.0.0.1:" + port, TIMEOUT_MS, event -> {
      if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
        connected.countDown();
      }
    })) {
      if (!connected.await(TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
        throw new IllegalStateException("no session");
      }
      Random random = new Random(1);
      for (int i = 0; i < NODES; i++) {
        node(keeper, "/node" + i, random);
      }
      if (keeper.getChildren("/", false).size() != NODES + 1) {
        throw new IllegalStateException("the root has another number of nodes");
      }
    }
    System.out.println("{\"nodes\": " + NODES + "}");
  }

  private static void node(ZooKeeper keeper, String path, Random random) throws Exception {
    byte[] first = new byte[1 + random.nextInt(200_000)];
    byte[] second = new byte[random.nextInt(100)];
    random.nextBytes(first);
    random.nextBytes(second);
    keeper.create(path, first, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    CountDownLatch changed = new CountDownLatch(1);
    compare(path, first, keeper.getData(path, event -> changed.countDown(), null));
    keeper.setData(path, second, -1);
    if (!changed.await(TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
      throw new IllegalStateException(path + ": no word of the change");
    }
    compare(path, second, keeper.getData(path, false, null));
  }

  private static void compare(String path, byte[] want, byte[] got) {
    if (!Arrays.equals(want, got)) {
      throw new IllegalStateException(path + ": other bytes than were written");
    }
  }
}
