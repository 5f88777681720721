/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of a selector. Its descriptors are added to the epoll set of the JDK's selector, which takes no notice of
 * events of descriptors that it does not know, but returns from its sleep.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "jnio.h"

#define TAKEN 16

/* As in NioCalls. */
#define SLEEP_NOT 0   /* there is something to look at again */
#define SLEEP_SHORT 1 /* nothing, but no other thread can wake this one */
#define SLEEP_LONG 2  /* nothing */

static int add_fd(struct jnio_set *set, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || epoll_ctl(set->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0 || errno == EEXIST)
		return 0;
	return -errno;
}

static void remove_fd(struct jnio_set *set, int fd)
{
	struct epoll_event e = { .events = 0 };

	if (fd >= 0)
		epoll_ctl(set->epoll_fd, EPOLL_CTL_DEL, fd, &e);
}

/* A number of the calling thread, which no other one has had. */
static uint64_t thread_number(void)
{
	static _Atomic uint64_t last;
	static __thread uint64_t number;

	if (number == 0)
		number = atomic_fetch_add(&last, 1) + 1;
	return number;
}

static void drop_thread(struct jnio_set *set)
{
	if (set->own_fd < 0)
		return;
	remove_fd(set, set->own_fd);
	close(set->own_fd);
	set->own_fd = -1;
}

/*
 * An event that wakes this thread also wakes the epoll set, by a copy of the thread's descriptor: the thread may end,
 * and its descriptor's number be that of another file, before the next one selects. False: no descriptor is left.
 */
static bool hold_thread(struct jnio_set *set, int fd)
{
	if (set->own_fd >= 0 && set->thread == thread_number())
		return true;
	drop_thread(set);
	set->own_fd = fcntl(fd, F_DUPFD_CLOEXEC, fd);
	if (set->own_fd >= 0 && add_fd(set, set->own_fd) != 0)
		drop_thread(set);
	set->thread = thread_number();
	return set->own_fd >= 0;
}

void jnio_set_get(struct jnio_set *set)
{
	atomic_fetch_add(&set->refs, 1);
}

void jnio_set_put(struct jnio_set *set)
{
	if (atomic_fetch_sub(&set->refs, 1) != 1)
		return;
	st_wait_destroy(set->wait);
	free(set->slots);
	free(set);
}

struct st_wait *jnio_wait_for(struct jnio_stream *t)
{
	struct jnio_set *set = atomic_load(&t->set);

	return set ? set->wait : NULL;
}

/* 0: no memory, or no descriptor is left. */
JNIEXPORT jlong JNICALL JNIO_NAME(setOpen)(JNIEnv *env, jclass self, jint epollFd)
{
	struct jnio_set *set = calloc(1, sizeof(*set));

	if (!set)
		return 0;
	atomic_store(&set->refs, 1);
	set->epoll_fd = epollFd;
	set->own_fd = -1;
	if (st_wait_create(&set->wait) != 0) {
		free(set);
		return 0;
	}
	if (add_fd(set, st_wait_fd(set->wait)) != 0) {
		jnio_set_put(set);
		return 0;
	}
	return (jlong)(uintptr_t)set;
}

/* The epoll set is not closed yet. */
JNIEXPORT void JNICALL JNIO_NAME(setClose)(JNIEnv *env, jclass self, jlong handle)
{
	struct jnio_set *set = jnio_ptr(handle);

	drop_thread(set);
	remove_fd(set, st_wait_fd(set->wait));
	jnio_set_put(set);
}

/* The slot, or -1: no memory. */
JNIEXPORT jint JNICALL JNIO_NAME(setAdd)(JNIEnv *env, jclass self, jlong handle, jlong stream)
{
	struct jnio_set *set = jnio_ptr(handle), *none = NULL;
	struct jnio_stream *t = jnio_ptr(stream);
	struct jnio_slot *more;
	int i = 0;

	while (i < set->count && set->slots[i].t)
		i++;
	if (i == set->size) {
		more = realloc(set->slots, (size_t)(2 * i + 8) * sizeof(*more));
		if (!more)
			return -1;
		set->slots = more;
		set->size = 2 * i + 8;
	}
	set->slots[i] = (struct jnio_slot){ .t = t };
	if (i == set->count)
		set->count++;
	jnio_set_get(set);
	if (!atomic_compare_exchange_strong(&t->set, &none, set))
		jnio_set_put(set);
	return i;
}

