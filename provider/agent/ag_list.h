/* SPDX-License-Identifier: BSD-2-Clause */
/* Doubly linked circular lists whose nodes lie inside their objects. */
#ifndef AG_LIST_H
#define AG_LIST_H

#include <stdbool.h>

#include "u_base.h"

struct ag_list {
	struct ag_list *next, *prev;
};

static inline void ag_list_init(struct ag_list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool ag_list_empty(const struct ag_list *head)
{
	return head->next == head;
}

/* Puts a node, which is in no list, at the end of a list. */
static inline void ag_list_append(struct ag_list *head, struct ag_list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Removes a node from its list; does nothing for one that is in none, if it was initialised by ag_list_init(). */
static inline void ag_list_remove(struct ag_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	ag_list_init(node);
}

#define ag_list_entry(node, type, member) u_container_of(node, type, member)

/* The body may remove `pos`, but no other node. */
#define ag_list_each(pos, tmp, head)                                                               \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head);                           \
	     (pos) = (tmp), (tmp) = (pos)->next)

#endif
