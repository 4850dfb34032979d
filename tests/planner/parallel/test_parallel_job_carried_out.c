/*
 * Plans of pipelines that are carried out (label: fast): data, losses and copies of states are in them, buffers have
 * the executor's sizes, and the judge misses nothing that is left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "models/job/chunk_memory.h"
#include "sim/sim.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_planner.h"

enum { MINIBATCHES = 3 };

enum { HALVES = 200, CLIPS = 300, TREES = 400, GROUPS = 500, VERSIONS = 600, GROUPS_CLIP = 700, HOSTS = 800, SHARES_CLIP = 900,
       HOSTS_CLIP = 1000, BELOW = 1100, BELOW_SHARES = 1200, SWAPS = 1300, SLICES = 1400, HALVES_SHARES = 1500,
       SLICES_HELD_OUT = 1600, DELAYS = 1700, STORES = 1800, CODES = 1900, CODES_SHARES = 2000, TURNS = 2100, TURNS_CLIP = 2200,
       ROWS = 2300 };

/* A variant is a number of stages, from 2 on: a job on one device is planned as such; from 10 on of two replicas; from
 * 100 on evaluated on two held-out minibatches after the second and the last; from HALVES on instead with backward
 * passes in two units; from CLIPS on it clips; from TREES on it adds up gradients as trees; from GROUPS on each stage is
 * a tensor group of two; from VERSIONS on it has two versions of the weights, and no tied table; from GROUPS_CLIP on it is
 * of tensor groups and clips; from HOSTS on the host updates, of two replicas with the states of a share each; from
 * SHARES_CLIP on devices do, and it clips; from HOSTS_CLIP on it clips, and the host updates, with one replica of tensor
 * groups of two; from BELOW on weights come up whole, for one microbatch of each replica, to
 * chunks of one stage; from BELOW_SHARES on in shares; from SWAPS on activations of the first chunks leave; from
 * SLICES on sequences are in three slices of tokens; from HALVES_SHARES on instead backward passes have two units, and
 * replicas split weights; from SLICES_HELD_OUT on sequences are in slices again, and the job is evaluated;
 * from DELAYS on the host updates a minibatch later, flushed after two; from STORES on it updates states in storage; from
 * CODES on it is as from 2 on, but boundaries are compressed to bf16 and gradients to int8; from CODES_SHARES on gradients
 * are exchanged in 16 bits, and replicas split them; from TURNS on instead it has versions of the weights and a tied table;
 * from TURNS_CLIP on it clips, too; from ROWS on it is as from GROUPS on, and groups cut rows. */
static void make_plan(struct plan *out, uint32_t wanted)
{
    const uint32_t variant = wanted >= ROWS ? wanted - ROWS + GROUPS : wanted;
    const uint32_t stages = variant % 10;
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    test_hardware(&hardware, 4, 1 << 26, 1e9);
    test_gpt_jobs(&jobs, 1, 6, 32, 97, MINIBATCHES);
    jobs.jobs[0].microbatches = 4;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .data = 1 + variant % 100 / 10, .pipeline = stages, .prefetch = 1,
                                              .chunks = 1, .schedule = PIPELINE_1F1B};
    if (variant >= HALVES && variant < CLIPS) jobs.jobs[0].parallel.schedule = PIPELINE_ZB_H1;
    if (variant >= VERSIONS && variant < GROUPS_CLIP) jobs.jobs[0].parallel.schedule = PIPELINE_2BW;
    if (variant >= VERSIONS && variant < GROUPS_CLIP) jobs.jobs[0].network.tied_head = false;
    if ((variant >= HOSTS && variant < SHARES_CLIP) || variant >= HOSTS_CLIP) jobs.jobs[0].parallel.offload = OFFLOAD_STATES;
    if (variant >= HOSTS) jobs.jobs[0].parallel.zero = ZERO_STATES;
    if (variant >= HOSTS) hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    if (variant >= STORES)
        hardware.storage.capacity_bytes = hardware.storage.read_rate = hardware.storage.write_rate = hardware.host_bandwidth;
    if ((variant >= 100 && variant < HALVES) || (variant >= SLICES_HELD_OUT && variant < DELAYS))
        jobs.jobs[0].evaluation = (struct job_evaluation){.every = 2, .minibatches = 2};
    if ((variant >= CLIPS && variant < TREES) || (variant >= GROUPS_CLIP && variant < HOSTS) ||
        variant >= SHARES_CLIP)
        jobs.jobs[0].optimizer.clip = 0.5;
    jobs.jobs[0].parallel.tree = variant >= TREES && variant < GROUPS;
    if ((variant >= GROUPS && variant < VERSIONS) || (variant >= GROUPS_CLIP && variant < HOSTS) ||
        (variant >= HOSTS_CLIP && variant % 100 < 10))
        jobs.jobs[0].parallel.tensor = 2;
    jobs.jobs[0].parallel.sequence = wanted >= ROWS;
    if (variant >= BELOW) {
        jobs.jobs[0].parallel.offload = OFFLOAD_WEIGHTS;
        jobs.jobs[0].parallel.zero = variant >= BELOW_SHARES ? ZERO_WEIGHTS : ZERO_NOTHING;
        jobs.jobs[0].parallel.pipeline = 1;
        jobs.jobs[0].parallel.chunks = stages;
        jobs.jobs[0].parallel.tensor = 1;
        jobs.jobs[0].optimizer.clip = 0;
        if (variant < BELOW_SHARES) jobs.jobs[0].microbatches = jobs.jobs[0].parallel.data;
    }
    jobs.jobs[0].parallel.swap = variant >= SWAPS && variant < SLICES;
    if (variant >= SWAPS && variant < SLICES) jobs.jobs[0].microbatches = jobs.jobs[0].parallel.data;
    const struct parallel swapped = jobs.jobs[0].parallel;
    if (variant >= DELAYS)
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .data = 1 + variant % 100 / 10, .pipeline = stages, .prefetch = 1,
                                                  .chunks = 1, .schedule = PIPELINE_1F1B, .offload = OFFLOAD_STATES,
                                                  .zero = ZERO_STATES, .delayed = variant < STORES,
                                                  .flush = variant < STORES ? 2 : 0, .storage = variant >= STORES};
    else if (variant >= HALVES_SHARES && variant < SLICES_HELD_OUT)
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .data = 1 + variant % 100 / 10, .pipeline = stages, .prefetch = 1,
                                                  .chunks = 1, .schedule = PIPELINE_ZB_H1, .zero = ZERO_WEIGHTS};
    else if (variant >= SLICES)
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .data = 1 + variant % 100 / 10, .pipeline = stages, .prefetch = 1,
                                                  .chunks = 1, .schedule = PIPELINE_TERAPIPE, .slices = 3,
                                                  .slice_tokens = {6, 7, 3}};
    if (variant >= CODES && variant < TURNS) {
        jobs.jobs[0].evaluation = (struct job_evaluation){0};
        jobs.jobs[0].optimizer.clip = 0;
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .data = 1 + variant % 100 / 10, .pipeline = stages, .prefetch = 1,
                                                  .chunks = 1, .schedule = PIPELINE_1F1B};
        jobs.jobs[0].compression[COMPRESSION_BOUNDARIES] =
            (struct compression){.ratio = 2, .encode_bytes_per_s = 1e9, .decode_bytes_per_s = 2e9};
    }
    if (variant >= CODES && variant < CODES_SHARES)
        jobs.jobs[0].compression[COMPRESSION_GRADIENTS] =
            (struct compression){.ratio = 3.75, .encode_bytes_per_s = 3e9, .decode_bytes_per_s = 4e9};
    if (variant >= CODES_SHARES && variant < TURNS) {
        jobs.jobs[0].precision = PRECISION_BF16_WEIGHTS;
        jobs.jobs[0].gradients = PRECISION_BF16;
        jobs.jobs[0].parallel.zero = ZERO_GRADIENTS;
    }
    if (variant >= TURNS)
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .data = 1 + variant % 100 / 10, .pipeline = stages, .prefetch = 1,
                                                  .chunks = 1, .schedule = PIPELINE_2BW};
    if (variant >= TURNS) jobs.jobs[0].optimizer.clip = variant >= TURNS_CLIP ? 0.5 : 0;
    *out = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
    if (variant < SWAPS || variant >= SLICES) return;
    const struct chunk_memory middle = chunk_memory(&out->jobs.jobs[0], parallel_layers(&out->jobs.jobs[0], 1));
    test_hardware(&hardware, 4, plan_device_bytes(out, 0) - middle.activation_bytes, 1e9);
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    plan_release(out);
    *out = (struct plan){0};
    test_gpt_jobs(&jobs, 1, 6, 32, 97, MINIBATCHES);
    jobs.jobs[0].parallel = swapped;
    jobs.jobs[0].microbatches = swapped.data;
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
}

/* Adds up the bytes that a run copies on streams of a kind, of buffers of a kind. */
static uint64_t copied(const struct plan *plan, uint32_t stream, uint32_t kind)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_unit *unit = &plan->units[plan->tasks[plan->segments[s].first_task + i].unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
                const struct plan_op *op = &plan->ops[o];
                if (op->kind != OP_COPY || op->stream != stream) continue;
                if (plan->buffers[plan->accesses[op->first_access].buffer].kind == kind)
                    sum += op->bytes * plan->segments[s].repeat_count;
            }
        }
    return sum;
}

