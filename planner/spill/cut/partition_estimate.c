/*
 * With several jobs on a device another unit fills each gap, so a minibatch's units add up, each by its largest part. A
 * job by itself cannot fill gaps: a shard's parameters come in again only after its update is out, and a weight buffer
 * is free only after its contents have left. With few, large shards these gaps are most of a minibatch, so its units
 * are put on a device's streams as in schedule.c:
 *
 *     in       | in 1 |      | in 2 |in 2'|           ...
 *     compute         |  1   |      |    2    |   1'  | ...
 *     out                                     | out 2 | out 1 |
 *
 * The estimate is the time that the third minibatch adds to the second.
 */
#include "planner/spill/cut/partition_estimate.h"

#include <string.h>

#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/pass_seconds.h"

struct partition_estimate_load {
    double compute_s;
    uint64_t in_bytes, out_bytes;
};

struct shard_load {
    struct partition_estimate_load forward, backward; /* the loss is a backward pass without a forward pass */
    uint64_t gradient_bytes; /* of its input, which the backward pass sends */
    double cpu_s;
};

uint32_t estimate_place(const struct job *job, uint32_t place)
{
    return job_clips(job) ? PLANNER_PLACE_CPU : place;
}

bool estimate_uses_cpu(const struct job *job, uint32_t place)
{
    return estimate_place(job, place) != PLANNER_PLACE_DEVICE && footprint_can_use_cpu(job);
}

/* Returns the seconds of an embedding's backward pass and the following work. */
static double embedding_back_s(const struct job *job, const struct footprint *f)
{
    return !f->goes_back ? 0 : f->cpu_backward_s + (job_clips(job) ? f->cpu_norm_s + f->cpu_update_s : 0);
}

bool estimate_embedding_on_cpu(const struct job *job, uint32_t place)
{
    return job_takes_outputs(job) || (estimate_uses_cpu(job, place) && footprint_can_slice(job));
}

static void add(struct partition_estimate_load *sum, const struct partition_estimate_load *load)
{
    sum->compute_s += load->compute_s;
    sum->in_bytes += load->in_bytes;
    sum->out_bytes += load->out_bytes;
}

/* Returns a unit's seconds during copies of others. */
static double unit_s(const struct partition_cutter *cutter, const struct partition_candidate *c,
                     const struct partition_estimate_load *load)
{
    uint64_t in_bytes = load->in_bytes, out_bytes = load->out_bytes;
    double in = pass_seconds_copy(cutter->hardware, 0, COPY_H2D, in_bytes);
    double out = pass_seconds_copy(cutter->hardware, 0, COPY_D2H, out_bytes);
    in *= cutter->contention;
    out *= cutter->contention;
    if (c->weight_buffer_count == 1) return in + load->compute_s + out;
    double compute = load->compute_s + cutter->copy_slows_s * (double)(in_bytes + out_bytes);
    return c->weight_buffer_count == 2 ? max_s(compute, in + out) : max_s(compute, max_s(in, out));
}

static uint32_t activations_of(const struct partition_candidate *c, const struct partition_job_cut *cut, uint32_t s)
{
    return cut->kept[s] ? partition_kept_way(c->activations) : c->activations;
}

static struct shard_load load_of(const struct partition_candidate *c, const struct job *job,
                                 const struct plan_shard *shard, const struct footprint *f,
                                 uint32_t activations, bool on_cpu, bool persistent)
{
    bool last = partition_is_last(job, shard->first_layer, shard->layer_count);
    uint64_t spilled =
        plan_activations_spill(activations) && !last ? f->kept_bytes[activations] : 0;
    /* the host receives the state or, if it updates, the gradient */
    uint64_t in = persistent ? 0 : on_cpu ? f->weight_bytes : f->state_bytes;
    uint64_t out = persistent ? 0 : on_cpu ? f->gradient_bytes : f->trained_bytes;
    uint64_t gradient = shard->first_layer > network_first_trained(&job->network) ? f->input_bytes : 0;
    bool has_table = last && footprint_has_table(job);
    uint64_t table = has_table ? footprint_table_bytes(job) : 0;
    uint64_t table_gradient = has_table ? footprint_table_gradient_bytes(job) : 0;
    double backward = last ? f->loss_s[c->loss_inputs] : f->backward_s[activations];
    struct shard_load load = {
        .backward = {.compute_s = backward - (on_cpu ? f->update_s : 0),
                     .in_bytes = in + table + f->input_bytes + f->output_bytes + spilled,
                     .out_bytes = out + table_gradient + gradient},
        .gradient_bytes = gradient,
        .cpu_s = on_cpu && f->trained_bytes > 0 ? f->cpu_update_s + f->cpu_norm_s : 0};
    if (!f->goes_back) load.backward = (struct partition_estimate_load){0};
    if (!last)
        load.forward = (struct partition_estimate_load){
            .compute_s = f->forward_s,
            .in_bytes = (persistent ? 0 : f->weight_bytes) + f->input_bytes,
            .out_bytes = f->output_bytes + spilled};
    return load;
}

