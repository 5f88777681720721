/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vipl.h - Virtual Interface Provider Library, version 1.0
 *
 * The programming interface of the Virtual Interface Architecture.  A program
 * written for it compiles unchanged with C89, C99, C11, C++98 and later.
 *
 * Two spellings of the descriptor are in use and both work here, at the same
 * time and without a macro: CS and DS[], or Control and Data[].
 */
#ifndef _VIPL_H
#define _VIPL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define VIPL_EXTENSION __extension__
#pragma GCC visibility push(default)
#else
#define VIPL_EXTENSION
#endif

/* ---- Base types -------------------------------------------------------- */

typedef void *VIP_PVOID;
typedef int VIP_BOOLEAN;
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef short VIP_SHORT;
typedef unsigned short VIP_USHORT;
typedef long VIP_LONG;
typedef unsigned long VIP_ULONG; /* 64 bits wide on LP64 */
typedef uint8_t VIP_UINT8;
typedef uint16_t VIP_UINT16;
typedef uint32_t VIP_UINT32;
typedef uint64_t VIP_UINT64;

typedef VIP_PVOID VIP_QOS; /* no quality of service is defined: store NULL */
typedef VIP_PVOID VIP_EVENT_HANDLE;
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE;
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_UINT32 VIP_MEM_HANDLE;	  /* never 0 and never 0xFFFFFFFF when valid */
typedef VIP_USHORT VIP_RELIABILITY_LEVEL; /* VIP_SERVICE_* */

#define VIP_TRUE 1
#define VIP_FALSE 0

/* Wait without end, as with ~0UL.  All timeouts are in milliseconds. */
#define VIP_INFINITE 0xFFFFFFFFUL

/* ---- Return codes ------------------------------------------------------ */

typedef enum _VIP_RETURN {
	VIP_SUCCESS = 0,		   /* done */
	VIP_NOT_DONE = 1,		   /* not complete yet, or nothing there */
	VIP_INVALID_PARAMETER = 2,	   /* a handle, pointer or value is not valid */
	VIP_ERROR_RESOURCE = 3,		   /* a limit was reached, or the object is in use */
	VIP_TIMEOUT = 4,		   /* the time given has passed */
	VIP_REJECT = 5,			   /* the server refused the connection */
	VIP_INVALID_RELIABILITY_LEVEL = 6, /* not a supported level, or not the peer's */
	VIP_INVALID_MTU = 7,	     /* maximum transfer size out of range, or not the peer's */
	VIP_INVALID_QOS = 8,	     /* quality of service not supported, or not the peer's */
	VIP_INVALID_PTAG = 9,	     /* not a protection tag of this NIC handle */
	VIP_INVALID_RDMAREAD = 10,   /* RDMA read is not offered at this level */
	VIP_DESCRIPTOR_ERROR = 11,   /* completed with an error in its Status; or queue empty */
	VIP_INVALID_STATE = 12,	     /* not allowed in the state of the VI */
	VIP_ERROR_NAMESERVICE = 13,  /* name or address unknown */
	VIP_NO_MATCH = 14,	     /* no program waits on that address now */
	VIP_NOT_REACHABLE = 15,	     /* no such host, or no path to it */
	VIP_ERROR_NOT_SUPPORTED = 16 /* optional and not offered */
} VIP_RETURN;

/* ---- Reliability levels ------------------------------------------------ */

/* A VI has exactly one; VIP_NIC_ATTRIBUTES has the OR of those supported. */
#define VIP_SERVICE_UNRELIABLE 0x01	    /* at most once; loss is silent */
#define VIP_SERVICE_RELIABLE_DELIVERY 0x02  /* exactly once, in order, or the connection breaks */
#define VIP_SERVICE_RELIABLE_RECEPTION 0x04 /* likewise; complete when the target has the data */

#define VIP_BASE_SERVICES 0x07 /* the three */
/* Bits of another provider's header, so that programs that use it compile; no NIC here has them. */
#define VIP_SERVICE_ACK 0x4000
#define VIP_SERVICE_DFC 0x8000

/* ---- Descriptor: Control word ------------------------------------------ */

#define VIP_CONTROL_OP_SENDRECV 0x0  /* a message; the only one for receives */
#define VIP_CONTROL_OP_RDMAWRITE 0x1 /* write into the memory of the peer */
#define VIP_CONTROL_OP_RDMAREAD 0x2  /* read from the memory of the peer */
#define VIP_CONTROL_OP_RESERVED 0x3  /* a format error; see VIPX_CONTROL_OP_ATOMIC of vipl_ext.h */
#define VIP_CONTROL_OP_MASK 0x3
#define VIP_CONTROL_IMMEDIATE 0x4   /* ImmediateData goes along; ignored on receives */
#define VIP_CONTROL_QFENCE 0x8	    /* start when all earlier ones of the queue are complete */
#define VIP_CONTROL_RESERVED 0xFFF0 /* must be 0 */

/* ---- Descriptor: Status word ------------------------------------------- */

#define VIP_STATUS_DONE 0x1		   /* complete; stored together with all other bits */
#define VIP_STATUS_FORMAT_ERROR 0x2	   /* malformed descriptor */
#define VIP_STATUS_PROTECTION_ERROR 0x4	   /* local memory not registered or not permitted */
#define VIP_STATUS_LENGTH_ERROR 0x8	   /* too long, or not the sum of the segments */
#define VIP_STATUS_PARTIAL_ERROR 0x10	   /* some of the data may have been moved */
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x20 /* not done: disconnected or in error */
#define VIP_STATUS_TRANSPORT_ERROR 0x40	   /* link or peer lost */
#define VIP_STATUS_RDMA_PROT_ERROR 0x80	   /* the peer refused the RDMA */
#define VIP_STATUS_REMOTE_DESC_ERROR 0x100 /* no suitable receive at the peer */
#define VIP_STATUS_ERROR_MASK 0x1FE

/* The operation that completed. */
#define VIP_STATUS_OP_SEND 0x00000
#define VIP_STATUS_OP_RECEIVE 0x10000
#define VIP_STATUS_OP_RDMA_WRITE 0x20000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x30000 /* a receive used up by a write with immediate */
#define VIP_STATUS_OP_RDMA_READ 0x40000
#define VIP_STATUS_OP_MASK 0x70000

#define VIP_STATUS_IMMEDIATE 0x80000 /* ImmediateData of a receive is valid */
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* A descriptor starts at a multiple of this, inside registered memory. */
#define VIP_DESCRIPTOR_ALIGNMENT 64

/* ---- Descriptor -------------------------------------------------------- */

struct _VIP_DESCRIPTOR;

/* 64-bit pointer: with 32-bit pointers clear AddressBits before setting Address. */
typedef union _VIP_PVOID64 {
	VIP_UINT64 AddressBits;
	VIP_PVOID Address;
	struct _VIP_DESCRIPTOR *Descriptor;
} VIP_PVOID64;

typedef struct _VIP_CONTROL_SEGMENT {
	VIP_PVOID64 Next;	   /* the provider's from post to completion */
	VIP_MEM_HANDLE NextHandle; /* likewise */
	VIP_UINT16 SegCount;	   /* address and data segments that follow */
	VIP_UINT16 Control;	   /* VIP_CONTROL_* */
	VIP_UINT32 Reserved;	   /* 0 */
	VIP_UINT32 ImmediateData;
	VIP_UINT32 Length; /* bytes to move; on a completed receive: bytes received */
	VIP_UINT32 Status; /* 0 when posted, VIP_STATUS_* when complete */
} VIP_CONTROL_SEGMENT;

/* The remote buffer of an RDMA operation. */
typedef struct _VIP_ADDRESS_SEGMENT {
	VIP_PVOID64 Data;
	VIP_MEM_HANDLE Handle;
	VIP_UINT32 Reserved;
} VIP_ADDRESS_SEGMENT;

/* One local buffer. */
typedef struct _VIP_DATA_SEGMENT {
	VIP_PVOID64 Data;
	VIP_MEM_HANDLE Handle;
	VIP_UINT32 Length;
} VIP_DATA_SEGMENT;

