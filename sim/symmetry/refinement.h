/*
 * Colour refinement (partition refinement): the coarsest stable refinement of a graph. Nodes of one colour have equal
 * labels, and equally coloured neighbours in equal roles. Walks from node to node cannot distinguish nodes of one
 * colour.
 *
 * A node's label is a sequence of numbers. An edge has a *role* at each end: the relation of the other node to this
 * one. Colours are compared exactly and not by hashes.
 *
 *     a - b - c - d, all labels equal: a and d have one colour, b and c another
 *
 * Source: Paige and Tarjan, "Three partition refinement algorithms", SIAM J. Comput. 16(6), 1987 ("relational coarsest
 * partition"; this implementation lacks their time bound).
 */
#ifndef SPILLWAY_SIM_SYMMETRY_REFINEMENT_H
#define SPILLWAY_SIM_SYMMETRY_REFINEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct sim_refinement; /* opaque */

/* Returns an empty graph, or NULL without memory for it. The caller frees it with sim_refinement_destroy(). */
struct sim_refinement *sim_refinement_create(void);
void sim_refinement_destroy(struct sim_refinement *refinement); /* NULL is fine */

/* Adds a node, numbered from 0, then the numbers of its label. sim_refinement_find() reports allocation failures of
 * sim_refinement_node(), sim_refinement_label() and sim_refinement_edge(). */
uint32_t sim_refinement_node(struct sim_refinement *refinement);
void sim_refinement_label(struct sim_refinement *refinement, uint64_t number);

/* Adds an edge between two existing nodes: the role of `b` for `a`, and the role of `a` for `b`. */
void sim_refinement_edge(struct sim_refinement *refinement, uint32_t a, uint32_t b, uint32_t role_of_b,
                         uint32_t role_of_a);

/* Colours all nodes; no nodes and edges can be added later. */
MUST_CHECK enum status sim_refinement_find(struct sim_refinement *refinement, struct error *err);

/* Splits each colour by the marks of its nodes (one per node) until the colours are stable again. Returns false if the
 * marks split no colour. */
bool sim_refinement_tell_apart(struct sim_refinement *refinement, const uint32_t *marks);

/* Returns a node's colour, below the number of nodes. */
uint32_t sim_refinement_of(const struct sim_refinement *refinement, uint32_t node);
uint32_t sim_refinement_nodes(const struct sim_refinement *refinement); /* number of nodes */

#endif
