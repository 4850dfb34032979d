/*
 * A pass takes as long as on its stage's slowest device. For sends, each stage's first device represents all. The order
 * made from these times is the same if stages block while they fetch; the simulator times every device.
 */
#include "planner/parallel/parallel_job_times.h"

#include <inttypes.h>

#include "base/extreme.h"
#include "base/size.h"
#include "base/try.h"
#include "models/cost/collective_group.h"
#include "models/cost/cost.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"
#include "planner/pass_seconds.h"

struct parallel_job_times_view {
    const struct hardware *hardware;
    const struct job *job;
    const struct parallel *parallel;
    struct collective_finder finder;
    struct collective_group tensor_group, data_group; /* of the current stage; likewise ... */
    uint32_t *kinds, kind_count;                      /* ... one device of each of its types */
};

static uint32_t device_of(const struct parallel_job_times_view *v, uint32_t stage, uint32_t tensor, uint32_t data)
{
    const struct parallel *p = v->parallel;
    return p->first_device + tensor + p->tensor * (data + (uint32_t)parallel_replicas_before(p, stage));
}

static enum status fail_pair(const struct parallel_job_times_view *v, uint32_t from, uint32_t to, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT,
                     "job '%s' needs a way from device %" PRIu32 " to device %" PRIu32
                     ", and machine '%s' has none: they are on different hosts (--p2p-rate joins them)",
                     v->job->name, from, to, v->hardware->name);
}

static enum status check_pair(const struct parallel_job_times_view *v, uint32_t from, uint32_t to, struct error *err)
{
    return hardware_reaches(v->hardware, from, to) ? STATUS_OK : fail_pair(v, from, to, err);
}

/* Finds the first group along one axis of a stage, while all others communicate as well. */
static enum status find_group(const struct parallel_job_times_view *v, uint32_t stage, bool tensor, uint32_t *devices,
                              struct collective_group *groups, struct collective_group *out,
                              struct error *err)
{
    const struct parallel *p = v->parallel;
    uint32_t data = parallel_replicas(p, stage);
    uint32_t members = tensor ? p->tensor : data, count = tensor ? data : p->tensor, lacking[2];
    for (uint32_t g = 0; g < count; g++)
        for (uint32_t i = 0; i < members; i++)
            devices[g * members + i] = tensor ? device_of(v, stage, i, g) : device_of(v, stage, g, i);
    if (!collective_groups_find(&v->finder, devices, members, count, groups, lacking))
        return fail_pair(v, lacking[0], lacking[1], err);
    *out = groups[0];
    return STATUS_OK;
}

static void find_kinds(struct parallel_job_times_view *v, const uint32_t *devices, size_t count)
{
    const struct hardware_device *of = v->hardware->devices;
    v->kind_count = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < v->kind_count && of[v->kinds[k]].type != of[devices[i]].type) k++;
        if (k == v->kind_count) v->kinds[v->kind_count++] = devices[i];
    }
}

/* Fills in a stage's groups along both axes and its device types. */
static enum status enter_stage(struct parallel_job_times_view *v, struct arena *scratch, uint32_t stage,
                               struct error *err)
{
    size_t size = (size_t)v->parallel->tensor * parallel_replicas(v->parallel, stage);
    struct collective_group *groups;
    uint32_t *devices;
    enum status status = ARENA_NEW(scratch, size, devices, err);
    if (!status) status = ARENA_NEW(scratch, size, groups, err);
    if (!status) status = find_group(v, stage, true, devices, groups, &v->tensor_group, err);
    if (!status) status = find_group(v, stage, false, devices, groups, &v->data_group, err);
    if (!status) find_kinds(v, devices, size);
    return status;
}

static double collective_s(const struct parallel_job_times_view *v, const struct collective_group *group,
                           enum collective_kind kind, uint64_t bytes)
{
    return pass_seconds_collective(v->parallel, kind, group, bytes);
}

