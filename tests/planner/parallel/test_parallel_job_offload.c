/*
 * States and weights that are not on the devices (label: fast): ZeRO-Offload's and ZeRO-Infinity's makespans by closed
 * forms, memory of a rank by their tables, ZeRO-Infinity's efficiency, broken plans, refused jobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "models/cost/cost.h"
#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"
#include "tests/support/planner/support_parallel.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_trained.h"
#include "tests/support/planner/support_parallel_plan.h"

/* --- machines -------------------------------------------------------------------------------- */

/* A host that is `slow` bytes/s fast, devices on links of `link` bytes/s each way, and storage if `stored`. */
static void make_machine(struct hardware *out, uint32_t devices, double link, double p2p, double slow, double stored)
{
    test_parallel_machine(out, devices, p2p, 0);
    for (uint32_t d = 0; d < devices; d++) out->links[d].bandwidth.value = link;
    out->host_bandwidth = (struct sourced_value){.value = slow, .kind = SOURCE_ASSUMED, .source = "a test",
                                                 .as_of = "2026-11"};
    if (stored <= 0) return;
    out->storage.capacity_bytes = out->storage.read_rate = out->storage.write_rate = out->host_bandwidth;
    out->storage.capacity_bytes.value = 1e15;
    out->storage.read_rate.value = out->storage.write_rate.value = stored;
    out->storage.both_rate = out->storage.read_rate;
    out->storage.both_rate.value = 2 * stored;
    out->storage.latency = (struct sourced_value){0};
}

struct uniform {
    uint32_t replicas, chunks, microbatches, minibatches; /* microbatches: of each replica */
    uint32_t zero, offload, prefetch;
    bool delayed;
    double forward_s, backward_s, copy_s; /* copy_s: of a chunk's whole weights over a device's link */
    double p2p;                           /* bytes/s */
    double stored;                        /* bytes/s; 0: not on storage */
};
static const double link_rate = 1e9;

/* fp32 and plain SGD, so that weights, gradients and a chunk's whole state have the same bytes; a profile's step takes
 * no time. */
static void make_uniform(const struct uniform *u, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct test_layer layer = {.forward_ns = (uint64_t)llround(1e9 * u->forward_s),
                               .backward_ns = (uint64_t)llround(1e9 * u->backward_s), .activation_bytes = 64,
                               .parameter_bytes = (uint64_t)llround(u->copy_s * link_rate)};
    make_machine(&hardware, u->replicas, link_rate, u->p2p > 0 ? u->p2p : 1e9, 1e10, u->stored);
    test_profile_jobs(&jobs, 1, u->chunks, u->minibatches, test_layer_equal, &layer);
    jobs.jobs[0].microbatches = u->microbatches * u->replicas;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = u->replicas, .chunks = u->chunks,
                                              .schedule = PIPELINE_1F1B, .zero = u->zero, .prefetch = u->prefetch,
                                              .offload = u->offload, .delayed = u->delayed, .storage = u->stored > 0};
    *out = (struct plan){0};
    test_parallel_plan(&hardware, &jobs, out);
}

static double uniform_s(const struct uniform *u)
{
    struct plan plan;
    make_uniform(u, &plan);
    double makespan_s = test_parallel_simulate(&plan, false).makespan_s;
    plan_release(&plan);
    return makespan_s;
}

/* --- ZeRO-Offload ---------------------------------------------------------------------------- */

/* One replica. Gradients of v chunks go down, g each, while the next are made in the other of two places, and the last
 * comes up again: the passes and 2 g, or the first gradient and then the link without a break,
 *     v f + max(v b + g, b + v g) + g
 */
static void drains(void **state)
{
    (void)state;
    static const double copies_s[] = {1e-3, 4.6e-3, 5.3e-3, 9e-3};
    for (uint32_t v = 1; v <= 5; v++)
        for (size_t c = 0; c < ARRAY_COUNT(copies_s); c++) {
            struct uniform u = {.replicas = 1, .chunks = v, .microbatches = 1, .minibatches = 1, .zero = 2,
                                .offload = OFFLOAD_STATES, .forward_s = 2e-3, .backward_s = 5e-3,
                                .copy_s = copies_s[c]};
            double f = u.forward_s, b = u.backward_s, g = u.copy_s;
            test_parallel_near(uniform_s(&u), v * f + fmax(v * b + g, b + v * g) + g);
            u.minibatches = 3; /* the first pass of the next finds the weights that came up last */
            test_parallel_near(uniform_s(&u), 3 * (v * f + fmax(v * b + g, b + v * g) + g));
        }
}

/* The gradients of each of m microbatches go down, and the link is either in time or never stops:
 *     v f + max((m - 1) v (f + b) + v b + g, b + m v g) + g */
