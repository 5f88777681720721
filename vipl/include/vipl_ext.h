/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vipl_ext.h - extensions of this provider to the VI Provider Library
 *
 * Every function and type here starts with Vipx.  A program that uses only
 * vipl.h needs none of them.  The first member of a structure is its size; the
 * caller sets it before the call, and the library writes no more than that.
 */
#ifndef _VIPL_EXT_H
#define _VIPL_EXT_H

#include <vipl.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Version of this header; VipxQueryVersion() returns that of the library. */
#define VIPX_VERSION 5

/* How packets to a host travel. */
typedef enum _VIPX_PATH_KIND {
	VIPX_PATH_NONE = 0,	 /* no path */
	VIPX_PATH_SELF = 1,	 /* this host itself */
	VIPX_PATH_NEIGHBOUR = 2, /* a host at the other end of one of this host's ports */
	VIPX_PATH_RELAYED = 3	 /* through the agents of the hosts in between */
} VIPX_PATH_KIND;

typedef struct _VIPX_ROUTE {
	VIP_ULONG Size;	     /* sizeof(VIPX_ROUTE), set by the caller */
	VIP_ULONG Reachable; /* VIP_TRUE or VIP_FALSE */
	VIP_ULONG Hops;	     /* links to cross; 0 to this host */
	VIP_ULONG PathKind;  /* VIPX_PATH_* */
	char Host[64];	     /* name of the remote host */
	char Port[16];	     /* the local port by which packets leave */
	char Reason[160];    /* one line: why this path, or why not reachable */
} VIPX_ROUTE;

/* Totals since the NIC was opened or the VI created. */
typedef struct _VIPX_COUNTERS {
	VIP_ULONG Size;		      /* sizeof(VIPX_COUNTERS), set by the caller */
	VIP_UINT64 SendsPosted;	      /* descriptors given to VipPostSend() */
	VIP_UINT64 RecvsPosted;	      /* descriptors given to VipPostRecv() */
	VIP_UINT64 MessagesSent;      /* sends and RDMA writes that left here */
	VIP_UINT64 MessagesReceived;  /* sends and RDMA writes of peers, without direct stores */
	VIP_UINT64 BytesSent;	      /* payload of sends and RDMA writes */
	VIP_UINT64 BytesReceived;     /* payload of those, without direct stores */
	VIP_UINT64 RdmaWrites;	      /* RDMA writes begun here */
	VIP_UINT64 RdmaReads;	      /* RDMA reads and atomic operations begun here */
	VIP_UINT64 SlotsSent;	      /* packets written into the peer's slices */
	VIP_UINT64 SlotsReceived;     /* packets read from own slices */
	VIP_UINT64 Dropped;	      /* messages and RDMA dropped here */
	VIP_UINT64 RecvQueueEmpty;    /* messages without a receive */
	VIP_UINT64 ProtectionErrors;  /* accesses refused here */
	VIP_UINT64 ProtocolErrors;    /* malformed packets from the peer */
	VIP_UINT64 DoorbellsRung;     /* rings sent */
	VIP_UINT64 DoorbellsTaken;    /* doorbells that were handled here */
	VIP_UINT64 Sleeps;	      /* times a thread went to sleep */
	VIP_UINT64 Stalls;	      /* times sending had to wait for room at the peer */
	VIP_UINT64 ConnectionsOpened; /* connections made */
	VIP_UINT64 ConnectionsLost;   /* connections broken, not by VipDisconnect() here */
} VIPX_COUNTERS;

/*
 * Atomic operations on memory of the other end: a kind of descriptor for VipPostSend(), made of
 *
 *   CS.Control        VIPX_CONTROL_OP_ATOMIC; VIP_CONTROL_QFENCE may be added
 *   CS.ImmediateData  the operation, VIPX_ATOMIC_*
 *   CS.Length         the size of the operand, 4 or 8
 *   CS.SegCount       2: the old value is not wanted; 3, or more if it is to be scattered
 *   Remote            the operand's address there, a multiple of its size, and the memory handle
 *   Atomic            the values
 *   Result            where the old value goes, CS.Length bytes
 *
 * The memory is, as for RDMA, memory of VipRegisterMem() or window memory. The VI of the other end and the
 * memory must enable RDMA writes and RDMA reads, and their tags agree; else the error is that of an RDMA read.
 * The operation is atomic with respect to all threads of that host, those that the library executes for
 * other VIs, and those of processes with the memory in VipxMapRemote() or fork(), as far as they use
 * atomic operations of the processor of that size. It is executed exactly once, even if the connection
 * continues over another path. The other end's library executes it, when its program polls or in a
 * thread of its own.
 *
 * Order and completion are those of an RDMA read. The operation is executed after all that the VI sent
 * before, though an earlier read may return the new value unless a fence is between them. It is complete
 * when it was executed and the old value is there. At most 16 reads and atomic operations are under way;
 * further ones wait. Only levels in RDMAReadSupport have it. A completed descriptor has
 * VIPX_STATUS_OP_ATOMIC. FORMAT_ERROR: an unknown operation, size or level, too few segments, immediate
 * data, an address that is no multiple of the size, or VIPX_ATOMIC_FETCH without Result. LENGTH_ERROR:
 * Result has another length.
 *
 * Since: 1.3. An earlier library completes the descriptor with FORMAT_ERROR.
 */
