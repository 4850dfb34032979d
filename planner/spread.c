/*
 * One minibatch of each job, repeated.
 *
 * The order of the passes is planner/pipeline.h's. Walking it once, every thing that is made takes the lowest
 * free variant of its kind and run, and gives it back where it is used for the last time; so there are as
 * many variants as things of that kind live at once in that order. Every variant has a place of its own in
 * the memory of the stage's devices, the same on all of them:
 *
 *     [ states | gradients | workspace | activations 0, 1, ... | boundaries | their gradients ]
 *
 * A boundary has a place on both stages that it passes; a workspace is shared by the runs of a stage, whose
 * passes follow each other.
 *
 * Several jobs: a minibatch of each in turn, as long as each has some.
 */
#include "planner/spread.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/quantity.h"
#include "base/size.h"
#include "models/parallel_memory.h"
#include "models/parallel_work.h"
#include "planner/pipeline.h"
#include "planner/spread_times.h"

/* What lives between passes, one for each microbatch under way. */
enum thing { THING_ACTIVATIONS, THING_BOUNDARY, THING_GRADIENT, THINGS };

static const uint32_t thing_buffers[THINGS] = {BUFFER_ACTIVATIONS, BUFFER_BOUNDARY, BUFFER_BOUNDARY_GRADIENT};

/* The things of one kind of one run. */
struct pool {
    uint32_t *variant_of; /* [microbatch] */
    uint32_t *free;       /* variants, the lowest last */
    uint32_t free_count, made;
    uint64_t bytes;
    uint64_t offset[2];   /* of variant 0 on the run's own stage, and on the one in front */
};

struct run {
    struct parallel_layers layers;
    uint32_t stage;
    struct pool pools[THINGS];
    uint64_t state_bytes, gradient_bytes, workspace_bytes;
    uint64_t state_offset, gradient_offset;
    uint32_t passes_left; /* backward passes of this minibatch */
};

struct spread {
    struct plan_builder *builder;
    const struct plan *plan;
    const struct job *job;
    const struct parallel *parallel;
    uint32_t index;          /* of the job */
    uint32_t runs, microbatches;
    struct run *of;          /* per run */
    uint32_t *gangs;         /* per stage */
    uint64_t *workspace_offset, *end; /* per stage */
    struct spread_times times;
    struct pipeline_order order;
    uint64_t base_bytes;     /* where other jobs' memory on these devices ends */
    double estimated_end_s;
    /* of the unit at hand */
    uint32_t slots[16];
    uint32_t slot_count;
    uint32_t stage;
};

/* --- sizes and places ----------------------------------------------------------------------- */

static uint64_t boundary_bytes(const struct spread *s, uint32_t run)
{
    return parallel_boundary_bytes(s->job, s->of[run].layers.first - 1);
}

static void size_runs(struct spread *s)
{
    for (uint32_t r = 0; r < s->runs; r++) {
        struct run *run = &s->of[r];
        run->layers = parallel_layers(s->job, r);
        run->stage = parallel_place(s->parallel, r).stage;
        struct rank_state state = parallel_state(s->job, run->layers);
        run->state_bytes = state.weight_bytes + state.state_bytes;
        run->gradient_bytes = state.gradient_bytes;
        run->workspace_bytes = parallel_workspace_bytes(s->job, run->layers);
        run->pools[THING_ACTIVATIONS].bytes = parallel_kept_bytes(s->job, run->layers, false);
        if (r == 0) continue;
        run->pools[THING_BOUNDARY].bytes = run->pools[THING_GRADIENT].bytes = boundary_bytes(s, r);
    }
}

/* Of a range that nothing else has, also where it is needed for 0 bytes. */
static uint64_t range_bytes(uint64_t bytes)
{
    return size_align(bytes > 0 ? bytes : 1, MEMORY_ALIGNMENT);
}

static uint64_t reserve(struct spread *s, uint32_t stage, uint64_t bytes)
{
    uint64_t offset = s->end[stage];
    s->end[stage] += bytes;
    return offset;
}