static void sums(void **state)
{
    (void)state;
    for (uint32_t v = 1; v <= 4; v++)
        for (uint32_t m = 2; m <= 4; m++) {
            struct uniform u = {.replicas = 1, .chunks = v, .microbatches = m, .minibatches = 1, .zero = 2,
                                .offload = OFFLOAD_STATES, .forward_s = 2e-3, .backward_s = 5e-3, .copy_s = 4.5e-3};
            double f = u.forward_s, b = u.backward_s;
            test_parallel_near(uniform_s(&u), m * v * (f + b) + 2 * u.copy_s);
            u.copy_s = 11e-3;
            test_parallel_near(uniform_s(&u), v * f + b + m * v * u.copy_s + u.copy_s);
        }
}

/* d ranks: each brings a share g / d down and up over its own link. A reduce-scatter (s) comes before that copy, and
 * an all-gather of the same length after it; the collectives of the earlier chunks are over, or under way, when the
 * last share has come up. */
static void ranks(void **state)
{
    (void)state;
    for (uint32_t d = 2; d <= 4; d++)
        for (uint32_t v = 1; v <= 5; v++) {
            struct uniform u = {.replicas = d, .chunks = v, .microbatches = 1, .minibatches = 1, .zero = 2,
                                .offload = OFFLOAD_STATES, .forward_s = 2e-3, .backward_s = 5e-3, .copy_s = 6e-3,
                                .p2p = 4e9};
            double share_s = u.copy_s / d, s = (d - 1) * u.copy_s * link_rate / d / u.p2p;
            test_parallel_near(uniform_s(&u),
                               v * (u.forward_s + u.backward_s) + s + fmax(2 * share_s, (v - 1) * s) + s);
        }
}

/* Delayed by one, k minibatches: gradients and weights move during the passes, except that from the third minibatch
 * on the next forward pass waits for the weights of the first chunk, which came up after its backward pass. At the end
 * these weights and the last gradient move at once, and then come the weights of all v chunks. */
static void delayed_copies(void **state)
{
    (void)state;
    for (uint32_t k = 2; k <= 6; k++)
        for (uint32_t v = 2; v <= 4; v++) {
            struct uniform u = {.replicas = 1, .chunks = v, .microbatches = 1, .minibatches = k, .zero = 2,
                                .delayed = true, .offload = OFFLOAD_STATES, .forward_s = 2e-3, .backward_s = 5e-3,
                                .copy_s = 3e-3};
            double g = u.copy_s;
            test_parallel_near(uniform_s(&u), k * v * (u.forward_s + u.backward_s) + (k - 2) * g + g + v * g);
        }
}

/* A small GPT on d ranks whose host takes long for its steps. */
static void make_gpt(struct plan *out, struct parallel parallel, uint64_t microbatches, uint64_t minibatches,
                     double slow)
{
    struct hardware hardware;
    struct job_set jobs;
    *out = (struct plan){0};
    make_machine(&hardware, (uint32_t)parallel_devices(&parallel), 1e10, 1e10, slow, parallel.storage ? 1e9 : 0);
    test_gpt_jobs(&jobs, 1, 6, 64, 256, minibatches);
    jobs.jobs[0].microbatches = microbatches * parallel.data;
    jobs.jobs[0].precision = PRECISION_BF16;
    jobs.jobs[0].optimizer.kind = OPTIMIZER_ADAMW;
    jobs.jobs[0].parallel = parallel;
    test_parallel_plan(&hardware, &jobs, out);
}

static double pass_s(const struct plan *plan, uint32_t chunk, enum parallel_pass pass, uint32_t device)
{
    struct work_item items[PARALLEL_WORK_MAX];
    const struct job *job = &plan->jobs.jobs[0];
    uint32_t count = parallel_work(job, parallel_layers(job, chunk), pass, items);
    return cost_work_s(&plan->hardware, device, items, count, NULL);
}

/* The host steps for each rank in turn. Its first step begins when the last chunk's gradient is there; synchronously
 * the weights of the first chunk have to come up before the next minibatch begins: k (t + U + up); delayed by one the
 * host never stops: t + k U + up. With two microbatches it adds these up, which is in U then. */
