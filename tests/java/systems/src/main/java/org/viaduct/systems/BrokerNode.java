/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.systems;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.Arrays;
import java.util.Random;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.TransportConnector;

/**
 * A broker of ActiveMQ with the transport of NIO, or a client that sends messages to a queue and
 * to a topic, receives them again, and compares them.
 */
public final class BrokerNode {
  private static final int MESSAGES = 500;
  private static final int LONGEST = 100_000;
  private static final int TIMEOUT_MS = 60_000;

  private BrokerNode() {
  }

  /**
   * A server prints its port and ends with its input; a client needs the port.
   *
   * @param args {@code server}, or {@code client} and the port
   * @throws Exception if a message has other bytes than were sent
   */
  public static void main(String[] args) throws Exception {
    if (args[0].equals("server")) {
      serve();
    } else {
      ask(Integer.parseInt(args[1]));
    }
    Counts.write();
    System.exit(0);
  }

  private static void serve() throws Exception {
    BrokerService broker = new BrokerService();
    broker.setPersistent(false);
    broker.setUseJmx(false);
    broker.setUseShutdownHook(false);
    TransportConnector listener = broker.addConnector("nio://127.0.0.1:0");
    broker.start();
    System.out.println("port " + listener.getConnectUri().getPort());
    System.out.flush();
    while (System.in.read() >= 0) {
      // Wait for the end of the input.
    }
    broker.stop();
  }

  private static void ask(int port) throws Exception {
    ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("nio://127.0.0.1:" + port);
    long bytes = 0;
    Connection from = factory.createConnection();
    Connection to = factory.createConnection();
    try {
      from.start();
      to.start();
      Session sends = from.createSession(false, Session.AUTO_ACKNOWLEDGE);
      Session receives = to.createSession(false, Session.AUTO_ACKNOWLEDGE);
      bytes += exchange(sends, receives, sends.createQueue("queue"), true);
      bytes += exchange(sends, receives, sends.createTopic("topic"), false);
    } finally {
      from.close();
      to.close();
    }
    System.out.printf("{\"messages\": %d, \"bytes_each_way\": %d}%n", 2 * MESSAGES, bytes);
  }

  /**
   * Sends half of the messages one at a time, then the rest with as many under way as the broker
   * takes; compares them.
   */
  private static long exchange(
      Session sends, Session receives, Destination place, boolean kept) throws Exception {
    Random random = new Random(1);
    byte[][] all = new byte[MESSAGES][];
    long bytes = 0;
    for (int i = 0; i < MESSAGES; i++) {
      all[i] = new byte[random.nextInt(LONGEST)];
      random.nextBytes(all[i]);
      bytes += all[i].length;
    }
    try (MessageProducer out = sends.createProducer(place);
        MessageConsumer in = receives.createConsumer(place)) {
      out.setDeliveryMode(kept ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
      for (int i = 0; i < MESSAGES / 2; i++) {
        send(sends, out, all[i]);
        compare(i, all[i], in);
      }
      for (int i = MESSAGES / 2; i < MESSAGES; i++) {
        send(sends, out, all[i]);
      }
      for (int i = MESSAGES / 2; i < MESSAGES; i++) {
        compare(i, all[i], in);
      }
    }
    return bytes;
  }

  private static void send(Session session, MessageProducer out, byte[] content)
      throws JMSException {
    BytesMessage message = session.createBytesMessage();
    message.writeBytes(content);
    out.send(message);
  }

  private static void compare(int number, byte[] want, MessageConsumer in) throws JMSException {
    Message message = in.receive(TIMEOUT_MS);
    if (!(message instanceof BytesMessage got)) {
      throw new IllegalStateException("message " + number + " did not come");
    }
    byte[] bytes = new byte[(int) got.getBodyLength()];
    got.readBytes(bytes);
    if (!Arrays.equals(want, bytes)) {
      throw new IllegalStateException("message " + number + " has other bytes than were sent");
    }
  }
}