/* When the walk has found how many variants there are. */
static void place_all(struct spread *s)
{
    for (uint32_t stage = 0; stage < s->parallel->pipeline; stage++) {
        uint64_t workspace = 0;
        s->end[stage] = s->base_bytes;
        for (uint32_t r = 0; r < s->runs; r++) {
            struct run *run = &s->of[r];
            if (run->stage != stage) continue;
            run->state_offset = reserve(s, stage, range_bytes(run->state_bytes));
            run->gradient_offset = reserve(s, stage, range_bytes(run->gradient_bytes));
            if (run->workspace_bytes > workspace) workspace = run->workspace_bytes;
        }
        s->workspace_offset[stage] = reserve(s, stage, range_bytes(workspace));
        for (uint32_t r = 0; r < s->runs; r++)
            for (uint32_t t = 0; t < THINGS; t++) {
                struct pool *pool = &s->of[r].pools[t];
                uint64_t bytes = pool->made * range_bytes(pool->bytes);
                bool own = s->of[r].stage == stage;
                if (own) pool->offset[0] = reserve(s, stage, bytes);
                if (!own && t != THING_ACTIVATIONS && r > 0 && s->of[r - 1].stage == stage)
                    pool->offset[1] = reserve(s, stage, bytes);
            }
    }
}

static enum status check_memory(const struct spread *s, struct error *err)
{
    const struct hardware *hardware = &s->plan->hardware;
    for (uint32_t stage = 0; stage < s->parallel->pipeline; stage++) {
        const struct plan_gang *gang = &s->plan->gangs[s->gangs[stage]];
        for (uint32_t i = 0; i < plan_gang_size(gang); i++) {
            uint32_t device = s->plan->gang_devices[gang->first + i];
            uint64_t have = hardware->devices[device].memory_bytes;
            char need_text[QUANTITY_TEXT_BYTES], have_text[QUANTITY_TEXT_BYTES];
            if (s->end[stage] <= have) continue;
            return error_set(err, STATUS_INFEASIBLE,
                             "job '%s' needs %s on each device of stage %" PRIu32 ", and device %" PRIu32
                             " has %s (%" PRIu64 " bytes missing)",
                             s->job->name, quantity_text((double)s->end[stage], DIMENSION_BYTES, need_text),
                             stage, device, quantity_text((double)have, DIMENSION_BYTES, have_text),
                             s->end[stage] - have);
        }
    }
    return STATUS_OK;
}

/* --- variants ------------------------------------------------------------------------------- */

static uint32_t take_variant(struct pool *pool, uint32_t microbatch)
{
    uint32_t variant = pool->free_count > 0 ? pool->free[--pool->free_count] : pool->made++;
    pool->variant_of[microbatch] = variant;
    return variant;
}

static void give_back(struct pool *pool, uint32_t microbatch)
{
    uint32_t variant = pool->variant_of[microbatch], at = pool->free_count++;
    for (; at > 0 && pool->free[at - 1] < variant; at--) pool->free[at] = pool->free[at - 1];
    pool->free[at] = variant;
}

/* --- units ---------------------------------------------------------------------------------- */

static uint32_t buffer(const struct spread *s, uint32_t kind, uint32_t run, uint32_t variant, uint64_t bytes)
{
    struct plan_buffer b = {.kind = kind, .job = s->index, .shard = run, .variant = variant, .on_device = true,
                            .bytes = bytes};
    return plan_builder_buffer(s->builder, &b);
}

static void note_slot(struct spread *s, uint64_t offset, uint64_t bytes)
{
    assert(s->slot_count < ARRAY_COUNT(s->slots));
    s->slots[s->slot_count++] = plan_builder_slot(s->builder, offset, range_bytes(bytes));
}

/* A list of accesses of one operation. */
struct accesses {
    struct plan_access of[12];
    uint32_t count;
};

static void add_access(struct accesses *a, uint32_t buffer_index, uint32_t flags)
{
    assert(a->count < ARRAY_COUNT(a->of));
    a->of[a->count++] = (struct plan_access){.buffer = buffer_index, .flags = flags};
}