JNIEXPORT void JNICALL JNIO_NAME(setRemove)(JNIEnv *env, jclass self, jlong handle, jint slot)
{
	struct jnio_set *set = jnio_ptr(handle);
	struct st_wait *w = set->slots[slot].wait;
	bool used = w == set->wait;

	set->slots[slot] = (struct jnio_slot){ .t = NULL };
	for (int i = 0; i < set->count; i++)
		used |= set->slots[i].wait == w;
	if (w && !used)
		remove_fd(set, st_wait_fd(w));
	while (set->count > 0 && !set->slots[set->count - 1].t)
		set->count--;
}

JNIEXPORT void JNICALL JNIO_NAME(setInterest)(JNIEnv *env, jclass self, jlong handle, jint slot,
					      jint events)
{
	struct jnio_set *set = jnio_ptr(handle);

	set->slots[slot].interest = (unsigned)events & (ST_IN | ST_OUT);
	set->slots[slot].quiet = 0;
}

/*
 * A stream that has not been asked to move, and had only events of the kernel when the count of changes was `changes`,
 * has none of its own now.
 */
static bool is_quiet(const struct jnio_slot *slot, uint64_t changes)
{
	return slot->quiet == changes + 1 && !atomic_load(&slot->t->asked);
}

/* Adds to the epoll set the descriptor of the wait object that the stream has since it was promoted. */
static void follow_wait(struct jnio_set *set, struct jnio_slot *slot)
{
	struct st_wait *w = st_wait_of(slot->t->s);

	if (w && w != slot->wait && (w == set->wait || add_fd(set, st_wait_fd(w)) == 0))
		slot->wait = w;
}

/* The news of a slot for Java: its events, and in the upper half those to ask the kernel for; or 0. */
static jint news_of(struct jnio_set *set, struct jnio_slot *slot, uint64_t changes)
{
	struct st_ready r;
	unsigned kernel, found;
	bool asked;

	if (!slot->t || is_quiet(slot, changes))
		return 0;
	asked = atomic_load(&slot->t->asked);
	if (slot->interest == 0) {
		kernel = 0;
		found = 0;
	} else {
		st_ready(slot->t->s, &r);
		follow_wait(set, slot);
		found = r.events & (slot->interest | ST_ERR | ST_HUP);
		kernel = r.kernel & slot->interest;
	}
	slot->quiet = found == 0 && !asked ? changes + 1 : 0;
	if (found == 0 && kernel == slot->kernel)
		return 0;
	slot->kernel = kernel;
	return (jint)(found | (kernel << 16) | 0x8000);
}

static int look(struct jnio_set *set, jint *out, int most)
{
	uint64_t changes = st_changes();
	int found = 0, at = set->next < set->count ? set->next : 0;

	for (int i = 0; i < set->count && found < most;
	     i++, at = at + 1 < set->count ? at + 1 : 0) {
		jint news = news_of(set, &set->slots[at], changes);

		if (news != 0) {
			out[2 * found] = at;
			out[2 * found + 1] = news;
			found++;
		}
	}
	if (set->count > 0)
		set->next = (set->next + 1) % set->count;
	return found;
}

static bool any_on_vi(struct jnio_set *set)
{
	uint64_t changes = st_changes();

	for (int i = 0; i < set->count; i++) {
		struct jnio_slot *slot = &set->slots[i];

		if (slot->t && slot->interest && !is_quiet(slot, changes) && st_on_vi(slot->t->s))
			return true;
	}
	return false;
}

#define NEWS_MOST 64

/*
 * Looks at all streams. With `spin` it looks for some microseconds if any of them is on a VI. Pairs of slot and
 * news are written to `out`; gives their count. NEWS_MOST: there may be more.
 */
