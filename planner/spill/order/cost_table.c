#include "planner/spill/order/cost_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "models/cost/cost.h"
#include "models/job/evaluation.h"
#include "planner/pass_seconds.h"
#include "planner/plan_charges.h"
#include "planner/spill/cut/partition_storage.h"

static double copied_s(const struct cost_table *t, uint32_t device, enum copy_direction direction,
                       uint64_t bytes)
{
    return pass_seconds_copy(t->hardware, device, direction, bytes) * t->partition->contention;
}

/* Assumes that writes and reads take the same time, so that neither has the shared bandwidth to itself. */
static double storage_s(const struct cost_table *t, enum storage_direction direction, uint64_t bytes)
{
    const struct hardware_storage *storage = &t->hardware->storage;
    double contention = hardware_of_host(t->hardware, storage->read_rate.value + storage->write_rate.value) /
                        hardware_storage_rate(t->hardware);
    return cost_storage_s(t->hardware, direction, bytes) * max_s(contention, 1);
}

static double computed_s(const struct hardware *hardware, uint32_t device, const struct job *job,
                         const struct plan_shard *shard, enum plan_pass pass, uint32_t how)
{
    return pass_seconds(hardware, device, job, shard->first_layer, shard->layer_count, pass, how);
}

struct timed_shard {
    const struct cost_table *t;
    const struct plan_shard *shard;
    const struct job *job;
    const struct footprint *f;
    uint32_t device, index, activations;
    uint64_t spilled_bytes; /* activations that go to the host and come back */
    uint64_t table;   /* bytes of a tied table, for the shard with the head */
    bool last, spilled, on_cpu, trains;
    bool lowest; /* no shard before it has a backward pass */
};

/* Returns true if the token table is in a base, whose copies are not the unit's. */
static bool has_base_table(const struct job *job)
{
    return job->shares_base && footprint_table_gradient_bytes(job) == 0;
}

static struct timed_shard shard_of(const struct cost_table *t, const struct footprint *f, uint32_t device,
                                   uint32_t index)
{
    const struct partition *p = t->partition;
    const struct plan_shard *shard = &p->shards[index];
    const struct job *job = &t->jobs->jobs[shard->job];
    bool last = shard->first_layer + shard->layer_count == job->network.layer_count;
    uint32_t activations = partition_activations(p, index);
    return (struct timed_shard){
        .t = t, .shard = shard, .job = job, .f = f, .device = device, .index = index, .activations = activations,
        .spilled_bytes = plan_activations_spill(activations) && !last ? f->kept_bytes[activations] : 0,
        .table = last && footprint_has_table(job) && !has_base_table(job) ? footprint_table_bytes(job) : 0,
        .last = last, .spilled = !p->persistent[index], .on_cpu = p->on_cpu[index], .trains = p->trains[index],
        .lowest = index - p->job_first_shard[shard->job] == p->job_frozen[shard->job],
    };
}

/* Returns true if a tied head reads the first shard's table from storage. */
static bool reads_table(const struct timed_shard *s)
{
    const struct partition *p = s->t->partition;
    return s->table > 0 && !p->resident && storage_has(p, p->job_first_shard[s->shard->job]);
}

static void storage_times(const struct timed_shard *s, struct cost_unit times[COST_PASSES])
{
    const struct partition *p = s->t->partition;
    struct storage_traffic stored = storage_traffic_of(p, s->job, s->f, s->index);
    if (s->spilled && storage_has(p, s->index)) {
        times[0].read_s = storage_s(s->t, STORAGE_READ, stored.forward_read);
        times[1].read_s = storage_s(s->t, STORAGE_READ, stored.back_read);
        times[1].write_s = storage_s(s->t, STORAGE_WRITE, stored.back_written);
    }
    if (reads_table(s)) times[1].read_s += storage_s(s->t, STORAGE_READ, s->table);
}