static void access_resident(struct spread *s, struct accesses *a, uint32_t r, uint32_t kind, uint32_t flags)
{
    const struct run *run = &s->of[r];
    bool state = kind == BUFFER_STATE;
    uint64_t bytes = state ? run->state_bytes : run->gradient_bytes;
    add_access(a, buffer(s, kind, r, 0, bytes), flags);
    if (flags & ACCESS_ACQUIRE) note_slot(s, state ? run->state_offset : run->gradient_offset, bytes);
}

static void access_workspace(struct spread *s, struct accesses *a, uint32_t r, uint32_t flags)
{
    add_access(a, buffer(s, BUFFER_WORKSPACE, r, 0, s->of[r].workspace_bytes), flags);
    if (flags & ACCESS_ACQUIRE) note_slot(s, s->workspace_offset[s->stage], s->of[r].workspace_bytes);
}

/* A thing of run r; nothing where there is none: no boundary enters run 0 or leaves the last. */
static void access_thing(struct spread *s, struct accesses *a, enum thing thing, uint32_t r,
                         uint32_t microbatch, uint32_t flags)
{
    if (r == s->runs || (r == 0 && thing != THING_ACTIVATIONS)) return;
    struct pool *pool = &s->of[r].pools[thing];
    uint32_t variant = pool->variant_of[microbatch];
    add_access(a, buffer(s, thing_buffers[thing], r, variant, pool->bytes), flags);
    if (flags & ACCESS_ACQUIRE)
        note_slot(s, pool->offset[s->of[r].stage != s->stage] + variant * range_bytes(pool->bytes), pool->bytes);
}

static void add_compute(struct spread *s, enum plan_pass pass, uint32_t work, const struct accesses *a)
{
    struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_COMPUTE, .pass = (uint8_t)pass, .work = work};
    plan_builder_op(s->builder, &op, a->of, a->count, NULL, 0);
}

static uint32_t work_of(const struct spread *s, uint32_t r, enum parallel_pass pass)
{
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(s->job, s->of[r].layers, pass, items);
    return count > 0 ? plan_builder_work(s->builder, items, count) : PLAN_NONE;
}

static void add_collective(struct spread *s, enum collective_kind kind, enum plan_axis axis, uint32_t stream,
                           uint32_t rounds, uint64_t bytes, uint32_t on)
{
    struct plan_op op = {.kind = OP_COLLECTIVE, .stream = (uint8_t)stream, .collective = (uint8_t)kind,
                         .axes = (uint8_t)(1u << axis), .rounds = rounds, .bytes = bytes, .work = PLAN_NONE};
    struct plan_access access = {.buffer = on, .flags = ACCESS_READ | ACCESS_WRITE};
    plan_builder_op(s->builder, &op, &access, 1, NULL, 0);
}

/* Those of the tensor group that overlap, or those that do not; how many. */
static uint32_t add_tensor_collectives(struct spread *s, uint32_t r, enum parallel_pass pass, bool overlapping,
                                       uint32_t stream, uint32_t on)
{
    struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
    uint32_t count = parallel_collectives(s->job, s->of[r].layers, pass, list), added = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].overlaps != overlapping || list[i].bytes == 0) continue;
        add_collective(s, list[i].kind, AXIS_TENSOR, stream, list[i].count, list[i].bytes, on);
        added++;
    }
    return added;
}

/* Fetch what comes from another stage; `from`: the run on it. */
static uint32_t add_fetch(struct spread *s, enum thing thing, uint32_t r, uint32_t microbatch, uint32_t from)
{
    struct accesses a = {0};
    if (from >= s->runs || s->of[from].stage == s->stage) return PLAN_NONE;
    const struct pool *pool = &s->of[r].pools[thing];
    access_thing(s, &a, thing, r, microbatch, ACCESS_READ | ACCESS_RELEASE);
    access_thing(s, &a, thing, r, microbatch, ACCESS_WRITE | ACCESS_ACQUIRE);
    struct plan_op op = {.kind = OP_COPY, .stream = STREAM_P2P, .bytes = pool->bytes, .work = PLAN_NONE};
    plan_builder_op(s->builder, &op, a.of, a.count, NULL, 0);
    return s->gangs[s->of[from].stage];
}

