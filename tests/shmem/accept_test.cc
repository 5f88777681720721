// SPDX-License-Identifier: BSD-2-Clause
// Accepting connections of other PEs, with the test as the other end and as the agent.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <semaphore.h>

#include "limit.h"

#define _Noreturn [[noreturn]] // which C++ does not have
extern "C" {
#include "osh_accept.h"
}

static struct {
	sem_t asked, confirmed, accepted;
	std::atomic<uintptr_t> last, rejected;
} end;

extern "C" {

VIP_RETURN __wrap_VipConnectWait(VIP_NIC_HANDLE, VIP_NET_ADDRESS *local, VIP_ULONG,
				 VIP_NET_ADDRESS *remote, VIP_VI_ATTRIBUTES *,
				 VIP_CONN_HANDLE *conn)
{
	while (sem_wait(&end.asked) != 0)
		;
	std::memcpy(static_cast<void *>(remote), local,
		    sizeof(*local) + local->HostAddressLen + local->DiscriminatorLen);
	*conn = reinterpret_cast<VIP_CONN_HANDLE>(++end.last);
	return VIP_SUCCESS;
}

// The first accept is never confirmed and ends by its time-out.
VIP_RETURN __wrap_VipConnectAccept(VIP_CONN_HANDLE conn, VIP_VI_HANDLE)
{
	if (reinterpret_cast<uintptr_t>(conn) == 1) {
		while (sem_wait(&end.confirmed) != 0)
			;
	} else {
		sem_post(&end.accepted);
	}
	return VIP_TIMEOUT;
}

VIP_RETURN __wrap_VipConnectReject(VIP_CONN_HANDLE)
{
	end.rejected++;
	return VIP_SUCCESS;
}

VIP_RETURN __wrap_VipCreateVi(VIP_NIC_HANDLE, VIP_VI_ATTRIBUTES *, VIP_CQ_HANDLE, VIP_CQ_HANDLE,
			      VIP_VI_HANDLE *vi)
{
	*vi = nullptr;
	return VIP_SUCCESS;
}

VIP_RETURN __wrap_VipDestroyVi(VIP_VI_HANDLE)
{
	return VIP_SUCCESS;
}
}

TEST(Accepting, DoesNotStandInLineBehindOneThatDoesNotConfirm)
{
	const uint8_t host[6] = { 1, 2, 3, 4, 5, 6 };
	timespec until;

	for (sem_t *sem : { &end.asked, &end.confirmed, &end.accepted })
		ASSERT_EQ(sem_init(sem, 0, 0), 0);
	osh_pe.n = 1;
	osh_conn_init(host, sizeof(host));
	ASSERT_EQ(osh_accept_begin(), 0);
	sem_post(&end.asked);
	sem_post(&end.asked);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30 * limit_factor();
	EXPECT_EQ(sem_timedwait(&end.accepted, &until), 0) << "the second waits for the first";
	sem_post(&end.confirmed);
	osh_accept_end();
	EXPECT_EQ(end.rejected, 2u) << "osh_accept_end() waits for those that are being accepted";
}