typedef union _VIP_DESCRIPTOR_SEGMENT {
	VIP_ADDRESS_SEGMENT Remote;
	VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

/*
 * 64 bytes: the control segment and room for two segments.  Further segments
 * directly follow it.  An RDMA descriptor has its address segment first.
 */
VIPL_EXTENSION typedef struct _VIP_DESCRIPTOR {
	union {
		VIP_CONTROL_SEGMENT CS;
		VIP_CONTROL_SEGMENT Control;
	};
	union {
		VIP_DESCRIPTOR_SEGMENT DS[2];
		VIP_DATA_SEGMENT Data[2];
	};
} VIP_DESCRIPTOR;

/* ---- Addresses --------------------------------------------------------- */

/*
 * HostAddressLen bytes of host address, directly followed by DiscriminatorLen
 * bytes of discriminator.  The structure shows only the first byte: allocate
 * sizeof(VIP_NET_ADDRESS) + NicAddressLen + the length of the discriminator.
 */
typedef struct _VIP_NET_ADDRESS {
	VIP_UINT16 HostAddressLen;
	VIP_UINT16 DiscriminatorLen;
	VIP_UINT8 HostAddress[1];
} VIP_NET_ADDRESS;

/* ---- Attributes -------------------------------------------------------- */

/* Constant as long as the NIC is open. */
typedef struct _VIP_NIC_ATTRIBUTES {
	VIP_CHAR Name[64];
	VIP_ULONG HardwareVersion;
	VIP_ULONG ProviderVersion;
	VIP_UINT16 NicAddressLen;
	const VIP_UINT8 *LocalNicAddress; /* the provider's, valid while the NIC is open */
	VIP_BOOLEAN ThreadSafe;
	VIP_UINT16 MaxDiscriminatorLen;
	VIP_ULONG MaxRegisterBytes;
	VIP_ULONG MaxRegisterRegions;
	VIP_ULONG MaxRegisterBlockBytes;
	VIP_ULONG MaxVI;
	VIP_ULONG MaxDescriptorsPerQueue;
	VIP_ULONG MaxSegmentsPerDesc;
	VIP_ULONG MaxCQ;
	VIP_ULONG MaxCQEntries;
	VIP_ULONG MaxTransferSize; /* bytes of one descriptor */
	VIP_ULONG NativeMTU;
	VIP_ULONG MaxPtags;
	VIP_RELIABILITY_LEVEL ReliabilityLevelSupport;
	VIP_RELIABILITY_LEVEL RDMAReadSupport; /* levels at which RDMA read works */
} VIP_NIC_ATTRIBUTES;

typedef struct _VIP_VI_ATTRIBUTES {
	VIP_RELIABILITY_LEVEL ReliabilityLevel;
	VIP_ULONG MaxTransferSize; /* bytes */
	VIP_QOS QoS;
	VIP_PROTECTION_HANDLE Ptag;  /* NULL: the VI accepts memory of any tag of its NIC */
	VIP_BOOLEAN EnableRdmaWrite; /* the peer may write here */
	VIP_BOOLEAN EnableRdmaRead;  /* the peer may read here */
} VIP_VI_ATTRIBUTES;

typedef struct _VIP_MEM_ATTRIBUTES {
	VIP_PROTECTION_HANDLE Ptag; /* NULL: the default tag */
	VIP_BOOLEAN EnableRdmaWrite;
	VIP_BOOLEAN EnableRdmaRead;
} VIP_MEM_ATTRIBUTES;

typedef enum _VIP_VI_STATE {
	VIP_STATE_IDLE = 0,	       /* not connected */
	VIP_STATE_CONNECTED = 1,       /* transfers are processed */
	VIP_STATE_CONNECT_PENDING = 2, /* a request is under way */
	VIP_STATE_ERROR = 3	       /* the connection is lost: call VipDisconnect() */
} VIP_VI_STATE;

/* ---- Asynchronous errors ----------------------------------------------- */

typedef enum _VIP_RESOURCE_CODE {
	VIP_RESOURCE_NIC = 0,	    /* the NIC */
	VIP_RESOURCE_VI = 1,	    /* a VI */
	VIP_RESOURCE_CQ = 2,	    /* a completion queue */
	VIP_RESOURCE_DESCRIPTOR = 3 /* a descriptor */
} VIP_RESOURCE_CODE;

/* An error of a write with immediate data is reported in the receive that it uses up, not here. */
typedef enum _VIP_ERROR_CODE {
	VIP_ERROR_POST_DESC = 0,      /* descriptor not aligned or not in its memory: not queued */
	VIP_ERROR_CONN_LOST = 1,      /* the connection is lost; reported with every such loss */
	VIP_ERROR_RECVQ_EMPTY = 2,    /* a message met no receive here */
	VIP_ERROR_VI_OVERRUN = 3,     /* more descriptors than the queue holds: not queued */
	VIP_ERROR_RDMAW_PROT = 4,     /* the peer's RDMA write was refused here */
	VIP_ERROR_RDMAW_DATA = 5,     /* corrupt RDMA write; never reported: memory carries it */
	VIP_ERROR_RDMAW_ABORT = 6,    /* the peer ended its RDMA write halfway; unreliable only */
	VIP_ERROR_RDMAR_PROT = 7,     /* the peer's RDMA read was refused here */
	VIP_ERROR_COMP_PROT = 8,      /* memory of a descriptor deregistered before it completed */
	VIP_ERROR_RDMA_TRANSPORT = 9, /* never reported: Status says it, and VIP_ERROR_CONN_LOST */
	VIP_ERROR_CATASTROPHIC = 10   /* the agent of the host is gone: close the NIC */
} VIP_ERROR_CODE;

/* Handles that do not apply are NULL. */
typedef struct _VIP_ERROR_DESCRIPTOR {
	VIP_NIC_HANDLE NicHandle;
	VIP_VI_HANDLE ViHandle;
	VIP_CQ_HANDLE CQHandle;
	VIP_DESCRIPTOR *DescriptorPtr;
	VIP_ULONG OpCode; /* VIP_STATUS_OP_*; that of the queue if the descriptor was not queued */
	VIP_RESOURCE_CODE ResourceCode;
	VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

/* ---- Names for the preprocessor ---------------------------------------- */

/* Programs ask for these with #ifdef, and some define those they miss. */
#define VIP_SUCCESS VIP_SUCCESS
#define VIP_NOT_DONE VIP_NOT_DONE
#define VIP_INVALID_PARAMETER VIP_INVALID_PARAMETER
#define VIP_ERROR_RESOURCE VIP_ERROR_RESOURCE
#define VIP_TIMEOUT VIP_TIMEOUT
#define VIP_REJECT VIP_REJECT
#define VIP_INVALID_RELIABILITY_LEVEL VIP_INVALID_RELIABILITY_LEVEL
#define VIP_INVALID_MTU VIP_INVALID_MTU
#define VIP_INVALID_QOS VIP_INVALID_QOS
#define VIP_INVALID_PTAG VIP_INVALID_PTAG
#define VIP_INVALID_RDMAREAD VIP_INVALID_RDMAREAD
#define VIP_DESCRIPTOR_ERROR VIP_DESCRIPTOR_ERROR
#define VIP_INVALID_STATE VIP_INVALID_STATE
#define VIP_ERROR_NAMESERVICE VIP_ERROR_NAMESERVICE
#define VIP_NO_MATCH VIP_NO_MATCH
#define VIP_NOT_REACHABLE VIP_NOT_REACHABLE
#define VIP_ERROR_NOT_SUPPORTED VIP_ERROR_NOT_SUPPORTED
#define VIP_STATE_IDLE VIP_STATE_IDLE
#define VIP_STATE_CONNECTED VIP_STATE_CONNECTED
#define VIP_STATE_CONNECT_PENDING VIP_STATE_CONNECT_PENDING
#define VIP_STATE_ERROR VIP_STATE_ERROR
#define VIP_RESOURCE_NIC VIP_RESOURCE_NIC
#define VIP_RESOURCE_VI VIP_RESOURCE_VI
#define VIP_RESOURCE_CQ VIP_RESOURCE_CQ
#define VIP_RESOURCE_DESCRIPTOR VIP_RESOURCE_DESCRIPTOR
#define VIP_ERROR_POST_DESC VIP_ERROR_POST_DESC
#define VIP_ERROR_CONN_LOST VIP_ERROR_CONN_LOST
#define VIP_ERROR_RECVQ_EMPTY VIP_ERROR_RECVQ_EMPTY
#define VIP_ERROR_VI_OVERRUN VIP_ERROR_VI_OVERRUN
#define VIP_ERROR_RDMAW_PROT VIP_ERROR_RDMAW_PROT
#define VIP_ERROR_RDMAW_DATA VIP_ERROR_RDMAW_DATA
#define VIP_ERROR_RDMAW_ABORT VIP_ERROR_RDMAW_ABORT
#define VIP_ERROR_RDMAR_PROT VIP_ERROR_RDMAR_PROT
#define VIP_ERROR_COMP_PROT VIP_ERROR_COMP_PROT
#define VIP_ERROR_RDMA_TRANSPORT VIP_ERROR_RDMA_TRANSPORT
#define VIP_ERROR_CATASTROPHIC VIP_ERROR_CATASTROPHIC

/* The name that another provider's header has in addition. */
#define VIP_ERROR VIP_DESCRIPTOR_ERROR

/* ---- System management ------------------------------------------------- */

#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)

typedef struct _VIP_AUTODISCOVERY_LIST {
	VIP_ULONG NumberOfHops;
	VIP_NET_ADDRESS **ADAddrArray;
	VIP_ULONG NumAdAddrs;
} VIP_AUTODISCOVERY_LIST;

/* ---- Handlers ---------------------------------------------------------- */

typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc);
typedef void (*VIP_VI_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
				VIP_DESCRIPTOR *Descriptor);
typedef void (*VIP_CQ_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
				VIP_BOOLEAN RecvQueue);

/* ---- Processes --------------------------------------------------------- */

/*
 * Handles are valid in the process that got them. In a child of fork() every call with a handle of
 * its parent returns VIP_INVALID_PARAMETER and changes nothing; the first such call writes one line
 * to the log. The child may open NICs of its own. The parent does not notice its children.
 *
 * The child has a copy of the parent's memory, registered or not, and shares memory of
 * VipxAllocMem() and descriptors of VipxCQFd() with it. A child of vfork(), of _Fork() or of
 * clone() may only execute a program or end: it cannot open a NIC. A handler that forks and
 * returns in the child ends the child's only thread.
 */

/* ---- Threads ----------------------------------------------------------- */

/*
 * Cancellation (pthread_cancel). A thread is cancelled in VipSendWait(), VipRecvWait(),
 * VipCQWait(), VipConnectWait(), VipConnectRequest(), VipConnectPeerWait() and VipxFlush(), while it
 * waits: at once, or within a quarter of a second where it sleeps for completions. It loses nothing: a call
 * that has taken a completion or entry returns it; a connection request that arrived is refused,
 * one that was made is given up and its VI is Idle, its receives flushed if the server had accepted
 * already; a peer request stays under way. No other function is a cancellation point, even if it
 * blocks. Cancelling a thread of asynchronous type (PTHREAD_CANCEL_ASYNCHRONOUS) inside this
 * library is not supported.
 */

/* ---- Functions --------------------------------------------------------- */

/*
 * Form of the comments below; the manual pages are made from them.
 *
 * @Name       a parameter: in, out or in/out; unit, range, whether NULL is allowed
 * Ownership   who owns and frees what, and until when a buffer must be left alone
 * Return      every return code, and what to do next
 * Context     blocking; threads; handlers, i.e. the functions given to VipErrorCallback(),
 *             VipSendNotify(), VipRecvNotify() and VipCQNotify()
 * Ordering    what is guaranteed about order
 * Since, Spec first version; part of the specification
 */

/* ---- NIC --------------------------------------------------------------- */

/**
 * VipOpenNic - open a NIC
 * @DeviceName: in, name of the device, not NULL. A host name, a name given in VIADUCT_DEVICE, or
 *	a customary one ("nic0", "VINIC", "/dev/clanvi0"): any name opens the default NIC unless
 *	VIADUCT_DEFAULT_NIC says no.
 * @NicHandle: out, the handle, not NULL
 *
 * Connects this process to the agent of its host. If there is no agent on this machine, one is
 * started that serves a fabric of one host and leaves after its last client. Each call gives a
 * distinct, independent handle: memory, protection tags, VIs and CQs of one do not work with
 * those of another.
 *
 * Ownership: the caller closes the handle with VipCloseNic(). The end of the process releases
 * everything too, and peers then see their connections lost. DeviceName is not kept.
 *
 * Return:
 *  - VIP_SUCCESS: the NIC is open
 *  - VIP_INVALID_PARAMETER: a NULL pointer, an unknown device while no default NIC is configured,
 *    or a bad VIADUCT_* variable; the log names it. Correct it
 *  - VIP_ERROR_RESOURCE: no agent can be reached or started, or it does not answer in time, the
 *    fabric is not this user's or of another version, or memory, descriptors or threads are
 *    exhausted; the log says which. Run vi_info
 *
 * Context: may block while an agent starts. Thread-safe. Not from a handler.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Hardware Connection
 */
VIP_RETURN VipOpenNic(const VIP_CHAR *DeviceName, VIP_NIC_HANDLE *NicHandle);

/**
 * VipCloseNic - close a NIC
 * @NicHandle: in, handle from VipOpenNic()
 *
 * Destroy VIs, CQs, memory regions and protection tags of the handle first. The call waits for no
 * peer; VipDisconnect() does. The end of a process releases all; its peers lose the connections.
 *
 * Ownership: after success the handle and every pointer the library returned for it, such as
 * LocalNicAddress, must not be used.
 *
 * Return:
 *  - VIP_SUCCESS: the NIC is closed
 *  - VIP_INVALID_PARAMETER: not an open NIC handle
 *  - VIP_ERROR_RESOURCE: VIs, CQs, memory regions or protection tags are left, or another thread
 *    is inside a call with this handle; the NIC stays open. Release them and call again
 *
 * Context: may block until running handlers of the NIC have returned. Thread-safe. Allowed in
 * handlers; a handler of this NIC that calls it runs to its end and is the last.
 *
 * Ordering: no handler of the NIC starts after the return.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Hardware Connection
 */
VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle);