static void begin_unit(struct spread *s, uint32_t r, enum plan_pass pass, bool ends_minibatch)
{
    s->slot_count = 0;
    s->stage = s->of[r].stage;
    plan_builder_unit_begin(s->builder, s->index, r, pass, ends_minibatch);
}

static void end_unit(struct spread *s, uint32_t peer)
{
    uint32_t unit = plan_builder_unit_end(s->builder);
    plan_builder_gang_instance(s->builder, unit, s->gangs[s->stage], s->slots, s->slot_count);
    if (peer != PLAN_NONE) plan_builder_peer(s->builder, peer);
}

/* --- passes --------------------------------------------------------------------------------- */

static void emit_forward(struct spread *s, uint32_t r, uint32_t n)
{
    struct accesses a = {0};
    const struct accesses *const all = &a;
    begin_unit(s, r, PLAN_FORWARD, false);
    uint32_t peer = add_fetch(s, THING_BOUNDARY, r, n, r - 1);
    access_resident(s, &a, r, BUFFER_STATE, ACCESS_READ);
    access_thing(s, &a, THING_BOUNDARY, r, n, ACCESS_READ);
    access_thing(s, &a, THING_ACTIVATIONS, r, n, ACCESS_WRITE | ACCESS_ACQUIRE);
    uint32_t output = all->of[a.count - 1].buffer;
    access_thing(s, &a, THING_BOUNDARY, r + 1, n, ACCESS_WRITE | ACCESS_ACQUIRE);
    if (r + 1 < s->runs) output = all->of[a.count - 1].buffer;
    access_workspace(s, &a, r, ACCESS_WRITE | ACCESS_ACQUIRE | ACCESS_RELEASE);
    add_compute(s, PLAN_FORWARD, work_of(s, r, PARALLEL_FORWARD), &a);
    add_tensor_collectives(s, r, PARALLEL_FORWARD, false, STREAM_COMPUTE, output);
    add_tensor_collectives(s, r, PARALLEL_FORWARD, true, STREAM_GROUP, output);
    end_unit(s, peer);
}

/* What a backward pass reads of the microbatch, for the last time or not. */
static void access_inputs(struct spread *s, struct accesses *a, uint32_t r, uint32_t n, uint32_t release)
{
    access_thing(s, a, THING_BOUNDARY, r, n, ACCESS_READ | release);
    access_thing(s, a, THING_ACTIVATIONS, r, n, ACCESS_READ | release);
    access_thing(s, a, THING_GRADIENT, r + 1, n, ACCESS_READ | release);
}

static void emit_backward(struct spread *s, uint32_t r, uint32_t n)
{
    const uint32_t change = ACCESS_READ | ACCESS_WRITE, make = ACCESS_WRITE | ACCESS_ACQUIRE;
    struct accesses input = {0}, weight = {0}, output = {0};
    begin_unit(s, r, PLAN_BACKWARD, false);
    uint32_t peer = add_fetch(s, THING_GRADIENT, r + 1, n, r + 1);
    uint32_t scratch = buffer(s, BUFFER_WORKSPACE, r, 0, s->of[r].workspace_bytes);
    access_resident(s, &input, r, BUFFER_STATE, ACCESS_READ);
    if (s->parallel->tensor == 1) {
        access_inputs(s, &input, r, n, ACCESS_RELEASE);
        access_resident(s, &input, r, BUFFER_GRADIENT, change);
        access_thing(s, &input, THING_GRADIENT, r, n, make);
        access_workspace(s, &input, r, make | ACCESS_RELEASE);
        add_compute(s, PLAN_BACKWARD, work_of(s, r, PARALLEL_BACKWARD), &input);
        end_unit(s, peer);
        return;
    }
    access_inputs(s, &input, r, n, 0);
    access_workspace(s, &input, r, make);
    add_compute(s, PLAN_BACKWARD_INPUT, work_of(s, r, PARALLEL_INPUT), &input);
    add_tensor_collectives(s, r, PARALLEL_INPUT, false, STREAM_COMPUTE, scratch);
    add_tensor_collectives(s, r, PARALLEL_WEIGHT, false, STREAM_COMPUTE, scratch);
    add_tensor_collectives(s, r, PARALLEL_INPUT, true, STREAM_GROUP, scratch);
    add_tensor_collectives(s, r, PARALLEL_WEIGHT, true, STREAM_GROUP, scratch);
    access_inputs(s, &weight, r, n, ACCESS_RELEASE);
    access_resident(s, &weight, r, BUFFER_GRADIENT, change);
    add_compute(s, PLAN_BACKWARD_WEIGHT, work_of(s, r, PARALLEL_WEIGHT), &weight);
    access_workspace(s, &output, r, ACCESS_READ | ACCESS_RELEASE);
    access_thing(s, &output, THING_GRADIENT, r, n, make);
    add_compute(s, PLAN_BACKWARD, PLAN_NONE, &output);
    end_unit(s, peer);
}

