/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drawing for terminals.  Hosts stand in the cells of a grid, links between them; links that go
 * round (the last of a ring, the wrapped ones of a torus) run along the margins.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt_priv.h"
#include "rt_topo.h"

#define COLUMNS 100u
#define GAP 5u	  /* between two hosts of a row, where there is room */
#define MARGIN 3u /* for links that go round */
#define LABEL_MAX 64u

/* Text that is cut off where its buffer ends; `len` counts all of it. */
struct sink {
	char *text;
	size_t size, len;
};

struct drawing {
	const struct rt_topo *t;
	const uint8_t *up;
	const char *const *names;
	unsigned int here;
	bool any_down, any_wrap;
	unsigned int columns, rows; /* of hosts */
	unsigned int label, gap;    /* characters of a host, brackets included, and between two */
	unsigned int left, top;	    /* margins */
	unsigned int width, height; /* of the picture */
	char *cell;		    /* width * height characters */
};

/* Appends text to what is drawn.  What has no room is cut off, but counted. */
__attribute__((format(printf, 2, 3))) static void emit(struct sink *s, const char *format, ...)
{
	size_t left = s->len < s->size ? s->size - s->len : 0;
	va_list args;

	va_start(args, format);
	s->len += (size_t)vsnprintf(left > 0 ? s->text + s->len : NULL, left, format, args);
	va_end(args);
}

/* Returns what a host is called in the drawing: its name, or its number, written into `own`. */
static const char *host_name(const struct drawing *d, unsigned int host, char own[LABEL_MAX])
{
	if (d->names != NULL && d->names[host] != NULL)
		return d->names[host];
	snprintf(own, LABEL_MAX, "%u", host);
	return own;
}

/* Returns the number of characters of the longest name, of which LABEL_MAX count, with its brackets. */
static unsigned int longest_label(const struct drawing *d)
{
	unsigned int host, longest = 0;
	char own[LABEL_MAX];
	size_t len;

	for (host = 0; host < d->t->hosts; host++) {
		len = strnlen(host_name(d, host, own), LABEL_MAX);
		if (len > longest)
			longest = (unsigned int)len;
	}
	return longest + 2;
}

static void put(struct drawing *d, unsigned int x, unsigned int y, char c)
{
	d->cell[y * d->width + x] = c;
}

/* Draws a level line from `x` to `end` - 1. */
static void put_row(struct drawing *d, unsigned int x, unsigned int end, unsigned int y)
{
	while (x < end)
		put(d, x++, y, '-');
}

/* Returns the x at which the cells of a column begin. */
static unsigned int cell_x(const struct drawing *d, unsigned int column)
{
	return d->left + column * (d->label + d->gap);
}

/* Returns the y of the hosts of a row; links lie in the lines between. */
static unsigned int cell_y(const struct drawing *d, unsigned int row)
{
	return d->top + 2 * row;
}

/* Returns the x at which the lines up and down meet a host. */
static unsigned int stem_x(const struct drawing *d, unsigned int column)
{
	return cell_x(d, column) + d->label / 2;
}

/* Is it drawn as one line of hosts, which may turn, rather than as a grid? */
static bool is_line(const struct rt_topo *t)
{
	return t->shape == RT_SHAPE_RING || t->shape == RT_SHAPE_CHAIN;
}

/* Finds the cell of a host.  A ring or chain goes right in one row and left in the next. */
static void host_place(const struct drawing *d, unsigned int host, unsigned int *column,
		       unsigned int *row)
{
	*column = host % d->columns;
	*row = host / d->columns;
	if (is_line(d->t) && *row % 2 == 1)
		*column = d->columns - 1 - *column;
}

/* Is the link of a port up?  Notes for the legend that one is down. */
static bool port_mark(struct drawing *d, unsigned int host, unsigned int port)
{
	bool is_up = rt_link_up(d->t, d->up, host, port);

	d->any_down |= !is_up;
	return is_up;
}

/*
 * Draws the wrapped link of a torus: a stump at both edges, `level` of that row, else of that column.  Notes that for
 * the legend.
 */
static void wrap_draw(struct drawing *d, bool level, bool is_up, unsigned int column,
		      unsigned int row)
{
	d->any_wrap = true;
	if (level) {
		put_row(d, 0, stem_x(d, 0), cell_y(d, row));
		put_row(d, stem_x(d, d->columns - 1), d->width, cell_y(d, row));
		if (!is_up) {
			put(d, 0, cell_y(d, row), 'x');
			put(d, d->width - 1, cell_y(d, row), 'x');
		}
		return;
	}
	put(d, stem_x(d, column), 0, is_up ? '|' : 'x');
	put(d, stem_x(d, column), d->height - 1, is_up ? '|' : 'x');
}

