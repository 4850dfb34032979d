/*
 *     area     all computation, each layer at the speed of the fastest device for it, spread evenly over the devices,
 *              by the faster of two lists of kernels: one device at a time, with logits in pieces; or tensor groups,
 *              with padded words and one optimizer kernel. Recomputation is not counted: another plan might not need
 *              it. Work that the host's processor may do (optimizers, embeddings) is shared so that all end together
 *     chain    the longest job: its minibatches follow each other, on one device at a time without other jobs, each
 *              pass on the fastest device for it. A held-out minibatch follows the last one; with several devices,
 *              other held-out minibatches can overlap with training, and with frozen first layers all can. A parallel
 *              job can be faster
 *     link     (if states start in host memory, planner/plan_charges.h) every state must reach a device once and come
 *              back once; if the processor may update, only the parameters and equally many gradients. If a job's state
 *              exceeds the memory of all devices, at least the excess must come and go in each minibatch after the
 *              first, because each minibatch uses all of the state. Frozen weights that jobs could share
 *              (models/jobs/job_base.h) count once, for the one with the most minibatches. This traffic
 *              crosses the links out of host memory:
 *              each direction at the rate of one direction, and both together at the rate of both, where a simplex link
 *              has its bandwidth once
 *     storage  states that exceed the memory of hosts and devices are on storage: they must be read once and, because
 *              every update changes all of a state, written once. If a job's state exceeds all memory, the excess is
 *              read and written in each minibatch
 *
 * The links form a tree: a link passes at most its own bandwidth and the sum of the links after it. If paths share a
 * link farther from the host than a separate one, they are summed as if separate, which only raises the rate: the bound
 * stays valid.
 */
#include "planner/spill/cut/bound.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "models/cost/cost.h"
#include "models/job/evaluation.h"
#include "models/job/memory.h"
#include "models/job/parallel_work.h"
#include "models/jobs/job_base.h"
#include "planner/plan_charges.h"
#include "planner/plan_work.h"

/* --- links ----------------------------------------------------------------------------------- */

static double link_rate(const struct hardware_link *link, bool both)
{
    return link->bandwidth.value * (both && link->duplex ? 2 : 1);
}

/* Returns the bandwidth through the links from depth `depth` on, for the devices of group[] whose path so far is
 * `leader`'s. */
static double rate_behind(const struct hardware *hw, uint32_t leader, uint32_t depth, bool both)
{
    const struct hardware_device *lead = &hw->devices[leader];
    if (depth >= lead->path_count) return 0;
    double rate = link_rate(&hw->links[lead->path[depth]], both);
    if (depth + 1 == lead->path_count) return rate;
    double behind = 0;
    for (uint32_t d = leader; d < hw->device_count; d++) {
        const struct hardware_device *device = &hw->devices[d];
        if (device->path_count <= depth || device->path[depth] != lead->path[depth]) continue;
        bool counted = false; /* an earlier device leads its branch */
        for (uint32_t i = leader; i < d && !counted; i++)
            counted = hw->devices[i].path_count > depth + 1 && device->path_count > depth + 1 &&
                      hw->devices[i].path[depth] == lead->path[depth] &&
                      hw->devices[i].path[depth + 1] == device->path[depth + 1];
        if (!counted && device->path_count > depth + 1) behind += rate_behind(hw, d, depth + 1, both);
        else if (device->path_count == depth + 1) behind += rate;
    }
    return behind < rate ? behind : rate;
}

/* Computes the same for devices [first, end) with contiguous branches and ascending links, without comparing all pairs.
 * Returns false for others. */
static bool rate_of_run(const struct hardware *hw, uint32_t first, uint32_t end, uint32_t depth, bool both, double *out)
{
    const struct hardware_device *lead = &hw->devices[first];
    double rate = link_rate(&hw->links[lead->path[depth]], both), behind = 0;
    *out = rate;
    for (uint32_t d = first, next; d < end; d = next) {
        const struct hardware_device *device = &hw->devices[d];
        next = d + 1;
        if (device->path_count == depth + 1) {
            behind += rate;
            continue;
        }
        uint32_t link = device->path[depth + 1];
        double branch;
        while (next < end && hw->devices[next].path_count > depth + 1 && hw->devices[next].path[depth + 1] == link)
            next++;
        if (next < end && hw->devices[next].path_count > depth + 1 && hw->devices[next].path[depth + 1] < link)
            return false;
        if (next < end && hw->devices[next].path_count == depth + 1) return false;
        if (!rate_of_run(hw, d, next, depth + 1, both, &branch)) return false;
        behind += branch;
    }
    if (lead->path_count > depth + 1 && behind < rate) *out = behind;
    return true;
}

