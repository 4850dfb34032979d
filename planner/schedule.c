/*
 * A list scheduler with a clock per device.
 *
 * Each device has three lanes, as the plan will have three streams: copies in, computation, copies
 * out, and the regions that streamed state takes in turn; the host's processor is a fourth lane, of
 * all devices together. A unit placed on a device starts its copy
 * in as soon as the lane and its region are free (the plan is static: what comes next is known, so
 * it can be fetched ahead), computes when the device, the copy and the job are ready, and frees its
 * region when its copy out has ended. A decision is made when a device's computation lane becomes
 * free and some job is ready, at the earliest such time over all devices; ties go to the lowest
 * device, unless the chosen job's last device is free too, which spares moving its boundary.
 *
 * Cost: O(jobs + devices) per unit. Durations are those of models/cost.h, so what is left out is
 * contention but for the average over shared links; the simulator knows about it.
 */
#include "planner/schedule.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/cost.h"
#include "models/evaluation.h"
#include "planner/partition_storage.h"
#include "planner/plan_work.h"

/* What durations are distinguished by. */
enum timed_pass { TIMED_FORWARD, TIMED_BACK, TIMED_EVALUATE, TIMED_PASSES };

/* Estimated seconds of a unit's parts. */
struct unit_time {
    double in_s;       /* state, parameters, table, spilled activations */
    double edge_in_s;  /* boundary or gradient, unless it is already there */
    double compute_s;
    double edge_out_s;
    double out_s;
    double load_s;     /* of a persistent shard's state, once */
    double read_s, write_s; /* of states on storage */
    double cpu_s;      /* the update on the host's processor, or the norm ... */
    bool cpu_alone;    /* ... or all of the unit */
    bool gathers;      /* it does so on the host stream */
    double update_s;   /* where the job clips: once all norms are known */
};

struct lane {
    double h2d_free_s, compute_free_s, d2h_free_s;
    double region_free_s[REGIONS_MAX];
    uint32_t turn;
    uint32_t last_job; /* of the last unit placed here */
    uint32_t cached;   /* job chosen ahead; PLAN_NONE: none */
    uint32_t last_unit;
    double not_before_s; /* the policy wanted to wait: nothing to decide earlier; HUGE_VAL: not until
                            another placement changes something */
};

struct scheduler {
    const struct hardware *hardware;
    const struct job_set *jobs;
    const struct partition *partition;
    const struct policy *policy;
    uint32_t *type_offset;    /* per device type, into times */
    struct unit_time *times;  /* [type][shard][enum timed_pass] */
    double *load_s;           /* per job, resident: until its states are on its devices */
    struct policy_job *view_jobs;
    uint64_t *minibatch;      /* per job: completed ones ... */
    uint32_t *position;       /* ... and the position of the next unit */
    double *edge_ready_s;     /* per job: its last output is in host memory */
    double *state_ready_s;    /* per shard: so is its state, updated */
    double cpu_free_s, host_free_s, read_free_s, write_free_s;
    struct lane *lanes;
    uint32_t *seat;           /* per job */
    uint32_t *seats_free;     /* a stack */
    uint32_t seats_free_count;
    uint32_t next_admitted;
    struct policy_view view;
    struct schedule *out;
    size_t capacity;
};

static double max_s(double a, double b) { return a > b ? a : b; }

/* --- durations ------------------------------------------------------------------------------- */

static double copied_s(const struct scheduler *s, uint32_t device, enum copy_direction direction,
                       uint64_t bytes)
{
    return bytes ? cost_copy_s(s->hardware, device, direction, bytes) * s->partition->contention
                 : 0;
}

/* As long as there is as much to write as to read: neither has what both share to itself. */
static double storage_s(const struct scheduler *s, enum storage_direction direction, uint64_t bytes)
{
    const struct hardware_storage *storage = &s->hardware->storage;
    double contention = (storage->read_rate.value + storage->write_rate.value) /
                        hardware_storage_rate(s->hardware);
    return cost_storage_s(s->hardware, direction, bytes) * max_s(contention, 1);
}

