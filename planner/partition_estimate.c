#include "planner/partition_estimate.h"

#include "models/cost.h"

/* What a unit computes and copies. */
struct load {
    double compute_s;
    uint64_t in_bytes, out_bytes;
};

struct shard_load {
    struct load forward, backward; /* the loss is a backward pass without a forward pass */
    double cpu_s;
};

bool estimate_uses_cpu(const struct job *job, uint32_t place)
{
    return place != PLACE_DEVICE && job_can_use_cpu(job);
}

bool estimate_embedding_on_cpu(const struct job *job, uint32_t place)
{
    return estimate_uses_cpu(job, place) && job_slices(job);
}

static void add(struct load *sum, const struct load *load)
{
    sum->compute_s += load->compute_s;
    sum->in_bytes += load->in_bytes;
    sum->out_bytes += load->out_bytes;
}

/* Seconds of a unit that computes while copies in and out of others go on. */
static double unit_s(const struct cutter *cutter, const struct candidate *c, const struct load *load)
{
    uint64_t in_bytes = load->in_bytes, out_bytes = load->out_bytes;
    double in = in_bytes ? cost_copy_s(cutter->hardware, 0, COPY_H2D, in_bytes) : 0;
    double out = out_bytes ? cost_copy_s(cutter->hardware, 0, COPY_D2H, out_bytes) : 0;
    in *= cutter->contention;
    out *= cutter->contention;
    if (c->region_count == 1) return in + load->compute_s + out;
    double compute = load->compute_s + cutter->copy_slows_s * (double)(in_bytes + out_bytes);
    return c->region_count == 2 ? max_s(compute, in + out) : max_s(compute, max_s(in, out));
}

static struct shard_load load_of(const struct candidate *c, const struct job *job,
                                 const struct plan_shard *shard, const struct footprint *f,
                                 bool on_cpu, bool persistent)
{
    bool last = is_last(job, shard->first_layer, shard->layer_count);
    uint64_t spilled = c->activations == ACTIVATIONS_SPILL && !last ? f->activation_bytes : 0;
    /* to the host go the state or, in its place, the gradient of the parameters */
    uint64_t state = persistent ? 0 : on_cpu ? f->parameter_bytes : f->state_bytes;
    uint64_t table = last && job_has_table(job) ? job_table_bytes(job) : 0;
    double backward = last                                            ? f->loss_s
                      : c->activations == ACTIVATIONS_RECOMPUTE ? f->backward_recompute_s
                                                                : f->backward_kept_s;
    struct shard_load load = {
        .backward = {.compute_s = backward - (on_cpu ? f->update_s : 0),
                     .in_bytes = state + table + f->input_bytes + f->output_bytes + spilled,
                     .out_bytes = state + table + f->input_bytes},
        .cpu_s = on_cpu ? f->cpu_update_s : 0};
    if (!last)
        load.forward = (struct load){
            .compute_s = f->forward_s,
            .in_bytes = (persistent ? 0 : f->parameter_bytes) + f->input_bytes,
            .out_bytes = f->output_bytes + spilled};
    return load;
}

struct seconds estimate_shard(const struct cutter *cutter, const struct candidate *c, uint32_t job,
                              const struct plan_shard *shard, const struct footprint *f, bool on_cpu)
{
    const struct job *of = &cutter->jobs->jobs[job];
    if (on_cpu && shard->first_layer == 0 && job_has_embedding(of))
        return (struct seconds){.cpu = f->cpu_forward_s + f->cpu_backward_s};
    struct shard_load load = load_of(c, of, shard, f, on_cpu, false);
    return (struct seconds){
        .device = unit_s(cutter, c, &load.forward) + unit_s(cutter, c, &load.backward),
        .cpu = load.cpu_s};
}

enum status estimate_minibatch(const struct cutter *cutter, const struct candidate *c, uint32_t job,
                               const struct job_cut *cut, struct seconds *out, struct error *err)
{
    const struct job *of = &cutter->jobs->jobs[job];
    uint32_t units = 2 * cut->count;
    struct load together = {0};
    *out = (struct seconds){0};
    for (uint32_t u = 0; u < units; u++) {
        bool back = u >= cut->count;
        uint32_t s = back ? units - 1 - u : u;
        const struct plan_shard *shard = &cut->shards[s];
        const struct footprint *f =
            footprint_of(cutter->footprints, job, shard->first_layer, shard->layer_count);
        if (!f) return cutter_out_of_memory(err);
        bool on_cpu = cut->on_cpu[s] && !cut->persistent[s];
        if (on_cpu && s == 0 && job_has_embedding(of)) {
            out->cpu += back ? f->cpu_backward_s : f->cpu_forward_s;
            continue;
        }
        struct shard_load load = load_of(c, of, shard, f, on_cpu, cut->persistent[s]);
        if (back) out->cpu += load.cpu_s;
        add(&together, back ? &load.backward : &load.forward);
        if (cut->persistent[s]) continue;
        out->device += unit_s(cutter, c, &together);
        together = (struct load){0};
    }
    out->device += unit_s(cutter, c, &together);
    return STATUS_OK;
}

double estimate_together(const struct cutter *cutter, struct seconds s)
{
    if (cutter->shares_cpu) return s.device + s.cpu;
    uint32_t devices = cutter->interleaved ? cutter->hardware->device_count : 1;
    return max_s(s.device, s.cpu * devices);
}
