/*
 * Planner, walk, simulator and executor rely on plan.h; this file and its companions decide whether a plan may be
 * relied on. They share no code: the judge follows the *contents* of each byte of each buffer.
 *
 *     1. Tables (here): indexes, sizes, names, the partition into shards; host memory (plan_check_hosts.c).
 *     2. Units (plan_check_unit.c): each operation by itself: streams, ends of copies, access flags; and for each
 *        computation (plan_check_claims.c) the list of *claims*: the contents that it must find or
 *        leaves, derived from the job. Its work, computed again by models/.
 *     3. Choices (plan_check_choices.c), parallel jobs in any order (plan_check_any_order.c): memory for each order.
 *     4. Order (plan_check_run.c): all tasks, repetitions included, once. Device buffers begin and end; copies
 *        carry contents from buffer to buffer; computations find their claims or the plan is wrong.
 *
 * Step 4 for one shard and two minibatches, without the second unit's copy out of the state:
 *
 *     h2d state -> device      device holds state version 0
 *     backward                 finds version 0, leaves version 1
 *     h2d state -> device      host still holds version 0
 *     backward of minibatch 1  "finds state of job-a shard 1, version 0 (expected version 1)"
 *
 * By rule 2 of plan.h every timing respects the plan order of writes and reads, so a property of the plan order holds
 * in every legal timing. Deadlock is impossible as long as "after" points backward.
 *
 * Cost: about 0.2 us per operation; memory in the size of the tables.
 */
#include "planner/check/plan_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/size.h"
#include "base/try.h"
#include "models/job/memory.h"
#include "models/jobs/job_base.h"
#include "models/network/network_traits.h"
#include "planner/check/plan_checker.h"

/* --- messages ------------------------------------------------------------------------------- */

static void place_text(const struct checker *c, char *text, size_t size)
{
    char what[PLAN_TEXT_BYTES];
    size_t used = 0;
    text[0] = '\0';
    if (!c->unit) return;
    if (c->in_order)
        used = (size_t)snprintf(text, size, "task %" PRIu64, c->position);
    else
        used = (size_t)snprintf(text, size, "unit %td", c->unit - c->plan->units);
    if (c->op)
        used += (size_t)snprintf(text + used, size - used, ", operation %td",
                                 c->op - c->plan->ops - (ptrdiff_t)c->unit->first_op);
    if (c->op && c->op_readable) {
        snprintf(text + used, size - used, " (%s): ", plan_op_text(c->plan, c->unit, c->op, what));
        return;
    }
    const char *pass = c->unit->pass < PLAN_PASS_COUNT ? plan_pass_names[c->unit->pass] : "pass";
    const char *job = c->unit->job < c->plan->jobs.count
                          ? c->plan->jobs.jobs[c->unit->job].name
                          : "no job";
    if (c->unit->shard == PLAN_NONE)
        snprintf(text + used, size - used, " (%.100s %s): ", job, pass);
    else
        snprintf(text + used, size - used, " (%.100s shard %u %s): ", job, c->unit->shard, pass);
}

enum status check_fail(struct checker *c, const char *rule, const char *format, ...)
{
    char place[PLAN_TEXT_BYTES + 96], message[512];
    place_text(c, place, sizeof place);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return error_set(c->err, STATUS_CHECK, "%s%s: %s", place, rule, message);
}

uint32_t check_job_thing(const struct checker *c, uint32_t job, enum check_job_thing thing)
{
    return c->plan->shard_count * CHECK_SHARD_THINGS + job * CHECK_JOB_THINGS + (uint32_t)thing;
}