static double computed_s(const struct hardware *hardware, uint32_t device, const struct job *job,
                         const struct plan_shard *shard, enum plan_pass pass, uint32_t how)
{
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    uint32_t count = plan_work_items(job, shard->first_layer, shard->layer_count, pass, how, 0, 0,
                                     items);
    return cost_work_s(hardware, device, items, count, NULL);
}

static void shard_times(const struct scheduler *s, struct footprints *footprints, uint32_t device,
                        uint32_t index, struct unit_time times[TIMED_PASSES])
{
    const struct partition *p = s->partition;
    const struct plan_shard *shard = &p->shards[index];
    const struct job *job = &s->jobs->jobs[shard->job];
    const struct footprint *f =
        footprint_of(footprints, shard->job, shard->first_layer, shard->layer_count);
    if (!f) return; /* the caller's next allocation fails too; durations stay 0 */
    bool last = shard->first_layer + shard->layer_count == job->network.layer_count;
    bool streamed = !p->persistent[index];
    uint64_t spilled =
        plan_activations_spill(p->activations) && !last ? f->kept_bytes[p->activations] : 0;
    uint64_t table = last && job_has_table(job) ? job_table_bytes(job) : 0;
    const struct hardware *hw = s->hardware;
    bool on_cpu = p->on_cpu[index];
    for (int t = 0; t < TIMED_PASSES; t++) times[t] = (struct unit_time){0};
    struct storage_traffic stored = storage_traffic_of(p, job, f, index);
    if (streamed && storage_has(p, index)) {
        times[0].read_s = storage_s(s, STORAGE_READ, stored.forward_read);
        times[1].read_s = storage_s(s, STORAGE_READ, stored.back_read);
        times[1].write_s = storage_s(s, STORAGE_WRITE, stored.back_written);
    }
    if (table > 0 && !p->resident && storage_has(p, p->job_first_shard[shard->job]))
        times[1].read_s += storage_s(s, STORAGE_READ, table);
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
        times[0].in_s = streamed ? copied_s(s, device, COPY_H2D, f->weight_bytes) : 0;
        times[0].edge_in_s = copied_s(s, device, COPY_H2D, f->input_bytes);
        times[0].edge_out_s = copied_s(s, device, COPY_D2H, f->output_bytes);
        times[0].out_s = copied_s(s, device, COPY_D2H, spilled);
    }
    times[1].compute_s =
        computed_s(hw, device, job, shard, last ? PLAN_LOSS : PLAN_BACKWARD,
                   partition_way(p->activations, shard->inputs_only, last) |
                       (on_cpu ? UNIT_GRADIENTS_OUT : 0));
    if (job_clips(job)) {
        times[1].cpu_s = f->cpu_norm_s;
        times[1].update_s = f->cpu_update_s;
    } else if (on_cpu) {
        times[1].cpu_s = f->cpu_update_s;
    }
    times[0].load_s = streamed ? 0 : copied_s(s, device, COPY_H2D, f->state_bytes);
    if (!streamed && storage_has(p, index))
        times[0].load_s += storage_s(s, STORAGE_READ, f->state_bytes);
    if (!p->resident) {
        uint64_t in = !streamed ? 0 : on_cpu ? f->weight_bytes : f->state_bytes;
        uint64_t out = !streamed ? 0 : on_cpu ? f->gradient_bytes : f->state_bytes;
        times[1].in_s = copied_s(s, device, COPY_H2D, table + in + spilled);
        times[1].out_s = copied_s(s, device, COPY_D2H,
                                  (table > 0 ? job_table_gradient_bytes(job) : 0) + out);
    }
    times[1].edge_in_s = copied_s(s, device, COPY_H2D, last ? f->input_bytes : f->output_bytes);
    times[1].edge_out_s = copied_s(s, device, COPY_D2H, f->input_bytes);
    if (job->evaluation.every == 0) return;
    times[TIMED_EVALUATE] = (struct unit_time){
        .compute_s = computed_s(hw, device, job, shard, PLAN_EVALUATE, 0),
        .in_s = p->resident ? 0 : copied_s(s, device, COPY_H2D,
                                           (streamed ? f->weight_bytes : 0) + table),
        .edge_in_s = copied_s(s, device, COPY_H2D, f->input_bytes),
        .edge_out_s = copied_s(s, device, COPY_D2H, f->output_bytes),
    };
    if (streamed && storage_has(p, index))
        times[TIMED_EVALUATE].read_s = storage_s(s, STORAGE_READ, f->weight_bytes);
    if (table > 0 && !p->resident && storage_has(p, p->job_first_shard[shard->job]))
        times[TIMED_EVALUATE].read_s += storage_s(s, STORAGE_READ, table);
}

