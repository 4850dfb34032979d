/*
 * The order of samples in an epoch: a permutation that depends only on (key, count), computed for one place at a time.
 *
 * A Feistel network of ROUNDS rounds permutes the numbers below a power of four; a result that is not below `count` is
 * permuted again until it is. Cost: on average fewer than four times ROUNDS mixes; nothing is stored.
 *
 * Sources: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002 (cycle walking).
 */
#ifndef SPILLWAY_MODELS_ROWS_ROWS_ORDER_H
#define SPILLWAY_MODELS_ROWS_ROWS_ORDER_H

#include <stdint.h>

/* Returns the element at `place` of the permutation of [0, count). place < count. */
uint64_t rows_order_at(uint64_t key, uint64_t count, uint64_t place);

#endif