const char *check_thing_text(const struct checker *c, uint32_t thing, uint64_t version,
                             char text[PLAN_TEXT_BYTES])
{
    static const char *const shard_names[CHECK_SHARD_THINGS] = {
        "state",       "boundary", "unfinished boundary",          "boundary gradient",
        "activations", "gradient", "unfinished boundary gradient", "reduced gradient",
        "updated shares", "weights", "sum of gradients", "encoded gradient",
        "joined gradient", "handover", "handed gradient", "base"};
    static const char *const job_names[CHECK_JOB_THINGS] = {"batch", "loss", "table gradient", "norms",
                                                            "norms of shares", "kept outputs"};
    const struct plan *plan = c->plan;
    uint32_t shard = thing / CHECK_SHARD_THINGS;
    const char *held_out = version & CHECK_HELD_OUT_VERSION ? "held-out " : "";
    version &= ~CHECK_HELD_OUT_VERSION;
    if (shard >= plan->shard_count) {
        uint32_t rest = thing - plan->shard_count * CHECK_SHARD_THINGS;
        snprintf(text, PLAN_TEXT_BYTES, "%s of %.100s, %sminibatch %" PRIu64,
                 job_names[rest % CHECK_JOB_THINGS], plan->jobs.jobs[rest / CHECK_JOB_THINGS].name, held_out,
                 version);
        return text;
    }
    uint32_t job = plan->shards[shard].job, kind = thing % CHECK_SHARD_THINGS;
    bool steps = kind == CHECK_THING_STATE || kind == CHECK_THING_UPDATED_SHARES || kind == CHECK_THING_WEIGHTS;
    const char *counted = steps ? "version" : check_is_parallel(c, job) ? "microbatch" : "minibatch";
    snprintf(text, PLAN_TEXT_BYTES, "%s of %.100s shard %u, %s%s %" PRIu64, shard_names[kind],
             plan->jobs.jobs[job].name, shard - plan->job_first_shard[job], held_out, counted, version);
    return text;
}

/* --- jobs and layers ------------------------------------------------------------------------ */

static enum status check_shards(struct checker *c, uint32_t job)
{
    const struct plan *plan = c->plan;
    const struct job *about = &plan->jobs.jobs[job];
    uint32_t first = plan->job_first_shard[job], end = plan->job_first_shard[job + 1];
    uint64_t layer = 0, layers = job_layers_end(about);
    bool parallel = parallel_is_set(&about->parallel);
    struct error own = {0};
    if (parallel_check(about, &own) != STATUS_OK)
        return check_fail(c, CHECK_RULE_FORM, "%s: %s", about->name, own.text);
    const char *why = parallel_is_carried_out(&about->parallel) ? parallel_only_simulated(&plan->hardware, about)
                                                                : NULL;
    if (why)
        return check_fail(c, CHECK_RULE_FORM, "%s is said to be carried out, and is parallel with %s", about->name,
                          why);
    if (parallel && end - first != parallel_chunks(&about->parallel))
        return check_fail(c, CHECK_RULE_LAYERS, "%s has %u shards (expected %u chunks of layers)", about->name,
                          end - first, parallel_chunks(&about->parallel));
    for (uint32_t s = first; s < end; s++) {
        const struct plan_shard *shard = &plan->shards[s];
        if (shard->job != job)
            return check_fail(c, CHECK_RULE_FORM, "shard %u of the plan belongs to job %u (expected %u)",
                              s, shard->job, job);
        if (shard->first_layer != layer)
            return check_fail(c, CHECK_RULE_LAYERS,
                              "%s shard %u begins at layer %" PRIu64 " (expected %" PRIu64 ")",
                              about->name, s - first, shard->first_layer, layer);
        if (shard->layer_count == 0 || shard->layer_count > layers - layer)
            return check_fail(c, CHECK_RULE_LAYERS,
                              "%s shard %u has %" PRIu64 " layers (expected 1 to %" PRIu64 ")",
                              about->name, s - first, shard->layer_count, layers - layer);
        if (parallel) {
            struct parallel_layers chunk = parallel_layers(about, s - first);
            if (chunk.first != layer || chunk.count != shard->layer_count || shard->inputs_only)
                return check_fail(c, CHECK_RULE_LAYERS, "%s shard %u has %" PRIu64 " layers (expected %" PRIu64 ")",
                                  about->name, s - first, shard->layer_count, chunk.count);
            layer += shard->layer_count;
            continue;
        }
        bool embedding = network_layer_kind(&about->network, layer) == LAYER_EMBEDDING;
        bool inputs = !embedding && (plan_activations_way(plan->job_activations[job]) & UNIT_INPUTS);
        if (shard->inputs_only != inputs && (embedding || s + 1 < end))
            return check_fail(c, CHECK_RULE_FORM, "%s shard %u holds %s (expected %s)", about->name,
                              s - first, shard->inputs_only ? "inputs only" : "all activations",
                              inputs ? "inputs only" : "all activations");
        layer += shard->layer_count;
    }
    if (layer != layers)
        return check_fail(c, CHECK_RULE_LAYERS, "the shards of %s end at layer %" PRIu64 " of %" PRIu64,
                          about->name, layer, layers);
    bool embedding = network_layer_kind(&about->network, 0) == LAYER_EMBEDDING;
    const uint64_t begins = job_first_shard_layers(about);
    if (embedding && !parallel && (end - first < 2 || plan->shards[first].layer_count != begins))
        return check_fail(c, CHECK_RULE_LAYERS, job_takes_outputs(about)
                          ? "%s has other layers in its first shard than those whose outputs it takes"
                          : "%s has its embedding in a shard with other layers", about->name);
    return STATUS_OK;
}

