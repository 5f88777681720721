/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketOption;
import java.nio.channels.ServerSocketChannel;
import java.util.Set;

/** The adaptor of a server channel. */
final class ViaductServerSocket extends ServerSocket {
  private final ViaductServerSocketChannel channel;
  private final ServerSocket inner;

  ViaductServerSocket(ViaductServerSocketChannel channel) throws IOException {
    super();
    this.channel = channel;
    inner = channel.inner().socket();
  }

  @Override
  public void bind(SocketAddress local) throws IOException {
    bind(local, 50);
  }

  @Override
  public void bind(SocketAddress local, int backlog) throws IOException {
    inner.bind(HostAddress.forBind(local), backlog);
  }

  @Override
  public Socket accept() throws IOException {
    return channel.acceptIn();
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }

  @Override
  public boolean isClosed() {
    return !channel.isOpen();
  }

  @Override
  public ServerSocketChannel getChannel() {
    return channel;
  }

  @Override
  public InetAddress getInetAddress() {
    return inner.getInetAddress();
  }

  @Override
  public int getLocalPort() {
    return inner.getLocalPort();
  }

  @Override
  public SocketAddress getLocalSocketAddress() {
    return inner.getLocalSocketAddress();
  }

  @Override
  public boolean isBound() {
    return inner.isBound();
  }

  @Override
  public void setSoTimeout(int milliseconds) throws SocketException {
    inner.setSoTimeout(milliseconds);
  }

  @Override
  public int getSoTimeout() throws IOException {
    return inner.getSoTimeout();
  }

  @Override
  public void setReuseAddress(boolean on) throws SocketException {
    inner.setReuseAddress(on);
  }

  @Override
  public boolean getReuseAddress() throws SocketException {
    return inner.getReuseAddress();
  }

  @Override
  public void setReceiveBufferSize(int size) throws SocketException {
    inner.setReceiveBufferSize(size);
  }

  @Override
  public int getReceiveBufferSize() throws SocketException {
    return inner.getReceiveBufferSize();
  }

  @Override
  public <T> ServerSocket setOption(SocketOption<T> name, T value) throws IOException {
    channel.setOption(name, value);
    return this;
  }

  @Override
  public <T> T getOption(SocketOption<T> name) throws IOException {
    return channel.getOption(name);
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return channel.supportedOptions();
  }

  @Override
  public String toString() {
    return "viaduct " + inner;
  }
}