static double tensor_s(const struct parallel_job_times_view *v, struct parallel_layers layers, enum parallel_pass pass,
                       double compute_s)
{
    const struct pass_exchanges sum = pass_seconds_exchanges(v->job, &v->tensor_group, layers, pass);
    return sum.exposed_s + max_s(0, sum.beside_s - compute_s);
}

/* Returns the seconds on the stage's slowest device. */
static double slowest_s(const struct parallel_job_times_view *v, const struct job *job, struct parallel_layers layers,
                        enum parallel_pass pass)
{
    double seconds = 0;
    for (uint32_t k = 0; k < v->kind_count; k++)
        seconds = max_s(seconds, pass_seconds_parallel(v->hardware, v->kinds[k], job, layers, pass));
    return seconds;
}

/* Returns a microbatch's seconds over all slices. */
static double work_s(const struct parallel_job_times_view *v, struct parallel_layers layers, enum parallel_pass pass)
{
    double seconds = 0;
    for (uint32_t slice = 0; slice < (pass >= PARALLEL_UPDATE ? 1 : parallel_slices(v->parallel)); slice++) {
        struct job job = parallel_slice(v->job, slice);
        seconds += slowest_s(v, &job, layers, pass);
    }
    return seconds;
}

static double pass_s(const struct parallel_job_times_view *v, struct parallel_layers layers, enum parallel_pass pass,
                     double hidden_behind_s)
{
    return work_s(v, layers, pass) + tensor_s(v, layers, pass, hidden_behind_s);
}

static double gather_from_host_s(const struct parallel_job_times_view *v, uint32_t stage, struct parallel_layers layers)
{
    return cost_copy_s(v->hardware, device_of(v, stage, 0, 0), COPY_H2D,
                       parallel_host_state(v->job, layers).weight_bytes);
}

/* Returns a microbatch's exchanges: reducing gradients, gathering weights for both passes. */
static double exchange_s(const struct parallel_job_times_view *v, uint32_t stage, struct parallel_layers layers)
{
    struct rank_state whole = parallel_whole_state(v->job, layers);
    double reduce_s = 0, gather_s = 0;
    if (parallel_splits(v->parallel, ZERO_GRADIENTS))
        reduce_s = collective_s(v, &v->data_group, COLLECTIVE_REDUCE_SCATTER, whole.gradient_bytes);
    if (v->parallel->offload == OFFLOAD_WEIGHTS)
        gather_s = gather_from_host_s(v, stage, layers);
    else if (parallel_splits(v->parallel, ZERO_WEIGHTS))
        gather_s = collective_s(v, &v->data_group, COLLECTIVE_ALL_GATHER, whole.weight_bytes);
    return reduce_s + 2 * gather_s;
}

static double host_work_s(const struct parallel_job_times_view *v, struct parallel_layers layers,
                          enum parallel_pass pass)
{
    return pass_seconds_parallel(v->hardware, hardware_cpu(v->hardware), v->job, layers, pass);
}

/* Returns the seconds of sums and steps on the fullest host, one after the other. */
static double host_sums_and_steps_s(const struct parallel_job_times_view *v, uint32_t stage,
                                    struct parallel_layers layers)
{
    double sums = parallel_sums_on_host(v->job) ? (double)(v->job->microbatches / v->parallel->data) : 0;
    uint32_t size = v->parallel->tensor * v->parallel->data;
    uint32_t ranks = hardware_most_on_host(v->hardware, device_of(v, stage, 0, 0), size);
    return ranks *
           (host_work_s(v, layers, PARALLEL_UPDATE) + sums * host_work_s(v, layers, PARALLEL_SUM));
}

/* Returns the seconds between the sum over ranks and the copy up. */
static double host_update_s(const struct parallel_job_times_view *v, uint32_t stage, struct parallel_layers layers)
{
    double joined_s = parallel_joins_on_hosts(v->job)
                          ? collective_s(v, &v->data_group, COLLECTIVE_ALL_REDUCE,
                                         parallel_host_state(v->job, layers).gradient_bytes)
                          : 0;
    return joined_s + host_sums_and_steps_s(v, stage, layers) + gather_from_host_s(v, stage, layers);
}

