/*
 * The first device of each stage stands for all: the order that is made with this decides nothing but which
 * pass comes before which. The simulator times every device.
 */
#include "planner/spread_times.h"

#include <inttypes.h>

#include "models/cost.h"
#include "models/parallel_memory.h"
#include "models/parallel_work.h"

struct view {
    const struct hardware *hardware;
    const struct job *job;
    const struct parallel *parallel;
};

static uint32_t device_of(const struct view *v, uint32_t stage, uint32_t tensor, uint32_t data)
{
    const struct parallel *p = v->parallel;
    return p->first_device + tensor + p->tensor * (data + p->data * stage);
}

static enum status check_pair(const struct view *v, uint32_t from, uint32_t to, struct error *err)
{
    if (hardware_p2p_pair(v->hardware, from, to)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "job '%s' needs a direct link from device %" PRIu32 " to device %" PRIu32
                     ", and machine '%s' has none (--p2p-rate gives it some)",
                     v->job->name, from, to, v->hardware->name);
}

/* Of a group of `members` whose first two are these. */
static enum status ring_s(const struct view *v, uint32_t members, uint32_t first, uint32_t second,
                          enum collective_kind kind, uint64_t bytes, double *out, struct error *err)
{
    *out = 0;
    if (members < 2 || bytes == 0) return STATUS_OK;
    if (check_pair(v, first, second, err)) return err->status;
    struct collective_group group =
        collective_flat((struct collective_level){.members = members,
                                                  .latency_s = cost_p2p_latency_s(v->hardware, first, second),
                                                  .bytes_per_s = cost_p2p_bandwidth(v->hardware, first, second)});
    *out = collective_cost(kind, collective_choose(kind, &group, bytes), &group, bytes).seconds;
    return STATUS_OK;
}

static enum status tensor_s(const struct view *v, uint32_t stage, struct parallel_layers layers,
                            enum parallel_pass pass, double compute_s, double *out, struct error *err)
{
    struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
    uint32_t count = parallel_collectives(v->job, layers, pass, list);
    double exposed_s = 0, beside_s = 0, one_s;
    for (uint32_t i = 0; i < count; i++) {
        if (ring_s(v, v->parallel->tensor, device_of(v, stage, 0, 0), device_of(v, stage, 1, 0), list[i].kind,
                   list[i].bytes, &one_s, err))
            return err->status;
        *(list[i].overlaps ? &beside_s : &exposed_s) += list[i].count * one_s;
    }
    *out = exposed_s + (beside_s > compute_s ? beside_s - compute_s : 0);
    return STATUS_OK;
}

static double work_s(const struct view *v, uint32_t device, struct parallel_layers layers,
                     enum parallel_pass pass)
{
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(v->job, layers, pass, items);
    return cost_work_s(v->hardware, device, items, count, NULL);
}

static enum status pass_s(const struct view *v, uint32_t stage, struct parallel_layers layers,
                          enum parallel_pass pass, double hidden_behind_s, double *out, struct error *err)
{
    double exchange_s;
    if (tensor_s(v, stage, layers, pass, hidden_behind_s, &exchange_s, err)) return err->status;
    *out = work_s(v, device_of(v, stage, 0, 0), layers, pass) + exchange_s;
    return STATUS_OK;
}

/* In a stage's data-parallel group. */
static enum status data_s(const struct view *v, uint32_t stage, enum collective_kind kind, uint64_t bytes,
                          double *out, struct error *err)
{
    return ring_s(v, v->parallel->data, device_of(v, stage, 0, 0), device_of(v, stage, 0, 1), kind, bytes, out, err);
}

/* Of a microbatch: gradients to shares, weights for the pass forward and the one back. */
static enum status exchange_s(const struct view *v, uint32_t stage, struct parallel_layers layers, double *out,
                              struct error *err)
{
    struct rank_state whole = parallel_whole_state(v->job, layers);
    double reduce_s = 0, gather_s = 0;
    if (parallel_splits(v->parallel, ZERO_GRADIENTS) &&
        data_s(v, stage, COLLECTIVE_REDUCE_SCATTER, whole.gradient_bytes, &reduce_s, err))
        return err->status;
    if (parallel_splits(v->parallel, ZERO_WEIGHTS) &&
        data_s(v, stage, COLLECTIVE_ALL_GATHER, whole.weight_bytes, &gather_s, err))
        return err->status;
    *out = reduce_s + 2 * gather_s;
    return STATUS_OK;
}