/**
 * VipQueryNic - tell the attributes and limits of a NIC
 * @NicHandle: in, handle from VipOpenNic()
 * @NicAttribs: out, the attributes, not NULL
 *
 * The values do not change while the NIC is open and are the limits really in force.
 *
 * Ownership: NicAttribs is the caller's. LocalNicAddress points at NicAddressLen bytes of the
 * library, valid until VipCloseNic().
 *
 * Return:
 *  - VIP_SUCCESS: NicAttribs is filled
 *  - VIP_INVALID_PARAMETER: not an open NIC handle, or NULL
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Querying Information
 */
VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES *NicAttribs);

/* ---- VI ---------------------------------------------------------------- */

/**
 * VipCreateVi - create a VI
 * @NicHandle: in, handle from VipOpenNic()
 * @ViAttribs: in, the attributes, not NULL. ReliabilityLevel: exactly one supported level;
 *	MaxTransferSize: 1 to the NIC's, in bytes; QoS: NULL; Ptag: a tag of this NIC, or NULL to
 *	accept memory of any tag of this NIC
 * @SendCQHandle: in, completion queue of the send queue, or NULL for none
 * @RecvCQHandle: in, completion queue of the receive queue, or NULL for none; may be the same
 * @ViHandle: out, the VI, not NULL
 *
 * The VI starts in state VIP_STATE_IDLE. Its completion queues are fixed for its life. A queue
 * without one is polled and waited for directly.
 *
 * Ownership: the caller destroys the VI with VipDestroyVi(). ViAttribs is not kept.
 *
 * Return:
 *  - VIP_SUCCESS: the VI exists
 *  - VIP_INVALID_PARAMETER: a bad handle, a CQ of another NIC handle, or a NULL pointer
 *  - VIP_ERROR_RESOURCE: MaxVI reached or out of memory. Destroy VIs no longer needed
 *  - VIP_INVALID_RELIABILITY_LEVEL: not exactly one level of ReliabilityLevelSupport
 *  - VIP_INVALID_MTU: MaxTransferSize is 0 or above the NIC's. Use at most the NIC's
 *  - VIP_INVALID_QOS: QoS is not NULL
 *  - VIP_INVALID_PTAG: Ptag is neither NULL nor a tag of this NIC handle
 *  - VIP_INVALID_RDMAREAD: EnableRdmaRead at a level that is not in RDMAReadSupport
 *
 * Context: does not wait for peers. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Endpoint Creation and Destruction
 */
VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES *ViAttribs,
		       VIP_CQ_HANDLE SendCQHandle, VIP_CQ_HANDLE RecvCQHandle,
		       VIP_VI_HANDLE *ViHandle);

/**
 * VipDestroyVi - destroy a VI
 * @ViHandle: in, the VI: idle, both queues empty
 *
 * Disconnect first, then take every descriptor with VipSendDone() and VipRecvDone() until they
 * return a NULL descriptor. Handlers that still wait for this VI are cancelled. Entries of this
 * VI still in a completion queue are removed.
 *
 * Ownership: after success the handle must not be used. Descriptors are the caller's again.
 *
 * Return:
 *  - VIP_SUCCESS: the VI is gone
 *  - VIP_INVALID_PARAMETER: not a VI handle
 *  - VIP_INVALID_STATE: the VI is not idle. Call VipDisconnect()
 *  - VIP_ERROR_RESOURCE: descriptors are left in a queue, or another thread is inside a call with
 *    this VI. Take them, end the call, and call again
 *
 * Context: may wait for a handler of this VI that runs in another thread. Thread-safe. Allowed in
 * handlers.
 *
 * Ordering: no handler of the VI starts after the return.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Endpoint Creation and Destruction
 */
VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle);