static void slow_host(void **state)
{
    (void)state;
    for (uint32_t d = 1; d <= 3; d++)
        for (uint32_t k = 1; k <= 4; k++)
            for (uint32_t variant = 0; variant < 4; variant++) {
                uint32_t delayed = variant % 2, m = 1 + variant / 2;
                struct plan plan;
                struct parallel p = {.tensor = 1, .pipeline = 1, .data = d, .chunks = 6, .schedule = PIPELINE_1F1B,
                                     .zero = 2, .offload = OFFLOAD_STATES, .delayed = delayed > 0};
                make_gpt(&plan, p, m, k, 2e7);
                const struct job *job = &plan.jobs.jobs[0];
                struct rank_state last = parallel_host_state(job, parallel_layers(job, 5));
                struct rank_state first = parallel_host_state(job, parallel_layers(job, 0));
                struct rank_state last_all = parallel_whole_state(job, parallel_layers(job, 5));
                struct rank_state first_all = parallel_whole_state(job, parallel_layers(job, 0));
                double begin_s = pass_s(&plan, 5, PARALLEL_BACKWARD, 0), steps_s = 0;
                for (uint32_t r = 0; r < 6; r++) {
                    begin_s += pass_s(&plan, r, PARALLEL_FORWARD, 0);
                    steps_s += d * pass_s(&plan, r, PARALLEL_UPDATE, hardware_cpu(&plan.hardware));
                    if (m > 1) steps_s += m * d * pass_s(&plan, r, PARALLEL_SUM, hardware_cpu(&plan.hardware));
                }
                /* (d - 1) / d of the bytes each, and shares that are rounded up to whole parameters */
                begin_s += (double)last_all.gradient_bytes * (d - 1) / d / 1e10 + (double)last.gradient_bytes / 1e10;
                double up_s = (double)first.weight_bytes / 1e10 + (double)first_all.weight_bytes * (d - 1) / d / 1e10;
                double found = test_parallel_simulate(&plan, false).makespan_s;
                test_parallel_near(found, delayed ? begin_s + k * steps_s + up_s : k * (begin_s + steps_s + up_s));
                plan_release(&plan);
            }
}

/* --- ZeRO-Infinity --------------------------------------------------------------------------- */

/* Nothing ahead: each pass waits for its weights, w seconds over the link of one device, or for a share of them over d
 * links and an all-gather (which takes s). The gradient of the last is waited for. */
static void fetched_weights(void **state)
{
    (void)state;
    for (uint32_t d = 1; d <= 4; d++)
        for (uint32_t v = 1; v <= 4; v++) {
            struct uniform u = {.replicas = d, .chunks = v, .microbatches = 1, .minibatches = 1, .zero = 3,
                                .offload = OFFLOAD_WEIGHTS, .forward_s = 2e-3, .backward_s = 5e-3, .copy_s = 6e-3,
                                .p2p = 1e10};
            double f = u.forward_s, b = u.backward_s, w = u.copy_s / d;
            double s = (d - 1) * u.copy_s * link_rate / d / u.p2p;
            test_parallel_near(uniform_s(&u), v * (2 * (w + s) + f + b) + s + w);
            u.prefetch = 1; /* one ahead: whatever is slower, the link or a pass */
            u.copy_s = 1.5e-3 * d;
            u.p2p = 1e18;
            test_parallel_near(uniform_s(&u), 1.5e-3 + v * (f + b) + 1.5e-3);
        }
}

/* efficiency = ait bw / (ait bw + peak), with ait FLOPs for each byte that moves: a device that computes at `peak`,
 * moves bytes at bw and does not overlap the two. d ranks have d links. */
static void efficiency(void **state)
{
    (void)state;
    const double peak = 70e12;
    for (uint32_t d = 1; d <= 4; d++)
        for (uint32_t n = 1; n <= 8; n++) {
            struct uniform u = {.replicas = d, .chunks = 12, .microbatches = 4, .minibatches = 1, .zero = 3,
                                .offload = OFFLOAD_WEIGHTS, .forward_s = 1e-3 * n, .backward_s = 3e-3 * n,
                                .copy_s = 4.8e-3, .p2p = 1e21};
            double passes_s = u.chunks * u.microbatches * (u.forward_s + u.backward_s), bw = d * link_rate;
            double bytes = 2.0 * u.chunks * u.microbatches * u.copy_s * link_rate;
            double ait = passes_s * peak / bytes, last_s = u.copy_s / d; /* a sum of gradients goes down at the end */
            double found = passes_s / (uniform_s(&u) - last_s);
            test_parallel_near(found, ait * bw / (ait * bw + peak));
            u.prefetch = 2;
            assert_true(passes_s / uniform_s(&u) > found);
        }
}

/* Bytes of a kind of copy, over all ranks' devices. */
static double copied_bytes(const struct plan *plan, uint32_t stream)
{
    double bytes = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_task *task = &plan->tasks[plan->segments[s].first_task + i];
            const struct plan_unit *unit = &plan->units[task->unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
                if (plan->ops[o].kind == OP_COPY && plan->ops[o].stream == stream)
                    bytes += (double)plan->ops[o].bytes * plan->segments[s].repeat_count *
                             plan_gang_size(&plan->gangs[task->gang]);
        }
    return bytes;
}