static enum status update_s(const struct view *v, uint32_t stage, struct parallel_layers layers, double *out,
                            struct error *err)
{
    struct rank_state whole = parallel_whole_state(v->job, layers);
    double gradients_s = 0;
    if (!parallel_splits(v->parallel, ZERO_GRADIENTS) &&
        data_s(v, stage, COLLECTIVE_ALL_REDUCE, whole.gradient_bytes, &gradients_s, err))
        return err->status;
    if (pass_s(v, stage, layers, PARALLEL_UPDATE, 0, out, err)) return err->status;
    *out += gradients_s;
    return STATUS_OK;
}

static enum status run_times(const struct view *v, uint32_t run, struct pipeline_times *out, struct error *err)
{
    const struct job *job = v->job;
    uint32_t stage = parallel_place(v->parallel, run).stage;
    struct parallel_layers layers = parallel_layers(job, run);
    double weight_s = work_s(v, device_of(v, stage, 0, 0), layers, PARALLEL_WEIGHT);
    if (pass_s(v, stage, layers, PARALLEL_FORWARD, 0, &out->pass_s[PIPELINE_FORWARD], err) ||
        pass_s(v, stage, layers, PARALLEL_INPUT, weight_s, &out->pass_s[PIPELINE_INPUT], err) ||
        pass_s(v, stage, layers, PARALLEL_WEIGHT, weight_s, &out->pass_s[PIPELINE_WEIGHT], err))
        return err->status;
    out->pass_s[PIPELINE_BACKWARD] = out->pass_s[PIPELINE_INPUT] + out->pass_s[PIPELINE_WEIGHT];
    if (run + 1 == parallel_runs(v->parallel)) return STATUS_OK;
    uint32_t next = parallel_place(v->parallel, run + 1).stage;
    if (next == stage) return STATUS_OK;
    uint32_t from = device_of(v, stage, 0, 0), to = device_of(v, next, 0, 0);
    if (check_pair(v, from, to, err) || check_pair(v, to, from, err)) return err->status;
    out->send_s = cost_p2p_s(v->hardware, from, to,
                             parallel_boundary_bytes(job, layers.first + layers.count - 1));
    return STATUS_OK;
}

enum status spread_times_make(struct arena *arena, const struct hardware *hardware, const struct job *job,
                              struct spread_times *out, struct error *err)
{
    const struct view v = {hardware, job, &job->parallel};
    uint64_t microbatches = job->microbatches / job->parallel.data;
    void *memory;
    *out = (struct spread_times){0};
    enum status status = arena_array(arena, parallel_runs(v.parallel), sizeof *out->runs, &memory, err);
    if (status) return status;
    out->runs = memory;
    for (uint32_t stage = 0; stage < v.parallel->pipeline; stage++) {
        double compute_s = 0, shares_s = 0, one_s;
        for (uint32_t run = 0; run < parallel_runs(v.parallel); run++) {
            if (parallel_place(v.parallel, run).stage != stage) continue;
            struct parallel_layers layers = parallel_layers(job, run);
            if (run_times(&v, run, &out->runs[run], err) || update_s(&v, stage, layers, &one_s, err))
                return err->status;
            if (one_s > out->update_s) out->update_s = one_s;
            if (exchange_s(&v, stage, layers, &one_s, err)) return err->status;
            shares_s += (double)microbatches * one_s;
            for (uint32_t pass = PARALLEL_FORWARD; pass <= PARALLEL_UPDATE; pass++)
                if (pass != PARALLEL_BACKWARD)
                    compute_s += (pass == PARALLEL_UPDATE ? 1 : (double)microbatches) *
                                 work_s(&v, device_of(&v, stage, 0, 0), layers, pass);
        }
        if (shares_s > out->exchange_s) out->exchange_s = shares_s;
        if (compute_s > out->compute_s) {
            out->compute_s = compute_s;
            out->busiest = stage;
        }
    }
    return STATUS_OK;
}