static void copies(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= 4; stages++) {
        struct plan plan;
        make_plan(&plan, stages);
        const struct job *job = &plan.jobs.jobs[0];
        uint64_t states = 0;
        for (uint32_t c = 0; c < parallel_chunks(&job->parallel); c++)
            states += chunk_memory(job, parallel_layers(job, c)).state_bytes;
        assert_int_equal(copied(&plan, STREAM_H2D, BUFFER_STATE), states);
        assert_int_equal(copied(&plan, STREAM_D2H, BUFFER_STATE), states);
        assert_int_equal(copied(&plan, STREAM_H2D, BUFFER_BATCH), 2 * MINIBATCHES * job_batch_bytes(job));
        assert_int_equal(copied(&plan, STREAM_D2H, BUFFER_LOSS), MINIBATCHES * sizeof(double));
        plan_release(&plan);
    }
}

/* The last chunk has a table of its own, with moments. */
static void tables(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= 4; stages++) {
        struct plan plan;
        make_plan(&plan, stages);
        const struct job *job = &plan.jobs.jobs[0];
        const uint32_t chunks = parallel_chunks(&job->parallel);
        const struct chunk_memory first = chunk_memory(job, parallel_layers(job, 0)),
                                  last = chunk_memory(job, parallel_layers(job, chunks - 1));
        const uint64_t table = job->network.vocabulary * job->network.width * sizeof(float);
        const struct parallel_layers layers = parallel_layers(job, chunks - 1);
        const uint64_t own = size_align(job_state(job, layers.first, layers.count).bytes, MEMORY_ALIGNMENT);
        const uint64_t parts = 1 + optimizer_moments(job->optimizer.kind);
        assert_int_equal(last.state_bytes - own, size_align(parts * table, MEMORY_ALIGNMENT));
        assert_int_equal(last.gradient_bytes,
                         size_align(memory_parameter_bytes(&job->network, layers.first, layers.count), MEMORY_ALIGNMENT) +
                             size_align(table, MEMORY_ALIGNMENT));
        assert_true(first.has_embedding && last.has_head);
        plan_release(&plan);
    }
}

/* The held-out data come to both ends once per held-out minibatch, and each of its losses leaves once. */
static void held_out(void **state)
{
    (void)state;
    const uint64_t evaluations = 2, minibatches = MINIBATCHES + evaluations * 2;
    for (uint32_t stages = 2; stages <= 4; stages++) {
        struct plan plan;
        make_plan(&plan, 100 + stages);
        assert_int_equal(copied(&plan, STREAM_H2D, BUFFER_BATCH), 2 * minibatches * job_batch_bytes(&plan.jobs.jobs[0]));
        assert_int_equal(copied(&plan, STREAM_D2H, BUFFER_LOSS), minibatches * sizeof(double));
        plan_release(&plan);
    }
}

/* --- broken plans ---------------------------------------------------------------------------- */

static struct plan_op *copy_of(struct plan *p, uint32_t pass, uint32_t chunk)
{
    return test_parallel_op(p, pass, chunk, OP_COPY);
}

static struct plan_access *access_of(struct plan *p, struct plan_op *op, uint32_t kind)
{
    for (uint32_t a = 0; a < op->access_count; a++)
        if (p->buffers[p->accesses[op->first_access + a].buffer].kind == kind) return &p->accesses[op->first_access + a];
    fail_msg("no access of kind %u", kind);
    return NULL;
}

static struct plan_buffer *buffer_of(struct plan *p, uint32_t kind, uint32_t shard, bool on_device)
{
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == kind && p->buffers[b].shard == shard && p->buffers[b].on_device == on_device)
            return &p->buffers[b];
    fail_msg("no buffer of kind %u", kind);
    return NULL;
}

static void data_late(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_BATCH, 0, 0), test_parallel_task(p, PLAN_FORWARD, 0, 0));
}
static void data_short(struct plan *p) { copy_of(p, PLAN_BATCH, 0)->bytes -= 4; }
static void labels_short(struct plan *p) { copy_of(p, PLAN_BATCH, 1)->bytes -= 4; }
static void data_elsewhere(struct plan *p)
{
    test_parallel_swap_places(test_parallel_task(p, PLAN_BATCH, 0, 0), test_parallel_task(p, PLAN_BATCH, 1, 0));
}
static void data_small(struct plan *p) { buffer_of(p, BUFFER_BATCH, PLAN_NONE, true)->bytes -= 4; }
static void data_unused(struct plan *p)
{
    struct plan_op *op = test_parallel_op(p, PLAN_FORWARD, 0, OP_COMPUTE);
    access_of(p, op, BUFFER_BATCH)->buffer = (uint32_t)(buffer_of(p, BUFFER_LOSS, PLAN_NONE, true) - p->buffers);
}
static void loss_short(struct plan *p) { copy_of(p, PLAN_UPDATE, 1)->bytes = 4; }
static void loss_read(struct plan *p)
{
    access_of(p, test_parallel_op(p, PLAN_BACKWARD, 1, OP_COMPUTE), BUFFER_LOSS)->flags = ACCESS_READ;
}
static void loss_elsewhere(struct plan *p) { copy_of(p, PLAN_UPDATE, 1)->stream = STREAM_H2D; }
static void state_short(struct plan *p) { copy_of(p, PLAN_LOAD, 1)->bytes -= 64; }
static void state_small(struct plan *p) { buffer_of(p, BUFFER_STATE, 1, false)->bytes -= 64; }
static void state_lost(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_STORE, 1, 0), test_parallel_task(p, PLAN_UPDATE, 1, 0));
}
static void workspace_small(struct plan *p) { buffer_of(p, BUFFER_WORKSPACE, 1, true)->bytes -= 64; }
static void gradient_small(struct plan *p) { buffer_of(p, BUFFER_GRADIENT, 1, true)->bytes -= 64; }
static void reduced_short(struct plan *p) { test_parallel_op(p, PLAN_REDUCE, 0, OP_COLLECTIVE)->bytes /= 2; }
static void not_reduced(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 1, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}

static void one_more(struct plan *p) { p->segments[p->segment_count - 2].repeat_count++; }
static void a_billion(struct plan *p) { p->segments[p->segment_count - 2].repeat_count = 1000000000; }
static void held_out_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_EVALUATE, 0, 0), test_parallel_task(p, PLAN_UPDATE, 0, 1));
}
static void held_out_short(struct plan *p) { copy_of(p, PLAN_EVALUATE, 0)->bytes -= 4; }
static void held_out_not_read(struct plan *p)
{
    test_parallel_op(p, PLAN_EVALUATE, 0, OP_COMPUTE)->pass = PLAN_EVALUATE;
}
static void held_out_out_of_turn(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_EVALUATE, 1, 0), test_parallel_task(p, PLAN_EVALUATE, 1, 1));
}
static void held_out_loss_lost(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++)
        for (uint32_t o = p->units[u].first_op; o < p->units[u].first_op + p->units[u].op_count; o++)
            if (p->units[u].pass == PLAN_EVALUATE && p->ops[o].stream == STREAM_D2H) p->ops[o].bytes = 4;
}
static void held_out_trains(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++)
        if (p->units[u].pass == PLAN_EVALUATE && p->units[u].shard == 0) p->units[u].pass = PLAN_FORWARD;
}
static void held_out_ends_late(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++)
        if (p->units[u].pass == PLAN_EVALUATE) p->units[u].ends_minibatch = false;
}

static struct plan_access *handover_of(struct plan *p, uint32_t pass)
{
    const struct plan_op *op = test_parallel_op(p, pass, 1, OP_COMPUTE);
    for (uint32_t a = op->first_access; a < op->first_access + op->access_count; a++) {
        const struct plan_buffer *b = &p->buffers[p->accesses[a].buffer];
        if (b->kind == BUFFER_WORKSPACE && b->variant > 0) return &p->accesses[a];
    }
    fail_msg("no handover");
    return NULL;
}
static void handover_small(struct plan *p) { p->buffers[handover_of(p, PLAN_BACKWARD_INPUT)->buffer].bytes -= 64; }
static void handover_read(struct plan *p) { handover_of(p, PLAN_BACKWARD_INPUT)->flags = ACCESS_READ; }
static void handover_kept(struct plan *p) { handover_of(p, PLAN_BACKWARD_WEIGHT)->flags = ACCESS_READ; }
static void handover_lost(struct plan *p)
{
    struct plan_access *a = handover_of(p, PLAN_BACKWARD_WEIGHT);
    a->buffer = (uint32_t)(buffer_of(p, BUFFER_LOSS, PLAN_NONE, true) - p->buffers);
}
static void handover_late(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_BACKWARD_INPUT, 1, 0),
                       test_parallel_task(p, PLAN_BACKWARD_WEIGHT, 1, 0));
}
static void head_left_out(struct plan *p)
{
    access_of(p, test_parallel_op(p, PLAN_BACKWARD_INPUT, 1, OP_COMPUTE), BUFFER_GRADIENT)->flags = ACCESS_READ;
}
static void data_written(struct plan *p)
{
    access_of(p, test_parallel_op(p, PLAN_BACKWARD_WEIGHT, 0, OP_COMPUTE), BUFFER_BATCH)->flags = ACCESS_READ | ACCESS_WRITE;
}
static void norm_late(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_NORM, 1, 0), test_parallel_task(p, PLAN_UPDATE, 0, 0));
}
static void norm_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_NORM, 0, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void norm_twice(struct plan *p)
{
    test_parallel_task(p, PLAN_NORM, 1, 0)->unit = test_parallel_task(p, PLAN_NORM, 0, 0)->unit;
}
static void norm_short(struct plan *p)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, PLAN_NORM, 0, 0)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (p->ops[o].kind == OP_COPY) p->ops[o].bytes -= 8;
}
static void norm_elsewhere(struct plan *p)
{
    copy_of(p, PLAN_UPDATE, 1)->bytes -= 8;
}
static void norms_unread(struct plan *p)
{
    access_of(p, test_parallel_op(p, PLAN_UPDATE, 1, OP_COMPUTE), BUFFER_NORMS)->flags = ACCESS_WRITE;
}
static void norms_small(struct plan *p) { buffer_of(p, BUFFER_NORMS, PLAN_NONE, true)->bytes -= 8; }