JNIEXPORT jint JNICALL JNIO_NAME(setLook)(JNIEnv *env, jclass self, jlong handle, jintArray out,
					  jboolean spin)
{
	struct jnio_set *set = jnio_ptr(handle);
	jint pairs[2 * NEWS_MOST];
	int n = look(set, pairs, NEWS_MOST);

	if (n == 0 && spin && jnio_spin_us > 0 && any_on_vi(set)) {
		uint64_t end = jnio_now_ns() + jnio_spin_us * UINT64_C(1000);

		do {
			for (int i = 0; n == 0 && i < 8; i++)
				n = look(set, pairs, NEWS_MOST);
		} while (n == 0 && jnio_now_ns() < end && st_give_way());
	}
	if (n > 0)
		(*env)->SetIntArrayRegion(env, out, 0, 2 * n, pairs);
	return n;
}

static bool arm_all(struct jnio_set *set)
{
	uint64_t changes = st_changes();

	for (int i = 0; i < set->count; i++) {
		struct jnio_slot *slot = &set->slots[i];

		if (!slot->t || slot->interest == 0 || is_quiet(slot, changes))
			continue;
		if (st_arm(slot->t->s, slot->interest) != 0)
			return false;
		follow_wait(set, slot);
		if (st_kernel_events(slot->t->s, slot->interest) != slot->kernel)
			return false;
	}
	if (st_wait_arm(set->wait))
		return false;
	for (int i = 0; i < set->count; i++) {
		if (set->slots[i].wait && set->slots[i].wait != set->wait &&
		    st_wait_arm(set->slots[i].wait))
			return false;
	}
	return true;
}

/*
 * True: every change of a stream of the set is told by the set's wait object. The stream has that object, or gets it
 * when it is asked to move; before that only events change that the kernel tells of.
 */
static bool has_all_waits(struct jnio_set *set)
{
	for (int i = 0; i < set->count; i++) {
		struct jnio_stream *t = set->slots[i].t;

		if (!t || set->slots[i].interest == 0)
			continue;
		/* A thread that asks sets t->asked before it reads t->set. */
		if ((atomic_load(&t->set) != set || atomic_load(&t->asked)) &&
		    st_wait_of(t->s) != set->wait)
			return false;
	}
	return true;
}

/* True: changes by another thread wake this one, until st_sleep_end(). */
static bool register_thread(struct jnio_set *set)
{
	int fd = st_sleep_begin(NULL, has_all_waits(set) ? set->wait : NULL);

	if (fd < 0)
		return false;
	if (hold_thread(set, fd))
		return true;
	st_sleep_end();
	return false;
}

/*
 * Before a sleep in the JDK's selector: how long it may be. A thread that may run on another thread of the system when
 * it calls setAwake() is not to be `registered`, and no thread can be where no descriptor is left: these sleep for
 * short times, and then look.
 */
JNIEXPORT jint JNICALL JNIO_NAME(setSleep)(JNIEnv *env, jclass self, jlong handle,
					   jboolean registered)
{
	struct jnio_set *set = jnio_ptr(handle);

	set->registered = registered && register_thread(set);
	if (!set->registered)
		drop_thread(set);
	if (!arm_all(set))
		return SLEEP_NOT;
	return set->registered ? SLEEP_LONG : SLEEP_SHORT;
}

static void take_entries(struct st_wait *w)
{
	struct st_stream *taken[TAKEN];
	int n;

	do {
		n = st_wait_take(w, taken, TAKEN);
		for (int i = 0; i < n; i++)
			st_put(taken[i]);
	} while (n == TAKEN);
}

JNIEXPORT void JNICALL JNIO_NAME(setAwake)(JNIEnv *env, jclass self, jlong handle)
{
	struct jnio_set *set = jnio_ptr(handle);
	uint64_t value;

	if (set->registered) {
		set->registered = false;
		st_sleep_end();
		/* Clears the event that woke this thread, and that would end the next sleep at once. */
		if (read(set->own_fd, &value, sizeof(value)) < 0)
			value = 0;
	}
	take_entries(set->wait);
	for (int i = 0; i < set->count; i++) {
		if (set->slots[i].wait && set->slots[i].wait != set->wait)
			take_entries(set->slots[i].wait);
	}
}
