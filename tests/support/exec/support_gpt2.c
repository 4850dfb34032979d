/* The order of passes of one training step, as planner/plan.h describes it. */
#include "tests/support/exec/support_gpt2.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/extreme.h"
#include "exec/device/host_memory.h"
#include "exec/files/weights.h"

static void check(enum status status, const struct error *err)
{
    if (status == STATUS_OK) return;
    fprintf(stderr, "%s\n", err->text);
    abort();
}

static void *map(uint64_t bytes)
{
    struct error err = {0};
    void *memory = NULL;
    check(host_memory_map("a test", bytes, &memory, &err), &err);
    return memory;
}

static void poison(float *memory, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes / sizeof *memory; i++) memory[i] = NAN;
}

struct network support_gpt2_network(uint64_t width, uint64_t heads, uint64_t blocks,
                                    uint64_t vocabulary, uint64_t positions)
{
    return (struct network){.name = "test",
                            .family = NETWORK_GPT2,
                            .layer_count = blocks + 2,
                            .width = width,
                            .heads = heads,
                            .head_width = width / heads,
                            .ff_width = 4 * width,
                            .blocks = blocks,
                            .vocabulary = vocabulary,
                            .positions = positions,
                            .norm_epsilon = 1e-5,
                            .tied_head = true,
                            .causal = true,
                            .biases = true,
                            .gelu_tanh = true,
                            .initializer_range = 0.02};
}

/* --- making ----------------------------------------------------------------------------------- */

static void cut(struct trainer *trainer)
{
    const struct network *n = &trainer->job.network;
    const struct trainer_options *o = &trainer->options;
    trainer->shards[trainer->shard_count++] = (struct plan_shard){0, 0, 1, false};
    for (uint64_t layer = 1; layer < n->layer_count;) {
        uint64_t left = n->blocks + 1 - layer;
        uint64_t count = left < o->blocks_per_shard ? left : o->blocks_per_shard;
        if (layer + count == n->layer_count - 1 && (!o->head_alone || count == 0)) count++;
        if (trainer->shard_count == TRAINER_SHARDS_MAX) abort();
        trainer->shards[trainer->shard_count++] = (struct plan_shard){0, layer, count, false};
        layer += count;
    }
}

/* Returns the bytes that a shard keeps for its backward pass. */
static uint64_t kept_bytes(const struct trainer *trainer, uint32_t s)
{
    if (s == 0 || s + 1 == trainer->shard_count) return 0;
    if (trainer->options.inputs) return trainer->tables[s].inputs.bytes;
    return trainer->options.keep ? trainer->tables[s].activations.bytes : 0;
}

static void make_shard(struct trainer *trainer, uint32_t s)
{
    const struct job *job = &trainer->job;
    struct error err = {0};
    struct unit_tables *tables = &trainer->tables[s];
    check(unit_tables_init(job, &trainer->shards[s], &trainer->arena, tables, &err), &err);
    trainer->parameters[s] = tables->parameters;
    trainer->state_tables[s] = tables->state;
    trainer->states[s] = map(tables->state.layout.bytes);
    trainer->gradient_bytes = max_u64(trainer->gradient_bytes, tables->parameters.bytes);
    for (int pass = 0; pass < 3; pass++)
        for (uint32_t how = 0; how < UNIT_WAYS; how++)
            trainer->workspace_bytes =
                max_u64(trainer->workspace_bytes, tables->workspace[pass][how].bytes);
    if (job_clips(job)) trainer->gradients[s] = map(tables->parameters.bytes);
    if (s == 0) return;
    trainer->boundaries[s] = map(trainer->boundary_bytes);
    trainer->boundary_gradients[s] = map(trainer->boundary_bytes);
    uint64_t kept = kept_bytes(trainer, s);
    if (kept > 0) trainer->activations[s] = map(kept);
}

static uint64_t norm_bytes(const struct job *job)
{
    return memory_tensor_count(&job->network, 0, job->network.layer_count) * sizeof(double);
}

void trainer_init(struct trainer *trainer, const struct job *job,
                  const struct trainer_options *options)
{
    const struct network *n = &job->network;
    trainer->job = *job;
    trainer->options = *options;
    trainer->boundary_bytes = memory_boundary_bytes(n, 0, job->microbatch, job->sequence, job->precision);
    trainer->table_bytes = n->vocabulary * n->width * sizeof(float);
    cut(trainer);
    for (uint32_t s = 0; s < trainer->shard_count; s++) make_shard(trainer, s);
    trainer->workspace = map(trainer->workspace_bytes);
    trainer->table_gradient = map(trainer->table_bytes);
    if (options->elsewhere) trainer->gradient = map(trainer->gradient_bytes);
    if (options->slices > 1) trainer->slice = map(trainer->state_tables[0].layout.bytes);
    trainer->batch = map(job_batch_bytes(job));
    trainer->norms = map(norm_bytes(job));
}

