/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl;

/**
 * Attributes and limits of a NIC; they do not change while it is open.
 *
 * @param name the NIC
 * @param hardwareVersion the version of the hardware
 * @param providerVersion the version of the provider
 * @param address the host address of this NIC, without a discriminator
 * @param maxDiscriminatorLen the most bytes of a discriminator
 * @param maxRegisterBytes the most bytes registered at once
 * @param maxRegisterRegions the most regions
 * @param maxRegisterBlockBytes the most bytes of one region
 * @param maxVi the most VIs
 * @param maxDescriptorsPerQueue the most descriptors in one queue
 * @param maxSegmentsPerDesc the most data segments of a descriptor
 * @param maxCq the most completion queues
 * @param maxCqEntries the most entries of one
 * @param maxTransferSize the most bytes of one descriptor
 * @param nativeMtu bytes that travel in one piece
 * @param maxPtags the most protection tags
 * @param reliabilityLevels the levels, as bits of {@link Reliability#bit}
 * @param rdmaReadLevels the levels with RDMA read, likewise
 */
public record NicAttributes(
    String name,
    long hardwareVersion,
    long providerVersion,
    NetAddress address,
    int maxDiscriminatorLen,
    long maxRegisterBytes,
    long maxRegisterRegions,
    long maxRegisterBlockBytes,
    long maxVi,
    long maxDescriptorsPerQueue,
    long maxSegmentsPerDesc,
    long maxCq,
    long maxCqEntries,
    long maxTransferSize,
    long nativeMtu,
    long maxPtags,
    int reliabilityLevels,
    int rdmaReadLevels) {}
