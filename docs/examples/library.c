/*
 * Spillway as a library: one step of a job on one machine, in several ways of parallelism, each in a thread of its own.
 *
 *     cc -std=c11 docs/examples/library.c $(pkg-config --cflags --libs spillway) -pthread -o library
 *     ./library docs/examples/parallel.json '8x a100-sxm4-80gb' pp=4 pp=4,dp=2 dp=8,v=12,zero=3
 *
 * Nothing in the library is shared between calls: each thread has its machine, jobs, plan and error.
 */
#include <pthread.h>
#include <stdio.h>

#include "models/hardware/hardware.h"
#include "models/jobs/jobs_file.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"

enum { WAYS_MAX = 16 };

struct way {
    const char *jobs, *machine, *degrees;
    double makespan_s;
    struct error err; /* zeroed: it went well */
};

/* Zeroed structs are empty, so whatever happened all of them may be released. */
static void *simulate(void *argument)
{
    struct way *way = argument;
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct plan plan = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    const struct planner_options planned = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    const struct sim_options simulated = {.record_spans = false};
    enum status status = hardware_find(way->machine, &hardware, &way->err);
    if (status == STATUS_OK) status = job_set_read(way->jobs, &jobs, &way->err);
    if (status == STATUS_OK) status = parallel_parse_text(way->degrees, &jobs.jobs[0].parallel, &way->err);
    if (status == STATUS_OK) status = planner_plan(&hardware, &jobs, &planned, &plan, &way->err);
    if (status == STATUS_OK) status = sim_run(&plan, &simulated, &result, &trace, &way->err);
    way->makespan_s = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    job_set_release(&jobs);
    hardware_release(&hardware);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[WAYS_MAX];
    struct way ways[WAYS_MAX] = {{0}};
    int count = argc - 3, code = 0;
    if (count < 1 || count > WAYS_MAX) {
        fprintf(stderr, "usage: library JOBS MACHINE DEGREES... (at most %d)\n", WAYS_MAX);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        ways[i] = (struct way){.jobs = argv[1], .machine = argv[2], .degrees = argv[3 + i]};
        if (pthread_create(&threads[i], NULL, simulate, &ways[i])) return 3;
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        if (ways[i].err.status == STATUS_OK) printf("%-20s %.6g s\n", ways[i].degrees, ways[i].makespan_s);
        else fprintf(stderr, "%s: %s\n", ways[i].degrees, ways[i].err.text);
        if (ways[i].err.status != STATUS_OK) code = error_exit_code(ways[i].err.status);
    }
    return code;
}
