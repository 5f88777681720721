// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in a guest: a peer that sends forged messages.  Its port belongs to ntb_tool, whose files
 * write message registers of the other port, where viaduct.ko reads them.  Usage: forge FOLDER
 * SEED, the folder of the port in debugfs; seed 0 makes only a session; others make random
 * forgeries, a session, messages that the module must refuse, and a flood of messages.
 */
#include "ports.h"

#include "../../../kmod/viaduct_msg.h"

#define MESSAGES 3000
#define FLOOD_MS (1500 * patience())
#define RATE 5
#define BURST (RATE / 4)
#define ME 0x77777777u

static const char *folder;
static uint64_t state;

static uint32_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 16;
}

static void set(unsigned int reg, uint32_t value)
{
	char path[128], text[16];
	int fd, len;

	snprintf(path, sizeof(path), "%s/peer0/msg%u", folder, reg);
	len = snprintf(text, sizeof(text), "%u", value);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, len) != len)
		exit(1);
	close(fd);
}

/* Returns what the module has written into a register. */
static uint32_t get(unsigned int reg)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/msg%u", folder, reg);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		exit(1);
	close(fd);
	return strtoul(text, NULL, 16);
}

/* Marks the registers as read, so that the module can write them again. */
static void forget(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/msg_sts", folder);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "c 0xf000f", 9) != 9)
		exit(1);
	close(fd);
}

/* Bits 0 to 3: registers of this side that are full; 16 to 19: those of the module that were, so a word was lost. */
static uint32_t status(void)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/msg_sts", folder);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		exit(1);
	close(fd);
	return strtoul(text, NULL, 16);
}

/* Sends a message.  Full registers keep their content, so some messages are mixtures of two. */
static void message_spoilt(uint32_t value, uint32_t from, uint32_t to, uint32_t header,
			   uint32_t spoilt)
{
	const uint32_t word[] = { value, from, to };
	uint32_t x = VD_MSG_VERSION * 0x9e3779b9u + (header & 0xffff);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		x = (x ^ word[i]) * 0x85ebca6b;
		x = x << 13 | x >> 19;
		set(i, word[i]);
	}
	set(3, ((x ^ x >> 16 ^ spoilt) & 0xffff) << 16 | (header & 0xffff));
}

static void message(uint32_t value, uint32_t from, uint32_t to, uint32_t header)
{
	message_spoilt(value, from, to, header, 0);
}

static void lie(void)
{
	uint32_t to, me = 1;
	int i;

	for (i = 0; i < MESSAGES; i++) {
		to = get(1);
		switch (any() % 8) {
		case 0:
			me = any() | 1;
			message(VD_MSG_VERSION << 16 | any() % 12, me, any() % 2 ? to : 0, 0);
			break;
		case 1:
			message(any(), any() % 4, any() % 2 ? to : any(), any());
			break;
		case 2:
			set(any() % 4, any());
			break;
		case 3:
			message(any(), me, to, VD_CELL_BYE << 8 | any() % 256);
			break;
		default: /* invalid addresses, scratchpads, acknowledgements of numbers that were not sent */
			message(any(), me, to, any() % VD_CELLS << 8 | any() % 256);
		}
		if (any() % 4 == 0)
			forget();
	}
}

/* Sends one cell until the module has acknowledged its number, and acknowledges the module's cells. */
static bool tell(uint32_t me, uint32_t value, unsigned int cell, unsigned int number)
{
	int64_t end = now_ms() + WAIT_MS;

	while (now_ms() < end) {
		message(value, me, get(1), cell << 8 | number << 4 | (get(3) >> 4 & 0xf));
		sched_yield();
		if (get(2) == me && (number ? get(3) & 0xf : 0) == number)
			return true;
		forget();
	}
	return false;
}

static unsigned int next_of(unsigned int number)
{
	return number % 15 + 1;
}

/*
 * Opens a session as a peer should, but with addresses of windows that no window can lead to.
 * Returns the last number, or 0.
 */
static unsigned int open_session(void)
{
	unsigned int cell, number = 0;

	if (!tell(ME, VD_MSG_VERSION << 16 | 2, VD_CELL_HELLO, 0))
		return 0;
	for (cell = VD_CELL_WINDOW; cell < VD_CELL_PEER; cell++) {
		number = next_of(number);
		if (!tell(ME, 0xfff, cell, number))
			return 0;
	}
	return number;
}