static void fill_base_facts(const struct job *job, const struct plan_shard *shard, uint64_t rows,
                            struct check_shard_facts *out)
{
    struct state_format format = job_state_format(job);
    if (!job->shares_base) return;
    format.apart = false;
    const struct state_layout whole = memory_state(&job->network, shard->first_layer, shard->layer_count, format);
    out->base_bytes = whole.parts[STATE_FROZEN].bytes;
    out->base_used_bytes = rows > 0 ? rows * whole.parts[STATE_FROZEN].row_bytes : out->base_bytes;
}

/* Checks that jobs with one base have the same frozen weights, cut in the same way. */
static enum status check_base(struct checker *c, uint32_t job)
{
    const struct plan *plan = c->plan;
    const struct job *about = &plan->jobs.jobs[job];
    char text[JOB_BASE_TEXT];
    uint32_t owner = c->jobs[job].base_owner = job_base_owner(&plan->jobs, job);
    if (owner == PLAN_NONE) return STATUS_OK;
    if (owner > job || job_base_owner(&plan->jobs, owner) != owner)
        return check_fail(c, CHECK_RULE_FORM, "%s shares the base of a job that does not own one", about->name);
    if (check_is_parallel(c, job))
        return check_fail(c, CHECK_RULE_FORM, "%s is a parallel job that shares a base", about->name);
    const char *what = job_base_differs(&plan->jobs.jobs[owner], about, text);
    if (what)
        return check_fail(c, CHECK_RULE_FORM, "%s has not the base of %s: %s", about->name,
                          plan->jobs.jobs[owner].name, what);
    const struct plan_shard *a = &plan->shards[plan->job_first_shard[owner]],
                            *b = &plan->shards[plan->job_first_shard[job]];
    uint32_t count = plan_job_shards(plan, owner), s = 0;
    while (s < count && count == plan_job_shards(plan, job) && a[s].layer_count == b[s].layer_count) s++;
    if (s == count) return STATUS_OK;
    return check_fail(c, CHECK_RULE_LAYERS, "%s is not cut like %s, whose base it shares", about->name,
                      plan->jobs.jobs[owner].name);
}