static bool host_rate_of_runs(const struct hardware *hw, bool both, double *out)
{
    *out = 0;
    for (uint32_t d = 0, next; d < hw->device_count; d = next) {
        double branch;
        if (hw->devices[d].path_count == 0) return false;
        uint32_t link = hw->devices[d].path[0];
        for (next = d + 1;
             next < hw->device_count && hw->devices[next].path_count > 0 && hw->devices[next].path[0] == link;)
            next++;
        if (next < hw->device_count && hw->devices[next].path_count > 0 && hw->devices[next].path[0] < link)
            return false;
        if (!rate_of_run(hw, d, next, 0, both, &branch)) return false;
        *out += branch;
    }
    return true;
}

static double host_rate(const struct hardware *hw, bool both)
{
    double rate = 0;
    if (host_rate_of_runs(hw, both, &rate)) return rate;
    rate = 0;
    for (uint32_t d = 0; d < hw->device_count; d++) {
        bool counted = false;
        for (uint32_t i = 0; i < d && !counted; i++)
            counted = hw->devices[i].path_count > 0 && hw->devices[d].path_count > 0 &&
                      hw->devices[i].path[0] == hw->devices[d].path[0];
        if (!counted) rate += rate_behind(hw, d, 0, both);
    }
    return rate;
}

double bound_host_rate(const struct hardware *hw)
{
    return host_rate(hw, false);
}

/* Which bytes of a job's state count: those that passes read, all, or those that updates change. */
enum bound_bytes { BOUND_WEIGHTS, BOUND_STATE, BOUND_CHANGED };

/* Returns the bytes of a layer, without padding. own: only of what is trained. */
static double layer_bytes(const struct job *job, uint64_t layer, enum bound_bytes which, bool own)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    uint32_t count = network_layer_shapes(&job->network, layer, specs);
    double moments = (double)(optimizer_moments(job->optimizer.kind) *
                              precision_bytes(job->optimizer.moments));
    double bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool rounded = precision_halves_tensor(job->precision, specs[i].matrix, specs[i].adapter);
        bool whole = which != BOUND_WEIGHTS && !specs[i].frozen;
        if ((own || which == BOUND_CHANGED) && specs[i].frozen) continue;
        double weight = (double)precision_bytes(rounded ? PRECISION_BF16 : PRECISION_FP32);
        double master = rounded ? (double)precision_bytes(PRECISION_FP32) : 0;
        bytes += (double)specs[i].elements * (weight + (whole ? master + moments : 0));
    }
    return bytes;
}

/* Returns the bytes that a device must hold of a job in each minibatch, or of these the ones that it changes. If the
 * processor may update, an embedding counts only with a tied head's token table, and the gradients that leave are as
 * many as the weights. own: without frozen weights. */
static double touched_bytes(const struct job *job, bool cpu, bool changed, bool own)
{
    double bytes = 0;
    bool updated_here = !cpu || !footprint_can_use_cpu(job);
    enum bound_bytes which = updated_here ? BOUND_STATE : BOUND_WEIGHTS;
    if (changed && job->network.trained && !updated_here) return 0; /* only gradients of what is trained leave */
    if (changed && job->network.trained) which = BOUND_CHANGED;
    for (uint64_t l = job_layers_begin(job); l < job_layers_end(job); l++)
        if (updated_here || l > 0 || !footprint_can_slice(job))
            bytes += layer_bytes(job, l, which, own);
    bool table_counts = !own || network_first_trained(&job->network) == 0;
    double table = !updated_here && table_counts && footprint_can_slice(job) && footprint_has_table(job)
                       ? (double)footprint_table_bytes(job) : 0;
    return bytes + table;
}

/* Returns what of a job's state must at least cross in a minibatch where the devices hold `memory`: what they lack. */
static double excess(double state, double memory) { return state > memory ? state - memory : 0; }

/* Returns true if another job has the same frozen weights and as many minibatches, or more. `prints`: of bases. */
static bool base_counts_elsewhere(const struct job_set *jobs, const uint64_t *prints, uint32_t j)
{
    if (!prints) return job_has_base(&jobs->jobs[j]); /* without memory: a lower bound still */
    for (uint32_t i = 0; job_has_base(&jobs->jobs[j]) && i < jobs->count; i++)
        if (i != j && prints[i] == prints[j] &&
            (jobs->jobs[i].minibatches > jobs->jobs[j].minibatches ||
             (jobs->jobs[i].minibatches == jobs->jobs[j].minibatches && i < j)))
            return true;
    return false;
}