#define VIPX_CONTROL_OP_ATOMIC 0x3
#define VIPX_STATUS_OP_ATOMIC 0x50000

/* New values in memory; with a size of 4 the low half of Operand and Compare counts. */
typedef enum _VIPX_ATOMIC_OP {
	VIPX_ATOMIC_FETCH = 1,	      /* the old one */
	VIPX_ATOMIC_SWAP = 2,	      /* Operand; without Result it is a store */
	VIPX_ATOMIC_COMPARE_SWAP = 3, /* Operand, if the old one is Compare, else the old one */
	VIPX_ATOMIC_ADD = 4,	      /* the sum with Operand, modulo 2^32 or 2^64 */
	VIPX_ATOMIC_AND = 5,	      /* the bits of both */
	VIPX_ATOMIC_OR = 6,	      /* the bits of either */
	VIPX_ATOMIC_XOR = 7	      /* the bits of one but not the other */
} VIPX_ATOMIC_OP;

/* Second segment of the descriptor. */
typedef struct _VIPX_ATOMIC_SEGMENT {
	VIP_UINT64 Operand;
	VIP_UINT64 Compare; /* for VIPX_ATOMIC_COMPARE_SWAP only */
} VIPX_ATOMIC_SEGMENT;

/* The descriptor, cast to VIP_DESCRIPTOR * for the calls; aligned as that, also in arrays. */
typedef struct _VIPX_ATOMIC_DESCRIPTOR {
	VIP_CONTROL_SEGMENT CS;
	VIP_ADDRESS_SEGMENT Remote;
	VIPX_ATOMIC_SEGMENT Atomic;
	VIP_DATA_SEGMENT Result;
	VIP_UINT32 Unused[12];
} VIPX_ATOMIC_DESCRIPTOR;

/* A completion that VipxCQTake() took. */
typedef struct _VIPX_COMPLETION {
	VIP_ULONG Size;		       /* set in the first entry: bytes from one to the next */
	VIP_VI_HANDLE ViHandle;	       /* the VI */
	VIP_PVOID Context;	       /* of the VI, from VipxSetViContext() */
	VIP_DESCRIPTOR *DescriptorPtr; /* taken from the queue */
	VIP_BOOLEAN RecvQueue;	       /* VIP_TRUE: the receive queue, VIP_FALSE: the send queue */
	VIP_UINT32 Status;	       /* as in the descriptor: VIP_STATUS_ */
	VIP_UINT32 Length;	       /* bytes that were sent or received, as in the descriptor */
	VIP_UINT32 Reserved;
} VIPX_COMPLETION;

/* Roles of threads that are placed on processors. */
typedef enum _VIPX_ROLE {
	VIPX_ROLE_APPLICATION = 0, /* threads of the program that post and take */
	VIPX_ROLE_TRANSFER = 1,	   /* the thread of the library that moves packets of a NIC */
	VIPX_ROLE_SERVICE = 2	   /* threads of the program that move data for its other threads */
} VIPX_ROLE;

/* Places on processors. */
typedef enum _VIPX_PLACE {
	VIPX_PLACE_ANYWHERE = 0,      /* wherever the process may run */
	VIPX_PLACE_SAME_CORE = 1,     /* the core of the application's thread */
	VIPX_PLACE_SHARED_CACHE = 2,  /* other cores that share a cache with it */
	VIPX_PLACE_SAME_PACKAGE = 3,  /* other cores of the package, under another cache */
	VIPX_PLACE_OTHER_PACKAGE = 4, /* cores of other packages */
	VIPX_PLACE_DEVICE = 5,	      /* the memory node of the adapter */
	VIPX_PLACE_LIST = 6	      /* processors named by their numbers */
} VIPX_PLACE;

/* The place that a thread got, and the reason. */
typedef struct _VIPX_PLACEMENT {
	VIP_ULONG Size;	   /* sizeof(VIPX_PLACEMENT), set by the caller */
	VIP_ULONG Asked;   /* VIPX_PLACE_* */
	VIP_ULONG Got;	   /* VIPX_PLACE_* */
	VIP_ULONG AsAsked; /* VIP_TRUE or VIP_FALSE */
	char Cpus[128];	   /* the processors, as in "2-5,8"; empty: not placed */
	char Text[200];	   /* one line: asked, got, and why */
	char Warning[200]; /* one line, or empty: e.g. which other thread has its processor */
} VIPX_PLACEMENT;