static void fill_shard_facts(struct checker *c, const struct job *job, uint32_t global)
{
    const struct plan_shard *shard = &c->plan->shards[global];
    const struct network *network = &job->network;
    uint64_t first = shard->first_layer, end = first + shard->layer_count;
    bool embedding = network_layer_kind(network, first) == LAYER_EMBEDDING && !job_takes_outputs(job);
    struct check_shard_facts *f = &c->shards[global];
    f->state = job_state(job, first, shard->layer_count);
    f->gradient_bytes = memory_parameter_bytes(network, first, shard->layer_count);
    f->gradient_used_bytes = embedding ? network_layer_trained_parameters(network, first) * sizeof(float)
                                       : f->gradient_bytes;
    f->trains = state_trained_bytes(&f->state) > 0;
    uint64_t rows = embedding ? c->jobs[shard->job].rows : 0;
    fill_base_facts(job, shard, rows, f);
    for (uint32_t part = 0; part < STATE_PARTS; part++)
        f->used_bytes[part] =
            rows > 0 ? rows * f->state.parts[part].row_bytes : f->state.parts[part].bytes;
    if (first > 0)
        f->input_bytes = memory_boundary_bytes(network, first - 1, job_samples(job), job->sequence, job->precision);
    if (end < network->layer_count)
        f->output_bytes = memory_boundary_bytes(network, end - 1, job_samples(job), job->sequence, job->precision);
    f->activation_bytes = job_kept_bytes(job, first, shard->layer_count,
                                         UNIT_KEEP | (shard->inputs_only ? UNIT_INPUTS : 0));
    if (!job_clips(job)) return;
    f->norm_offset = memory_tensor_count(network, 0, first) * sizeof(double);
    f->norm_bytes = memory_tensor_count(network, first, shard->layer_count) * sizeof(double);
}

static void fill_job_facts(struct checker *c, uint32_t index)
{
    const struct job *job = &c->plan->jobs.jobs[index];
    const struct network *network = &job->network;
    struct check_job_facts *f = &c->jobs[index];
    f->first_shard = c->plan->job_first_shard[index];
    f->shard_count = plan_job_shards(c->plan, index);
    f->embedding = network_layer_kind(network, 0) == LAYER_EMBEDDING;
    f->text = job_batch_bytes(job) > 0;
    if (job_clips(job))
        f->norm_bytes = memory_tensor_count(network, 0, network->layer_count) * sizeof(double);
    if (!f->text) return;
    f->batch_bytes = job_replica_batch_bytes(job);
    f->gradient_row_bytes = network->width * sizeof(float);
    if (network->tied_head) {
        f->table_bytes = network->vocabulary * network_word_width(network) * precision_weight_bytes(job->precision);
        if (network_first_trained(network) == 0)
            f->table_gradient_bytes = network->vocabulary * network_word_width(network) * sizeof(float);
    }
    /* only tables can be cut by rows; bert's are followed by a norm of whole rows */
    if (network_has_plain_tables(network)) f->rows = network_layer_parameters(network, 0) / network->width;
}

static enum status check_jobs(struct checker *c)
{
    const struct plan *plan = c->plan;
    if (plan->jobs.count == 0) return check_fail(c, CHECK_RULE_FORM, "a plan without jobs");
    if (plan->job_first_shard[0] != 0 ||
        plan->job_first_shard[plan->jobs.count] != plan->shard_count)
        return check_fail(c, CHECK_RULE_FORM, "the shards of the jobs differ from the plan's");
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        if (plan->job_first_shard[j] > plan->job_first_shard[j + 1] ||
            plan->job_first_shard[j + 1] > plan->shard_count)
            return check_fail(c, CHECK_RULE_FORM, "the shards of the jobs are not in order");
        if (plan->job_activations[j] >= ACTIVATIONS_COUNT)
            return check_fail(c, CHECK_RULE_FORM, "%s treats activations in no known way",
                              plan->jobs.jobs[j].name);
        TRY(check_outputs(c, j));
        TRY(check_shards(c, j));
        fill_job_facts(c, j);
        TRY(check_base(c, j));
        if (check_is_parallel(c, j)) continue;
        for (uint32_t s = plan->job_first_shard[j]; s < plan->job_first_shard[j + 1]; s++) {
            const struct plan_shard *shard = &plan->shards[s];
            fill_shard_facts(c, &plan->jobs.jobs[j], s);
            c->jobs[j].trained += c->shards[s].trains;
            c->jobs[j].frozen += shard->first_layer + shard->layer_count <=
                                 network_first_trained(&plan->jobs.jobs[j].network);
        }
    }
    return STATUS_OK;
}

