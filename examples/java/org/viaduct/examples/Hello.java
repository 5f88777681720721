/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.examples;

import java.nio.charset.StandardCharsets;
import org.viaduct.channel.RdmaChannel;
import org.viaduct.channel.RdmaServerChannel;
import org.viaduct.vipl.Nic;

/** A message there and one back: {@code Hello} serves, {@code Hello HOST} asks. */
public final class Hello {
  private Hello() {}

  /**
   * Serves one client, or asks.
   *
   * @param args none, or the server's host
   * @throws InterruptedException never: nothing interrupts the thread
   */
  public static void main(String[] args) throws InterruptedException {
    try (Nic nic = Nic.open()) {
      if (args.length == 0) {
        serve(nic);
      } else {
        ask(nic, args[0]);
      }
    }
  }

  private static void serve(Nic nic) throws InterruptedException {
    try (RdmaServerChannel server = RdmaServerChannel.open(nic, "hello");
        RdmaChannel client = server.waitClient()) {
      client.receive();
      System.out.println(StandardCharsets.UTF_8.decode(client.receiveSegment()));
      say(client, "hello from " + nic.hostName(nic.address()));
      client.receive(); // END: the client has what was sent
    }
  }

  private static void ask(Nic nic, String host) throws InterruptedException {
    try (RdmaChannel server = RdmaChannel.connect(nic, host, "hello")) {
      say(server, "hello from " + nic.hostName(nic.address()));
      server.receive();
      System.out.println(StandardCharsets.UTF_8.decode(server.receiveSegment()));
    }
  }

  private static void say(RdmaChannel channel, String text) throws InterruptedException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    channel.sendSegment().put(bytes);
    channel.send(bytes.length);
  }
}
