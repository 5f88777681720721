// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Limits: what each user may hold at a time, how fast a client may ring, how many interrupts of a peer are served.
 *
 * A rate is held by the time at which the next event is due, if the events came evenly.  A burst lets that time lie
 * in the past, but not further than the burst would have taken.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "viaduct.h"

#define BURST_PART 50 /* of a second: as many may come at once */
#define MESSAGE_PART 4
#define LINK_RATE 50
#define LINK_BURST 20
#define TOLD_PART 4		      /* of a processor: as much may go into telling interrupts */
#define TOLD_MOST (5 * NSEC_PER_MSEC) /* of one interrupt: a processor may have been taken away */

/* So an interrupt of a quiet port never waits: a burst covers the most that one is charged. */
static_assert(TOLD_PART * TOLD_MOST <= NSEC_PER_SEC / BURST_PART);

static unsigned int max_user_slices = 4096;
module_param(max_user_slices, uint, 0644);
MODULE_PARM_DESC(max_user_slices, "slices of all ports that a user may have at a time");

static unsigned long max_user_bytes = ULONG_MAX;
module_param(max_user_bytes, ulong, 0644);
MODULE_PARM_DESC(max_user_bytes, "bytes of inbound slices of all ports that a user may have");

static unsigned int max_user_clients = 4096;
module_param(max_user_clients, uint, 0644);
MODULE_PARM_DESC(max_user_clients, "client descriptors of all ports that a user may have made");

static unsigned int max_user_irqs = 1024;
module_param(max_user_irqs, uint, 0644);
MODULE_PARM_DESC(max_user_irqs, "interrupt objects that a user may have made");

static unsigned int ring_rate = 100000;
module_param(ring_rate, uint, 0644);
MODULE_PARM_DESC(ring_rate, "bits that a client may ring in a second; 0: no limit");

static unsigned int interrupt_rate = 50000;
module_param(interrupt_rate, uint, 0644);
MODULE_PARM_DESC(interrupt_rate,
		 "doorbell interrupts of a port to be served in a second; 0: no limit");

static unsigned int message_rate = 2000;
module_param(message_rate, uint, 0644);
MODULE_PARM_DESC(message_rate, "messages of a port to be read in a second; 0: no limit");

struct vd_user {
	struct list_head node;
	kuid_t uid;
	unsigned int refs;
	unsigned int slices;
	unsigned int clients;
	unsigned int irqs;
	u64 bytes;
};

static LIST_HEAD(users);
static DEFINE_SPINLOCK(users_lock);

static struct vd_user *find_user_locked(kuid_t uid)
{
	struct vd_user *user;

	list_for_each_entry(user, &users, node) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

struct vd_user *vd_user_get(kuid_t uid)
{
	struct vd_user *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL);
	struct vd_user *user;

	if (!fresh)
		return NULL;
	spin_lock(&users_lock);
	user = find_user_locked(uid);
	if (!user) {
		user = fresh;
		fresh = NULL;
		user->uid = uid;
		list_add(&user->node, &users);
	}
	user->refs++;
	spin_unlock(&users_lock);
	kfree(fresh);
	return user;
}

void vd_user_put(struct vd_user *user)
{
	spin_lock(&users_lock);
	if (--user->refs)
		user = NULL;
	else
		list_del(&user->node);
	spin_unlock(&users_lock);
	kfree(user);
}

/* The charge holds the user. */
int vd_user_charge_slice(struct vd_user *user, u64 bytes)
{
	u64 most = READ_ONCE(max_user_bytes);
	int rc = 0;

	spin_lock(&users_lock);
	if (user->slices >= READ_ONCE(max_user_slices) || user->bytes > most ||
	    bytes > most - user->bytes) {
		rc = -EDQUOT;
	} else {
		user->slices++;
		user->bytes += bytes;
		user->refs++;
	}
	spin_unlock(&users_lock);
	return rc;
}

void vd_user_uncharge_slice(struct vd_user *user, u64 bytes)
{
	spin_lock(&users_lock);
	user->slices--;
	user->bytes -= bytes;
	spin_unlock(&users_lock);
	vd_user_put(user);
}

static int charge_one(struct vd_user *user, unsigned int *count, unsigned int most)
{
	int rc = 0;

	spin_lock(&users_lock);
	if (*count >= most) {
		rc = -EDQUOT;
	} else {
		++*count;
		user->refs++;
	}
	spin_unlock(&users_lock);
	return rc;
}

static void uncharge_one(struct vd_user *user, unsigned int *count)
{
	spin_lock(&users_lock);
	--*count;
	spin_unlock(&users_lock);
	vd_user_put(user);
}

int vd_user_charge_client(struct vd_user *user)
{
	return charge_one(user, &user->clients, READ_ONCE(max_user_clients));
}

void vd_user_uncharge_client(struct vd_user *user)
{
	uncharge_one(user, &user->clients);
}

int vd_user_charge_irq(struct vd_user *user)
{
	return charge_one(user, &user->irqs, READ_ONCE(max_user_irqs));
}

void vd_user_uncharge_irq(struct vd_user *user)
{
	uncharge_one(user, &user->irqs);
}

/* The nanoseconds after which count events are due. */
static u64 time_left(struct vd_rate *rate, unsigned int per_second, unsigned int burst,
		     unsigned int count)
{
	u64 now = ktime_get_ns();
	u64 each = max_t(u64, NSEC_PER_SEC / per_second, 1);
	u64 back = max(burst, count) * each;

	rate->due = max(rate->due, now > back ? now - back : 0);
	return rate->due + count * each > now ? rate->due + count * each - now : 0;
}

static void charge(struct vd_rate *rate, unsigned int per_second, unsigned int count)
{
	rate->due += count * max_t(u64, NSEC_PER_SEC / per_second, 1);
}