/* The paper's intensity of parameters and gradients, seq bsz, and of the optimizer, a quarter of it: 8 bsz seq P FLOPs
 * with recomputation. The paper's 8 P bytes are weights up for a forward pass, once more for the recomputation and once
 * for the backward pass, and a gradient down; here recomputing and going back are one pass, so 6 P. And 32 P (16 there
 * and 16 back; here 14, for gradients wait in host memory). */
static void intensity(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    const uint64_t samples = 3;
    make_machine(&hardware, 1, 1e10, 1e10, 1e11, 1e10);
    hardware.host_bytes.value = 1e15;
    hardware.devices[0].memory_bytes = UINT64_C(1) << 44;
    test_gpt_jobs(&jobs, 1, 4, 64, 256, 1);
    jobs.jobs[0].network = support_gpt((struct support_gpt){"wide", 32, 4096, 24});
    jobs.jobs[0].sequence = 512;
    jobs.jobs[0].microbatch = samples;
    jobs.jobs[0].precision = PRECISION_BF16;
    jobs.jobs[0].optimizer.kind = OPTIMIZER_ADAMW;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 1, .chunks = 24, .zero = 3,
                                              .schedule = PIPELINE_1F1B, .offload = OFFLOAD_WEIGHTS, .storage = true,
                                              .recompute = RECOMPUTE_FULL, .prefetch = 1};
    test_parallel_plan(&hardware, &jobs, &plan);
    const struct job *job = &plan.jobs.jobs[0];
    double parameters = 0, flops = 0;
    const double tokens = 512.0 * (double)samples;
    struct work_item items[PARALLEL_WORK_MAX];
    for (uint32_t r = 0; r < 24; r++) {
        parameters += (double)parallel_parameters(job, parallel_layers(job, r));
        flops += work_flops(items, parallel_work(job, parallel_layers(job, r), PARALLEL_FORWARD, items));
        flops += work_flops(items, parallel_work(job, parallel_layers(job, r), PARALLEL_BACKWARD, items));
    }
    test_parallel_near(copied_bytes(&plan, STREAM_H2D), 4 * parameters);
    test_parallel_near(copied_bytes(&plan, STREAM_D2H), 2 * parameters);
    test_parallel_near(copied_bytes(&plan, STREAM_READ), (4 + 14) * parameters);
    test_parallel_near(copied_bytes(&plan, STREAM_WRITE), 14 * parameters);
    double ait = flops / (8 * parameters); /* the paper's */
    assert_true(ait > 0.9 * tokens && ait < 1.1 * tokens); /* attention, a head that is not repeated */
    plan_release(&plan);
}

/* A disk that is slower than all else reads without a break: weights for 2 v passes, v states for steps (here as
 * large), and at the end it writes the last back. d ranks share it, each with a d-th of the bytes. */
static void slow_storage(void **state)
{
    (void)state;
    for (uint32_t d = 1; d <= 3; d++)
        for (uint32_t v = 2; v <= 5; v++) {
            struct uniform u = {.replicas = d, .chunks = v, .microbatches = 1, .minibatches = 1, .zero = 3,
                                .offload = OFFLOAD_WEIGHTS, .forward_s = 1e-5, .backward_s = 2e-5, .copy_s = 6e-6,
                                .p2p = 1e15, .stored = 1e6};
            double read_s = u.copy_s * link_rate / u.stored, found = uniform_s(&u);
            /* the last rank's state comes last, and goes back */
            double expected = 3 * v * read_s + read_s / d;
            if (!(fabs(found - expected) < 1e-2 * expected))
                fail_msg("%u ranks, %u chunks: %g, %g", d, v, found, expected);
            assert_true(found >= 3 * v * read_s);
        }
}

/* --- memory ---------------------------------------------------------------------------------- */

/* Of P parameters, 16-bit weights with Adam on d ranks: 2 P on a device, ZeRO-Offload's eighth of 16 P; elsewhere 16
 * P / d with a copy of the weights, gradients in 16 bits too, and 4 P / d more where these are added up. */
