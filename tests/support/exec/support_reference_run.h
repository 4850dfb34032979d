/*
 * A slow reference of parallel jobs, and runs that are compared with it, bit by bit.
 *
 * The reference computes one microbatch after the other over all chunks, without a plan, and keeps every version of the
 * weights. For update u each chunk computes with its own weights after max(u - s, F) updates: s is the number of later
 * stages with pipedream, 1 with 2bw and with delayed updates, 0 with other schedules, and F the updates before the last
 * flush. With pipedream the last chunk's s is the first one's where both ends have a table, and every chunk's where the
 * job clips. Replicas' gradients are added in their order: after all microbatches, or after each where replicas split
 * gradients; the numbers of replicas of stages may be unequal. Evaluations, which follow flushes, pass forward with the
 * newest weights.
 *
 * Compressed boundaries and activations, and gradients that replicas exchange in a code (exec/kernels/kernels_code.h),
 * are rounded by frexp() and ldexp() in double.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_REFERENCE_RUN_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_REFERENCE_RUN_H

#include "exec/run/run.h"

enum { REFERENCE_DEVICES = 12, REFERENCE_REPLICAS_MAX = 4, REFERENCE_UPDATES_MAX = 20 };

struct reference_outcome {
    double losses[REFERENCE_UPDATES_MAX];
    double held_out[REFERENCE_UPDATES_MAX + 1]; /* after 0, 1, 2, ... updates; NaN: not evaluated */
    uint64_t fingerprints[REFERENCE_UPDATES_MAX + 1]; /* after 0, 1, 2, ... updates */
};

/* Trains the job. */
void reference_follow(const struct job *job, struct reference_outcome *out);

/* Rounds numbers to a code and back. */
void reference_round(enum compression_code code, float *x, uint64_t count);

/* --- cases ------------------------------------------------------------------------------------ */

/* Networks of each family; the first ones have no tied table. */
enum { REFERENCE_UNTIED = 4, REFERENCE_CONFIGS = 7 };
extern const char *const reference_configs[REFERENCE_CONFIGS];

/* Draws a job in an asynchronous schedule, number n of a seed. */
struct job reference_draw(uint64_t seed, uint64_t n, const struct job *from, bool may_clip);

/* Plans the job for devices of the host, and checks the plan. Fails the test if that is not possible. */
void reference_plan(const struct job *wanted, const char *config, struct plan *plan);

/* Carries the job out, and fails the test unless losses, evaluations and weights have the reference's bits. */
void reference_compare(const struct job *job, const char *config, uint64_t delay_seed);

/* Carries the job out in tensor groups, twice, with pauses and without, at a small learning rate. Fails the test unless
 * losses are the reference's to rounding and the runs have the same bits. */
void reference_compare_roughly(const struct job *drawn, const char *config, uint64_t delay_seed, uint32_t tensor);

/* Stops a run at some time of a whole one: it must have the bits of a shorter run. */
void reference_stop(const struct job *job, const char *config, uint64_t seed, uint64_t n);

/* Takes checkpoints wherever the job is flushed, and goes on from each with the bits of the whole run. */
void reference_resume(const struct job *job, const char *config, uint64_t delay_seed);

/* Fails the test unless checkpoints of the job are refused with this message. */
void reference_no_checkpoints(const struct job *job, const char *config, const char *message);

#endif
