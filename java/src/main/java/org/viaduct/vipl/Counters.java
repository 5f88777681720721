/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/**
 * Totals since a NIC was opened or a VI created.
 *
 * @param sendsPosted descriptors given to the send queue
 * @param recvsPosted descriptors given to the receive queue
 * @param messagesSent sends and RDMA writes that left here
 * @param messagesReceived those of peers, without direct stores
 * @param bytesSent payload of sends and RDMA writes
 * @param bytesReceived payload of peers, without direct stores
 * @param rdmaWrites RDMA writes begun here
 * @param rdmaReads RDMA reads and atomic operations begun here
 * @param slotsSent packets written into the peer's slices
 * @param slotsReceived packets read from own slices
 * @param dropped messages and RDMA dropped here
 * @param recvQueueEmpty messages without a receive
 * @param protectionErrors accesses refused here
 * @param protocolErrors malformed packets from the peer
 * @param doorbellsRung rings sent
 * @param doorbellsTaken doorbells handled here
 * @param sleeps times a thread went to sleep
 * @param stalls times sending had to wait for room at the peer
 * @param connectionsOpened connections made
 * @param connectionsLost connections broken, not by a disconnect here
 */
public record Counters(
    long sendsPosted,
    long recvsPosted,
    long messagesSent,
    long messagesReceived,
    long bytesSent,
    long bytesReceived,
    long rdmaWrites,
    long rdmaReads,
    long slotsSent,
    long slotsReceived,
    long dropped,
    long recvQueueEmpty,
    long protectionErrors,
    long protocolErrors,
    long doorbellsRung,
    long doorbellsTaken,
    long sleeps,
    long stalls,
    long connectionsOpened,
    long connectionsLost) {}
