/* A layer of operations, computed in a pass (exec/network/graph_value.h). */
#ifndef SPILLWAY_EXEC_NETWORK_GRAPH_LAYER_H
#define SPILLWAY_EXEC_NETWORK_GRAPH_LAYER_H

#include "exec/network/graph_value.h"

/* Computes the layer's results, and copies what crosses it. */
void graph_layer_forward(const struct graph_pass *pass, uint64_t layer);

/* Computes the gradients of what the layer reads from earlier ones, and makes the steps of its parameters. */
void graph_layer_back(const struct graph_pass *pass, uint64_t layer);

#endif
