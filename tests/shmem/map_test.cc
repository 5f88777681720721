// SPDX-License-Identifier: BSD-2-Clause
// Mapping the memory of a near PE, with the test as the other end and as the agent.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <semaphore.h>

#include "limit.h"

#define _Noreturn [[noreturn]] // which C++ does not have
extern "C" {
#include "osh_accept.h"
#include "osh_map.h"
}

namespace {

// VIs are numbers, which begin with 1.  The first two are connections that the other PE asked for and has left.
constexpr uintptr_t kLeft = 2;

struct {
	sem_t asked, waiting;
	std::atomic<uintptr_t> threads, vis, destroyed, requests;
	uintptr_t mapped, refused, unanswered;
} end;

uint8_t memory[4096];

} // namespace

extern "C" {

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

// Only osh-serve is started, so it accepts by itself, one connection after the other.
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attrs, void *(*run)(void *),
			  void *arg)
{
	return end.threads++ == 0 ? __real_pthread_create(thread, attrs, run, arg) : EAGAIN;
}

VIP_RETURN __wrap_VipConnectWait(VIP_NIC_HANDLE, VIP_NET_ADDRESS *local, VIP_ULONG,
				 VIP_NET_ADDRESS *remote, VIP_VI_ATTRIBUTES *, VIP_CONN_HANDLE *)
{
	sem_post(&end.waiting);
	while (sem_wait(&end.asked) != 0)
		;
	std::memcpy(static_cast<void *>(remote), local,
		    sizeof(*local) + local->HostAddressLen + local->DiscriminatorLen);
	remote->HostAddress[local->HostAddressLen + 4] = 1; // of PE 1, in struct discriminator
	return VIP_SUCCESS;
}

VIP_RETURN __wrap_VipConnectAccept(VIP_CONN_HANDLE, VIP_VI_HANDLE)
{
	return VIP_SUCCESS;
}

VIP_RETURN __wrap_VipConnectReject(VIP_CONN_HANDLE)
{
	return VIP_SUCCESS;
}

VIP_RETURN __wrap_VipConnectRequest(VIP_VI_HANDLE, VIP_NET_ADDRESS *, VIP_NET_ADDRESS *, VIP_ULONG,
				    VIP_VI_ATTRIBUTES *)
{
	end.requests++;
	sem_post(&end.asked); // osh_accept_end() wakes osh-serve so
	return VIP_SUCCESS;
}

VIP_RETURN __wrap_VipCreateVi(VIP_NIC_HANDLE, VIP_VI_ATTRIBUTES *, VIP_CQ_HANDLE, VIP_CQ_HANDLE,
			      VIP_VI_HANDLE *vi)
{
	*vi = reinterpret_cast<VIP_VI_HANDLE>(++end.vis);
	return VIP_SUCCESS;
}

VIP_RETURN __wrap_VipDestroyVi(VIP_VI_HANDLE)
{
	end.destroyed++;
	return VIP_SUCCESS;
}

VIP_RETURN __wrap_VipDisconnect(VIP_VI_HANDLE)
{
	return VIP_SUCCESS;
}

VIP_RETURN __wrap_VipSendDone(VIP_VI_HANDLE, VIP_DESCRIPTOR **)
{
	return VIP_NOT_DONE;
}

// The loss of the connections is not noticed before something is asked over them.
VIP_RETURN __wrap_VipQueryVi(VIP_VI_HANDLE, VIP_VI_STATE *state, VIP_VI_ATTRIBUTES *, VIP_BOOLEAN *,
			     VIP_BOOLEAN *)
{
	*state = VIP_STATE_CONNECTED;
	return VIP_SUCCESS;
}

VIP_RETURN __wrap_VipxMapRemote(VIP_VI_HANDLE vi, VIP_PVOID, VIP_ULONG, VIP_MEM_HANDLE,
				VIP_PVOID *at)
{
	if (reinterpret_cast<uintptr_t>(vi) <= kLeft) {
		end.refused++;
		return VIP_INVALID_STATE;
	}
	if (end.unanswered == 0) {
		end.unanswered++; // the PE is stopped, and answers when it is asked again
		return VIP_TIMEOUT;
	}
	end.mapped++;
	*at = memory;
	return VIP_SUCCESS;
}
}

TEST(Mapping, AConnectionThatTheOtherLeftIsReplacedByANewOne)
{
	const uint8_t host[6] = { 1, 2, 3, 4, 5, 6 };
	static osh_peer peers[2];
	timespec until;

	for (sem_t *sem : { &end.asked, &end.waiting })
		ASSERT_EQ(sem_init(sem, 0, 0), 0);
	osh_pe.n = 2;
	osh_pe.me = 0;
	osh_pe.peers = peers;
	osh_pe.segments = OSH_DATA + 1;
	peers[1].near = peers[1].same_program = true;
	osh_conn_init(host, sizeof(host));
	ASSERT_EQ(osh_accept_begin(), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30 * limit_factor();
	for (uintptr_t i = 0; i < kLeft; i++)
		sem_post(&end.asked);
	for (uintptr_t i = 0; i < kLeft + 1; i++)
		ASSERT_EQ(sem_timedwait(&end.waiting, &until), 0);
	EXPECT_TRUE(osh_map("test", 1));
	EXPECT_EQ(end.requests, 1u);
	EXPECT_EQ(end.mapped, 2u) << "data and heap";
	EXPECT_EQ(end.unanswered, 1u);
	EXPECT_EQ(end.refused, kLeft) << "both are tried";
	EXPECT_EQ(end.destroyed, kLeft);
	EXPECT_EQ(peers[1].at[OSH_HEAP], memory);
	osh_accept_end();
	osh_map_end();
}
