/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.FilterInputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketImpl;
import java.net.SocketOption;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.IllegalBlockingModeException;
import java.nio.channels.SocketChannel;
import java.util.Objects;
import java.util.Set;

/** The adaptor of a channel: bytes and ends are the channel's, all else the JDK's. */
final class ViaductSocket extends Socket {
  private final ViaductSocketChannel channel;
  private final Socket inner;

  ViaductSocket(ViaductSocketChannel channel) throws SocketException {
    super((SocketImpl) null);
    this.channel = channel;
    inner = channel.inner().socket();
  }

  @Override
  public void connect(SocketAddress remote) throws IOException {
    connect(remote, 0);
  }

  @Override
  public void connect(SocketAddress remote, int milliseconds) throws IOException {
    channel.connectFor(remote, milliseconds);
  }

  @Override
  public void bind(SocketAddress local) throws IOException {
    inner.bind(HostAddress.forBind(local));
  }

  @Override
  public SocketChannel getChannel() {
    return channel;
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
  public boolean isConnected() {
    return channel.isConnected();
  }

  @Override
  public void shutdownInput() throws IOException {
    checkUsable();
    channel.shutdownInput();
  }

  @Override
  public void shutdownOutput() throws IOException {
    checkUsable();
    channel.shutdownOutput();
  }

  @Override
  public boolean isInputShutdown() {
    return channel.isInputShut();
  }

  @Override
  public boolean isOutputShutdown() {
    return channel.isOutputShut();
  }

  private void checkUsable() throws SocketException {
    if (isClosed()) {
      throw new SocketException("Socket is closed");
    }
    if (!isConnected()) {
      throw new SocketException("Socket is not connected");
    }
  }

  @Override
  public InputStream getInputStream() throws IOException {
    checkUsable();
    if (channel.isInputShut()) {
      throw new SocketException("Socket input is shutdown");
    }
    return channel.stream() == null ? new TcpInput(inner.getInputStream()) : new Input();
  }

  @Override
  public OutputStream getOutputStream() throws IOException {
    checkUsable();
    if (channel.isOutputShut()) {
      throw new SocketException("Socket output is shutdown");
    }
    return channel.stream() == null ? new TcpOutput(inner.getOutputStream()) : new Output();
  }

  /** The bytes that arrive. */
  private final class Input extends InputStream {
    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) > 0 ? one[0] & 0xff : -1;
    }

    @Override
    public int read(byte[] b, int offset, int length) throws IOException {
      Objects.checkFromIndexSize(offset, length, b.length);
      if (length == 0) {
        return 0;
      }
      if (!channel.isOpen()) {
        throw new ClosedChannelException();
      }
      if (!channel.isBlocking()) {
        throw new IllegalBlockingModeException();
      }
      long milliseconds = inner.getSoTimeout();
      return channel.readIn(
          ByteBuffer.wrap(b, offset, length), milliseconds > 0 ? milliseconds * 1000000 : -1);
    }

    @Override
    public int available() throws IOException {
      return (int) Math.min(channel.available(), Integer.MAX_VALUE);
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }

  /** The bytes that are sent. */
  private final class Output extends OutputStream {
    @Override
    public void write(int b) throws IOException {
      write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] b, int offset, int length) throws IOException {
      Objects.checkFromIndexSize(offset, length, b.length);
      if (!channel.isBlocking()) {
        throw new IllegalBlockingModeException();
      }
      ByteBuffer bytes = ByteBuffer.wrap(b, offset, length);
      while (bytes.hasRemaining()) {
        channel.write(bytes);
      }
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }

  /** The bytes that arrive over a connection that stays with TCP. */
  private final class TcpInput extends FilterInputStream {
    TcpInput(InputStream in) {
      super(in);
    }

    @Override
    public int read() throws IOException {
      try {
        return in.read();
      } finally {
        channel.follow();
      }
    }

    @Override
    public int read(byte[] b, int offset, int length) throws IOException {
      try {
        return in.read(b, offset, length);
      } finally {
        channel.follow();
      }
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }

  /** The bytes that are sent over a connection that stays with TCP. */
  private final class TcpOutput extends FilterOutputStream {
    TcpOutput(OutputStream out) {
      super(out);
    }

    @Override
    public void write(int b) throws IOException {
      write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] b, int offset, int length) throws IOException {
      try {
        out.write(b, offset, length);
      } finally {
        channel.follow();
      }
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }

  @Override
  public void sendUrgentData(int data) throws IOException {
    channel.sendUrgent(data);
  }

  // ---- addresses

  @Override
  public InetAddress getInetAddress() {
    return inner.getInetAddress();
  }

  @Override
  public InetAddress getLocalAddress() {
    return inner.getLocalAddress();
  }

  @Override
  public int getPort() {
    return inner.getPort();
  }

  @Override
  public int getLocalPort() {
    return inner.getLocalPort();
  }

  @Override
  public SocketAddress getRemoteSocketAddress() {
    return isConnected() ? new InetSocketAddress(getInetAddress(), getPort()) : null;
  }

  @Override
  public SocketAddress getLocalSocketAddress() {
    return inner.getLocalSocketAddress();
  }

  @Override
  public boolean isBound() {
    return inner.isBound();
  }

  // ---- options

  @Override
  public void setTcpNoDelay(boolean on) throws SocketException {
    inner.setTcpNoDelay(on);
  }

  @Override
  public boolean getTcpNoDelay() throws SocketException {
    return inner.getTcpNoDelay();
  }

  @Override
  public void setSoLinger(boolean on, int seconds) throws SocketException {
    inner.setSoLinger(on, seconds);
  }

  @Override
  public int getSoLinger() throws SocketException {
    return inner.getSoLinger();
  }

  @Override
  public void setOOBInline(boolean on) throws SocketException {
    inner.setOOBInline(on);
  }

  @Override
  public boolean getOOBInline() throws SocketException {
    return inner.getOOBInline();
  }

  @Override
  public void setSoTimeout(int milliseconds) throws SocketException {
    inner.setSoTimeout(milliseconds);
  }

  @Override
  public int getSoTimeout() throws SocketException {
    return inner.getSoTimeout();
  }

  @Override
  public void setSendBufferSize(int size) throws SocketException {
    inner.setSendBufferSize(size);
  }

  @Override
  public int getSendBufferSize() throws SocketException {
    return inner.getSendBufferSize();
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
  public void setKeepAlive(boolean on) throws SocketException {
    inner.setKeepAlive(on);
  }

  @Override
  public boolean getKeepAlive() throws SocketException {
    return inner.getKeepAlive();
  }

  @Override
  public void setTrafficClass(int tc) throws SocketException {
    inner.setTrafficClass(tc);
  }

  @Override
  public int getTrafficClass() throws SocketException {
    return inner.getTrafficClass();
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
  public <T> Socket setOption(SocketOption<T> name, T value) throws IOException {
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
