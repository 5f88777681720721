/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.nio;

import java.io.IOException;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketOption;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetConnectedException;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A channel of the JDK, which binds, connects and fails; its bytes pass through a stream of C where
 * a rule says so.
 */
final class ViaductSocketChannel extends SocketChannel {
  private final SocketChannel inner;
  private final boolean accepted;
  private final ReentrantLock readLock = new ReentrantLock();
  private final ReentrantLock writeLock = new ReentrantLock();
  private final Object stateLock = new Object();
  private final ByteBuffer[] oneRead = new ByteBuffer[1];
  private final ByteBuffer[] oneWrite = new ByteBuffer[1];
  private final List<ViaductKey> keys = new CopyOnWriteArrayList<>();
  private volatile Stream stream;
  private volatile boolean connected;
  private volatile boolean inputShut;
  private volatile boolean outputShut;
  private volatile boolean reset;
  private final Transfer transfer = new Transfer(this);
  private Socket socket;

  ViaductSocketChannel(ViaductSelectorProvider provider, SocketChannel inner, boolean accepted) {
    super(provider);
    this.inner = inner;
    this.accepted = accepted;
    if (accepted) {
      connectionMade();
    }
  }

  SocketChannel inner() {
    return inner;
  }

  /** Null: all bytes are the JDK's. */
  Stream stream() {
    return stream;
  }

  void addKey(ViaductKey key) {
    keys.add(key);
  }

  void dropKey(ViaductKey key) {
    keys.remove(key);
  }

  // ---- being connected

  private void connectionMade() {
    synchronized (stateLock) {
      if (connected || !isOpen()) {
        return;
      }
      long handle = NioCalls.create(NioCalls.descriptorOf(inner), accepted);
      if (handle != 0) {
        stream = new Stream(handle);
      }
      connected = true;
    }
    for (ViaductKey key : keys) {
      key.streamMade();
    }
  }

  /** Closes this channel if a failure or an interrupt has closed the one below. */
  void follow() throws IOException {
    if (!inner.isOpen() && isOpen()) {
      close();
    }
  }

  @Override
  public SocketChannel bind(SocketAddress local) throws IOException {
    inner.bind(HostAddress.forBind(local));
    return this;
  }

  @Override
  public boolean connect(SocketAddress remote) throws IOException {
    HostAddress.bindSource(inner, remote);
    try {
      boolean done = inner.connect(remote);
      if (done) {
        connectionMade();
      }
      return done;
    } finally {
      follow();
    }
  }

  @Override
  public boolean finishConnect() throws IOException {
    if (connected && isOpen()) {
      return true;
    }
    try {
      boolean done = inner.finishConnect();
      if (done) {
        connectionMade();
      }
      return done;
    } finally {
      follow();
    }
  }

  /** As Socket.connect() does it. */
  void connectFor(SocketAddress remote, int milliseconds) throws IOException {
    HostAddress.bindSource(inner, remote);
    try {
      inner.socket().connect(remote, milliseconds);
      connectionMade();
    } finally {
      follow();
    }
  }

  @Override
  public boolean isConnected() {
    return connected && isOpen();
  }

  @Override
  public boolean isConnectionPending() {
    return inner.isConnectionPending();
  }

  // ---- ends

  @Override
  public SocketChannel shutdownInput() throws IOException {
    Stream s = use();
    if (s == null) {
      inner.shutdownInput();
      inputShut = true;
      return this;
    }
    try {
      if (!inputShut) {
        inputShut = true;
        s.shutdown(NioCalls.SHUT_RD);
      }
    } finally {
      s.leave();
    }
    return this;
  }

  @Override
  public SocketChannel shutdownOutput() throws IOException {
    Stream s = use();
    if (s == null) {
      inner.shutdownOutput();
      outputShut = true;
      return this;
    }
    try {
      if (!outputShut) {
        outputShut = true;
        s.shutdown(NioCalls.SHUT_WR);
      }
    } finally {
      s.leave();
    }
    return this;
  }

  boolean isInputShut() {
    return inputShut;
  }

  boolean isOutputShut() {
    return outputShut;
  }

