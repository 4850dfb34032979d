/*
 * The coarsest stable colouring of a graph: nodes of one colour have equal labels, and equally coloured neighbours in
 * equal roles. Walks from node to node cannot distinguish nodes of one colour.
 *
 * A node's label is a sequence of numbers. An edge has a *role* at each end: the relation of the other node to this
 * one. Colours are compared exactly and not by hashes.
 *
 *     a - b - c - d, all labels equal: a and d have one colour, b and c another
 *
 * Source: Paige and Tarjan, "Three partition refinement algorithms", SIAM J. Comput. 16(6), 1987 ("relational coarsest
 * partition"; this implementation lacks their time bound).
 */
#ifndef SPILLWAY_SIM_COLOURING_H
#define SPILLWAY_SIM_COLOURING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct sim_colouring; /* opaque */

/* Returns an empty graph, or NULL when memory ends. The caller frees it with sim_colouring_destroy(). */
struct sim_colouring *sim_colouring_create(void);
void sim_colouring_destroy(struct sim_colouring *colouring); /* NULL is fine */

/* Adds a node, numbered from 0, then the numbers of its label. sim_colouring_find() reports allocation failures of
 * sim_colouring_node(), sim_colouring_label() and sim_colouring_edge(). */
uint32_t sim_colouring_node(struct sim_colouring *colouring);
void sim_colouring_label(struct sim_colouring *colouring, uint64_t number);

/* Adds an edge between two existing nodes: the role of `b` for `a`, and the role of `a` for `b`. */
void sim_colouring_edge(struct sim_colouring *colouring, uint32_t a, uint32_t b, uint32_t role_of_b,
                        uint32_t role_of_a);

/* Colours all nodes; no nodes and edges can be added later. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_colouring_find(struct sim_colouring *colouring, struct error *err);

/* Splits colours by marks (one per node) and refines the colouring. Returns false if the marks split no colour. */
bool sim_colouring_tell_apart(struct sim_colouring *colouring, const uint32_t *marks);

/* Returns a node's colour, below the number of nodes. */
uint32_t sim_colouring_of(const struct sim_colouring *colouring, uint32_t node);
uint32_t sim_colouring_nodes(const struct sim_colouring *colouring); /* number of nodes */

#endif