static void emit_input(struct spread *s, uint32_t r, uint32_t n)
{
    const uint32_t make = ACCESS_WRITE | ACCESS_ACQUIRE;
    struct accesses a = {0};
    begin_unit(s, r, PLAN_BACKWARD_INPUT, false);
    uint32_t peer = add_fetch(s, THING_GRADIENT, r + 1, n, r + 1);
    access_resident(s, &a, r, BUFFER_STATE, ACCESS_READ);
    access_inputs(s, &a, r, n, 0);
    uint32_t output = a.of[r > 0 ? 2 : 1].buffer; /* activations, where no gradient leaves */
    access_thing(s, &a, THING_GRADIENT, r, n, make);
    if (r > 0) output = a.of[a.count - 1].buffer;
    access_workspace(s, &a, r, make | ACCESS_RELEASE);
    add_compute(s, PLAN_BACKWARD_INPUT, work_of(s, r, PARALLEL_INPUT), &a);
    add_tensor_collectives(s, r, PARALLEL_INPUT, false, STREAM_COMPUTE, output);
    add_tensor_collectives(s, r, PARALLEL_INPUT, true, STREAM_GROUP, output);
    end_unit(s, peer);
}

static void emit_weight(struct spread *s, uint32_t r, uint32_t n)
{
    struct accesses a = {0};
    begin_unit(s, r, PLAN_BACKWARD_WEIGHT, false);
    uint32_t gradient = buffer(s, BUFFER_GRADIENT, r, 0, s->of[r].gradient_bytes);
    add_tensor_collectives(s, r, PARALLEL_WEIGHT, false, STREAM_COMPUTE, gradient);
    add_tensor_collectives(s, r, PARALLEL_WEIGHT, true, STREAM_COMPUTE, gradient);
    access_inputs(s, &a, r, n, ACCESS_RELEASE);
    access_resident(s, &a, r, BUFFER_GRADIENT, ACCESS_READ | ACCESS_WRITE);
    access_workspace(s, &a, r, ACCESS_WRITE | ACCESS_ACQUIRE | ACCESS_RELEASE);
    add_compute(s, PLAN_BACKWARD_WEIGHT, work_of(s, r, PARALLEL_WEIGHT), &a);
    end_unit(s, PLAN_NONE);
}

