/*
 * The partitioner asks for a few thousand shards per job, mostly repeatedly. Asking models/ costs microseconds, because
 * memory tables are rebuilt; the cache costs nanoseconds. Jobs that differ only in name, seed, data or learning rate
 * count as their lowest one, the twin.
 *
 * L equal blocks have L ranges to measure, not L squared.
 *
 * The cache is a growing open-addressed table of (twin, first, count).
 */
#include "planner/spill/cut/footprint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "models/job/memory.h"
#include "models/network/network_graph.h"
#include "models/network/network_traits.h"
#include "planner/pass_seconds.h"

struct footprint_entry {
    uint64_t first_layer, layer_count; /* layer_count 0: free */
    uint32_t twin;
    struct footprint footprint;
};

struct footprints {
    const struct hardware *hardware;
    const struct job_set *jobs;
    uint32_t *twins;
    struct footprint_entry *entries;
    size_t capacity; /* a power of two */
    size_t count;
};

/* --- the embedding --------------------------------------------------------------------------- */

bool footprint_has_embedding(const struct job *job)
{
    return network_layer_kind(&job->network, 0) == LAYER_EMBEDDING;
}

bool footprint_has_table(const struct job *job)
{
    return footprint_has_embedding(job) && job->network.tied_head;
}

bool footprint_can_slice(const struct job *job)
{
    return network_has_plain_tables(&job->network);
}

bool footprint_can_use_cpu(const struct job *job)
{
    return !network_is_listed(&job->network);
}

uint64_t footprint_embedding_rows(const struct job *job)
{
    return network_table_rows(&job->network);
}

uint64_t footprint_table_row_bytes(const struct job *job)
{
    return network_word_width(&job->network) * precision_weight_bytes(job->precision);
}

uint64_t footprint_table_bytes(const struct job *job)
{
    return job->network.vocabulary * footprint_table_row_bytes(job);
}

uint64_t footprint_table_gradient_bytes(const struct job *job)
{
    if (network_first_trained(&job->network) > 0) return 0; /* the table is frozen */
    return job->network.vocabulary * network_word_width(&job->network) * sizeof(float);
}

/* --- twins ----------------------------------------------------------------------------------- */

static bool same_profile(const struct network *a, const struct network *b)
{
    if (a->profile == b->profile) return true;
    return a->profile && b->profile &&
           a->profile_samples == b->profile_samples &&
           memcmp(a->profile, b->profile, a->layer_count * sizeof *a->profile) == 0;
}

static bool same_shape(const struct job *a, const struct job *b)
{
    const struct network *m = &a->network, *n = &b->network;
    return a->sequence == b->sequence && a->microbatch == b->microbatch &&
           a->microbatches == b->microbatches && a->tree == b->tree && a->shares_base == b->shares_base &&
           (a->evaluation.every > 0) == (b->evaluation.every > 0) && a->keep_best == b->keep_best &&
           a->outputs.layers == b->outputs.layers && a->outputs.makes == b->outputs.makes &&
           a->precision == b->precision && a->optimizer.kind == b->optimizer.kind &&
           a->optimizer.moments == b->optimizer.moments && job_clips(a) == job_clips(b) &&
           m->family == n->family &&
           m->layer_count == n->layer_count && m->width == n->width && m->heads == n->heads &&
           m->kv_heads == n->kv_heads && m->rotary_width == n->rotary_width &&
           m->encoder_blocks == n->encoder_blocks && m->decoder_tokens == n->decoder_tokens &&
           m->relative_buckets == n->relative_buckets && m->gated == n->gated &&
           m->experts == n->experts && m->experts_chosen == n->experts_chosen &&
           m->shared_width == n->shared_width && m->dense_width == n->dense_width && m->sparse_step == n->sparse_step &&
           m->dense_count == n->dense_count && memcmp(m->dense_blocks, n->dense_blocks, sizeof m->dense_blocks) == 0 &&
           m->head_width == n->head_width && m->ff_width == n->ff_width &&
           m->vocabulary == n->vocabulary && m->positions == n->positions && m->word_width == n->word_width &&
           network_drops(m) == network_drops(n) && memcmp(m->ignored, n->ignored, sizeof m->ignored) == 0 &&
           m->post_norm == n->post_norm && m->serial_residual == n->serial_residual &&
           m->token_types == n->token_types && m->image == n->image && m->patch == n->patch &&
           m->channels == n->channels && m->classes == n->classes &&
           m->tied_head == n->tied_head && m->causal == n->causal && m->biases == n->biases &&
           m->pooler == n->pooler && network_trains_alike(m, n) && same_profile(m, n) &&
           graph_is_same(m->graph, n->graph);
}

