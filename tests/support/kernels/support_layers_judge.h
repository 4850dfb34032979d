/*
 * Layers in double, written number by number from the architectures, for the judges of all network families. They share
 * nothing with exec/. Arrays are row-major; `next` walks the parameters in the order of the network's tensors.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_KERNELS_SUPPORT_LAYERS_JUDGE_H
#define SPILLWAY_TESTS_SUPPORT_KERNELS_SUPPORT_LAYERS_JUDGE_H

#include <stdint.h>

#include "models/network/network.h"

enum { JUDGE_TOKENS_MAX = 64, JUDGE_WIDTH_MAX = 64 };

/* Returns the next `count` parameters and moves the cursor past them. */
const double *judge_next(const double **cursor, uint64_t count);

/* out(n) = w(n,k) in(k) + bias(n); bias NULL: none */
void judge_linear(double *out, const double *in, const double *w, const double *bias, uint64_t n, uint64_t k);

/* Layer normalization of a row; `out` may be `in`. */
void judge_norm(double *out, const double *in, const double *w, const double *b, uint64_t c, double epsilon);

double judge_gelu(double x);

void judge_add(double *row, const double *branch, uint64_t c);

/* Computes row i of attention without a mask. Heads are side by side: `out` and rows of q, k, v have n->heads *
 * n->head_width elements. */
void judge_attention(double *out, const double *q, const double *k, const double *v, uint64_t i, uint64_t t,
                     const struct network *n);

/* Returns the cross entropy of a row of c elements against `target`, with a table of words (words, c) and a bias
 * (may be NULL). */
double judge_word_loss(const double *row, const double *table, const double *bias, uint64_t words, uint64_t c,
                       int32_t target);

#endif