/*
 * Draws the last link of a ring, whose last host is at that column and row: along the left margin, and below the last
 * row if that ends on the right.
 */
static void closing_draw(struct drawing *d, bool is_up, unsigned int column, unsigned int row)
{
	unsigned int bottom = cell_y(d, row), y;

	if (row % 2 == 0) {
		put(d, stem_x(d, column), bottom + 1, '|');
		bottom += 2;
		put_row(d, 0, stem_x(d, column), bottom);
		put(d, stem_x(d, column), bottom, '+');
	} else {
		put_row(d, 0, stem_x(d, column), bottom);
	}
	put_row(d, 0, d->left, 0);
	for (y = 1; y < bottom; y++)
		put(d, 0, y, '|');
	put(d, 0, 0, '+');
	put(d, 0, bottom, '+');
	if (!is_up)
		put(d, 0, 1, 'x');
}

/* Draws the link of a listening port: each link has one such port.  Notes for the legend if it is down or wraps. */
static void link_draw(struct drawing *d, unsigned int host, unsigned int port)
{
	const struct rt_port *p = &d->t->host[host].port[port];
	unsigned int column, row, to_column, to_row, right;
	bool is_up = port_mark(d, host, port);

	host_place(d, host, &column, &row);
	host_place(d, p->peer.host, &to_column, &to_row);
	if (p->peer.host < host) {
		if (is_line(d->t))
			closing_draw(d, is_up, column, row);
		else
			wrap_draw(d, p->side == RT_RIGHT, is_up, column, row);
		return;
	}
	if (row != to_row) {
		put(d, stem_x(d, column), cell_y(d, row) + 1, is_up ? '|' : 'x');
		return;
	}
	right = column > to_column ? column : to_column;
	put_row(d, stem_x(d, right - 1), stem_x(d, right), cell_y(d, row));
	if (!is_up)
		put(d, cell_x(d, right) - (d->gap + 1) / 2, cell_y(d, row), 'x');
}

/* Writes the name of a host with its brackets into its cell, over the ends of its links, so these are drawn before. */
static void host_draw(struct drawing *d, unsigned int host)
{
	unsigned int column, row, x, y;
	char own[LABEL_MAX];
	const char *name = host_name(d, host, own);
	size_t len = strnlen(name, LABEL_MAX);

	host_place(d, host, &column, &row);
	/* A short name leaves room: a line continues to its bracket, or blanks fill it. */
	x = cell_x(d, column) + (d->label - 2 - (unsigned int)len) / 2;
	y = cell_y(d, row);
	put(d, x, y, host == d->here ? '<' : '[');
	memcpy(&d->cell[y * d->width + x + 1], name, len);
	put(d, x + 1 + (unsigned int)len, y, host == d->here ? '>' : ']');
}

/*
 * Measures a ring or chain: a chain, and a ring of up to three hosts, in one row, a longer ring in two, where that
 * fits; else in rows of as many columns as fit.  False: not even two fit.
 */
static bool line_measure(struct drawing *d)
{
	unsigned int fit, wanted = d->t->hosts;
	bool closes = d->t->shape == RT_SHAPE_RING && d->t->hosts > 2;

	d->left = closes ? MARGIN : 0;
	d->gap = GAP;
	fit = (COLUMNS - d->left + GAP) / (d->label + GAP);
	if (closes && d->t->hosts > 3)
		wanted = (d->t->hosts + 1) / 2;
	d->columns = fit < wanted ? fit : wanted;
	if (d->columns == 0 || (d->columns == 1 && wanted > 1))
		return false;
	d->rows = (d->t->hosts + d->columns - 1) / d->columns;
	d->width = cell_x(d, d->columns) - d->gap;
	d->height = 2 * d->rows + (closes && d->rows % 2 == 1 ? 1 : 0);
	return true;
}

/* Measures a grid, with less room between hosts where it is wide.  False: it is wider than a terminal, but measured. */
static bool grid_measure(struct drawing *d)
{
	bool wraps = d->t->shape == RT_SHAPE_TORUS;

	d->columns = d->t->width;
	d->rows = d->t->height;
	d->left = wraps && d->columns > 2 ? MARGIN : 0;
	d->top = wraps && d->rows > 2 ? 1 : 0;
	for (d->gap = GAP;; d->gap -= 2) {
		d->width = cell_x(d, d->columns) - d->gap + d->left;
		if (d->width <= COLUMNS || d->gap == 1)
			break;
	}
	d->height = 2 * d->rows - 1 + 2 * d->top;
	return d->width <= COLUMNS;
}

