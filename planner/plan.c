/*
 * The fingerprint tells whether a trace belongs to a plan. It covers contents, and not the tables' arrangement: an
 * operation's accesses count, not their position in `accesses`; a task's slots count, not the layout's position.
 * So it survives a file, which arranges layouts again. Fields on which no interpreter acts are left out: estimates,
 * bounds, the policy's name.
 *
 *     h = mix(h ^ value), value by value in the order of the tables     (base/random.h)
 *
 * The length precedes each list, so that an element moved over a border changes the result. Cost: one pass over the
 * tables; segments are not expanded.
 */
#include "planner/plan.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/size.h"
#include "models/network/network_graph.h"

const char *const plan_stream_names[STREAM_KIND_COUNT] = {
    [STREAM_COMPUTE] = "compute",
    [STREAM_H2D] = "h2d",
    [STREAM_D2H] = "d2h",
    [STREAM_P2P] = "p2p",
    [STREAM_GROUP] = "group",
    [STREAM_DATA] = "data",
    [STREAM_HOST] = "host",
    [STREAM_CPU] = "cpu",
    [STREAM_READ] = "read",
    [STREAM_WRITE] = "write",
    [STREAM_FILE] = "file",
};

const char *const plan_pass_names[PLAN_PASS_COUNT] = {
    [PLAN_FORWARD] = "forward", [PLAN_LOSS] = "loss",     [PLAN_BACKWARD] = "backward",
    [PLAN_BATCH] = "batch",     [PLAN_UPDATE] = "update", [PLAN_LOAD] = "load",
    [PLAN_STORE] = "store",     [PLAN_EVALUATE] = "evaluate", [PLAN_KEEP] = "keep",
    [PLAN_NORM] = "norm",
    [PLAN_BACKWARD_INPUT] = "backward-input",
    [PLAN_BACKWARD_WEIGHT] = "backward-weight",
    [PLAN_GATHER] = "gather",   [PLAN_REDUCE] = "reduce",
    [PLAN_REFRESH] = "refresh", [PLAN_JOIN] = "join",
    [PLAN_OPEN] = "open",       [PLAN_CLOSE] = "close",
    [PLAN_RECALL] = "recall",
};

const char *const plan_axis_names[AXIS_COUNT] = {[AXIS_TENSOR] = "tensor", [AXIS_DATA] = "data",
                                                 [AXIS_ENDS] = "ends"};

const char *const plan_buffer_names[BUFFER_KIND_COUNT] = {
    [BUFFER_STATE] = "state",
    [BUFFER_PARAMETERS] = "parameters",
    [BUFFER_TABLE] = "table",
    [BUFFER_TABLE_GRADIENT] = "table_gradient",
    [BUFFER_BATCH] = "batch",
    [BUFFER_LOSS] = "loss",
    [BUFFER_BOUNDARY] = "boundary",
    [BUFFER_BOUNDARY_GRADIENT] = "boundary_gradient",
    [BUFFER_ACTIVATIONS] = "activations",
    [BUFFER_GRADIENT] = "gradient",
    [BUFFER_KEPT] = "kept",
    [BUFFER_NORMS] = "norms",
    [BUFFER_WORKSPACE] = "workspace",
    [BUFFER_STORED] = "stored_state",
    [BUFFER_STAGED] = "staged_state",
    [BUFFER_BASE] = "base",
    [BUFFER_OUTPUTS] = "outputs",
};

const char *const plan_bound_names[BOUND_KIND_COUNT] = {
    [BOUND_NONE] = "none",
    [BOUND_AREA] = "area",
    [BOUND_CHAIN] = "chain",
    [BOUND_LINK] = "link",
    [BOUND_STORAGE] = "storage",
};

const char *const plan_order_names[PLAN_ORDER_COUNT] = {
    [PLAN_ORDER_NONE] = "none",
    [PLAN_ORDER_COMPUTE] = "compute",
    [PLAN_ORDER_IN] = "copies in",
    [PLAN_ORDER_OUT] = "copies out",
    [PLAN_ORDER_WEIGHT_BUFFERS] = "weight buffers",
    [PLAN_ORDER_PROCESSOR] = "processor",
    [PLAN_ORDER_GLPK] = "glpk",
    [PLAN_ORDER_STORAGE] = "storage",
    [PLAN_ORDER_CHAIN] = "chain",
    [PLAN_ORDER_GANGS] = "gangs",
};