static double update_s(const struct parallel_job_times_view *v, uint32_t stage, struct parallel_layers layers)
{
    double gradients_s = 0;
    if (parallel_offloads(v->parallel)) return host_update_s(v, stage, layers);
    if (!parallel_splits(v->parallel, ZERO_GRADIENTS))
        gradients_s = collective_s(v, &v->data_group, COLLECTIVE_ALL_REDUCE, parallel_reduced_bytes(v->job, layers)) +
                      work_s(v, layers, PARALLEL_ENCODE);
    return pass_s(v, layers, PARALLEL_UPDATE, 0) + gradients_s;
}

/* Checks the paths between all replicas that exchange microbatches. */
static enum status check_turns(const struct parallel_job_times_view *v, uint32_t stage, uint32_t next,
                               struct error *err)
{
    for (uint32_t d = 0; d < parallel_turns(v->parallel, stage); d++)
        for (uint32_t e = 0; e < parallel_turns(v->parallel, next); e++) {
            uint32_t from = device_of(v, stage, 0, d), to = device_of(v, next, 0, e);
            TRY(check_pair(v, from, to, err));
            TRY(check_pair(v, to, from, err));
        }
    return STATUS_OK;
}

static enum status chunk_times(const struct parallel_job_times_view *v, uint32_t chunk, struct pipeline_times *out,
                             struct error *err)
{
    const struct job *job = v->job;
    uint32_t stage = parallel_place(v->parallel, chunk).stage;
    struct parallel_layers layers = parallel_layers(job, chunk);
    double weight_s = work_s(v, layers, PARALLEL_WEIGHT);
    out->pass_s[PIPELINE_FORWARD] = pass_s(v, layers, PARALLEL_FORWARD, 0);
    out->pass_s[PIPELINE_INPUT] = pass_s(v, layers, PARALLEL_INPUT, weight_s);
    out->pass_s[PIPELINE_WEIGHT] = pass_s(v, layers, PARALLEL_WEIGHT, weight_s);
    out->pass_s[PIPELINE_BACKWARD] = out->pass_s[PIPELINE_INPUT] + out->pass_s[PIPELINE_WEIGHT];
    for (uint32_t pass = 0; pass < PIPELINE_PASSES; pass++) out->pass_s[pass] /= parallel_slices(v->parallel);
    if (chunk + 1 == parallel_chunks(v->parallel)) return STATUS_OK;
    uint32_t next = parallel_place(v->parallel, chunk + 1).stage;
    if (next == stage) return STATUS_OK;
    uint32_t from = device_of(v, stage, 0, 0), to = device_of(v, next, 0, 0);
    TRY(check_turns(v, stage, next, err));
    uint64_t last = layers.first + layers.count - 1;
    uint32_t slices = parallel_slices(v->parallel);
    out->send_s = cost_p2p_s(v->hardware, from, to, parallel_sent_bytes(job, last) / slices);
    if (v->parallel->scatter)
        out->send_s += collective_s(v, &v->tensor_group, COLLECTIVE_ALL_GATHER,
                                    parallel_boundary_bytes(job, last) / slices);
    return STATUS_OK;
}

