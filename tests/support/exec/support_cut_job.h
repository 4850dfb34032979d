/*
 * Jobs cut over several devices, for tests that carry them out: networks of all families, cuts, plans, runs, and what
 * runs of one job have in common.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_CUT_JOB_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_CUT_JOB_H

#include "exec/run/run.h"

enum {
    CUT_JOB_STEPS = 3, CUT_JOB_STEPS_MOST = 12, CUT_JOB_DEVICES = 12, CUT_JOB_CONFIGS = 5, CUT_JOB_FAMILIES = 14,
    JOB_CUTS = 16, JOB_CUTS_REPLICATED = 11
};

/* A network of each family; GPT-2 with a tied table and without. */
extern const char *const cut_job_configs[CUT_JOB_CONFIGS];

/* More families: windows, biases, norms of heads and of results, caps, GELU, ReLU; parts side by side; experts. */
extern const char *const cut_job_families[CUT_JOB_FAMILIES];

/* Stages, chunks on each, buckets, schedule, replicas. */
struct job_cut {
    uint32_t pipeline, chunks, buckets, schedule, data;
};
extern const struct job_cut job_cuts[JOB_CUTS];                       /* of one replica */
extern const struct job_cut job_cuts_replicated[JOB_CUTS_REPLICATED]; /* of 2 and 4 replicas, 2 first */

struct cut_job {
    const char *config;
    uint64_t microbatches, first; /* first: minibatches already done */
    double clip;                  /* 0: none */
    double rate;                  /* of learning; 0: 0.01 */
    bool diverges;                /* weights overflow after a few steps */
    uint64_t every, held_out;     /* minibatches between evaluations, 0: none; and of each */
    bool keeps_best;              /* the weights of the best evaluation */
    uint32_t precision;
    const struct job_cut *cut;        /* NULL: one device, spilled, or as `parallel` */
    const struct parallel *parallel;  /* with more than `cut` has; NULL: as `cut` */
    uint64_t steps;                   /* minibatches of the training; 0: CUT_JOB_STEPS */
    uint32_t recompute, zero, prefetch, moments, optimizer;
    uint32_t tensor;              /* devices of a tensor group; 0: 1 */
    uint32_t gradients;           /* PRECISION_BF16: replicas exchange 16 bits */
    double ratio, kept_ratio;     /* of compressed gradients, and of activations; 0: none */
    bool blocking, tree, offload; /* offload: the host updates ... */
    bool weights_below;           /* ... and weights come up for each pass ... */
    bool stored;                  /* ... from storage ... */
    bool swaps, chooses;          /* ... and activations, or they are recomputed as the planner chooses */
    bool scatters;                /* members of a tensor group send parts of boundaries */
    uint64_t device_bytes;        /* of each device; 0: enough */
    uint32_t slices, slice_tokens[PARALLEL_SLICES_MAX]; /* of terapipe; 0: the planner's choice */
    uint32_t devices;             /* of the machine; 0: CUT_JOB_DEVICES */
    struct network_freeze freeze;
    struct job_adapter adapter;
};

struct cut_job_outcome {
    double losses[CUT_JOB_STEPS_MOST], norms[CUT_JOB_STEPS]; /* norms: where a test reads them */
    struct evaluation_progress evaluations[CUT_JOB_STEPS_MOST];
    uint64_t evaluation_count;
    uint64_t fingerprint, kept_fingerprint, minibatches; /* kept: of the best evaluation; 0: none */
};

/* Plans the job and checks the plan. Fails the test if that is not possible. */
void cut_job_plan(const struct cut_job *s, struct plan *plan);

/* Carries the plan out, checks its trace if there is one, and releases the plan. */
void cut_job_run(struct plan *plan, const struct run_options *options, struct cut_job_outcome *out);

/* Fails the test unless losses, evaluations and weights have the same bits. */
void cut_job_same(const struct cut_job_outcome *wanted, const struct cut_job_outcome *found, const struct cut_job *s);

/* Returns true if jobs of this network may clip: bert and vit do not. */
bool cut_job_clips(const char *config);

/* Draws a job of one replica, number n of a seed. */
struct cut_job cut_job_draw(uint64_t seed, uint64_t n, const char *config);

#endif