void trainer_release(struct trainer *trainer)
{
    for (uint32_t s = 0; s < trainer->shard_count; s++) {
        host_memory_unmap(trainer->states[s], trainer->state_tables[s].layout.bytes);
        host_memory_unmap(trainer->boundaries[s], trainer->boundary_bytes);
        host_memory_unmap(trainer->boundary_gradients[s], trainer->boundary_bytes);
        host_memory_unmap(trainer->activations[s], kept_bytes(trainer, s));
        host_memory_unmap(trainer->gradients[s], trainer->parameters[s].bytes);
    }
    host_memory_unmap(trainer->workspace, trainer->workspace_bytes);
    host_memory_unmap(trainer->table_gradient, trainer->table_bytes);
    host_memory_unmap(trainer->gradient, trainer->gradient_bytes);
    host_memory_unmap(trainer->slice, trainer->state_tables[0].layout.bytes);
    host_memory_unmap(trainer->norms, norm_bytes(&trainer->job));
    host_memory_unmap(trainer->batch, job_batch_bytes(&trainer->job));
    arena_release(&trainer->arena);
    *trainer = (struct trainer){0};
}

float *trainer_tensor(const struct trainer *trainer, const char *name, uint64_t *elements)
{
    struct weights_walk walk = {.job = &trainer->job,
                                .tables = trainer->state_tables,
                                .shard_count = trainer->shard_count,
                                .states = trainer->states};
    struct weights_tensor tensor;
    while (weights_walk_next(&walk, &tensor)) {
        if (strcmp(tensor.spec->name, name) != 0) continue;
        *elements = tensor.spec->elements;
        return tensor.values;
    }
    fprintf(stderr, "no tensor '%s'\n", name);
    abort();
}

/* --- a step ----------------------------------------------------------------------------------- */

static void compute(struct trainer *trainer, const struct kernels *kernels,
                    const struct unit_arguments *arguments)
{
    if (trainer->options.poison) poison(trainer->workspace, trainer->workspace_bytes);
    unit_compute(kernels, arguments);
}

static struct unit_arguments arguments_of(struct trainer *trainer, uint32_t s, uint32_t pass,
                                          uint64_t minibatch)
{
    bool last = s + 1 == trainer->shard_count;
    struct unit_arguments arguments = {.job = &trainer->job,
                                       .shard = &trainer->shards[s],
                                       .tables = &trainer->tables[s],
                                       .pass = pass,
                                       .minibatch = minibatch,
                                       .state = trainer->states[s],
                                       .batch = trainer->batch,
                                       .activations = trainer->activations[s],
                                       .inputs_only = trainer->options.inputs,
                                       .boundary_in = trainer->boundaries[s],
                                       .workspace = trainer->workspace};
    bool back = pass == PLAN_LOSS || pass == PLAN_BACKWARD;
    if (!back && !last) arguments.boundary_out = trainer->boundaries[s + 1];
    if (pass == PLAN_EVALUATE) arguments.activations = NULL;
    if (back) arguments.gradient_out = trainer->boundary_gradients[s];
    if (back && !last)
        arguments.gradient_in = trainer->boundary_gradients[s + 1];
    if (last) {
        arguments.table = trainer->states[0];
        arguments.loss = &trainer->loss;
    }
    if (trainer->options.elsewhere && s > 0 && back) {
        if (trainer->options.poison) poison(trainer->gradient, trainer->gradient_bytes);
        arguments.gradient = trainer->gradient;
    }
    if (back && trainer->gradients[s]) {
        if (trainer->options.poison) poison(trainer->gradients[s], trainer->parameters[s].bytes);
        arguments.gradient = trainer->gradients[s];
    }
    bool tied = trainer->job.network.tied_head;
    if (tied && back && (last || s == 0)) arguments.table_gradient = trainer->table_gradient;
    return arguments;
}

/* Copies rows of each part of the embedding's state to the slice, or back. */
static void move_slice(struct trainer *trainer, uint64_t first, uint64_t count, bool back)
{
    const struct state_layout *whole = &trainer->state_tables[0].layout;
    const struct state_layout rows =
        memory_state_rows(&trainer->job.network, count, job_state_format(&trainer->job));
    for (uint32_t part = 0; part < STATE_PARTS; part++) {
        char *there = (char *)trainer->states[0] + whole->parts[part].offset_bytes +
                      first * whole->parts[part].row_bytes;
        char *here = (char *)trainer->slice + rows.parts[part].offset_bytes;
        memcpy(back ? there : here, back ? here : there, rows.parts[part].bytes);
    }
}

