/*
 * A rank's part of a tensor that a tensor group has cut (network_slice()).
 *
 * Seen as (outer, joined, size, inner), a tensor is cut along `size`: rank t has [t part, (t + 1) part) of it. A part
 * is padded where `part` does not divide `size`, as with vocabularies. Tensors that all ranks have whole have one part.
 *
 *     gpt2's c_attn.weight (C, 3HD), three joined tensors:       llama's q_proj.weight (HD, C):
 *     outer C, joined 3, size HD, inner 1                        outer 1, joined 1, size HD, inner C
 *
 *         | q0 q1 | k0 k1 | v0 v1 |   rank 0: | q0 | k0 | v0 |       | rank 0 |
 *         | q0 q1 | k0 k1 | v0 v1 |           | q0 | k0 | v0 |       | rank 1 |
 *
 * Where a rank's part has several pieces ("tensor_pieces"), each is cut like the part of a rank of a larger group.
 */
#ifndef SPILLWAY_MODELS_NETWORK_TENSOR_SHARE_H
#define SPILLWAY_MODELS_NETWORK_TENSOR_SHARE_H

#include "models/network/network.h"

struct tensor_share {
    uint64_t outer, joined, size, inner;
    uint64_t part;    /* of `size`, in each piece */
    uint32_t pieces;  /* of a rank, one after the other */
    bool cut;         /* else every rank has all */
};

/* Returns how ranks share a tensor, from its specification in the network and in a piece of the network
 * (network_piece()). `pieces`: of each rank; 0: its part is one. */
struct tensor_share tensor_share_of(const struct tensor_spec *whole, const struct tensor_spec *piece, uint32_t pieces);

/* The range of `size` that a rank has; it may be empty. */
struct tensor_range {
    uint64_t first, count;
};
struct tensor_range tensor_share_range(uint64_t size, uint64_t part, uint32_t rank);

/* Copy between a whole tensor and consecutive numbers `of` a rank's part, of `number_bytes` each; `part` has only
 * these. The padding of a part is not touched. */
void tensor_share_cut(const struct tensor_share *share, uint32_t rank, uint64_t number_bytes, struct tensor_range of,
                      void *part, const void *whole);
void tensor_share_join(const struct tensor_share *share, uint32_t rank, uint64_t number_bytes, struct tensor_range of,
                       const void *part, void *whole);

#endif
