/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handlers of the library that call Java. They run in a thread of the library, which becomes a thread of
 * the virtual machine with its first call and stops being one when it ends.
 */
#include "jn.h"
#include <pthread.h>

#define HANDLERS "org/viaduct/vipl/spi/Handlers"

enum kind { KIND_VI = 0, KIND_CQ = 1, KIND_ERROR = 2 };

static struct {
	JavaVM *vm;
	jclass class;
	jmethodID vi, cq, error;
	pthread_key_t attached; /* its destructor runs when an attached thread ends */
} java;

static void detach(void *unused)
{
	(*java.vm)->DetachCurrentThread(java.vm);
}

int jn_handlers_init(JavaVM *vm, JNIEnv *env)
{
	jclass local = (*env)->FindClass(env, HANDLERS);

	if (local == NULL)
		return -1;
	java.vm = vm;
	java.class = (*env)->NewGlobalRef(env, local);
	java.vi = (*env)->GetStaticMethodID(env, local, "vi", "(JJJJ)V");
	java.cq = (*env)->GetStaticMethodID(env, local, "cq", "(JJJI)V");
	java.error = (*env)->GetStaticMethodID(env, local, "error", "(JJ)V");
	if (java.class == NULL || java.vi == NULL || java.cq == NULL || java.error == NULL)
		return -1;
	return pthread_key_create(&java.attached, detach) == 0 ? 0 : -1;
}

/* NULL where the virtual machine takes no more threads, as at its end. */
static JNIEnv *enter(void)
{
	JavaVMAttachArgs args = { .version = JNI_VERSION_10, .name = (char *)"viaduct-events" };
	JNIEnv *env = NULL;

	if ((*java.vm)->GetEnv(java.vm, (void **)&env, JNI_VERSION_10) == JNI_OK)
		return env;
	if ((*java.vm)->AttachCurrentThreadAsDaemon(java.vm, (void **)&env, &args) != JNI_OK)
		return NULL;
	pthread_setspecific(java.attached, env);
	return env;
}

/* The methods of Handlers throw nothing but what the virtual machine itself throws, as without memory. */
static void leave(JNIEnv *env)
{
	if ((*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
}

static void on_vi(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *desc)
{
	JNIEnv *env = enter();

	if (env == NULL)
		return;
	(*env)->CallStaticVoidMethod(env, java.class, java.vi, (jlong)(uintptr_t)context,
				     (jlong)(uintptr_t)nic, (jlong)(uintptr_t)vi,
				     (jlong)(uintptr_t)desc);
	leave(env);
}

static void on_cq(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN receive)
{
	JNIEnv *env = enter();

	if (env == NULL)
		return;
	(*env)->CallStaticVoidMethod(env, java.class, java.cq, (jlong)(uintptr_t)context,
				     (jlong)(uintptr_t)nic, (jlong)(uintptr_t)vi, (jint)receive);
	leave(env);
}

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	JNIEnv *env = enter();

	if (env == NULL)
		return;
	(*env)->CallStaticVoidMethod(env, java.class, java.error, (jlong)(uintptr_t)context,
				     (jlong)(uintptr_t)error);
	leave(env);
}

JNIEXPORT jlong JNICALL JN_NAME(handler)(JNIEnv *env, jobject self, jint kind)
{
	switch (kind) {
	case KIND_VI:
		return (jlong)(uintptr_t)on_vi;
	case KIND_CQ:
		return (jlong)(uintptr_t)on_cq;
	case KIND_ERROR:
		return (jlong)(uintptr_t)on_error;
	default:
		return 0;
	}
}
