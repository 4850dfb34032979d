/* What the files of a run share: run.c (the loop), run_setup.c (before and after it). */
#ifndef SPILLWAY_EXEC_RUN_STATE_H
#define SPILLWAY_EXEC_RUN_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/data.h"
#include "exec/device.h"
#include "exec/run.h"
#include "exec/run_log.h"
#include "exec/unit.h"

/* What the threads of the streams and the enqueueing one tell each other about a job; changed under
 * run.lock. */
struct run_progress {
    uint64_t begun;   /* minibatches of which a computation has started */
    atomic_uint_fast64_t limit; /* those from here on are left out; lowered once, by a stop */
    uint64_t losses;  /* on the host */
    double last_loss_s;
};

struct run {
    const struct plan *plan;
    const struct run_options *options;
    struct run_result *result;
    struct arena arena;

    uint32_t threads;
    uint64_t host_bytes;
    char *host;                  /* all host buffers in one block */
    uint64_t *host_offset;       /* per buffer; device buffers: 0 */
    struct device **devices;
    struct device *cpu;          /* the host's processor, without an arena; NULL: the plan has no use */
    struct device_stream **streams; /* by plan_stream() */
    struct unit_tables *tables;  /* per shard */
    struct memory_table *parameters; /* per shard: tables[i].parameters, as weights.h wants them */
    float **states;              /* per shard: its state on the host */
    struct data_source **sources; /* per job */
    struct run_log *log;

    pthread_mutex_t lock;
    struct run_progress *jobs;
    uint32_t last_job;           /* whose loss came last; PLAN_NONE */
    double last_loss;
    double start_s;              /* clock_s() when the first operation was enqueued */
};

static inline char *run_host_buffer(const struct run *run, uint32_t buffer)
{
    return run->host + run->host_offset[buffer];
}

/* Everything before the clock starts: checks, memory, devices, data, initial weights, the log. */
MUST_CHECK enum status run_setup(struct run *run, struct error *err);

/* Fingerprints, and the weights of jobs that completed a minibatch. */
MUST_CHECK enum status run_keep_weights(struct run *run, struct error *err);

/* Fine on a half-built one. */
void run_teardown(struct run *run);

#endif
