/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * <stdatomic.h> for the tests, which are C++17 and include the project's C
 * headers: there `_Atomic` is a qualifier that C++ does not have.
 *
 * Here it expands to nothing, which leaves size and layout as they are, and the
 * generic functions become templates over the compiler's atomic built-ins.  All
 * accesses to such fields must therefore use these functions, never plain C++.
 * C files of the tests find the compiler's own header through this one.
 */
#ifndef TESTS_CXX_STDATOMIC_H
#define TESTS_CXX_STDATOMIC_H

#ifndef __cplusplus
#include_next <stdatomic.h>
#else

/* Tests include C headers within extern "C". */
extern "C++" {

#include <atomic>
#include <type_traits>

#define _Atomic

using std::atomic_signal_fence;
using std::atomic_thread_fence;
using std::memory_order;
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_consume;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

#define kill_dependency(v) (v)
#define atomic_is_lock_free(p) __atomic_always_lock_free(sizeof(*(p)), nullptr)

namespace c_atomic {

/* Scalars only, so that std::atomic keeps its own functions. */
template <typename T>
using Scalar = std::enable_if_t<std::is_scalar<T>::value, std::remove_const_t<T>>;

/* The type of the operand of an addition: a number, even if T is a pointer. */
template <typename T> using Step = std::conditional_t<std::is_pointer<T>::value, std::ptrdiff_t, T>;

template <typename T> struct Same {
	using type = T;
};
template <typename T> using Exactly = typename Same<T>::type;

/* Pointer arithmetic of the built-ins counts bytes, that of C counts elements. */
template <typename T> std::ptrdiff_t scale()
{
	if constexpr (std::is_pointer<T>::value)
		return sizeof(std::remove_pointer_t<T>);
	else
		return 1;
}

} // namespace c_atomic

template <typename T> c_atomic::Scalar<T> atomic_load_explicit(T *p, std::memory_order order)
{
	return __atomic_load_n(p, (int)order);
}

template <typename T> c_atomic::Scalar<T> atomic_load(T *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

template <typename T, typename = c_atomic::Scalar<T>>
void atomic_store_explicit(T *p, c_atomic::Exactly<T> v, std::memory_order order)
{
	__atomic_store_n(p, v, (int)order);
}

template <typename T, typename = c_atomic::Scalar<T>>
void atomic_store(T *p, c_atomic::Exactly<T> v)
{
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);
}

template <typename T, typename = c_atomic::Scalar<T>> void atomic_init(T *p, c_atomic::Exactly<T> v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

template <typename T>
c_atomic::Scalar<T> atomic_exchange_explicit(T *p, c_atomic::Exactly<T> v, std::memory_order order)
{
	return __atomic_exchange_n(p, v, (int)order);
}

template <typename T> c_atomic::Scalar<T> atomic_exchange(T *p, c_atomic::Exactly<T> v)
{
	return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
}

#define C_ATOMIC_COMPARE_EXCHANGE(name, weak)                                                      \
	template <typename T, typename = c_atomic::Scalar<T>>                                      \
	bool name##_explicit(T *p, c_atomic::Exactly<T> *seen, c_atomic::Exactly<T> v,             \
			     std::memory_order won, std::memory_order lost)                        \
	{                                                                                          \
		return __atomic_compare_exchange_n(p, seen, v, weak, (int)won, (int)lost);         \
	}                                                                                          \
	template <typename T, typename = c_atomic::Scalar<T>>                                      \
	bool name(T *p, c_atomic::Exactly<T> *seen, c_atomic::Exactly<T> v)                        \
	{                                                                                          \
		return __atomic_compare_exchange_n(p, seen, v, weak, __ATOMIC_SEQ_CST,             \
						   __ATOMIC_SEQ_CST);                              \
	}
C_ATOMIC_COMPARE_EXCHANGE(atomic_compare_exchange_strong, false)
C_ATOMIC_COMPARE_EXCHANGE(atomic_compare_exchange_weak, true)
#undef C_ATOMIC_COMPARE_EXCHANGE

#define C_ATOMIC_FETCH(name)                                                                       \
	template <typename T>                                                                      \
	c_atomic::Scalar<T> atomic_##name##_explicit(T *p, c_atomic::Step<T> v,                    \
						     std::memory_order order)                      \
	{                                                                                          \
		return __atomic_##name(p, v * c_atomic::scale<T>(), (int)order);                   \
	}                                                                                          \
	template <typename T> c_atomic::Scalar<T> atomic_##name(T *p, c_atomic::Step<T> v)         \
	{                                                                                          \
		return __atomic_##name(p, v * c_atomic::scale<T>(), __ATOMIC_SEQ_CST);             \
	}
C_ATOMIC_FETCH(fetch_add)
C_ATOMIC_FETCH(fetch_sub)
C_ATOMIC_FETCH(fetch_or)
C_ATOMIC_FETCH(fetch_and)
C_ATOMIC_FETCH(fetch_xor)
#undef C_ATOMIC_FETCH

} // extern "C++"

#endif
#endif
