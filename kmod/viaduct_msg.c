// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Message registers: viaduct_msg.h.
 *
 * Interrupts only mask the registers and start the work, which reads one message at a time and unmasks them; beyond
 * a number of messages in a second it does so later.  The peer can only fill two tables of fixed size.
 * State is under msg->lock.  The work has port->lock for reading; sessions begin and end with it held for writing.
 */
#include <linux/bitops.h>
#include <linux/mm.h>
#include <linux/random.h>

#include "viaduct.h"

#define PIDX 0
#define RETRY_MS 4	 /* doubled with each attempt */
#define RETRY_MAX 5	 /* times */
#define GIVE_UP 30	 /* attempts, about 4 s */
#define LEAVE_TIMEOUT HZ /* for the peer to confirm that it has left the memory */
#define UNIT 4096	 /* of sizes */
#define HEADER_REG (VD_MSG_REGS - 1)
#define CELLS(first, count) GENMASK_ULL((first) + (count)-1, first)

struct words {
	u32 word[VD_MSG_REGS];
};

static unsigned int cell_of(const struct words *w)
{
	return w->word[HEADER_REG] >> 8 & 0xff;
}

static unsigned int number_of(const struct words *w)
{
	return w->word[HEADER_REG] >> 4 & 0xf;
}

static unsigned int ack_of(const struct words *w)
{
	return w->word[HEADER_REG] & 0xf;
}

/* So that registers of two messages, of which one was sent in part, are not taken for one. */
static u32 check_of(const struct words *w)
{
	u32 x = VD_MSG_VERSION * 0x9e3779b9 + (w->word[HEADER_REG] & 0xffff);
	unsigned int i;

	for (i = 0; i < HEADER_REG; i++)
		x = rol32((x ^ w->word[i]) * 0x85ebca6b, 13);
	return (x ^ x >> 16) & 0xffff;
}

static u64 inbits(struct ntb_dev *ntb)
{
	return ntb_msg_inbits(ntb) & (CELLS(0, VD_MSG_REGS) << __ffs64(ntb_msg_inbits(ntb)));
}

static u64 header_bit(struct ntb_dev *ntb)
{
	return BIT_ULL(__ffs64(ntb_msg_inbits(ntb)) + HEADER_REG);
}

static bool heard(const struct vd_msg *msg)
{
	return msg->heard && !msg->leaving;
}

static unsigned int windows_of_peer(const struct vd_msg *msg)
{
	return msg->theirs[VD_CELL_HELLO] & 0xffff;
}

static bool complete_locked(const struct vd_msg *msg)
{
	u64 need = CELLS(VD_CELL_OWN, VD_MSG_SPADS);

	if (windows_of_peer(msg))
		need |= CELLS(VD_CELL_WINDOW, 3 * windows_of_peer(msg));
	return heard(msg) && (msg->got & need) == need;
}

/* The registers tell nothing until the work has looked. */
void vd_msg_event(struct vd_port *port)
{
	ntb_msg_set_mask(port->ntb, ntb_msg_inbits(port->ntb));
	mod_delayed_work(system_wq, &port->msg.work, 0);
}

static void kick(struct vd_port *port)
{
	mod_delayed_work(system_wq, &port->msg.work, 0);
}

/* ---- sending --------------------------------------------------------------------------------- */

static bool write_regs(struct ntb_dev *ntb, const struct words *w)
{
	u64 outbits = ntb_msg_outbits(ntb);
	int i;

	ntb_msg_clear_sts(ntb, outbits);
	for (i = 0; i < VD_MSG_REGS; i++)
		ntb_peer_msg_write(ntb, PIDX, i, w->word[i]);
	return !(ntb_msg_read_sts(ntb) & outbits);
}

static bool send_locked(struct vd_port *port, unsigned int cell, unsigned int number, u32 value)
{
	struct vd_msg *msg = &port->msg;
	struct words w = { { value, msg->session, msg->peer_session } };

	w.word[HEADER_REG] = cell << 8 | number << 4 | (cell == VD_CELL_HELLO ? 0 : msg->rx_number);
	w.word[HEADER_REG] |= check_of(&w) << 16;
	return write_regs(port->ntb, &w);
}

/* Cells go in turns, so none waits for ever for one that is written again and again. */
static void next_cell_locked(struct vd_msg *msg)
{
	u64 later = msg->dirty & ~(BIT_ULL(msg->cell) | (BIT_ULL(msg->cell) - 1));

	msg->cell = __ffs64(later ?: msg->dirty);
	msg->dirty &= ~BIT_ULL(msg->cell);
	msg->value = msg->ours[msg->cell];
	msg->tx_number = msg->tx_number % 15 + 1;
	msg->in_flight = true;
	msg->tries = 0;
	msg->due = jiffies;
}