/* Of the forward pass; those of its other passes are behind it. */
static const struct unit_time *shard_time(const struct scheduler *s, uint32_t device,
                                          uint32_t shard)
{
    uint32_t index = s->type_offset[s->hardware->devices[device].type] + shard;
    return &s->times[(size_t)index * TIMED_PASSES];
}

static const struct unit_time *time_of(const struct scheduler *s, uint32_t device, uint32_t job,
                                       uint32_t position)
{
    uint32_t first = s->partition->job_first_shard[job];
    uint32_t shards = s->partition->job_first_shard[job + 1] - first;
    enum plan_pass pass = unit_pass_of(shards, position);
    return shard_time(s, device, first + unit_shard(shards, position)) +
           (pass == PLAN_FORWARD ? TIMED_FORWARD : pass == PLAN_EVALUATE ? TIMED_EVALUATE : TIMED_BACK);
}

/* A device of each type stands for its type; jobs that are twins share durations. */
static void fill_times(struct scheduler *s, struct footprints *footprints)
{
    const struct partition *p = s->partition;
    for (uint32_t type = 0; type < s->hardware->type_count; type++) {
        uint32_t device = 0;
        while (device < s->hardware->device_count && s->hardware->devices[device].type != type)
            device++;
        if (device == s->hardware->device_count) continue;
        for (uint32_t j = 0; j < s->jobs->count; j++) {
            uint32_t twin = footprint_twin(footprints, j);
            for (uint32_t i = p->job_first_shard[j]; i < p->job_first_shard[j + 1]; i++) {
                struct unit_time *to =
                    &s->times[(size_t)(s->type_offset[type] + i) * TIMED_PASSES];
                uint32_t same = p->job_first_shard[twin] + (i - p->job_first_shard[j]);
                if (twin == j) {
                    shard_times(s, footprints, device, i, to);
                } else {
                    memcpy(to, &s->times[(size_t)(s->type_offset[type] + same) * TIMED_PASSES],
                           TIMED_PASSES * sizeof *to);
                }
            }
        }
    }
}

/* --- jobs ------------------------------------------------------------------------------------ */

static uint32_t job_shards(const struct scheduler *s, uint32_t job)
{
    const struct partition *p = s->partition;
    return p->job_first_shard[job + 1] - p->job_first_shard[job];
}

static uint32_t next_position(const struct scheduler *s, uint32_t job)
{
    return s->position[job];
}

/* Units of the minibatch that the job is in, and of the evaluation behind it. */
static uint32_t current_positions(const struct scheduler *s, uint32_t job)
{
    const struct job *of = &s->jobs->jobs[job];
    uint32_t shards = job_shards(s, job);
    uint64_t held_out =
        evaluation_follows(of, s->minibatch[job]) ? of->evaluation.minibatches * shards : 0;
    return unit_count_of(shards) + (uint32_t)held_out;
}

static uint32_t next_device(const struct scheduler *s, uint32_t job)
{
    const struct partition *p = s->partition;
    if (!p->resident) return s->policy->one_device ? 0 : PLAN_NONE;
    uint32_t shard = unit_shard(job_shards(s, job), next_position(s, job));
    return p->shard_device[p->job_first_shard[job] + shard];
}

/* Give seats to the next jobs in order; `at` is when the seat became free. */
static void admit(struct scheduler *s, double at)
{
    while (s->seats_free_count > 0 && s->next_admitted < s->jobs->count) {
        uint32_t job = s->next_admitted++;
        s->seat[job] = s->seats_free[--s->seats_free_count];
        s->view_jobs[job].admitted = true;
        s->view_jobs[job].ready_s = at + s->load_s[job];
    }
}

