/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens libvipl, and tells how this library was compiled.
 */
#include "jn.h"
#include "jn_layout.h"
#include <dlfcn.h>
#include <stdio.h>

struct jn_calls jn_call;

struct function {
	const char *name;
	size_t offset;
};

#define JN_ENTRY(name) { #name, offsetof(struct jn_calls, name) },

static const struct function functions[] = { JN_FUNCTIONS(JN_ENTRY) };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
	JNIEnv *env;

	if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_10) != JNI_OK)
		return JNI_ERR;
	return jn_handlers_init(vm, env) == 0 ? JNI_VERSION_10 : JNI_ERR;
}

JNIEXPORT jstring JNICALL JN_NAME(layout)(JNIEnv *env, jclass self)
{
	char text[8192];

	if (jn_layout_print(text, sizeof(text)) != 0)
		return NULL;
	return (*env)->NewStringUTF(env, text);
}

static int check_version(void *library, VIP_ULONG wanted, char *text, size_t size)
{
	__typeof__(VipxQueryVersion) *query;
	const char *release = NULL;
	VIP_ULONG version = 0;

	*(void **)&query = dlsym(library, "VipxQueryVersion");
	if (query == NULL) {
		snprintf(text, size, "no library of Viaduct: it has no VipxQueryVersion");
		return -1;
	}
	query(&version, &release);
	if (version < wanted) {
		snprintf(
			text, size,
			"its extensions are of version %lu (release %s), this binding needs version %lu",
			version, release != NULL ? release : "unknown", wanted);
		return -1;
	}
	return 0;
}

static int bind_all(void *library, char *text, size_t size)
{
	size_t i;

	for (i = 0; i < COUNT(functions); i++) {
		void *address = dlsym(library, functions[i].name);

		if (address == NULL) {
			snprintf(text, size, "it has no function %s", functions[i].name);
			return -1;
		}
		*(void **)((char *)&jn_call + functions[i].offset) = address;
	}
	return 0;
}

/* NULL, or a text that says what is wrong. */
JNIEXPORT jstring JNICALL JN_NAME(open)(JNIEnv *env, jclass self, jstring path, jlong version)
{
	const char *name = (*env)->GetStringUTFChars(env, path, NULL);
	char text[512];
	void *library;

	if (name == NULL)
		return NULL;
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	(*env)->ReleaseStringUTFChars(env, path, name);
	if (library == NULL) {
		const char *reason = dlerror();

		return (*env)->NewStringUTF(env, reason != NULL ? reason : "dlopen failed");
	}
	if (check_version(library, (VIP_ULONG)version, text, sizeof(text)) == 0 &&
	    bind_all(library, text, sizeof(text)) == 0)
		return NULL;
	dlclose(library);
	return (*env)->NewStringUTF(env, text);
}