struct partition_seconds estimate_shard(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                        uint32_t job, const struct plan_shard *shard, const struct footprint *f,
                                        bool on_cpu)
{
    const struct job *of = &cutter->jobs->jobs[job];
    if (on_cpu && shard->first_layer == 0 && footprint_has_embedding(of))
        return (struct partition_seconds){.cpu = f->cpu_forward_s + embedding_back_s(of, f)};
    struct shard_load load = load_of(c, of, shard, f, c->activations, on_cpu, false);
    return (struct partition_seconds){
        .device = unit_s(cutter, c, &load.forward) + unit_s(cutter, c, &load.backward),
        .cpu = load.cpu_s};
}

/* --- single jobs ------------------------------------------------------------------------------ */

/* The times when streams become free. */
struct estimate_clocks {
    double h2d, compute, d2h, cpu;
    double weight_buffer[PARTITION_WEIGHT_BUFFERS_MAX];
    uint32_t turn;
    double *ready; /* per shard: when its update is in host memory */
};

static bool is_alone(const struct partition_cutter *cutter, const struct partition_candidate *c)
{
    return (!cutter->interleaved || cutter->jobs->count == 1) && c->weight_buffer_count > 1;
}

static double copied_s(const struct partition_cutter *cutter, enum copy_direction direction, uint64_t bytes)
{
    return pass_seconds_copy(cutter->hardware, 0, direction, bytes) * cutter->contention;
}

/* Leaves a unit's output on the device, except copies from or to an embedding on the host's processor. */
static void leave_here(struct shard_load *load, const struct footprint *f, bool last, bool to_host)
{
    load->backward.in_bytes -= !f->goes_back ? 0 : last ? f->input_bytes : f->output_bytes;
    load->backward.out_bytes -= load->gradient_bytes;
    if (!last) load->forward.in_bytes -= f->input_bytes;
    if (!to_host) return;
    load->backward.out_bytes += load->gradient_bytes;
    *(last ? &load->backward.in_bytes : &load->forward.in_bytes) += f->input_bytes;
}

/* Runs a unit of shard `s`, whose data reach host memory at `state_s`. */
static void run_unit(const struct partition_cutter *cutter, const struct partition_candidate *c,
                     struct estimate_clocks *clocks, const struct partition_estimate_load *load, uint32_t s,
                     double state_s, bool persistent, bool updates, double cpu_s)
{
    double in = copied_s(cutter, COPY_H2D, load->in_bytes);
    double out = copied_s(cutter, COPY_D2H, load->out_bytes);
    double compute =
        load->compute_s + cutter->copy_slows_s * (double)(load->in_bytes + load->out_bytes);
    double *weight_buffer = &clocks->weight_buffer[clocks->turn % c->weight_buffer_count];
    double in_start = clocks->h2d;
    if (!persistent) in_start = max_s(in_start, max_s(*weight_buffer, state_s));
    clocks->h2d = in_start + in;
    clocks->compute = max_s(clocks->compute, clocks->h2d) + compute;
    clocks->d2h = max_s(clocks->d2h, clocks->compute) + out;
    if (updates) clocks->ready[s] = clocks->d2h;
    if (updates && cpu_s > 0)
        clocks->ready[s] = clocks->cpu = max_s(clocks->cpu, clocks->d2h) + cpu_s;
    if (persistent) return;
    *weight_buffer = clocks->d2h;
    clocks->turn++;
}