/**
 * VipxAllocMem - allocate registered memory in the window
 * @NicHandle: in, handle from VipOpenNic()
 * @Length: in, bytes, at least 1; rounded up to whole pages
 * @MemAttribs: in, attributes, or NULL: no protection tag, no RDMA
 * @Address: out, start of the memory, page-aligned and zeroed, not NULL
 * @MemoryHandle: out, its handle, not NULL
 *
 * Memory that peers reach without a copy: the memory window of the host's ports. It is registered
 * like memory given to VipRegisterMem(), over the rounded length. VipSetMemAttributes() and
 * VipQueryMem() work on it; VipDeregisterMem() does not.
 *
 * A peer's RDMA writes go through slots at first, as to any memory, and soon become stores: such a
 * write costs only the copy, this process has no part in it, and it is complete when VipPostSend()
 * returns. That holds for writes up to 16 MiB, when the peer has consumed all that the VI sent
 * before. Errors, order and the order of bytes are those of any RDMA write.
 *
 * Sends of neighbours into receives of one segment of 4 KiB or more in such memory, which the VI and
 * the memory open to RDMA writes, become stores as well. So the memory of a receive that was flushed
 * can still change until VipDisconnect() returns, as can all memory that is open to a peer's writes. A
 * hostile process of a peer can read and store there until the memory is freed; only this library
 * accesses memory of VipRegisterMem(). Children of fork() share the memory: the parent and its peers
 * see what they store there. When the parent has freed it, or ended, children may find zeroes there.
 *
 * Ownership: the caller frees it with VipxFreeMem().
 *
 * Return:
 *  - VIP_SUCCESS: allocated and registered
 *  - VIP_INVALID_PARAMETER: a bad handle, a NULL pointer, or Length 0 or above
 *    MaxRegisterBlockBytes
 *  - VIP_ERROR_RESOURCE: the window or the table of regions is full: free some, or raise
 *    VIADUCT_WINDOW_BYTES. Or the agent is gone
 *  - VIP_TIMEOUT: the agent is stopped or overloaded, and did not answer for 5 s. Try again
 *  - VIP_INVALID_PTAG: Ptag is neither NULL nor a tag of this NIC handle
 *  - VIP_INVALID_RDMAREAD: EnableRdmaRead, but the NIC has no RDMA read
 *
 * Context: may ask the agent, which answers at once. Thread-safe. Allowed in handlers.
 *
 * Ordering: valid for descriptors posted after the return.
 *
 * Since: 1.0
 */
VIP_RETURN VipxAllocMem(VIP_NIC_HANDLE NicHandle, VIP_ULONG Length, VIP_MEM_ATTRIBUTES *MemAttribs,
			VIP_PVOID *Address, VIP_MEM_HANDLE *MemoryHandle);

/**
 * VipxFreeMem - free memory of VipxAllocMem
 * @NicHandle: in, the NIC handle it was allocated with
 * @Address: in, the address VipxAllocMem() gave
 * @MemoryHandle: in, the handle VipxAllocMem() gave
 *
 * Ends the registration and unmaps the memory. Take descriptors that use it first.
 *
 * Ownership: after success neither address nor handle may be used.
 *
 * Return:
 *  - VIP_SUCCESS: freed
 *  - VIP_INVALID_PARAMETER: a bad NIC handle, an unknown memory handle, another address, or memory
 *    that is not of VipxAllocMem(): use VipDeregisterMem()
 *
 * Context: waits until every peer that stores into the memory has unmapped it; one that does not
 * within two seconds loses its connection. Thread-safe. Allowed in handlers.
 *
 * Ordering: the pages are not reused before every peer has unmapped them.
 *
 * Since: 1.0
 */
VIP_RETURN VipxFreeMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemoryHandle);

/* Flags of VipxAdoptMem(). */
#define VIPX_ADOPT_NO_WRITERS 0x1 /* the caller sees to it that nothing else writes there */