/* Passes over the embedding slice by slice: rows are copied out with their moments, and back. A pass that only reads
 * needs only the weights as its state. */
static void compute_slices(struct trainer *trainer, const struct kernels *kernels,
                           const struct unit_arguments *whole)
{
    const struct network *n = &trainer->job.network;
    uint64_t rows = network_table_rows(n), c = n->width;
    const bool reads = whole->pass == PLAN_FORWARD || whole->pass == PLAN_EVALUATE;
    const uint64_t row_bytes = trainer->state_tables[0].layout.parts[STATE_WEIGHTS].row_bytes;
    uint32_t count = trainer->options.slices;
    for (uint32_t k = 0; k < count; k++) {
        struct unit_arguments arguments = *whole;
        arguments.first_row = rows * k / count;
        arguments.row_count = rows * (k + 1) / count - arguments.first_row;
        uint64_t first = arguments.first_row * c;
        move_slice(trainer, arguments.first_row, arguments.row_count, false);
        if (reads)
            memcpy(trainer->slice, (char *)trainer->states[0] + arguments.first_row * row_bytes,
                   arguments.row_count * row_bytes);
        arguments.state = trainer->slice;
        if (arguments.table_gradient)
            arguments.table_gradient =
                arguments.first_row < n->vocabulary ? trainer->table_gradient + first : NULL;
        compute(trainer, kernels, &arguments);
        if (!reads) move_slice(trainer, arguments.first_row, arguments.row_count, true);
    }
}

/* Does PLAN_NORM or PLAN_UPDATE on a gradient. */
static void step_over(struct trainer *trainer, const struct kernels *kernels, uint32_t s,
                      uint32_t pass, uint64_t minibatch)
{
    bool clips = job_clips(&trainer->job);
    const struct unit_arguments step = {
        .job = &trainer->job,
        .shard = &trainer->shards[s],
        .tables = &trainer->tables[s],
        .pass = pass,
        .minibatch = minibatch,
        .state = pass == PLAN_UPDATE ? trainer->states[s] : NULL,
        .norms = clips ? trainer->norms : NULL,
        .gradient = clips ? trainer->gradients[s] : trainer->gradient};
    compute(trainer, kernels, &step);
}

static void pass_over(struct trainer *trainer, const struct kernels *kernels, uint32_t s,
                      uint32_t pass, uint64_t minibatch)
{
    struct unit_arguments arguments = arguments_of(trainer, s, pass, minibatch);
    if (s == 0 && trainer->options.slices > 1)
        compute_slices(trainer, kernels, &arguments);
    else
        compute(trainer, kernels, &arguments);
    if (!arguments.gradient) return;
    step_over(trainer, kernels, s, trainer->gradients[s] ? PLAN_NORM : PLAN_UPDATE, minibatch);
}

/* Poisons everything that must not survive between passes. */
static void poison_all(struct trainer *trainer)
{
    if (!trainer->options.poison) return;
    poison(trainer->table_gradient, trainer->table_bytes);
    for (uint32_t s = 1; s < trainer->shard_count; s++) {
        poison(trainer->boundaries[s], trainer->boundary_bytes);
        poison(trainer->boundary_gradients[s], trainer->boundary_bytes);
        if (trainer->activations[s])
            poison(trainer->activations[s], kept_bytes(trainer, s));
    }
    trainer->loss = NAN;
}

double trainer_evaluate(struct trainer *trainer, const struct kernels *kernels)
{
    poison_all(trainer);
    for (uint32_t s = 0; s < trainer->shard_count; s++)
        pass_over(trainer, kernels, s, PLAN_EVALUATE, 0);
    return trainer->loss;
}

/* Returns the first shard with a backward pass. */
static uint32_t lowest_shard(const struct trainer *trainer)
{
    const uint64_t first = network_first_trained(&trainer->job.network);
    uint32_t s = 0;
    while (trainer->shards[s].first_layer + trainer->shards[s].layer_count <= first) s++;
    return s;
}

void trainer_step(struct trainer *trainer, const struct kernels *kernels, uint64_t minibatch)
{
    uint32_t last = trainer->shard_count - 1;
    poison_all(trainer);
    for (uint32_t s = 0; s < last; s++) pass_over(trainer, kernels, s, PLAN_FORWARD, minibatch);
    pass_over(trainer, kernels, last, PLAN_LOSS, minibatch);
    for (uint32_t s = last; s-- > lowest_shard(trainer);) pass_over(trainer, kernels, s, PLAN_BACKWARD, minibatch);
    if (!job_clips(&trainer->job)) return;
    trainer->norm = unit_norm(&trainer->job, trainer->norms);
    for (uint32_t s = 0; s <= last; s++) step_over(trainer, kernels, s, PLAN_UPDATE, minibatch);
}