/* --- the cache ------------------------------------------------------------------------------- */

enum status footprints_create(const struct hardware *hardware, const struct job_set *jobs,
                              struct footprints **out, struct error *err)
{
    struct footprints *f = alloc_zeroed(1, sizeof *f);
    size_t capacity = 4096;
    if (f) {
        f->hardware = hardware;
        f->jobs = jobs;
        f->capacity = capacity;
        f->twins = alloc_zeroed(jobs->count ? jobs->count : 1, sizeof *f->twins);
        f->entries = alloc_zeroed(capacity, sizeof *f->entries);
    }
    if (!f || !f->twins || !f->entries) {
        footprints_destroy(f);
        return error_memory(err, "the table of shard sizes", capacity * sizeof *f->entries);
    }
    for (uint32_t j = 0; j < jobs->count; j++) {
        uint32_t twin = j;
        for (uint32_t i = 0; i < j && twin == j; i++)
            if (f->twins[i] == i && same_shape(&jobs->jobs[i], &jobs->jobs[j])) twin = i;
        f->twins[j] = twin;
    }
    *out = f;
    return STATUS_OK;
}

void footprints_destroy(struct footprints *f)
{
    if (!f) return;
    free(f->twins);
    free(f->entries);
    free(f);
}

void footprints_rebind(struct footprints *f, const struct hardware *hardware,
                       const struct job_set *jobs)
{
    f->hardware = hardware;
    f->jobs = jobs;
}

uint32_t footprint_twin(const struct footprints *f, uint32_t job)
{
    return f->twins[job];
}

static struct footprint_entry *find_entry(struct footprint_entry *entries, size_t capacity, uint32_t twin,
                                          uint64_t first_layer, uint64_t layer_count)
{
    size_t at = random_mix(first_layer * 0x10001u + layer_count + ((uint64_t)twin << 40));
    for (;; at++) {
        struct footprint_entry *entry = &entries[at & (capacity - 1)];
        if (entry->layer_count == 0) return entry;
        if (entry->twin == twin && entry->first_layer == first_layer &&
            entry->layer_count == layer_count)
            return entry;
    }
}

static bool grow(struct footprints *f)
{
    size_t capacity = f->capacity * 2;
    struct footprint_entry *entries = alloc_zeroed(capacity, sizeof *entries);
    if (!entries) return false;
    for (size_t i = 0; i < f->capacity; i++) {
        const struct footprint_entry *e = &f->entries[i];
        if (e->layer_count)
            *find_entry(entries, capacity, e->twin, e->first_layer, e->layer_count) = *e;
    }
    free(f->entries);
    f->entries = entries;
    f->capacity = capacity;
    return true;
}