/**
 * VipSetViAttributes - change the attributes of an idle VI
 * @ViHandle: in, the VI, in state VIP_STATE_IDLE
 * @ViAttribs: in, all attributes, as for VipCreateVi(), not NULL
 *
 * Either all attributes change or none.
 *
 * Ownership: ViAttribs is not kept.
 *
 * Return:
 *  - VIP_SUCCESS: the new attributes hold for the next connection
 *  - VIP_INVALID_PARAMETER: not a VI handle, or NULL
 *  - VIP_INVALID_STATE: the VI is not idle. Disconnect first
 *  - VIP_ERROR_RESOURCE: out of memory
 *  - VIP_INVALID_RELIABILITY_LEVEL: not exactly one supported level
 *  - VIP_INVALID_MTU: MaxTransferSize is 0 or above the NIC's
 *  - VIP_INVALID_QOS: QoS is not NULL
 *  - VIP_INVALID_PTAG: Ptag is neither NULL nor a tag of this NIC handle
 *  - VIP_INVALID_RDMAREAD: EnableRdmaRead at a level that is not in RDMAReadSupport
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Querying Information
 */
VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *ViAttribs);

/**
 * VipQueryVi - tell state, attributes and queue emptiness of a VI
 * @ViHandle: in, the VI
 * @State: out, VIP_STATE_*, not NULL
 * @ViAttribs: out, the attributes in force, not NULL
 * @SendQEmpty: out, VIP_TRUE if no descriptor is on the send queue, not NULL
 * @RecvQEmpty: out, VIP_TRUE if no descriptor is on the receive queue, not NULL
 *
 * A completed descriptor is on its queue until it is taken with a Done or Wait call.
 *
 * Ownership: all results are the caller's.
 *
 * Return:
 *  - VIP_SUCCESS: the results are filled
 *  - VIP_INVALID_PARAMETER: not a VI handle, or a NULL pointer
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: a snapshot: the peer may change the state at any time.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Querying Information
 */
VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE *State, VIP_VI_ATTRIBUTES *ViAttribs,
		      VIP_BOOLEAN *SendQEmpty, VIP_BOOLEAN *RecvQEmpty);

/* ---- Connection: client and server ------------------------------------- */

/**
 * VipConnectWait - wait for a connection request
 * @NicHandle: in, handle from VipOpenNic()
 * @LocalAddr: in, address to serve: host address of this NIC and a discriminator of 0 to
 *	MaxDiscriminatorLen bytes, not NULL. It is compared byte for byte with the remote address
 *	of the request
 * @Timeout: in, milliseconds; 0 looks once; VIP_INFINITE waits without end
 * @RemoteAddr: out, the address the client called itself, not NULL. Provide room for
 *	sizeof(VIP_NET_ADDRESS), NicAddressLen and the longest discriminator clients use
 * @RemoteViAttribs: out, attributes of the client's VI, not NULL
 * @ConnHandle: out, the request, not NULL
 *
 * The server side. No VI is concerned yet: choose one, then call VipConnectAccept() or
 * VipConnectReject(). Several threads may wait at once, on one address or on different ones;
 * each request goes to one of them. Requests that arrive while no thread waits are answered with
 * VIP_NO_MATCH.
 *
 * Ownership: the request is the caller's until accept succeeds or reject. The results are written
 * only on success, and only as many bytes of RemoteAddr as its lengths say. LocalAddr is not kept.
 *
 * Return:
 *  - VIP_SUCCESS: a request is here. Accept or reject it
 *  - VIP_TIMEOUT: none came in time. Call again
 *  - VIP_INVALID_PARAMETER: a bad handle, a NULL pointer, or an address that is not this NIC's or
 *    too long
 *  - VIP_ERROR_RESOURCE: out of memory, or the agent is gone. If it repeats, close the NIC
 *
 * Context: blocks up to Timeout, and where the agent is stopped or overloaded up to 5 s longer.
 * Thread-safe. In a handler only with Timeout 0.
 * A cancellation point while it waits.
 *
 * Ordering: requests to one address are handed out in the order they arrived.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Connection Management
 */
VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *LocalAddr, VIP_ULONG Timeout,
			  VIP_NET_ADDRESS *RemoteAddr, VIP_VI_ATTRIBUTES *RemoteViAttribs,
			  VIP_CONN_HANDLE *ConnHandle);

/**
 * VipConnectAccept - accept a connection request
 * @ConnHandle: in, request from VipConnectWait()
 * @ViHandle: in, an idle VI of the same NIC handle
 *
 * ReliabilityLevel, MaxTransferSize and QoS of both VIs must be equal. Protection tags and RDMA
 * enables need not be. Post receives before accepting: the peer may send at once.
 *
 * Ownership: success uses the request up. A failure does not, except as said below, and the client
 * does not notice it: change the attributes with VipSetViAttributes() and accept again, or reject.
 *
 * Return:
 *  - VIP_SUCCESS: the connection is made. The client's VI is connected as soon as its process runs;
 *    what is sent before waits for it. If the client has just given up, or does not run for 4 s,
 *    the connection is lost: VIP_ERROR_CONN_LOST, as when a peer disconnects or dies
 *  - VIP_INVALID_PARAMETER: not a pending request, not a VI, or a VI of another NIC handle
 *  - VIP_INVALID_STATE: the VI is not idle. Disconnect it or take another
 *  - VIP_INVALID_RELIABILITY_LEVEL: the levels differ. Change the VI's and accept again, or reject
 *  - VIP_INVALID_MTU: the maximum transfer sizes differ. Change the VI's, or reject
 *  - VIP_INVALID_QOS: the qualities of service differ. Change the VI's, or reject
 *  - VIP_TIMEOUT: the client has given up or is gone; the request is used up. Wait for another
 *  - VIP_NOT_REACHABLE: the path to the client was lost; the request is used up. Wait for another
 *  - VIP_ERROR_RESOURCE: no window memory or descriptors for the connection. Release some, accept
 *    again, or reject
 *
 * Context: blocks shortly, until the client's agent has answered, also while the client is stopped.
 * Thread-safe. Not in handlers.
 *
 * Ordering: receives that were posted before the call are there for the client's first message.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Connection Management
 */
VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle);

/**
 * VipConnectReject - refuse a connection request
 * @ConnHandle: in, request from VipConnectWait()
 *
 * The client's VipConnectRequest() returns VIP_REJECT.
 *
 * Ownership: the request is used up, whatever the result.
 *
 * Return:
 *  - VIP_SUCCESS: refused; also if the client had given up before
 *  - VIP_INVALID_PARAMETER: not a pending request
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Connection Management
 */
VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle);

/**
 * VipConnectRequest - ask a server for a connection
 * @ViHandle: in, an idle VI
 * @LocalAddr: in, the address the server shall see: host address of this NIC and a discriminator,
 *	not NULL
 * @RemoteAddr: in, the server's address: host address and the discriminator it waits on, not NULL
 * @Timeout: in, milliseconds, not 0; VIP_INFINITE waits without end
 * @RemoteViAttribs: out, attributes of the server's VI, not NULL. They tell which RDMA it permits
 *
 * The client side. While it runs the VI is in state VIP_STATE_CONNECT_PENDING; after any failure
 * it is idle again. Post receives before: the server may send at once. When no program waits on the
 * address the call returns VIP_NO_MATCH at once: a client that may start before its server repeats
 * the call for as long as it chooses.
 *
 * Ownership: the addresses are not kept. RemoteViAttribs is written only on success.
 *
 * Return:
 *  - VIP_SUCCESS: both VIs are connected
 *  - VIP_REJECT: the server refused. Ask for something else
 *  - VIP_TIMEOUT: no decision in time. Try again
 *  - VIP_NO_MATCH: no program waits on that address now. Try again
 *  - VIP_NOT_REACHABLE: no such host, or no path to it; VipxQueryRoute() says why
 *  - VIP_INVALID_STATE: the VI is not idle. Disconnect it
 *  - VIP_INVALID_PARAMETER: a bad handle, a NULL pointer, Timeout 0, an address of wrong length, or
 *    a local one that is not this NIC's
 *  - VIP_ERROR_RESOURCE: no window memory or descriptors for the connection, or the agent is gone
 *
 * Context: blocks up to Timeout, and where the agent is stopped or overloaded up to 5 s longer.
 * Thread-safe; VipDisconnect() from another thread ends it with VIP_TIMEOUT. Not in handlers.
 * A cancellation point while it waits.
 *
 * Ordering: receives that were posted before the call are there for the server's first message.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Connection Management
 */
VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr,
			     VIP_NET_ADDRESS *RemoteAddr, VIP_ULONG Timeout,
			     VIP_VI_ATTRIBUTES *RemoteViAttribs);