/* Returns the fingerprints of all jobs' bases, to be freed; NULL: there are no bases, or no memory for these. */
static uint64_t *base_prints(const struct job_set *jobs)
{
    uint32_t first = 0;
    while (first < jobs->count && !job_has_base(&jobs->jobs[first])) first++;
    uint64_t *prints = first < jobs->count ? alloc_zeroed(jobs->count, sizeof *prints) : NULL;
    for (uint32_t j = 0; prints && j < jobs->count; j++) prints[j] = job_base_fingerprint(&jobs->jobs[j]);
    return prints;
}

/* *bytes: to devices. *rate: at which these, or the bytes of both directions, cross the links. What comes back is what
 * changes: as much, unless some is frozen. */
static double link_bound(const struct hardware *hw, const struct job_set *jobs, bool cpu,
                         double *bytes, double *rate)
{
    double memory = 0, moved = 0, back = 0;
    uint64_t *prints = base_prints(jobs);
    for (uint32_t d = 0; d < hw->device_count; d++) memory += (double)hw->devices[d].memory_bytes;
    for (uint32_t j = 0; j < jobs->count; j++) {
        const struct job *job = &jobs->jobs[j];
        const bool own = base_counts_elsewhere(jobs, prints, j);
        double state = touched_bytes(job, cpu, false, own), changed = touched_bytes(job, cpu, true, own),
               times = (double)(job->minibatches - 1);
        double again = excess(state, memory), out = excess(changed, memory);
        moved += (plan_charges_count(hw) ? state : again) + again * times;
        back += (plan_charges_count(hw) ? changed : out) + out * times;
    }
    free(prints);
    *bytes = moved;
    double one = host_rate(hw, false), both = host_rate(hw, true);
    bool together = both < 2 * one;
    *rate = together ? both : one;
    return one > 0 ? (moved + (together ? back : 0)) / *rate : 0;
}

/* --- storage --------------------------------------------------------------------------------- */

/* Counts jobs that exceed memory by themselves; smaller ones may take turns. *bytes: per direction. */
static double storage_bound(const struct hardware *hw, const struct job_set *jobs, double *bytes)
{
    double memory = hw->host_bytes.value, states = 0, again = 0;
    *bytes = 0;
    if (!hardware_has_storage(hw)) return 0;
    for (uint32_t d = 0; d < hw->device_count; d++) memory += (double)hw->devices[d].memory_bytes;
    for (uint32_t j = 0; j < jobs->count; j++) {
        const struct job *job = &jobs->jobs[j];
        double state = touched_bytes(job, false, true, false); /* read and written as much */
        if (state <= memory) continue;
        states += state;
        again += (state - memory) * (double)(job->minibatches - 1);
    }
    *bytes = states > memory ? states - memory + again : 0;
    double share = *bytes / hardware_host_count(hw); /* share of each node's storage, at best */
    double each = share / cost_storage_bandwidth(hw, STORAGE_READ);
    double other = share / cost_storage_bandwidth(hw, STORAGE_WRITE);
    double both = 2 * share / hardware_storage_rate(hw);
    if (other > each) each = other;
    return both > each ? both : each;
}

/* --- computation ----------------------------------------------------------------------------- */

struct bound_parts {
    double device, movable, movable_on_cpu;
};

static double pass_s(const struct hardware *hw, uint32_t device, const struct job *job,
                     uint64_t layer, enum plan_pass pass, uint32_t how)
{
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    uint32_t count = plan_work_items(job, layer, 1, pass, UNIT_KEEP | how, 0, 0, items);
    return cost_device_s(hw, device, items, count);
}

/* Returns the end of the layers from `layer` with like passes; the last layer has the loss. */
static uint64_t alike_passes_end(const struct job *job, uint64_t layer)
{
    uint64_t end = network_alike_end(&job->network, layer), layers = job->network.layer_count;
    if (end > job_layers_end(job)) return job_layers_end(job);
    return layer + 1 < layers && end == layers ? end - 1 : end;
}

/* If a job clips, nothing gathers its embedding's rows. */
static bool gathers_apart(const struct job *job, uint64_t layer)
{
    return layer == 0 && job_clips(job) && footprint_can_slice(job);
}