static void emit_update(struct spread *s, uint32_t r, bool ends_minibatch)
{
    const uint32_t change = ACCESS_READ | ACCESS_WRITE;
    struct accesses a = {0};
    const struct run *run = &s->of[r];
    bool shared = s->parallel->data > 1, split = s->parallel->zero > 0;
    struct rank_state whole = parallel_zero_state(parallel_parameters(s->job, run->layers),
                                                  parallel_parameter_bytes(s->job), 1, 0);
    begin_unit(s, r, PLAN_UPDATE, ends_minibatch);
    uint32_t gradient = buffer(s, BUFFER_GRADIENT, r, 0, run->gradient_bytes);
    uint32_t state = buffer(s, BUFFER_STATE, r, 0, run->state_bytes);
    add_tensor_collectives(s, r, PARALLEL_UPDATE, false, STREAM_COMPUTE, gradient);
    add_tensor_collectives(s, r, PARALLEL_UPDATE, true, STREAM_COMPUTE, gradient);
    if (shared && whole.gradient_bytes > 0)
        add_collective(s, split ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE, AXIS_DATA, STREAM_DATA, 1,
                       whole.gradient_bytes, gradient);
    access_resident(s, &a, r, BUFFER_STATE, change);
    access_resident(s, &a, r, BUFFER_GRADIENT, change);
    add_compute(s, PLAN_UPDATE, work_of(s, r, PARALLEL_UPDATE), &a);
    if (shared && split && whole.weight_bytes > 0)
        add_collective(s, COLLECTIVE_ALL_GATHER, AXIS_DATA, STREAM_DATA, 1, whole.weight_bytes, state);
    end_unit(s, PLAN_NONE);
}

static void emit_resident(struct spread *s, uint32_t r, bool load)
{
    uint32_t flags = load ? ACCESS_WRITE | ACCESS_ACQUIRE : ACCESS_READ | ACCESS_RELEASE;
    struct accesses a = {0};
    begin_unit(s, r, load ? PLAN_LOAD : PLAN_STORE, false);
    access_resident(s, &a, r, BUFFER_STATE, flags);
    access_resident(s, &a, r, BUFFER_GRADIENT, flags);
    add_compute(s, load ? PLAN_LOAD : PLAN_STORE, PLAN_NONE, &a);
    end_unit(s, PLAN_NONE);
}

/* --- a minibatch ---------------------------------------------------------------------------- */

/* Take and give back the variants of a step; `emit` after what it makes has them, before what it uses for
 * the last time gives them back. */
static void walk_step(struct spread *s, const struct pipeline_step *step,
                      void (*emit)(struct spread *s, uint32_t r, uint32_t n))
{
    uint32_t r = step->run, n = step->microbatch;
    struct run *run = &s->of[r], *next = r + 1 < s->runs ? run + 1 : NULL;
    if (step->pass == PIPELINE_FORWARD) {
        take_variant(&run->pools[THING_ACTIVATIONS], n);
        if (next) take_variant(&next->pools[THING_BOUNDARY], n);
    } else if (step->pass != PIPELINE_WEIGHT && r > 0) {
        take_variant(&run->pools[THING_GRADIENT], n);
    }
    if (emit) emit(s, r, n);
    if (step->pass != PIPELINE_BACKWARD && step->pass != PIPELINE_WEIGHT) return;
    give_back(&run->pools[THING_ACTIVATIONS], n);
    if (r > 0) give_back(&run->pools[THING_BOUNDARY], n);
    if (next) give_back(&next->pools[THING_GRADIENT], n);
}

/* Every minibatch gives back all that it takes, so each is like the first. */
static void count_variants(struct spread *s)
{
    for (uint64_t i = 0; i < s->order.count; i++) walk_step(s, &s->order.steps[i], NULL);
    for (uint32_t r = 0; r < s->runs; r++)
        for (uint32_t t = 0; t < THINGS; t++) {
            struct pool *pool = &s->of[r].pools[t];
            assert(pool->free_count == pool->made);
            for (uint32_t v = 0; v < pool->made; v++) pool->free[v] = pool->made - 1 - v;
        }
}

static void emit_minibatch(struct spread *s)
{
    static void (*const emits[PIPELINE_PASSES])(struct spread *s, uint32_t r, uint32_t n) = {
        [PIPELINE_FORWARD] = emit_forward,
        [PIPELINE_BACKWARD] = emit_backward,
        [PIPELINE_INPUT] = emit_input,
        [PIPELINE_WEIGHT] = emit_weight,
    };
    uint32_t updates = 0;
    for (uint32_t r = 0; r < s->runs; r++) s->of[r].passes_left = s->microbatches;
    for (uint64_t i = 0; i < s->order.count; i++) {
        const struct pipeline_step *step = &s->order.steps[i];
        walk_step(s, step, emits[step->pass]);
        bool completes = step->pass == PIPELINE_BACKWARD || step->pass == PIPELINE_WEIGHT;
        if (!completes || --s->of[step->run].passes_left > 0) continue;
        updates++;
        emit_update(s, step->run, updates == s->runs);
    }
}

