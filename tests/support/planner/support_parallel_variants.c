#include "tests/support/planner/support_parallel_variants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "models/job/chunk_memory.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_planner.h"

/* What the job of a range has, apart from stages and replicas. */
struct range {
    double clip;
    bool evaluated, untied;
    bool one_each;  /* one microbatch of each replica */
    bool in_chunks; /* one stage of several chunks */
    bool in_slices;
    uint32_t schedule; /* 0: 1F1B */
    uint32_t tensor;   /* 0: 1 */
    uint32_t zero, offload, flush;
    bool sequence, tree, swap, delayed, storage;
    double boundaries, gradients; /* ratios of compression, 0: none */
    bool bf16;
};

#define RANGE(name) [VARIANT_##name / VARIANT_RANGE]

static const struct range ranges[VARIANT_END / VARIANT_RANGE] = {
    RANGE(PLAIN) = {0},
    RANGE(HELD_OUT) = {.evaluated = true},
    RANGE(HALVES) = {.schedule = PIPELINE_ZB_H1},
    RANGE(CLIPS) = {.clip = 0.5},
    RANGE(TREES) = {.tree = true},
    RANGE(GROUPS) = {.tensor = 2},
    RANGE(VERSIONS) = {.schedule = PIPELINE_2BW, .untied = true},
    RANGE(GROUPS_CLIP) = {.tensor = 2, .clip = 0.5},
    RANGE(HOSTS) = {.offload = OFFLOAD_STATES, .zero = ZERO_STATES},
    RANGE(SHARES_CLIP) = {.zero = ZERO_STATES, .clip = 0.5},
    RANGE(HOSTS_CLIP) = {.offload = OFFLOAD_STATES, .zero = ZERO_STATES, .clip = 0.5},
    RANGE(BELOW) = {.offload = OFFLOAD_WEIGHTS, .in_chunks = true, .one_each = true},
    RANGE(BELOW_SHARES) = {.offload = OFFLOAD_WEIGHTS, .zero = ZERO_WEIGHTS, .in_chunks = true},
    RANGE(SWAPS) = {.offload = OFFLOAD_WEIGHTS, .zero = ZERO_WEIGHTS, .in_chunks = true, .one_each = true,
                    .swap = true},
    RANGE(SLICES) = {.schedule = PIPELINE_TERAPIPE, .in_slices = true},
    RANGE(HALVES_SHARES) = {.schedule = PIPELINE_ZB_H1, .zero = ZERO_WEIGHTS},
    RANGE(SLICES_HELD_OUT) = {.schedule = PIPELINE_TERAPIPE, .in_slices = true, .evaluated = true},
    RANGE(DELAYS) = {.offload = OFFLOAD_STATES, .zero = ZERO_STATES, .delayed = true, .flush = 2},
    RANGE(STORES) = {.offload = OFFLOAD_STATES, .zero = ZERO_STATES, .storage = true},
    RANGE(CODES) = {.boundaries = 2, .gradients = 3.75},
    RANGE(CODES_SHARES) = {.boundaries = 2, .bf16 = true, .zero = ZERO_GRADIENTS},
    RANGE(TURNS) = {.schedule = PIPELINE_2BW},
    RANGE(TURNS_CLIP) = {.schedule = PIPELINE_2BW, .clip = 0.5},
    RANGE(ROWS) = {.tensor = 2, .sequence = true},
    RANGE(VALLEY) = {.schedule = PIPELINE_ZB_V},
};

static struct parallel parallel_of(uint32_t variant)
{
    const struct range *const r = &ranges[variant / VARIANT_RANGE];
    const uint32_t stages = variant % 10, chunks = r->schedule == PIPELINE_ZB_V ? 2 : 1;
    struct parallel p = {.tensor = r->tensor > 0 ? r->tensor : 1, .data = 1 + variant % VARIANT_RANGE / 10,
                         .pipeline = r->in_chunks ? 1 : stages, .chunks = r->in_chunks ? stages : chunks, .prefetch = 1,
                         .schedule = r->schedule > 0 ? r->schedule : PIPELINE_1F1B, .zero = r->zero,
                         .offload = r->offload,
                         .flush = r->flush, .sequence = r->sequence, .tree = r->tree, .swap = r->swap,
                         .delayed = r->delayed, .storage = r->storage};
    if (variant / VARIANT_RANGE == VARIANT_HOSTS_CLIP / VARIANT_RANGE && p.data == 1) p.tensor = 2;
    if (r->in_slices) {
        static const uint32_t tokens[] = {6, 7, 3};
        p.slices = 3;
        for (uint32_t i = 0; i < p.slices; i++) p.slice_tokens[i] = tokens[i];
    }
    return p;
}