/**
 * VipxAdoptMem - register memory of the program and make window memory of it
 * @NicHandle: in, handle from VipOpenNic()
 * @Address: in, start of the memory, a multiple of the page size, not NULL
 * @Length: in, bytes, a multiple of the page size, at least one page
 * @MemAttribs: in, attributes, or NULL: no protection tag, no RDMA
 * @Flags: in, 0 or VIPX_ADOPT_NO_WRITERS
 * @MemoryHandle: out, its handle, not NULL
 *
 * Does for existing memory what VipxAllocMem() does for new memory: a peer's RDMA writes soon become
 * stores, which a thread that polls the memory sees without any call. The content is copied into the
 * window, and the window's pages are mapped in the place of the old ones: address and content stay.
 * Existing registrations of the memory stay valid. Peers on other machines store there only if an IOMMU
 * translates for the adapter; else their writes go through slots.
 *
 * The memory must be private, readable, writable and not executable: that of malloc(), aligned_alloc()
 * and mmap(), the variables of a program, or a private mapping of a file, whose pages are copied. It is
 * refused if part of it is shared or window memory (adopted memory as well), the first thread's stack or
 * that of the calling thread, has pages of MAP_HUGETLB, a
 * protection key or a userfaultfd, is locked by mlock(), has guarded pages, or has an attribute of
 * madvise() that is no hint, such as MADV_DONTFORK or MADV_DONTDUMP. Transparent huge pages are taken.
 * Hints, names and a NUMA policy are lost, and memory that was given back has ordinary anonymous pages. The
 * stack of another thread cannot be told from other memory; do not give it.
 *
 * With Flags 0 all other threads of the process are stopped while the content is copied and the pages are
 * exchanged, and signals to this one wait, so no store is lost. A thread that sleeps in a system call makes the
 * call again; so one that slept at a futex of the old pages sleeps at that of the new ones. Some system calls
 * end with EINTR instead, as after SIGSTOP and SIGCONT: epoll_wait(), semop() and others of signal(7). The threads
 * are stopped by ptrace, for which the call makes a process that shares the memory of this one and ends with the
 * call. Where that is impossible, as under a debugger, under a filter of system calls that forbids ptrace, or if
 * threads of io_uring work, the memory is refused. If the Yama module restricts ptrace to parents, the
 * process agrees by PR_SET_PTRACER for the time of the call, and to nobody afterwards. With
 * VIPX_ADOPT_NO_WRITERS nothing is stopped: threads that read see the content, and a store that another thread makes
 * during the call may be lost, as during the call that gives the memory back. With either value, pages into
 * which the kernel or a device writes by an address that it took before, as for direct I/O and
 * io_uring, must have no transfer under way.
 *
 * Children that are forked later do not have the memory, as with MADV_DONTFORK: one that touches it is
 * ended by SIGSEGV. Those forked before keep their own copy. A hostile process of a peer can read and
 * store in all of these pages, so nothing but the buffer should lie in them.
 *
 * Ownership: the memory stays the caller's. VipDeregisterMem() gives it back: private memory with the
 * content it has then, at the same address; VipxFreeMem() does not take it. Before that do not free(),
 * unmap or remap it or change its protection. If the program did, VipDeregisterMem() leaves what was
 * unmapped or mapped again as it is, and keeps a changed protection.
 *
 * Return:
 *  - VIP_SUCCESS: adopted and registered
 *  - VIP_INVALID_PARAMETER: a bad handle, a NULL pointer, an unknown flag, Address or Length is no
 *    multiple of the page size, Length is 0 or above MaxRegisterBlockBytes, or part of the memory is
 *    not mapped
 *  - VIP_ERROR_NOT_SUPPORTED: memory that is refused, or threads cannot be stopped: VIADUCT_LOG=info
 *    tells which. Use memory of mmap() or VipxAllocMem(); or VIPX_ADOPT_NO_WRITERS where nothing
 *    writes there; or VipRegisterMem(), which takes any memory
 *  - VIP_ERROR_RESOURCE: the window or the table of regions is full: give some back, or raise
 *    VIADUCT_WINDOW_BYTES. Or out of memory, of mappings or of file descriptors. Or the agent is gone
 *  - VIP_TIMEOUT: the agent is stopped or overloaded, and did not answer for 5 s. Try again
 *  - VIP_INVALID_PTAG: Ptag is neither NULL nor a tag of this NIC handle
 *  - VIP_INVALID_RDMAREAD: EnableRdmaRead, but the NIC has no RDMA read
 *
 * An error leaves the memory as it was.
 *
 * Context: asks the agent and copies the memory; for a moment both copies are present. Reads
 * /proc/self/smaps, which takes milliseconds in a process of many GiB. Thread-safe; one thread at a
 * time is served. Allowed in handlers.
 *
 * Ordering: valid for descriptors posted after the return.
 *
 * Since: 1.2
 */
VIP_RETURN VipxAdoptMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_ULONG Length,
			VIP_MEM_ATTRIBUTES *MemAttribs, VIP_ULONG Flags,
			VIP_MEM_HANDLE *MemoryHandle);

/**
 * VipxMapRemote - map window memory of the process at the other end of a connection
 * @ViHandle: in, a connected VI whose other end is a process of this host, or this process
 * @RemoteAddress: in, start of the memory, as the other end addresses it
 * @Length: in, bytes, at least 1
 * @RemoteMemHandle: in, the handle that the other end has of the memory
 * @Address: out, where the memory can be loaded and stored, not NULL
 *
 * Maps the memory of VipxAllocMem() or VipxAdoptMem() itself, not a copy: loads and stores of the
 * processor work there, and its atomic operations, which are atomic among all processes of the host that
 * have the memory. Pages are not touched by the call. The VI of the other end and the memory must enable
 * RDMA writes and RDMA reads, which no VI of the unreliable level does, and their tags must agree. A VI
 * has 256 mappings at most; memory can be mapped several times.
 *
 * When the right ends - the other end frees the memory, changes its attributes or disconnects, or the
 * connection is lost - the pages are exchanged for private ones, zero at first, in one step: the
 * program can go on loading and storing there, without effect on anyone. The VI's state and the error
 * handler report a lost connection as usual; freed memory is not reported. Children of fork()
 * do not have the mapping: one that touches it is ended by SIGSEGV.
 *
 * Ownership: the mapping is the caller's until VipxUnmapRemote(), or VipDisconnect() of this VI.
 *
 * Return:
 *  - VIP_SUCCESS: Address is filled
 *  - VIP_INVALID_PARAMETER: not a VI handle, a NULL pointer, Length is 0, part of the range is not in
 *    memory of that handle, or a right or tag of the other end does not allow it
 *  - VIP_ERROR_NOT_SUPPORTED: the other end is on another host, or the memory is of VipRegisterMem():
 *    use RDMA
 *  - VIP_INVALID_STATE: the VI is not connected, or was disconnected during the call
 *  - VIP_ERROR_RESOURCE: too many mappings, out of memory or of file descriptors, or the agent is gone
 *  - VIP_TIMEOUT: the agent or the other process is stopped or overloaded, and did not answer for 5 s.
 *    Try again
 *
 * Context: asks the other process, whose library answers at once, without the program's help.
 * Thread-safe. Allowed in handlers.
 *
 * Ordering: none with descriptors of the VI: data that this process posted is in the memory after
 * VipxFlush() or when its completion says so.
 *
 * Since: 1.3
 */