/* --- jobs ----------------------------------------------------------------------------------- */

static enum status make_pools(struct spread *s, struct arena *arena, struct error *err)
{
    void *memory;
    size_t cells = (size_t)s->runs * THINGS * s->microbatches;
    enum status status = arena_array(arena, 2 * cells, sizeof(uint32_t), &memory, err);
    if (status) return status;
    uint32_t *next = memory;
    for (uint32_t r = 0; r < s->runs; r++)
        for (uint32_t t = 0; t < THINGS; t++, next += 2 * s->microbatches) {
            s->of[r].pools[t].variant_of = next;
            s->of[r].pools[t].free = next + s->microbatches;
        }
    return STATUS_OK;
}

static enum status make_gangs(struct spread *s, struct error *err)
{
    const struct parallel *p = s->parallel;
    uint32_t extents[AXIS_COUNT] = {[AXIS_TENSOR] = p->tensor, [AXIS_DATA] = p->data};
    uint64_t end = p->first_device + parallel_devices(p);
    uint32_t size = p->tensor * p->data;
    if (end > s->plan->hardware.device_count)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' is spread over devices %" PRIu32 " to %" PRIu64 ", and machine '%s' has %" PRIu32,
                         s->job->name, p->first_device, end - 1, s->plan->hardware.name,
                         s->plan->hardware.device_count);
    uint32_t *devices = alloc_zeroed(size, sizeof *devices);
    if (!devices) return error_memory(err, "the devices of a stage", size * sizeof *devices);
    for (uint32_t stage = 0; stage < p->pipeline; stage++) {
        for (uint32_t i = 0; i < size; i++) devices[i] = p->first_device + stage * size + i;
        s->gangs[stage] = plan_builder_gang(s->builder, extents, devices);
    }
    free(devices);
    return STATUS_OK;
}

/* Everything but instances. */
static enum status prepare(struct spread *s, struct arena *arena, struct error *err)
{
    void *runs, *stages, *gangs;
    s->job = &s->plan->jobs.jobs[s->index];
    s->parallel = &s->job->parallel;
    s->runs = parallel_runs(s->parallel);
    s->microbatches = (uint32_t)(s->job->microbatches / s->parallel->data);
    enum status status = arena_array(arena, s->runs, sizeof *s->of, &runs, err);
    if (!status) status = arena_array(arena, 2 * (size_t)s->parallel->pipeline, sizeof *s->end, &stages, err);
    if (!status) status = arena_array(arena, s->parallel->pipeline, sizeof *s->gangs, &gangs, err);
    if (status) return status;
    s->of = runs;
    s->end = stages;
    s->workspace_offset = s->end + s->parallel->pipeline;
    s->gangs = gangs;
    status = make_gangs(s, err);
    if (!status) status = make_pools(s, arena, err);
    if (!status) status = spread_times_make(arena, &s->plan->hardware, s->job, &s->times, err);
    if (!status) status = pipeline_order(arena, s->parallel, s->microbatches, s->times.runs, &s->order, err);
    if (status) return status;
    size_runs(s);
    count_variants(s);
    place_all(s);
    for (uint32_t r = 0; r < s->runs; r++)
        plan_builder_shard(s->builder, s->index, s->of[r].layers.first, s->of[r].layers.count, false);
    return check_memory(s, err);
}

/* A minibatch of each job that has some left, and again, in segments of as many as all have. */
static void emit_minibatches(struct spread *all, uint32_t count, struct plan_builder *builder)
{
    uint64_t done = 0, next;
    do {
        next = UINT64_MAX;
        for (uint32_t j = 0; j < count; j++)
            if (all[j].job->minibatches > done && all[j].job->minibatches < next) next = all[j].job->minibatches;
        if (next == UINT64_MAX) return;
        for (uint32_t j = 0; j < count; j++)
            if (all[j].job->minibatches > done) emit_minibatch(&all[j]);
        plan_builder_segment(builder, (uint32_t)(next - done));
        done = next;
    } while (true);
}

