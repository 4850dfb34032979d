/*
 * What a shard needs and costs: bytes by kind and seconds by pass of layers [first, first + count)
 * of a job, on one kind of device. All from models/; remembered, because the partitioner asks for
 * the same ranges again and again, and jobs of the same network ask alike.
 */
#ifndef SPILLWAY_PLANNER_FOOTPRINT_H
#define SPILLWAY_PLANNER_FOOTPRINT_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "models/job/memory.h"
#include "planner/plan.h"

struct footprint {
    uint64_t weight_bytes;     /* of the state, what passes read: its front */
    uint64_t value_bytes;      /* of the state, all values in full: its front */
    uint64_t state_bytes;
    uint64_t gradient_bytes;   /* of the parameters, fp32; also of values that are kept */
    uint64_t kept_bytes[ACTIVATIONS_COUNT]; /* for the backward pass, by enum plan_activations */
    uint64_t input_bytes;      /* boundary that enters; 0 for layer 0 */
    uint64_t output_bytes;     /* boundary that leaves; 0 behind the last layer */
    uint64_t workspace_bytes[3][UNIT_WAYS]; /* by enum unit_pass and how */
    double forward_s;
    double backward_s[ACTIVATIONS_COUNT]; /* by enum plan_activations; with the update */
    double loss_s[2]; /* holding all activations, and only the inputs of layers; with the update */
    double update_s; /* alone */
    /* on the host's processor; 0 where hardware_has_cpu() is false */
    double cpu_update_s;
    double cpu_norm_s; /* of a job that clips, else 0 */
    double cpu_forward_s, cpu_backward_s; /* of an embedding that job_slices(); the update included,
                                             unless the job clips */
};

struct footprints; /* opaque */

MUST_CHECK enum status footprints_create(const struct hardware *hardware,
                                         const struct job_set *jobs, struct footprints **out,
                                         struct error *err);
void footprints_destroy(struct footprints *footprints);

/* The same machine and jobs now live elsewhere (they were moved into a plan). */
void footprints_rebind(struct footprints *footprints, const struct hardware *hardware,
                       const struct job_set *jobs);

/* Borrowed until the next call. NULL when memory ended. */
const struct footprint *footprint_of(struct footprints *footprints, uint32_t job,
                                     uint64_t first_layer, uint64_t layer_count);

/* The lowest job of the same network, sizes and optimizer: what holds for it holds for `job`. */
uint32_t footprint_twin(const struct footprints *footprints, uint32_t job);

/* --- the embedding --------------------------------------------------------------------------- */

/* Networks whose first layer is a shard of its own, updated by rows. */
bool job_has_embedding(const struct job *job);
/* A tied head reads the token table and hands its gradient to the embedding. */
bool job_has_table(const struct job *job);
uint64_t job_embedding_rows(const struct job *job); /* as network_table_rows() */
uint64_t job_table_row_bytes(const struct job *job); /* C numbers, as the passes read them */
uint64_t job_table_bytes(const struct job *job);    /* V such rows */
uint64_t job_table_gradient_bytes(const struct job *job); /* V * C * 4 */
/* May the embedding be cut into ranges of rows? Then its passes only gather and add up rows, which
 * the host's processor does as well. */
bool job_slices(const struct job *job);
/* Are the parameters known well enough to update them elsewhere? Not those of a profile. */
bool job_can_use_cpu(const struct job *job);

#endif