  @Override
  protected void implCloseSelectableChannel() throws IOException {
    Stream s;
    synchronized (stateLock) {
      s = stream;
    }
    if (s != null) {
      s.close(isBlocking());
    }
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

  // ---- bytes

  /** The stream, to be left later; null: the bytes are the JDK's. */
  private Stream use() throws IOException {
    if (!isOpen()) {
      throw new ClosedChannelException();
    }
    if (!connected) {
      throw new NotYetConnectedException();
    }
    Stream s = stream;
    if (s != null && !s.enter()) {
      throw new ClosedChannelException();
    }
    return s;
  }

  @Override
  public int read(ByteBuffer dst) throws IOException {
    Objects.requireNonNull(dst);
    readLock.lock();
    try {
      Stream s = use();
      if (s == null) {
        try {
          return inner.read(dst);
        } finally {
          follow();
        }
      }
      oneRead[0] = dst;
      try {
        return transfer.receive(s, oneRead, 0, 1, -1);
      } finally {
        oneRead[0] = null;
        s.leave();
      }
    } finally {
      readLock.unlock();
    }
  }

  @Override
  public long read(ByteBuffer[] dsts, int offset, int length) throws IOException {
    Objects.checkFromIndexSize(offset, length, dsts.length);
    readLock.lock();
    try {
      Stream s = use();
      if (s == null) {
        try {
          return inner.read(dsts, offset, length);
        } finally {
          follow();
        }
      }
      try {
        return transfer.receive(s, dsts, offset, offset + length, -1);
      } finally {
        s.leave();
      }
    } finally {
      readLock.unlock();
    }
  }

  /** As the stream of the adaptor does it, whose time limit in ns may be -1: none. */
  int readIn(ByteBuffer dst, long ns) throws IOException {
    readLock.lock();
    try {
      Stream s = use();
      if (s == null) {
        throw new SocketException("the connection has no stream");
      }
      oneRead[0] = dst;
      try {
        return transfer.receive(s, oneRead, 0, 1, ns);
      } finally {
        oneRead[0] = null;
        s.leave();
      }
    } finally {
      readLock.unlock();
    }
  }

  @Override
  public int write(ByteBuffer src) throws IOException {
    Objects.requireNonNull(src);
    writeLock.lock();
    try {
      Stream s = use();
      if (s == null) {
        try {
          return inner.write(src);
        } finally {
          follow();
        }
      }
      oneWrite[0] = src;
      try {
        return (int) transfer.send(s, oneWrite, 0, 1);
      } finally {
        oneWrite[0] = null;
        s.leave();
      }
    } finally {
      writeLock.unlock();
    }
  }

  @Override
  public long write(ByteBuffer[] srcs, int offset, int length) throws IOException {
    Objects.checkFromIndexSize(offset, length, srcs.length);
    writeLock.lock();
    try {
      Stream s = use();
      if (s == null) {
        try {
          return inner.write(srcs, offset, length);
        } finally {
          follow();
        }
      }
      try {
        return transfer.send(s, srcs, offset, offset + length);
      } finally {
        s.leave();
      }
    } finally {
      writeLock.unlock();
    }
  }

  boolean isReset() {
    return reset;
  }

  void setReset() {
    reset = true;
  }

  /** Before a call that blocks: an interrupt closes the channel. */
  void beginCall() {
    begin();
  }

  void endCall(boolean completed) throws AsynchronousCloseException {
    end(completed);
  }

  long available() throws IOException {
    Stream s = use();
    if (s == null) {
      return inner.socket().getInputStream().available();
    }
    try {
      return inputShut ? 0 : Math.max(0, NioCalls.readable(s.handle));
    } finally {
      s.leave();
    }
  }

  /** The kernel alone knows of urgent data, so the connection stays with it. */
  void sendUrgent(int data) throws IOException {
    writeLock.lock();
    try {
      Stream s = use();
      if (s != null) {
        try {
          if (NioCalls.demote(s.handle) != 0) {
            throw new SocketException("the connection did not go back to TCP in time");
          }
        } finally {
          s.leave();
        }
      }
      inner.socket().sendUrgentData(data);
    } finally {
      writeLock.unlock();
    }
  }

  // ---- the rest is the JDK's

  @Override
  public <T> SocketChannel setOption(SocketOption<T> name, T value) throws IOException {
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
  public SocketAddress getRemoteAddress() throws IOException {
    return inner.getRemoteAddress();
  }

  @Override
  public SocketAddress getLocalAddress() throws IOException {
    return inner.getLocalAddress();
  }

  @Override
  public Socket socket() {
    synchronized (stateLock) {
      if (socket == null) {
        try {
          socket = new ViaductSocket(this);
        } catch (SocketException e) {
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