static void memory_of_a_rank(void **state)
{
    (void)state;
    for (uint32_t d = 1; d <= 5; d++)
        for (uint32_t m = 1; m <= 2; m++)
            for (uint32_t offload = OFFLOAD_STATES; offload <= OFFLOAD_WEIGHTS; offload++) {
                struct plan plan;
                struct parallel p = {.tensor = 1, .pipeline = 1, .data = d, .chunks = 3, .schedule = PIPELINE_1F1B,
                                     .zero = offload + 1, .offload = offload, .prefetch = 1};
                make_gpt(&plan, p, m, 1, 1e10);
                const struct job *job = &plan.jobs.jobs[0];
                uint64_t host = 0;
                for (uint32_t r = 0; r < 3; r++) {
                    struct parallel_layers layers = parallel_layers(job, r);
                    uint64_t all = parallel_parameters(job, layers), share = (all + d - 1) / d;
                    struct rank_state here = parallel_state(job, layers), there = parallel_host_state(job, layers);
                    assert_int_equal(here.weight_bytes, offload == OFFLOAD_WEIGHTS ? 0 : 2 * all);
                    assert_int_equal(here.gradient_bytes, 0);
                    assert_int_equal(here.state_bytes, 0);
                    assert_int_equal(there.weight_bytes, 2 * share);
                    assert_int_equal(there.gradient_bytes, 2 * share);
                    assert_int_equal(there.state_bytes, 12 * share);
                    host += (m == 1 ? 16 : 20) * share;
                    assert_int_equal(parallel_host_sum_bytes(job, layers), m == 1 ? 0 : 4 * share);
                }
                assert_int_equal(plan_host_bytes(&plan), d * host);
                assert_true(test_parallel_simulate(&plan, true).peak_bytes <= plan_device_bytes(&plan, d - 1));
                plan_release(&plan);
            }
}

/* Rounds to 64 bytes, the unit of memory. */
static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* On storage weights and states, 14 bytes a parameter; on the host the gradient, and, for each rank and each kind
 * that is read, two places of the size of the largest chunk. */
static void memory_of_storage(void **state)
{
    (void)state;
    for (uint32_t d = 1; d <= 4; d++) {
        struct plan plan;
        struct parallel p = {.tensor = 1, .pipeline = 1, .data = d, .chunks = 3, .schedule = PIPELINE_1F1B, .zero = 3,
                             .offload = OFFLOAD_WEIGHTS, .prefetch = 1, .storage = true};
        make_gpt(&plan, p, 1, 1, 1e10);
        const struct job *job = &plan.jobs.jobs[0];
        uint64_t shares = 0, largest = 0, second = 0;
        for (uint32_t r = 0; r < 3; r++) {
            uint64_t share = (parallel_parameters(job, parallel_layers(job, r)) + d - 1) / d;
            shares += share;
            if (share > largest) largest = share;
            if (r == 1) second = share; /* of the second step, and so in the second place */
        }
        uint64_t staged = 2 * rounded(2 * largest) + rounded(14 * largest) + rounded(14 * second);
        assert_int_equal(plan_stored_bytes(&plan), d * 14 * shares);
        assert_int_equal(plan_host_bytes(&plan), d * (2 * shares + staged));
        plan_release(&plan);
    }
}

/* --- broken plans ---------------------------------------------------------------------------- */

enum { STATES, DELAYED, WEIGHTS, STORED, SUMS, ALONE };

static void whole_plan(struct plan *out, uint32_t variant)
{
    bool weights = variant == WEIGHTS || variant == STORED;
    struct parallel p = {.tensor = 1, .pipeline = 1, .data = variant == ALONE ? 1 : 2, .chunks = 6,
                         .schedule = PIPELINE_1F1B, .zero = weights ? 3 : 2, .prefetch = 1,
                         .offload = weights ? OFFLOAD_WEIGHTS : OFFLOAD_STATES, .delayed = variant == DELAYED,
                         .storage = variant == STORED};
    make_gpt(out, p, variant == SUMS ? 2 : 1, 3, 1e10);
}

static struct plan_op *copy_of(struct plan *p, uint32_t pass) { return test_parallel_op(p, pass, 2, OP_COPY); }
static struct plan_op *step_of(struct plan *p) { return test_parallel_op(p, PLAN_UPDATE, 2, OP_COMPUTE); }
static struct plan_access *access_of(struct plan *p, const struct plan_op *op, uint32_t at)
{
    return &p->accesses[op->first_access + at];
}