static enum status run_minibatch(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                 uint32_t job, const struct partition_job_cut *cut, struct estimate_clocks *clocks,
                                 struct error *err)
{
    const struct job *of = &cutter->jobs->jobs[job];
    for (uint32_t u = 0; u < 2 * cut->count; u++) {
        bool back = u >= cut->count;
        uint32_t s = back ? 2 * cut->count - 1 - u : u;
        const struct plan_shard *shard = &cut->shards[s];
        const struct footprint *f =
            footprint_of(cutter->footprints, job, shard->first_layer, shard->layer_count);
        if (!f) return cutter_out_of_memory(err);
        bool last = s + 1 == cut->count && !job_makes_outputs(of), on_cpu = cut->on_cpu[s] && !cut->persistent[s];
        if (last && !back) continue; /* the loss does both passes at once */
        if (back && !f->goes_back) continue;
        if (on_cpu && s == 0 && footprint_has_embedding(of)) {
            double seconds = back ? embedding_back_s(of, f) : f->cpu_forward_s;
            clocks->cpu = max_s(clocks->cpu, back ? clocks->d2h : clocks->ready[0]) +
                         (cutter->shares_cpu ? 0 : seconds);
            if (back) clocks->ready[0] = clocks->cpu;
            else clocks->compute = max_s(clocks->compute, clocks->cpu);
            continue;
        }
        struct shard_load load =
            load_of(c, of, shard, f, activations_of(c, cut, s), on_cpu, cut->persistent[s]);
        leave_here(&load, f, last,
                   s == 1 && footprint_has_embedding(of) && cut->on_cpu[0] && !cut->persistent[0]);
        double state = last ? max_s(clocks->ready[s], clocks->ready[0]) : clocks->ready[s];
        run_unit(cutter, c, clocks, back ? &load.backward : &load.forward, s, state,
                 cut->persistent[s], back, cutter->shares_cpu ? 0 : load.cpu_s);
    }
    return STATUS_OK;
}

static enum status minibatch_alone(const struct partition_cutter *cutter, const struct partition_candidate *c,
                                   uint32_t job, const struct partition_job_cut *cut, double *out,
                                   struct error *err)
{
    struct estimate_clocks clocks = {.ready = cut->ready_s};
    double before = 0;
    memset(cut->ready_s, 0, cut->count * sizeof *cut->ready_s);
    for (uint32_t minibatch = 0; minibatch < 3; minibatch++) {
        before = clocks.compute;
        TRY(run_minibatch(cutter, c, job, cut, &clocks, err));
    }
    *out = clocks.compute - before;
    return STATUS_OK;
}

/* --- all passes ------------------------------------------------------------------------------- */

enum status estimate_minibatch(const struct partition_cutter *cutter, const struct partition_candidate *c, uint32_t job,
                               const struct partition_job_cut *cut, struct partition_seconds *out, struct error *err)
{
    const struct job *of = &cutter->jobs->jobs[job];
    uint32_t units = 2 * cut->count;
    struct partition_estimate_load together = {0};
    *out = (struct partition_seconds){0};
    for (uint32_t u = 0; u < units; u++) {
        bool back = u >= cut->count;
        uint32_t s = back ? units - 1 - u : u;
        const struct plan_shard *shard = &cut->shards[s];
        const struct footprint *f =
            footprint_of(cutter->footprints, job, shard->first_layer, shard->layer_count);
        if (!f) return cutter_out_of_memory(err);
        if (back && !f->goes_back) continue;
        bool on_cpu = cut->on_cpu[s] && !cut->persistent[s];
        if (on_cpu && s == 0 && footprint_has_embedding(of)) {
            out->cpu += back ? embedding_back_s(of, f) : f->cpu_forward_s;
            continue;
        }
        struct shard_load load =
            load_of(c, of, shard, f, activations_of(c, cut, s), on_cpu, cut->persistent[s]);
        if (back) out->cpu += load.cpu_s;
        add(&together, back ? &load.backward : &load.forward);
        if (cut->persistent[s]) continue;
        out->device += unit_s(cutter, c, &together);
        together = (struct partition_estimate_load){0};
    }
    out->device += unit_s(cutter, c, &together);
    return is_alone(cutter, c) ? minibatch_alone(cutter, c, job, cut, &out->device, err)
                               : STATUS_OK;
}

double estimate_together(const struct partition_cutter *cutter, struct partition_seconds s)
{
    if (cutter->shares_cpu) return s.device + s.cpu;
    return max_s(s.device, s.cpu * cutter->host_devices);
}