/* Seconds until a resident job is on its devices, which load side by side. */
static double load_s(const struct scheduler *s, uint32_t job)
{
    const struct partition *p = s->partition;
    double slowest = 0, sum = 0;
    for (uint32_t i = p->job_first_shard[job]; p->resident && i < p->job_first_shard[job + 1]; i++) {
        bool another = i > p->job_first_shard[job] && p->shard_device[i] != p->shard_device[i - 1];
        sum = (another ? 0 : sum) + shard_time(s, p->shard_device[i], i)->load_s;
        slowest = max_s(slowest, sum);
    }
    return slowest;
}

static void start_jobs(struct scheduler *s)
{
    const struct partition *p = s->partition;
    for (uint32_t j = 0; j < s->jobs->count; j++) {
        struct policy_job *job = &s->view_jobs[j];
        const struct job *of = &s->jobs->jobs[j];
        uint32_t shards = job_shards(s, j), positions = unit_count_of(shards);
        double minibatch_s = 0, held_out_s = 0;
        for (uint32_t i = 0; i < positions; i++) minibatch_s += time_of(s, 0, j, i)->compute_s;
        for (uint32_t i = 0; i < shards; i++)
            held_out_s += time_of(s, 0, j, positions + i)->compute_s;
        held_out_s *= (double)of->evaluation.minibatches * (double)evaluation_count(of);
        *job = (struct policy_job){.remaining_s = minibatch_s * (double)of->minibatches + held_out_s,
                                   .last_device = PLAN_NONE,
                                   .next_device = next_device(s, j),
                                   .admitted = !p->resident};
        if (job->remaining_s <= 0) job->remaining_s = 1e-12;
        s->load_s[j] = load_s(s, j);
    }
    if (!p->resident) return;
    for (uint32_t seat = p->seat_count; seat-- > 0;)
        s->seats_free[s->seats_free_count++] = seat;
    admit(s, 0);
}

/* --- placing a unit -------------------------------------------------------------------------- */

static enum status append(struct scheduler *s, const struct scheduled_unit *unit,
                          struct error *err)
{
    enum status status =
        array_reserve(&s->out->units, &s->capacity, s->out->count, sizeof *s->out->units,
                      PLAN_INSTANCES_MAX, "units in the schedule", err);
    if (!status) s->out->units[s->out->count++] = *unit;
    return status;
}

/* The index of the shard that the job's next unit is about. */
static uint32_t next_shard(const struct scheduler *s, uint32_t job)
{
    uint32_t first = s->partition->job_first_shard[job];
    return first + unit_shard(job_shards(s, job), next_position(s, job));
}

/* The next unit of a job runs on the host's processor. Returns when it starts. */
static double place_on_cpu(struct scheduler *s, uint32_t job, const struct unit_time *time)
{
    struct policy_job *j = &s->view_jobs[job];
    double *state_ready = &s->state_ready_s[next_shard(s, job)];
    bool first = unit_begins(job_shards(s, job), next_position(s, job));
    double *free_s = time->gathers ? &s->host_free_s : &s->cpu_free_s;
    double start = max_s(*free_s, first ? max_s(j->ready_s, *state_ready) : s->edge_ready_s[job]);
    double end = start + time->cpu_s;
    *free_s = s->edge_ready_s[job] = j->ready_s = end;
    if (!first) *state_ready = end;
    return start;
}

/* When the states that the unit fetches are in host memory. */
static double states_ready(const struct scheduler *s, uint32_t job)
{
    uint32_t first = s->partition->job_first_shard[job], shard = next_shard(s, job);
    double ready = s->state_ready_s[shard];
    bool loss = shard + 1 == s->partition->job_first_shard[job + 1];
    return loss ? max_s(ready, s->state_ready_s[first]) : ready; /* the token table */
}

/* When what the unit fetches is in host memory, and storage has read it where it must. */
static double states_in_memory(struct scheduler *s, uint32_t job, const struct unit_time *time)
{
    double ready = states_ready(s, job);
    if (time->read_s <= 0) return ready;
    return s->read_free_s = max_s(s->read_free_s, ready) + time->read_s;
}