/**
 * VipDisconnect - end a connection
 * @ViHandle: in, the VI, in any state
 *
 * The VI becomes idle. Its outstanding descriptors complete with VIP_STATUS_DESC_FLUSHED_ERROR and
 * must still be taken. The peer's VI goes to the error state and its NIC reports
 * VIP_ERROR_CONN_LOST. A request of this VI that is under way ends.
 *
 * On reliable levels the call first waits for sends under way: operations of the send queue that
 * had begun complete as usual when the peer has acknowledged them, and messages that were reported
 * as sent before have arrived. Operations that had not begun, and those posted during the wait, are
 * flushed; messages of the peer are still received. So a flushed send was not delivered, unless the
 * wait was cut short: by the loss of the connection, or because the peer receives nothing.
 *
 * Ownership: no buffer of the VI's descriptors is touched after the return, and no memory by RDMA of
 * its peer.
 *
 * Return:
 *  - VIP_SUCCESS: the VI is idle; also if it was before
 *  - VIP_INVALID_PARAMETER: not a VI handle
 *
 * Context: on reliable levels blocks until the peer has received all sends under way, two seconds
 * at most. These do not begin while the path is lost; then the call takes six seconds at most. A peer
 * that stores into memory of VipxAllocMem() has two more to unmap it. The end of the peer or of the
 * connection ends the wait. Thread-safe. Allowed in handlers; other handlers of the NIC wait.
 *
 * Ordering: messages whose sends had completed on a reliable level are delivered before the peer
 * sees the loss, also when a link or a relay is lost at that time and there is another path. A process
 * that ends without this call waits for nothing: a message reported as sent at
 * VIP_SERVICE_RELIABLE_DELIVERY then arrives only if the path is up.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Connection Management
 */
VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle);

/* ---- Connection: peer to peer ------------------------------------------ */

/**
 * VipConnectPeerRequest - begin a connection between equals
 * @ViHandle: in, an idle VI
 * @LocalAddr: in, this side's address: host address of this NIC and a discriminator, not NULL
 * @RemoteAddr: in, the other side's address, not NULL
 * @Timeout: in, milliseconds from now until the attempt fails, not 0; VIP_INFINITE: without end
 *
 * Starts the attempt; VipConnectPeerDone() or VipConnectPeerWait() fetches the result. Both sides
 * call it. Two requests match if each one's remote address is the other's local address, and only
 * with each other, never with VipConnectWait(). Either may come first.
 *
 * Ownership: the addresses are not kept.
 *
 * Return:
 *  - VIP_SUCCESS: the VI is in state VIP_STATE_CONNECT_PENDING. Fetch the result
 *  - VIP_INVALID_STATE: the VI is not idle. Disconnect it
 *  - VIP_INVALID_PARAMETER: a bad handle, a NULL pointer, Timeout 0, an address of wrong length, or
 *    a local one that is not this NIC's
 *  - VIP_ERROR_RESOURCE: out of memory, or the agent is gone
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Connection Management
 */
VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS *LocalAddr,
				 VIP_NET_ADDRESS *RemoteAddr, VIP_ULONG Timeout);

/**
 * VipConnectPeerDone - look for the result of a peer request
 * @ViHandle: in, a VI with a peer request
 * @RemoteViAttribs: out, attributes of the peer's VI, not NULL; written only on success
 *
 * A result is given once. After a failure the VI is idle.
 *
 * Ownership: RemoteViAttribs is the caller's.
 *
 * Return:
 *  - VIP_SUCCESS: the VIs are connected
 *  - VIP_NOT_DONE: no result yet. Call again
 *  - VIP_TIMEOUT: the time given in the request has passed. Request again
 *  - VIP_INVALID_RELIABILITY_LEVEL: the levels differ. Agree on one, then request again
 *  - VIP_INVALID_MTU: the maximum transfer sizes differ. Agree on one, then request again
 *  - VIP_INVALID_QOS: the qualities of service differ. Agree on one, then request again
 *  - VIP_NOT_REACHABLE: no such host, or no path to it; VipxQueryRoute() says why
 *  - VIP_ERROR_RESOURCE: no window memory or descriptors for the connection, or the agent is gone
 *  - VIP_INVALID_STATE: no peer request is pending on this VI
 *  - VIP_INVALID_PARAMETER: not a VI handle, or NULL
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: receives that were posted before the request are there for the peer's first message.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Connection Management
 */
VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteViAttribs);

/**
 * VipConnectPeerWait - wait for the result of a peer request
 * @ViHandle: in, a VI with a peer request
 * @RemoteViAttribs: out, attributes of the peer's VI, not NULL; written only on success
 *
 * As VipConnectPeerDone(), but waits as long as the request's own timeout.
 *
 * Ownership: RemoteViAttribs is the caller's.
 *
 * Return:
 *  - VIP_SUCCESS: the VIs are connected
 *  - VIP_NOT_DONE: another thread is waiting already; the result goes to that one
 *  - VIP_TIMEOUT: the time given in the request has passed, or VipDisconnect() in another thread
 *    ended the request. Request again
 *  - VIP_INVALID_RELIABILITY_LEVEL: the levels differ. Agree on one, then request again
 *  - VIP_INVALID_MTU: the maximum transfer sizes differ. Agree on one, then request again
 *  - VIP_INVALID_QOS: the qualities of service differ. Agree on one, then request again
 *  - VIP_NOT_REACHABLE: no such host, or no path to it; VipxQueryRoute() says why
 *  - VIP_ERROR_RESOURCE: no window memory or descriptors for the connection, or the agent is gone
 *  - VIP_INVALID_STATE: no peer request is pending on this VI
 *  - VIP_INVALID_PARAMETER: not a VI handle, or NULL
 *
 * Context: blocks up to the timeout of the request. Thread-safe. Not in handlers.
 * A cancellation point while it waits.
 *
 * Ordering: receives that were posted before the request are there for the peer's first message.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Connection Management
 */
VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES *RemoteViAttribs);

/* ---- Work queues ------------------------------------------------------- */

/**
 * VipPostSend - queue a descriptor on the send queue
 * @ViHandle: in, the VI, in any state
 * @DescriptorPtr: in, the descriptor: at a multiple of VIP_DESCRIPTOR_ALIGNMENT, inside registered
 *	memory, not NULL
 * @MemoryHandle: in, handle of the memory that holds the descriptor
 *
 * Fill SegCount, Control, Length, Reserved 0, Status 0, the segments and, with
 * VIP_CONTROL_IMMEDIATE, ImmediateData. Length is the sum of the local segments' lengths and at
 * most the VI's MaxTransferSize; 0 is allowed, with or without segments. The operation is a send,
 * an RDMA write or an RDMA read; the latter two begin with an address segment, which SegCount
 * counts. VIP_CONTROL_QFENCE delays the descriptor until all earlier ones of the queue are
 * complete.
 *
 * Errors in the descriptor are reported in its Status. On reliable levels such a descriptor waits until
 * the peer has received all that was sent before it, then completes with its error and breaks the
 * connection; those after it are flushed and were not sent. In the idle, pending and error states a
 * send completes with VIP_STATUS_DESC_FLUSHED_ERROR, after those that the peer may still acknowledge.
 *
 * Ownership: descriptor and data belong to the library until the descriptor has been taken with
 * VipSendDone(), VipSendWait() or a handler. Until then neither may be written, moved or
 * deregistered; data of a send may be read.
 *
 * Return:
 *  - VIP_SUCCESS: queued
 *  - VIP_ERROR_RESOURCE: the queue holds MaxDescriptorsPerQueue; nothing was queued, and
 *    VIP_ERROR_VI_OVERRUN is reported. Take completed descriptors, then post again
 *  - VIP_INVALID_PARAMETER: not a VI handle, or a NULL descriptor. A descriptor that is not aligned
 *    or not in memory of MemoryHandle is not queued either and VIP_ERROR_POST_DESC is reported
 *
 * Context: never blocks. Thread-safe. Allowed in handlers.
 *
 * Ordering: descriptors of one queue start and complete in the order of posting. On reliable
 * levels sends and RDMA writes of one VI arrive in that order, and the data of a write is in place
 * before a later send is received. An RDMA read may overlap with later operations unless those
 * have VIP_CONTROL_QFENCE. There is no order between VIs or between the two queues of a VI.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Data Transfer and Completion Operations
 */
VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *DescriptorPtr,
		       VIP_MEM_HANDLE MemoryHandle);

/**
 * VipPostRecv - queue a descriptor on the receive queue
 * @ViHandle: in, the VI, in any state
 * @DescriptorPtr: in, the descriptor: at a multiple of VIP_DESCRIPTOR_ALIGNMENT, inside registered
 *	memory, not NULL
 * @MemoryHandle: in, handle of the memory that holds the descriptor
 *
 * Fill SegCount, Control VIP_CONTROL_OP_SENDRECV, Length, Reserved 0, Status 0 and the segments.
 * The segments limit the length of the message. VIP_CONTROL_IMMEDIATE is ignored. One message, or
 * one RDMA write with immediate data, uses up one descriptor. At completion Length is the number of
 * bytes received and, if Status has VIP_STATUS_IMMEDIATE, ImmediateData is the sender's.
 *
 * Only the memory for the bytes of a message is checked, when it arrives: segments may reach beyond
 * what is registered, and a message that fits into the registered part is received. One that does
 * not is not stored at all, and the descriptor completes with VIP_STATUS_PROTECTION_ERROR; one that
 * is longer than all segments, with VIP_STATUS_LENGTH_ERROR. Immediate data of an RDMA write needs
 * no memory.
 *
 * A descriptor posted to an idle VI waits for the coming connection. Post before the peer may
 * send: without a receive its message is dropped (unreliable) or the connection breaks (reliable).
 *
 * Ownership: descriptor and buffers belong to the library until the descriptor has been taken with
 * VipRecvDone(), VipRecvWait() or a handler. Until then they may not be touched or deregistered.
 *
 * Return:
 *  - VIP_SUCCESS: queued
 *  - VIP_ERROR_RESOURCE: the queue holds MaxDescriptorsPerQueue; nothing was queued, and
 *    VIP_ERROR_VI_OVERRUN is reported. Take completed descriptors, then post again
 *  - VIP_INVALID_PARAMETER: not a VI handle, or a NULL descriptor. A descriptor that is not aligned
 *    or not in memory of MemoryHandle is not queued either and VIP_ERROR_POST_DESC is reported
 *
 * Context: never blocks. Thread-safe. Allowed in handlers.
 *
 * Ordering: descriptors are used and complete in the order of posting.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Data Transfer and Completion Operations
 */
VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *DescriptorPtr,
		       VIP_MEM_HANDLE MemoryHandle);

/**
 * VipSendDone - take the first descriptor of the send queue if it is complete
 * @ViHandle: in, the VI
 * @DescriptorPtr: out, the descriptor, not NULL; NULL is stored if none was taken
 *
 * Only the descriptor at the head is checked. Also used after VipCQDone() named this queue.
 *
 * Ownership: the descriptor and its buffers are the caller's again.
 *
 * Return:
 *  - VIP_SUCCESS: the head completed without error and was taken
 *  - VIP_DESCRIPTOR_ERROR: with a descriptor: the head completed with the error in its Status and
 *    was taken; on a reliable level the VI is now in the error state. With NULL: the queue is empty
 *  - VIP_NOT_DONE: the head is still in progress. Call again
 *  - VIP_INVALID_PARAMETER: not a VI handle, or NULL
 *
 * Context: never blocks, not even while a thread is in VipSendWait(). Thread-safe: each descriptor
 * goes to one caller. Allowed in handlers.
 *
 * Ordering: strictly the order of posting.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Data Transfer and Completion Operations
 */
VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **DescriptorPtr);

/**
 * VipRecvDone - take the first descriptor of the receive queue if it is complete
 * @ViHandle: in, the VI
 * @DescriptorPtr: out, the descriptor, not NULL; NULL is stored if none was taken
 *
 * Only the descriptor at the head is checked. Also used after VipCQDone() named this queue.
 *
 * Ownership: the descriptor and its buffers are the caller's again.
 *
 * Return:
 *  - VIP_SUCCESS: the head completed without error and was taken
 *  - VIP_DESCRIPTOR_ERROR: with a descriptor: the head completed with the error in its Status and
 *    was taken; on a reliable level the VI is now in the error state. With NULL: the queue is empty
 *  - VIP_NOT_DONE: the head is still in progress. Call again
 *  - VIP_INVALID_PARAMETER: not a VI handle, or NULL
 *
 * Context: never blocks, not even while a thread is in VipRecvWait(). Thread-safe: each descriptor
 * goes to one caller. Allowed in handlers.
 *
 * Ordering: strictly the order of posting. Data of the peer's earlier RDMA writes is in place.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Data Transfer and Completion Operations
 */
VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR **DescriptorPtr);

/**
 * VipSendWait - wait until the first descriptor of the send queue is complete and take it
 * @ViHandle: in, the VI; its send queue has no completion queue
 * @Timeout: in, milliseconds; 0 looks once; VIP_INFINITE waits without end
 * @DescriptorPtr: out, the descriptor, not NULL; NULL is stored if none was taken
 *
 * Ownership: the descriptor and its buffers are the caller's again.
 *
 * Return:
 *  - VIP_SUCCESS: the head completed without error and was taken
 *  - VIP_DESCRIPTOR_ERROR: with a descriptor: the head completed with the error in its Status and
 *    was taken. With NULL: the queue is empty
 *  - VIP_TIMEOUT: the head is still in progress. Call again
 *  - VIP_INVALID_PARAMETER: not a VI handle, NULL, or the queue has a completion queue: use
 *    VipCQWait()
 *
 * Context: blocks up to Timeout; uses no processor time while it sleeps. Thread-safe: each
 * completion goes to one caller. In a handler it delays the other handlers of the NIC.
 * A cancellation point while it waits.
 *
 * Ordering: strictly the order of posting.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Data Transfer and Completion Operations
 */
VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **DescriptorPtr);

/**
 * VipRecvWait - wait until the first descriptor of the receive queue is complete and take it
 * @ViHandle: in, the VI; its receive queue has no completion queue
 * @Timeout: in, milliseconds; 0 looks once; VIP_INFINITE waits without end
 * @DescriptorPtr: out, the descriptor, not NULL; NULL is stored if none was taken
 *
 * Ownership: the descriptor and its buffers are the caller's again.
 *
 * Return:
 *  - VIP_SUCCESS: the head completed without error and was taken
 *  - VIP_DESCRIPTOR_ERROR: with a descriptor: the head completed with the error in its Status and
 *    was taken. With NULL: the queue is empty
 *  - VIP_TIMEOUT: the head is still in progress. Call again
 *  - VIP_INVALID_PARAMETER: not a VI handle, NULL, or the queue has a completion queue: use
 *    VipCQWait()
 *
 * Context: blocks up to Timeout; uses no processor time while it sleeps. Thread-safe: each
 * completion goes to one caller. In a handler it delays the other handlers of the NIC.
 * A cancellation point while it waits.
 *
 * Ordering: strictly the order of posting. Data of the peer's earlier RDMA writes is in place.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Data Transfer and Completion Operations
 */
VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR **DescriptorPtr);

/**
 * VipSendNotify - have a handler called when the first descriptor of the send queue is complete
 * @ViHandle: in, the VI; its send queue has no completion queue
 * @Context: in, passed to the handler, may be NULL
 * @Handler: in, the handler, not NULL. It gets Context, the NIC, the VI and the descriptor, which
 *	has been taken from the queue
 *
 * The handler is called once; call again to be notified again. If the head is complete already,
 * the handler is called for it. Several may be outstanding: they are served in turn.
 *
 * Ownership: the descriptor is the handler's. The object at Context must live until the handler
 * was called or VipDestroyVi() returned, which cancels it.
 *
 * Return:
 *  - VIP_SUCCESS: the handler was called or will be
 *  - VIP_INVALID_PARAMETER: not a VI handle, a NULL handler, or the queue has a completion queue:
 *    use VipCQNotify()
 *  - VIP_ERROR_RESOURCE: out of memory or threads
 *
 * Context: does not block. Thread-safe. Allowed in handlers, to arm again. The handler runs in a
 * thread of the library, no lock held: it may call the library, and others wait for its return.
 *
 * Ordering: handlers of one queue are called in the order of completion.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Data Transfer and Completion Operations
 */
VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
			 void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle,
					 VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor));

/**
 * VipRecvNotify - have a handler called when the first descriptor of the receive queue is complete
 * @ViHandle: in, the VI; its receive queue has no completion queue
 * @Context: in, passed to the handler, may be NULL
 * @Handler: in, the handler, not NULL. It gets Context, the NIC, the VI and the descriptor, which
 *	has been taken from the queue
 *
 * The handler is called once; call again to be notified again. If the head is complete already,
 * the handler is called for it. Several may be outstanding: they are served in turn.
 *
 * Ownership: the descriptor is the handler's. The object at Context must live until the handler
 * was called or VipDestroyVi() returned, which cancels it.
 *
 * Return:
 *  - VIP_SUCCESS: the handler was called or will be
 *  - VIP_INVALID_PARAMETER: not a VI handle, a NULL handler, or the queue has a completion queue:
 *    use VipCQNotify()
 *  - VIP_ERROR_RESOURCE: out of memory or threads
 *
 * Context: does not block. Thread-safe. Allowed in handlers, to arm again. The handler runs in a
 * thread of the library, no lock held: it may call the library, and others wait for its return.
 *
 * Ordering: handlers of one queue are called in the order of completion.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Data Transfer and Completion Operations
 */
VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
			 void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle,
					 VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR *Descriptor));

/* ---- Completion queues ------------------------------------------------- */

/**
 * VipCreateCQ - create a completion queue
 * @NicHandle: in, handle from VipOpenNic()
 * @EntryCount: in, entries wanted, 1 to MaxCQEntries
 * @CQHandle: out, the queue, not NULL
 *
 * Provide one entry for each descriptor that may be outstanding on the associated work queues.
 * The library may provide more than asked for.
 *
 * Ownership: the caller destroys the queue with VipDestroyCQ().
 *
 * Return:
 *  - VIP_SUCCESS: the queue exists
 *  - VIP_INVALID_PARAMETER: a bad handle, NULL, or EntryCount 0 or above MaxCQEntries
 *  - VIP_ERROR_RESOURCE: MaxCQ reached or out of memory
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Completion Queue Management
 */
VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE *CQHandle);

/**
 * VipResizeCQ - change the size of a completion queue
 * @CQHandle: in, the queue
 * @EntryCount: in, entries wanted, 1 to MaxCQEntries, at least those now in the queue
 *
 * Entries in the queue stay, in order.
 *
 * Ownership: nothing changes hands.
 *
 * Return:
 *  - VIP_SUCCESS: the queue has the new size
 *  - VIP_INVALID_PARAMETER: not a CQ handle, or EntryCount 0 or above MaxCQEntries
 *  - VIP_ERROR_RESOURCE: more entries are in the queue than would fit, or out of memory; nothing
 *    changed. Take entries, then call again
 *
 * Context: does not block. Thread-safe, also while other threads wait. Allowed in handlers.
 *
 * Ordering: unchanged.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Completion Queue Management
 */
VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount);

/**
 * VipDestroyCQ - destroy a completion queue
 * @CQHandle: in, the queue, with no VI associated
 *
 * Handlers that still wait for it are cancelled, the descriptor of VipxCQFd() is closed.
 *
 * Ownership: after success the handle must not be used.
 *
 * Return:
 *  - VIP_SUCCESS: the queue is gone
 *  - VIP_INVALID_PARAMETER: not a CQ handle
 *  - VIP_ERROR_RESOURCE: a VI is still associated, or another thread is inside a call with this
 *    queue. Destroy the VI, end the call, and call again
 *
 * Context: may wait for a handler of this queue that runs in another thread. Thread-safe. Allowed
 * in handlers.
 *
 * Ordering: no handler of the queue starts after the return.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Completion Queue Management
 */
VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle);

/**
 * VipCQDone - take an entry from a completion queue
 * @CQHandle: in, the queue
 * @ViHandle: out, the VI that completed a descriptor, not NULL
 * @RecvQueue: out, VIP_TRUE: of its receive queue, VIP_FALSE: of its send queue, not NULL
 *
 * There is one entry per completed descriptor, with or without error. The descriptor stays on its
 * work queue: take it with VipRecvDone() or VipSendDone().
 *
 * Ownership: the results are the caller's, written only on success.
 *
 * Return:
 *  - VIP_SUCCESS: one entry was taken. Take the descriptor
 *  - VIP_NOT_DONE: the queue is empty. Call again, or wait
 *  - VIP_INVALID_PARAMETER: not a CQ handle, or a NULL pointer
 *
 * Context: never blocks. Thread-safe: each entry goes to one caller. Allowed in handlers.
 *
 * Ordering: entries of one work queue come in the order of completion. The descriptor is complete
 * before its entry can be seen.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Completion Queue Management
 */
VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE *ViHandle, VIP_BOOLEAN *RecvQueue);

/**
 * VipCQWait - wait for an entry in a completion queue and take it
 * @CQHandle: in, the queue
 * @Timeout: in, milliseconds; 0 looks once; VIP_INFINITE waits without end
 * @ViHandle: out, the VI that completed a descriptor, not NULL
 * @RecvQueue: out, VIP_TRUE: of its receive queue, VIP_FALSE: of its send queue, not NULL
 *
 * Ownership: the results are the caller's, written only on success.
 *
 * Return:
 *  - VIP_SUCCESS: one entry was taken. Take the descriptor
 *  - VIP_TIMEOUT: none came in time. Call again
 *  - VIP_INVALID_PARAMETER: not a CQ handle, or a NULL pointer
 *
 * Context: blocks up to Timeout; uses no processor time while it sleeps. Thread-safe: each entry
 * goes to one caller. In a handler it delays the other handlers of the NIC.
 * A cancellation point while it waits.
 *
 * Ordering: as VipCQDone().
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Completion Queue Management
 */
VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE *ViHandle,
		     VIP_BOOLEAN *RecvQueue);

/**
 * VipCQNotify - have a handler called for the next entry of a completion queue
 * @CQHandle: in, the queue
 * @Context: in, passed to the handler, may be NULL
 * @Handler: in, the handler, not NULL. It gets Context, the NIC, the VI and VIP_TRUE for the
 *	receive queue or VIP_FALSE for the send queue
 *
 * The handler is called once; call again to be notified again. The entry is taken from the
 * completion queue; the handler takes the descriptor from the work queue. If an entry is there
 * already, the handler is called for it. Several may be outstanding: they are served in turn.
 *
 * Ownership: the object at Context must live until the handler was called or VipDestroyCQ()
 * returned, which cancels it.
 *
 * Return:
 *  - VIP_SUCCESS: the handler was called or will be
 *  - VIP_INVALID_PARAMETER: not a CQ handle, or a NULL handler
 *  - VIP_ERROR_RESOURCE: out of memory or threads
 *
 * Context: does not block. Thread-safe. Allowed in handlers, to arm again. The handler runs in a
 * thread of the library, no lock held: it may call the library, and others wait for its return.
 *
 * Ordering: handlers of one queue are called in the order of its entries.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Completion Queue Management
 */
VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context,
		       void (*Handler)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle,
				       VIP_VI_HANDLE ViHandle, VIP_BOOLEAN RecvQueue));

/* ---- Memory and protection --------------------------------------------- */

/**
 * VipCreatePtag - create a protection tag
 * @NicHandle: in, handle from VipOpenNic()
 * @ProtectionTag: out, the tag, not NULL
 *
 * A VI with a tag may use memory with that tag and memory registered without one. A VI without a
 * tag may use memory of every tag of its NIC handle.
 *
 * Ownership: the caller destroys the tag with VipDestroyPtag().
 *
 * Return:
 *  - VIP_SUCCESS: the tag exists
 *  - VIP_INVALID_PARAMETER: a bad handle, or NULL
 *  - VIP_ERROR_RESOURCE: MaxPtags reached or out of memory
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Memory Management
 */
VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE *ProtectionTag);

/**
 * VipDestroyPtag - destroy a protection tag
 * @NicHandle: in, the NIC handle that created it
 * @ProtectionTag: in, the tag, used by no VI and no memory region
 *
 * Ownership: after success the tag must not be used.
 *
 * Return:
 *  - VIP_SUCCESS: the tag is gone
 *  - VIP_INVALID_PARAMETER: not an open NIC handle
 *  - VIP_INVALID_PTAG: NULL, or not a tag of this NIC handle
 *  - VIP_ERROR_RESOURCE: a VI or a memory region still has it. Destroy or change those first
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Memory Management
 */
VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE ProtectionTag);

/**
 * VipRegisterMem - register memory
 * @NicHandle: in, handle from VipOpenNic()
 * @VirtualAddress: in, start, any alignment, not NULL
 * @Length: in, bytes, 1 to MaxRegisterBlockBytes, which is the size of the machine's memory
 * @MemAttribs: in, attributes, or NULL: no protection tag, no RDMA
 * @MemoryHandle: out, the handle, not NULL; never 0 and never 0xFFFFFFFF
 *
 * Descriptors and data must lie in registered memory. Regions may overlap, and the same memory may
 * be registered several times, each time with its own attributes and handle. A peer may reach the
 * region by RDMA if the region and the VI both permit it and their tags agree; it needs address
 * and handle, which the program sends it.
 *
 * Private anonymous memory is registered in constant time, and no page of it is touched before it is
 * used, if the kernel answers queries for mappings by address (Linux 6.11) and the memory lies in 32
 * mappings at most; other memory is made present, page by page.
 *
 * Ownership: the memory stays the caller's and must stay mapped, with the same protection, until
 * VipDeregisterMem().
 *
 * Return:
 *  - VIP_SUCCESS: registered
 *  - VIP_INVALID_PARAMETER: a bad handle, a NULL pointer, memory that is not mapped, or Length 0 or
 *    above MaxRegisterBlockBytes
 *  - VIP_ERROR_RESOURCE: MaxRegisterRegions or MaxRegisterBytes reached, or out of memory.
 *    Deregister what is not needed
 *  - VIP_INVALID_PTAG: Ptag is neither NULL nor a tag of this NIC handle
 *  - VIP_INVALID_RDMAREAD: EnableRdmaRead, but the NIC has no RDMA read
 *
 * Context: does not block, but for reading the pages of a file. Thread-safe. Allowed in handlers.
 *
 * Ordering: valid for descriptors posted after the return.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Memory Management
 */
VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
			  VIP_MEM_ATTRIBUTES *MemAttribs, VIP_MEM_HANDLE *MemoryHandle);

