/*
 * T5: an encoder of tokens, and a decoder that attends to its result.
 *
 *     layer 0              words of both sequences, from one table
 *     1 ... E              encoder: attention without a mask, feed-forward part
 *     E + 1 ... E + D      decoder: causal attention, attention to the encoder's result, feed-forward part; the first of
 *                          them norms that result, which all behind it read as well
 *     E + D + 1            head: the decoder's norm, words, loss
 *
 * All norms are of the root mean square and stand in front; nothing has a bias. Positions are distances: each stack's
 * first block has a table of `relative_buckets` rows, a number for each head, which the attention of all blocks of the
 * stack adds to its scores; in umT5 every block has one of its own. The feed-forward part is fc, relu, fc2 (v1.0) or has a
 * gate (v1.1, Flan-T5, mT5, umT5, ByT5).
 *
 * What passes between two layers. The decoder's words come from layer 0, and every block of the decoder reads the
 * encoder's result, so the rows of both sequences travel together through all layers: R = B (Te + Td) rows of a boundary,
 * as Megatron-LM sends the encoder's result along from stage to stage of the decoder. (It has a second table of words at
 * the decoder's first stage instead of sending the decoder's rows through the encoder.) Rows that a layer only passes on
 * cost it neither work nor activations; their gradients come back the same way, with those of cross attention added up.
 *
 * Attention from Td queries to Te keys is counted in squares, the kernels' own shape, as Euclid's algorithm finds them:
 * floor(a / b) squares of the shorter side, then the same of what is left. The FLOPs are those of the rectangle exactly (up
 * to SQUARES_MAX sizes; what then is left, under a thousandth, is rounded up), and the bytes between one and two times
 * those that must cross: the sides of the squares add up to a + b - gcd(a, b). Equal lengths are one square.
 *
 * Not modelled: relative positions in the scores (a look-up and a sum inside attention, and the tables, a few KiB, that
 * travel along), dropout; relus count as GELUs.
 *
 * Source: Raffel et al., arXiv 1910.10683, section 2.1; modeling_t5.py and modeling_mt5.py of transformers 4.57; Shazeer,
 * arXiv 2002.05202, for the gate.
 */
#ifndef SPILLWAY_MODELS_NETWORK_T5_H
#define SPILLWAY_MODELS_NETWORK_T5_H

#include "models/network/network.h"

/* Squares whose areas add up to that of a rectangle. */
enum { SQUARES_MAX = 12 };
struct square {
    uint64_t side, count;
};

/* Of a x b; returns how many sizes. a and b are not 0. */
uint32_t network_squares(uint64_t a, uint64_t b, struct square out[SQUARES_MAX]);

/* Tokens per sample of the decoder behind an encoder's `sequence`; 0: there is no encoder. */
uint64_t network_decoder_tokens(const struct network *network, uint64_t sequence);

/* The network of a job whose encoder has `sequence` tokens and whose decoder has so many.
 * Errors: STATUS_BAD_INPUT for a network without an encoder. */
MUST_CHECK enum status network_set_decoder(struct network *network, uint64_t sequence, uint64_t decoder_tokens,
                                           struct error *err);

/* Names of a block's tensors begin with its stack's: "encoder.block.3." or "decoder.block.0.". */
struct t5_place {
    const char *stack;
    uint64_t block; /* in the stack */
    bool crosses, joins;
    bool tables; /* has a table of relative positions */
};
struct t5_place network_t5_place(const struct network *network, uint64_t block);

#endif
