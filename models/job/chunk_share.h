/*
 * The shares that data-parallel replicas have of a chunk (ZeRO). One replica's share is the same for the sizes in
 * plans, their check, and the executor.
 *
 * A chunk's parameters are laid out like its gradient (models/job/chunk_memory.h) and cut into *sections*: a tied table
 * that the head multiplies by, all other parameters, and the head's own copy of the table or its part of the table's
 * gradient. Of each section, replica r of d has a contiguous range of ceil(n / d) parameters, rounded up to 64; the
 * last replicas' ranges may be shorter, or empty. Both ends of a tied table are cut alike, so that each replica has the
 * same rows of both. Frozen parameters are in no section: every replica has all of their weights or, with level 3, a
 * contiguous range of the bytes of each kind of section that is frozen, all of equal room.
 *
 *     section        [ table        | other layers                | head's table ]
 *     replica 0        ----           ---------                     ----
 *     replica 1            ----                ---------                ----
 *     replica 2                --                       ------              --
 *
 * A range of parameters is a contiguous range of every part of the state, also where tensors differ in precision
 * (memory_state_offset()). A replica's state is
 *
 *     levels 1, 2   [ frozen | all weights             | master | first moments | second moments ]
 *     level 3       [ frozen | weights                 | master | first moments | second moments ]
 *
 * with the share's ranges, section by section, of every part but `frozen` and `all weights` of levels 1 and 2, each on
 * a 64-byte boundary. All weights are those of the layers, then those of a copy of the table, frozen or not. From level
 * 2 on a replica's gradient has the ranges of all sections, each with the room of the largest.
 */
#ifndef SPILLWAY_MODELS_JOB_CHUNK_SHARE_H
#define SPILLWAY_MODELS_JOB_CHUNK_SHARE_H

#include "models/job/chunk_memory.h"

enum { CHUNK_SHARE_ROUNDING = 64 }; /* parameters */

/* A range of a part of the state: in bytes from the part's beginning, and from the beginning of the replica's state. */
struct chunk_share_part {
    uint64_t whole, here, bytes;
};

struct chunk_share {
    uint32_t count; /* of the chunk's sections */
    struct chunk_share_section {
        uint64_t first, count;    /* parameters */
        uint64_t gradient_offset; /* in bytes, in a replica's gradient that only has shares */
        struct chunk_share_part parts[STATE_PARTS]; /* bytes 0: not in the replica's state as a share */
    } sections[CHUNK_SECTIONS_MAX];
    struct chunk_share_part frozen[CHUNK_SECTIONS_MAX]; /* `whole`: from the beginning of all weights */
    uint64_t state_bytes; /* of the replica's state */
};

/* Returns the place of a range of trained weights among all weights that passes read, in the state or apart. */
static inline uint64_t chunk_share_place(const struct chunk_memory *memory, const struct chunk_share_part *part)
{
    return memory->splits_weights ? memory->frozen_bytes + part->whole : part->here;
}

/* Returns a replica's share. `memory` describes the chunk, whose replicas split states. */
struct chunk_share chunk_share(const struct job *job, struct parallel_layers layers, const struct chunk_memory *memory,
                               uint32_t rank);

/* Cuts the chunk into sections, if replicas split states, and sizes what each replica has. For chunk_memory(). */
void chunk_share_split(const struct job *job, struct parallel_layers layers, struct chunk_memory *memory);

#endif
