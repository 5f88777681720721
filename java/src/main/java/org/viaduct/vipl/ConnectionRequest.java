/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/** A client's request for a connection: accept it with a VI, or reject it. */
public final class ConnectionRequest implements AutoCloseable {
  private final long handle;
  private final NetAddress remote;
  private final ViAttributes attributes;
  private boolean decided;

  ConnectionRequest(long handle, NetAddress remote, ViAttributes attributes) {
    this.handle = handle;
    this.remote = remote;
    this.attributes = attributes;
  }

  /**
   * Tells who asks.
   *
   * @return the address that the client called itself
   */
  public NetAddress remote() {
    return remote;
  }

  /**
   * Tells the attributes of the client's VI.
   *
   * @return its attributes, without a tag
   */
  public ViAttributes attributes() {
    return attributes;
  }

  /**
   * Accepts with an idle VI, whose level and maximum transfer size must be the client's. Post
   * receives before: the client may send at once. After any failure but that the client is
   * gone the request can be accepted again.
   *
   * @param vi the VI
   */
  public synchronized void accept(Vi vi) {
    checkOpen("ConnectionRequest.accept");
    vi.checkOpen("ConnectionRequest.accept");
    int code = Vipl.vipConnectAccept(handle, vi.handle());
    decided =
        code == VipConstants.VIP_SUCCESS
            || code == VipConstants.VIP_TIMEOUT
            || code == VipConstants.VIP_NOT_REACHABLE;
    Codes.check("VipConnectAccept", code, "a request of " + attributes + " from " + remote);
  }

  /** Rejects: the client's call fails with VIP_REJECT. */
  public synchronized void reject() {
    checkOpen("ConnectionRequest.reject");
    decided = true;
    Codes.check("VipConnectReject", Vipl.vipConnectReject(handle), "a request from " + remote);
  }

  private void checkOpen(String call) {
    if (decided) {
      throw new VipClosedException(call, "the request");
    }
  }

  /** Rejects if nothing was decided. */
  @Override
  public synchronized void close() {
    if (!decided) {
      reject();
    }
  }
}