static void break_gradient_part(struct plan *p) { copy_of(p, PLAN_REDUCE)->bytes /= 2; }
static void break_weight_part(struct plan *p) { copy_of(p, PLAN_REFRESH)->bytes /= 2; }
static void break_fetched_part(struct plan *p) { copy_of(p, PLAN_GATHER)->bytes /= 2; }
static struct plan_op *sum_of(struct plan *p) { return test_parallel_op(p, PLAN_REDUCE, 2, OP_COMPUTE); }
static void break_sum_part(struct plan *p) { copy_of(p, PLAN_REDUCE)->bytes /= 2; }
static void break_sum_other(struct plan *p)
{
    const struct plan_op *other = test_parallel_op(p, PLAN_REDUCE, 3, OP_COMPUTE);
    access_of(p, sum_of(p), 1)->buffer = access_of(p, other, 1)->buffer;
}
static void break_sum_direct(struct plan *p)
{
    access_of(p, copy_of(p, PLAN_REDUCE), 1)->buffer = access_of(p, sum_of(p), 0)->buffer;
}
static void break_sum_work(struct plan *p) { sum_of(p)->work = PLAN_NONE; }
static void break_sum_stream(struct plan *p) { sum_of(p)->stream = STREAM_HOST; }
static void break_sum_access(struct plan *p) { access_of(p, sum_of(p), 1)->flags |= ACCESS_WRITE; }
static void break_sum_step(struct plan *p)
{
    access_of(p, step_of(p), 1)->buffer = access_of(p, sum_of(p), 1)->buffer;
}
static void break_written_part(struct plan *p) { step_of(p)[1].bytes /= 2; }
static void move_in_front(struct plan_task *from, struct plan_task *to)
{
    struct plan_task moved = *from;
    assert_true(to < from);
    memmove(to + 1, to, (size_t)(from - to) * sizeof *to);
    *to = moved;
}
static void break_early_refresh(struct plan *p)
{
    move_in_front(test_parallel_task(p, PLAN_REFRESH, 5, 0), test_parallel_task(p, PLAN_UPDATE, 5, 0));
}
/* Puts the delayed refresh of the second minibatch before its first pass. */
static void break_hurried_refresh(struct plan *p)
{
    move_in_front(test_parallel_task(p, PLAN_REFRESH, 5, 0), p->tasks + p->segments[2].first_task);
}
static void break_unsaid_delay(struct plan *p) { p->jobs.jobs[0].parallel.delayed = false; }
static void break_said_delay(struct plan *p) { p->jobs.jobs[0].parallel.delayed = true; }
static void break_early_update(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 2, 0), test_parallel_task(p, PLAN_UPDATE, 2, 0));
}
static void break_step_stream(struct plan *p) { step_of(p)->stream = STREAM_COMPUTE; }
static void break_step_access(struct plan *p) { access_of(p, step_of(p), 0)->flags = ACCESS_READ; }
static void break_step_gradient(struct plan *p) { step_of(p)->access_count = 1; }
static void break_step_work(struct plan *p) { step_of(p)->work = PLAN_NONE; }
static void break_gradient_room(struct plan *p) { p->buffers[access_of(p, step_of(p), 1)->buffer].bytes -= 64; }
static void break_state_room(struct plan *p) { p->buffers[access_of(p, step_of(p), 0)->buffer].bytes -= 64; }
static void break_host_gather(struct plan *p) { test_parallel_op(p, PLAN_GATHER, 2, OP_COLLECTIVE)->bytes /= 2; }
static void break_refresh_axes(struct plan *p)
{
    test_parallel_op(p, PLAN_REFRESH, 2, OP_COLLECTIVE)->stream = STREAM_COMPUTE;
}
static void break_refresh_gather(struct plan *p)
{
    access_of(p, test_parallel_op(p, PLAN_REFRESH, 2, OP_COLLECTIVE), 0)->flags = ACCESS_READ;
}
static void break_offload(struct plan *p) { p->jobs.jobs[0].parallel.offload = OFFLOAD_NOTHING; }
static void break_copy_stream(struct plan *p) { copy_of(p, PLAN_REFRESH)->stream = STREAM_D2H; }
static void break_unread(struct plan *p) { copy_of(p, PLAN_GATHER)->stream = STREAM_H2D; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_gradient_part, STATES, "lifetimes: reads unwritten bytes of the gradient of job-0 shard 2"},
        {break_weight_part, STATES, "finds state of job-0 shard 2, version 0 (expected state of job-0 shard 2, "
                                    "version 1)"},
        {break_weight_part, ALONE, "finds state of job-0 shard 2, version 0 (expected state of job-0 shard 2, version "
                                   "1)"},
        {break_fetched_part, WEIGHTS, "lifetimes: reads unwritten bytes of the parameters of job-0 shard 2"},
        {break_sum_part, SUMS, "lifetimes: reads unwritten bytes of the gradient of job-0 shard 2"},
        {break_sum_other, SUMS, "form: adds up the gradient of job-0 shard 3 variant 1"},
        {break_sum_direct, SUMS, "finds reduced gradient of job-0 shard 2, microbatch 0 (expected sum of gradients of "
                                 "job-0 shard 2, microbatch 0)"},
        {break_sum_work, SUMS, "work: has 0 kernels (expected 1)"},
        {break_sum_stream, SUMS, "a computation on the host stream (expected cpu: its states are offloaded)"},
        {break_sum_access, SUMS, "form: adds up the gradient of job-0 shard 2 variant 1"},
        {break_sum_step, SUMS, "form: steps by the gradient of job-0 shard 2 variant 1"},
        {break_written_part, STORED, "finds state of job-0 shard 2, version 0 (expected state of job-0 shard 2, "
                                     "version 1)"},
        {break_early_refresh, STATES, "finds state of job-0 shard 5, version 0 (expected state of job-0 shard 5, "
                                      "version 1)"},
        {break_hurried_refresh, DELAYED, "finds state of job-0 shard 5, version 1 (expected state of job-0 shard 5, "
                                         "version 0)"},
        {break_unsaid_delay, DELAYED, "finds state of job-0 shard 0, version 0 (expected state of job-0 shard 0, "
                                      "version 1)"},
        {break_said_delay, STATES, "finds state of job-0 shard 0, version 1 (expected state of job-0 shard 0, version "
                                   "0)"},
        {break_early_update, STATES, "lifetimes: reads unwritten bytes of the gradient of job-0 shard 2"},
        {break_step_stream, STATES, "a computation on the compute stream (expected cpu: its states are offloaded)"},
        {break_step_access, STATES, "form: does not change the state of job-0 shard 2"},
        {break_step_gradient, STATES, "form: lacks the gradient on the host"},
        {break_step_work, STATES, "work: has 0 kernels (expected 1)"},
        {break_gradient_room, STATES, "copies "},
        {break_state_room, WEIGHTS, "on the host has"},
        {break_state_room, STORED, "(it has"},
        {break_host_gather, WEIGHTS, "0 times all-gather of"},
        {break_refresh_axes, STATES, "1 collectives over axes 0x2 on 1 buffers, on the compute stream"},
        {break_refresh_gather, STATES, "form: a collective on the state of job-0 shard 2"},
        {break_offload, STATES, "memory: state of job-0 shard 5 on the host has"},
        {break_copy_stream, STATES, "a copy on the d2h stream from the host to the device"},
        {break_unread, STORED, "form: a copy on the h2d stream from the host to the host"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

/* --- refused jobs ---------------------------------------------------------------------------- */

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"dp=2,delayed", "'delayed' without 'offload' (expected \"states\")"},
        {"dp=2,zero=3,storage", "'storage' without 'offload' (expected \"states\" or \"weights\")"},
        {"dp=2,zero=1,offload=states",
         "'offload' of states with 'zero' 1 (expected 2 or 3: gradients go down in shares)"},
        {"dp=2,zero=2,offload=weights", "'offload' of weights with 'zero' 2 (expected 3: weights come up in shares, "
                                        "or 0: "
                                         "whole)"},
        {"dp=2,zero=3,offload=weights,delayed",
         "'delayed' with 'offload' of weights (expected 'offload' of states: older weights stay on the devices)"},
        {"tp=2,zero=2,offload=states,sp", "'offload' with sequence parallelism (expected none: tensor groups add up "
                                          "gradients of norms)"},
        {"dp=2,zero=2,offload", "'offload' is not understood (expected tp=, pp=, dp=, replicas=, v=, buckets=, zero=, "
                                "prefetch=, flush=, tensor_pieces=, sp, scatter, exposed, overlap, blocking, tree, "
                                "offload=states, offload=weights, storage, delayed, swap or choose)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct parallel p = {0};
        struct error err = {0};
        enum status status = parallel_parse_text(cases[i].text, &p, &err);
        struct job job = {.parallel = p, .microbatches = 2};
        job.parallel.carrying = PARALLEL_SIMULATED;
        if (!status) status = parallel_offload_check(&job, &err);
        assert_int_equal(status, STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
    }
    struct parallel p = {0};
    struct error err = {0};
    char text[PARALLEL_TEXT_BYTES];
    const char *known = "tp=2,dp=4,v=3,zero=3,prefetch=2,offload=weights,storage";
    assert_int_equal(parallel_parse_text(known, &p, &err), STATUS_OK);
    assert_string_equal(parallel_text(&p, text), known);
}