static void embedding_times(const struct timed_shard *s, struct cost_unit times[COST_PASSES])
{
    const struct footprint *f = s->f;
    bool clips = job_clips(s->job);
    times[0] = (struct cost_unit){.cpu_alone = true, .gathers = clips, .cpu_s = f->cpu_forward_s};
    times[1] = (struct cost_unit){.cpu_alone = true,
                                  .cpu_s = f->cpu_backward_s + f->cpu_norm_s,
                                  .update_s = clips ? f->cpu_update_s : 0};
    times[COST_PASS_EVALUATE] = times[0];
}

static void forward_times(const struct timed_shard *s, struct cost_unit *time)
{
    const struct cost_table *t = s->t;
    if (!s->last) {
        time->compute_s = computed_s(t->hardware, s->device, s->job, s->shard, PLAN_FORWARD, 0);
        time->in_s = s->spilled ? copied_s(t, s->device, COPY_H2D, s->f->weight_bytes) : 0;
        time->edge_in_s = copied_s(t, s->device, COPY_H2D, s->f->input_bytes);
        time->edge_out_s = copied_s(t, s->device, COPY_D2H, s->f->output_bytes);
        time->out_s = copied_s(t, s->device, COPY_D2H, s->spilled_bytes);
        time->out_apart = true;
    }
    bool charged = !s->spilled && plan_charges_count(t->hardware);
    time->load_s = charged ? copied_s(t, s->device, COPY_H2D, s->f->state_bytes) : 0;
    if (charged && storage_has(t->partition, s->index))
        time->load_s += storage_s(t, STORAGE_READ, s->f->state_bytes);
}

/* Adds the copies of states that are not on the device. */
static void backward_copies(const struct timed_shard *s, struct cost_unit *time)
{
    const struct footprint *f = s->f;
    uint64_t in = !s->spilled ? 0 : s->on_cpu ? f->weight_bytes : f->state_bytes;
    uint64_t out = !s->spilled ? 0 : s->on_cpu ? f->gradient_bytes : f->trained_bytes;
    time->in_s = copied_s(s->t, s->device, COPY_H2D, s->table + in + s->spilled_bytes);
    time->in_apart = s->spilled_bytes > 0;
    time->out_apart = s->on_cpu;
    time->out_s = copied_s(s->t, s->device, COPY_D2H,
                           (s->table > 0 ? footprint_table_gradient_bytes(s->job) : 0) + out);
}

/* Times the backward pass, with the loss and the update. */
static void backward_times(const struct timed_shard *s, struct cost_unit *time)
{
    const struct footprint *f = s->f;
    uint32_t how = partition_way(s->activations, s->shard->inputs_only, s->last) | (s->on_cpu ? UNIT_GRADIENTS_OUT : 0);
    time->compute_s = computed_s(s->t->hardware, s->device, s->job, s->shard, s->last ? PLAN_LOSS : PLAN_BACKWARD, how);
    if (!s->trains) {
        time->cpu_s = 0;
    } else if (job_clips(s->job)) {
        time->cpu_s = f->cpu_norm_s;
        time->update_s = f->cpu_update_s;
    } else if (s->on_cpu) {
        time->cpu_s = f->cpu_update_s;
    }
    if (!s->t->partition->resident) backward_copies(s, time);
    time->edge_in_s = copied_s(s->t, s->device, COPY_H2D, s->last ? f->input_bytes : f->output_bytes);
    time->edge_out_s = s->lowest ? 0 : copied_s(s->t, s->device, COPY_D2H, f->input_bytes);
}

static void evaluation_times(const struct timed_shard *s, struct cost_unit *time)
{
    const struct cost_table *t = s->t;
    const struct partition *p = t->partition;
    const struct footprint *f = s->f;
    uint64_t in = (s->spilled ? f->weight_bytes : 0) + s->table;
    *time = (struct cost_unit){
        .compute_s = computed_s(t->hardware, s->device, s->job, s->shard, PLAN_EVALUATE, 0),
        .in_s = p->resident ? 0 : copied_s(t, s->device, COPY_H2D, in),
        .edge_in_s = copied_s(t, s->device, COPY_H2D, f->input_bytes),
        .edge_out_s = copied_s(t, s->device, COPY_D2H, f->output_bytes),
    };
    if (s->spilled && storage_has(p, s->index)) time->read_s = storage_s(t, STORAGE_READ, f->weight_bytes);
    if (reads_table(s)) time->read_s += storage_s(t, STORAGE_READ, s->table);
}