VIP_RETURN VipxMapRemote(VIP_VI_HANDLE ViHandle, VIP_UINT64 RemoteAddress, VIP_ULONG Length,
			 VIP_MEM_HANDLE RemoteMemHandle, VIP_PVOID *Address);

/**
 * VipxUnmapRemote - end a mapping of VipxMapRemote
 * @ViHandle: in, the VI it was made with
 * @Address: in, the address VipxMapRemote() gave
 *
 * Ownership: the address may not be used any more, by any thread.
 *
 * Return:
 *  - VIP_SUCCESS: unmapped
 *  - VIP_INVALID_PARAMETER: not a VI handle, or not the address of a mapping of this VI
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: stores made before stay.
 *
 * Since: 1.3
 */
VIP_RETURN VipxUnmapRemote(VIP_VI_HANDLE ViHandle, VIP_PVOID Address);

/**
 * VipxFlush - wait until all that was posted has been executed at the other end
 * @ViHandle: in, a connected VI
 * @Timeout: in, milliseconds, or VIP_INFINITE; 0: just looks
 *
 * On return every descriptor that was posted to the send queue before is complete, and the RDMA writes
 * and atomic operations among them have changed the memory of the other end. Every thread and process
 * that has the memory sees that, also one that learns of the return by a message of another VI. Sends have
 * been received, or dropped for want of a receive; at the unreliable level all may have been dropped. The
 * descriptors stay in the queue: take them as usual.
 *
 * If the other end is on this host, or if there is nothing to wait for, the call is short; if only direct
 * stores to a neighbour are under way it waits for one read across the link. Stores through
 * VipxMapRemote(), of any VI, are in the memory, too.
 *
 * Ownership: nothing changes hands.
 *
 * Return:
 *  - VIP_SUCCESS: all is there
 *  - VIP_TIMEOUT: not in time, as when the other process is stopped, or when the connection looks for
 *    another path. Call again
 *  - VIP_INVALID_STATE: the VI is not connected, or the connection was lost during the call: the
 *    descriptors tell what became of them
 *  - VIP_INVALID_PARAMETER: not a VI handle
 *
 * Context: blocks up to Timeout; a cancellation point while it waits. Thread-safe: other threads may
 * post, and flush, at the same time. Allowed in handlers.
 *
 * Ordering: for all that this thread posted before, or saw another thread post; a full memory fence.
 *
 * Since: 1.3
 */
VIP_RETURN VipxFlush(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout);

/**
 * VipxPostSends - post many descriptors to the send queue of a VI
 * @ViHandle: in, the VI
 * @Descriptors: in, Count pointers to descriptors, not NULL; none of them NULL
 * @Count: in, how many
 * @MemoryHandle: in, the handle of the memory in which all of the descriptors lie
 * @Posted: out, how many were posted, not NULL
 *
 * Does what Count calls of VipPostSend() would do, in the order of the array, and takes the queue's
 * lock once. It ends with the first descriptor that is refused. Another thread that posts to the VI
 * waits until all are posted, and so does VipDeregisterMem() of any memory of the NIC.
 *
 * Successive sends of one length, 56 bytes at most in one data segment, without immediate data and
 * without a fence, cost less together: as many as 112 bytes hold go as one packet. Each is still a message
 * with a receive and a completion of its own.
 *
 * Ownership: the array is the caller's again at the return; the first Posted descriptors and their
 * data as after VipPostSend().
 *
 * Return:
 *  - VIP_SUCCESS: all were posted; also when Count is 0
 *  - VIP_INVALID_PARAMETER: not a VI handle, a NULL pointer, or the descriptor after the last one
 *    that was posted is not aligned or not in memory of the handle
 *  - VIP_ERROR_RESOURCE: the queue is full; Posted says how far it went. Take completed descriptors
 *    and post the rest
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: as Count calls of VipPostSend() in one thread.
 *
 * Since: 1.1
 */
VIP_RETURN VipxPostSends(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *const *Descriptors,
			 VIP_ULONG Count, VIP_MEM_HANDLE MemoryHandle, VIP_ULONG *Posted);

/**
 * VipxPostRecvs - post many descriptors to the receive queue of a VI
 * @ViHandle: in, the VI
 * @Descriptors: in, Count pointers to descriptors, not NULL; none of them NULL
 * @Count: in, how many
 * @MemoryHandle: in, the handle of the memory in which all of the descriptors lie
 * @Posted: out, how many were posted, not NULL
 *
 * Does what Count calls of VipPostRecv() would do, as VipxPostSends() does for sends.
 *
 * Ownership: the array is the caller's again at the return; the first Posted descriptors and their
 * data as after VipPostRecv().
 *
 * Return:
 *  - VIP_SUCCESS: all were posted; also when Count is 0
 *  - VIP_INVALID_PARAMETER: not a VI handle, a NULL pointer, or the descriptor after the last one
 *    that was posted is not aligned or not in memory of the handle
 *  - VIP_ERROR_RESOURCE: the queue is full; Posted says how far it went. Take completed descriptors
 *    and post the rest
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: as Count calls of VipPostRecv() in one thread.
 *
 * Since: 1.1
 */