/* Returns the seconds on all hosts' processors together. */
static double processors_s(const struct hardware *hw, const struct job *job, uint64_t layer, enum plan_pass pass)
{
    return pass_s(hw, hardware_cpu(hw), job, layer, pass, 0) / hardware_host_count(hw);
}

/* The first device of each type. */
struct kinds {
    uint32_t device[HARDWARE_DEVICE_TYPES_MAX];
    uint32_t count;
};

static struct kinds find_kinds(const struct hardware *hw)
{
    struct kinds kinds = {.count = 0};
    bool seen[HARDWARE_DEVICE_TYPES_MAX] = {false};
    for (uint32_t d = 0; d < hw->device_count; d++) {
        if (seen[hw->devices[d].type]) continue;
        seen[hw->devices[d].type] = true;
        kinds.device[kinds.count++] = d;
    }
    return kinds;
}

/* Returns the least seconds of a pass, without its update, on any device. */
static double least_pass_s(const struct hardware *hw, const struct kinds *kinds, const struct job *job, uint64_t layer,
                           enum plan_pass pass)
{
    double best = HUGE_VAL;
    bool updates = pass == PLAN_LOSS || pass == PLAN_BACKWARD;
    for (uint32_t k = 0; k < kinds->count; k++) {
        uint32_t device = kinds->device[k];
        double update_s = updates ? pass_s(hw, device, job, layer, PLAN_UPDATE, 0) : 0;
        best = min_s(best, pass_s(hw, device, job, layer, pass, 0) - update_s);
    }
    return best;
}

/* A held-out minibatch has only forward passes. */
static struct bound_parts held_out_parts(const struct hardware *hw, const struct kinds *kinds, const struct job *job,
                                         bool cpu)
{
    struct bound_parts parts = {0};
    for (uint64_t l = job_layers_begin(job); l < job->network.layer_count; l++) {
        double seconds = least_pass_s(hw, kinds, job, l, PLAN_EVALUATE);
        if (gathers_apart(job, l)) continue;
        if (cpu && l == 0 && footprint_can_slice(job)) {
            parts.movable += seconds;
            parts.movable_on_cpu += processors_s(hw, job, l, PLAN_EVALUATE);
        } else {
            parts.device += seconds;
        }
    }
    return parts;
}

/* Returns the seconds of a layer's passes on one device, without the update. */
static double own_passes_s(const struct hardware *hw, const struct kinds *kinds, const struct job *job, uint64_t layer)
{
    bool last = layer + 1 == job->network.layer_count;
    double forward = last || gathers_apart(job, layer) ? 0 : least_pass_s(hw, kinds, job, layer, PLAN_FORWARD);
    return forward + least_pass_s(hw, kinds, job, layer, last ? PLAN_LOSS : PLAN_BACKWARD);
}

/* Without recomputation. */
static struct bound_parts minibatch_parts(const struct hardware *hw, const struct kinds *kinds, const struct job *job,
                                          bool cpu)
{
    struct bound_parts parts = {0};
    uint64_t layers = job_layers_end(job);
    for (uint64_t l = job_layers_begin(job), end; l < layers; l = end) {
        bool rows = l == 0 && layers > 1 && footprint_can_slice(job);
        end = alike_passes_end(job, l);
        double times = (double)(end - l), passes = own_passes_s(hw, kinds, job, l);
        double update = least_pass_s(hw, kinds, job, l, PLAN_UPDATE);
        *(cpu && rows ? &parts.movable : &parts.device) += times * passes;
        *(cpu ? &parts.movable : &parts.device) += times * update;
        if (cpu && rows)
            parts.movable_on_cpu += (gathers_apart(job, l) ? 0 : processors_s(hw, job, l, PLAN_FORWARD)) +
                                    processors_s(hw, job, l, PLAN_BACKWARD);
        else if (cpu)
            parts.movable_on_cpu += times * processors_s(hw, job, l, PLAN_UPDATE);
    }
    return parts;
}

/* Returns the least time of `devices` and the processor, which share the movable part: both end together, or the
 * processor has it all and ends first. */
static double shared_s(struct bound_parts p, uint32_t devices)
{
    double sum = p.movable + devices * p.movable_on_cpu;
    double moved = sum > 0 ? (p.device + p.movable) / sum : 0;
    if (moved > 1) moved = 1;
    return (p.device + (1 - moved) * p.movable) / devices;
}

static void add_parts(struct bound_parts *sum, struct bound_parts part, double times)
{
    sum->device += part.device * times;
    sum->movable += part.movable * times;
    sum->movable_on_cpu += part.movable_on_cpu * times;
}

