/*
 * The coarsest colouring of a graph's nodes in which nodes of one colour have equal labels, and neighbours of equal
 * colours in equal roles: what cannot be told apart by walking from node to node.
 *
 * A node's label is a sequence of numbers. An edge has a *role* at each end: what the other node is to this one.
 * Colours are compared as they are, never by a hash of them.
 *
 *     a - b - c - d, labels all the same: a and d have one colour, b and c another
 *
 * Source: Paige and Tarjan, "Three partition refinement algorithms", SIAM J. Comput. 16(6), 1987 ("relational
 * coarsest partition"; here without their bound on the time).
 */
#ifndef SPILLWAY_SIM_COLOURING_H
#define SPILLWAY_SIM_COLOURING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct sim_colouring; /* opaque */

/* NULL: no memory. The caller frees it with sim_colouring_destroy(). */
struct sim_colouring *sim_colouring_create(void);
void sim_colouring_destroy(struct sim_colouring *colouring); /* NULL is fine */

/* The next node, from 0; then its label, number by number, until the node behind it. All memory that these
 * three lack sim_colouring_find() complains of. */
uint32_t sim_colouring_node(struct sim_colouring *colouring);
void sim_colouring_label(struct sim_colouring *colouring, uint64_t number);

/* Between two nodes that there are: the role of `b` for `a`, and that of `a` for `b`. */
void sim_colouring_edge(struct sim_colouring *colouring, uint32_t a, uint32_t b, uint32_t role_of_b,
                        uint32_t role_of_a);

/* Colour all nodes; no node and no edge comes behind that. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_colouring_find(struct sim_colouring *colouring, struct error *err);

/* Tell nodes of one colour apart by their marks (one a node), and what follows from that. False: their marks told
 * nothing new. */
bool sim_colouring_tell_apart(struct sim_colouring *colouring, const uint32_t *marks);

/* Below the number of nodes; means nothing by itself. */
uint32_t sim_colouring_of(const struct sim_colouring *colouring, uint32_t node);
uint32_t sim_colouring_nodes(const struct sim_colouring *colouring); /* how many there are */

#endif