/**
 * VipDeregisterMem - end the registration of memory
 * @NicHandle: in, the NIC handle it was registered with
 * @VirtualAddress: in, the address given to VipRegisterMem()
 * @MemoryHandle: in, the handle
 *
 * Take descriptors that use the memory first: those still outstanding complete with
 * VIP_STATUS_PROTECTION_ERROR. A peer's later RDMA is refused. Memory of VipxAdoptMem() is given back:
 * private memory again, with the content that it has.
 *
 * Ownership: after the return the library does not touch the memory through this handle.
 *
 * Return:
 *  - VIP_SUCCESS: the handle is invalid
 *  - VIP_INVALID_PARAMETER: a bad NIC handle, an unknown memory handle, an address other than the
 *    registered one, or memory of VipxAllocMem(): use VipxFreeMem()
 *  - VIP_ERROR_RESOURCE: memory of VipxAdoptMem() that cannot be given back now for want of memory,
 *    mappings or file descriptors; it stays registered. Free some and call again
 *  - VIP_ERROR_NOT_SUPPORTED: memory of VipxAdoptMem(), and the other threads can no longer be stopped,
 *    as under a seccomp filter or a debugger; it stays registered. Protect the memory against writing,
 *    or unmap it, and call again
 *
 * Context: may wait until a transfer that is using the memory at this moment is over; for memory of
 * VipxAdoptMem() also until every peer that stores into it has unmapped it, and one that does not
 * within two seconds loses its connection. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Memory Management
 */
VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress,
			    VIP_MEM_HANDLE MemoryHandle);

/**
 * VipSetMemAttributes - change the attributes of registered memory
 * @NicHandle: in, the NIC handle it was registered with
 * @Address: in, the address given to VipRegisterMem()
 * @MemoryHandle: in, the handle
 * @MemAttribs: in, all attributes, not NULL
 *
 * Either all attributes change or none.
 *
 * Ownership: MemAttribs is not kept.
 *
 * Return:
 *  - VIP_SUCCESS: the new attributes hold for every access that begins now
 *  - VIP_INVALID_PARAMETER: a bad NIC handle, an unknown memory handle, an address other than the
 *    registered one, or NULL
 *  - VIP_ERROR_RESOURCE: out of memory
 *  - VIP_INVALID_PTAG: Ptag is neither NULL nor a tag of this NIC handle
 *  - VIP_INVALID_RDMAREAD: EnableRdmaRead, but the NIC has no RDMA read
 *
 * Context: may wait until a transfer that is using the memory at this moment is over. Peers
 * unmap memory of VipxAllocMem() into which they store; one that does not within two seconds loses
 * its connection. Thread-safe. Allowed in handlers.
 *
 * Ordering: on return accesses that the old attributes allowed and the new ones forbid have ended.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Querying Information
 */
VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address,
			       VIP_MEM_HANDLE MemoryHandle, VIP_MEM_ATTRIBUTES *MemAttribs);

/**
 * VipQueryMem - tell the attributes of registered memory
 * @NicHandle: in, the NIC handle it was registered with
 * @Address: in, the address given to VipRegisterMem()
 * @MemoryHandle: in, the handle
 * @MemAttribs: out, the attributes, not NULL
 *
 * Ownership: MemAttribs is the caller's.
 *
 * Return:
 *  - VIP_SUCCESS: MemAttribs is filled
 *  - VIP_INVALID_PARAMETER: a bad NIC handle, an unknown memory handle, an address other than the
 *    registered one, or NULL
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Querying Information
 */
VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemoryHandle,
		       VIP_MEM_ATTRIBUTES *MemAttribs);

/* ---- Errors, management, names ----------------------------------------- */

/**
 * VipErrorCallback - set the handler of asynchronous errors
 * @NicHandle: in, handle from VipOpenNic()
 * @Context: in, passed to the handler, may be NULL
 * @Handler: in, the handler, or NULL for the default one, which writes a line to the log, but not
 *	when the peer has disconnected and nothing was lost: no send is outstanding, and the peer
 *	received all messages
 *
 * Each NIC handle has one handler. It reports what no descriptor can: a lost connection, a message
 * without a receive, a refused RDMA write, a descriptor that could not be queued.
 *
 * Ownership: the error descriptor is the library's and valid only during the call of the handler.
 * The object at Context must live until another handler is set or the NIC is closed.
 *
 * Return:
 *  - VIP_SUCCESS: the handler is set
 *  - VIP_INVALID_PARAMETER: not an open NIC handle
 *  - VIP_ERROR_RESOURCE: out of memory or threads
 *
 * Context: does not block. Thread-safe. Allowed in handlers. The handler runs in a thread of the
 * library, no lock held: it may call the library or exit(), and other handlers wait for its return.
 *
 * Ordering: errors are reported in the order they were noticed. The VI is in its new state and its
 * descriptors are complete before VIP_ERROR_CONN_LOST is reported; only if this end broke the
 * connection do sends that the peer may still acknowledge complete later.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Error Handling
 */
VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context,
			    void (*Handler)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *ErrorDesc));

/**
 * VipQuerySystemManagementInfo - list the NIC addresses of the fabric
 * @NicHandle: in, handle from VipOpenNic()
 * @InfoType: in, VIP_SMI_AUTODISCOVERY
 * @SysManInfo: in/out, a VIP_AUTODISCOVERY_LIST, not NULL. In: NumberOfHops, the distance to look
 *	(0: this host only); NumAdAddrs, the capacity of ADAddrArray, whose elements point at
 *	address buffers of the caller. Out: NumAdAddrs, the number of addresses found
 *
 * Each buffer must have room for sizeof(VIP_NET_ADDRESS) and NicAddressLen. With capacity 0 only
 * the number is returned, and ADAddrArray may be NULL.
 *
 * Ownership: list, array and buffers are the caller's.
 *
 * Return:
 *  - VIP_SUCCESS: the addresses are filled, the nearest first
 *  - VIP_INVALID_PARAMETER: a bad handle, NULL, or another InfoType
 *  - VIP_ERROR_RESOURCE: more addresses than capacity: NumAdAddrs tells how many, the first ones
 *    are filled. Provide more. Or the agent is gone
 *
 * Context: asks the agent, which answers at once. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Querying Information
 */
VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType,
					VIP_PVOID SysManInfo);

/**
 * VipNSInit - start the name service
 * @NicHandle: in, handle from VipOpenNic()
 * @NSInitInfo: in, ignored: NULL
 *
 * Needed before the first look-up. Calling it again is allowed.
 *
 * Ownership: nothing is kept.
 *
 * Return:
 *  - VIP_SUCCESS: names can be looked up
 *  - VIP_INVALID_PARAMETER: not an open NIC handle
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Name Service
 */
VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo);

/**
 * VipNSGetHostByName - find the address of a host
 * @NicHandle: in, handle from VipOpenNic(), after VipNSInit()
 * @Name: in, name or alias of the host, not NULL; if it has dots the part before the first dot is
 *	tried too. Unless a host has that name or alias, the machine's own name (as
 *	gethostname() tells it) and "localhost" are the host of the calling process
 * @Address: out, HostAddressLen and that many bytes of HostAddress are written, nothing else: a
 *	discriminator length or further bytes stay as they are. Not NULL. HostAddressLen is not
 *	read: provide room for NicAddressLen bytes
 * @NameIndex: in, which address of the host, from 0
 *
 * Ownership: Address is the caller's; Name is not kept.
 *
 * Return:
 *  - VIP_SUCCESS: the address is filled
 *  - VIP_ERROR_NAMESERVICE: unknown name, no address of that index, VipNSInit() was not called, or
 *    the agent is gone. vi_info lists the names
 *  - VIP_INVALID_PARAMETER: a bad handle or a NULL pointer
 *
 * Context: asks the agent, which answers at once. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Name Service
 */
VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR *Name, VIP_NET_ADDRESS *Address,
			      VIP_ULONG NameIndex);

/**
 * VipNSGetHostByAddr - find the name of a host
 * @NicHandle: in, handle from VipOpenNic(), after VipNSInit()
 * @Address: in, host address; the discriminator is ignored. Not NULL
 * @Name: out, the name, ended by a zero byte, not NULL
 * @NameLen: in/out, in: bytes of room in Name; out: length of the name without the zero byte, or,
 *	if it does not fit, the room needed. Not NULL
 *
 * Ownership: Name is the caller's, written only on success.
 *
 * Return:
 *  - VIP_SUCCESS: the name is filled
 *  - VIP_ERROR_NAMESERVICE: unknown address, VipNSInit() was not called, or the agent is gone
 *  - VIP_ERROR_RESOURCE: the name does not fit. Provide the room that NameLen tells
 *  - VIP_INVALID_PARAMETER: a bad handle, a NULL pointer, or an address of wrong length
 *
 * Context: asks the agent, which answers at once. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Name Service
 */
VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS *Address, VIP_CHAR *Name,
			      VIP_ULONG *NameLen);

/**
 * VipNSShutdown - end the name service
 * @NicHandle: in, handle from VipOpenNic()
 *
 * Ownership: addresses found before stay valid.
 *
 * Return:
 *  - VIP_SUCCESS: the name service is ended; also if it was not started
 *  - VIP_INVALID_PARAMETER: not an open NIC handle
 *
 * Context: does not block. Thread-safe. Allowed in handlers.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0, Name Service
 */
VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
