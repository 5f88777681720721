/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "link.h"

#define WINDOW_BYTES ((size_t)CP_BUFFERS * CP_BUFFER_BYTES)

/* Does nothing: when the peer ends, the next receive or send fails. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	(void)context;
	(void)error;
}

static int failed(const char *call, VIP_RETURN rc)
{
	fprintf(stderr, "vi_cp: %s answered %s; vi_info shows the NIC and its limits\n", call,
		VipxErrorString(rc));
	return -EIO;
}

static void *map(size_t length)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static int open_nic(struct link *link, const char *service)
{
	size_t length = strlen(service);
	VIP_NIC_ATTRIBUTES attrs;
	VIP_RETURN rc = VipOpenNic("nic0", &link->nic);

	if (rc != VIP_SUCCESS)
		return failed("VipOpenNic", rc);
	VipErrorCallback(link->nic, NULL, on_error);
	VipQueryNic(link->nic, &attrs);
	if (length > attrs.MaxDiscriminatorLen || length > 64) {
		fprintf(stderr,
			"vi_cp: service name of at most %u bytes sought, found %zu; shorten it\n",
			attrs.MaxDiscriminatorLen, length);
		return -EINVAL;
	}
	link->here.addr.HostAddressLen = attrs.NicAddressLen;
	link->here.addr.DiscriminatorLen = (VIP_UINT16)length;
	memcpy(link->here.addr.HostAddress, attrs.LocalNicAddress, attrs.NicAddressLen);
	memcpy(link->here.addr.HostAddress + attrs.NicAddressLen, service, length);
	link->there = link->here;
	return 0;
}

static int open_memory(struct link *link, bool target)
{
	VIP_MEM_ATTRIBUTES attrs = { NULL, VIP_FALSE, VIP_FALSE };
	VIP_RETURN rc = VipCreatePtag(link->nic, &link->ptag);

	if (rc != VIP_SUCCESS)
		return failed("VipCreatePtag", rc);
	link->memory = map(sizeof(*link->memory));
	link->window = map(WINDOW_BYTES);
	if (!link->memory || !link->window) {
		fprintf(stderr, "vi_cp: %zu bytes of memory sought, none left\n", WINDOW_BYTES);
		return -ENOMEM;
	}
	attrs.Ptag = link->ptag;
	rc = VipRegisterMem(link->nic, link->memory, sizeof(*link->memory), &attrs,
			    &link->memory_handle);
	if (rc != VIP_SUCCESS)
		return failed("VipRegisterMem", rc);
	attrs.EnableRdmaWrite = target;
	rc = VipRegisterMem(link->nic, link->window, WINDOW_BYTES, &attrs, &link->window_handle);
	return rc == VIP_SUCCESS ? 0 : failed("VipRegisterMem", rc);
}

static int post_receive(struct link *link, struct link_slot *slot)
{
	VIP_DESCRIPTOR *desc = &slot->desc;

	memset(desc, 0, sizeof(*desc));
	desc->CS.Control = VIP_CONTROL_OP_SENDRECV;
	desc->CS.SegCount = 1;
	desc->CS.Length = sizeof(slot->message);
	desc->DS[0].Local.Data.Address = slot->message;
	desc->DS[0].Local.Handle = link->memory_handle;
	desc->DS[0].Local.Length = sizeof(slot->message);
	return VipPostRecv(link->vi, desc, link->memory_handle) == VIP_SUCCESS ? 0 : -EIO;
}

static int open_vi(struct link *link, bool target)
{
	VIP_VI_ATTRIBUTES attrs = { 0 };
	unsigned int i;
	VIP_RETURN rc;

	attrs.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
	attrs.MaxTransferSize = CP_BUFFER_BYTES;
	attrs.Ptag = link->ptag;
	attrs.EnableRdmaWrite = target;
	rc = VipCreateVi(link->nic, &attrs, NULL, NULL, &link->vi);
	if (rc != VIP_SUCCESS)
		return failed("VipCreateVi", rc);
	for (i = 0; i < CP_RECEIVES; i++)
		if (post_receive(link, &link->memory->receive[i]))
			return -EIO;
	return 0;
}

int link_open(struct link *link, const char *service, bool target)
{
	int err;

	memset(link, 0, sizeof(*link));
	err = open_nic(link, service);
	if (!err)
		err = open_memory(link, target);
	if (!err)
		err = open_vi(link, target);
	return err;
}

/* Disconnects and reaps every descriptor. */
static void drain(struct link *link)
{
	VIP_DESCRIPTOR *desc;

	VipDisconnect(link->vi);
	while (VipRecvDone(link->vi, &desc), desc)
		;
	while (VipSendDone(link->vi, &desc), desc)
		;
	memset(link->send_busy, 0, sizeof(link->send_busy));
	memset(link->write_busy, 0, sizeof(link->write_busy));
}