const char *const plan_activations_names[ACTIVATIONS_COUNT] = {
    [ACTIVATIONS_RECOMPUTE] = "recompute",
    [ACTIVATIONS_KEEP] = "keep",
    [ACTIVATIONS_SPILL] = "spill",
    [ACTIVATIONS_KEEP_INPUTS] = "keep-inputs",
    [ACTIVATIONS_SPILL_INPUTS] = "spill-inputs",
};

uint32_t plan_activations_way(uint32_t activations)
{
    static const uint32_t ways[ACTIVATIONS_COUNT] = {
        [ACTIVATIONS_KEEP] = UNIT_KEEP,
        [ACTIVATIONS_SPILL] = UNIT_KEEP,
        [ACTIVATIONS_KEEP_INPUTS] = UNIT_KEEP | UNIT_INPUTS,
        [ACTIVATIONS_SPILL_INPUTS] = UNIT_KEEP | UNIT_INPUTS,
    };
    assert(activations < ACTIVATIONS_COUNT);
    return ways[activations];
}

/* --- sizes ---------------------------------------------------------------------------------- */

static uint64_t task_operations(const struct plan *plan, const struct plan_task *task)
{
    uint64_t devices = task->gang == PLAN_NONE ? 1 : plan_gang_size(&plan->gangs[task->gang]);
    return plan->units[task->unit].op_count * devices;
}

uint64_t plan_operations(const struct plan *plan)
{
    uint64_t total = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *segment = &plan->segments[s];
        uint64_t once = 0;
        for (uint32_t i = 0; i < segment->task_count; i++)
            once += task_operations(plan, &plan->tasks[segment->first_task + i]);
        total += once * segment->repeat_count;
    }
    return total;
}

static bool has_staged(const struct plan *plan)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_STAGED) return true;
    return false;
}

/* Returns the end of the highest slot that a task acquires for staged buffers, or for other buffers. */
static uint64_t slots_end(const struct plan *plan, const struct plan_task *task, bool staged)
{
    const struct plan_unit *unit = &plan->units[task->unit];
    uint64_t end = 0;
    uint32_t next = task->layout;
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
        const struct plan_access *accesses = &plan->accesses[plan->ops[o].first_access];
        for (uint32_t a = 0; a < plan->ops[o].access_count; a++) {
            if (!(accesses[a].flags & ACCESS_ACQUIRE)) continue;
            const struct plan_slot *slot = &plan->slots[plan->layouts[next++]];
            if ((plan->buffers[accesses[a].buffer].kind == BUFFER_STAGED) != staged) continue;
            if (slot->offset_bytes + slot->bytes > end) end = slot->offset_bytes + slot->bytes;
        }
    }
    return end;
}

/* Returns the bytes of all arenas for staged buffers: one per rank of a gang, and one for a host's other users. ends[]
 * has them after the devices' arenas. */
static uint64_t staged_ends(const struct plan *plan, uint64_t *ends)
{
    uint32_t devices = plan->hardware.device_count;
    uint64_t total = 0;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        uint64_t own = slots_end(plan, task, true);
        bool gang = task->gang != PLAN_NONE;
        uint32_t first = gang ? plan->gangs[task->gang].first : 0;
        uint32_t of_host = devices + plan->hardware.devices[task->device].host;
        for (uint32_t p = 0; own > 0 && p < (gang ? plan_gang_size(&plan->gangs[task->gang]) : 1); p++) {
            uint64_t *end = &ends[gang ? plan->gang_devices[first + p] : of_host];
            if (own > *end) *end = own;
        }
    }
    for (uint32_t d = 0; d < devices + hardware_host_count(&plan->hardware); d++)
        if (!size_add(total, ends[d], &total)) return UINT64_MAX;
    return total;
}

uint64_t plan_staged_bytes(const struct plan *plan)
{
    if (!has_staged(plan)) return 0;
    size_t arenas = (size_t)plan->hardware.device_count + hardware_host_count(&plan->hardware);
    uint64_t *ends = alloc_zeroed(arenas, sizeof *ends);
    uint64_t bytes = ends ? staged_ends(plan, ends) : UINT64_MAX;
    free(ends);
    return bytes;
}