/* --- computation in any plan ------------------------------------------------------------------ */

/* Returns the seconds of a parallel job's pass, for all microbatches; `padded`: the number of words is a multiple of
 * 8. */
static double parallel_pass_s(const struct hardware *hw, uint32_t device, const struct job *job, uint64_t layer,
                              enum parallel_pass pass, bool padded)
{
    enum { PADDED_TO = 8 };
    struct work_item items[PARALLEL_WORK_MAX];
    struct job own = *job;
    own.parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B};
    memset(own.compression, 0, sizeof own.compression);
    if (padded) own.network.vocabulary = (job->network.vocabulary + PADDED_TO - 1) / PADDED_TO * PADDED_TO;
    uint32_t count = parallel_work(&own, (struct parallel_layers){layer, 1}, pass, items);
    return (double)job->microbatches * cost_device_s(hw, device, items, count);
}

static double parallel_passes_s(const struct hardware *hw, uint32_t device, const struct job *job, uint64_t layer)
{
    double best = HUGE_VAL;
    for (int padded = 0; padded < 2; padded++)
        best = min_s(best, parallel_pass_s(hw, device, job, layer, PARALLEL_FORWARD, padded) +
                               parallel_pass_s(hw, device, job, layer, PARALLEL_BACKWARD, padded));
    return best;
}

static double one_step_s(const struct hardware *hw, uint32_t device, const struct job *job)
{
    struct work_item step = {.count = 1, .m = network_parameters(&job->network), .n = job->precision != PRECISION_FP32};
    double best = HUGE_VAL;
    if (job->network.family == NETWORK_PROFILE) return 0;
    for (int apart = 0; apart < 2; apart++) {
        step.kernel = optimizer_kernel(job_state_format(job), apart);
        best = min_s(best, cost_device_s(hw, device, &step, 1));
    }
    return best;
}

/* Returns the least seconds of a layer's passes, by the faster list of kernels. */
static double any_passes_s(const struct hardware *hw, const struct kinds *kinds, const struct job *job, uint64_t layer)
{
    double best = own_passes_s(hw, kinds, job, layer);
    for (uint32_t k = 0; k < kinds->count && !job_clips(job); k++)
        best = min_s(best, parallel_passes_s(hw, kinds->device[k], job, layer));
    return best;
}

/* Returns a minibatch's least parts in any plan, by each layer's fastest type and list. */
static struct bound_parts least_parts(const struct hardware *hw, const struct kinds *kinds, const struct job *job,
                                      bool cpu)
{
    struct bound_parts parts = {0};
    double update_s = 0, host_s = 0;
    for (uint64_t l = job_layers_begin(job), end; l < job_layers_end(job); l = end) {
        bool embedding = l == 0 && job->network.layer_count > 1 && footprint_can_slice(job);
        end = alike_passes_end(job, l);
        double times = (double)(end - l);
        update_s += times * least_pass_s(hw, kinds, job, l, PLAN_UPDATE);
        *(cpu && embedding ? &parts.movable : &parts.device) += times * any_passes_s(hw, kinds, job, l);
        if (!cpu) continue;
        host_s += times * processors_s(hw, job, l, PLAN_UPDATE);
        if (embedding)
            parts.movable_on_cpu += (gathers_apart(job, l) ? 0 : processors_s(hw, job, l, PLAN_FORWARD)) +
                                    processors_s(hw, job, l, PLAN_BACKWARD) - processors_s(hw, job, l, PLAN_UPDATE);
    }
    for (uint32_t k = 0; k < kinds->count; k++) update_s = min_s(update_s, one_step_s(hw, kinds->device[k], job));
    *(cpu ? &parts.movable : &parts.device) += update_s;
    if (cpu) parts.movable_on_cpu += min_s(host_s, one_step_s(hw, hardware_cpu(hw), job) / hardware_host_count(hw));
    return parts;
}

/* Parallel jobs have no held-out minibatches. */
static struct bound_parts least_job_parts(const struct hardware *hw, const struct kinds *kinds, const struct job *job,
                                          bool cpu)
{
    bool movable = cpu && footprint_can_use_cpu(job);
    double held_out = (double)evaluation_count(job) * (double)job->evaluation.minibatches;
    struct bound_parts parts = {0};
    add_parts(&parts, least_parts(hw, kinds, job, movable), (double)job->minibatches);
    if (held_out > 0) add_parts(&parts, held_out_parts(hw, kinds, job, movable), held_out);
    return parts;
}

