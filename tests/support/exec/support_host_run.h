/* Plans a job for devices of the host, and carries the plan out. */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_HOST_RUN_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_HOST_RUN_H

#include "exec/run/run.h"

/* Makes a machine of `devices` devices of the host, each with 16 MiB and `threads` threads. */
void host_run_machine(struct hardware *out, uint32_t devices, uint32_t threads);

struct host_run_options {
    const char *policy; /* NULL: the planner's default */
    uint32_t shards;
    const char *folder;  /* of a checkpoint after each minibatch; NULL: none */
    uint64_t delay_seed; /* of random pauses, 0: none */
    const char *what;    /* begins the message of a failure; may be NULL */
};

struct host_run {
    struct plan plan;
    struct run_result result;
    struct trace trace;
};

/* Plans the jobs, the first of which may be parallel, checks the plan, and carries it out with NaN in memory that was
 * released. Takes machine and jobs over. Fails the test with the message of the planner or the executor. The caller
 * releases `out`. */
void host_run(struct hardware *hardware, struct job_set *jobs, const struct host_run_options *options,
              struct host_run *out);
void host_run_release(struct host_run *run);

#endif
