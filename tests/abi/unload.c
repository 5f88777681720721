/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that unloads the library while a NIC is open: its threads go on running. */
#include <dlfcn.h>
#include <stdio.h>

#include <vipl.h>

#define FUNCTION(library, name) ((__typeof__(name) *)dlsym(library, #name))

int main(void)
{
	void *library = dlopen(LIBVIPL, RTLD_NOW | RTLD_LOCAL);
	VIP_NIC_HANDLE nic;
	VIP_NIC_ATTRIBUTES attrs;

	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	__typeof__(VipOpenNic) *open_nic = FUNCTION(library, VipOpenNic);
	__typeof__(VipCloseNic) *close_nic = FUNCTION(library, VipCloseNic);
	__typeof__(VipQueryNic) *query_nic = FUNCTION(library, VipQueryNic);

	if (open_nic("nic0", &nic) != VIP_SUCCESS)
		return 1;
	dlclose(library);
	if (dlopen(LIBVIPL, RTLD_NOW | RTLD_NOLOAD) == NULL) {
		fprintf(stderr, "the library is gone, its threads are not\n");
		return 1;
	}
	if (query_nic(nic, &attrs) != VIP_SUCCESS)
		return 1;
	return close_nic(nic) == VIP_SUCCESS ? 0 : 1;
}