/* --- buffers -------------------------------------------------------------------------------- */

/* Where a kind of buffer may be, and whether it has a shard or a job. */
static const struct {
    bool host, device, of_shard, not_first_shard;
    bool host_of_job; /* the host's is about the job */
} buffer_rules[BUFFER_KIND_COUNT] = {
    [BUFFER_STATE] = {.host = true, .device = true, .of_shard = true},
    [BUFFER_PARAMETERS] = {.device = true, .of_shard = true},
    [BUFFER_TABLE] = {.device = true},
    [BUFFER_TABLE_GRADIENT] = {.host = true, .device = true},
    [BUFFER_BATCH] = {.host = true, .device = true},
    [BUFFER_LOSS] = {.host = true, .device = true},
    [BUFFER_BOUNDARY] = {.host = true, .device = true, .of_shard = true, .not_first_shard = true},
    [BUFFER_BOUNDARY_GRADIENT] = {.host = true, .device = true, .of_shard = true,
                                  .not_first_shard = true},
    [BUFFER_ACTIVATIONS] = {.host = true, .device = true, .of_shard = true},
    [BUFFER_GRADIENT] = {.host = true, .device = true, .of_shard = true, .host_of_job = true},
    [BUFFER_KEPT] = {.host = true, .of_shard = true},
    [BUFFER_NORMS] = {.host = true, .device = true},
    [BUFFER_WORKSPACE] = {.host = true, .device = true, .of_shard = true},
    [BUFFER_STORED] = {.host = true, .of_shard = true},
    [BUFFER_STAGED] = {.host = true, .of_shard = true},
    [BUFFER_BASE] = {.host = true, .device = true, .of_shard = true},
    [BUFFER_OUTPUTS] = {.host = true, .device = true},
};