/* Refused machines: without the host's speed, without storage, with nodes that have no rank. */
static void refused_machines(void **state)
{
    (void)state;
    static const struct {
        double slow, stored;
        uint32_t nodes, data;
        double capacity, host;
        uint32_t jobs;
        const char *message;
    } cases[] = {
        {0, 1e9, 0, 2, 1e12, 1e12, 1, "job 'job-0' offloads, and machine 'made-up' does not say how fast its host is "
                                      "(expected \"memory_bandwidth\" of the host)"},
        {1e9, 0, 0, 2, 1e12, 1e12, 1, "job 'job-0' offloads to storage, and machine 'made-up' has none "
                                      "(--storage-memory and --storage-rate give it some)"},
        {1e9, 1e9, 2, 2, 1e3, 1e12, 1, "the jobs need at least 36.9 KiB of storage on node 0; 500 B was given on each "
                                       "node "
                                       "(--storage-memory sets it)"}, /* 37728 bytes */
        {1e9, 1e9, 0, 2, 1e3, 1e12, 1, "the jobs need at least 36.9 KiB of storage; 1000 B was given "
                                       "(--storage-memory sets it)"},
        {1e9, 1e9, 0, 2, 1e12, 1e3, 1, "the jobs need at least 74.0 KiB of host memory; 1000 B was given "
                                       "(--host-memory sets "
                                       "it)"}, /* 75680 bytes, 73.91 KiB */
        {1e9, 1e9, 0, 2, 1e12, 2.2e5, 3, "the jobs need at least 235 KiB of host memory; 215 KiB was given "
                                         "(--host-memory sets it; any 1 of the 3 jobs has room at a time)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        const struct planner_options options = {.weight_buffers = 0};
        make_machine(&hardware, 4, 1e10, 1e10, cases[i].slow, cases[i].stored);
        hardware.storage.capacity_bytes.value = cases[i].stored > 0 ? cases[i].capacity : 0;
        hardware.host_bytes.value = cases[i].host;
        hardware.host_nodes = cases[i].nodes;
        hardware.node_devices = 2;
        test_gpt_jobs(&jobs, cases[i].jobs, 3, 8, 32, 1);
        for (uint32_t j = 0; j < jobs.count; j++) {
            jobs.jobs[j].microbatches = 2;
            jobs.jobs[j].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = cases[i].data, .chunks = 1,
                                                      .schedule = PIPELINE_1F1B, .zero = 3, .offload = OFFLOAD_WEIGHTS,
                                                      .prefetch = 1, .storage = true};
        }
        assert_int_not_equal(planner_plan(&hardware, &jobs, &options, &plan, &err), STATUS_OK);
        assert_string_equal(err.text, cases[i].message);
    }
}