static struct plan_buffer *variant_of(struct plan *p, uint32_t kind, uint32_t variant)
{
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == kind && p->buffers[b].variant == variant && p->buffers[b].on_device) return &p->buffers[b];
    fail_msg("no buffer of kind %u and variant %u", kind, variant);
    return NULL;
}
static void version_small(struct plan *p) { buffer_of(p, BUFFER_PARAMETERS, 1, true)->bytes -= 64; }
static void version_from_nothing(struct plan *p)
{
    access_of(p, test_parallel_op(p, PLAN_LOAD, 1, OP_COMPUTE), BUFFER_STATE)->flags = ACCESS_WRITE;
}
static void version_not_made(struct plan *p)
{
    access_of(p, test_parallel_op(p, PLAN_LOAD, 1, OP_COMPUTE), BUFFER_PARAMETERS)->flags = ACCESS_READ | ACCESS_ACQUIRE;
}
static void state_in_a_pass(struct plan *p)
{
    access_of(p, test_parallel_op(p, PLAN_FORWARD, 1, OP_COMPUTE), BUFFER_PARAMETERS)->buffer =
        (uint32_t)(buffer_of(p, BUFFER_STATE, 1, true) - p->buffers);
}
static void data_of_another(struct plan *p)
{
    access_of(p, test_parallel_op(p, PLAN_BACKWARD, 0, OP_COMPUTE), BUFFER_BATCH)->buffer =
        (uint32_t)(variant_of(p, BUFFER_BATCH, 1) - p->buffers);
}
static void data_released(struct plan *p)
{
    access_of(p, test_parallel_op(p, PLAN_FORWARD, 0, OP_COMPUTE), BUFFER_BATCH)->flags |= ACCESS_RELEASE;
}
static void data_twice(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_BATCH, 0, 0), test_parallel_task(p, PLAN_BATCH, 0, 1));
}

/* Each replica brings its own half of a minibatch. */
static void replicas(void **state)
{
    (void)state;
    struct plan plan;
    make_plan(&plan, 12);
    const struct plan_buffer *on_host = buffer_of(&plan, BUFFER_BATCH, PLAN_NONE, false);
    const uint64_t half = job_batch_bytes(&plan.jobs.jobs[0]) / 2;
    assert_int_equal(buffer_of(&plan, BUFFER_BATCH, PLAN_NONE, true)->bytes, half);
    assert_int_equal(on_host->bytes * plan_buffer_ranks(&plan, on_host), 2 * half);
    assert_int_equal(copied(&plan, STREAM_H2D, BUFFER_BATCH), 2 * MINIBATCHES * half);
    plan_release(&plan);
}

static struct plan_buffer *levels_of(struct plan *p)
{
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == BUFFER_GRADIENT && p->buffers[b].variant == PLAN_GRADIENT_LEVELS) return &p->buffers[b];
    fail_msg("no partial sums");
    return NULL;
}
static void levels_small(struct plan *p) { levels_of(p)->bytes -= 64; }
static void levels_lost(struct plan *p) { levels_of(p)->variant = 5; }
static void losses_small(struct plan *p) { buffer_of(p, BUFFER_LOSS, PLAN_NONE, true)->bytes -= 8; }

/* Returns what the n-th unit over a slice of chunk 1 finds of the slices of its microbatch. */
static struct plan_access *context_of(struct plan *p, uint32_t pass, uint32_t slice, uint32_t n)
{
    for (uint32_t u = 0; u < p->unit_count; u++) {
        const struct plan_unit *unit = &p->units[u];
        if (unit->pass != pass || unit->shard != 1) continue;
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
            const struct plan_op *op = &p->ops[o];
            if (op->kind != OP_COMPUTE || op->slice != slice || n-- > 0) continue;
            for (uint32_t a = op->first_access; a < op->first_access + op->access_count; a++)
                if (p->buffers[p->accesses[a].buffer].kind == BUFFER_WORKSPACE && p->buffers[p->accesses[a].buffer].variant > 0)
                    return &p->accesses[a];
        }
    }
    fail_msg("no keys and values of slices");
    return NULL;
}
static void context_small(struct plan *p) { p->buffers[context_of(p, PLAN_FORWARD, 0, 0)->buffer].bytes -= 64; }
static void context_found(struct plan *p) { context_of(p, PLAN_FORWARD, 0, 0)->flags |= ACCESS_READ; }
static void context_only_read(struct plan *p) { context_of(p, PLAN_BACKWARD, 1, 0)->flags = ACCESS_READ; }
static void context_only_written(struct plan *p) { context_of(p, PLAN_FORWARD, 2, 0)->flags = ACCESS_WRITE; }
static void context_kept(struct plan *p) { context_of(p, PLAN_BACKWARD, 0, 0)->flags &= (uint8_t)~ACCESS_RELEASE; }
static void context_released(struct plan *p) { context_of(p, PLAN_BACKWARD, 1, 0)->flags |= ACCESS_RELEASE; }
static void context_of_another(struct plan *p)
{
    context_of(p, PLAN_FORWARD, 2, 1)->buffer = context_of(p, PLAN_FORWARD, 2, 0)->buffer;
}
static void gradients_of_another(struct plan *p)
{
    context_of(p, PLAN_BACKWARD, 1, 0)->buffer = context_of(p, PLAN_BACKWARD, 1, 1)->buffer;
}
static void slice_left_out(struct plan *p)
{
    struct plan_op *op = test_parallel_op(p, PLAN_FORWARD, 1, OP_COMPUTE);
    op->access_count = (uint16_t)(op->access_count - 2); /* the slices' keys and values, and the workspace */
}
static void held_out_slices_swapped(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_EVALUATE, 0, 1), test_parallel_task(p, PLAN_EVALUATE, 0, 2));
}
static void held_out_context_kept(struct plan *p) { context_of(p, PLAN_EVALUATE, 2, 0)->flags &= (uint8_t)~ACCESS_RELEASE; }
static void held_out_context_read(struct plan *p) { context_of(p, PLAN_EVALUATE, 1, 0)->flags = ACCESS_READ; }
static void held_out_context_of_training(struct plan *p)
{
    context_of(p, PLAN_EVALUATE, 1, 0)->buffer = context_of(p, PLAN_FORWARD, 2, 1)->buffer;
}
static void slices_swapped(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_FORWARD, 0, 1), test_parallel_task(p, PLAN_FORWARD, 0, 2));
}

/* What slices hand over has the keys and values of all tokens, and their gradients; other buffers fit the largest slice. */
static void slices_of_tokens(void **state)
{
    (void)state;
    struct plan plan;
    make_plan(&plan, SLICES + 2);
    const struct job *job = &plan.jobs.jobs[0];
    assert_true(parallel_is_carried_out(&job->parallel));
    for (uint32_t c = 0; c < 2; c++) {
        const struct parallel_layers layers = parallel_layers(job, c);
        const struct chunk_memory all = chunk_memory(job, layers);
        uint64_t activations = 0, workspace = 0;
        for (uint32_t i = 0; i < 3; i++) {
            const struct job slice = parallel_slice(job, i);
            const struct chunk_memory own = chunk_memory(&slice, layers);
            activations = own.activation_bytes > activations ? own.activation_bytes : activations;
            workspace = own.workspace_bytes > workspace ? own.workspace_bytes : workspace;
            assert_int_equal(own.handover_bytes, all.handover_bytes);
        }
        assert_int_equal(all.handover_bytes, 4 * 3 * job->microbatch * job->sequence * job->network.width * sizeof(float));
        assert_int_equal(all.activation_bytes, activations);
        assert_int_equal(all.workspace_bytes, workspace);
        assert_int_equal(buffer_of(&plan, BUFFER_ACTIVATIONS, c, true)->bytes, activations);
    }
    assert_int_equal(plan.buffers[context_of(&plan, PLAN_FORWARD, 0, 0)->buffer].bytes,
                     chunk_memory(job, parallel_layers(job, 1)).handover_bytes);
    plan_release(&plan);
}

