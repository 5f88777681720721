/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.systems;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.epoll.EpollEventLoopGroup;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * An echo server of Netty, or a client that compares what comes back, by NIO or by Netty's own use
 * of epoll.
 */
public final class NettyEcho {
  private static final int CONNECTIONS = 4;
  private static final int PIECE = 10_000;
  private static final int SMALL = 2_000;
  private static final long BYTES = 32L << 20;

  private NettyEcho() {
  }

  /**
   * A server prints its port and ends with its input; a client needs the port.
   *
   * @param args {@code nio} or {@code epoll}, and, for a client, the port
   * @throws Exception if a byte is wrong
   */
  public static void main(String[] args) throws Exception {
    boolean epoll = args[0].equals("epoll");
    EventLoopGroup group = epoll ? new EpollEventLoopGroup(2) : new NioEventLoopGroup(2);
    if (args.length == 1) {
      serve(group, epoll ? EpollServerSocketChannel.class : NioServerSocketChannel.class);
    } else {
      int port = Integer.parseInt(args[1]);
      ask(group, epoll ? EpollSocketChannel.class : NioSocketChannel.class, port);
    }
    group.shutdownGracefully(0, 10, TimeUnit.SECONDS).sync();
    Counts.write();
    System.exit(0);
  }

  private static void serve(EventLoopGroup group, Class<? extends ServerChannel> kind)
      throws Exception {
    Channel server = new ServerBootstrap().group(group).channel(kind)
        .childOption(ChannelOption.TCP_NODELAY, true)
        .childHandler(new ChannelInitializer<SocketChannel>() {
          @Override
          protected void initChannel(SocketChannel channel) {
            channel.pipeline().addLast(new Echo());
          }
        }).bind("127.0.0.1", 0).sync().channel();
    System.out.println("port " + ((InetSocketAddress) server.localAddress()).getPort());
    System.out.flush();
    while (System.in.read() >= 0) {
      // Wait for the end of the input.
    }
    server.close().sync();
  }

  private static void ask(EventLoopGroup group, Class<? extends Channel> kind, int port)
      throws Exception {
    Client[] clients = new Client[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
      Client client = new Client(i);
      clients[i] = client;
      new Bootstrap().group(group).channel(kind).option(ChannelOption.TCP_NODELAY, true)
          .handler(new ChannelInitializer<SocketChannel>() {
            @Override
            protected void initChannel(SocketChannel channel) {
              channel.pipeline().addLast(client);
            }
          }).connect("127.0.0.1", port).sync();
    }
    for (Client client : clients) {
      client.done.get(300, TimeUnit.SECONDS);
    }
    System.out.printf(
        "{\"connections\": %d, \"bytes_each_way\": %d}%n", CONNECTIONS, CONNECTIONS * BYTES);
  }

  private static final class Echo extends ChannelInboundHandlerAdapter {
    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
      context.write(message, context.voidPromise());
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
      context.flush();
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
      context.channel().config().setAutoRead(context.channel().isWritable());
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
      context.close();
    }
  }

  /**
   * Sends single bytes, each after the echo of the last, then pieces, as many as the channel takes.
   */
  private static final class Client extends ChannelInboundHandlerAdapter {
    private final CompletableFuture<Void> done = new CompletableFuture<>();
    private final int seed;
    private long sent;
    private long received;

    Client(int seed) {
      this.seed = seed;
    }

    private byte byteAt(long position) {
      return (byte) (position * 31 + (position >> 11) + seed);
    }

    private void send(ChannelHandlerContext context, int bytes) {
      ByteBuf piece = context.alloc().directBuffer(bytes);
      for (int i = 0; i < bytes; i++) {
        piece.writeByte(byteAt(sent++));
      }
      context.writeAndFlush(piece);
    }

    private void more(ChannelHandlerContext context) {
      if (sent < SMALL) {
        if (sent == received) {
          send(context, 1);
        }
      } else {
        while (sent < BYTES && context.channel().isWritable()) {
          send(context, (int) Math.min(PIECE, BYTES - sent));
        }
      }
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
      more(context);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
      more(context);
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
      ByteBuf got = (ByteBuf) message;
      try {
        while (got.isReadable()) {
          if (got.readByte() != byteAt(received)) {
            throw new IllegalStateException(
                "byte " + received + " of connection " + seed + " is wrong");
          }
          received++;
        }
      } finally {
        got.release();
      }
      if (received == BYTES) {
        context.close().addListener(closed -> done.complete(null));
      } else {
        more(context);
      }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
      done.completeExceptionally(new IllegalStateException("closed after " + received + " bytes"));
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
      done.completeExceptionally(cause);
      context.close();
    }
  }
}