static enum status stage_times(const struct parallel_job_times_view *v, uint32_t stage, struct parallel_job_times *out,
                               struct error *err)
{
    double compute_s = 0, shares_s = 0, up_s = 0, host_s = 0, minibatches = (double)v->job->minibatches;
    double updates = (double)parallel_updates(v->job, stage) / minibatches; /* per minibatch, as are the sums below */
    double microbatches = updates * (double)parallel_microbatches(v->job, stage);
    for (uint32_t chunk = 0; chunk < parallel_chunks(v->parallel); chunk++) {
        if (parallel_place(v->parallel, chunk).stage != stage) continue;
        struct parallel_layers layers = parallel_layers(v->job, chunk);
        TRY(chunk_times(v, chunk, &out->chunks[chunk], err));
        double one_s = out->updates_s[chunk] = update_s(v, stage, layers);
        if (parallel_offloads(v->parallel)) out->update_s += one_s;
        else if (one_s > out->update_s) out->update_s = one_s;
        shares_s += microbatches * exchange_s(v, stage, layers);
        if (v->parallel->offload == OFFLOAD_WEIGHTS) up_s += 2 * microbatches * gather_from_host_s(v, stage, layers);
        if (parallel_offloads(v->parallel)) host_s += host_sums_and_steps_s(v, stage, layers);
        /* A whole backward pass is no slower than its two parts, between which the host gains less lead
         * (models/cost/kernel_model.h). */
        static const enum parallel_pass passes[] = {PARALLEL_FORWARD, PARALLEL_BACKWARD, PARALLEL_UPDATE};
        for (size_t i = 0; i < ARRAY_COUNT(passes); i++) {
            const enum parallel_pass pass = passes[i];
            if (!(pass == PARALLEL_UPDATE && parallel_offloads(v->parallel)))
                compute_s += (pass == PARALLEL_UPDATE ? updates : microbatches) *
                             work_s(v, layers, pass);
        }
    }
    if (shares_s > out->exchange_s) out->exchange_s = shares_s;
    out->lane_s = max_s(out->lane_s, max_s(up_s, host_s));
    if (compute_s > out->compute_s) {
        out->compute_s = compute_s;
        out->busiest = stage;
    }
    return STATUS_OK;
}

/* Adds the sum of a tied table's gradients. All groups of both end stages communicate at once. */
static enum status add_joined(const struct parallel_job_times_view *v, struct arena *scratch,
                              struct parallel_job_times *out, struct error *err)
{
    const struct parallel *p = v->parallel;
    uint64_t bytes = parallel_joined_bytes(v->job);
    uint32_t first = parallel_replicas(p, 0), count = p->tensor * parallel_joined_groups(p);
    uint32_t members = p->tensor * (first + parallel_replicas(p, p->pipeline - 1)) / count;
    struct collective_group *groups;
    uint32_t lacking[2];
    if (bytes == 0) return STATUS_OK;
    uint32_t *devices;
    TRY(ARENA_NEW(scratch, (size_t)members * count, devices, err));
    TRY(ARENA_NEW(scratch, count, groups, err));
    for (uint32_t i = 0; i < members * count; i++) {
        uint32_t replica = i / p->tensor, stage = replica < first ? 0 : p->pipeline - 1;
        devices[i % count * members + i / count] =
            device_of(v, stage, i % p->tensor, stage == 0 ? replica : replica - first);
    }
    if (!collective_groups_find(&v->finder, devices, members, count, groups, lacking))
        return fail_pair(v, lacking[0], lacking[1], err);
    out->joined_s = collective_s(v, groups, COLLECTIVE_ALL_REDUCE, bytes);
    out->update_s += out->joined_s;
    return STATUS_OK;
}

enum status parallel_job_times_make(struct arena *arena, const struct hardware *hardware, const struct job *job,
                                    struct parallel_job_times *out, struct error *err)
{
    struct parallel_job_times_view v = {.hardware = hardware, .job = job, .parallel = &job->parallel};
    struct arena scratch = {0};
    *out = (struct parallel_job_times){0};
    enum status status = ARENA_NEW(arena, parallel_chunks(v.parallel), out->chunks, err);
    if (!status) status = ARENA_NEW(arena, parallel_chunks(v.parallel), out->updates_s, err);
    if (!status) status = collective_finder_init(&scratch, hardware, &v.finder, err);
    if (!status) status = ARENA_NEW(&scratch, hardware->type_count, v.kinds, err);
    for (uint32_t stage = 0; stage < v.parallel->pipeline && !status; stage++) {
        status = enter_stage(&v, &scratch, stage, err);
        if (!status) status = stage_times(&v, stage, out, err);
    }
    if (!status) status = add_joined(&v, &scratch, out, err);
    arena_release(&scratch);
    return status;
}
