/*
 * What the ranks of a run in several processes saw of it, brought to rank 0 at the end, whose report it is: the busy
 * times of streams, the first and last times of jobs, the memory of devices, how late paced work was, and the load.
 *
 * Ranks on one machine see each other's work as that of other programs. Rank 0 counts what those of its own machine
 * used as the run's.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/try.h"
#include "exec/run/run_ranks.h"

enum { HOST_BYTES = 64 };

struct job_times {
    double start_s, end_s; /* end_s: 0 before there is an operation */
};

struct rank_report {
    struct device_pacing pacing;
    struct load load;
    char host[HOST_BYTES];
};

/* What a rank sends. Each fills in what it has. */
struct rank_parts {
    struct rank_report *report;
    double *busy_s;               /* by plan_stream() */
    struct job_times *times;      /* by job */
    struct device_memory *memory; /* by device */
};

static struct rank_report own_report(const struct run_result *result)
{
    struct rank_report report = {.pacing = result->pacing, .load = result->load};
    if (gethostname(report.host, sizeof report.host - 1) != 0) report.host[0] = '\0';
    return report;
}

/* Returns the rank that has a stream. The streams of a host are of the rank of its first device. */
static uint32_t rank_of_stream(const struct run *run, uint32_t stream)
{
    const struct plan *const plan = run->plan;
    const uint32_t of_devices = plan->hardware.device_count * plan_device_streams(plan);
    if (stream < of_devices) return run->peers->rank_of[stream / plan_device_streams(plan)];
    const uint32_t host = (stream - of_devices) / plan_host_streams(plan);
    uint32_t device = 0;
    while (device + 1 < plan->hardware.device_count && plan->hardware.devices[device].host != host) device++;
    return run->peers->rank_of[device];
}

static void add_job_times(struct trace_job *job, const struct job_times *times)
{
    if (times->end_s <= 0) return;
    job->start_s = job->end_s > 0 ? fmin(job->start_s, times->start_s) : times->start_s;
    job->end_s = fmax(job->end_s, times->end_s);
}

static void find_makespan(struct trace *trace)
{
    double first_s = INFINITY, last_s = -INFINITY;
    for (uint32_t j = 0; j < trace->job_count; j++) {
        if (trace->jobs[j].end_s <= 0) continue;
        first_s = fmin(first_s, trace->jobs[j].start_s);
        last_s = fmax(last_s, trace->jobs[j].end_s);
    }
    if (last_s >= first_s) trace->makespan_s = last_s - first_s;
}

static void add_report(struct run_result *result, const struct rank_report *theirs, const char *host)
{
    result->pacing.asked_s += theirs->pacing.asked_s;
    result->pacing.late_s += theirs->pacing.late_s;
    if (strcmp(theirs->host, host) != 0) return;
    result->load.own += theirs->load.own;
    result->load.others = fmax(0, result->load.others - theirs->load.own);
    result->load.waited += theirs->load.waited;
}

/* Transfers a rank's parts to rank 0. */
static enum status move(struct run *run, uint32_t rank, const struct rank_parts *parts, struct error *err)
{
    const struct plan *const plan = run->plan;
    const struct {
        void *at;
        uint64_t bytes;
    } all[] = {{parts->report, sizeof *parts->report},
               {parts->busy_s, plan_stream_count(plan) * sizeof *parts->busy_s},
               {parts->times, plan->jobs.count * sizeof *parts->times},
               {parts->memory, plan->hardware.device_count * sizeof *parts->memory}};
    const bool sends = run->peers->own > 0;
    for (uint32_t i = 0; i < ARRAY_COUNT(all); i++) {
        const struct run_peers_data data = {.what = PEERS_REPORT, .number = rank * (uint32_t)ARRAY_COUNT(all) + i,
                                            .other = sends ? 0 : rank, .sends = sends, .at = all[i].at,
                                            .bytes = all[i].bytes};
        TRY(run_peers_move(run, &data, run->peers->moved, err));
    }
    return STATUS_OK;
}

/* Sends what this rank has. */
static enum status send_parts(struct run *run, const struct trace *trace, const struct rank_parts *parts,
                              struct error *err)
{
    const struct run_result *const result = run->result;
    *parts->report = own_report(result);
    memcpy(parts->busy_s, result->busy_s, plan_stream_count(run->plan) * sizeof *parts->busy_s);
    for (uint32_t j = 0; j < trace->job_count; j++)
        parts->times[j] = (struct job_times){trace->jobs[j].start_s, trace->jobs[j].end_s};
    for (uint32_t d = 0; d < run->plan->hardware.device_count; d++) parts->memory[d] = result->devices[d].taken;
    return move(run, run->peers->own, parts, err);
}

/* Adds to rank 0's result what another rank has. */
static void take_parts(struct run *run, uint32_t rank, const struct rank_parts *parts)
{
    struct run_result *const result = run->result;
    for (uint32_t s = 0; s < plan_stream_count(run->plan); s++)
        if (rank_of_stream(run, s) == rank) result->busy_s[s] = parts->busy_s[s];
    for (uint32_t d = 0; d < run->plan->hardware.device_count; d++)
        if (run->peers->rank_of[d] == rank) result->devices[d].taken = parts->memory[d];
}

enum status run_ranks_gather_report(struct run_loop *loop, struct trace *trace, struct error *err)
{
    struct run *const run = loop->run;
    struct arena *const arena = &run->result->arena; /* until the ranks are left */
    struct rank_parts parts;
    if (!run->peers) return STATUS_OK;
    TRY(ARENA_NEW(arena, 1, parts.report, err));
    TRY(ARENA_NEW(arena, plan_stream_count(run->plan), parts.busy_s, err));
    TRY(ARENA_NEW(arena, run->plan->jobs.count, parts.times, err));
    TRY(ARENA_NEW(arena, run->plan->hardware.device_count, parts.memory, err));
    if (run->peers->own > 0) return send_parts(run, trace, &parts, err);
    const struct rank_report own = own_report(run->result);
    for (uint32_t r = 1; r < run->peers->count; r++) {
        TRY(move(run, r, &parts, err));
        parts.report->host[HOST_BYTES - 1] = '\0';
        add_report(run->result, parts.report, own.host);
        take_parts(run, r, &parts);
        for (uint32_t j = 0; j < trace->job_count && !loop->ended; j++) add_job_times(&trace->jobs[j], &parts.times[j]);
    }
    if (!loop->ended) find_makespan(trace);
    return STATUS_OK;
}
