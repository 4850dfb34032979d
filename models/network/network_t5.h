/*
 * T5: an encoder, and a decoder that attends to the encoder's result.
 *
 *     layer 0              token embeddings of both sequences, from one table
 *     1 ... E              encoder: attention without a mask, feed-forward part
 *     E + 1 ... E + D      decoder: causal attention, attention to the encoder's result, feed-forward part. The first
 *                          of these layers norms the encoder's result; later layers read the normed result too
 *     E + D + 1            head: the decoder's norm, logits, loss
 *
 * Norms are root-mean-square norms before their sublayers; there are no biases. Positions are distances: the first
 * block of each stack (in umT5 every block) has a table of `relative_buckets` rows, one number per head, which all
 * blocks' attention adds to its scores. The feed-forward part is fc, relu, fc2 (v1.0) or has a gate (v1.1, Flan-T5,
 * mT5, umT5, ByT5).
 *
 * Boundaries. Rows of both sequences travel together through all layers, R = B (Te + Td): the decoder's embeddings
 * come from layer 0, and its blocks read the encoder's result, which Megatron-LM likewise sends from stage to stage
 * (with a second token table at the decoder's first stage). Rows that a layer only passes on cost no work and no
 * activations.
 *
 * Attention from Td queries to Te keys is counted in squares by Euclid's algorithm: floor(a / b) squares of the
 * shorter side, then the same for the rest. The FLOPs equal the rectangle's (up to T5_SQUARES_MAX sizes; the rest,
 * under a thousandth, is rounded up); the bytes are one to two times the minimum: the sides add up to a + b - gcd(a,
 * b).
 *
 * Not modelled: relative positions in the scores and their tables of a few KiB, dropout. relus count as GELUs.
 *
 * Source: Raffel et al., arXiv 1910.10683, section 2.1; modeling_t5.py and modeling_mt5.py of transformers 4.57;
 * Shazeer, arXiv 2002.05202, for the gate.
 */
#ifndef SPILLWAY_MODELS_NETWORK_NETWORK_T5_H
#define SPILLWAY_MODELS_NETWORK_NETWORK_T5_H

#include "models/network/network.h"

/* Their areas add up to a rectangle's. */
enum { T5_SQUARES_MAX = 12 };
struct network_square {
    uint64_t side, count;
};

/* Returns the number of sizes. a and b are not 0. */
uint32_t network_squares(uint64_t a, uint64_t b, struct network_square out[T5_SQUARES_MAX]);

/* Returns the decoder's tokens for `sequence` encoder tokens; 0 without an encoder. */
uint64_t network_decoder_tokens(const struct network *network, uint64_t sequence);

/* Sets that the encoder has `sequence` tokens, the decoder `decoder_tokens`. Errors: STATUS_BAD_INPUT for a network
 * without an encoder. */
MUST_CHECK enum status network_set_decoder(struct network *network, uint64_t sequence, uint64_t decoder_tokens,
                                           struct error *err);

/* Tensors are named "encoder.block.3." or "decoder.block.0.". */
struct t5_place {
    const char *stack;
    uint64_t block; /* in the stack */
    bool crosses, joins;
    bool tables; /* of relative positions */
};
struct t5_place network_t5_place(const struct network *network, uint64_t block);

#endif