static bool share_devices(const struct parallel *a, const struct parallel *b)
{
    return a->first_device < b->first_device + parallel_devices(b) &&
           b->first_device < a->first_device + parallel_devices(a);
}

/* Behind the memory of other jobs on the same devices. */
static void stack_jobs(struct spread *all, uint32_t index)
{
    struct spread *s = &all[index];
    for (uint32_t j = 0; j < index; j++) {
        if (!share_devices(&all[j].job->parallel, &s->job->parallel)) continue;
        for (uint32_t stage = 0; stage < all[j].parallel->pipeline; stage++)
            if (all[j].end[stage] > s->base_bytes) s->base_bytes = all[j].end[stage];
    }
}

/* Jobs on the same devices take turns. */
static void estimate_end(struct spread *all, uint32_t index)
{
    struct spread *s = &all[index];
    double begin_s = 0;
    for (uint32_t j = 0; j < index; j++)
        if (share_devices(&all[j].job->parallel, &s->job->parallel) && all[j].estimated_end_s > begin_s)
            begin_s = all[j].estimated_end_s;
    s->estimated_end_s = begin_s + (double)s->job->minibatches * (s->order.end_s + s->times.update_s);
}

static enum status describe(struct plan *plan, const struct spread *all, uint32_t count, struct error *err)
{
    double bound_s = 0, estimate_s = 0;
    const struct spread *longest = all;
    char text[256], seconds[QUANTITY_TEXT_BYTES];
    for (uint32_t j = 0; j < count; j++) {
        double minibatches = (double)all[j].job->minibatches;
        double end_s = all[j].estimated_end_s;
        if (end_s > estimate_s) estimate_s = end_s;
        if (minibatches * all[j].times.compute_s <= bound_s) continue;
        bound_s = minibatches * all[j].times.compute_s;
        longest = &all[j];
    }
    plan->estimated_makespan_s = estimate_s > bound_s ? estimate_s : bound_s;
    plan->lower_bound_s = bound_s;
    plan->bound_kind = BOUND_AREA;
    snprintf(text, sizeof text, "spread like this, the devices of stage %" PRIu32 " of %.100s compute for %s",
             longest->times.busiest, longest->job->name,
             quantity_text(bound_s, DIMENSION_SECONDS, seconds));
    enum status status = arena_string(&plan->arena, text, &plan->bound_text, err);
    return status ? status : arena_string(&plan->arena, "spread", &plan->policy, err);
}

enum status spread_plan(struct plan_builder *builder, struct error *err)
{
    struct plan *plan = plan_builder_plan(builder);
    struct arena scratch = {0};
    void *memory;
    uint32_t count = plan->jobs.count;
    enum status status = arena_array(&scratch, count, sizeof(struct spread), &memory, err);
    struct spread *all = memory;
    for (uint32_t j = 0; j < count && !status; j++) {
        all[j] = (struct spread){.builder = builder, .plan = plan, .index = j,
                                 .job = &plan->jobs.jobs[j]};
        stack_jobs(all, j);
        plan->job_activations[j] = ACTIVATIONS_KEEP;
        status = prepare(&all[j], &scratch, err);
        if (!status) estimate_end(all, j);
    }
    if (!status) {
        for (uint32_t j = 0; j < count; j++)
            for (uint32_t r = 0; r < all[j].runs; r++) emit_resident(&all[j], r, true);
        plan_builder_segment(builder, 1);
        emit_minibatches(all, count, builder);
        for (uint32_t j = 0; j < count; j++)
            for (uint32_t r = 0; r < all[j].runs; r++) emit_resident(&all[j], r, false);
        plan_builder_segment(builder, 1);
        status = describe(plan, all, count, err);
    }
    arena_release(&scratch);
    return status;
}