/* Adds the bytes of the buffer once for each of its ranks. */
static bool add_ranks(const struct plan *plan, const struct plan_buffer *buffer, uint64_t *total)
{
    uint64_t all;
    return size_mul(buffer->bytes, plan_buffer_ranks(plan, buffer), &all) && size_add(*total, all, total);
}

/* Fills ends[] with the end of each host's highest range. */
static void find_range_ends(const struct plan *plan, uint64_t *ends)
{
    for (uint32_t i = 0; plan->host_ranges && i < plan->task_count; i++) {
        uint32_t job = plan->units[plan->tasks[i].unit].job;
        const struct plan_host_range *range = &plan->host_ranges[job];
        uint64_t *end = &ends[plan->hardware.devices[plan->tasks[i].device].host];
        if (range->bytes > 0 && range->offset_bytes + range->bytes > *end) *end = range->offset_bytes + range->bytes;
    }
}

uint64_t plan_ranges_bytes(const struct plan *plan)
{
    uint32_t hosts = hardware_host_count(&plan->hardware);
    if (!plan->host_ranges) return 0;
    uint64_t *ends = alloc_zeroed(hosts, sizeof *ends), total = 0;
    if (!ends) return UINT64_MAX;
    find_range_ends(plan, ends);
    for (uint32_t h = 0; h < hosts; h++)
        if (!size_add(total, ends[h], &total)) total = UINT64_MAX;
    free(ends);
    return total;
}

uint32_t plan_goes_on_from(const struct plan *plan, uint32_t job)
{
    if (plan->reservation_count == 0) return PLAN_NONE;
    uint32_t follows = plan->reservations[plan->job_reservation[job]].follows;
    for (uint32_t j = 0; follows != PLAN_NONE && j < plan->jobs.count; j++)
        if (plan->job_reservation[j] == follows) return j;
    return PLAN_NONE;
}

uint64_t plan_host_bytes(const struct plan *plan)
{
    uint64_t total;
    if (!size_add(plan_staged_bytes(plan), plan_ranges_bytes(plan), &total)) return UINT64_MAX;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        if (buffer->on_device || buffer->kind == BUFFER_STORED || buffer->kind == BUFFER_STAGED ||
            plan_has_range(plan, buffer->job))
            continue;
        if (!add_ranks(plan, buffer, &total)) return UINT64_MAX;
    }
    return total;
}

uint64_t plan_stored_bytes(const struct plan *plan)
{
    uint64_t total = 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_STORED && !add_ranks(plan, &plan->buffers[b], &total)) return UINT64_MAX;
    return total;
}

/* A shard has one such operation in a minibatch, but a unit with it for each variant. */
uint32_t plan_cpu_shards(const struct plan *plan, uint32_t job)
{
    uint32_t count = 0;
    bool *seen = alloc_zeroed(plan_job_shards(plan, job), sizeof *seen);
    for (uint32_t u = 0; seen && u < plan->unit_count; u++) {
        const struct plan_unit *unit = &plan->units[u];
        if (unit->job != job || unit->pass == PLAN_FORWARD || unit->pass == PLAN_EVALUATE) continue;
        for (uint32_t o = 0; o < unit->op_count && !seen[unit->shard]; o++)
            if (plan->ops[unit->first_op + o].stream == STREAM_CPU) {
                seen[unit->shard] = true;
                count++;
            }
    }
    free(seen);
    return count;
}

/* The activations of a spilled shard have a buffer on the host and one on the device. */
uint32_t plan_kept_shards(const struct plan *plan, uint32_t job)
{
    uint32_t here = 0, there = 0;
    if (plan_activations_stay(plan->job_activations[job])) return 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        if (buffer->kind != BUFFER_ACTIVATIONS || buffer->job != job) continue;
        if (buffer->on_device) here++;
        else there++;
    }
    return here - there;
}

uint32_t plan_swapped_shards(const struct plan *plan, uint32_t job)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        count += buffer->kind == BUFFER_ACTIVATIONS && buffer->job == job && !buffer->on_device;
    }
    return count;
}