/* --- on one device at a time ------------------------------------------------------------------- */

/* Returns the parts that follow each other: a job's minibatches and a last held-out one. Other held-out minibatches can
 * overlap with training. */
static struct bound_parts chain_parts(const struct hardware *hw, const struct kinds *kinds, const struct job *job,
                                      bool cpu)
{
    bool movable = cpu && footprint_can_use_cpu(job);
    double held_out = (double)evaluation_count(job) * (double)job->evaluation.minibatches;
    /* forward passes of frozen first layers wait for no update: on other devices they overlap with the minibatch
     * before, also those of held-out minibatches */
    const bool overlaps = network_first_trained(&job->network) > 0 && hw->device_count > 1;
    struct bound_parts parts = {0};
    add_parts(&parts, minibatch_parts(hw, kinds, job, movable), overlaps ? 1 : (double)job->minibatches);
    if (held_out > 0 && !overlaps)
        add_parts(&parts, held_out_parts(hw, kinds, job, movable), hw->device_count == 1 ? held_out : 1);
    return parts;
}

/* --- the largest bound ------------------------------------------------------------------------- */

struct bound_values {
    double area, chain, link, storage;     /* seconds */
    double moved, bytes_per_s, stored;     /* of link and storage */
    const char *longest;                   /* job of the chain */
    bool shared;                           /* the host's processor can have optimizers */
};

static enum plan_bound_kind largest(const struct bound_values *v, double *seconds)
{
    *seconds = max_s(max_s(v->area, v->chain), max_s(v->link, v->storage));
    if (v->storage > max_s(v->area, max_s(v->chain, v->link))) return BOUND_STORAGE;
    if (v->link > max_s(v->area, v->chain)) return BOUND_LINK;
    return v->chain > v->area ? BOUND_CHAIN : BOUND_AREA;
}

static void describe(const struct hardware *hw, const struct bound_values *v, enum plan_bound_kind kind, char *out,
                     size_t size)
{
    char text[QUANTITY_TEXT_BYTES], rate[QUANTITY_TEXT_BYTES];
    if (kind == BOUND_STORAGE)
        snprintf(out, size, "at least %s must be read from storage and as many bytes written, at %s in all",
                 quantity_text(v->stored, DIMENSION_BYTES, text),
                 quantity_text(hardware_host_count(hw) * hardware_storage_rate(hw), DIMENSION_BYTES_PER_S, rate));
    else if (kind == BOUND_LINK)
        snprintf(out, size, "at least %s must cross the links of host memory in each direction, at %s in all",
                 quantity_text(v->moved, DIMENSION_BYTES, text),
                 quantity_text(v->bytes_per_s, DIMENSION_BYTES_PER_S, rate));
    else if (kind == BOUND_CHAIN)
        snprintf(out, size,
                 "on one device at a time the minibatches of job '%.80s' follow each other: %s of computation",
                 v->longest, quantity_text(v->chain, DIMENSION_SECONDS, text));
    else
        snprintf(out, size, "%s of computation on %u device%s%s",
                 quantity_text(v->area * hw->device_count, DIMENSION_SECONDS, text), hw->device_count,
                 hw->device_count == 1 ? "" : "s", v->shared ? ", optimizers shared with the host's processor" : "");
}

void bound_makespan(const struct hardware *hw, const struct job_set *jobs, bool cpu,
                    struct bound *out)
{
    const struct kinds kinds = find_kinds(hw);
    struct bound_parts all = {0};
    struct bound_values values = {.chain = 0};
    for (uint32_t j = 0; j < jobs->count; j++) {
        struct bound_parts parts = chain_parts(hw, &kinds, &jobs->jobs[j], cpu);
        double alone = shared_s(parts, 1);
        add_parts(&all, least_job_parts(hw, &kinds, &jobs->jobs[j], cpu), 1);
        if (alone <= values.chain) continue;
        values.chain = alone;
        values.longest = jobs->jobs[j].name;
    }
    values.area = shared_s(all, hw->device_count);
    values.shared = all.movable > 0;
    values.link = link_bound(hw, jobs, cpu, &values.moved, &values.bytes_per_s);
    values.storage = storage_bound(hw, jobs, &values.stored);
    *out = (struct bound){.seconds = 0};
    out->kind = largest(&values, &out->seconds);
    describe(hw, &values, out->kind, out->text, sizeof out->text);
    values.chain = 0;
    out->any_kind = largest(&values, &out->any_s);
    describe(hw, &values, out->any_kind, out->any_text, sizeof out->any_text);
}