/* Devices of a tensor group have equal slices, in equal buffers. */
static void slices(void **state)
{
    (void)state;
    struct plan plan;
    struct job room;
    make_plan(&plan, GROUPS + 2);
    const struct job *job = &plan.jobs.jobs[0], *share = parallel_share_in(job, &room);
    uint64_t states = 0;
    assert_true(parallel_is_carried_out(&job->parallel));
    assert_int_equal(share->network.heads * 2, job->network.heads);
    assert_int_equal(share->network.ff_width * 2, job->network.ff_width);
    for (uint32_t c = 0; c < 2; c++) {
        const struct parallel_layers layers = parallel_layers(job, c);
        const uint64_t bytes = chunk_memory(job, layers).state_bytes;
        const struct plan_buffer *on_host = buffer_of(&plan, BUFFER_STATE, c, false);
        assert_true(bytes < job_state(job, layers.first, layers.count).bytes);
        assert_int_equal(on_host->bytes, bytes);
        assert_int_equal(plan_buffer_ranks(&plan, on_host), 2);
        states += bytes;
    }
    assert_int_equal(copied(&plan, STREAM_H2D, BUFFER_STATE), states);
    plan_release(&plan);
}

/* A tensor group that cuts rows keeps and sends half of the rows, and gathers rows and leaves each device its own in place
 * of adding all up. Every norm's pass adds up the gradients of its weights. */
static void rows(void **state)
{
    (void)state;
    struct plan whole, cut;
    make_plan(&whole, GROUPS + 2);
    make_plan(&cut, ROWS + 2);
    const struct job *job = &cut.jobs.jobs[0];
    const uint64_t stream = job->microbatch * job->sequence * job->network.width * sizeof(float);
    assert_true(parallel_is_carried_out(&job->parallel));
    for (uint32_t c = 0; c < 2; c++) {
        const struct chunk_memory all = chunk_memory(&whole.jobs.jobs[0], parallel_layers(job, c));
        const struct chunk_memory own = chunk_memory(job, parallel_layers(job, c));
        const uint64_t norms = 2 * 3, own_stats = norms * job->microbatch * job->sequence * sizeof(float); /* of 3 blocks */
        assert_int_equal(own.state_bytes, all.state_bytes);
        if (c == 1) /* norm1, middle, norm2 of 3 blocks, 3 outputs, normf */
            assert_int_equal(all.activation_bytes - own.activation_bytes,
                             (3 * 3 + 3 + 1) * stream / 2 + own_stats + job->microbatch * job->sequence * sizeof(float));
        assert_int_equal(buffer_of(&cut, BUFFER_ACTIVATIONS, c, true)->bytes, own.activation_bytes);
        assert_int_equal(buffer_of(&cut, BUFFER_WORKSPACE, c, true)->bytes, own.workspace_bytes);
    }
    assert_int_equal(copied(&whole, STREAM_P2P, BUFFER_BOUNDARY), 2 * copied(&cut, STREAM_P2P, BUFFER_BOUNDARY));
    plan_release(&whole);
    plan_release(&cut);
}

static struct plan_op *exchange_of(struct plan *p, uint32_t pass) { return test_parallel_op(p, pass, 0, OP_COLLECTIVE); }
static void exchange_left_out(struct plan *p) { exchange_of(p, PLAN_FORWARD)->rounds--; }
static void norms_apart(struct plan *p) { exchange_of(p, PLAN_NORM)->rounds++; }
static void norms_of_replicas(struct plan *p) { exchange_of(p, PLAN_NORM)->axes = 1u << AXIS_DATA; }
static void shares_of_a_group(struct plan *p) { exchange_of(p, PLAN_NORM)->axes = 1u << AXIS_TENSOR; }
static void shares_of_the_ends(struct plan *p) { exchange_of(p, PLAN_NORM)->axes = 1u << AXIS_ENDS; }
static void shares_short(struct plan *p) { exchange_of(p, PLAN_NORM)->bytes -= 8; }
static void shares_twice(struct plan *p) { exchange_of(p, PLAN_NORM)->rounds++; }
static void shares_late(struct plan *p)
{
    struct plan_op *const sum = exchange_of(p, PLAN_NORM), *const copy = copy_of(p, PLAN_NORM, 0), kept = *sum;
    *sum = *copy;
    *copy = kept;
}
static void shares_left_out(struct plan *p)
{
    *exchange_of(p, PLAN_NORM) = *copy_of(p, PLAN_NORM, 0);
    p->units[test_parallel_task(p, PLAN_NORM, 0, 0)->unit].op_count--;
}
static void shares_not_read(struct plan *p)
{
    access_of(p, exchange_of(p, PLAN_NORM), BUFFER_NORMS)->flags = ACCESS_WRITE;
}
static void exchange_short(struct plan *p) { exchange_of(p, PLAN_BACKWARD)->bytes /= 2; }

/* Returns the exchange of a kind in a pass over the last chunk. */
static struct plan_op *exchange_of_kind(struct plan *p, uint32_t pass, enum collective_kind kind)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, pass, 1, 0)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (p->ops[o].kind == OP_COLLECTIVE && p->ops[o].collective == kind) return &p->ops[o];
    fail_msg("no such exchange");
    return NULL;
}
static void rows_not_gathered(struct plan *p) { exchange_of_kind(p, PLAN_FORWARD, COLLECTIVE_ALL_GATHER)->rounds--; }
static void rows_short(struct plan *p) { exchange_of_kind(p, PLAN_BACKWARD, COLLECTIVE_REDUCE_SCATTER)->bytes /= 2; }
static void rows_all_added(struct plan *p)
{
    exchange_of_kind(p, PLAN_BACKWARD, COLLECTIVE_REDUCE_SCATTER)->collective = COLLECTIVE_ALL_REDUCE;
}
static void norm_gradients_apart(struct plan *p) { exchange_of_kind(p, PLAN_BACKWARD, COLLECTIVE_ALL_REDUCE)->rounds--; }
static void rows_in_data_groups(struct plan *p)
{
    exchange_of_kind(p, PLAN_FORWARD, COLLECTIVE_REDUCE_SCATTER)->axes = 1u << AXIS_DATA;
}
static void exchange_aside(struct plan *p) { exchange_of(p, PLAN_FORWARD)->stream = STREAM_GROUP; }
static void exchange_of_replicas(struct plan *p) { exchange_of(p, PLAN_BACKWARD)->axes = 1u << AXIS_DATA; }
static void member_twice(struct plan *p) { p->gang_devices[p->gangs[0].first + 1] = p->gang_devices[p->gangs[0].first]; }
static void member_of_another(struct plan *p)
{
    const uint32_t first = p->gangs[0].first + 1, second = p->gangs[1].first + 1, device = p->gang_devices[first];
    p->gang_devices[first] = p->gang_devices[second];
    p->gang_devices[second] = device;
}