/* On a device. Returns when it starts to compute. */
static double place_on_device(struct scheduler *s, uint32_t job, uint32_t device,
                              const struct unit_time *time)
{
    struct policy_job *j = &s->view_jobs[job];
    struct lane *lane = &s->lanes[device];
    uint32_t position = next_position(s, job), shards = job_shards(s, job);
    bool begins = unit_begins(shards, position);
    bool persistent = s->partition->persistent[next_shard(s, job)];
    bool region_used = !persistent || time->in_s > 0 || time->out_s > 0;
    double none = 0; /* no region: what it would wait for */
    double *region = &lane->region_free_s[lane->turn % s->partition->region_count];
    if (!region_used) region = &none;
    bool here = lane->last_job == job && lane->last_unit != PLAN_NONE && !begins &&
                !time_of(s, device, job, position - 1)->cpu_alone;

    double in_end =
        max_s(max_s(lane->h2d_free_s, *region), states_in_memory(s, job, time)) + time->in_s;
    if (!region_used) in_end = states_ready(s, job); /* everything is here */
    double edge_ready = j->ready_s;
    if (!here && !begins) {
        edge_ready = max_s(s->edge_ready_s[job], in_end) + time->edge_in_s;
        lane->h2d_free_s = edge_ready;
    } else {
        lane->h2d_free_s = max_s(lane->h2d_free_s, in_end);
    }
    double start = max_s(max_s(lane->compute_free_s, in_end), edge_ready);
    double end = start + time->compute_s;
    lane->compute_free_s = end;
    lane->d2h_free_s = max_s(lane->d2h_free_s, end) + time->edge_out_s;
    s->edge_ready_s[job] = lane->d2h_free_s;
    *region = end;
    if (time->out_s > 0) *region = lane->d2h_free_s += time->out_s;
    if (time->cpu_s > 0) s->cpu_free_s = max_s(s->cpu_free_s, lane->d2h_free_s) + time->cpu_s;
    enum plan_pass pass = unit_pass_of(shards, position);
    double state_ready = time->cpu_s > 0 ? s->cpu_free_s : *region;
    if (time->write_s > 0)
        state_ready = s->write_free_s = max_s(s->write_free_s, state_ready) + time->write_s;
    if ((pass == PLAN_LOSS || pass == PLAN_BACKWARD) && !s->partition->resident)
        s->state_ready_s[next_shard(s, job)] = state_ready;
    if (region_used) lane->turn++;
    j->ready_s = end;
    s->out->makespan_s = max_s(s->out->makespan_s, max_s(*region, s->write_free_s));
    return start;
}

/* Behind the last backward pass of a job that clips: steps in the order of the shards. The job goes on as
 * soon as the first has been made. */
static void place_updates(struct scheduler *s, uint32_t job, uint32_t device)
{
    uint32_t first = s->partition->job_first_shard[job];
    for (uint32_t i = first; i < first + job_shards(s, job); i++)
        s->state_ready_s[i] = s->cpu_free_s += shard_time(s, device, i)[TIMED_BACK].update_s;
}

/* The job's persistent shards come to its device. (A resident job's were there when it was admitted.) */
static void load_states(struct scheduler *s, uint32_t job, uint32_t device)
{
    const struct partition *p = s->partition;
    struct lane *lane = &s->lanes[device];
    for (uint32_t i = p->job_first_shard[job]; i < p->job_first_shard[job + 1]; i++)
        if (p->persistent[i])
            s->state_ready_s[i] = lane->h2d_free_s += shard_time(s, device, i)->load_s;
}

/* Place the next unit of a job; *start_s is when it computes. */
static enum status place(struct scheduler *s, uint32_t job, uint32_t device, double *start_s,
                         struct error *err)
{
    struct policy_job *j = &s->view_jobs[job];
    struct lane *lane = &s->lanes[device];
    uint32_t position = next_position(s, job);
    const struct unit_time *time = time_of(s, device, job, position);
    bool first = s->minibatch[job] == 0 && position == 0;
    if (first && !s->partition->resident) load_states(s, job, device);
    *start_s = time->cpu_alone ? place_on_cpu(s, job, time) : place_on_device(s, job, device, time);
    double end = j->ready_s;
    if (job_clips(&s->jobs->jobs[job]) && position + 1 == unit_count_of(job_shards(s, job)))
        place_updates(s, job, device);

