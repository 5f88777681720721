// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits and tests.  Elements are compared as one of six representations; types that have the same
 * share the code.  The loads acquire: what was ordered before an update is visible when the update is.
 */
#include "api.h"

enum kind { KIND_I16, KIND_U16, KIND_I32, KIND_U32, KIND_I64, KIND_U64 };

#define IS_SIGNED(T) ((T)-1 < (T)1)
#define KIND(T)                                                                                    \
	(sizeof(T) == 2	  ? IS_SIGNED(T) ? KIND_I16 : KIND_U16                                     \
	 : sizeof(T) == 4 ? IS_SIGNED(T) ? KIND_I32 : KIND_U32                                     \
	 : IS_SIGNED(T)	  ? KIND_I64                                                               \
			  : KIND_U64)

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* ---- One comparison -------------------------------------------------------------------------- */

#define COMPARE(a, cmp, b)                                                                         \
	((cmp) == SHMEM_CMP_EQ	 ? (a) == (b)                                                      \
	 : (cmp) == SHMEM_CMP_NE ? (a) != (b)                                                      \
	 : (cmp) == SHMEM_CMP_GT ? (a) > (b)                                                       \
	 : (cmp) == SHMEM_CMP_LE ? (a) <= (b)                                                      \
	 : (cmp) == SHMEM_CMP_LT ? (a) < (b)                                                       \
				 : (a) >= (b))

/*
 * The element at p as it is now, widened: one of a signed type is sign-extended, as the values are to which it is
 * compared. The load acquires.
 */
static ALWAYS_INLINE uint64_t element(enum kind kind, const void *p)
{
	switch (kind) {
	case KIND_I16:
		return (uint64_t)__atomic_load_n((const int16_t *)p, __ATOMIC_ACQUIRE);
	case KIND_U16:
		return __atomic_load_n((const uint16_t *)p, __ATOMIC_ACQUIRE);
	case KIND_I32:
		return (uint64_t)__atomic_load_n((const int32_t *)p, __ATOMIC_ACQUIRE);
	case KIND_U32:
		return __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
	default:
		return __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
	}
}

/* Does «now CMP value» hold? Both are widened as element() does it; a `cmp` that is not known counts as GE. */
static ALWAYS_INLINE bool compares(enum kind kind, uint64_t now, int cmp, uint64_t value)
{
	bool is_signed = kind == KIND_I16 || kind == KIND_I32 || kind == KIND_I64;

	return is_signed ? COMPARE((int64_t)now, cmp, (int64_t)value) : COMPARE(now, cmp, value);
}

/* Does the comparison hold for the variable now? */
static ALWAYS_INLINE bool holds(enum kind kind, const void *ivar, int cmp, uint64_t value)
{
	return compares(kind, element(kind, ivar), cmp, value);
}

/* ---- Several elements ------------------------------------------------------------------------ */

struct elements {
	const char *fn;
	const void *ivars;
	size_t n;
	const int *status; /* may be NULL */
	int cmp;
	uint64_t value;
	const void *values; /* or NULL: all are compared to value */
};

static ALWAYS_INLINE size_t bytes_of(enum kind kind)
{
	return kind <= KIND_U16 ? 2 : kind <= KIND_U32 ? 4 : 8;
}

static ALWAYS_INLINE const void *ivar_at(enum kind kind, const struct elements *s, size_t i)
{
	return (const char *)s->ivars + i * bytes_of(kind);
}

/* Does the status of element i exclude it? */
static ALWAYS_INLINE bool left_out(const struct elements *s, size_t i)
{
	return s->status != NULL && s->status[i] != 0;
}

/* Does the comparison of element i hold now, with a value of its own where there are `values`? Ignores its status. */
static ALWAYS_INLINE bool holds_at(enum kind kind, const struct elements *s, size_t i)
{
	uint64_t value = s->value;

	if (s->values != NULL)
		value = element(kind, (const char *)s->values + i * bytes_of(kind));
	return holds(kind, ivar_at(kind, s, i), s->cmp, value);
}

/* Is every element left out? */
static bool is_empty(const struct elements *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!left_out(s, i))
			return false;
	return true;
}

/*
 * Where a search begins, below n; 0 for n = 0. It is a random place each time, so each element that satisfies its
 * comparison is found first some time, whatever the others do.
 */
static size_t begin(size_t n)
{
	static _Thread_local uint64_t state = 0x9E3779B97F4A7C15u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n <= 1 ? 0 : (size_t)((state >> 32) * (uint64_t)(uint32_t)n >> 32);
}

/* The first element from i to end - 1 that is not left out and whose comparison holds, or SIZE_MAX. */
static ALWAYS_INLINE size_t find_between(enum kind kind, const struct elements *s, size_t i,
					 size_t end)
{
	for (; i < end; i++)
		if (!left_out(s, i) && holds_at(kind, s, i))
			return i;
	return SIZE_MAX;
}