VIP_RETURN VipxPostRecvs(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *const *Descriptors,
			 VIP_ULONG Count, VIP_MEM_HANDLE MemoryHandle, VIP_ULONG *Posted);

/**
 * VipxSendsDone - take many completed descriptors from the send queue of a VI
 * @ViHandle: in, the VI
 * @Descriptors: out, room for Max pointers, not NULL
 * @Max: in, the most to take, at least 1; a call takes 256 at most
 * @Count: out, how many were taken, not NULL
 *
 * Takes what VipSendDone() would take in Count calls, oldest first, and takes the queue's lock once.
 * It ends after a descriptor that completed with an error. Moves packets if it finds none.
 *
 * Ownership: the descriptors taken, and their data, belong to the caller again.
 *
 * Return:
 *  - VIP_SUCCESS: at least one was taken, all without error
 *  - VIP_DESCRIPTOR_ERROR: the last of those taken completed with an error: see its Status
 *  - VIP_NOT_DONE: none is complete, or none is posted; Count is 0
 *  - VIP_INVALID_PARAMETER: not a VI handle, a NULL pointer, or Max is 0; Count is 0 if it can be set
 *
 * Context: does not block. Thread-safe. Allowed in handlers. Works also for a queue with a completion
 * queue, as VipSendDone() does.
 *
 * Ordering: the order in which they were posted.
 *
 * Since: 1.1
 */
VIP_RETURN VipxSendsDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **Descriptors, VIP_ULONG Max,
			 VIP_ULONG *Count);

/**
 * VipxRecvsDone - take many completed descriptors from the receive queue of a VI
 * @ViHandle: in, the VI
 * @Descriptors: out, room for Max pointers, not NULL
 * @Max: in, the most to take, at least 1; a call takes 256 at most
 * @Count: out, how many were taken, not NULL
 *
 * Takes what VipRecvDone() would take in Count calls, oldest first, and takes the queue's lock once:
 * what is complete, and then messages that have arrived, until a poll completes none. It ends after a
 * descriptor that completed with an error.
 *
 * Ownership: the descriptors taken, and their data, belong to the caller again.
 *
 * Return:
 *  - VIP_SUCCESS: at least one was taken, all without error
 *  - VIP_DESCRIPTOR_ERROR: the last of those taken completed with an error: see its Status
 *  - VIP_NOT_DONE: none is complete, or none is posted; Count is 0
 *  - VIP_INVALID_PARAMETER: not a VI handle, a NULL pointer, or Max is 0; Count is 0 if it can be set
 *
 * Context: does not block. Thread-safe. Allowed in handlers. Works also for a queue with a completion
 * queue, as VipRecvDone() does.
 *
 * Ordering: the order of the messages.
 *
 * Since: 1.1
 */
VIP_RETURN VipxRecvsDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **Descriptors, VIP_ULONG Max,
			 VIP_ULONG *Count);

/**
 * VipxSetViContext - keep a pointer with a VI
 * @ViHandle: in, the VI
 * @Context: in, any value
 *
 * VipxCQTake() gives it with every completion of the VI, so that the program need not look up the handle. A new VI
 * has NULL.
 *
 * Ownership: the library does not use what the pointer points to.
 *
 * Return:
 *  - VIP_SUCCESS: set
 *  - VIP_INVALID_PARAMETER: not a VI handle
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: a VipxCQTake() that begins after the return gives the new value.
 *
 * Since: 1.2
 */
VIP_RETURN VipxSetViContext(VIP_VI_HANDLE ViHandle, VIP_PVOID Context);

/**
 * VipxCQTake - take many completed descriptors of the VIs of a completion queue
 * @CQHandle: in, the queue
 * @Completions: in/out, in: Size of the first entry; out: room for Max entries, Size bytes apart, not NULL
 * @Max: in, the most to take, at least 1; a call takes 256 at most
 * @Count: out, how many were taken, not NULL
 *
 * Does what VipCQDone() and, for each entry, VipSendDone() or VipRecvDone() would do, until Max are
 * taken or a poll finds no more. Moves packets if it finds none. A descriptor that completed with an
 * error is an entry like any other: see its Status. An entry of the queue whose descriptor was taken
 * by VipSendDone() or VipRecvDone() already is left out. If VipCQDone() gave an entry whose descriptor
 * is still in its queue, that descriptor is the one that this call takes there, as it is the oldest. Size
 * of the other entries is neither read nor written.
 *
 * Ownership: the descriptors taken, and their data, belong to the caller again.
 *
 * Return:
 *  - VIP_SUCCESS: at least one was taken
 *  - VIP_NOT_DONE: there is none; Count is 0
 *  - VIP_INVALID_PARAMETER: not a CQ handle, a NULL pointer, Max is 0, or Size is smaller than the structure or not a
 *    multiple of its alignment; Count is 0 if it can be set
 *
 * Context: does not block, but waits while another thread is inside a call on one of the VIs. Thread-safe. Allowed
 * in handlers.
 *
 * Ordering: the entries of one work queue in the order of completion; among queues round robin, up to 16 entries of one
 * at a time.
 *
 * Since: 1.2
 */
VIP_RETURN VipxCQTake(VIP_CQ_HANDLE CQHandle, VIPX_COMPLETION *Completions, VIP_ULONG Max,
		      VIP_ULONG *Count);

