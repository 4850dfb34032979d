/*
 * A slow reference of parallel jobs, and runs that are compared with it, bit by bit.
 *
 * The reference computes one microbatch after the other over all chunks, without a plan. For update u each stage computes
 * with its own weights after max(u - s, F) updates: s is the number of later stages with pipedream, 1 with 2bw, 0 with
 * synchronous schedules, and F the updates before the last flush. Replicas' gradients are added in their order; the numbers
 * of replicas of stages may be unequal. Evaluations, which follow flushes, pass forward with the newest weights.
 *
 * Compressed boundaries, and gradients that replicas exchange in a code (exec/kernels/kernels_code.h), are rounded by
 * frexp() and ldexp() in double.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_REFERENCE_RUN_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_REFERENCE_RUN_H

#include "exec/run/run.h"

enum { REFERENCE_CONFIGS = 4, REFERENCE_DEVICES = 12, REFERENCE_UPDATES_MAX = 20 };

/* A network of each family, without a tied table. */
extern const char *const reference_configs[REFERENCE_CONFIGS];

struct reference_outcome {
    double losses[REFERENCE_UPDATES_MAX];
    double held_out[REFERENCE_UPDATES_MAX + 1]; /* after so many updates; NaN: not evaluated */
    uint64_t fingerprints[REFERENCE_UPDATES_MAX + 1]; /* after 0, 1, 2, ... updates */
};

/* Draws a job in an asynchronous schedule, number n of a seed. */
struct job reference_draw(uint64_t seed, uint64_t n, const struct job *from);

void reference_describe(const struct job *job, const char *config, char what[200]);

/* Plans the job for devices of the host, and checks the plan. */
void reference_plan(const struct job *wanted, const char *config, struct plan *plan);

/* Trains the job. */
void reference_follow(const struct job *job, struct reference_outcome *out);

/* Rounds numbers to a code and back. */
void reference_round(enum compression_code code, float *x, uint64_t count);

/* Runs the job and compares losses, evaluations and weights with the reference's. Returns the seconds that it took. */
double reference_run(const struct job *job, const char *config, const struct run_options *options, const char *what,
                     const struct reference_outcome *wanted);

#endif