/* Takes count events, or returns the nanoseconds after which it can be tried again. */
static u64 rate_take(struct vd_rate *rate, unsigned int per_second, unsigned int burst,
		     unsigned int count)
{
	u64 left;

	if (!per_second)
		return 0;
	left = time_left(rate, per_second, burst, count);
	if (!left)
		charge(rate, per_second, count);
	return left;
}

/*
 * A client that rings too fast waits; a ring that failed instead would be a peer that sleeps on, unless each caller
 * tries again.  A descriptor with O_NONBLOCK is for callers that do.
 */
int vd_limit_ring(struct vd_file *vf, bool wait, unsigned int count)
{
	unsigned int rate;
	ktime_t expires;
	u64 left;

	for (;;) {
		rate = READ_ONCE(ring_rate);
		spin_lock(&vf->rate_lock);
		left = rate_take(&vf->rate, rate, rate / BURST_PART, count);
		spin_unlock(&vf->rate_lock);
		if (!left)
			return 0;
		if (!wait)
			return -EAGAIN;
		expires = ns_to_ktime(left);
		set_current_state(TASK_INTERRUPTIBLE);
		schedule_hrtimeout_range(&expires, NSEC_PER_USEC, HRTIMER_MODE_REL);
		if (signal_pending(current))
			return -ERESTARTSYS;
	}
}

/* May the message registers be read now? */
bool vd_limit_message(struct vd_rate *taken)
{
	unsigned int rate = READ_ONCE(message_rate);

	return rate_take(taken, rate, rate / MESSAGE_PART, 1) == 0;
}

/* Are these bits to be told later?  Masks do nothing on some adapters, so bits that come in spite of one are kept. */
static bool hold(struct vd_port *port, u64 bits)
{
	unsigned int rate = READ_ONCE(interrupt_rate);
	struct vd_storm *storm = &port->storm;
	unsigned long flags;
	bool held;
	u64 left;

	spin_lock_irqsave(&storm->lock, flags);
	left = storm->paused ? 0 : rate_take(&storm->rate, rate, rate / BURST_PART, 1);
	if (left) {
		storm->paused = true;
		charge(&storm->rate, rate, 1); /* the one after the pause */
		ntb_db_set_mask(port->ntb, port->db_bits);
		queue_delayed_work(system_highpri_wq, &storm->work, nsecs_to_jiffies(left) + 1);
	}
	held = storm->paused;
	if (held)
		storm->bits |= bits;
	spin_unlock_irqrestore(&storm->lock, flags);
	return held;
}

static u64 collect(struct vd_port *port)
{
	u64 bits = ntb_db_read(port->ntb) & port->db_bits;

	if (bits)
		ntb_db_clear(port->ntb, bits);
	return bits;
}

/*
 * Each binding, and each thread that sleeps on an interrupt object, makes this longer.  The time that it takes is
 * charged like interrupts, so those that take long are as rare as it needs.
 */
static void tell(struct vd_port *port, u64 bits)
{
	unsigned int rate = READ_ONCE(interrupt_rate);
	u64 start = ktime_get_ns(), cost;
	unsigned long flags;

	vd_event_doorbell(port, bits);
	cost = min_t(u64, ktime_get_ns() - start, TOLD_MOST) * TOLD_PART;
	if (!rate || cost <= NSEC_PER_SEC / rate)
		return;
	spin_lock_irqsave(&port->storm.lock, flags);
	port->storm.rate.due += cost - NSEC_PER_SEC / rate;
	spin_unlock_irqrestore(&port->storm.lock, flags);
}

/* In interrupts. */
void vd_limit_doorbell(struct vd_port *port)
{
	u64 bits = collect(port);

	if (bits && !hold(port, bits))
		tell(port, bits);
}

/* After the pause: bits rung during it are told once.  A bit that an adapter has kept while masked is read. */
static void storm_work(struct work_struct *work)
{
	struct vd_port *port = container_of(to_delayed_work(work), struct vd_port, storm.work);
	struct vd_storm *storm = &port->storm;
	u64 bits;

	down_read(&port->lock);
	if (port->ntb) {
		spin_lock_irq(&storm->lock);
		storm->paused = false;
		bits = storm->bits;
		storm->bits = 0;
		ntb_db_clear_mask(port->ntb, port->db_bits);
		spin_unlock_irq(&storm->lock);
		bits |= collect(port);
		if (bits)
			tell(port, bits);
	}
	up_read(&port->lock);
}

void vd_limit_init(struct vd_port *port)
{
	spin_lock_init(&port->storm.lock);
	INIT_DELAYED_WORK(&port->storm.work, storm_work);
}

/* When the next change of the link is handled, in jiffies: at once, or later when a peer makes many of them. */
unsigned long vd_limit_link(struct vd_port *port)
{
	unsigned long flags;
	u64 left;

	spin_lock_irqsave(&port->storm.lock, flags);
	left = time_left(&port->storm.link_rate, LINK_RATE, LINK_BURST, 1);
	spin_unlock_irqrestore(&port->storm.lock, flags);
	return left ? nsecs_to_jiffies(left) + 1 : 0;
}

/*
 * A program that takes the link down does not wait; however often it does that, the next change waits no longer than a
 * burst takes.
 */
void vd_limit_link_done(struct vd_port *port)
{
	u64 most = ktime_get_ns() + LINK_BURST * (NSEC_PER_SEC / LINK_RATE);

	spin_lock_irq(&port->storm.lock);
	charge(&port->storm.link_rate, LINK_RATE, 1);
	port->storm.link_rate.due = min(port->storm.link_rate.due, most);
	spin_unlock_irq(&port->storm.lock);
}