    struct scheduled_unit unit = {.job = job,
                                  .position = position,
                                  .device = device,
                                  .seat = s->seat[job],
                                  .next_on_device = PLAN_NONE,
                                  .first = first,
                                  .ends = position + 1 == current_positions(s, job)};
    s->position[job] = unit.ends ? 0 : position + 1;
    if (unit.ends) s->minibatch[job]++;
    j->last_device = device;
    j->remaining_s -= time->compute_s;
    unit.last = s->minibatch[job] == s->jobs->jobs[job].minibatches;
    if (unit.last) {
        j->remaining_s = 0;
        if (s->partition->resident) {
            s->seats_free[s->seats_free_count++] = s->seat[job];
            admit(s, end);
        }
    } else {
        if (j->remaining_s <= 0) j->remaining_s = 1e-12; /* rounding must not end it early */
        j->next_device = next_device(s, job);
    }
    if (lane->last_unit != PLAN_NONE)
        s->out->units[lane->last_unit].next_on_device = s->out->count;
    lane->last_unit = s->out->count;
    lane->last_job = job;
    s->out->makespan_s = max_s(s->out->makespan_s, max_s(end, s->cpu_free_s));
    return append(s, &unit, err);
}

/* --- deciding -------------------------------------------------------------------------------- */

/* The earliest time at which some job that may run on the device is ready; HUGE_VAL: none is. */
static double earliest_ready(const struct scheduler *s, uint32_t device)
{
    double earliest = HUGE_VAL;
    for (uint32_t j = 0; j < s->jobs->count; j++) {
        const struct policy_job *job = &s->view_jobs[j];
        if (job->admitted && !job->reserved && job->remaining_s > 0 && job->ready_s < earliest &&
            (job->next_device == PLAN_NONE || job->next_device == device))
            earliest = job->ready_s;
    }
    return earliest;
}

/* The next time after `now_s` at which a job becomes ready; HUGE_VAL: none will. */
static double next_ready(const struct scheduler *s, double now_s)
{
    double next = HUGE_VAL;
    for (uint32_t j = 0; j < s->jobs->count; j++) {
        const struct policy_job *job = &s->view_jobs[j];
        if (job->admitted && job->remaining_s > 0 && job->ready_s > now_s && job->ready_s < next)
            next = job->ready_s;
    }
    return next;
}

/* The device that can start something first, and when. PLAN_NONE: all wait for nothing. */
static uint32_t next_decision(struct scheduler *s, double *at)
{
    uint32_t best = PLAN_NONE;
    double any = s->partition->resident ? 0 : earliest_ready(s, 0);
    *at = HUGE_VAL;
    for (uint32_t d = 0; d < s->view.device_count; d++) {
        const struct lane *lane = &s->lanes[d];
        double ready;
        if (lane->cached != PLAN_NONE) ready = s->view_jobs[lane->cached].ready_s;
        else ready = s->partition->resident ? earliest_ready(s, d) : any;
        double when = max_s(max_s(lane->compute_free_s, lane->not_before_s), ready);
        if (when < *at) {
            *at = when;
            best = d;
        }
    }
    return best;
}

/* The chosen job's last device, when it is as free as `device` and holds nothing chosen ahead. */
static uint32_t prefer_last_device(const struct scheduler *s, uint32_t job, uint32_t device)
{
    uint32_t last = s->view_jobs[job].last_device;
    if (s->partition->resident || last == PLAN_NONE || last >= s->view.device_count) return device;
    const struct lane *lane = &s->lanes[last];
    return lane->cached == PLAN_NONE && lane->compute_free_s <= s->view.now_s ? last : device;
}

/* Choose the device's next unit while its current one, of `own`, runs from start_s on. */
static void choose_ahead(struct scheduler *s, uint32_t device, uint32_t own, double start_s)
{
    double ready = s->view_jobs[own].ready_s;
    s->view.now_s = start_s;
    s->view_jobs[own].ready_s = start_s; /* a candidate: it is done when this device is free */
    s->lanes[device].cached = s->policy->choose(&s->view, device);
    s->view.decision++;
    s->view_jobs[own].ready_s = ready;
    if (s->lanes[device].cached != PLAN_NONE)
        s->view_jobs[s->lanes[device].cached].reserved = true;
}