static void retry_later(struct vd_msg *msg)
{
	msg->due = jiffies + msecs_to_jiffies(RETRY_MS << min(msg->tries, RETRY_MAX));
	if (msg->tries < GIVE_UP)
		msg->tries++;
}

/* Sends what is due; the jiffies until there is something to do again, or -1. */
static long send_due_locked(struct vd_port *port)
{
	struct vd_msg *msg = &port->msg;
	bool talks = heard(msg);

	if (talks && !msg->in_flight && msg->dirty)
		next_cell_locked(msg);
	if (msg->hello_due) {
		msg->hello_due = !send_locked(port, VD_CELL_HELLO, 0, msg->ours[VD_CELL_HELLO]);
		return 1;
	}
	if (!msg->heard && time_after_eq(jiffies, msg->due)) {
		send_locked(port, VD_CELL_HELLO, 0, msg->ours[VD_CELL_HELLO]);
		retry_later(msg);
	} else if (talks && msg->in_flight && time_after_eq(jiffies, msg->due)) {
		if (send_locked(port, msg->cell, msg->tx_number, msg->value))
			msg->ack_due = false;
		retry_later(msg);
	} else if (msg->ack_due) {
		msg->ack_due = !send_locked(port, VD_CELL_NONE, 0, 0);
		if (msg->ack_due)
			return 1;
	}
	if (!msg->heard || (talks && msg->in_flight))
		return max_t(long, msg->due - jiffies, 1);
	return -1;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static bool take(struct ntb_dev *ntb, struct words *w)
{
	u64 bits = inbits(ntb);
	u64 status = ntb_msg_read_sts(ntb) & bits;
	int i;

	if (!(status & header_bit(ntb)))
		return false;
	for (i = 0; i < VD_MSG_REGS; i++)
		w->word[i] = ntb_msg_read(ntb, NULL, i);
	ntb_msg_clear_sts(ntb, ntb_msg_inbits(ntb));
	return status == bits && check_of(w) == w->word[HEADER_REG] >> 16;
}

/* Resets the state for a new session of the peer. */
static void adopt_locked(struct vd_msg *msg, u32 session, u32 hello)
{
	msg->restarted = msg->restarted || msg->got;
	msg->peer_session = session;
	msg->heard = false;
	msg->leaving = false;
	msg->confirm_due = false;
	msg->got = 0;
	msg->rx_number = 0;
	msg->tx_number = 0;
	msg->in_flight = false;
	msg->ack_due = false;
	msg->tries = 0;
	msg->due = jiffies;
	msg->theirs[VD_CELL_HELLO] = hello;
	/* Memory that is about to be freed is not told of. */
	msg->dirty = msg->closing ? BIT_ULL(VD_CELL_BYE)
				  : CELLS(VD_CELL_WINDOW, 3 * VIADUCT_WINDOWS) |
					    CELLS(VD_CELL_OWN, VD_MSG_SPADS);
}

static void hello_locked(struct vd_msg *msg, const struct words *w)
{
	u32 hello = w->word[0];

	if (w->word[2] && w->word[2] != msg->session)
		return;
	if (hello >> 16 != VD_MSG_VERSION || (hello & 0xffff) > VIADUCT_WINDOWS)
		return;
	if (w->word[1] != msg->peer_session)
		adopt_locked(msg, w->word[1], hello);
	if (w->word[2])
		msg->heard = msg->ack_due = true;
	else
		msg->hello_due = true;
}

/*
 * A scratchpad belongs to its owner, whose value counts; but a write of this side that the owner has not seen yet comes
 * later.  A value that the owner is sending is out of date as soon as the peer writes the scratchpad.
 */
static void store_locked(struct vd_msg *msg, unsigned int cell, u32 value)
{
	u64 written = msg->dirty | (msg->in_flight ? BIT_ULL(msg->cell) : 0);

	if (cell >= VD_CELL_PEER) {
		msg->ours[cell - VD_CELL_PEER + VD_CELL_OWN] = value;
		msg->dirty |= written & BIT_ULL(cell - VD_CELL_PEER + VD_CELL_OWN);
	} else if (cell < VD_CELL_OWN || !(written & BIT_ULL(cell - VD_CELL_OWN + VD_CELL_PEER))) {
		msg->theirs[cell] = value;
	}
	msg->got |= BIT_ULL(cell);
}

static void message_locked(struct vd_msg *msg, const struct words *w)
{
	unsigned int cell = cell_of(w), number = number_of(w);

	if (!w->word[1] || !msg->live)
		return;
	if (cell == VD_CELL_HELLO) {
		hello_locked(msg, w);
		return;
	}
	if (w->word[1] != msg->peer_session || w->word[2] != msg->session)
		return;
	msg->heard = true;
	if (msg->in_flight && ack_of(w) == msg->tx_number) {
		msg->in_flight = false;
		if (msg->cell < VD_CELL_OWN)
			msg->told = msg->by_sender;
		if (msg->cell == VD_CELL_BYE) {
			msg->confirmed = true;
			wake_up_all(&msg->wait);
		}
	}
	if (!number || cell >= VD_CELLS)
		return;
	if (number == msg->rx_number) {
		msg->ack_due = true;
	} else if (number == msg->rx_number % 15 + 1 && !msg->leaving) {
		if (cell == VD_CELL_BYE) {
			msg->leaving = true;
			msg->confirm_due = true;
			msg->dirty = 0;
			msg->in_flight = false;
			return;
		}
		store_locked(msg, cell, w->word[0]);
		msg->rx_number = number;
		msg->ack_due = true;
	}
}

/* One message or less comes, and one or two go; the jiffies until the next run, or -1. */
static long step(struct vd_port *port, bool *changed)
{
	struct vd_msg *msg = &port->msg;
	struct words w;
	long delay;
	bool before;

	spin_lock_irq(&msg->lock);
	if (!msg->closing && !vd_limit_message(&msg->rate)) {
		spin_unlock_irq(&msg->lock);
		return 2;
	}
	before = complete_locked(msg);
	if (take(port->ntb, &w))
		message_locked(msg, &w);
	delay = msg->live ? send_due_locked(port) : -1;
	if (msg->tries >= GIVE_UP && before)
		msg->lost = true;
	*changed = complete_locked(msg) != before || msg->restarted || msg->confirm_due ||
		   msg->lost;
	spin_unlock_irq(&msg->lock);
	ntb_msg_clear_mask(port->ntb, header_bit(port->ntb));
	if (ntb_msg_read_sts(port->ntb) & header_bit(port->ntb))
		return 0;
	return delay;
}

static void msg_work(struct work_struct *work)
{
	struct vd_port *port = container_of(to_delayed_work(work), struct vd_port, msg.work);
	bool changed = false;
	long delay = -1;

	down_read(&port->lock);
	if (port->ntb) {
		delay = step(port, &changed);
		if (changed)
			vd_link_check(port);
		if (delay >= 0)
			queue_delayed_work(system_wq, &port->msg.work, delay);
	}
	up_read(&port->lock);
}

/* ---- sessions -------------------------------------------------------------------------------- */

int vd_msg_init(struct vd_port *port)
{
	struct vd_msg *msg = &port->msg;
	struct ntb_dev *ntb = port->ntb;

	spin_lock_init(&msg->lock);
	init_waitqueue_head(&msg->wait);
	INIT_DELAYED_WORK(&msg->work, msg_work);
	msg->by_sender = !ntb->ops->mw_set_trans;
	msg->spads = ntb_spad_count(ntb) < VD_MSG_SPADS;
	msg->used = msg->by_sender || msg->spads;
	return msg->used ? ntb_msg_set_mask(ntb, ntb_msg_outbits(ntb) | ntb_msg_inbits(ntb)) : 0;
}

static void fill_windows(struct vd_port *port)
{
	u32 *cell = &port->msg.ours[VD_CELL_WINDOW];
	unsigned int i;

	for (i = 0; i < port->windows; i++, cell += 3) {
		const struct vd_window *w = &port->window[i];
		bool shown = port->msg.by_sender && w->translated;

		cell[0] = shown ? lower_32_bits(w->dma) : 0;
		cell[1] = shown ? upper_32_bits(w->dma) : 0;
		cell[2] = shown ? min_t(u64, w->bytes / UNIT, U32_MAX) : 0;
	}
}

/* The link of the adapter has come up, or gone down. */
void vd_msg_begin(struct vd_port *port, bool live)
{
	struct vd_msg *msg = &port->msg;

	if (!msg->used)
		return;
	spin_lock_irq(&msg->lock);
	adopt_locked(msg, 0, 0);
	msg->dirty = 0;
	msg->live = live;
	msg->told = msg->told && live;
	msg->restarted = false;
	msg->lost = false;
	msg->hello_due = false;
	do
		msg->session = get_random_u32();
	while (!msg->session);
	msg->ours[VD_CELL_HELLO] = VD_MSG_VERSION << 16 | (msg->by_sender ? port->windows : 0);
	fill_windows(port);
	spin_unlock_irq(&msg->lock);
	wake_up_all(&msg->wait);
	if (live)
		kick(port);
}

/* True: the peer has told all.  *again: it has begun another session since the last call. */
bool vd_msg_ready(struct vd_port *port, bool *again)
{
	struct vd_msg *msg = &port->msg;
	bool ready;

	*again = false;
	if (!msg->used)
		return true;
	spin_lock_irq(&msg->lock);
	*again = msg->restarted;
	msg->restarted = false;
	ready = msg->live && complete_locked(msg) && !msg->closing;
	spin_unlock_irq(&msg->lock);
	return ready;
}

/* A peer that does not acknowledge any more is lost, although the adapter sees a link. */
bool vd_msg_lost(struct vd_port *port)
{
	return port->msg.used && READ_ONCE(port->msg.lost);
}

/*
 * No mapping leads to the memory of a peer that goes away, if the link has been taken down for that.  Where it said so
 * after the caller looked at the link, the caller's work has been queued again.
 */
void vd_msg_confirm(struct vd_port *port)
{
	struct vd_msg *msg = &port->msg;
	bool leaving;

	if (!msg->used)
		return;
	spin_lock_irq(&msg->lock);
	leaving = msg->confirm_due && !port->up;
	if (leaving) {
		msg->confirm_due = false;
		msg->told = false;
		msg->rx_number = msg->rx_number % 15 + 1;
		msg->ack_due = true;
		msg->got = 0;
	}
	spin_unlock_irq(&msg->lock);
	if (leaving)
		kick(port);
}

/* Before memory of windows is freed: false if the peer may still store there. */
bool vd_msg_leave(struct vd_port *port)
{
	struct vd_msg *msg = &port->msg;
	bool talks, told;

	if (!msg->used || !msg->by_sender)
		return true;
	spin_lock_irq(&msg->lock);
	talks = msg->live && heard(msg);
	told = msg->told;
	msg->closing = true;
	msg->confirmed = false;
	msg->dirty = talks ? BIT_ULL(VD_CELL_BYE) : 0;
	spin_unlock_irq(&msg->lock);
	if (!talks)
		return !told;
	kick(port);
	wait_event_timeout(msg->wait, READ_ONCE(msg->confirmed) || !READ_ONCE(msg->live),
			   LEAVE_TIMEOUT);
	return READ_ONCE(msg->confirmed) || !READ_ONCE(msg->live);
}

/* Address and size that the peer has told for a window: false if it is not to be used. */
bool vd_msg_window(struct vd_port *port, unsigned int widx, u64 *address, u64 *bytes)
{
	struct vd_msg *msg = &port->msg;
	const u32 *cell = &msg->theirs[VD_CELL_WINDOW + 3 * widx];

	spin_lock_irq(&msg->lock);
	*address = cell[0] | (u64)cell[1] << 32;
	*bytes = (u64)cell[2] * UNIT;
	if (widx >= windows_of_peer(msg))
		*bytes = 0;
	spin_unlock_irq(&msg->lock);
	return *bytes && PAGE_ALIGNED(*address) && PAGE_ALIGNED(*bytes) &&
	       *address + *bytes > *address;
}

/* ---- scratchpads ----------------------------------------------------------------------------- */

unsigned int vd_msg_spad_count(struct vd_port *port)
{
	return port->msg.spads ? VD_MSG_SPADS : ntb_spad_count(port->ntb);
}

int vd_msg_spad(struct vd_port *port, struct viaduct_spad *spad)
{
	struct vd_msg *msg = &port->msg;
	bool peer = spad->flags & VIADUCT_SPAD_PEER, write = spad->flags & VIADUCT_SPAD_WRITE;
	unsigned int own = VD_CELL_OWN + spad->index, cell = VD_CELL_PEER + spad->index;

	spin_lock_irq(&msg->lock);
	if (!write && peer) {
		spad->value = port->up ? msg->theirs[own] : ~0u;
	} else if (!write) {
		spad->value = msg->ours[own];
	} else if (!peer) {
		msg->ours[own] = spad->value;
		msg->dirty |= BIT_ULL(own);
	} else if (port->up) {
		msg->theirs[own] = spad->value;
		msg->ours[cell] = spad->value;
		msg->dirty |= BIT_ULL(cell);
	}
	spin_unlock_irq(&msg->lock);
	if (write)
		kick(port);
	return 0;
}
