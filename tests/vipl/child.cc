/* SPDX-License-Identifier: BSD-2-Clause */
/* What this program does as another process, for tests that need one. */
#include "harness.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace conf {

/* Opens the device; the exit code is the return code. */
static int child_open(const std::string &device_name)
{
	VIP_NIC_HANDLE h;
	VIP_RETURN rc = VipOpenNic(device_name.c_str(), &h);
	if (rc == VIP_SUCCESS)
		VipCloseNic(h);
	return rc;
}

/* LEVEL:DISCRIMINATOR: connects from side 1 to side 0's host and ends without a word. */
static int child_connect_and_exit(const std::string &arg)
{
	size_t colon = arg.find(':');
	Nic mine(1), other(0);
	VIP_VI_ATTRIBUTES attrs =
		vi_attrs(static_cast<VIP_RELIABILITY_LEVEL>(std::stoi(arg.substr(0, colon))), 4096);
	Addr local(mine, "child"), remote(other, arg.substr(colon + 1));
	VIP_VI_ATTRIBUTES theirs;
	VIP_VI_HANDLE vi;
	VIP_RETURN rc = VipCreateVi(mine.h, &attrs, nullptr, nullptr, &vi);
	if (rc == VIP_SUCCESS)
		eventually([&] {
			rc = VipConnectRequest(vi, local, remote, kWaitMs, &theirs);
			return rc != VIP_NO_MATCH;
		});
	_exit(rc);
}

int child_main(const std::string &mode, const std::string &arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mode == "open")
		return child_open(arg);
	if (mode == "connect-and-exit")
		return child_connect_and_exit(arg);
	fprintf(stderr, "no such child: %s\n", mode.c_str());
	return 99;
}

} // namespace conf