/* Measures the picture: with names if that is not too wide, else with numbers, however wide, and forgets the names. */
static void measure(struct drawing *d)
{
	bool (*fits)(struct drawing *) = is_line(d->t) ? line_measure : grid_measure;

	d->label = longest_label(d);
	if (fits(d) || d->names == NULL)
		return;
	d->names = NULL;
	d->label = longest_label(d);
	fits(d);
}

/* Appends the picture to the text, without blanks at the ends of lines and without empty lines. */
static void rows_emit(const struct drawing *d, struct sink *s)
{
	unsigned int y, len;
	const char *row;

	for (y = 0; y < d->height; y++) {
		row = d->cell + y * d->width;
		len = d->width;
		while (len > 0 && row[len - 1] == ' ')
			len--;
		if (len > 0)
			emit(s, "%.*s\n", (int)len, row);
	}
}

/* Draws the topology as a picture.  0 or -ENOMEM. */
static int picture_draw(struct drawing *d, struct sink *s)
{
	unsigned int host, port;

	measure(d);
	d->cell = malloc(d->width * d->height);
	if (d->cell == NULL)
		return -ENOMEM;
	memset(d->cell, ' ', d->width * d->height);
	for (host = 0; host < d->t->hosts; host++) {
		for (port = 1; port < d->t->host[host].ports; port++) {
			if (d->t->host[host].port[port].listens)
				link_draw(d, host, port);
		}
	}
	for (host = 0; host < d->t->hosts; host++)
		host_draw(d, host);
	rows_emit(d, s);
	free(d->cell);
	return 0;
}

/* Writes one neighbour of a list, on a new line if it does not fit; returns the column after it. */
static unsigned int neighbour_emit(struct drawing *d, struct sink *s, unsigned int host,
				   unsigned int port, unsigned int column)
{
	const struct rt_port *p = &d->t->host[host].port[port];
	char own[LABEL_MAX], item[3 * LABEL_MAX];
	unsigned int len;

	len = (unsigned int)snprintf(item, sizeof(item), "%s%s %.*s%s", port > 1 ? ", " : " ",
				     p->name, (int)LABEL_MAX, host_name(d, p->peer.host, own),
				     port_mark(d, host, port) ? "" : " x");
	if (column + len > COLUMNS) {
		emit(s, port > 1 ? ",\n     " : "\n     ");
		emit(s, "%s", item + (port > 1 ? 1 : 0));
		return len + 5 - (port > 1 ? 1 : 0);
	}
	emit(s, "%s", item);
	return column + len;
}

/* Lists each host with its neighbours.  Returns 0. */
static int list_draw(struct drawing *d, struct sink *s)
{
	unsigned int host, port, column;
	char own[LABEL_MAX];
	const char *name;

	for (host = 0; host < d->t->hosts; host++) {
		name = host_name(d, host, own);
		column = (unsigned int)strnlen(name, LABEL_MAX) + 2;
		emit(s, "%c%.*s%c", host == d->here ? '<' : '[', (int)LABEL_MAX, name,
		     host == d->here ? '>' : ']');
		for (port = 1; port < d->t->host[host].ports; port++)
			column = neighbour_emit(d, s, host, port, column);
		emit(s, "\n");
	}
	return 0;
}

/* Explains the marks that the drawing has. */
static void legend_emit(const struct drawing *d, struct sink *s)
{
	if (d->here < d->t->hosts)
		emit(s, "<> this host\n");
	if (d->any_down)
		emit(s, "x  a link that is down\n");
	if (d->any_wrap)
		emit(s, "Lines that leave the picture come in at the opposite edge.\n");
}

int rt_draw(const struct rt_topo *t, const uint8_t *up, const char *const *names, unsigned int here,
	    char *text, size_t size)
{
	struct drawing d = { .t = t, .up = up, .names = names, .here = here };
	struct sink s = { .text = text, .size = size };
	int rc;

	rc = t->shape == RT_SHAPE_GRAPH ? list_draw(&d, &s) : picture_draw(&d, &s);
	if (rc != 0)
		return rc;
	legend_emit(&d, &s);
	return (int)s.len;
}
