/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of vipl_ext.h.
 */
#include "jn.h"

JNIEXPORT jint JNICALL JN_NAME(vipxAllocMem)(JNIEnv *env, jobject self, jlong nicHandle,
					     jlong length, jlong memAttribs, jlong address,
					     jlong memoryHandle)
{
	return (jint)jn_call.VipxAllocMem(jn_ptr(nicHandle), (VIP_ULONG)length, jn_ptr(memAttribs),
					  jn_ptr(address), jn_ptr(memoryHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipxFreeMem)(JNIEnv *env, jobject self, jlong nicHandle,
					    jlong address, jint memoryHandle)
{
	return (jint)jn_call.VipxFreeMem(jn_ptr(nicHandle), jn_ptr(address),
					 (VIP_MEM_HANDLE)memoryHandle);
}

JNIEXPORT jint JNICALL JN_NAME(vipxAdoptMem)(JNIEnv *env, jobject self, jlong nicHandle,
					     jlong address, jlong length, jlong memAttribs,
					     jlong flags, jlong memoryHandle)
{
	return (jint)jn_call.VipxAdoptMem(jn_ptr(nicHandle), jn_ptr(address), (VIP_ULONG)length,
					  jn_ptr(memAttribs), (VIP_ULONG)flags,
					  jn_ptr(memoryHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipxMapRemote)(JNIEnv *env, jobject self, jlong viHandle,
					      jlong remoteAddress, jlong length,
					      jint remoteMemHandle, jlong address)
{
	return (jint)jn_call.VipxMapRemote(jn_ptr(viHandle), (VIP_UINT64)remoteAddress,
					   (VIP_ULONG)length, (VIP_MEM_HANDLE)remoteMemHandle,
					   jn_ptr(address));
}

JNIEXPORT jint JNICALL JN_NAME(vipxUnmapRemote)(JNIEnv *env, jobject self, jlong viHandle,
						jlong address)
{
	return (jint)jn_call.VipxUnmapRemote(jn_ptr(viHandle), jn_ptr(address));
}

JNIEXPORT jint JNICALL JN_NAME(vipxFlush)(JNIEnv *env, jobject self, jlong viHandle, jlong timeout)
{
	return (jint)jn_call.VipxFlush(jn_ptr(viHandle), (VIP_ULONG)timeout);
}

JNIEXPORT jint JNICALL JN_NAME(vipxPostSends)(JNIEnv *env, jobject self, jlong viHandle,
					      jlong descriptors, jlong count, jint memoryHandle,
					      jlong posted)
{
	return (jint)jn_call.VipxPostSends(jn_ptr(viHandle), jn_ptr(descriptors), (VIP_ULONG)count,
					   (VIP_MEM_HANDLE)memoryHandle, jn_ptr(posted));
}

JNIEXPORT jint JNICALL JN_NAME(vipxPostRecvs)(JNIEnv *env, jobject self, jlong viHandle,
					      jlong descriptors, jlong count, jint memoryHandle,
					      jlong posted)
{
	return (jint)jn_call.VipxPostRecvs(jn_ptr(viHandle), jn_ptr(descriptors), (VIP_ULONG)count,
					   (VIP_MEM_HANDLE)memoryHandle, jn_ptr(posted));
}

JNIEXPORT jint JNICALL JN_NAME(vipxSendsDone)(JNIEnv *env, jobject self, jlong viHandle,
					      jlong descriptors, jlong max, jlong count)
{
	return (jint)jn_call.VipxSendsDone(jn_ptr(viHandle), jn_ptr(descriptors), (VIP_ULONG)max,
					   jn_ptr(count));
}

JNIEXPORT jint JNICALL JN_NAME(vipxRecvsDone)(JNIEnv *env, jobject self, jlong viHandle,
					      jlong descriptors, jlong max, jlong count)
{
	return (jint)jn_call.VipxRecvsDone(jn_ptr(viHandle), jn_ptr(descriptors), (VIP_ULONG)max,
					   jn_ptr(count));
}

JNIEXPORT jint JNICALL JN_NAME(vipxSetViContext)(JNIEnv *env, jobject self, jlong viHandle,
						 jlong context)
{
	return (jint)jn_call.VipxSetViContext(jn_ptr(viHandle), jn_ptr(context));
}

JNIEXPORT jint JNICALL JN_NAME(vipxCQTake)(JNIEnv *env, jobject self, jlong cqHandle,
					   jlong completions, jlong max, jlong count)
{
	return (jint)jn_call.VipxCQTake(jn_ptr(cqHandle), jn_ptr(completions), (VIP_ULONG)max,
					jn_ptr(count));
}

JNIEXPORT jint JNICALL JN_NAME(vipxCQFd)(JNIEnv *env, jobject self, jlong cqHandle, jlong fd)
{
	return (jint)jn_call.VipxCQFd(jn_ptr(cqHandle), jn_ptr(fd));
}

JNIEXPORT jint JNICALL JN_NAME(vipxCQArm)(JNIEnv *env, jobject self, jlong cqHandle)
{
	return (jint)jn_call.VipxCQArm(jn_ptr(cqHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipxProgress)(JNIEnv *env, jobject self, jlong nicHandle)
{
	return (jint)jn_call.VipxProgress(jn_ptr(nicHandle));
}

JNIEXPORT jint JNICALL JN_NAME(vipxSetAffinity)(JNIEnv *env, jobject self, jlong nicHandle,
						jlong rules)
{
	return (jint)jn_call.VipxSetAffinity(jn_ptr(nicHandle), jn_ptr(rules));
}

JNIEXPORT jint JNICALL JN_NAME(vipxQueryPlacement)(JNIEnv *env, jobject self, jlong nicHandle,
						   jlong role, jlong placement)
{
	return (jint)jn_call.VipxQueryPlacement(jn_ptr(nicHandle), (VIP_ULONG)role,
						jn_ptr(placement));
}

JNIEXPORT jint JNICALL JN_NAME(vipxPlaceThread)(JNIEnv *env, jobject self, jlong nicHandle,
						jlong role, jlong index, jlong count, jlong flags,
						jlong placement)
{
	return (jint)jn_call.VipxPlaceThread(jn_ptr(nicHandle), (VIP_ULONG)role, (VIP_ULONG)index,
					     (VIP_ULONG)count, (VIP_ULONG)flags, jn_ptr(placement));
}

JNIEXPORT jlong JNICALL JN_NAME(vipxErrorString)(JNIEnv *env, jobject self, jint code)
{
	return (jlong)(uintptr_t)jn_call.VipxErrorString((VIP_RETURN)code);
}

JNIEXPORT jint JNICALL JN_NAME(vipxStatusString)(JNIEnv *env, jobject self, jlong status,
						 jlong buffer, jlong length)
{
	return (jint)jn_call.VipxStatusString((VIP_ULONG)status, jn_ptr(buffer), (VIP_ULONG)length);
}

JNIEXPORT jint JNICALL JN_NAME(vipxQueryRoute)(JNIEnv *env, jobject self, jlong nicHandle,
					       jlong remoteAddr, jlong route)
{
	return (jint)jn_call.VipxQueryRoute(jn_ptr(nicHandle), jn_ptr(remoteAddr), jn_ptr(route));
}

JNIEXPORT jint JNICALL JN_NAME(vipxQueryCounters)(JNIEnv *env, jobject self, jlong nicHandle,
						  jlong viHandle, jlong counters)
{
	return (jint)jn_call.VipxQueryCounters(jn_ptr(nicHandle), jn_ptr(viHandle),
					       jn_ptr(counters));
}

JNIEXPORT jint JNICALL JN_NAME(vipxQueryVersion)(JNIEnv *env, jobject self, jlong extension,
						 jlong release)
{
	return (jint)jn_call.VipxQueryVersion(jn_ptr(extension), jn_ptr(release));
}