static enum status run(struct scheduler *s, struct error *err)
{
    uint64_t left = 0;
    for (uint32_t j = 0; j < s->jobs->count; j++) {
        const struct job *job = &s->jobs->jobs[j];
        uint32_t shards = job_shards(s, j);
        left += job->minibatches * unit_count_of(shards) +
                evaluation_count(job) * job->evaluation.minibatches * shards;
    }
    while (left > 0) {
        uint32_t device = next_decision(s, &s->view.now_s);
        assert(device != PLAN_NONE && s->view.now_s < HUGE_VAL);
        struct lane *lane = &s->lanes[device];
        uint32_t job = lane->cached;
        if (job != PLAN_NONE) {
            lane->cached = PLAN_NONE;
            s->view_jobs[job].reserved = false;
        } else {
            job = s->policy->choose(&s->view, device);
            s->view.decision++;
            if (job == PLAN_NONE) { /* the policy waits for something else to happen */
                lane->not_before_s = next_ready(s, s->view.now_s);
                continue;
            }
            device = prefer_last_device(s, job, device);
        }
        double start;
        enum status status = place(s, job, device, &start, err);
        if (status) return status;
        left--;
        for (uint32_t d = 0; d < s->view.device_count; d++) s->lanes[d].not_before_s = 0;
        if (s->policy->commit_ahead && left > 0) choose_ahead(s, device, job, start);
    }
    return STATUS_OK;
}

/* --- public ---------------------------------------------------------------------------------- */

enum status schedule_make(const struct hardware *hardware, const struct job_set *jobs,
                          struct footprints *footprints, const struct partition *partition,
                          const struct policy *policy, uint64_t seed, struct schedule *out,
                          struct error *err)
{
    struct scheduler s = {.hardware = hardware,
                          .jobs = jobs,
                          .partition = partition,
                          .policy = policy,
                          .out = out};
    uint32_t devices = policy->one_device ? 1 : hardware->device_count;
    size_t n = jobs->count + 1u;
    *out = (struct schedule){0};
    s.type_offset = calloc(hardware->type_count, sizeof *s.type_offset);
    s.times = calloc((size_t)hardware->type_count * partition->shard_count * TIMED_PASSES + 1,
                     sizeof *s.times);
    s.load_s = calloc(n, sizeof *s.load_s);
    s.view_jobs = calloc(n, sizeof *s.view_jobs);
    s.minibatch = calloc(n, sizeof *s.minibatch);
    s.position = calloc(n, sizeof *s.position);
    s.edge_ready_s = calloc(n, sizeof *s.edge_ready_s);
    s.state_ready_s = calloc(partition->shard_count + 1u, sizeof *s.state_ready_s);
    s.lanes = calloc(devices, sizeof *s.lanes);
    s.seat = calloc(n, sizeof *s.seat);
    s.seats_free = calloc(partition->seat_count + 1u, sizeof *s.seats_free);
    enum status status = STATUS_OK;
    if (!s.type_offset || !s.times || !s.load_s || !s.view_jobs || !s.minibatch ||
        !s.position || !s.edge_ready_s || !s.state_ready_s || !s.lanes || !s.seat || !s.seats_free) {
        status = error_memory(err, "the schedule", n * sizeof *s.view_jobs);
        goto out;
    }
    for (uint32_t t = 0; t < hardware->type_count; t++)
        s.type_offset[t] = t * partition->shard_count;
    for (uint32_t d = 0; d < devices; d++)
        s.lanes[d].last_job = s.lanes[d].last_unit = s.lanes[d].cached = PLAN_NONE;
    s.view = (struct policy_view){.jobs = s.view_jobs,
                                  .job_count = jobs->count,
                                  .device_count = devices,
                                  .seed = seed};
    fill_times(&s, footprints);
    start_jobs(&s);
    status = run(&s, err);
out:
    free(s.type_offset);
    free(s.times);
    free(s.load_s);
    free(s.view_jobs);
    free(s.minibatch);
    free(s.position);
    free(s.edge_ready_s);
    free(s.state_ready_s);
    free(s.lanes);
    free(s.seat);
    free(s.seats_free);
    if (status) schedule_release(out);
    return status;
}

void schedule_release(struct schedule *schedule)
{
    free(schedule->units);
    *schedule = (struct schedule){0};
}