/* An element that is not left out and whose comparison holds, not always the first, or SIZE_MAX; does not wait. */
static ALWAYS_INLINE size_t find_any(enum kind kind, const struct elements *s)
{
	size_t from = begin(s->n);
	size_t found = find_between(kind, s, from, s->n);

	return found != SIZE_MAX ? found : find_between(kind, s, 0, from);
}

/*
 * Puts the indices of the elements that are not left out and whose comparison holds into `indices`, in rising order,
 * and returns how many they are; does not wait.
 */
static ALWAYS_INLINE size_t find_some(enum kind kind, const struct elements *s, size_t *indices)
{
	size_t count = 0;

	for (size_t i = 0; i < s->n; i++)
		if (!left_out(s, i) && holds_at(kind, s, i))
			indices[count++] = i;
	return count;
}

/* ---- Waits and tests, for a representation that is constant where they are inlined ------------ */

/* Waits until the comparison holds for the one variable; `fn` is the routine that a report of the wait names. */
static ALWAYS_INLINE void wait_one(enum kind kind, const char *fn, const void *ivar, int cmp,
				   uint64_t value)
{
	struct osh_wait w = OSH_WAIT(fn, ivar);

	while (!holds(kind, ivar, cmp, value))
		osh_wait(&w);
	osh_wait_end(&w);
}

/*
 * Waits for each element that is not left out, one after the other: each has satisfied its comparison at some time,
 * not all at once. Returns at once where all are left out.
 */
static ALWAYS_INLINE void wait_all(enum kind kind, const struct elements *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct osh_wait w = OSH_WAIT(s->fn, ivar_at(kind, s, i));

		if (left_out(s, i))
			continue;
		while (!holds_at(kind, s, i))
			osh_wait(&w);
		osh_wait_end(&w);
	}
}

/* Waits for one, and returns its index; SIZE_MAX at once where every element is left out. */
static ALWAYS_INLINE size_t wait_any(enum kind kind, const struct elements *s)
{
	struct osh_wait w = OSH_WAIT(s->fn, NULL);
	size_t found = find_any(kind, s);

	if (found != SIZE_MAX || is_empty(s))
		return found;
	while ((found = find_any(kind, s)) == SIZE_MAX)
		osh_wait(&w);
	osh_wait_end(&w);
	return found;
}

/* As find_some(), but waits for at least one; 0 at once where every element is left out. */
static ALWAYS_INLINE size_t wait_some(enum kind kind, const struct elements *s, size_t *indices)
{
	struct osh_wait w = OSH_WAIT(s->fn, NULL);
	size_t count = find_some(kind, s, indices);

	if (count != 0 || is_empty(s))
		return count;
	while ((count = find_some(kind, s, indices)) == 0)
		osh_wait(&w);
	osh_wait_end(&w);
	return count;
}

/* 1: the comparisons of all that are not left out hold, or all are left out; or 0. Does not wait. */
static ALWAYS_INLINE int test_all(enum kind kind, const struct elements *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!left_out(s, i) && !holds_at(kind, s, i))
			return 0;
	return 1;
}

/* ---- The functions of each representation ----------------------------------------------------- */

#define UNUSED __attribute__((unused)) /* which types have 4 bytes, and which 8, is up to the ABI */

#define WAIT_ONE(K, kind)                                                                          \
	static __attribute__((noinline)) void wait_one_##K(const char *fn, const void *ivar,       \
							   int cmp, uint64_t value)                \
	{                                                                                          \
		wait_one(kind, fn, ivar, cmp, value);                                              \
	}

#define WAIT_SEVERAL(K, kind)                                                                      \
	static UNUSED void wait_all_##K(const struct elements *s)                                  \
	{                                                                                          \
		wait_all(kind, s);                                                                 \
	}                                                                                          \
	static UNUSED size_t wait_any_##K(const struct elements *s)                                \
	{                                                                                          \
		return wait_any(kind, s);                                                          \
	}                                                                                          \
	static UNUSED size_t wait_some_##K(const struct elements *s, size_t *indices)              \
	{                                                                                          \
		return wait_some(kind, s, indices);                                                \
	}

#define TEST_SEVERAL(K, kind)                                                                      \
	static UNUSED int test_all_##K(const struct elements *s)                                   \
	{                                                                                          \
		return test_all(kind, s);                                                          \
	}                                                                                          \
	static UNUSED size_t test_any_##K(const struct elements *s)                                \
	{                                                                                          \
		return find_any(kind, s);                                                          \
	}                                                                                          \
	static UNUSED size_t test_some_##K(const struct elements *s, size_t *indices)              \
	{                                                                                          \
		return find_some(kind, s, indices);                                                \
	}

#define FUNCTIONS(K, kind)                                                                         \
	WAIT_ONE(K, kind)                                                                          \
	WAIT_SEVERAL(K, kind)                                                                      \
	TEST_SEVERAL(K, kind)

WAIT_ONE(i16, KIND_I16)
WAIT_ONE(u16, KIND_U16)
FUNCTIONS(i32, KIND_I32)
FUNCTIONS(u32, KIND_U32)
FUNCTIONS(i64, KIND_I64)
FUNCTIONS(u64, KIND_U64)