uint64_t plan_device_bytes(const struct plan *plan, uint32_t device)
{
    uint64_t end = 0;
    bool staged = has_staged(plan);
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        if (!plan_runs_on(plan, task, device)) continue;
        if (staged) {
            uint64_t own = slots_end(plan, task, false);
            if (own > end) end = own;
            continue;
        }
        uint32_t count = plan->units[task->unit].acquire_count;
        for (uint32_t a = 0; a < count; a++) {
            const struct plan_slot *slot = &plan->slots[plan->layouts[task->layout + a]];
            if (slot->offset_bytes + slot->bytes > end) end = slot->offset_bytes + slot->bytes;
        }
    }
    return end;
}

/* --- names ---------------------------------------------------------------------------------- */

static const char *job_name(const struct plan *plan, uint32_t job)
{
    return job < plan->jobs.count ? plan->jobs.jobs[job].name : "an unknown job";
}

/* Returns the name for messages, without underscores. */
static const char *buffer_words(uint32_t kind)
{
    switch (kind) {
    case BUFFER_TABLE_GRADIENT: return "table gradient";
    case BUFFER_BOUNDARY_GRADIENT: return "boundary gradient";
    case BUFFER_STORED: return "stored state";
    case BUFFER_STAGED: return "staged state";
    default: return kind < BUFFER_KIND_COUNT ? plan_buffer_names[kind] : "buffer";
    }
}

const char *plan_buffer_text(const struct plan *plan, uint32_t buffer, char text[PLAN_TEXT_BYTES])
{
    if (buffer >= plan->buffer_count) {
        snprintf(text, PLAN_TEXT_BYTES, "buffer %u", buffer);
        return text;
    }
    const struct plan_buffer *b = &plan->buffers[buffer];
    int length = snprintf(text, PLAN_TEXT_BYTES, "%s of %.100s", buffer_words(b->kind),
                          job_name(plan, b->job));
    size_t used = (size_t)length;
    if (b->shard != PLAN_NONE)
        used += (size_t)snprintf(text + used, PLAN_TEXT_BYTES - used, " shard %u", b->shard);
    if (b->variant != 0)
        snprintf(text + used, PLAN_TEXT_BYTES - used, " variant %u", b->variant);
    return text;
}

const char *plan_op_text(const struct plan *plan, const struct plan_unit *unit,
                         const struct plan_op *op, char buffer[PLAN_TEXT_BYTES])
{
    if (op->kind != OP_COMPUTE && op->access_count > 0) {
        char what[PLAN_TEXT_BYTES];
        const char *direction = op->kind == OP_COLLECTIVE && op->collective < COLLECTIVE_KIND_COUNT
                                    ? collective_kind_names[op->collective]
                                : op->stream < STREAM_KIND_COUNT ? plan_stream_names[op->stream]
                                                                 : "copy";
        plan_buffer_text(plan, plan->accesses[op->first_access].buffer, what);
        snprintf(buffer, PLAN_TEXT_BYTES, "%s of %.200s", direction, what);
        return buffer;
    }
    uint32_t pass = op->kind == OP_COMPUTE ? op->pass : unit->pass;
    const char *pass_text = pass < PLAN_PASS_COUNT ? plan_pass_names[pass] : "operation";
    if (op->row_count > 0)
        snprintf(buffer, PLAN_TEXT_BYTES, "%.100s shard %u %s slice %u", job_name(plan, unit->job),
                 unit->shard, pass_text, op->slice);
    else
        snprintf(buffer, PLAN_TEXT_BYTES, "%.100s shard %u %s", job_name(plan, unit->job),
                 unit->shard, pass_text);
    return buffer;
}

/* --- fingerprint ---------------------------------------------------------------------------- */

static void add(uint64_t *hash, uint64_t value)
{
    *hash = random_mix(*hash ^ value);
}

static void add_double(uint64_t *hash, double value)
{
    uint64_t bits;
    static_assert(sizeof bits == sizeof value, "a double is 64 bits");
    memcpy(&bits, &value, sizeof bits);
    add(hash, bits);
}

/* NULL and "" differ. */
static void add_text(uint64_t *hash, const char *text)
{
    add(hash, text ? strlen(text) + 1 : 0);
    for (; text && *text; text++) add(hash, (unsigned char)*text);
}

static void add_file(uint64_t *hash, const char *path, bool folders)
{
    const char *slash = path && !folders ? strrchr(path, '/') : NULL;
    add_text(hash, slash ? slash + 1 : path);
}

