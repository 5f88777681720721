/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the system that Java needs, and calls that do several things at once.
 */
#include "jn.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPINS_MAX 100000
#define EAGER 100 /* polls before the first pause, which costs as much as half a message */

#if defined(__x86_64__)
#define relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define relax() __asm__ __volatile__("isb" ::: "memory")
#else
#define relax() __asm__ __volatile__("" ::: "memory")
#endif

/* The collector does not wait for a thread that is here. */
JNIEXPORT jint JNICALL JN_NAME(recvSpin)(JNIEnv *env, jobject self, jlong vi, jlong descriptor,
					 jint times)
{
	VIP_RETURN code = VIP_NOT_DONE;
	jint i;

	if (times < 1 || times > SPINS_MAX)
		return VIP_INVALID_PARAMETER;
	for (i = 0; i < times; i++) {
		code = jn_call.VipRecvDone(jn_ptr(vi), jn_ptr(descriptor));
		if (code != VIP_NOT_DONE)
			break;
		if (i >= EAGER)
			relax();
	}
	return (jint)code;
}

JNIEXPORT jobject JNICALL JN_NAME(view)(JNIEnv *env, jobject self, jlong address, jint length)
{
	return (*env)->NewDirectByteBuffer(env, jn_ptr(address), length);
}

JNIEXPORT jlong JNICALL JN_NAME(addressOf)(JNIEnv *env, jobject self, jobject direct)
{
	return (jlong)(uintptr_t)(*env)->GetDirectBufferAddress(env, direct);
}

JNIEXPORT jstring JNICALL JN_NAME(text)(JNIEnv *env, jobject self, jlong address)
{
	return address == 0 ? NULL : (*env)->NewStringUTF(env, jn_ptr(address));
}

static jlong mapped(void *address)
{
	return address == MAP_FAILED ? 0 : (jlong)(uintptr_t)address;
}

JNIEXPORT jlong JNICALL JN_NAME(map)(JNIEnv *env, jobject self, jlong length)
{
	return mapped(mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* An old size of 0 leaves a shared mapping as it is and makes another of the same pages. */
JNIEXPORT jlong JNICALL JN_NAME(mapAgain)(JNIEnv *env, jobject self, jlong address, jlong length)
{
	return mapped(mremap(jn_ptr(address), 0, (size_t)length, MREMAP_MAYMOVE));
}

JNIEXPORT jint JNICALL JN_NAME(mapBlank)(JNIEnv *env, jobject self, jlong address, jlong length,
					 jboolean replace)
{
	int place = replace ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	void *got = mmap(jn_ptr(address), (size_t)length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | place, -1, 0);

	if (got == MAP_FAILED)
		return -1;
	if (got == jn_ptr(address))
		return 0;
	munmap(got, (size_t)length); /* a kernel before 4.17 takes the address as a hint */
	return -1;
}

JNIEXPORT jint JNICALL JN_NAME(unmap)(JNIEnv *env, jobject self, jlong address, jlong length)
{
	return munmap(jn_ptr(address), (size_t)length);
}

JNIEXPORT jint JNICALL JN_NAME(eventfd)(JNIEnv *env, jobject self)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

JNIEXPORT jint JNICALL JN_NAME(eventSet)(JNIEnv *env, jobject self, jint fd)
{
	return eventfd_write(fd, 1);
}

JNIEXPORT jint JNICALL JN_NAME(eventClear)(JNIEnv *env, jobject self, jint fd)
{
	eventfd_t value;

	return eventfd_read(fd, &value);
}

JNIEXPORT jint JNICALL JN_NAME(closeFd)(JNIEnv *env, jobject self, jint fd)
{
	return close(fd);
}

JNIEXPORT jint JNICALL JN_NAME(poll)(JNIEnv *env, jobject self, jlong fds, jint count,
				     jint milliseconds)
{
	return count < 0 ? -1 : poll(jn_ptr(fds), (nfds_t)count, milliseconds);
}

JNIEXPORT jint JNICALL JN_NAME(epollCreate)(JNIEnv *env, jobject self)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

JNIEXPORT jint JNICALL JN_NAME(epollControl)(JNIEnv *env, jobject self, jint epoll, jint operation,
					     jint fd, jlong event)
{
	return epoll_ctl(epoll, operation, fd, jn_ptr(event));
}

JNIEXPORT jint JNICALL JN_NAME(epollWait)(JNIEnv *env, jobject self, jint epoll, jlong events,
					  jint max, jint milliseconds)
{
	return epoll_wait(epoll, jn_ptr(events), max, milliseconds);
}
