/*
 * The needs and costs of a shard, layers [first, first + count) of a job, on one kind of device: bytes by kind and
 * seconds by pass. All from models/, cached, and shared by jobs of the same network.
 */
#ifndef SPILLWAY_PLANNER_SPILL_CUT_FOOTPRINT_H
#define SPILLWAY_PLANNER_SPILL_CUT_FOOTPRINT_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "models/job/memory.h"
#include "planner/plan.h"

struct footprint {
    uint64_t weight_bytes;     /* first in the state: the weights that passes read */
    uint64_t value_bytes;      /* first in the state: values in full precision */
    uint64_t state_bytes;
    uint64_t frozen_bytes, trained_bytes; /* of the state: what updates never change, and the rest, which comes after
                                             it */
    bool goes_back;            /* has a backward pass: not all layers up to its last one are frozen */
    uint64_t gradient_bytes;   /* of the trained parameters, fp32; also of kept values */
    uint64_t kept_bytes[ACTIVATIONS_COUNT]; /* kept for the backward pass, by enum plan_activations */
    uint64_t input_bytes;      /* input boundary; 0 for layer 0 */
    uint64_t output_bytes;     /* output boundary; 0 after the last layer */
    uint64_t workspace_bytes[3][UNIT_WAYS]; /* by enum unit_pass and how */
    double forward_s;
    double backward_s[ACTIVATIONS_COUNT]; /* by enum plan_activations; with the update */
    double loss_s[2]; /* with all activations, and with inputs of layers only; with the update */
    double update_s; /* the update only */
    /* on the host's processor; 0 where hardware_has_cpu() is false */
    double cpu_update_s;
    double cpu_norm_s; /* of a job that clips, else 0 */
    double cpu_forward_s, cpu_backward_s; /* of an embedding that footprint_can_slice(), or of layers whose kept outputs
                                             are taken; with the update, unless it clips */
};

struct footprints; /* opaque */

MUST_CHECK enum status footprints_create(const struct hardware *hardware,
                                         const struct job_set *jobs, struct footprints **out,
                                         struct error *err);
void footprints_destroy(struct footprints *footprints);

/* Tells the cache that the machine and jobs were moved into a plan. */
void footprints_rebind(struct footprints *footprints, const struct hardware *hardware,
                       const struct job_set *jobs);

/* Borrowed until the next call; NULL without memory. */
const struct footprint *footprint_of(struct footprints *footprints, uint32_t job,
                                     uint64_t first_layer, uint64_t layer_count);

/* Returns the lowest job with equal footprints: the same network, sizes and optimizer. */
uint32_t footprint_twin(const struct footprints *footprints, uint32_t job);

/* --- the embedding --------------------------------------------------------------------------- */

/* Returns true if the first layer is a shard of its own, updated by rows. */
bool footprint_has_embedding(const struct job *job);
/* Returns true if a tied head reads the token table and hands its gradient to the embedding. */
bool footprint_has_table(const struct job *job);
uint64_t footprint_embedding_rows(const struct job *job); /* as network_table_rows() */
uint64_t footprint_table_row_bytes(const struct job *job); /* C numbers, in the precision of the passes */
uint64_t footprint_table_bytes(const struct job *job);    /* V such rows */
uint64_t footprint_table_gradient_bytes(const struct job *job); /* V * C * 4; 0 where it is frozen */
/* Returns true if the embedding may be cut into rows: passes only gather and add up rows, which the host's processor
 * does as well. */
bool footprint_can_slice(const struct job *job);
/* False for a profile: its parameters are not known well enough. */
bool footprint_can_use_cpu(const struct job *job);

#endif