/* Tensor groups of jobs that are only simulated add up gradients of norms in updates, which hosts make. */
static void refused_rows(void **state)
{
    (void)state;
    static const struct {
        uint32_t precision, stack;
        const char *why;
    } cases[] = {{PRECISION_FP32, STACK_FRAMEWORKS, "the software stack of its machine"},
                 {PRECISION_BF16, STACK_SPILLWAY, "precision bf16 on GPUs"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        char wanted[200];
        const struct planner_options options = {.weight_buffers = 0};
        make_machine(&hardware, 2, 1e10, 1e10, 1e9, 0);
        hardware.stack = cases[i].stack;
        test_gpt_jobs(&jobs, 1, 3, 8, 32, 1);
        jobs.jobs[0].precision = cases[i].precision;
        jobs.jobs[0].parallel = (struct parallel){.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1,
                                                  .schedule = PIPELINE_1F1B, .offload = OFFLOAD_STATES,
                                                  .sequence = true};
        snprintf(wanted, sizeof wanted, "job 'job-0' is parallel and only simulated here, because of %s, and offloads "
                 "with sequence parallelism (expected none)", cases[i].why);
        assert_int_equal(planner_plan(&hardware, &jobs, &options, &plan, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, wanted);
    }
}

/* Where weights are split with their frozen part, jobs that are only simulated would bring up the trained part only. */
static void refused_part(void **state)
{
    (void)state;
    static const uint64_t frozen[][2] = {{0, 1}};
    for (uint32_t weights = 0; weights < 2; weights++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        const struct planner_options options = {.weight_buffers = 0};
        make_machine(&hardware, 2, 1e10, 1e10, 1e9, 0);
        hardware.stack = STACK_FRAMEWORKS;
        test_gpt_jobs(&jobs, 1, 3, 8, 32, 1);
        jobs.jobs[0].freeze = (struct network_freeze){.layers = frozen, .layer_count = 1};
        support_train_only(&jobs.jobs[0], &jobs.arena);
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1,
                                                  .schedule = PIPELINE_1F1B,
                                                  .offload = weights ? OFFLOAD_WEIGHTS : OFFLOAD_STATES};
        assert_int_equal(planner_plan(&hardware, &jobs, &options, &plan, &err), weights ? STATUS_OK : STATUS_BAD_INPUT);
        if (!weights)
            assert_string_equal(err.text, "job 'job-0' is parallel and only simulated here, because of the software "
                                          "stack of its machine, and offloads states of a network that it trains in "
                                          "part (expected to offload weights, or nothing)");
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drains),           cmocka_unit_test(sums),
        cmocka_unit_test(ranks),            cmocka_unit_test(delayed_copies),
        cmocka_unit_test(slow_host),        cmocka_unit_test(fetched_weights),
        cmocka_unit_test(efficiency),       cmocka_unit_test(intensity),
        cmocka_unit_test(slow_storage),     cmocka_unit_test(memory_of_a_rank),
        cmocka_unit_test(memory_of_storage), cmocka_unit_test(broken),
        cmocka_unit_test(refused),          cmocka_unit_test(refused_machines),
        cmocka_unit_test(refused_rows),     cmocka_unit_test(refused_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