/* The function of a family for a type of 4 or 8 bytes. */
#define FOR(T, name)                                                                               \
	(sizeof(T) == 4 ? (IS_SIGNED(T) ? name##_i32 : name##_u32)                                 \
			: (IS_SIGNED(T) ? name##_i64 : name##_u64))
#define FOR_SHORT(T, name) (IS_SIGNED(T) ? name##_i16 : name##_u16)

/* ---- The routines ---------------------------------------------------------------------------- */

#define ONE(N, T, wait)                                                                            \
	API(void, shmem_##N##_wait_until, (T * ivar, int cmp, T cmp_value))                        \
	{                                                                                          \
		if (!holds(KIND(T), ivar, cmp, (uint64_t)cmp_value))                               \
			wait("shmem_" #N "_wait_until", ivar, cmp, (uint64_t)cmp_value);           \
	}                                                                                          \
	API(int, shmem_##N##_test, (T * ivar, int cmp, T cmp_value))                               \
	{                                                                                          \
		return holds(KIND(T), ivar, cmp, (uint64_t)cmp_value);                             \
	}

/* A routine on several elements; the body finds them in `s`. */
#define SEVERAL(result, suffix, params, one_value, more_values, ...)                               \
	API(result, shmem_##suffix, (API_LIST params))                                             \
	{                                                                                          \
		struct elements s = { "shmem_" #suffix, ivars,	    nelems, status, cmp,           \
				      one_value,	more_values };                             \
		__VA_ARGS__                                                                        \
	}

#define FORMS(N, T, vector, value_param, one_value, more_values)                                   \
	SEVERAL(void, N##_wait_until_all##vector,                                                  \
		(T * ivars, size_t nelems, const int *status, int cmp, value_param), one_value,    \
		more_values, FOR(T, wait_all)(&s);)                                                \
	SEVERAL(size_t, N##_wait_until_any##vector,                                                \
		(T * ivars, size_t nelems, const int *status, int cmp, value_param), one_value,    \
		more_values, return FOR(T, wait_any)(&s);)                                         \
	SEVERAL(size_t, N##_wait_until_some##vector,                                               \
		(T * ivars, size_t nelems, size_t * indices, const int *status, int cmp,           \
		 value_param),                                                                     \
		one_value, more_values, return FOR(T, wait_some)(&s, indices);)                    \
	SEVERAL(int, N##_test_all##vector,                                                         \
		(T * ivars, size_t nelems, const int *status, int cmp, value_param), one_value,    \
		more_values, return FOR(T, test_all)(&s);)                                         \
	SEVERAL(size_t, N##_test_any##vector,                                                      \
		(T * ivars, size_t nelems, const int *status, int cmp, value_param), one_value,    \
		more_values, return FOR(T, test_any)(&s);)                                         \
	SEVERAL(size_t, N##_test_some##vector,                                                     \
		(T * ivars, size_t nelems, size_t * indices, const int *status, int cmp,           \
		 value_param),                                                                     \
		one_value, more_values, return FOR(T, test_some)(&s, indices);)

#define TYPED(N, T)                                                                                \
	ONE(N, T, FOR(T, wait_one))                                                                \
	FORMS(N, T, , T cmp_value, (uint64_t)cmp_value, NULL)                                      \
	FORMS(N, T, _vector, const T *cmp_values, 0, cmp_values)

API_AMO_TYPES(TYPED)
ONE(short, short, FOR_SHORT(short, wait_one))
ONE(ushort, unsigned short, FOR_SHORT(unsigned short, wait_one))

API(uint64_t, shmem_signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value))
{
	uint64_t now = __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
	struct osh_wait w = OSH_WAIT("shmem_signal_wait_until", sig_addr);

	if (COMPARE(now, cmp, cmp_value))
		return now;
	do {
		osh_wait(&w);
		now = __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
	} while (!COMPARE(now, cmp, cmp_value));
	osh_wait_end(&w);
	return now;
}

/* ---- Deprecated ------------------------------------------------------------------------------ */

#define OLD(N, T, wait)                                                                            \
	API(void, shmem_##N##_wait, (T * ivar, T cmp_value))                                       \
	{                                                                                          \
		wait("shmem_" #N "_wait", ivar, SHMEM_CMP_NE, (uint64_t)cmp_value);                \
	}

OLD(short, short, wait_one_i16)
OLD(int, int, wait_one_i32)
OLD(long, long, FOR(long, wait_one))
OLD(longlong, long long, wait_one_i64)

API(void, shmem_wait, (long *ivar, long cmp_value))
{
	FOR(long, wait_one)("shmem_wait", ivar, SHMEM_CMP_NE, (uint64_t)cmp_value);
}

API(void, shmem_wait_until, (long *ivar, int cmp, long cmp_value))
{
	FOR(long, wait_one)("shmem_wait_until", ivar, cmp, (uint64_t)cmp_value);
}
