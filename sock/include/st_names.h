/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * st_names.h - the names by which libvistream.so exports the functions of st_stream.h
 *
 * libvisock.so is preloaded into programs of any kind, and calls that library.  A program that has functions of
 * the names used in the source, as some have that keep a symbol table, would take the calls over.
 */
#ifndef ST_NAMES_H
#define ST_NAMES_H

#define st_arm vistream_arm
#define st_changes vistream_changes
#define st_close vistream_close
#define st_context vistream_context
#define st_create vistream_create
#define st_deliver vistream_deliver
#define st_demote vistream_demote
#define st_fini vistream_fini
#define st_flush vistream_flush
#define st_foreign vistream_foreign
#define st_fork_child vistream_fork_child
#define st_get vistream_get
#define st_get_linger vistream_get_linger
#define st_give_way vistream_give_way
#define st_init vistream_init
#define st_kernel_events vistream_kernel_events
#define st_linger vistream_linger
#define st_on_tcp vistream_on_tcp
#define st_on_vi vistream_on_vi
#define st_pollers_on vistream_pollers_on
#define st_promote vistream_promote
#define st_put vistream_put
#define st_readable_bytes vistream_readable_bytes
#define st_ready vistream_ready
#define st_recv vistream_recv
#define st_send vistream_send
#define st_set_context vistream_set_context
#define st_set_fd vistream_set_fd
#define st_set_linger vistream_set_linger
#define st_settle vistream_settle
#define st_shutdown vistream_shutdown
#define st_sleep vistream_sleep
#define st_sleep_begin vistream_sleep_begin
#define st_sleep_end vistream_sleep_end
#define st_sleep_for vistream_sleep_for
#define st_stats vistream_stats
#define st_take_error vistream_take_error
#define st_unsent_bytes vistream_unsent_bytes
#define st_version vistream_version
#define st_wait_arm vistream_wait_arm
#define st_wait_create vistream_wait_create
#define st_wait_destroy vistream_wait_destroy
#define st_wait_fd vistream_wait_fd
#define st_wait_of vistream_wait_of
#define st_wait_take vistream_wait_take
#define st_wake vistream_wake
#define st_waker_clear vistream_waker_clear
#define st_waker_fd vistream_waker_fd
#define st_waker_get vistream_waker_get
#define st_waker_put vistream_waker_put
#define st_waker_valid vistream_waker_valid
#define st_waker_want vistream_waker_want
#define st_watch_drop vistream_watch_drop
#define st_watch_give vistream_watch_give
#define st_watch_take vistream_watch_take
#define st_watch_valid vistream_watch_valid
#define st_why vistream_why
#define st_why_text vistream_why_text
#define st_writable_bytes vistream_writable_bytes

#endif
