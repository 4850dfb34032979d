/*
 * Jobs whose cuts change the order of sums: their runs have the losses and weights of the job spilled on one device, to
 * rounding.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_ROUGH_JOB_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_ROUGH_JOB_H

#include "exec/run/run.h"

enum { ROUGH_JOB_STEPS_MAX = 60, ROUGH_JOB_EVALUATIONS = 6 };

struct rough_job {
    const char *config;
    struct parallel parallel; /* tensor 0: spilled on one device */
    uint64_t microbatches, first, last; /* first: minibatches that are done; last: the job's minibatches */
    uint32_t precision;
    double clip;                  /* 0: none */
    uint64_t every, held_out;     /* minibatches between evaluations, 0: none; and of each */
    bool encodes;                 /* replicas exchange bf16 gradients, and stages bf16 boundaries where they may */
    double dilation;              /* 0: none; with paced links between devices */
};

struct rough_job_outcome {
    double losses[ROUGH_JOB_STEPS_MAX];
    uint64_t fingerprint, minibatches;
    struct evaluation_progress evaluations[ROUGH_JOB_EVALUATIONS];
    uint64_t evaluation_count;
    bool stopped;
};

char *rough_job_text(const struct rough_job *s, char text[256]);

/* Carries the job out with checkpoints in `folder`, if it is given; the second one until `stop` is set. Fails the test
 * unless plan and trace pass their checks. */
void rough_job_run(const struct rough_job *s, const char *folder, uint64_t delay_seed, struct rough_job_outcome *out);
void rough_job_run_until(const struct rough_job *s, const char *folder, uint64_t delay_seed, const volatile bool *stop,
                         struct rough_job_outcome *out);

/* Fail the test unless losses and evaluations, and all weights after the last step, are equal to rounding. */
void rough_job_compare(const struct rough_job *s, const struct rough_job_outcome *wanted,
                       const struct rough_job_outcome *found);
void rough_job_compare_checkpoints(const struct rough_job *s, const char *wanted, const char *found);

/* Fails the test unless losses, evaluations and weights have the same bits. */
void rough_job_same(const struct rough_job *s, const struct rough_job_outcome *wanted,
                    const struct rough_job_outcome *found);

/* Each of the cuts trains a minibatch and leaves the job to the next one; they must end as one device does. */
void rough_job_go_on(struct rough_job *s, const struct parallel *cuts, uint64_t count);

#endif