static enum status check_buffer(struct checker *c, uint32_t index)
{
    const struct plan_buffer *b = &c->plan->buffers[index];
    char text[PLAN_TEXT_BYTES];
    if (b->kind >= BUFFER_KIND_COUNT || b->job >= c->plan->jobs.count)
        return check_fail(c, CHECK_RULE_FORM, "buffer %u is of kind %u and job %u", index, b->kind,
                          b->job);
    const struct check_job_facts *job = &c->jobs[b->job];
    if (b->on_device ? !buffer_rules[b->kind].device : !buffer_rules[b->kind].host)
        return check_fail(c, CHECK_RULE_FORM, "%s is no buffer of %s", plan_buffer_text(c->plan, index, text),
                          b->on_device ? "a device" : "the host");
    bool of_shard = buffer_rules[b->kind].of_shard &&
                    (b->on_device || !buffer_rules[b->kind].host_of_job || check_is_parallel(c, b->job));
    if (!of_shard && b->shard != PLAN_NONE)
        return check_fail(c, CHECK_RULE_FORM, "%s belongs to a shard (expected to the job)",
                          plan_buffer_text(c->plan, index, text));
    if (of_shard &&
        (b->shard >= job->shard_count || (buffer_rules[b->kind].not_first_shard && b->shard == 0)))
        return check_fail(c, CHECK_RULE_FORM, "%s belongs to none of its %u shards",
                          plan_buffer_text(c->plan, index, text), job->shard_count);
    if (b->kind == BUFFER_OUTPUTS) TRY(check_outputs_buffer(c, index));
    if (b->kind == BUFFER_BASE) {
        uint64_t bytes = c->shards[job->first_shard + b->shard].base_bytes;
        if (job->base_owner != b->job)
            return check_fail(c, CHECK_RULE_FORM, "%s is a base that the job does not own",
                              plan_buffer_text(c->plan, index, text));
        if (b->bytes != bytes)
            return check_fail(c, CHECK_RULE_MEMORY, "%s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                              plan_buffer_text(c->plan, index, text), b->bytes, bytes);
    }
    if ((b->kind == BUFFER_STATE && !b->on_device) || b->kind == BUFFER_STORED) {
        const struct check_shard_facts *f = &c->shards[job->first_shard + b->shard];
        uint64_t expected = check_is_parallel(c, b->job) ? check_host_state_bytes(c, b->job, b->shard) : f->state.bytes;
        if (b->bytes != expected)
            return check_fail(c, CHECK_RULE_MEMORY,
                              "%s on %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                              plan_buffer_text(c->plan, index, text),
                              b->kind == BUFFER_STORED ? "storage" : "the host", b->bytes, expected);
    }
    return STATUS_OK;
}

static bool same_name(const struct plan_buffer *a, const struct plan_buffer *b)
{
    return a->kind == b->kind && a->job == b->job && a->shard == b->shard &&
           a->variant == b->variant && a->on_device == b->on_device;
}

static enum status check_names_differ(struct checker *c)
{
    const struct plan *plan = c->plan;
    size_t capacity = 16;
    while (capacity < (size_t)plan->buffer_count * 2) capacity *= 2;
    uint32_t *cells = alloc_zeroed(capacity, sizeof *cells); /* index + 1 */
    if (!cells) return error_memory(c->err, "checking a plan", capacity * sizeof *cells);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < plan->buffer_count && status == STATUS_OK; i++) {
        const struct plan_buffer *b = &plan->buffers[i];
        uint64_t hash = random_u64((uint64_t)b->job << 32 | b->shard,
                                   (uint64_t)b->variant << 8 | b->kind << 1 | b->on_device);
        size_t at = (size_t)hash & (capacity - 1);
        for (; cells[at] != 0; at = (at + 1) & (capacity - 1)) {
            if (!same_name(&plan->buffers[cells[at] - 1], b)) continue;
            char text[PLAN_TEXT_BYTES];
            status = check_fail(c, CHECK_RULE_FORM, "buffers %u and %u are both the %s on %s",
                                cells[at] - 1, i, plan_buffer_text(plan, i, text),
                                b->on_device ? "a device" : "the host");
            break;
        }
        cells[at] = i + 1;
    }
    free(cells);
    return status;
}

static enum status check_buffers(struct checker *c)
{
    const struct plan *plan = c->plan;
    for (uint32_t i = 0; i < plan->buffer_count; i++) TRY(check_buffer(c, i));
    return check_names_differ(c);
}

/* --- slots, works, order -------------------------------------------------------------------- */

static enum status check_slots(struct checker *c)
{
    for (uint32_t i = 0; i < c->plan->slot_count; i++) {
        const struct plan_slot *slot = &c->plan->slots[i];
        uint64_t end;
        if (!size_add(slot->offset_bytes, slot->bytes, &end))
            return check_fail(c, CHECK_RULE_FORM, "slot %u ends beyond 2^64 bytes", i);
        if (slot->offset_bytes % MEMORY_ALIGNMENT != 0)
            return check_fail(c, CHECK_RULE_FORM,
                              "slot %u begins at byte %" PRIu64 ", not at a multiple of %d", i,
                              slot->offset_bytes, MEMORY_ALIGNMENT);
    }
    return STATUS_OK;
}