/**
 * VipxCQFd - tell the file descriptor of a completion queue
 * @CQHandle: in, the queue
 * @Fd: out, a file descriptor for poll(2) and epoll(7), not NULL
 *
 * It becomes readable when the queue was armed with VipxCQArm() and gets an entry. Every call
 * returns the one descriptor of the queue. Do not read from it: VipxCQArm() clears it. A child of
 * fork() has the descriptor too and must not read from it either.
 *
 * Ownership: the descriptor belongs to the queue; VipDestroyCQ() closes it. Do not close it.
 *
 * Return:
 *  - VIP_SUCCESS: Fd is filled
 *  - VIP_INVALID_PARAMETER: not a CQ handle, or NULL
 *  - VIP_ERROR_RESOURCE: no file descriptor or thread left. Raise the limit (ulimit -n)
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 */
VIP_RETURN VipxCQFd(VIP_CQ_HANDLE CQHandle, int *Fd);

/**
 * VipxCQArm - arm the file descriptor of a completion queue
 * @CQHandle: in, the queue
 *
 * Makes the descriptor of VipxCQFd() not readable and arms it for the next entry, once. If entries
 * are there already, it becomes readable at once. Use: arm, then VipCQDone() until VIP_NOT_DONE,
 * then sleep in epoll; when it wakes, arm again.
 *
 * Ownership: nothing changes hands.
 *
 * Return:
 *  - VIP_SUCCESS: armed
 *  - VIP_INVALID_PARAMETER: not a CQ handle
 *  - VIP_ERROR_RESOURCE: no file descriptor or thread left. Raise the limit (ulimit -n)
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: an entry added after the call makes the descriptor readable; none is missed.
 *
 * Since: 1.0
 */
VIP_RETURN VipxCQArm(VIP_CQ_HANDLE CQHandle);

/**
 * VipxProgress - move packets of all VIs of a NIC now
 * @NicHandle: in, handle from VipOpenNic()
 *
 * Packets also move in every Done, Wait and Post call, and in a thread of the library when none of
 * these is called. A program that computes for long answers its peers sooner if it calls this from
 * time to time.
 *
 * Ownership: nothing changes hands.
 *
 * Return:
 *  - VIP_SUCCESS: packets were moved
 *  - VIP_NOT_DONE: there was nothing to move
 *  - VIP_INVALID_PARAMETER: not an open NIC handle
 *
 * Context: does not block. Thread-safe: a VI that is busy in another thread is left to it. Allowed
 * in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 */
VIP_RETURN VipxProgress(VIP_NIC_HANDLE NicHandle);

/**
 * VipxSetAffinity - place the threads of a NIC on processors
 * @NicHandle: in, handle from VipOpenNic()
 * @Rules: in, rules as in VIADUCT_AFFINITY, such as "transfer=shared-cache"; NULL: those of
 *	VIADUCT_AFFINITY
 *
 * The calling thread is the application's thread, to which relations refer: call it again when that
 * thread was bound elsewhere. The rule for transfer places the thread of the library that moves
 * packets; without one it may run wherever the process may. A rule for application, and nothing else,
 * moves the calling thread. Rules for service hold for later calls of VipxPlaceThread() with this NIC;
 * other roles are those of agents and have no effect. VipOpenNic() does what VIADUCT_AFFINITY says.
 *
 * Ownership: Rules is the caller's.
 *
 * Return:
 *  - VIP_SUCCESS: placed, maybe not as asked: see VipxQueryPlacement()
 *  - VIP_INVALID_PARAMETER: a bad handle, or rules that are not understood; the log says why
 *  - VIP_ERROR_RESOURCE: the rules have the word strict, and something cannot be had as asked; nothing
 *    was changed. Or no memory
 *
 * Context: reads the topology of the machine, milliseconds. Thread-safe. Not for handlers.
 *
 * Ordering: the threads have moved on return.
 *
 * Since: 1.4
 */
VIP_RETURN VipxSetAffinity(VIP_NIC_HANDLE NicHandle, const char *Rules);

/**
 * VipxQueryPlacement - tell where a thread of a NIC was placed
 * @NicHandle: in, handle from VipOpenNic()
 * @Role: in, VIPX_ROLE_APPLICATION, for the thread that opened the NIC or called VipxSetAffinity() last,
 *	or VIPX_ROLE_TRANSFER
 * @Placement: in/out, in: Size; out: the placement, not NULL
 *
 * Ownership: Placement is the caller's. No more than Size bytes are written.
 *
 * Return:
 *  - VIP_SUCCESS: Placement is filled
 *  - VIP_INVALID_PARAMETER: a bad handle, another role, a NULL pointer, or a Size smaller than that of
 *    version 5
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: the result of the latest call; a thread that was moved by other means is not noticed.
 *
 * Since: 1.4
 */
VIP_RETURN VipxQueryPlacement(VIP_NIC_HANDLE NicHandle, VIP_ULONG Role, VIPX_PLACEMENT *Placement);

/* Flags of VipxPlaceThread(). */
#define VIPX_PLACE_POLLS 0x1 /* the thread never sleeps */