/* Returns an operation of a unit of chunk `chunk`, on a stream. */
static struct plan_op *op_on(struct plan *p, uint32_t pass, uint32_t chunk, uint32_t stream)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, pass, chunk, 0)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (p->ops[o].stream == stream) return &p->ops[o];
    fail_msg("nothing on stream %u", stream);
    return NULL;
}
static void step_on_device(struct plan *p) { op_on(p, PLAN_UPDATE, 0, STREAM_CPU)->stream = STREAM_COMPUTE; }
static void step_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_REDUCE, 1, 0));
}
static void step_before_join(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void step_reads_state(struct plan *p)
{
    access_of(p, op_on(p, PLAN_UPDATE, 1, STREAM_CPU), BUFFER_STATE)->flags = ACCESS_READ;
}
static void step_reads_gradient(struct plan *p)
{
    access_of(p, op_on(p, PLAN_UPDATE, 1, STREAM_CPU), BUFFER_GRADIENT)->flags = ACCESS_READ;
}
static void step_without_norms(struct plan *p) { op_on(p, PLAN_UPDATE, 1, STREAM_CPU)->access_count--; }
static void step_writes_norms(struct plan *p)
{
    access_of(p, op_on(p, PLAN_UPDATE, 1, STREAM_CPU), BUFFER_NORMS)->flags = ACCESS_READ | ACCESS_WRITE;
}
static void step_before_norm(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_NORM, 0, 0));
}
static void step_by_norms_of_device(struct plan *p)
{
    struct plan_access *const norms = access_of(p, op_on(p, PLAN_UPDATE, 1, STREAM_CPU), BUFFER_NORMS);
    norms->buffer = (uint32_t)(buffer_of(p, BUFFER_NORMS, PLAN_NONE, true) - p->buffers);
}
static void step_with_the_loss(struct plan *p)
{
    struct plan_op *const down = op_on(p, PLAN_UPDATE, 1, STREAM_D2H), *const loss = copy_of(p, PLAN_NORM, 1);
    down->first_access = loss->first_access;
    down->bytes = loss->bytes;
}
static struct plan_op *raise_of(struct plan *p, uint32_t chunk, bool table)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, PLAN_GATHER, chunk, 0)->unit];
    return &p->ops[unit->first_op + table];
}
static void raise_short(struct plan *p) { raise_of(p, 0, false)->bytes -= 64; }
static void raise_of_another(struct plan *p)
{
    p->accesses[raise_of(p, 0, false)->first_access].buffer = p->accesses[raise_of(p, 1, false)->first_access].buffer;
}
static void table_short(struct plan *p) { raise_of(p, 1, true)->bytes -= 64; }
static void table_elsewhere(struct plan *p) { p->accesses[raise_of(p, 1, true)->first_access + 1].offset_bytes = 0; }
static void table_of_itself(struct plan *p)
{
    p->accesses[raise_of(p, 1, true)->first_access].buffer = p->accesses[raise_of(p, 1, false)->first_access].buffer;
}
static void table_left_out(struct plan *p)
{
    struct plan_unit *const unit = &p->units[test_parallel_task(p, PLAN_GATHER, 1, 0)->unit];
    struct plan_op *const op = &p->ops[unit->first_op + 1];
    for (uint32_t o = 1; o + 1 < unit->op_count; o++) op[o - 1] = op[o];
    unit->op_count--;
}
static void shares_gathered_short(struct plan *p) { op_on(p, PLAN_GATHER, 1, STREAM_DATA)->bytes -= 64; }
static void table_gathered_elsewhere(struct plan *p)
{
    p->accesses[(op_on(p, PLAN_GATHER, 1, STREAM_DATA) + 1)->first_access].offset_bytes -= 64;
}
static struct plan_op *swap_of(struct plan *p, uint32_t pass, uint32_t at)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, pass, 0, at)->unit];
    struct plan_op *const op = &p->ops[unit->first_op + unit->op_count - 1];
    if (op->kind != OP_COPY) fail_msg("nothing is swapped");
    return op;
}
static struct plan_access *second_weights(struct plan *p)
{
    return access_of(p, test_parallel_op(p, PLAN_BACKWARD_WEIGHT, 0, OP_COMPUTE), BUFFER_PARAMETERS);
}
static void second_unit_of_shares(struct plan *p)
{
    second_weights(p)->buffer = (uint32_t)(buffer_of(p, BUFFER_STATE, 0, true) - p->buffers);
}
static void second_unit_writes(struct plan *p) { second_weights(p)->flags |= ACCESS_WRITE; }
static void second_unit_keeps(struct plan *p) { second_weights(p)->flags &= (uint8_t)~ACCESS_RELEASE; }
static void second_unit_of_head(struct plan *p)
{
    struct plan_op *const op = test_parallel_op(p, PLAN_BACKWARD_WEIGHT, 1, OP_COMPUTE);
    access_of(p, op, BUFFER_WORKSPACE)->buffer = (uint32_t)(buffer_of(p, BUFFER_PARAMETERS, 1, true) - p->buffers);
}
static struct plan_access *sum_of(struct plan *p, uint32_t pass, uint32_t n)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, pass, 1, n)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        for (uint32_t a = 0; p->ops[o].kind == OP_COMPUTE && a < p->ops[o].access_count; a++)
            if (p->buffers[p->accesses[p->ops[o].first_access + a].buffer].kind == BUFFER_GRADIENT)
                return &p->accesses[p->ops[o].first_access + a];
    fail_msg("no sum");
    return NULL;
}
static void loss_of_sums_short(struct plan *p)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, PLAN_BACKWARD, 1, 3)->unit];
    p->ops[unit->first_op + unit->op_count - 1].bytes = 4;
}
static void sum_not_made(struct plan *p) { sum_of(p, PLAN_BACKWARD, 0)->flags = ACCESS_READ | ACCESS_WRITE; }
static void sum_made_again(struct plan *p) { sum_of(p, PLAN_BACKWARD, 1)->flags = ACCESS_WRITE | ACCESS_ACQUIRE; }
static void sum_of_another(struct plan *p) { sum_of(p, PLAN_UPDATE, 0)->buffer = sum_of(p, PLAN_UPDATE, 1)->buffer; }
static void sum_kept(struct plan *p) { sum_of(p, PLAN_UPDATE, 0)->flags &= (uint8_t)~ACCESS_RELEASE; }
static void sum_of_a_turn_more(struct plan *p)
{
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].variant == PLAN_GRADIENT_TURNS + 1) p->buffers[b].variant++;
}
static void update_before_join(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void norm_before_join(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_NORM, 1, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void updates_swapped(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_NORM, 0, 0));
}
static void swap_short(struct plan *p) { swap_of(p, PLAN_FORWARD, 0)->bytes -= 64; }
static void swap_in_short(struct plan *p) { swap_of(p, PLAN_GATHER, 1)->bytes -= 64; }
static void swap_in_of_another(struct plan *p)
{
    p->accesses[swap_of(p, PLAN_GATHER, 1)->first_access].buffer = (uint32_t)(buffer_of(p, BUFFER_GRADIENT, 1, false) - p->buffers);
}
static void swap_in_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_GATHER, 0, 1), test_parallel_task(p, PLAN_BACKWARD, 3, 0));
}
static void drained_short(struct plan *p) { op_on(p, PLAN_REDUCE, 1, STREAM_D2H)->bytes -= 64; }
static void drained_to_another(struct plan *p)
{
    p->accesses[op_on(p, PLAN_REDUCE, 1, STREAM_D2H)->first_access + 1].buffer =
        p->accesses[op_on(p, PLAN_REDUCE, 0, STREAM_D2H)->first_access + 1].buffer;
}
static void hosts_sum_short(struct plan *p) { op_on(p, PLAN_UPDATE, 1, STREAM_DATA)->bytes -= 64; }
static void sum_before_code(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++) {
        if (p->units[u].pass != PLAN_REDUCE || p->units[u].shard != 1) continue;
        struct plan_op *const encodes = &p->ops[p->units[u].first_op], kept = encodes[0];
        assert_int_equal(encodes[0].kind, OP_COMPUTE);
        encodes[0] = encodes[1];
        encodes[1] = kept;
        return;
    }
    fail_msg("no reduction");
}
static void code_left_out(struct plan *p)
{
    test_parallel_op(p, PLAN_REDUCE, 1, OP_COMPUTE)->stream = STREAM_DATA;
}
static void code_other_work(struct plan *p)
{
    struct plan_op *const encodes = test_parallel_op(p, PLAN_REDUCE, 1, OP_COMPUTE);
    encodes->work = test_parallel_op(p, PLAN_FORWARD, 1, OP_COMPUTE)->work;
}
static void code_only_read(struct plan *p)
{
    p->accesses[test_parallel_op(p, PLAN_REDUCE, 1, OP_COMPUTE)->first_access].flags = ACCESS_READ;
}
static void sent_plain(struct plan *p) { test_parallel_op(p, PLAN_REDUCE, 1, OP_COLLECTIVE)->bytes *= 2; }
static void fetched_short(struct plan *p) { op_on(p, PLAN_FORWARD, 1, STREAM_P2P)->bytes -= 2; }
static void boundary_code_small(struct plan *p) { buffer_of(p, BUFFER_BOUNDARY, 1, true)->bytes -= 2; }

/* Boundaries are sent and stored encoded, and passes have room for plain ones; gradients are exchanged encoded. */
static void codes(void **state)
{
    (void)state;
    struct plan plan, plain;
    make_plan(&plan, CODES + 12);
    make_plan(&plain, 12);
    const struct job *job = &plan.jobs.jobs[0];
    const uint64_t boundary = job->microbatch * job->sequence * job->network.width * sizeof(float);
    assert_true(parallel_is_carried_out(&job->parallel));
    for (uint32_t c = 0; c < 2; c++) {
        const struct chunk_memory own = chunk_memory(job, parallel_layers(job, c));
        const struct chunk_memory before = chunk_memory(&plain.jobs.jobs[0], parallel_layers(job, c));
        assert_int_equal(own.workspace_bytes, before.workspace_bytes + (c == 0 ? 1 : 2) * boundary);
        assert_int_equal(own.gradient_bytes, before.gradient_bytes);
        const uint64_t numbers = own.gradient_bytes / sizeof(float);
        assert_int_equal(test_parallel_op(&plan, PLAN_REDUCE, c, OP_COLLECTIVE)->bytes, numbers + (numbers + 14) / 15);
    }
    assert_int_equal(buffer_of(&plan, BUFFER_BOUNDARY, 1, true)->bytes, boundary / 2);
    assert_int_equal(buffer_of(&plan, BUFFER_BOUNDARY_GRADIENT, 1, true)->bytes, boundary / 2);
    assert_int_equal(op_on(&plan, PLAN_FORWARD, 1, STREAM_P2P)->bytes, boundary / 2);
    plan_release(&plan);
    plan_release(&plain);
}