/* Sizes and choices. Fields that came later are added only where they are set, so that older fingerprints stay. */
static void add_counts(uint64_t *hash, const struct job *job)
{
    const struct network *network = &job->network;
    const uint64_t fields[] = {
        network->family,    network->layer_count, network->width,       network->heads,
        network->head_width, network->ff_width,   network->blocks,      network->vocabulary,
        network->positions, network->token_types, network->image,       network->patch,
        network->channels,  network->classes,     network->tied_head,   network->causal,
        network->kv_heads,  network->rope.kind,   network->rope.original_positions,
        network->mask_token,
        network->biases,    network->pooler,      network->gelu_tanh,   job->sequence,
        job->microbatch,    job->microbatches,    job->minibatches,     job->optimizer.kind,
        job->seed,          job->data_format,     job->optimizer.decay, job->optimizer.nesterov,
        job->optimizer.schedule.kind,             job->optimizer.schedule.warmup,
        job->evaluation.every,                    job->keep_best,
    };
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) add(hash, fields[i]);
    const uint64_t later[] = {network->experts,        network->experts_chosen,   network->rotary_width,
                              network->encoder_blocks, network->decoder_tokens,   network->relative_buckets,
                              network->gated,          network->window,           network->window_from,
                              network->window_every,   network->serial_residual,  network->shared_width,
                              network->dense_width,    network->sparse_step,      network->experts_normalized};
    for (size_t i = 0; i < ARRAY_COUNT(later); i++)
        if (later[i] > 0) add(hash, random_mix(i + 1) ^ later[i]);
    if (job->first_minibatch > 0) add(hash, job->first_minibatch);
    if (job->packs) add(hash, random_mix(1));
    if (job->skips_long) add(hash, random_mix(2));
    if (job->tree) add(hash, random_mix(3));
    for (uint32_t i = 0; i < job->pixels.count; i++) {
        add_double(hash, job->pixels.mean[i]);
        add_double(hash, job->pixels.deviation[i]);
    }
    if (job->optimizer.schedule.steps > 0) add(hash, random_mix(job->optimizer.schedule.steps));
    if (job->precision != PRECISION_FP32) add(hash, job->precision);
    if (job->optimizer.moments != PRECISION_FP32) add(hash, 1 + job->optimizer.moments);
    if (job_clips(job)) add_double(hash, job->optimizer.clip);
}

static void add_rates(uint64_t *hash, const struct job *job)
{
    const struct network *network = &job->network;
    const double reals[] = {
        network->norm_epsilon,       network->initializer_range, job->optimizer.learning_rate,
        network->rope.theta,         network->rope.factor,       network->rope.low_factor,
        network->rope.high_factor,
        job->optimizer.weight_decay, job->optimizer.beta1,       job->optimizer.beta2,
        job->optimizer.epsilon,      job->optimizer.momentum,
        job->optimizer.schedule.floor,
    };
    for (size_t i = 0; i < ARRAY_COUNT(reals); i++) add_double(hash, reals[i]);
}

static void add_profile(uint64_t *hash, const struct network *network)
{
    for (uint64_t l = 0; network->profile && l < network->layer_count; l++) {
        const struct layer_profile *layer = &network->profile[l];
        add(hash, layer->parameter_bytes);
        add(hash, layer->activation_bytes);
        add(hash, layer->boundary_bytes);
        add(hash, layer->forward_ns);
        add(hash, layer->backward_ns);
    }
}

/* Switches of a network that came later, its frozen layers and its graph. */
static void add_switches(uint64_t *hash, const struct network *network)
{
    const double switches[] = {network->window_theta, network->score_scalar, network->score_cap, network->logit_cap,
                               network_dropout(network, NETWORK_DROPS_EMBEDDING),
                               network_dropout(network, NETWORK_DROPS_SCORES),
                               network_dropout(network, NETWORK_DROPS_RESULTS)};
    for (size_t i = 0; i < ARRAY_COUNT(switches); i++)
        if (switches[i] > 0) add_double(hash, switches[i] * (double)(i + 2));
    for (uint32_t i = 0; i < network->dense_count; i++) add(hash, network->dense_blocks[i]);
    if (network->profile_samples > 0) add(hash, network->profile_samples);
    if (network->trained) add(hash, network_trained_fingerprint(network));
    for (uint32_t i = 0; network->graph && i < network->graph->op_count; i++) {
        uint64_t code[GRAPH_CODE_WORDS];
        graph_op_code(&network->graph->ops[i], code);
        for (uint32_t w = 0; w < GRAPH_CODE_WORDS; w++) add(hash, code[w]);
    }
}

