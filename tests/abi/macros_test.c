/* SPDX-License-Identifier: BSD-2-Clause */
/* Macros that programs test by the preprocessor, and names that other providers' headers have. */
#include <vipl.h>

#ifndef VIP_SUCCESS
#error VIP_SUCCESS
#endif
#ifndef VIP_NOT_DONE
#error VIP_NOT_DONE
#endif
#ifndef VIP_INVALID_PARAMETER
#error VIP_INVALID_PARAMETER
#endif
#ifndef VIP_ERROR_RESOURCE
#error VIP_ERROR_RESOURCE
#endif
#ifndef VIP_TIMEOUT
#error VIP_TIMEOUT
#endif
#ifndef VIP_REJECT
#error VIP_REJECT
#endif
#ifndef VIP_INVALID_RELIABILITY_LEVEL
#error VIP_INVALID_RELIABILITY_LEVEL
#endif
#ifndef VIP_INVALID_MTU
#error VIP_INVALID_MTU
#endif
#ifndef VIP_INVALID_QOS
#error VIP_INVALID_QOS
#endif
#ifndef VIP_INVALID_PTAG
#error VIP_INVALID_PTAG
#endif
#ifndef VIP_INVALID_RDMAREAD
#error VIP_INVALID_RDMAREAD
#endif
#ifndef VIP_DESCRIPTOR_ERROR
#error VIP_DESCRIPTOR_ERROR
#endif
#ifndef VIP_INVALID_STATE
#error VIP_INVALID_STATE
#endif
#ifndef VIP_ERROR_NAMESERVICE
#error VIP_ERROR_NAMESERVICE
#endif
#ifndef VIP_NO_MATCH
#error VIP_NO_MATCH
#endif
#ifndef VIP_NOT_REACHABLE
#error VIP_NOT_REACHABLE
#endif
#ifndef VIP_ERROR_NOT_SUPPORTED
#error VIP_ERROR_NOT_SUPPORTED
#endif
#ifndef VIP_STATE_IDLE
#error VIP_STATE_IDLE
#endif
#ifndef VIP_STATE_CONNECTED
#error VIP_STATE_CONNECTED
#endif
#ifndef VIP_STATE_CONNECT_PENDING
#error VIP_STATE_CONNECT_PENDING
#endif
#ifndef VIP_STATE_ERROR
#error VIP_STATE_ERROR
#endif
#ifndef VIP_RESOURCE_NIC
#error VIP_RESOURCE_NIC
#endif
#ifndef VIP_RESOURCE_VI
#error VIP_RESOURCE_VI
#endif
#ifndef VIP_RESOURCE_CQ
#error VIP_RESOURCE_CQ
#endif
#ifndef VIP_RESOURCE_DESCRIPTOR
#error VIP_RESOURCE_DESCRIPTOR
#endif
#ifndef VIP_ERROR_POST_DESC
#error VIP_ERROR_POST_DESC
#endif
#ifndef VIP_ERROR_CONN_LOST
#error VIP_ERROR_CONN_LOST
#endif
#ifndef VIP_ERROR_RECVQ_EMPTY
#error VIP_ERROR_RECVQ_EMPTY
#endif
#ifndef VIP_ERROR_VI_OVERRUN
#error VIP_ERROR_VI_OVERRUN
#endif
#ifndef VIP_ERROR_RDMAW_PROT
#error VIP_ERROR_RDMAW_PROT
#endif
#ifndef VIP_ERROR_RDMAW_DATA
#error VIP_ERROR_RDMAW_DATA
#endif
#ifndef VIP_ERROR_RDMAW_ABORT
#error VIP_ERROR_RDMAW_ABORT
#endif
#ifndef VIP_ERROR_RDMAR_PROT
#error VIP_ERROR_RDMAR_PROT
#endif
#ifndef VIP_ERROR_COMP_PROT
#error VIP_ERROR_COMP_PROT
#endif
#ifndef VIP_ERROR_RDMA_TRANSPORT
#error VIP_ERROR_RDMA_TRANSPORT
#endif
#ifndef VIP_ERROR_CATASTROPHIC
#error VIP_ERROR_CATASTROPHIC
#endif
#ifndef VIP_ERROR
#error VIP_ERROR
#endif
#ifndef VIP_BASE_SERVICES
#error VIP_BASE_SERVICES
#endif
#ifndef VIP_SERVICE_ACK
#error VIP_SERVICE_ACK
#endif
#ifndef VIP_SERVICE_DFC
#error VIP_SERVICE_DFC
#endif

/* As an existing program does after its include. */
#ifndef VIP_ERROR_NOT_SUPPORTED
#define VIP_ERROR_NOT_SUPPORTED -33333
#endif

int main(void)
{
	return VIP_ERROR_NOT_SUPPORTED == 16 && VIP_ERROR == VIP_DESCRIPTOR_ERROR &&
			       VIP_ERROR_CATASTROPHIC == 10 && VIP_STATE_ERROR == 3 &&
			       VIP_BASE_SERVICES == 7 && VIP_SERVICE_ACK == 1 << 14 &&
			       VIP_SERVICE_DFC == 1 << 15
		       ? 0
		       : 1;
}