struct lie {
	const char *text;
	uint32_t value, from, to; /* `from` and `to` are added to the numbers of the sessions */
	unsigned int cell, skip;
	uint32_t spoilt;
};

/*
 * Sends a forgery until all registers of the module were empty when it was written, so that all
 * before it has been read.
 */
static bool deliver(const struct lie *l, unsigned int number)
{
	int64_t end = now_ms() + WAIT_MS;

	while (now_ms() < end) {
		forget();
		message_spoilt(l->value, ME + l->from, get(1) + l->to,
			       l->cell << 8 | number << 4 | (get(3) >> 4 & 0xf), l->spoilt);
		if ((status() & 0xf0000) == 0)
			return true;
		poll(NULL, 0, 20); /* the registers are still full */
	}
	return false;
}

/*
 * Finds the number that the module took last: it acknowledges a message that it takes, and the last
 * one again when that is repeated.
 */
static unsigned int last_of(unsigned int number)
{
	static const struct lie again = { .value = 0xfff, .cell = VD_CELL_PEER - 1 };
	int64_t end = now_ms() + WAIT_MS;

	if (!deliver(&again, number))
		return 0;
	while ((status() & 0xf) != 0xf) {
		if (now_ms() > end)
			return 0;
		sched_yield();
	}
	return get(3) & 0xf;
}

static bool refused(const struct lie *l, unsigned int last)
{
	unsigned int number = l->cell == VD_CELL_HELLO ? 0 : next_of(last);

	if (l->skip)
		number = next_of(number);
	return deliver(l, number) && last_of(last) == last;
}

static bool refuse_all(unsigned int last)
{
	static const struct lie lies[] = {
		{ .text = "check", .cell = VD_CELL_PEER, .spoilt = 1 },
		{ .text = "sender", .cell = VD_CELL_PEER, .from = 1 },
		{ .text = "receiver", .cell = VD_CELL_PEER, .to = 1 },
		{ .text = "cell", .cell = VD_CELLS },
		{ .text = "number", .cell = VD_CELL_PEER, .skip = 1 },
		{ .text = "version",
		  .cell = VD_CELL_HELLO,
		  .value = (VD_MSG_VERSION + 1) << 16,
		  .from = 1 },
		{ .text = "windows",
		  .cell = VD_CELL_HELLO,
		  .value = VD_MSG_VERSION << 16 | 9,
		  .from = 1 },
		{ .text = "session",
		  .cell = VD_CELL_HELLO,
		  .value = VD_MSG_VERSION << 16,
		  .from = 1,
		  .to = 1 },
	};
	size_t i;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		if (!refused(&lies[i], last)) {
			printf("it took another %s\n", lies[i].text);
			return false;
		}
	}
	return tell(ME, 1, VD_CELL_PEER, next_of(last)); /* a correct message is taken */
}

static void limit(unsigned int rate)
{
	FILE *file = fopen("/sys/module/viaduct/parameters/message_rate", "w");

	if (file == NULL || fprintf(file, "%u", rate) < 0 || fclose(file) != 0)
		exit(1);
}

/* Returns the number of messages that are read in some time; each is as short as possible. */
static unsigned int flood(int64_t *took)
{
	int64_t start = now_ms();
	unsigned int read = 0;

	do {
		forget();
		set(3, read);
		read += (status() & 0x80000) == 0;
		*took = now_ms() - start;
	} while (*took < FLOOD_MS);
	return read;
}

static bool is_limited(void)
{
	unsigned int free, held, most;
	int64_t took;

	limit(0);
	free = flood(&took);
	limit(RATE);
	held = flood(&took);
	limit(2000);
	most = BURST + RATE * took / 1000 + 2;
	printf("%u messages are read in %d ms, %u without a limit\n", held, (int)took, free);
	return held <= most && free > most;
}

int main(int argc, char **argv)
{
	unsigned int last;

	if (argc != 3)
		return 2;
	folder = argv[1];
	state = strtoull(argv[2], NULL, 0) | 1;
	if (atoi(argv[2]) != 0)
		lie();
	last = open_session();
	if (last == 0)
		return 1;
	if (atoi(argv[2]) == 0)
		return 0;
	return refuse_all(last) && is_limited() ? 0 : 1;
}