static void shard_times(const struct cost_table *t, struct footprints *footprints, uint32_t device,
                        uint32_t index, struct cost_unit times[COST_PASSES])
{
    const struct plan_shard *shard = &t->partition->shards[index];
    const struct footprint *f = footprint_of(footprints, shard->job, shard->first_layer, shard->layer_count);
    if (!f) return; /* the caller's next allocation fails too; durations stay 0 */
    struct timed_shard s = shard_of(t, f, device, index);
    memset(times, 0, COST_PASSES * sizeof *times);
    if (s.on_cpu && shard->first_layer == 0 && footprint_has_embedding(s.job)) {
        embedding_times(&s, times);
        return;
    }
    storage_times(&s, times);
    forward_times(&s, &times[0]);
    backward_times(&s, &times[1]);
    if (s.job->evaluation.every > 0) evaluation_times(&s, &times[COST_PASS_EVALUATE]);
}

/* Computes durations once per type of device, and once for twins. */
static void fill_times(struct cost_table *t, struct footprints *footprints)
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
                struct cost_unit *to =
                    &t->of[(type * shards + i) * COST_PASSES];
                uint32_t same = p->job_first_shard[twin] + (i - p->job_first_shard[j]);
                if (twin == j) {
                    shard_times(t, footprints, device, i, to);
                } else {
                    memcpy(to, &t->of[(type * shards + same) * COST_PASSES],
                           COST_PASSES * sizeof *to);
                }
            }
        }
    }
}

/* Finds the first device of each type. A machine has thousands of devices and a few types. `seen`: by type, zeroed. */
static void find_kinds(struct cost_table *t, bool *seen)
{
    for (uint32_t d = 0; d < t->hardware->device_count; d++) {
        uint32_t type = t->hardware->devices[d].type;
        if (!seen[type]) t->kinds[t->kind_count++] = d;
        seen[type] = true;
    }
}

enum status cost_table_make(const struct hardware *hardware, const struct job_set *jobs,
                            struct footprints *footprints, const struct partition *partition,
                            struct cost_table *out, struct error *err)
{
    size_t count = (size_t)hardware->type_count * partition->shard_count * COST_PASSES;
    *out = (struct cost_table){.hardware = hardware, .jobs = jobs, .partition = partition};
    out->of = alloc_zeroed(count + 1, sizeof *out->of);
    out->kinds = alloc_zeroed(hardware->type_count + (size_t)1, sizeof *out->kinds);
    bool *seen = alloc_zeroed(hardware->type_count + (size_t)1, sizeof *seen);
    if (!out->of || !out->kinds || !seen) {
        free(seen);
        cost_table_release(out);
        return error_memory(err, "the durations of units", count * sizeof *out->of);
    }
    find_kinds(out, seen);
    free(seen);
    fill_times(out, footprints);
    return STATUS_OK;
}

void cost_table_release(struct cost_table *times)
{
    free(times->of);
    free(times->kinds);
    *times = (struct cost_table){0};
}

uint32_t cost_table_positions(const struct cost_table *times, uint32_t job, uint64_t minibatch)
{
    const struct job *of = &times->jobs->jobs[job];
    uint32_t shards = partition_job_shards(times->partition, job);
    uint64_t held_out = evaluation_follows(of, minibatch) ? of->evaluation.minibatches * shards : 0;
    return schedule_unit_count(partition_job_units(times->partition, job)) + (uint32_t)held_out;
}

uint64_t cost_table_unit_count(const struct cost_table *times, uint32_t job)
{
    const struct job *of = &times->jobs->jobs[job];
    uint32_t shards = partition_job_shards(times->partition, job);
    return of->minibatches * schedule_unit_count(partition_job_units(times->partition, job)) +
           evaluation_count(of) * of->evaluation.minibatches * shards;
}
