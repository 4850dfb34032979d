/* See unit_times.h. */
#include "planner/unit_times.h"

#include <stdlib.h>
#include <string.h>

#include "base/extreme.h"
#include "models/cost.h"
#include "models/evaluation.h"
#include "planner/partition_storage.h"
#include "planner/plan_work.h"

static double copied_s(const struct unit_times *t, uint32_t device, enum copy_direction direction,
                       uint64_t bytes)
{
    return bytes ? cost_copy_s(t->hardware, device, direction, bytes) * t->partition->contention
                 : 0;
}

/* As long as there is as much to write as to read: neither has what both share to itself. */
static double storage_s(const struct unit_times *t, enum storage_direction direction, uint64_t bytes)
{
    const struct hardware_storage *storage = &t->hardware->storage;
    double contention = (storage->read_rate.value + storage->write_rate.value) /
                        hardware_storage_rate(t->hardware);
    return cost_storage_s(t->hardware, direction, bytes) * max_s(contention, 1);
}

static double computed_s(const struct hardware *hardware, uint32_t device, const struct job *job,
                         const struct plan_shard *shard, enum plan_pass pass, uint32_t how)
{
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    uint32_t count = plan_work_items(job, shard->first_layer, shard->layer_count, pass, how, 0, 0,
                                     items);
    return cost_work_s(hardware, device, items, count, NULL);
}

static void shard_times(const struct unit_times *t, struct footprints *footprints, uint32_t device,
                        uint32_t index, struct unit_time times[TIMED_PASSES])
{
    const struct partition *p = t->partition;
    const struct plan_shard *shard = &p->shards[index];
    const struct job *job = &t->jobs->jobs[shard->job];
    const struct footprint *f =
        footprint_of(footprints, shard->job, shard->first_layer, shard->layer_count);
    if (!f) return; /* the caller's next allocation fails too; durations stay 0 */
    bool last = shard->first_layer + shard->layer_count == job->network.layer_count;
    bool streamed = !p->persistent[index];
    uint32_t activations = partition_activations(p, index);
    uint64_t spilled =
        plan_activations_spill(activations) && !last ? f->kept_bytes[activations] : 0;
    uint64_t table = last && job_has_table(job) ? job_table_bytes(job) : 0;
    const struct hardware *hw = t->hardware;
    bool on_cpu = p->on_cpu[index];
    memset(times, 0, TIMED_PASSES * sizeof *times);
    struct storage_traffic stored = storage_traffic_of(p, job, f, index);
    if (streamed && storage_has(p, index)) {
        times[0].read_s = storage_s(t, STORAGE_READ, stored.forward_read);
        times[1].read_s = storage_s(t, STORAGE_READ, stored.back_read);
        times[1].write_s = storage_s(t, STORAGE_WRITE, stored.back_written);
    }
    if (table > 0 && !p->resident && storage_has(p, p->job_first_shard[shard->job]))
        times[1].read_s += storage_s(t, STORAGE_READ, table);
    if (on_cpu && shard->first_layer == 0 && job_has_embedding(job)) {
        bool clips = job_clips(job);
        times[0] = (struct unit_time){
            .cpu_alone = true, .gathers = clips, .cpu_s = f->cpu_forward_s};
        times[1] = (struct unit_time){.cpu_alone = true,
                                      .cpu_s = f->cpu_backward_s + f->cpu_norm_s,
                                      .update_s = clips ? f->cpu_update_s : 0};
        times[TIMED_EVALUATE] = times[0];
        return;
    }
    if (!last) {
        times[0].compute_s = computed_s(hw, device, job, shard, PLAN_FORWARD, 0);
        times[0].in_s = streamed ? copied_s(t, device, COPY_H2D, f->weight_bytes) : 0;
        times[0].edge_in_s = copied_s(t, device, COPY_H2D, f->input_bytes);
        times[0].edge_out_s = copied_s(t, device, COPY_D2H, f->output_bytes);
        times[0].out_s = copied_s(t, device, COPY_D2H, spilled);
        times[0].out_apart = true;
    }
    times[1].compute_s =
        computed_s(hw, device, job, shard, last ? PLAN_LOSS : PLAN_BACKWARD,
                   partition_way(activations, shard->inputs_only, last) |
                       (on_cpu ? UNIT_GRADIENTS_OUT : 0));
    if (job_clips(job)) {
        times[1].cpu_s = f->cpu_norm_s;
        times[1].update_s = f->cpu_update_s;
    } else if (on_cpu) {
        times[1].cpu_s = f->cpu_update_s;
    }
    times[0].load_s = streamed ? 0 : copied_s(t, device, COPY_H2D, f->state_bytes);
    if (!streamed && storage_has(p, index))
        times[0].load_s += storage_s(t, STORAGE_READ, f->state_bytes);
    if (!p->resident) {
        uint64_t in = !streamed ? 0 : on_cpu ? f->weight_bytes : f->state_bytes;
        uint64_t out = !streamed ? 0 : on_cpu ? f->gradient_bytes : f->state_bytes;
        times[1].in_s = copied_s(t, device, COPY_H2D, table + in + spilled);
        times[1].in_apart = spilled > 0;
        times[1].out_apart = on_cpu;
        times[1].out_s = copied_s(t, device, COPY_D2H,
                                  (table > 0 ? job_table_gradient_bytes(job) : 0) + out);
    }
    times[1].edge_in_s = copied_s(t, device, COPY_H2D, last ? f->input_bytes : f->output_bytes);
    times[1].edge_out_s = copied_s(t, device, COPY_D2H, f->input_bytes);
    if (job->evaluation.every == 0) return;
    times[TIMED_EVALUATE] = (struct unit_time){
        .compute_s = computed_s(hw, device, job, shard, PLAN_EVALUATE, 0),
        .in_s = p->resident ? 0 : copied_s(t, device, COPY_H2D,
                                           (streamed ? f->weight_bytes : 0) + table),
        .edge_in_s = copied_s(t, device, COPY_H2D, f->input_bytes),
        .edge_out_s = copied_s(t, device, COPY_D2H, f->output_bytes),
    };
    if (streamed && storage_has(p, index))
        times[TIMED_EVALUATE].read_s = storage_s(t, STORAGE_READ, f->weight_bytes);
    if (table > 0 && !p->resident && storage_has(p, p->job_first_shard[shard->job]))
        times[TIMED_EVALUATE].read_s += storage_s(t, STORAGE_READ, table);
}