int link_reset(struct link *link)
{
	unsigned int i;

	drain(link);
	for (i = 0; i < CP_RECEIVES; i++)
		if (post_receive(link, &link->memory->receive[i]))
			return -EIO;
	return 0;
}

void link_close(struct link *link)
{
	if (link->vi) {
		drain(link);
		VipDestroyVi(link->vi);
	}
	if (link->window_handle)
		VipDeregisterMem(link->nic, link->window, link->window_handle);
	if (link->memory_handle)
		VipDeregisterMem(link->nic, link->memory, link->memory_handle);
	if (link->window)
		munmap(link->window, WINDOW_BYTES);
	if (link->memory)
		munmap(link->memory, sizeof(*link->memory));
	if (link->ptag)
		VipDestroyPtag(link->nic, link->ptag);
	if (link->nic)
		VipCloseNic(link->nic);
	memset(link, 0, sizeof(*link));
}

int link_serve(struct link *link, unsigned int timeout_ms)
{
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;

	rc = VipConnectWait(link->nic, &link->here.addr, timeout_ms, &link->there.addr, &attrs,
			    &conn);
	if (rc == VIP_TIMEOUT)
		return -ETIMEDOUT;
	if (rc != VIP_SUCCESS)
		return failed("VipConnectWait", rc);
	rc = VipConnectAccept(conn, link->vi);
	if (rc == VIP_SUCCESS)
		return 0;
	VipConnectReject(conn);
	return -ETIMEDOUT;
}

int link_find(struct link *link, const char *host)
{
	char name[256];

	if (strlen(host) >= sizeof(name))
		return -ENOENT;
	strcpy(name, host);
	VipNSInit(link->nic, NULL);
	return VipNSGetHostByName(link->nic, name, &link->there.addr, 0) == VIP_SUCCESS ? 0
											: -ENOENT;
}

int link_connect(struct link *link, unsigned int timeout_ms)
{
	VIP_VI_ATTRIBUTES attrs;
	VIP_RETURN rc;

	rc = VipConnectRequest(link->vi, &link->here.addr, &link->there.addr, timeout_ms, &attrs);
	switch (rc) {
	case VIP_SUCCESS:
		return attrs.EnableRdmaWrite ? 0 : -EPROTO;
	case VIP_NO_MATCH:
	case VIP_REJECT:
		return -EAGAIN;
	case VIP_TIMEOUT:
		return -ETIMEDOUT;
	case VIP_NOT_REACHABLE:
		return -EHOSTUNREACH;
	default:
		return failed("VipConnectRequest", rc);
	}
}

/* Which slot or buffer a completed descriptor of the send queue frees. */
static void sent(struct link *link, VIP_DESCRIPTOR *desc)
{
	struct link_memory *memory = link->memory;

	if (desc >= memory->write && desc < memory->write + CP_BUFFERS)
		link->write_busy[desc - memory->write] = false;
	else
		link->send_busy[(struct link_slot *)desc - memory->send] = false;
}