static void measure_seconds(const struct hardware *hardware, const struct job *job, uint64_t first,
                            uint64_t count, struct footprint *out)
{
    bool last = first + count == job->network.layer_count;
    out->forward_s = pass_seconds(hardware, 0, job, first, count, PLAN_FORWARD, 0);
    for (uint32_t a = 0; a < ACTIVATIONS_COUNT && !last; a++)
        out->backward_s[a] =
            pass_seconds(hardware, 0, job, first, count, PLAN_BACKWARD, plan_activations_way(a));
    for (uint32_t inputs = 0; inputs < 2 && last; inputs++)
        out->loss_s[inputs] =
            pass_seconds(hardware, 0, job, first, count, PLAN_LOSS, inputs ? UNIT_INPUTS : 0);
    out->update_s = pass_seconds(hardware, 0, job, first, count, PLAN_UPDATE, 0);
    if (!hardware_has_cpu(hardware) || !footprint_can_use_cpu(job)) return;
    uint32_t cpu = hardware_cpu(hardware);
    out->cpu_update_s = pass_seconds(hardware, cpu, job, first, count, PLAN_UPDATE, 0);
    if (job_clips(job)) out->cpu_norm_s = pass_seconds(hardware, cpu, job, first, count, PLAN_NORM, 0);
    if (first > 0 || count > 1 || !footprint_can_slice(job)) return;
    out->cpu_forward_s = pass_seconds(hardware, cpu, job, first, count, PLAN_FORWARD, 0);
    out->cpu_backward_s = pass_seconds(hardware, cpu, job, first, count, PLAN_BACKWARD,
                                 job_clips(job) ? UNIT_GRADIENTS_OUT : 0);
}

/* The first shard of a job that takes kept outputs: passes copy their rows. */
static void measure_recall(const struct hardware *hardware, const struct job *job, uint64_t count,
                           struct footprint *out)
{
    memset(out->workspace_bytes, 0, sizeof out->workspace_bytes);
    if (hardware_has_cpu(hardware))
        out->cpu_forward_s = pass_seconds(hardware, hardware_cpu(hardware), job, 0, count, PLAN_RECALL, 0);
}

static void measure(const struct footprints *f, const struct job *job, uint64_t first,
                    uint64_t count, struct footprint *out)
{
    const struct network *network = &job->network;
    uint64_t b = job_samples(job), t = job->sequence, end = first + count;
    const struct state_layout state = job_state(job, first, count);
    out->frozen_bytes = state.parts[STATE_FROZEN].bytes;
    out->weight_bytes = state_weight_bytes(&state);
    out->value_bytes = state_value_bytes(&state);
    out->state_bytes = state.bytes;
    out->trained_bytes = state_trained_bytes(&state);
    out->gradient_bytes = memory_parameter_bytes(network, first, count);
    out->goes_back = end > network_first_trained(network);
    for (uint32_t a = 0; a < ACTIVATIONS_COUNT; a++)
        out->kept_bytes[a] = job_kept_bytes(job, first, count, plan_activations_way(a));
    out->input_bytes = first ? memory_boundary_bytes(network, first - 1, b, t, job->precision) : 0;
    out->output_bytes =
        end < network->layer_count ? memory_boundary_bytes(network, end - 1, b, t, job->precision) : 0;
    if (first == 0 && job_takes_outputs(job)) { /* others may stand for like layers after it */
        measure_recall(f->hardware, job, count, out);
        return;
    }
    memory_workspaces(network, first, count, job_pass_way(job, first), job_pass_samples(job, first), t,
                      out->workspace_bytes);
    measure_seconds(f->hardware, job, first, count, out);
}

static uint64_t alike(const struct network *network, uint64_t first, uint64_t count)
{
    bool equal = network_alike_end(network, first) >= first + count;
    return equal ? network_alike_begin(network, first) : first;
}

const struct footprint *footprint_of(struct footprints *f, uint32_t job, uint64_t first_layer,
                                     uint64_t layer_count)
{
    assert(layer_count > 0);
    uint32_t twin = f->twins[job];
    first_layer = alike(&f->jobs->jobs[twin].network, first_layer, layer_count);
    if (f->count * 2 >= f->capacity && !grow(f)) return NULL;
    struct footprint_entry *entry = find_entry(f->entries, f->capacity, twin, first_layer, layer_count);
    if (entry->layer_count == 0) {
        entry->twin = twin;
        entry->first_layer = first_layer;
        entry->layer_count = layer_count;
        measure(f, &f->jobs->jobs[twin], first_layer, layer_count, &entry->footprint);
        f->count++;
    }
    return &entry->footprint;
}