/* A device of each type stands for its type; jobs that are twins share durations. */
static void fill_times(struct unit_times *t, struct footprints *footprints)
{
    const struct partition *p = t->partition;
    size_t shards = p->shard_count;
    for (uint32_t type = 0; type < t->hardware->type_count; type++) {
        uint32_t device = 0;
        while (device < t->hardware->device_count && t->hardware->devices[device].type != type)
            device++;
        if (device == t->hardware->device_count) continue;
        for (uint32_t j = 0; j < t->jobs->count; j++) {
            uint32_t twin = footprint_twin(footprints, j);
            for (uint32_t i = p->job_first_shard[j]; i < p->job_first_shard[j + 1]; i++) {
                struct unit_time *to =
                    &t->of[(type * shards + i) * TIMED_PASSES];
                uint32_t same = p->job_first_shard[twin] + (i - p->job_first_shard[j]);
                if (twin == j) {
                    shard_times(t, footprints, device, i, to);
                } else {
                    memcpy(to, &t->of[(type * shards + same) * TIMED_PASSES],
                           TIMED_PASSES * sizeof *to);
                }
            }
        }
    }
}

enum status unit_times_make(const struct hardware *hardware, const struct job_set *jobs,
                            struct footprints *footprints, const struct partition *partition,
                            struct unit_times *out, struct error *err)
{
    size_t count = (size_t)hardware->type_count * partition->shard_count * TIMED_PASSES;
    *out = (struct unit_times){.hardware = hardware, .jobs = jobs, .partition = partition};
    out->of = calloc(count + 1, sizeof *out->of);
    if (!out->of) return error_memory(err, "the durations of units", count * sizeof *out->of);
    fill_times(out, footprints);
    return STATUS_OK;
}

void unit_times_release(struct unit_times *times)
{
    free(times->of);
    *times = (struct unit_times){0};
}

uint32_t unit_times_positions(const struct unit_times *times, uint32_t job, uint64_t minibatch)
{
    const struct job *of = &times->jobs->jobs[job];
    uint32_t shards = job_shard_count(times->partition, job);
    uint64_t held_out = evaluation_follows(of, minibatch) ? of->evaluation.minibatches * shards : 0;
    return unit_count_of(shards) + (uint32_t)held_out;
}

uint64_t unit_times_count(const struct unit_times *times, uint32_t job)
{
    const struct job *of = &times->jobs->jobs[job];
    uint32_t shards = job_shard_count(times->partition, job);
    return of->minibatches * unit_count_of(shards) +
           evaluation_count(of) * of->evaluation.minibatches * shards;
}
