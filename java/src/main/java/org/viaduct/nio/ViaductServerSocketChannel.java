/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;

/** A channel of the JDK, whose connections become channels of this provider. */
final class ViaductServerSocketChannel extends ServerSocketChannel {
  private final ServerSocketChannel inner;
  private final List<ViaductKey> keys = new CopyOnWriteArrayList<>();
  private ServerSocket socket;

  ViaductServerSocketChannel(ViaductSelectorProvider provider, ServerSocketChannel inner) {
    super(provider);
    this.inner = inner;
  }

  ServerSocketChannel inner() {
    return inner;
  }

  void addKey(ViaductKey key) {
    keys.add(key);
  }

  void dropKey(ViaductKey key) {
    keys.remove(key);
  }

  private void follow() throws IOException {
    if (!inner.isOpen() && isOpen()) {
      close();
    }
  }

  private SocketChannel wrap(SocketChannel connection) {
    return connection == null
        ? null
        : new ViaductSocketChannel((ViaductSelectorProvider) provider(), connection, true);
  }

  @Override
  public SocketChannel accept() throws IOException {
    try {
      return wrap(inner.accept());
    } finally {
      follow();
    }
  }

  /** As ServerSocket.accept() does it, with its time limit. */
  Socket acceptIn() throws IOException {
    try {
      return wrap(inner.socket().accept().getChannel()).socket();
    } finally {
      follow();
    }
  }

  @Override
  public ServerSocketChannel bind(SocketAddress local, int backlog) throws IOException {
    inner.bind(HostAddress.forBind(local), backlog);
    return this;
  }

  @Override
  protected void implCloseSelectableChannel() throws IOException {
    inner.close();
  }

  @Override
  protected void implConfigureBlocking(boolean block) throws IOException {
    if (block) {
      for (ViaductKey key : keys) {
        key.releaseInner();
      }
    }
    inner.configureBlocking(block);
  }

  @Override
  public <T> ServerSocketChannel setOption(SocketOption<T> name, T value) throws IOException {
    inner.setOption(name, value);
    return this;
  }

  @Override
  public <T> T getOption(SocketOption<T> name) throws IOException {
    return inner.getOption(name);
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return inner.supportedOptions();
  }

  @Override
  public SocketAddress getLocalAddress() throws IOException {
    return inner.getLocalAddress();
  }

  @Override
  public ServerSocket socket() {
    synchronized (keys) {
      if (socket == null) {
        try {
          socket = new ViaductServerSocket(this);
        } catch (IOException e) {
          throw new IllegalStateException(e);
        }
      }
      return socket;
    }
  }

  @Override
  public String toString() {
    return "viaduct " + inner;
  }
}
