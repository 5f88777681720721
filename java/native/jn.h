/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jn.h - the functions that Java calls by the Java Native Interface
 *
 * Arguments are numbers: addresses and handles are jlong.  Java checks those that it can; the library checks
 * all as it does for any caller.  libvipl is opened at run time and its functions are called
 * through a table, so that a missing or wrong library is an error that Java can report.
 */
#ifndef JN_H
#define JN_H

#include <jni.h>
#include <stdint.h>
#include <vipl.h>
#include <vipl_ext.h>

#define JN_NAME(method) Java_org_viaduct_vipl_spi_JniCalls_##method

/* Every function of the library. */
#define JN_FUNCTIONS(X)                                                                            \
	X(VipOpenNic)                                                                              \
	X(VipCloseNic)                                                                             \
	X(VipQueryNic)                                                                             \
	X(VipCreateVi)                                                                             \
	X(VipDestroyVi)                                                                            \
	X(VipSetViAttributes)                                                                      \
	X(VipQueryVi)                                                                              \
	X(VipConnectWait)                                                                          \
	X(VipConnectAccept)                                                                        \
	X(VipConnectReject)                                                                        \
	X(VipConnectRequest)                                                                       \
	X(VipDisconnect)                                                                           \
	X(VipConnectPeerRequest)                                                                   \
	X(VipConnectPeerDone)                                                                      \
	X(VipConnectPeerWait)                                                                      \
	X(VipPostSend)                                                                             \
	X(VipPostRecv)                                                                             \
	X(VipSendDone)                                                                             \
	X(VipRecvDone)                                                                             \
	X(VipSendWait)                                                                             \
	X(VipRecvWait)                                                                             \
	X(VipSendNotify)                                                                           \
	X(VipRecvNotify)                                                                           \
	X(VipCreateCQ)                                                                             \
	X(VipResizeCQ)                                                                             \
	X(VipDestroyCQ)                                                                            \
	X(VipCQDone)                                                                               \
	X(VipCQWait)                                                                               \
	X(VipCQNotify)                                                                             \
	X(VipCreatePtag)                                                                           \
	X(VipDestroyPtag)                                                                          \
	X(VipRegisterMem)                                                                          \
	X(VipDeregisterMem)                                                                        \
	X(VipSetMemAttributes)                                                                     \
	X(VipQueryMem)                                                                             \
	X(VipErrorCallback)                                                                        \
	X(VipQuerySystemManagementInfo)                                                            \
	X(VipNSInit)                                                                               \
	X(VipNSGetHostByName)                                                                      \
	X(VipNSGetHostByAddr)                                                                      \
	X(VipNSShutdown)                                                                           \
	X(VipxAllocMem)                                                                            \
	X(VipxFreeMem)                                                                             \
	X(VipxAdoptMem)                                                                            \
	X(VipxMapRemote)                                                                           \
	X(VipxUnmapRemote)                                                                         \
	X(VipxFlush)                                                                               \
	X(VipxPostSends)                                                                           \
	X(VipxPostRecvs)                                                                           \
	X(VipxSendsDone)                                                                           \
	X(VipxRecvsDone)                                                                           \
	X(VipxSetViContext)                                                                        \
	X(VipxCQTake)                                                                              \
	X(VipxCQFd)                                                                                \
	X(VipxCQArm)                                                                               \
	X(VipxProgress)                                                                            \
	X(VipxSetAffinity)                                                                         \
	X(VipxQueryPlacement)                                                                      \
	X(VipxPlaceThread)                                                                         \
	X(VipxErrorString)                                                                         \
	X(VipxStatusString)                                                                        \
	X(VipxQueryRoute)                                                                          \
	X(VipxQueryCounters)                                                                       \
	X(VipxQueryVersion)

#define JN_MEMBER(name) __typeof__(name) *name;

struct jn_calls {
	JN_FUNCTIONS(JN_MEMBER)
};

/* Filled by open(), before any other call. */
extern struct jn_calls jn_call;

static inline void *jn_ptr(jlong address)
{
	return (void *)(uintptr_t)address;
}

/* Looks up the class whose methods handlers call. 0, or -1 with a Java exception pending. */
int jn_handlers_init(JavaVM *vm, JNIEnv *env);

#endif