static void make_jobs(struct job_set *out, uint32_t variant)
{
    const struct range *const r = &ranges[variant / VARIANT_RANGE];
    test_gpt_jobs(out, 1, 6, 32, 97, VARIANT_MINIBATCHES);
    struct job *const job = &out->jobs[0];
    job->parallel = parallel_of(variant);
    job->microbatches = r->one_each ? job->parallel.data : 4;
    job->optimizer.clip = r->clip;
    if (r->evaluated) job->evaluation = (struct job_evaluation){.every = 2, .minibatches = 2};
    if (r->untied) job->network.tied_head = false;
    if (r->boundaries > 0)
        job->compression[COMPRESSION_BOUNDARIES] =
            (struct compression){.ratio = r->boundaries, .encode_bytes_per_s = 1e9, .decode_bytes_per_s = 2e9};
    if (r->gradients > 0)
        job->compression[COMPRESSION_GRADIENTS] =
            (struct compression){.ratio = r->gradients, .encode_bytes_per_s = 3e9, .decode_bytes_per_s = 4e9};
    if (r->bf16) {
        job->precision = PRECISION_BF16_WEIGHTS;
        job->gradients = PRECISION_BF16;
    }
}

static void plan_on(uint64_t device_bytes, uint32_t variant, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    test_hardware(&hardware, 4, device_bytes, 1e9);
    if (variant >= VARIANT_HOSTS && variant < VARIANT_ROWS)
        hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    if (variant >= VARIANT_STORES && variant < VARIANT_ROWS)
        hardware.storage.capacity_bytes = hardware.storage.read_rate = hardware.storage.write_rate =
        hardware.host_bandwidth;
    make_jobs(&jobs, variant);
    *out = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
}

void test_parallel_variant(struct plan *out, uint32_t variant)
{
    assert_true(variant < VARIANT_END);
    plan_on(1 << 26, variant, out);
    if (!ranges[variant / VARIANT_RANGE].swap) return;
    /* devices lack room for the activations of a chunk */
    const struct job *const job = &out->jobs.jobs[0];
    const uint64_t bytes = plan_device_bytes(out, 0) - chunk_memory(job, parallel_layers(job, 1)).activation_bytes;
    plan_release(out);
    plan_on(bytes, variant, out);
}

/* --- damages ------------------------------------------------------------------------------------ */

void damage_data_late(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_BATCH, 0, 0), test_parallel_task(p, PLAN_FORWARD, 0, 0));
}

void damage_loss_short(struct plan *p)
{
    test_parallel_op(p, PLAN_UPDATE, 1, OP_COPY)->bytes = 4;
}

void damage_loss_elsewhere(struct plan *p)
{
    test_parallel_op(p, PLAN_UPDATE, 1, OP_COPY)->stream = STREAM_H2D;
}

void damage_state_short(struct plan *p)
{
    test_parallel_op(p, PLAN_LOAD, 1, OP_COPY)->bytes -= 64;
}

void damage_state_small(struct plan *p)
{
    test_parallel_buffer(p, BUFFER_STATE, 1, false)->bytes -= 64;
}

void damage_workspace_small(struct plan *p)
{
    test_parallel_buffer(p, BUFFER_WORKSPACE, 1, true)->bytes -= 64;
}

void damage_reduced_short(struct plan *p)
{
    test_parallel_op(p, PLAN_REDUCE, 0, OP_COLLECTIVE)->bytes /= 2;
}

void damage_norms_small(struct plan *p)
{
    test_parallel_buffer(p, BUFFER_NORMS, PLAN_NONE, true)->bytes -= 8;
}

void damage_held_out_loss_lost(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++)
        for (uint32_t o = p->units[u].first_op; o < p->units[u].first_op + p->units[u].op_count; o++)
            if (p->units[u].pass == PLAN_EVALUATE && p->ops[o].stream == STREAM_D2H) p->ops[o].bytes = 4;
}

void damage_held_out_ends_late(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++)
        if (p->units[u].pass == PLAN_EVALUATE) p->units[u].ends_minibatch = false;
}

void damage_shares_gathered_short(struct plan *p)
{
    test_parallel_op_on(p, PLAN_GATHER, 1, STREAM_DATA)->bytes -= 64;
}