static void hosts_sum_late(struct plan *p)
{
    struct plan_op *const sum = op_on(p, PLAN_UPDATE, 1, STREAM_DATA), kept = *sum;
    *sum = *(sum + 1);
    *(sum + 1) = kept;
}
static void step_before_down(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_REDUCE, 1, 0));
}
static void down_short(struct plan *p) { op_on(p, PLAN_UPDATE, 0, STREAM_D2H)->bytes -= 64; }
static void raised_short(struct plan *p) { op_on(p, PLAN_REFRESH, 1, STREAM_H2D)->bytes -= 64; }
static void gathered_short(struct plan *p) { op_on(p, PLAN_REFRESH, 1, STREAM_DATA)->bytes -= 64; }
static void not_reset(struct plan *p) { op_on(p, PLAN_REFRESH, 1, STREAM_COMPUTE)->pass = PLAN_UPDATE; }
static void refresh_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 0), test_parallel_task(p, PLAN_UPDATE, 1, 0));
}
static void refresh_not_last(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++)
        if (p->units[u].pass == PLAN_REFRESH) p->units[u].ends_minibatch = false;
}
/* The first refresh of the second minibatch begins a sum; the next one brings weights up. */
static void sum_begins_late(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 0), test_parallel_task(p, PLAN_BACKWARD, 1, 2));
}
static void sum_begins_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 0), test_parallel_task(p, PLAN_UPDATE, 1, 0));
}
static void delayed_raised_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 1), test_parallel_task(p, PLAN_REFRESH, 1, 0));
}
static void delayed_raised_late(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 1), test_parallel_task(p, PLAN_UPDATE, 1, 1));
}
static void delayed_raised_short(struct plan *p)
{
    const struct plan_unit *const unit = &p->units[test_parallel_task(p, PLAN_REFRESH, 1, 1)->unit];
    p->ops[unit->first_op].bytes -= 64;
}
static void stored_read_short(struct plan *p) { op_on(p, PLAN_UPDATE, 1, STREAM_READ)->bytes -= 64; }
static void stored_written_short(struct plan *p) { op_on(p, PLAN_UPDATE, 1, STREAM_WRITE)->bytes -= 64; }
static void stored_read_twice(struct plan *p) { op_on(p, PLAN_UPDATE, 1, STREAM_WRITE)->stream = STREAM_READ; }
static void stored_read_late(struct plan *p)
{
    struct plan_op *const read = op_on(p, PLAN_UPDATE, 1, STREAM_READ), kept = *read;
    *read = *(read + 1);
    *(read + 1) = kept;
}
static void stored_not_written(struct plan *p)
{
    struct plan_op *const write = op_on(p, PLAN_UPDATE, 1, STREAM_WRITE);
    *write = *(write + 1); /* the loss */
    p->units[test_parallel_task(p, PLAN_UPDATE, 1, 0)->unit].op_count--;
}
static void stored_raised_of_another(struct plan *p)
{
    p->accesses[op_on(p, PLAN_REFRESH, 1, STREAM_READ)->first_access].buffer =
        p->accesses[op_on(p, PLAN_REFRESH, 0, STREAM_READ)->first_access].buffer;
}
static void stored_raised_short(struct plan *p) { op_on(p, PLAN_REFRESH, 1, STREAM_READ)->bytes -= 64; }
static void stored_small(struct plan *p) { buffer_of(p, BUFFER_STORED, 1, false)->bytes -= 64; }

static void flush_forgotten(struct plan *p) { p->jobs.jobs[0].parallel.flush = 0; }
static void flush_elsewhere(struct plan *p) { p->jobs.jobs[0].parallel.flush = 1; }
static void delay_unsaid(struct plan *p) { p->jobs.jobs[0].parallel.delayed = false; }
static void flushed_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 2), test_parallel_task(p, PLAN_UPDATE, 1, 1));
}

static void weights_small(struct plan *p) { buffer_of(p, BUFFER_STATE, 0, true)->bytes -= 64; }
static void down_small(struct plan *p) { buffer_of(p, BUFFER_GRADIENT, 0, false)->bytes -= 64; }