static enum status check_works(struct checker *c)
{
    const struct plan *plan = c->plan;
    for (uint32_t w = 0; w < plan->work_count; w++)
        if (!check_in_table(plan->works[w].first_item, plan->works[w].item_count, plan->item_count))
            return check_fail(c, CHECK_RULE_FORM, "work %u has items that do not exist", w);
    for (uint32_t i = 0; i < plan->item_count; i++)
        if (plan->items[i].kernel >= KERNEL_COUNT || plan->items[i].count == 0)
            return check_fail(c, CHECK_RULE_FORM, "work item %u has kernel %u, %u times", i,
                              plan->items[i].kernel, plan->items[i].count);
    return STATUS_OK;
}

static bool fetches(const struct plan *plan, const struct plan_unit *unit)
{
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (plan->ops[o].stream == STREAM_P2P) return true;
    return false;
}

static enum status check_gang_task(struct checker *c, const struct plan_task *task, uint32_t index)
{
    const struct plan *plan = c->plan;
    uint32_t gangs = plan->gang_count;
    bool of_gang = task->gang != PLAN_NONE, fetches = task->peer != PLAN_NONE;
    if ((of_gang && task->gang >= gangs) || (fetches && task->peer >= gangs) ||
        (of_gang && task->device != plan->gang_devices[plan->gangs[task->gang].first]))
        return check_fail(c, CHECK_RULE_FORM, "task %u is on gang %u, device %u, peer %u (there are %u)", index,
                          task->gang, task->device, task->peer, gangs);
    if (!check_is_parallel(c, plan->units[task->unit].job))
        return check_fail(c, CHECK_RULE_FORM, "task %u of %s is on a gang, and the job is not parallel", index,
                          plan->jobs.jobs[plan->units[task->unit].job].name);
    return check_parallel_place(c, task, index);
}

static enum status check_gangs(struct checker *c)
{
    const struct plan *plan = c->plan;
    uint32_t *seen = alloc_zeroed(plan->hardware.device_count, sizeof *seen); /* by gang + 1 */
    enum status status = STATUS_OK;
    if (!seen) return error_memory(c->err, "checking a plan", plan->hardware.device_count * sizeof *seen);
    for (uint32_t g = 0; g < plan->gang_count && !status; g++) {
        const struct plan_gang *gang = &plan->gangs[g];
        uint64_t size = 1;
        for (uint32_t a = 0; a < AXIS_COUNT; a++)
            size = gang->extents[a] > plan->hardware.device_count ? 0 : size * gang->extents[a];
        if (size == 0 || size > plan->hardware.device_count ||
            !check_in_table(gang->first, size, plan->gang_device_count)) {
            status = check_fail(c, CHECK_RULE_FORM, "gang %u is of devices that do not exist", g);
            break;
        }
        for (uint32_t i = 0; i < size && !status; i++) {
            uint32_t device = plan->gang_devices[gang->first + i];
            if (device >= plan->hardware.device_count || seen[device] == g + 1)
                status = check_fail(c, CHECK_RULE_FORM, "gang %u has device %u%s", g, device,
                                    device < plan->hardware.device_count ? " twice" : ", which does not exist");
            else
                seen[device] = g + 1;
        }
    }
    free(seen);
    return status;
}

static enum status check_tasks(struct checker *c)
{
    const struct plan *plan = c->plan;
    if (plan->choice_count > plan->task_count)
        return check_fail(c, CHECK_RULE_FORM, "%u choices of %u tasks", plan->choice_count, plan->task_count);
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        if (task->unit >= plan->unit_count ||
            task->device >= plan->hardware.device_count)
            return check_fail(c, CHECK_RULE_FORM, "task %u is of unit %u on device %u", i,
                              task->unit, task->device);
        if (task->gang != PLAN_NONE || check_is_parallel(c, plan->units[task->unit].job)) {
            TRY(check_gang_task(c, task, i));
        } else if (task->peer != PLAN_NONE && (task->peer >= plan->hardware.device_count ||
                                            !fetches(plan, &plan->units[task->unit])))
            return check_fail(c, CHECK_RULE_FORM, "task %u has peer %u%s", i, task->peer,
                              task->peer < plan->hardware.device_count
                                  ? ", but its unit copies nothing between devices" : "");
        TRY(check_reservation_place(c, task, i));
        uint32_t count = plan->units[task->unit].acquire_count;
        if (count > 0 && !check_in_table(task->layout, count, plan->layout_count))
            return check_fail(c, CHECK_RULE_FORM, "task %u has slots that do not exist", i);
        for (uint32_t a = 0; a < count; a++)
            if (plan->layouts[task->layout + a] >= plan->slot_count)
                return check_fail(c, CHECK_RULE_FORM, "task %u has slots that do not exist", i);
    }
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *segment = &plan->segments[s];
        if (segment->repeat_count == 0 || segment->task_count == 0 ||
            !check_in_table(segment->first_task, segment->task_count, plan_first_choice(plan)))
            return check_fail(c, CHECK_RULE_FORM, "segment %u repeats %u tasks %u times", s,
                              segment->task_count, segment->repeat_count);
    }
    return STATUS_OK;
}