/* Reaps one completed send, waiting for it if told so.  0, -EAGAIN, -ENOTCONN. */
static int reap(struct link *link, bool wait)
{
	VIP_DESCRIPTOR *desc;
	VIP_RETURN rc;

	if (wait)
		rc = VipSendWait(link->vi, VIP_INFINITE, &desc);
	else
		rc = VipSendDone(link->vi, &desc);
	if (desc)
		sent(link, desc);
	if (rc == VIP_SUCCESS)
		return 0;
	return desc ? -ENOTCONN : -EAGAIN;
}

/* A free slot to send from. */
static int free_send(struct link *link, unsigned int *out)
{
	unsigned int i;
	int err;

	do {
		err = reap(link, false);
	} while (!err);
	while (err != -ENOTCONN) {
		for (i = 0; i < LINK_SENDS; i++)
			if (!link->send_busy[i]) {
				*out = i;
				return 0;
			}
		err = reap(link, true);
	}
	return err;
}

int link_send(struct link *link, const void *message, size_t length)
{
	struct link_slot *slot;
	unsigned int i;
	int err = free_send(link, &i);

	if (err)
		return err;
	slot = &link->memory->send[i];
	memcpy(slot->message, message, length);
	memset(&slot->desc, 0, sizeof(slot->desc));
	slot->desc.CS.Control = VIP_CONTROL_OP_SENDRECV;
	slot->desc.CS.SegCount = 1;
	slot->desc.CS.Length = (VIP_UINT32)length;
	slot->desc.DS[0].Local.Data.Address = slot->message;
	slot->desc.DS[0].Local.Handle = link->memory_handle;
	slot->desc.DS[0].Local.Length = (VIP_UINT32)length;
	if (VipPostSend(link->vi, &slot->desc, link->memory_handle) != VIP_SUCCESS)
		return -ENOTCONN;
	link->send_busy[i] = true;
	return 0;
}

int link_receive(struct link *link, unsigned int timeout_ms, struct link_event *event)
{
	VIP_DESCRIPTOR *desc;
	VIP_RETURN rc = VipRecvWait(link->vi, timeout_ms, &desc);

	if (rc == VIP_TIMEOUT || rc == VIP_NOT_DONE)
		return -ETIMEDOUT;
	if (rc != VIP_SUCCESS)
		return -ENOTCONN;
	event->slot = (struct link_slot *)desc;
	event->is_data = (desc->CS.Status & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_REMOTE_RDMA_WRITE;
	event->buffer = desc->CS.ImmediateData;
	event->length = desc->CS.Length;
	event->bytes = event->slot->message;
	return 0;
}

int link_release(struct link *link, const struct link_event *event)
{
	return post_receive(link, event->slot) ? -ENOTCONN : 0;
}

int link_write(struct link *link, uint32_t buffer, uint32_t length, const struct cp_welcome *there)
{
	VIP_DESCRIPTOR *desc = &link->memory->write[buffer];

	memset(desc, 0, sizeof(*desc));
	desc->CS.Control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
	desc->CS.SegCount = 2;
	desc->CS.Length = length;
	desc->CS.ImmediateData = buffer;
	desc->DS[0].Remote.Data.AddressBits = there->address + (uint64_t)buffer * CP_BUFFER_BYTES;
	desc->DS[0].Remote.Handle = there->handle;
	desc->DS[1].Local.Data.Address = link_buffer(link, buffer);
	desc->DS[1].Local.Handle = link->window_handle;
	desc->DS[1].Local.Length = length;
	if (VipPostSend(link->vi, desc, link->memory_handle) != VIP_SUCCESS)
		return -ENOTCONN;
	link->write_busy[buffer] = true;
	return 0;
}

int link_write_wait(struct link *link, uint32_t buffer)
{
	int err = 0;

	while (link->write_busy[buffer] && !err)
		err = reap(link, true);
	return err;
}