static void add_job(uint64_t *hash, const struct job *job, bool folders)
{
    add_counts(hash, job);
    add_rates(hash, job);
    add_profile(hash, &job->network);
    add_switches(hash, &job->network);
    add_text(hash, job->name);
    add_file(hash, job->data, folders);
    add_file(hash, job->weights_in, folders);
    add_file(hash, job->weights_out, folders);
    if (job->adapter.from) add_file(hash, job->adapter.from, folders);
    if (job->base) add_text(hash, job->base);
    if (job->outputs.layers > 0) {
        add(hash, job->outputs.layers << 1 | (job->outputs.makes ? 1 : 0));
        add(hash, job->outputs.makes ? job->outputs.samples : job->outputs.maker);
        if (job->outputs.makes) add(hash, job->outputs.held_out);
    }
    if (job->evaluation.every == 0) return;
    add(hash, job->evaluation.minibatches);
    add(hash, job->evaluation.data_format);
    add_file(hash, job->evaluation.data, folders);
    if (!job_has_labels(job) || job->evaluation.data) return;
    add_double(hash, job->evaluation.share);
    add(hash, job->evaluation.split_seed);
}

/* Returns a code for fingerprints: streams that were added later have codes after the older ones, whose codes stay. */
static uint32_t stream_code(uint32_t kind)
{
    static const uint32_t first = STREAM_P2P, behind = STREAM_HOST;
    if (kind >= first && kind < behind) return UINT8_MAX - (kind - first);
    return kind >= behind ? kind - (behind - first) : kind;
}

static void add_op(uint64_t *hash, const struct plan *plan, const struct plan_op *op)
{
    add(hash, (uint64_t)op->kind << 32 | stream_code(op->stream));
    if (op->kind == OP_COPY) {
        add(hash, op->bytes);
    } else if (op->kind == OP_COLLECTIVE) {
        add(hash, (uint64_t)op->collective << 32 | op->axes);
        add(hash, op->rounds);
        add(hash, op->bytes);
    } else {
        add(hash, (uint64_t)op->pass << 32 | op->work);
        add(hash, op->slice);
        add(hash, op->first_row);
        add(hash, op->row_count);
    }
    add(hash, (uint64_t)op->access_count << 32 | op->after_count);
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &plan->accesses[op->first_access + a];
        add(hash, access->buffer);
        add(hash, access->flags);
        add(hash, access->offset_bytes);
    }
    for (uint32_t a = 0; a < op->after_count; a++) {
        add(hash, plan->afters[op->first_after + a].tasks);
        add(hash, plan->afters[op->first_after + a].op);
    }
}

static void add_tables(uint64_t *hash, const struct plan *plan)
{
    add(hash, plan->shard_count);
    for (uint32_t s = 0; s < plan->shard_count; s++) {
        add(hash, plan->shards[s].job);
        add(hash, plan->shards[s].first_layer);
        add(hash, plan->shards[s].layer_count);
        if (plan->shards[s].inputs_only) add(hash, 1);
    }
    add(hash, plan->work_count);
    for (uint32_t w = 0; w < plan->work_count; w++) {
        add(hash, plan->works[w].item_count);
        for (uint32_t i = 0; i < plan->works[w].item_count; i++) {
            const struct work_item *item = &plan->items[plan->works[w].first_item + i];
            add(hash, (uint64_t)item->kernel << 32 | item->count);
            add(hash, item->m);
            add(hash, item->n);
            add(hash, item->k);
        }
    }
    add(hash, plan->buffer_count);
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        add(hash, (uint64_t)buffer->kind << 32 | buffer->on_device);
        add(hash, (uint64_t)buffer->job << 32 | buffer->shard);
        add(hash, buffer->variant);
        add(hash, buffer->bytes);
    }
    add(hash, plan->slot_count);
    for (uint32_t s = 0; s < plan->slot_count; s++) {
        add(hash, plan->slots[s].offset_bytes);
        add(hash, plan->slots[s].bytes);
    }
}

