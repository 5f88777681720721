/* SPDX-License-Identifier: BSD-2-Clause */
/* Built with the installed headers and library: does the library have the version of the headers? */
#include <stdio.h>
#include <string.h>

#include <vipl.h>
#include <vipl_ext.h>

int main(int argc, char **argv)
{
	VIP_NIC_ATTRIBUTES attributes;
	VIP_NIC_HANDLE nic;
	VIP_ULONG extension = 0;
	const char *release = NULL;
	char text[192];

	if (VipxQueryVersion(&extension, &release) != VIP_SUCCESS || extension != VIPX_VERSION)
		return 1;
	if (VipOpenNic("nic0", NULL) != VIP_INVALID_PARAMETER)
		return 1;
	if (VipOpenNic("nic0", &nic) != VIP_SUCCESS ||
	    VipQueryNic(nic, &attributes) != VIP_SUCCESS || VipCloseNic(nic) != VIP_SUCCESS)
		return 1;
	if (strcmp(VipxErrorString(VIP_NOT_DONE), "VIP_NOT_DONE") != 0)
		return 1;
	if (VipxStatusString(VIP_STATUS_DONE | VIP_STATUS_LENGTH_ERROR, text, sizeof(text)) !=
		    VIP_SUCCESS ||
	    !strstr(text, "LENGTH_ERROR"))
		return 1;
	puts(release);
	return argc > 1 && strcmp(argv[1], release) != 0;
}