/**
 * VipxPlaceThread - place the calling thread
 * @NicHandle: in, handle from VipOpenNic(): by the rules that this NIC has
 * @Role: in, VIPX_ROLE_SERVICE, or VIPX_ROLE_APPLICATION
 * @Index: in, number of the thread among those of the role, from 0
 * @Count: in, how many threads of the role there are, at least 1
 * @Flags: in, 0 or VIPX_PLACE_POLLS
 * @Placement: in/out, in: Size; out: the placement, or NULL
 *
 * For threads of the program, such as those of a library above this one. If there is a rule for the
 * role the thread is bound; threads of the role service take the processors of the place in turn. Without a rule
 * it stays where it is. If the rules have the word dynamic, a service thread is bound to one core of the place,
 * and the library moves it to others, by their load, until it ends, the NIC is closed or VipxSetAffinity() is
 * called; at most 64 threads of a NIC.
 *
 * Ownership: Placement is the caller's. No more than Size bytes are written.
 *
 * Return:
 *  - VIP_SUCCESS: placed, maybe not as asked, or there is no rule
 *  - VIP_INVALID_PARAMETER: a bad handle, another role, Index not below Count, an unknown flag, or a Size
 *    smaller than that of version 5
 *  - VIP_ERROR_RESOURCE: the rules have the word strict, and the place cannot be had; the thread was not moved.
 *    Or no memory
 *
 * Context: does not block. Thread-safe. Not for handlers.
 *
 * Ordering: the thread has moved on return.
 *
 * Since: 1.4
 */
VIP_RETURN VipxPlaceThread(VIP_NIC_HANDLE NicHandle, VIP_ULONG Role, VIP_ULONG Index,
			   VIP_ULONG Count, VIP_ULONG Flags, VIPX_PLACEMENT *Placement);

/**
 * VipxErrorString - tell the name of a return code
 * @Code: in, a return code
 *
 * Ownership: the text is a constant of the library. Do not free it.
 *
 * Return: the name, such as "VIP_NOT_DONE"; for an unknown code a text that says so. Never NULL
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 */
const char *VipxErrorString(VIP_RETURN Code);

/**
 * VipxStatusString - name the bits of a descriptor status
 * @Status: in, the Status of a descriptor
 * @Buffer: out, the names without VIP_STATUS_, separated by '|', ended by a zero byte, such as
 *	"DONE|LENGTH_ERROR|OP_RECEIVE"; not NULL. 192 bytes are always enough
 * @Length: in, bytes of room in Buffer, at least 1
 *
 * Ownership: Buffer is the caller's.
 *
 * Return:
 *  - VIP_SUCCESS: the whole text is in Buffer
 *  - VIP_ERROR_RESOURCE: it did not fit; Buffer holds its beginning, ended by a zero byte. Provide
 *    more room
 *  - VIP_INVALID_PARAMETER: Buffer is NULL or Length 0
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 */
VIP_RETURN VipxStatusString(VIP_ULONG Status, char *Buffer, VIP_ULONG Length);

/**
 * VipxQueryRoute - tell the route of packets to a host
 * @NicHandle: in, handle from VipOpenNic()
 * @RemoteAddr: in, address of the host; the discriminator is ignored. Not NULL
 * @Route: in/out, in: Size; out: the route, not NULL
 *
 * A host that cannot be reached is not a failure: Reachable is VIP_FALSE and Reason says why.
 *
 * Ownership: Route is the caller's. No more than Size bytes are written.
 *
 * Return:
 *  - VIP_SUCCESS: Route is filled
 *  - VIP_INVALID_PARAMETER: a bad handle, a NULL pointer, an address of wrong length, or a Size
 *    smaller than that of version 1
 *  - VIP_ERROR_RESOURCE: the agent is gone. Close the NIC
 *
 * Context: asks the agent, which answers at once. Thread-safe. Allowed in handlers.
 *
 * Ordering: a snapshot: links may go down and up at any time.
 *
 * Since: 1.0
 */
VIP_RETURN VipxQueryRoute(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *RemoteAddr, VIPX_ROUTE *Route);

/**
 * VipxQueryCounters - tell the counters of a NIC or a VI
 * @NicHandle: in, handle from VipOpenNic()
 * @ViHandle: in, a VI of this NIC handle, or NULL: sums over all VIs of the handle, also those
 *	destroyed
 * @Counters: in/out, in: Size; out: the counters, not NULL
 *
 * Ownership: Counters is the caller's. No more than Size bytes are written.
 *
 * Return:
 *  - VIP_SUCCESS: Counters is filled
 *  - VIP_INVALID_PARAMETER: a bad handle, a VI of another NIC handle, a NULL pointer, or a Size
 *    smaller than that of version 1
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: each counter is exact; together they are no snapshot while traffic runs.
 *
 * Since: 1.0
 */
VIP_RETURN VipxQueryCounters(VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
			     VIPX_COUNTERS *Counters);

/**
 * VipxQueryVersion - tell the version of the library
 * @Extension: out, VIPX_VERSION of the library, or NULL
 * @Release: out, its release, such as "1.4.0", or NULL
 *
 * Extensions up to the smaller of this version and the VIPX_VERSION compiled with can be used.
 *
 * Ownership: the text is a constant of the library. Do not free it.
 *
 * Return:
 *  - VIP_SUCCESS: always
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 */
VIP_RETURN VipxQueryVersion(VIP_ULONG *Extension, const char **Release);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
