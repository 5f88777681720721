/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's part, and the JDK's own provider, channels and selectors. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jnio.h"

#define SPIN_US 50
#define LINGER_MS 10000

static bool begun;

uint32_t jnio_spin_us;

uint64_t jnio_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct timespec jnio_in_ns(uint64_t ns)
{
	uint64_t at = jnio_now_ns();

	at = ns > INT64_MAX - at ? INT64_MAX : at + ns;
	return (struct timespec){ .tv_sec = (time_t)(at / 1000000000),
				  .tv_nsec = (long)(at % 1000000000) };
}

static void say(const char *line)
{
	fprintf(stderr, "viaduct: %s\n", line);
}

static void read_spin(void)
{
	const char *wait = secure_getenv("VIADUCT_WAIT");

	if (!wait || strcmp(wait, "block") != 0)
		jnio_spin_us = SPIN_US;
}

/* Rules and map of the file come after those of the environment. 0, or a line in `error`. */
static int read_settings(const char *rules, const char *map, char error[VS_ENV_ERROR])
{
	char bad[VS_BAD_MAX];

	if (vs_env_read(&vs_env, error) != 0)
		return -1;
	if (vs_rules_parse(&vs_env.rules, rules, bad) == 0 &&
	    vs_map_parse(&vs_env.rules, map, bad) == 0)
		return 0;
	snprintf(error, VS_ENV_ERROR, "the rule file: «%s» is no rule, or one too many", bad);
	return -1;
}

/* Buffer.segment, the segment of an arena; its type depends on the JDK. NULL: this JDK has it otherwise. */
static jfieldID buffer_segment;

static void find_segment(JNIEnv *env)
{
	static const char *const types[] = { "Ljava/lang/foreign/MemorySegment;",
					     "Ljdk/internal/access/foreign/MemorySegmentProxy;" };
	jclass c = (*env)->FindClass(env, "java/nio/Buffer");

	for (int i = 0; c && !buffer_segment && i < 2; i++) {
		(*env)->ExceptionClear(env);
		buffer_segment = (*env)->GetFieldID(env, c, "segment", types[i]);
	}
	(*env)->ExceptionClear(env);
}

/*
 * Called once. NULL: ready. "": the process's sockets are served already, by vi_run's library. Else what is wrong.
 */
JNIEXPORT jstring JNICALL JNIO_NAME(begin)(JNIEnv *env, jclass self, jstring rules, jstring map)
{
	struct st_config config = { .size = sizeof(config), .log = say };
	const char *r = (*env)->GetStringUTFChars(env, rules, NULL);
	const char *m = r ? (*env)->GetStringUTFChars(env, map, NULL) : NULL;
	char error[VS_ENV_ERROR] = "no memory";
	int rc = -1;

	if (m)
		rc = read_settings(r, m, error);
	if (m)
		(*env)->ReleaseStringUTFChars(env, map, m);
	if (r)
		(*env)->ReleaseStringUTFChars(env, rules, r);
	if (rc == 0) {
		find_segment(env);
		read_spin();
		config.spin_us = jnio_spin_us;
		rc = st_init(&config);
		begun = rc == 0;
		if (begun)
			return NULL;
		snprintf(error, sizeof(error), "%s",
			 rc == -EALREADY ? "" : "the settings were refused");
	}
	return (*env)->NewStringUTF(env, error);
}

/* Delivers the bytes of streams that the program has not closed. */
static void end(void) __attribute__((destructor));
static void end(void)
{
	if (begun)
		st_fini(LINGER_MS);
}

JNIEXPORT jint JNICALL JNIO_NAME(streamVersion)(JNIEnv *env, jclass self)
{
	return (jint)st_version();
}

/* The address that stands for this host (vi_run --host), IPv4, or 0. */
JNIEXPORT jint JNICALL JNIO_NAME(boundAddress)(JNIEnv *env, jclass self)
{
	const uint8_t *b = vs_env.address.b + 12;

	if (!vs_env.bound)
		return 0;
	return (jint)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
}

/* Sent and received over VIs, over TCP; promotions; demotions; attempts; connections reset for want of a VI. */
JNIEXPORT void JNICALL JNIO_NAME(statistics)(JNIEnv *env, jclass self, jlongArray out)
{
	struct st_stats s = { .size = sizeof(s) };
	jlong all[8];

	st_stats(&s);
	all[0] = (jlong)s.vi_bytes_sent;
	all[1] = (jlong)s.vi_bytes_received;
	all[2] = (jlong)s.tcp_bytes_sent;
	all[3] = (jlong)s.tcp_bytes_received;
	all[4] = (jlong)s.promotions;
	all[5] = 0;
	for (int i = 0; i < 16; i++)
		all[5] += (jlong)s.demotions[i];
	all[6] = (jlong)s.attempts;
	all[7] = (jlong)s.resets;
	(*env)->SetLongArrayRegion(env, out, 0, 8, all);
}

JNIEXPORT jlong JNICALL JNIO_NAME(address)(JNIEnv *env, jclass self, jobject direct)
{
	return (jlong)(uintptr_t)(*env)->GetDirectBufferAddress(env, direct);
}

/* 0: an arena that may be closed at any time has the memory, or this JDK does not tell. */
JNIEXPORT jlong JNICALL JNIO_NAME(place)(JNIEnv *env, jclass self, jobject direct)
{
	if (!buffer_segment || (*env)->GetObjectField(env, direct, buffer_segment))
		return 0;
	return (jlong)(uintptr_t)(*env)->GetDirectBufferAddress(env, direct);
}

/* ---- the JDK's, to which there is no public way; NULL or -1: this JDK has them otherwise ---- */

static void *none(JNIEnv *env)
{
	(*env)->ExceptionClear(env);
	return NULL;
}

JNIEXPORT jobject JNICALL JNIO_NAME(jdkProvider)(JNIEnv *env, jclass self)
{
	jclass c = (*env)->FindClass(env, "sun/nio/ch/DefaultSelectorProvider");
	jmethodID get;
	jobject provider;

	if (!c)
		return none(env);
	get = (*env)->GetStaticMethodID(env, c, "get", "()Lsun/nio/ch/SelectorProviderImpl;");
	if (!get)
		return none(env);
	provider = (*env)->CallStaticObjectMethod(env, c, get);
	return (*env)->ExceptionCheck(env) ? none(env) : provider;
}

/* The descriptor of a channel. */
JNIEXPORT jint JNICALL JNIO_NAME(descriptorOf)(JNIEnv *env, jclass self, jobject channel)
{
	jclass c = (*env)->FindClass(env, "sun/nio/ch/SelChImpl");
	jmethodID get = c ? (*env)->GetMethodID(env, c, "getFDVal", "()I") : NULL;
	jint fd = -1;

	if (get && (*env)->IsInstanceOf(env, channel, c))
		fd = (*env)->CallIntMethod(env, channel, get);
	(*env)->ExceptionClear(env);
	return fd;
}

/* The epoll set of a selector. */
JNIEXPORT jint JNICALL JNIO_NAME(epollOf)(JNIEnv *env, jclass self, jobject selector)
{
	jclass c = (*env)->FindClass(env, "sun/nio/ch/EPollSelectorImpl");
	jfieldID field = c ? (*env)->GetFieldID(env, c, "epfd", "I") : NULL;
	jint fd = -1;

	if (field && (*env)->IsInstanceOf(env, selector, c))
		fd = (*env)->GetIntField(env, selector, field);
	(*env)->ExceptionClear(env);
	return fd;
}
