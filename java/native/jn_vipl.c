/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of vipl.h.
 */
#include "jn.h"

JNIEXPORT jint JNICALL JN_NAME(vipOpenNic)(JNIEnv *env, jobject self, jlong deviceName,
					   jlong nicHandle)
{
	return (jint)jn_call.VipOpenNic(jn_ptr(deviceName), jn_ptr(nicHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipCloseNic)(JNIEnv *env, jobject self, jlong nicHandle)
{
	return (jint)jn_call.VipCloseNic(jn_ptr(nicHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipQueryNic)(JNIEnv *env, jobject self, jlong nicHandle,
					    jlong nicAttribs)
{
	return (jint)jn_call.VipQueryNic(jn_ptr(nicHandle), jn_ptr(nicAttribs));
}

JNIEXPORT jint JNICALL JN_NAME(vipCreateVi)(JNIEnv *env, jobject self, jlong nicHandle,
					    jlong viAttribs, jlong sendCqHandle, jlong recvCqHandle,
					    jlong viHandle)
{
	return (jint)jn_call.VipCreateVi(jn_ptr(nicHandle), jn_ptr(viAttribs), jn_ptr(sendCqHandle),
					 jn_ptr(recvCqHandle), jn_ptr(viHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipDestroyVi)(JNIEnv *env, jobject self, jlong viHandle)
{
	return (jint)jn_call.VipDestroyVi(jn_ptr(viHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipSetViAttributes)(JNIEnv *env, jobject self, jlong viHandle,
						   jlong viAttribs)
{
	return (jint)jn_call.VipSetViAttributes(jn_ptr(viHandle), jn_ptr(viAttribs));
}

JNIEXPORT jint JNICALL JN_NAME(vipQueryVi)(JNIEnv *env, jobject self, jlong viHandle, jlong state,
					   jlong viAttribs, jlong sendQEmpty, jlong recvQEmpty)
{
	return (jint)jn_call.VipQueryVi(jn_ptr(viHandle), jn_ptr(state), jn_ptr(viAttribs),
					jn_ptr(sendQEmpty), jn_ptr(recvQEmpty));
}

JNIEXPORT jint JNICALL JN_NAME(vipConnectWait)(JNIEnv *env, jobject self, jlong nicHandle,
					       jlong localAddr, jlong timeout, jlong remoteAddr,
					       jlong remoteViAttribs, jlong connHandle)
{
	return (jint)jn_call.VipConnectWait(jn_ptr(nicHandle), jn_ptr(localAddr),
					    (VIP_ULONG)timeout, jn_ptr(remoteAddr),
					    jn_ptr(remoteViAttribs), jn_ptr(connHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipConnectAccept)(JNIEnv *env, jobject self, jlong connHandle,
						 jlong viHandle)
{
	return (jint)jn_call.VipConnectAccept(jn_ptr(connHandle), jn_ptr(viHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipConnectReject)(JNIEnv *env, jobject self, jlong connHandle)
{
	return (jint)jn_call.VipConnectReject(jn_ptr(connHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipConnectRequest)(JNIEnv *env, jobject self, jlong viHandle,
						  jlong localAddr, jlong remoteAddr, jlong timeout,
						  jlong remoteViAttribs)
{
	return (jint)jn_call.VipConnectRequest(jn_ptr(viHandle), jn_ptr(localAddr),
					       jn_ptr(remoteAddr), (VIP_ULONG)timeout,
					       jn_ptr(remoteViAttribs));
}

JNIEXPORT jint JNICALL JN_NAME(vipDisconnect)(JNIEnv *env, jobject self, jlong viHandle)
{
	return (jint)jn_call.VipDisconnect(jn_ptr(viHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipConnectPeerRequest)(JNIEnv *env, jobject self, jlong viHandle,
						      jlong localAddr, jlong remoteAddr,
						      jlong timeout)
{
	return (jint)jn_call.VipConnectPeerRequest(jn_ptr(viHandle), jn_ptr(localAddr),
						   jn_ptr(remoteAddr), (VIP_ULONG)timeout);
}

JNIEXPORT jint JNICALL JN_NAME(vipConnectPeerDone)(JNIEnv *env, jobject self, jlong viHandle,
						   jlong remoteViAttribs)
{
	return (jint)jn_call.VipConnectPeerDone(jn_ptr(viHandle), jn_ptr(remoteViAttribs));
}

JNIEXPORT jint JNICALL JN_NAME(vipConnectPeerWait)(JNIEnv *env, jobject self, jlong viHandle,
						   jlong remoteViAttribs)
{
	return (jint)jn_call.VipConnectPeerWait(jn_ptr(viHandle), jn_ptr(remoteViAttribs));
}

JNIEXPORT jint JNICALL JN_NAME(vipPostSend)(JNIEnv *env, jobject self, jlong viHandle,
					    jlong descriptorPtr, jint memoryHandle)
{
	return (jint)jn_call.VipPostSend(jn_ptr(viHandle), jn_ptr(descriptorPtr),
					 (VIP_MEM_HANDLE)memoryHandle);
}

JNIEXPORT jint JNICALL JN_NAME(vipPostRecv)(JNIEnv *env, jobject self, jlong viHandle,
					    jlong descriptorPtr, jint memoryHandle)
{
	return (jint)jn_call.VipPostRecv(jn_ptr(viHandle), jn_ptr(descriptorPtr),
					 (VIP_MEM_HANDLE)memoryHandle);
}

JNIEXPORT jint JNICALL JN_NAME(vipSendDone)(JNIEnv *env, jobject self, jlong viHandle,
					    jlong descriptorPtr)
{
	return (jint)jn_call.VipSendDone(jn_ptr(viHandle), jn_ptr(descriptorPtr));
}

JNIEXPORT jint JNICALL JN_NAME(vipRecvDone)(JNIEnv *env, jobject self, jlong viHandle,
					    jlong descriptorPtr)
{
	return (jint)jn_call.VipRecvDone(jn_ptr(viHandle), jn_ptr(descriptorPtr));
}

JNIEXPORT jint JNICALL JN_NAME(vipSendWait)(JNIEnv *env, jobject self, jlong viHandle,
					    jlong timeout, jlong descriptorPtr)
{
	return (jint)jn_call.VipSendWait(jn_ptr(viHandle), (VIP_ULONG)timeout,
					 jn_ptr(descriptorPtr));
}

JNIEXPORT jint JNICALL JN_NAME(vipRecvWait)(JNIEnv *env, jobject self, jlong viHandle,
					    jlong timeout, jlong descriptorPtr)
{
	return (jint)jn_call.VipRecvWait(jn_ptr(viHandle), (VIP_ULONG)timeout,
					 jn_ptr(descriptorPtr));
}

JNIEXPORT jint JNICALL JN_NAME(vipSendNotify)(JNIEnv *env, jobject self, jlong viHandle,
					      jlong context, jlong handler)
{
	return (jint)jn_call.VipSendNotify(jn_ptr(viHandle), jn_ptr(context), jn_ptr(handler));
}

JNIEXPORT jint JNICALL JN_NAME(vipRecvNotify)(JNIEnv *env, jobject self, jlong viHandle,
					      jlong context, jlong handler)
{
	return (jint)jn_call.VipRecvNotify(jn_ptr(viHandle), jn_ptr(context), jn_ptr(handler));
}

JNIEXPORT jint JNICALL JN_NAME(vipCreateCQ)(JNIEnv *env, jobject self, jlong nicHandle,
					    jlong entryCount, jlong cqHandle)
{
	return (jint)jn_call.VipCreateCQ(jn_ptr(nicHandle), (VIP_ULONG)entryCount,
					 jn_ptr(cqHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipResizeCQ)(JNIEnv *env, jobject self, jlong cqHandle,
					    jlong entryCount)
{
	return (jint)jn_call.VipResizeCQ(jn_ptr(cqHandle), (VIP_ULONG)entryCount);
}

JNIEXPORT jint JNICALL JN_NAME(vipDestroyCQ)(JNIEnv *env, jobject self, jlong cqHandle)
{
	return (jint)jn_call.VipDestroyCQ(jn_ptr(cqHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipCQDone)(JNIEnv *env, jobject self, jlong cqHandle, jlong viHandle,
					  jlong recvQueue)
{
	return (jint)jn_call.VipCQDone(jn_ptr(cqHandle), jn_ptr(viHandle), jn_ptr(recvQueue));
}

JNIEXPORT jint JNICALL JN_NAME(vipCQWait)(JNIEnv *env, jobject self, jlong cqHandle, jlong timeout,
					  jlong viHandle, jlong recvQueue)
{
	return (jint)jn_call.VipCQWait(jn_ptr(cqHandle), (VIP_ULONG)timeout, jn_ptr(viHandle),
				       jn_ptr(recvQueue));
}

JNIEXPORT jint JNICALL JN_NAME(vipCQNotify)(JNIEnv *env, jobject self, jlong cqHandle,
					    jlong context, jlong handler)
{
	return (jint)jn_call.VipCQNotify(jn_ptr(cqHandle), jn_ptr(context), jn_ptr(handler));
}

JNIEXPORT jint JNICALL JN_NAME(vipCreatePtag)(JNIEnv *env, jobject self, jlong nicHandle,
					      jlong protectionTag)
{
	return (jint)jn_call.VipCreatePtag(jn_ptr(nicHandle), jn_ptr(protectionTag));
}

JNIEXPORT jint JNICALL JN_NAME(vipDestroyPtag)(JNIEnv *env, jobject self, jlong nicHandle,
					       jlong protectionTag)
{
	return (jint)jn_call.VipDestroyPtag(jn_ptr(nicHandle), jn_ptr(protectionTag));
}

JNIEXPORT jint JNICALL JN_NAME(vipRegisterMem)(JNIEnv *env, jobject self, jlong nicHandle,
					       jlong virtualAddress, jlong length, jlong memAttribs,
					       jlong memoryHandle)
{
	return (jint)jn_call.VipRegisterMem(jn_ptr(nicHandle), jn_ptr(virtualAddress),
					    (VIP_ULONG)length, jn_ptr(memAttribs),
					    jn_ptr(memoryHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipDeregisterMem)(JNIEnv *env, jobject self, jlong nicHandle,
						 jlong virtualAddress, jint memoryHandle)
{
	return (jint)jn_call.VipDeregisterMem(jn_ptr(nicHandle), jn_ptr(virtualAddress),
					      (VIP_MEM_HANDLE)memoryHandle);
}

JNIEXPORT jint JNICALL JN_NAME(vipSetMemAttributes)(JNIEnv *env, jobject self, jlong nicHandle,
						    jlong address, jint memoryHandle,
						    jlong memAttribs)
{
	return (jint)jn_call.VipSetMemAttributes(jn_ptr(nicHandle), jn_ptr(address),
						 (VIP_MEM_HANDLE)memoryHandle, jn_ptr(memAttribs));
}

JNIEXPORT jint JNICALL JN_NAME(vipQueryMem)(JNIEnv *env, jobject self, jlong nicHandle,
					    jlong address, jint memoryHandle, jlong memAttribs)
{
	return (jint)jn_call.VipQueryMem(jn_ptr(nicHandle), jn_ptr(address),
					 (VIP_MEM_HANDLE)memoryHandle, jn_ptr(memAttribs));
}

JNIEXPORT jint JNICALL JN_NAME(vipErrorCallback)(JNIEnv *env, jobject self, jlong nicHandle,
						 jlong context, jlong handler)
{
	return (jint)jn_call.VipErrorCallback(jn_ptr(nicHandle), jn_ptr(context), jn_ptr(handler));
}

JNIEXPORT jint JNICALL JN_NAME(vipQuerySystemManagementInfo)(JNIEnv *env, jobject self,
							     jlong nicHandle, jlong infoType,
							     jlong sysManInfo)
{
	return (jint)jn_call.VipQuerySystemManagementInfo(jn_ptr(nicHandle), (VIP_ULONG)infoType,
							  jn_ptr(sysManInfo));
}

JNIEXPORT jint JNICALL JN_NAME(vipNSInit)(JNIEnv *env, jobject self, jlong nicHandle,
					  jlong nSInitInfo)
{
	return (jint)jn_call.VipNSInit(jn_ptr(nicHandle), jn_ptr(nSInitInfo));
}

JNIEXPORT jint JNICALL JN_NAME(vipNSGetHostByName)(JNIEnv *env, jobject self, jlong nicHandle,
						   jlong name, jlong address, jlong nameIndex)
{
	return (jint)jn_call.VipNSGetHostByName(jn_ptr(nicHandle), jn_ptr(name), jn_ptr(address),
						(VIP_ULONG)nameIndex);
}

JNIEXPORT jint JNICALL JN_NAME(vipNSGetHostByAddr)(JNIEnv *env, jobject self, jlong nicHandle,
						   jlong address, jlong name, jlong nameLen)
{
	return (jint)jn_call.VipNSGetHostByAddr(jn_ptr(nicHandle), jn_ptr(address), jn_ptr(name),
						jn_ptr(nameLen));
}

JNIEXPORT jint JNICALL JN_NAME(vipNSShutdown)(JNIEnv *env, jobject self, jlong nicHandle)
{
	return (jint)jn_call.VipNSShutdown(jn_ptr(nicHandle));
}