static void add_gangs(uint64_t *hash, const struct plan *plan)
{
    for (uint32_t g = 0; g < plan->gang_count; g++) {
        const struct plan_gang *gang = &plan->gangs[g];
        for (uint32_t a = 0; a < AXIS_COUNT; a++) add(hash, gang->extents[a]);
        for (uint32_t i = 0; i < plan_gang_size(gang); i++) add(hash, plan->gang_devices[gang->first + i]);
    }
}

static void add_reservations(uint64_t *hash, const struct plan *plan)
{
    for (uint32_t l = 0; l < plan->reservation_count; l++) {
        const struct plan_reservation *reservation = &plan->reservations[l];
        add(hash, (uint64_t)reservation->device_count << 32 | reservation->follows);
        add(hash, (uint64_t)llround(1e9 * reservation->restart_s));
        for (uint32_t i = 0; i < reservation->device_count; i++) add(hash, plan_reservation_devices(plan, l)[i]);
    }
    for (uint32_t j = 0; plan->reservation_count > 0 && j < plan->jobs.count; j++) add(hash, plan->job_reservation[j]);
}

static void add_ranges(uint64_t *hash, const struct plan *plan)
{
    for (uint32_t j = 0; plan->host_ranges && j < plan->jobs.count; j++) {
        add(hash, plan->host_ranges[j].offset_bytes);
        add(hash, plan->host_ranges[j].bytes);
    }
}

static void add_units(uint64_t *hash, const struct plan *plan)
{
    add(hash, plan->unit_count);
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        const struct plan_unit *unit = &plan->units[u];
        add(hash, (uint64_t)unit->job << 32 | unit->shard);
        add(hash, (uint64_t)unit->pass << 32 | unit->ends_minibatch);
        add(hash, unit->op_count);
        for (uint32_t o = 0; o < unit->op_count; o++)
            add_op(hash, plan, &plan->ops[unit->first_op + o]);
    }
}

static void add_tasks(uint64_t *hash, const struct plan *plan, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        add(hash, (uint64_t)task->unit << 32 | task->device);
        if (task->gang != PLAN_NONE) add(hash, ~(uint64_t)task->gang);
        if (task->peer != PLAN_NONE) add(hash, task->peer);
        for (uint32_t a = 0; a < plan->units[task->unit].acquire_count; a++)
            add(hash, plan->layouts[task->layout + a]);
    }
}

static void add_order(uint64_t *hash, const struct plan *plan)
{
    add(hash, plan->segment_count);
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *segment = &plan->segments[s];
        add(hash, (uint64_t)segment->task_count << 32 | segment->repeat_count);
        add_tasks(hash, plan, segment->first_task, segment->task_count);
    }
    add_tasks(hash, plan, plan_first_choice(plan), plan->choice_count);
    if (plan->any_order) add_text(hash, "any order");
}

static uint64_t fingerprint_of(const struct plan *plan, bool folders)
{
    uint64_t hash = PLAN_VERSION;
    add(&hash, plan->hardware.device_count);
    for (uint32_t d = 0; d < plan->hardware.device_count; d++)
        add(&hash, plan->hardware.devices[d].memory_bytes);
    add(&hash, plan->jobs.count);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        add_job(&hash, &plan->jobs.jobs[j], folders);
        add(&hash, plan->job_activations[j]);
    }
    add_tables(&hash, plan);
    add_gangs(&hash, plan);
    add_reservations(&hash, plan);
    add_ranges(&hash, plan);
    add_units(&hash, plan);
    add_order(&hash, plan);
    return hash;
}

uint64_t plan_fingerprint(const struct plan *plan) { return fingerprint_of(plan, false); }

bool plan_has_fingerprint(const struct plan *plan, uint64_t fingerprint)
{
    return fingerprint == fingerprint_of(plan, false) || fingerprint == fingerprint_of(plan, true);
}

/* --- the end -------------------------------------------------------------------------------- */

void plan_release(struct plan *plan)
{
    hardware_release(&plan->hardware);
    job_set_release(&plan->jobs);
    arena_release(&plan->arena);
    *plan = (struct plan){0};
}