/* The host has whole states, devices only weights; a rank's weights go up once for each update. */
static void hosts(void **state)
{
    (void)state;
    struct plan plan;
    uint64_t loaded = 0, raised = 0, down = 0;
    make_plan(&plan, HOSTS + 12);
    const struct job *job = &plan.jobs.jobs[0];
    assert_true(parallel_is_carried_out(&job->parallel));
    for (uint32_t c = 0; c < 2; c++) {
        const struct chunk_memory memory = chunk_memory(job, parallel_layers(job, c));
        assert_int_equal(buffer_of(&plan, BUFFER_STATE, c, false)->bytes, memory.state_bytes);
        assert_int_equal(buffer_of(&plan, BUFFER_STATE, c, true)->bytes, memory.device_state_bytes);
        assert_true(memory.raised_bytes < memory.device_state_bytes && memory.device_state_bytes < memory.state_bytes);
        loaded += memory.device_state_bytes;
        raised += memory.raised_bytes;
        down += memory.gradient_bytes;
    }
    assert_int_equal(copied(&plan, STREAM_H2D, BUFFER_STATE), loaded + MINIBATCHES * raised);
    assert_int_equal(copied(&plan, STREAM_D2H, BUFFER_STATE), 0);
    assert_int_equal(copied(&plan, STREAM_D2H, BUFFER_GRADIENT), MINIBATCHES * down);
    plan_release(&plan);
}

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {data_late, 2, "reads unwritten bytes of the batch"},
        {labels_short, 2, "work: copies 540 bytes of the batch (expected 544 of the batch)"},
        {data_short, 2, "work: copies 540 bytes of the batch (expected 544 of the batch)"},
        {data_elsewhere, 2, "is not on the devices of stage 0"},
        {data_small, 2, "the batch of job-0 has 540 bytes (expected 544)"},
        {data_unused, 2, "form: has no use for the loss of job-0"},
        {loss_short, 2, "work: copies 4 bytes of the loss (expected 8 of the loss)"},
        {loss_read, 2, "form: only reads the loss of job-0"},
        {loss_elsewhere, 2, "form: a copy on the h2d stream"},
        {state_short, 2, "of the state (expected"},
        {state_small, 2, "state of job-0 shard 1 on the host has"},
        {state_lost, 2, "job-0 shard 1"},
        {workspace_small, 2, "memory: the workspace of job-0 shard 1"},
        {gradient_small, 2, "memory: the gradient of job-0 shard 1"},
        {reduced_short, 12, "0 times all-reduce of"},
        {not_reduced, 12, "(expected reduced gradient of job-0 shard 0, microbatch 2)"},
        {data_late, 12, "reads unwritten bytes of the batch"},
        {loss_elsewhere, 12, "form: a copy on the h2d stream"},
        {levels_small, TREES + 2, "memory: the gradient of job-0 shard"},
        {levels_lost, TREES + 12, "job-0 shard 0"},
        {losses_small, TREES + 2, "memory: the loss of job-0 has 16 bytes (expected 24)"},
        {exchange_left_out, GROUPS + 2, "times all-reduce of"},
        {exchange_short, GROUPS + 2, "times all-reduce of"},
        {exchange_aside, GROUPS + 2, "form: a collective of a pass on the group stream"},
        {exchange_of_replicas, GROUPS + 2, "job-0"},
        {member_twice, GROUPS + 2, "gang"},
        {member_of_another, GROUPS + 2, "stage 0"},
        {state_short, GROUPS + 2, "of the state (expected"},
        {state_small, GROUPS + 2, "state of job-0 shard 1 on the host has"},
        {workspace_small, GROUPS + 2, "memory: the workspace of job-0 shard 1"},
        {norm_late, CLIPS + 2, "training"},
        {norm_early, CLIPS + 2, "(expected joined gradient of job-0 shard 0, microbatch 4)"},
        {norm_twice, CLIPS + 2, "is not on the devices of stage 0"},
        {norm_short, CLIPS + 2, "bytes of the norms at 0 (expected"},
        {norm_elsewhere, CLIPS + 2, "bytes of the norms at 0 (expected"},
        {norms_unread, CLIPS + 2, "form: writes the norms of job-0"},
        {rows_not_gathered, ROWS + 2, "times all-gather of"},
        {rows_short, ROWS + 2, "times reduce-scatter of"},
        {rows_all_added, ROWS + 2, "0 times reduce-scatter of"},
        {norm_gradients_apart, ROWS + 2, "times all-reduce of"},
        {rows_in_data_groups, ROWS + 2, "job-0"},
        {workspace_small, ROWS + 2, "memory: the workspace of job-0 shard 1"},
        {norms_apart, GROUPS_CLIP + 2, "times all-reduce of"},
        {norms_of_replicas, GROUPS_CLIP + 2, "job-0"},
        {shares_left_out, SHARES_CLIP + 12, "0 times all-reduce"},
        {shares_of_a_group, SHARES_CLIP + 12, "form: a collective of a pass on the data stream"},
        {shares_of_the_ends, SHARES_CLIP + 12, "form: a collective over the ends on 1 buffers, in a norm"},
        {shares_short, SHARES_CLIP + 12, "0 times all-reduce of"},
        {shares_twice, SHARES_CLIP + 12, "2 times all-reduce of"},
        {shares_late, SHARES_CLIP + 12, "finds norms of shares of job-0, minibatch 0 (expected norms of job-0"},
        {shares_not_read, SHARES_CLIP + 12, "form: a collective on the norms of job-0"},
        {norms_small, CLIPS + 12, "memory: the norms of job-0 has 600 bytes (expected 608)"},
        {step_on_device, HOSTS + 12, "form: a computation on the compute stream (expected cpu: its states are offloaded)"},
        {step_early, HOSTS + 12, "job-0 shard 1"},
        {step_before_join, HOSTS + 12, "(expected joined gradient of job-0 shard 1, microbatch 2)"},
        {step_reads_state, HOSTS + 12, "form: does not change the state of job-0 shard 1"},
        {step_reads_gradient, HOSTS + 12, "form: does not change the gradient of job-0 shard 1"},
        {down_short, HOSTS + 12, "bytes of the gradient (expected"},
        {raised_short, HOSTS + 12, "bytes of the state (expected"},
        {gathered_short, HOSTS + 12, "0 times all-gather of"},
        {not_reset, HOSTS + 12, "form: a computation on the compute stream"},
        {refresh_early, HOSTS + 12, "job-0 shard 1"},
        {refresh_not_last, HOSTS + 12, "does not end the minibatch"},
        {weights_small, HOSTS + 12, "of the state of job-0 shard 0 (it has"},
        {down_small, HOSTS + 12, "job-0 shard 0"},
        {step_without_norms, HOSTS_CLIP + 12, "form: lacks the norms"},
        {step_writes_norms, HOSTS_CLIP + 2, "form: has no use for the norms of job-0"},
        {step_before_norm, HOSTS_CLIP + 2, "job-0"},
        {step_by_norms_of_device, HOSTS_CLIP + 12, "form: has no use for the norms of job-0"},
        {step_with_the_loss, HOSTS_CLIP + 12, "copies gradients 0 times and losses 1 times (expected 1 and 0)"},
        {norms_small, HOSTS_CLIP + 12, "memory: the norms of job-0 has 600 bytes (expected 608)"},
        {step_on_device, HOSTS_CLIP + 2, "form: a computation on the compute stream (expected cpu: its states are offloaded)"},
        {weights_small, HOSTS_CLIP + 2, "of the state of job-0 shard 0 (it has"},
        {swap_short, SWAPS + 4, "bytes of the activations (expected"},
        {swap_in_short, SWAPS + 4, "bytes of the activations (expected"},
        {swap_in_of_another, SWAPS + 4, "of the gradient of job-0 shard 1 (it has"},
        {swap_in_early, SWAPS + 4, "job-0"},
        {raise_short, BELOW + 12, "bytes of the state to 0 (expected"},
        {raise_of_another, BELOW + 12, "form: copies the state of job-0 shard 1 to the parameters of job-0 shard 0"},
        {table_short, BELOW + 12, "bytes of the state to"},
        {table_elsewhere, BELOW + 12, "bytes of the state to 0 (expected"},
        {table_of_itself, BELOW + 12, "bytes of the state to"},
        {table_left_out, BELOW_SHARES + 12, "copies weights 1 times and a table 0 times (expected 1 and 1)"},
        {shares_gathered_short, BELOW_SHARES + 12, "0 times all-gather of"},
        {table_gathered_elsewhere, BELOW_SHARES + 12, "form: a collective on the parameters of job-0 shard 1"},
        {table_short, BELOW_SHARES + 12, "bytes of the state to"},
        {drained_short, BELOW + 12, "bytes of the gradient (expected one copy of"},
        {drained_to_another, BELOW + 12, "bytes of the gradient (expected one copy of"},
        {hosts_sum_short, BELOW + 12, "0 times all-reduce of"},
        {hosts_sum_late, BELOW + 12, "job-0 shard 1"},
        {step_before_down, BELOW + 12, "job-0 shard 1"},
        {step_reads_state, BELOW + 12, "form: does not change the state of job-0 shard 1"},
        {down_small, BELOW + 12, "job-0 shard 0"},
        {state_small, BELOW_SHARES + 12, "job-0 shard 1"},
        {down_short, BELOW_SHARES + 12, "bytes of the gradient (expected"},
        {not_reset, BELOW_SHARES + 12, "form: a computation on the compute stream"},
        {refresh_not_last, BELOW_SHARES + 12, "does not end the minibatch"},
        {state_small, HOSTS + 2, "state of job-0 shard 1 on the host has"},
        {state_short, HOSTS + 2, "of the state (expected"},
        {one_more, 2, "job-0 shard 0 has more than the 12 forward and backward passes and 3 updates of its minibatches"},
        {a_billion, 2, "job-0 shard 0 has more than the 12 forward and backward passes and 3 updates of its minibatches"},
        {one_more, 102, "job-0"},
        {held_out_early, 102, "training: no evaluation of minibatch"},
        {held_out_short, 102, "copies 540 bytes of the batch in an evaluation"},
        {held_out_not_read, 102, "form: a computation on the host stream"},
        {held_out_out_of_turn, 103, "job-0 shard 1"},
        {held_out_loss_lost, 112, "copies 4 bytes of the loss in an evaluation"},
        {held_out_trains, 102, "form: a copy on the h2d stream"},
        {held_out_ends_late, 112, "does not end the minibatch"},
        {handover_small, HALVES + 2, "memory: the workspace of job-0 shard 1 variant 1"},
        {handover_read, HALVES + 2, "form: only reads the workspace of job-0 shard 1 variant 1"},
        {handover_kept, HALVES + 2, "job-0 shard 1"},
        {handover_lost, HALVES + 2, "form: has no use for the loss of job-0"},
        {handover_late, HALVES + 2, "job-0 shard 1"},
        {head_left_out, HALVES + 2, "form: only reads the gradient of job-0 shard 1"},
        {data_written, HALVES + 2, "form: writes the batch of job-0"},
        {loss_elsewhere, HALVES + 12, "form: a copy on the h2d stream"},
        {version_small, VERSIONS + 2, "memory: the parameters of job-0 shard 1"},
        {version_from_nothing, VERSIONS + 2, "form: writes the state of job-0 shard 1"},
        {version_not_made, VERSIONS + 2, "job-0 shard 1"},
        {state_in_a_pass, VERSIONS + 2, "form: has no use for the state of job-0 shard 1"},
        {data_of_another, VERSIONS + 2, "job-0 shard 0"},
        {data_released, VERSIONS + 2, "job-0 shard 0"},
        {data_twice, VERSIONS + 2, "job-0 shard 0"},
        {data_late, VERSIONS + 2, "batch"},
        {loss_short, VERSIONS + 12, "work: copies 4 bytes of the loss (expected 8 of the loss)"},
        {reduced_short, VERSIONS + 12, "0 times all-reduce of"},
        {context_small, SLICES + 2, "memory: the workspace of job-0 shard 1"},
        {context_found, SLICES + 2, "form: reads the workspace of job-0 shard 1 variant 1, which it acquires"},
        {context_only_read, SLICES + 2, "form: only reads the workspace of job-0 shard 1"},
        {context_only_written, SLICES + 2, "form: writes the workspace of job-0 shard 1"},
        {context_kept, SLICES + 2, "lifetimes: acquires the workspace of job-0 shard 1 variant 1, which is live"},
        {context_released, SLICES + 12, "lifetimes: accesses the workspace of job-0 shard 1 variant 1, which is not live"},
        {context_of_another, SLICES + 2, "finds handover of job-0 shard 1, microbatch 3 (expected handover of job-0 shard 1, microbatch 5)"},
        {gradients_of_another, SLICES + 2, "finds handover of job-0 shard 1, microbatch 6 (expected handover of job-0 shard 1, microbatch 2)"},
        {slice_left_out, SLICES + 2, "form: lacks the workspace"},
        {slices_swapped, SLICES + 2, "training: passes over slice 2 (expected slice 1)"},
        {loss_short, SLICES + 2, "work: copies 4 bytes of the loss (expected 8 of the loss)"},
        {reduced_short, SLICES + 12, "0 times all-reduce of"},
        {data_late, SLICES + 2, "reads unwritten bytes of the batch"},
        {second_unit_of_shares, HALVES_SHARES + 12, "form: has no use for the state of job-0 shard 0"},
        {second_unit_writes, HALVES_SHARES + 12, "form: writes the parameters of job-0 shard 0"},
        {second_unit_keeps, HALVES_SHARES + 12, "lifetimes: acquires the parameters of job-0 shard 0"},
        {second_unit_of_head, HALVES_SHARES + 12, "form: has no use for the parameters of job-0 shard 1"},
        {shares_gathered_short, HALVES_SHARES + 12, "0 times all-gather of"},
        {held_out_slices_swapped, SLICES_HELD_OUT + 2, "training: passes over slice 2 (expected slice 1)"},
        {held_out_context_kept, SLICES_HELD_OUT + 2, "lifetimes: acquires the workspace of job-0 shard 1 variant 1, which is live"},
        {held_out_context_read, SLICES_HELD_OUT + 2, "form: only reads the workspace of job-0 shard 1"},
        {held_out_context_of_training, SLICES_HELD_OUT + 2, "lifetimes: accesses the workspace of job-0 shard 1"},
        {held_out_loss_lost, SLICES_HELD_OUT + 2, "copies 4 bytes of the loss in an evaluation"},
        {held_out_ends_late, SLICES_HELD_OUT + 2, "does not end the minibatch"},
        {stored_read_short, STORES + 12, "bytes of the stored_state of shard 1 (expected"},
        {stored_written_short, STORES + 12, "bytes of the staged_state of shard 1 (expected"},
        {stored_read_twice, STORES + 12, "form: a copy on the read stream of something else than a state"},
        {stored_read_late, STORES + 12, "staged state of job-0 shard 1"},
        {stored_not_written, STORES + 12, "the staged state of job-0 shard 1 variant 1 is live at its end"},
        {stored_raised_of_another, STORES + 12, "form: a copy on the read stream of something else than a state"},
        {stored_raised_short, STORES + 12, "bytes of the stored_state of shard 1 (expected"},
        {stored_small, STORES + 12, "stored state of job-0 shard 1 on storage has"},
        {sum_begins_late, DELAYS + 12, "finds joined gradient of job-0 shard 1, microbatch 2 (expected gradient of job-0 shard 1"},
        {sum_begins_early, DELAYS + 12, "job-0 shard 1"},
        {delayed_raised_early, DELAYS + 12, "finds state of job-0 shard 1, version 1 (expected state of job-0 shard 1, version 0)"},
        {delayed_raised_late, DELAYS + 12, "job-0 shard 1"},
        {delayed_raised_short, DELAYS + 12, "bytes of the state (expected"},
        {flush_forgotten, DELAYS + 12, "job-0"},
        {flush_elsewhere, DELAYS + 12, "job-0"},
        {flushed_early, DELAYS + 12, "job-0 shard 1"},
        {delay_unsaid, DELAYS + 12, "job-0"},
        {refresh_not_last, DELAYS + 12, "does not end the minibatch"},
        {step_on_device, DELAYS + 12, "form: a computation on the compute stream (expected cpu: its states are offloaded)"},
        {sum_before_code, CODES + 12, "(expected encoded gradient of job-0 shard 1"},
        {sum_before_code, CODES_SHARES + 12, "(expected encoded gradient of job-0 shard 1"},
        {code_left_out, CODES + 12, "form: "},
        {code_other_work, CODES + 12, "work: has "},
        {code_other_work, CODES_SHARES + 12, "work: has "},
        {code_only_read, CODES + 12, "form: only reads the gradient of job-0 shard 1"},
        {code_only_read, CODES_SHARES + 12, "form: only reads the gradient of job-0 shard 1"},
        {sent_plain, CODES + 12, "0 times all-reduce of"},
        {sent_plain, CODES_SHARES + 12, "0 times reduce-scatter of"},
        {fetched_short, CODES + 12, "bytes of the boundary (expected"},
        {boundary_code_small, CODES + 12, "memory: the boundary of job-0 shard 1"},
        {workspace_small, CODES + 12, "memory: the workspace of job-0 shard 1"},
        {loss_of_sums_short, TURNS + 2, "work: copies 4 bytes of the loss (expected 8 of the loss)"},
        {sum_not_made, TURNS + 2, "form: acquires 2 buffers, not 3"},
        {sum_made_again, TURNS + 2, "form: acquires 3 buffers, not 2"},
        {sum_of_another, TURNS + 2, "finds gradient of job-0 shard 1, microbatch 5 (expected joined gradient of job-0 shard 1, microbatch 4)"},
        {sum_kept, TURNS + 2, "lifetimes: acquires the gradient of job-0 shard 1, which is live"},
        {sum_of_a_turn_more, TURNS + 2, "form: has no use for the gradient of job-0 shard 1 variant 131074"},
        {update_before_join, TURNS + 2, "finds gradient of job-0 shard 1, microbatch 4 (expected joined gradient of job-0 shard 1, microbatch 4)"},
        {reduced_short, TURNS + 12, "0 times all-reduce of"},
        {norm_before_join, TURNS_CLIP + 2, "finds gradient of job-0 shard 1, microbatch 4 (expected joined gradient of job-0 shard 1, microbatch 4)"},
        {updates_swapped, TURNS_CLIP + 2, "lifetimes: copies unwritten bytes from the norms of job-0"},
        {sum_kept, TURNS_CLIP + 12, "lifetimes: acquires the gradient of job-0 shard 1, which is live"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), make_plan);
}

