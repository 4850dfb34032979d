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

#include "base/try.h"
#include "exec/run/run_ranks.h"

enum { HOST_BYTES = 64 };

struct job_times {
    double start_s, end_s; /* end_s: 0 before there is an operation */
};

/* A rank's report; times by plan_stream() and by job, memory by device. Each rank has its own values, and sets no
 * others. */
struct rank_report {
    struct device_pacing pacing;
    struct load load;
    char host[HOST_BYTES];
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

/* One transfer of this rank's part to rank 0. */
static enum status move(struct run *run, uint32_t number, uint32_t rank, void *at, uint64_t bytes, struct error *err)
{
    const struct run_peers_data data = {.what = PEERS_REPORT, .number = number, .other = rank,
                                        .sends = run->peers->own > 0, .at = at, .bytes = bytes};
    return run_peers_move(run, &data, run->peers->moved, err);
}

enum status run_ranks_gather_report(struct run_loop *loop, struct trace *trace, struct error *err)
{
    enum { REPORT, STREAMS, JOBS, DEVICES, PARTS };
    struct run *const run = loop->run;
    struct run_result *const result = run->result;
    if (!run->peers) return STATUS_OK;
    const uint32_t streams = plan_stream_count(run->plan), jobs = trace->job_count;
    const uint32_t devices = run->plan->hardware.device_count;
    struct rank_report *report; /* all live until the ranks are left */
    struct job_times *job_times;
    struct device_memory *memory;
    double *busy_s;
    TRY(ARENA_NEW(&result->arena, 1, report, err));
    TRY(ARENA_NEW(&result->arena, streams, busy_s, err));
    TRY(ARENA_NEW(&result->arena, jobs, job_times, err));
    TRY(ARENA_NEW(&result->arena, devices, memory, err));
    const struct {
        void *at;
        uint64_t bytes;
    } parts[PARTS] = {[REPORT] = {report, sizeof *report},
                      [STREAMS] = {busy_s, streams * sizeof *busy_s},
                      [JOBS] = {job_times, jobs * sizeof *job_times},
                      [DEVICES] = {memory, devices * sizeof *memory}};
    const struct rank_report own = own_report(result);
    const bool first = run->peers->own == 0;
    if (!first) {
        *report = own;
        memcpy(busy_s, result->busy_s, streams * sizeof *busy_s);
        for (uint32_t j = 0; j < jobs; j++)
            job_times[j] = (struct job_times){trace->jobs[j].start_s, trace->jobs[j].end_s};
        for (uint32_t d = 0; d < devices; d++) memory[d] = result->devices[d].taken;
    }
    for (uint32_t r = first ? 1 : run->peers->own; r < (first ? run->peers->count : run->peers->own + 1); r++) {
        for (uint32_t i = 0; i < PARTS; i++)
            TRY(move(run, r * PARTS + i, first ? r : 0, parts[i].at, parts[i].bytes, err));
        if (!first) return STATUS_OK;
        report->host[HOST_BYTES - 1] = '\0';
        add_report(result, report, own.host);
        for (uint32_t s = 0; s < streams; s++)
            if (rank_of_stream(run, s) == r) result->busy_s[s] = busy_s[s];
        for (uint32_t d = 0; d < devices; d++)
            if (run->peers->rank_of[d] == r) result->devices[d].taken = memory[d];
        for (uint32_t j = 0; j < jobs && !loop->ended; j++) add_job_times(&trace->jobs[j], &job_times[j]);
    }
    if (!loop->ended) find_makespan(trace);
    return STATUS_OK;
}
