/*
 * T5: an encoder, and a decoder that attends to the encoder's result.
 *
 *     layer 0              token embeddings of both sequences, from one table
 *     1 ... E              encoder: attention without a mask, feed-forward part
 *     E + 1 ... E + D      decoder: causal attention, attention to the encoder's result, feed-forward part. The first
 *                          of these layers norms the encoder's result; later layers read the normed result too
 *     E + D + 1            head: the decoder's norm, logits, loss
 *
 * All norms are root-mean-square norms before their sublayers; there are no biases. Positions are distances: the
 * first block of each stack has a table of `relative_buckets` rows, with one number per head, which the attention of
 * all blocks in the stack adds to its scores. In umT5 every block has its own table. The feed-forward part is fc,
 * relu, fc2 (v1.0) or has a gate (v1.1, Flan-T5, mT5, umT5, ByT5).
 *
 * Boundaries between layers. The decoder's embeddings come from layer 0, and every block of the decoder reads the
 * encoder's result. The rows of both sequences therefore travel together through all layers: a boundary has R = B (Te
 * + Td) rows. Megatron-LM likewise sends the encoder's result from stage to stage of the decoder. (It has a second
 * token table at the decoder's first stage instead of sending the decoder's rows through the encoder.) Rows that a
 * layer only passes on cost no work and no activations. Their gradients return the same way; gradients of cross
 * attention are added up.
 *
 * Attention from Td queries to Te keys is counted in squares, the shape of the attention kernels. Euclid's algorithm
 * finds them: floor(a / b) squares of the shorter side, then the same for the rest. The FLOPs equal the rectangle's
 * exactly (up to SQUARES_MAX sizes; the rest, under a thousandth, is rounded up). The bytes are between one and two
 * times the minimum: the sides of the squares add up to a + b - gcd(a, b). Equal lengths give one square.
 *
 * Not modelled: relative positions in the scores (a look-up and a sum inside attention, and the tables, a few KiB,
 * that travel along), dropout. relus count as GELUs.
 *
 * Source: Raffel et al., arXiv 1910.10683, section 2.1; modeling_t5.py and modeling_mt5.py of transformers 4.57;
 * Shazeer, arXiv 2002.05202, for the gate.
 */
#ifndef SPILLWAY_MODELS_NETWORK_NETWORK_T5_H
#define SPILLWAY_MODELS_NETWORK_NETWORK_T5_H

#include "models/network/network.h"

/* Squares whose areas add up to the area of a rectangle. */
enum { SQUARES_MAX = 12 };
struct network_square {
    uint64_t side, count;
};

/* Cuts a rectangle of a x b into squares and returns the number of sizes. a and b are not 0. */
uint32_t network_squares(uint64_t a, uint64_t b, struct network_square out[SQUARES_MAX]);

/* Returns the decoder's tokens per sample for an encoder with `sequence` tokens; 0 when there is no encoder. */
uint64_t network_decoder_tokens(const struct network *network, uint64_t sequence);

/* Sets the network of a job whose encoder has `sequence` tokens and whose decoder has `decoder_tokens`.
 * Errors: STATUS_BAD_INPUT for a network without an encoder. */
MUST_CHECK enum status network_set_decoder(struct network *network, uint64_t sequence, uint64_t decoder_tokens,
                                           struct error *err);

/* The place of a block in its stack; names of its tensors begin with "encoder.block.3." or "decoder.block.0.". */
struct t5_place {
    const char *stack;
    uint64_t block; /* in the stack */
    bool crosses, joins;
    bool tables; /* has a table of relative positions */
};
struct t5_place network_t5_place(const struct network *network, uint64_t block);

#endif