static enum status check_tables(struct checker *c)
{
    const struct plan *plan = c->plan;
    if (plan->hardware.device_count == 0)
        return check_fail(c, CHECK_RULE_FORM, "a plan without devices");
    for (uint32_t d = 0; d < plan->hardware.device_count; d++)
        if (plan->hardware.devices[d].host >= hardware_host_count(&plan->hardware))
            return check_fail(c, CHECK_RULE_FORM, "device %u is on node %u (there are %u)", d,
                              plan->hardware.devices[d].host, hardware_host_count(&plan->hardware));
    if (plan->seed > INT64_MAX)
        return check_fail(c, CHECK_RULE_FORM, "seed %" PRIu64 " (limit is 2^63 - 1: JSON integers)",
                          plan->seed);
    if (plan->bound_kind >= BOUND_KIND_COUNT)
        return check_fail(c, CHECK_RULE_FORM, "a bound of kind %u", plan->bound_kind);
    if (plan->order.kind >= PLAN_ORDER_COUNT)
        return check_fail(c, CHECK_RULE_FORM, "an order's bound of kind %u", plan->order.kind);
    if (plan->order.bound_s > plan->estimated_makespan_s * (1 + 1e-9))
        return check_fail(c, CHECK_RULE_FORM, "an order of %g s where none is said to be below %g s (%s)",
                          plan->estimated_makespan_s, plan->order.bound_s,
                          plan_order_names[plan->order.kind]);
    TRY(check_gangs(c));
    TRY(check_reservations(c));
    TRY(check_jobs(c));
    TRY(check_buffers(c));
    TRY(check_ranges(c));
    TRY(check_slots(c));
    return check_works(c);
}

/* --- public --------------------------------------------------------------------------------- */

static enum status allocate(struct checker *c)
{
    const struct plan *plan = c->plan;
    c->jobs = alloc_zeroed(plan->jobs.count, sizeof *c->jobs);
    c->shards = alloc_zeroed(plan->shard_count, sizeof *c->shards);
    c->claims_of = alloc_zeroed(plan->op_count, sizeof *c->claims_of);
    if (c->jobs && c->shards && c->claims_of) return STATUS_OK;
    return error_memory(c->err, "checking a plan", plan->op_count * sizeof *c->claims_of);
}

enum status plan_check(const struct plan *plan, struct error *err)
{
    struct checker c = {.plan = plan, .err = err};
    enum status status = allocate(&c);
    if (status == STATUS_OK) status = check_tables(&c);
    if (status == STATUS_OK) status = check_units(&c);
    if (status == STATUS_OK) status = check_tasks(&c);
    if (status == STATUS_OK) status = check_choices(&c);
    if (status == STATUS_OK) status = check_any_order(&c);
    if (status == STATUS_OK) status = check_host_memory(&c);
    if (status == STATUS_OK) status = check_run(&c);
    free(c.claims);
    free(c.claims_of);
    free(c.shards);
    free(c.jobs);
    return status;
}