/* Trees as text, and the jobs that have none. */
static void trees(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t microbatches;
        uint32_t schedule;
        const char *complaint; /* NULL: accepted */
    } cases[] = {
        {"dp=4,tree", 8, PIPELINE_1F1B, NULL},
        {"pp=2,tree", 7, PIPELINE_1F1B, NULL},
        {"dp=4,tree", 12, PIPELINE_1F1B, "'sum' 'tree' with 3 microbatches on each of 4 replicas (expected a power of two)"},
        {"dp=2,zero=1,tree", 8, PIPELINE_1F1B, "'sum' 'tree' with split states"},
        {"pp=2,tree", 8, PIPELINE_ZB_H1, "'sum' 'tree' with split backward passes (schedule 'zb-h1')"},
        {"replicas=2-1,tree", 8, PIPELINE_1F1B, "'sum' 'tree' with unequal replicas"},
        {"pp=2,tree", 8, PIPELINE_TERAPIPE, NULL},
        {"pp=2,tree", 8, PIPELINE_2BW, "'sum' 'tree' with a schedule without a flush"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct job_set jobs;
        struct parallel p = {0};
        struct error err = {0};
        char text[PARALLEL_TEXT_BYTES];
        test_gpt_jobs(&jobs, 1, 6, 32, 97, MINIBATCHES);
        struct job *job = &jobs.jobs[0];
        job->microbatches = cases[i].microbatches;
        assert_int_equal(parallel_parse_text(cases[i].text, &p, &err), STATUS_OK);
        if (p.replicated == 0 && p.zero == 0) assert_string_equal(parallel_text(&p, text), cases[i].text);
        p.schedule = cases[i].schedule;
        job->parallel = p;
        const enum status status = parallel_check(job, &err);
        if (!cases[i].complaint && status) fail_msg("%s: %s", cases[i].text, err.text);
        if (cases[i].complaint) assert_string_equal(err.text, cases[i].complaint);
        job_set_release(&jobs);
    }
}

/* Jobs in pieces, and what those cannot go with. */
static void pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double clip;
        uint32_t precision;
        const char *complaint; /* NULL: accepted */
    } cases[] = {
        {"tensor_pieces=4", 0.5, PRECISION_FP32, NULL},
        {"tp=2,pp=2,dp=2,tensor_pieces=4", 0.5, PRECISION_FP32, NULL},
        {"tp=4,dp=2,zero=3,tensor_pieces=4", 0, PRECISION_FP32, NULL},
        {"tp=2,tensor_pieces=6", 0, PRECISION_FP32,
         "'tensor_pieces' 6 on 2 devices of a tensor group (expected a power of two from 2 on that they divide)"},
        {"tensor_pieces=1", 0, PRECISION_FP32,
         "'tensor_pieces' 1 on 1 device of a tensor group (expected a power of two from 2 on that they divide)"},
        {"tp=4,tensor_pieces=2", 0, PRECISION_FP32,
         "'tensor_pieces' 2 on 4 devices of a tensor group (expected a power of two from 2 on that they divide)"},
        {"tp=2,tensor_pieces=8", 0, PRECISION_FP32, "'tensor_pieces' 8 with 4 attention heads (expected a divisor)"},
        {"tp=2,sp,tensor_pieces=4", 0, PRECISION_FP32, "'tensor_pieces' with sequence parallelism"},
        {"tp=2,tensor_pieces=4", 0, PRECISION_BF16_WEIGHTS,
         "'tensor_pieces' with numbers of 16 bits (expected 'precision' and 'moments' fp32)"},
        {"tp=2,dp=2,zero=1,tensor_pieces=4", 0.5, PRECISION_FP32, "'tensor_pieces' with 'clip' of split or offloaded states"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct job_set jobs;
        struct parallel p = {0};
        struct error err = {0};
        char text[PARALLEL_TEXT_BYTES];
        test_gpt_jobs(&jobs, 1, 6, 32, 97, MINIBATCHES);
        struct job *job = &jobs.jobs[0];
        job->microbatches = 4;
        job->precision = cases[i].precision;
        job->optimizer.clip = cases[i].clip;
        assert_int_equal(parallel_parse_text(cases[i].text, &p, &err), STATUS_OK);
        if (!p.sequence && p.zero == 0) assert_string_equal(parallel_text(&p, text), cases[i].text);
        job->parallel = p;
        const enum status status = parallel_check(job, &err);
        if (!cases[i].complaint && status) fail_msg("%s: %s", cases[i].text, err.text);
        if (cases[i].complaint) assert_string_equal(err.text, cases[i].complaint);
        job_set_release(&jobs);
    }
}

/* Timed as planned, without charges for states beside their copies: the first copy begins at 0, and the last ends the
 * run. */
static void simulated(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= 4; stages++) {
        struct plan plan;
        struct sim_result result = {0};
        struct trace trace = {0};
        struct error err = {0};
        make_plan(&plan, stages);
        const struct sim_options options = {.record_spans = true};
        if (sim_run(&plan, &options, &result, &trace, &err)) fail_msg("%s", err.text);
        double last_s = 0;
        for (uint64_t i = 0; i < trace.span_count; i++) {
            const struct trace_span *span = &trace.spans[i];
            if (span->pass != PLAN_LOAD && span->pass != PLAN_STORE) continue;
            if (span->kind == OP_COMPUTE) assert_true(span->end_s <= span->start_s);
            if (span->pass == PLAN_STORE && span->end_s > last_s) last_s = span->end_s;
        }
        test_parallel_near(result.makespan_s, last_s);
        sim_result_release(&result);
        trace_release(&trace);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies),
        cmocka_unit_test(tables),
        cmocka_unit_test(held_out),
        cmocka_unit_test(replicas),
        cmocka_unit_test(trees), cmocka_unit_test(pieces),
        cmocka_unit_test(slices), cmocka_unit_test(rows),
        cmocka_unit_test(slices_of_tokens),
        cmocka_unit_test(codes),
        cmocka_unit_test(hosts),
        cmocka_unit_test(broken),
        cmocka_unit_test(simulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
