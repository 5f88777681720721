/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.channel;

import org.viaduct.vipl.ConnectionRequest;
import org.viaduct.vipl.NetAddress;
import org.viaduct.vipl.Nic;
import org.viaduct.vipl.ViConnectException;
import org.viaduct.vipl.ViDescriptorException;
import org.viaduct.vipl.VipArgumentException;
import org.viaduct.vipl.VipConstants;

/**
 * A server of a name on this host. Any thread may wait for clients, and several may at once; each
 * channel that they get belongs to the thread that got it.
 */
public final class RdmaServerChannel implements AutoCloseable {
  private static final long SLICE_MS = 200;

  /** How long a client has at most to tell where its segment lies, once it is connected. */
  private static final long HELLO_MS = 10_000;

  private final Nic nic;
  private final NetAddress address;
  private final ChannelOptions options;
  private volatile boolean closed;

  private RdmaServerChannel(Nic nic, String service, ChannelOptions options) {
    this.nic = nic;
    this.address = nic.address().with(RdmaChannel.discriminator(service));
    this.options = options;
  }

  /**
   * Makes a server with the default options.
   *
   * @param nic the NIC of this host
   * @param service the name that clients ask for
   * @return the server
   */
  public static RdmaServerChannel open(Nic nic, String service) {
    return open(nic, service, ChannelOptions.DEFAULT);
  }

  /**
   * Makes a server.
   *
   * @param nic the NIC of this host
   * @param service the name that clients ask for
   * @param options slots of this end of each connection
   * @return the server
   */
  public static RdmaServerChannel open(Nic nic, String service, ChannelOptions options) {
    return new RdmaServerChannel(nic, service, options);
  }

  /**
   * Waits for a client.
   *
   * @return the connection
   * @throws InterruptedException if the thread was interrupted
   */
  public RdmaChannel accept() throws InterruptedException {
    return accept(VipConstants.VIP_INFINITE);
  }

  /**
   * Waits for a client: another name of {@link #accept()}.
   *
   * @return the connection
   * @throws InterruptedException if the thread was interrupted
   */
  public RdmaChannel waitClient() throws InterruptedException {
    return accept();
  }

  /**
   * Waits for a client for some time. An interrupt and {@link #close} are noticed within 250 ms.
   *
   * <p>A client that is connected has to tell where its segment lies. One that does not, or breaks
   * the protocol, is dropped, and the wait goes on. It has 10 s for that, or what is left of the
   * time if that is less, but 200 ms in any case; other clients wait as long, so a server whose
   * clients are not its own program's should have several threads accept. A client that was taken
   * as the thread was interrupted is returned, and the thread is still interrupted then.
   *
   * @param milliseconds how long
   * @return the connection, or null after that time
   * @throws InterruptedException if the thread was interrupted
   */
  public RdmaChannel accept(long milliseconds) throws InterruptedException {
    boolean endless = milliseconds >= VipConstants.VIP_INFINITE;
    long end = endless ? 0 : System.nanoTime() + milliseconds * 1_000_000;
    while (true) {
      if (closed) {
        throw ChannelEnds.closedException("RdmaServerChannel.accept");
      }
      long left = endless ? HELLO_MS : left(end);
      long slice = Math.min(SLICE_MS, left);
      ConnectionRequest request = Waiter.await(() -> nic.waitForConnection(address, slice));
      if (request != null) {
        RdmaChannel channel = serveTaken(request, endless ? HELLO_MS : left(end));
        if (channel != null) {
          return channel;
        }
      }
      if (!endless && left <= SLICE_MS) {
        return null;
      }
    }
  }

  private static long left(long end) {
    return Math.max(0, (end - System.nanoTime()) / 1_000_000);
  }

  /** Serves a client that was taken before the thread noticed its interrupt, too. */
  private RdmaChannel serveTaken(ConnectionRequest request, long left)
      throws InterruptedException {
    boolean interrupted = Thread.interrupted();
    try {
      return serve(request, interrupted ? SLICE_MS : Math.min(HELLO_MS, Math.max(left, SLICE_MS)));
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Null: that client is none. */
  private RdmaChannel serve(ConnectionRequest request, long helloMs) throws InterruptedException {
    ChannelEnds ends = null;
    try (request) {
      ends = new ChannelEnds(nic, options);
      request.accept(ends.vi());
      return new RdmaChannel(ends, options, helloMs);
    } catch (InterruptedException | RuntimeException e) {
      if (ends != null) {
        ends.close();
      }
      if (ends != null && isOfClient(e)) {
        return null;
      }
      throw e;
    }
  }

  /** Whether a failure is the client's doing, and nothing that this end lacks. */
  private static boolean isOfClient(Exception e) {
    return e instanceof ViConnectException
        || e instanceof ViDescriptorException
        || e instanceof VipArgumentException;
  }

  /** Ends waiting calls. Connections that were accepted live on. */
  @Override
  public void close() {
    closed = true;
  }
}
