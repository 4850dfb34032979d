/*
 * KARMA over several devices (label: fast): weights and states of every rank on its host, gradients that hosts add up
 * chunk by chunk, activations that leave and come back. Makespans by closed forms, memory by tables, broken plans,
 * refused jobs.
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
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"

/* --- machines and jobs ------------------------------------------------------------------------ */

/* Devices with links of `link` bytes/s to a host that is `host` bytes/s fast, and of `nic` bytes/s to each other. */
static void make_machine(struct hardware *out, uint32_t devices, double link, double nic, double host)
{
    test_parallel_machine(out, devices, nic, 0);
    for (uint32_t d = 0; d < devices; d++) out->links[d].bandwidth.value = link;
    out->host_bandwidth = (struct sourced_value){.value = host, .kind = SOURCE_ASSUMED, .source = "a test",
                                                 .as_of = "2026-11"};
}

struct uniform {
    uint32_t replicas, chunks, minibatches, prefetch, zero;
    double forward_s, backward_s;
    double weights_s, activations_s; /* of a chunk, over a device's link */
    double nic;
    uint32_t slots;                  /* places for activations; 0: they are not swapped */
};
static const double link_rate = 1e9;

/* fp32 and plain SGD: weights and gradients have the same bytes, and a profile's step takes no time. */
static void make_uniform(const struct uniform *u, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct test_layer layer = {.forward_ns = (uint64_t)llround(1e9 * u->forward_s),
                               .backward_ns = (uint64_t)llround(1e9 * u->backward_s),
                               .activation_bytes = 64 + (uint64_t)llround(u->activations_s * link_rate),
                               .parameter_bytes = (uint64_t)llround(u->weights_s * link_rate)};
    make_machine(&hardware, u->replicas, link_rate, u->nic, 1e10);
    for (uint32_t d = 0; d < u->replicas && u->slots > 0; d++)
        hardware.devices[d].memory_bytes = u->slots * layer.activation_bytes + 100000;
    test_profile_jobs(&jobs, 1, u->chunks, u->minibatches, test_layer_equal, &layer);
    jobs.jobs[0].microbatches = u->replicas;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = u->replicas, .chunks = u->chunks,
                                              .schedule = PIPELINE_1F1B, .zero = u->zero, .prefetch = u->prefetch,
                                              .offload = OFFLOAD_WEIGHTS, .swap = u->slots > 0};
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

static void near_to(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * expected)) fail_msg("%.9g (expected %.9g)", found, expected);
}

/* --- phases ----------------------------------------------------------------------------------- */

/*
 * v chunks: their weights (w) come up in time but the first; after its backward pass each chunk's gradient goes down
 * (g = w), and hosts add it up (a = 2 (d - 1) / d of its bytes over their NIC), one chunk after the other. These sums
 * are hidden but for the last where a < b, else the NIC never stops from the first on:
 *     w + v f + b + g + max((v - 1) b + a, v a)
 * The first chunk's gradient is the last to be added up, and the next minibatch begins with its weights.
 */
static void phases(void **state)
{
    (void)state;
    static const double nics[] = {5e10, 2e9, 1.1e9, 3e8};
    uint32_t hidden = 0, exposed = 0;
    for (uint32_t d = 2; d <= 4; d++)
        for (uint32_t v = 1; v <= 5; v++)
            for (size_t n = 0; n < ARRAY_COUNT(nics); n++) {
                struct uniform u = {.replicas = d, .chunks = v, .minibatches = 1, .prefetch = 1, .forward_s = 2e-3,
                                    .backward_s = 5e-3, .weights_s = 1.9e-3, .nic = nics[n]};
                double f = u.forward_s, b = u.backward_s, w = u.weights_s, a = 2 * (d - 1) * w * link_rate / d / u.nic;
                double minibatch_s = w + v * f + b + w + fmax((v - 1) * b + a, v * a);
                test_parallel_near(uniform_s(&u), minibatch_s);
                u.minibatches = 3;
                test_parallel_near(uniform_s(&u), 3 * minibatch_s);
                *(a < b ? &hidden : &exposed) += 1;
            }
    assert_true(hidden > 10 && exposed > 10);
}

/* One device adds up nothing, and `zero` has no effect. */
static void alone(void **state)
{
    (void)state;
    struct uniform u = {.replicas = 1, .chunks = 4, .minibatches = 2, .prefetch = 1, .forward_s = 2e-3,
                        .backward_s = 5e-3,
                        .weights_s = 3e-3, .nic = 1e9};
    double whole_s = uniform_s(&u);
    u.zero = ZERO_WEIGHTS;
    test_parallel_near(uniform_s(&u), whole_s);
}

/* A host that takes long steps for each rank in turn, and never stops from the first gradient on:
 * k (t + a + U + up), U the steps of all ranks. */
static void slow_host(void **state)
{
    (void)state;
    for (uint32_t d = 1; d <= 3; d++)
        for (uint32_t k = 1; k <= 3; k++) {
            struct hardware hardware;
            struct job_set jobs;
            struct plan plan = {0};
            make_machine(&hardware, d, 1e10, 1e10, 2e7);
            test_gpt_jobs(&jobs, 1, 6, 64, 256, k);
            struct job *of = &jobs.jobs[0];
            of->microbatches = d;
            of->precision = PRECISION_BF16;
            of->optimizer.kind = OPTIMIZER_ADAMW;
            of->parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = d, .chunks = 6, .prefetch = 5,
                                             .schedule = PIPELINE_1F1B, .offload = OFFLOAD_WEIGHTS};
            test_parallel_plan(&hardware, &jobs, &plan);
            const struct job *job = &plan.jobs.jobs[0];
            struct rank_state first = parallel_whole_state(job, parallel_layers(job, 0));
            struct rank_state last = parallel_whole_state(job, parallel_layers(job, 5));
            struct work_item items[PARALLEL_WORK_MAX];
            double begin_s = (double)first.weight_bytes / 1e10, steps_s = 0, up_s = 0, ready_s = begin_s;
            for (uint32_t r = 0; r < 6; r++) {
                struct parallel_layers layers = parallel_layers(job, r);
                double each_s = (double)parallel_whole_state(job, layers).weight_bytes / 1e10;
                if (r > 0) up_s += each_s;
                ready_s = fmax(ready_s, begin_s + up_s) +
                          cost_work_s(&plan.hardware, 0, items, parallel_work(job, layers, PARALLEL_FORWARD, items),
                                      NULL);
                steps_s += d * cost_work_s(&plan.hardware, hardware_cpu(&plan.hardware), items,
                                           parallel_work(job, layers, PARALLEL_UPDATE, items), NULL);
            }
            /* the last chunk's weights come up once more for its backward pass */
            ready_s = fmax(ready_s, begin_s + up_s + (double)last.weight_bytes / 1e10);
            ready_s += cost_work_s(&plan.hardware, 0, items,
                                   parallel_work(job, parallel_layers(job, 5), PARALLEL_BACKWARD, items), NULL);
            ready_s += (double)last.gradient_bytes / 1e10 + 2.0 * (d - 1) / d * (double)last.gradient_bytes / 1e10;
            near_to(test_parallel_simulate(&plan, false).makespan_s, k * (ready_s + steps_s), 1e-6);
            plan_release(&plan);
        }
}

/* --- swapping --------------------------------------------------------------------------------- */

/* Bytes of activations that all replicas send to their hosts. */
static double sent_bytes(const struct plan *plan)
{
    double bytes = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_task *task = &plan->tasks[plan->segments[s].first_task + i];
            const struct plan_unit *unit = &plan->units[task->unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
                if (unit->pass == PLAN_FORWARD && plan->ops[o].stream == STREAM_D2H)
                    bytes += (double)plan->ops[o].bytes * plan->segments[s].repeat_count *
                             plan_gang_size(&plan->gangs[task->gang]);
        }
    return bytes;
}

/*
 * R chunks in n places of memory, whose weights are next to nothing. Where a copy (c) is shorter than a pass, no pass
 * waits: R (f + b). Where it is longer than n - 1 of them the link never stops between the first forward pass and the
 * last, R - n copies, and likewise on the way back: 2 f + 2 b + 2 (R - n) c.
 */
static void swapped(void **state)
{
    (void)state;
    for (uint32_t d = 1; d <= 3; d += 2)
        for (uint32_t n = 2; n <= 4; n++)
            for (uint32_t chunks = n; chunks <= 9; chunks += 2)
                for (uint32_t slow = 0; slow < 2; slow++) {
                    struct uniform u = {.replicas = d, .chunks = chunks, .minibatches = 1 + chunks % 2,
                                        .prefetch = n - 1,
                                        .forward_s = 3e-3, .backward_s = 5e-3, .weights_s = 4e-9, .slots = n,
                                        .activations_s = slow ? 16e-3 : 2.9e-3, .nic = 1e10};
                    struct plan plan;
                    make_uniform(&u, &plan);
                    uint32_t out = chunks - n;
                    double one_s = slow && out > 0 ? 2 * (u.forward_s + u.backward_s + out * u.activations_s)
                                                   : chunks * (u.forward_s + u.backward_s);
                    struct test_parallel_outcome found = test_parallel_simulate(&plan, false);
                    near_to(found.makespan_s, u.minibatches * one_s, 1e-5);
                    near_to(1 + sent_bytes(&plan), 1 + u.minibatches * d * out * (64 + u.activations_s * link_rate),
                            1e-12);
                    assert_true(found.peak_bytes <= plan.hardware.devices[0].memory_bytes);
                    plan_release(&plan);
                }
}

/* Prefetching one pass is enough if copies are shorter than passes; none is not. */
static void ahead(void **state)
{
    (void)state;
    struct uniform u = {.replicas = 2, .chunks = 8, .minibatches = 1, .prefetch = 1, .forward_s = 3e-3,
                        .backward_s = 5e-3,
                        .weights_s = 4e-9, .activations_s = 2e-3, .slots = 3, .nic = 1e10};
    near_to(uniform_s(&u), 8 * (u.forward_s + u.backward_s), 1e-5);
    u.prefetch = 0; /* five are waited for */
    near_to(uniform_s(&u), 8 * (u.forward_s + u.backward_s) + 5 * u.activations_s, 1e-5);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void make_gpt(struct plan *out, uint32_t ranks, uint32_t zero, uint64_t memory, bool storage)
{
    struct hardware hardware;
    struct job_set jobs;
    make_machine(&hardware, ranks, 1e10, 1e10, 1e10);
    if (storage) {
        hardware.storage.capacity_bytes = hardware.storage.read_rate = hardware.storage.write_rate =
            hardware.host_bandwidth;
        hardware.storage.both_rate = hardware.host_bandwidth;
        hardware.storage.capacity_bytes.value = 1e15;
        hardware.storage.latency = (struct sourced_value){0};
    }
    for (uint32_t d = 0; d < ranks; d++) hardware.devices[d].memory_bytes = memory;
    test_gpt_jobs(&jobs, 1, 6, 64, 256, 3);
    struct job *job = &jobs.jobs[0];
    job->microbatches = ranks;
    job->precision = PRECISION_BF16;
    job->optimizer.kind = OPTIMIZER_ADAMW;
    job->parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = ranks, .chunks = 6, .zero = zero,
                                      .schedule = PIPELINE_1F1B, .prefetch = 1, .offload = OFFLOAD_WEIGHTS,
                                      .storage = storage, .swap = memory < UINT64_C(1) << 33};
    *out = (struct plan){0};
    test_parallel_plan(&hardware, &jobs, out);
}

/* Without room for the activations of three chunks, of which some keep a little more than others. */
static void make_tight(struct plan *out, uint32_t ranks, uint32_t zero, bool storage)
{
    struct plan whole;
    make_gpt(&whole, ranks, zero, UINT64_C(1) << 33, storage);
    const struct job *job = &whole.jobs.jobs[0];
    uint64_t kept = parallel_kept_bytes(job, parallel_layers(job, 2), false);
    make_gpt(out, ranks, zero, plan_device_bytes(&whole, 0) - 3 * kept + 16384, storage);
    plan_release(&whole);
}

/* With `zero` 0 hosts have 16 bytes of every parameter for every rank; with 3 for one in all. Swapped activations come
 * on top. */
static void memory(void **state)
{
    (void)state;
    for (uint32_t d = 1; d <= 3; d++)
        for (uint32_t zero = 0; zero <= 3; zero += 3) {
            struct plan whole, tight;
            make_gpt(&whole, d, zero, UINT64_C(1) << 33, false);
            const struct job *job = &whole.jobs.jobs[0];
            uint64_t host = 0;
            for (uint32_t r = 0; r < 6; r++) {
                uint64_t all = parallel_parameters(job, parallel_layers(job, r));
                host += 16 * (zero == 0 ? all : (all + d - 1) / d);
            }
            assert_int_equal(plan_host_bytes(&whole), d * host);
            uint64_t device = plan_device_bytes(&whole, 0),
                kept = parallel_kept_bytes(job, parallel_layers(job, 2), false);
            make_tight(&tight, d, zero, false);
            assert_true(plan_device_bytes(&tight, 0) <= device - 3 * kept + 16384);
            double sent = sent_bytes(&tight);
            assert_true(sent >= (double)(3 * 3 * d * kept)); /* three minibatches, three chunks at least */
            assert_int_equal(plan_host_bytes(&tight), d * host + (uint64_t)sent / 3);
            assert_true(test_parallel_simulate(&tight, true).makespan_s >=
                        test_parallel_simulate(&whole, true).makespan_s * (1 - 1e-9));
            plan_release(&whole);
            plan_release(&tight);
        }
}

/* Weights and states on storage, activations in host memory. */
static void stored(void **state)
{
    (void)state;
    struct plan plan;
    make_tight(&plan, 2, 0, true);
    assert_true(sent_bytes(&plan) > 0);
    assert_true(test_parallel_simulate(&plan, false).makespan_s > 0);
    plan_release(&plan);
}

/* Blocks that are recomputed from their boundaries keep nothing: no activations leave, and no place is shared. */
static void nothing_kept(void **state)
{
    (void)state;
    uint64_t memory = UINT64_C(1) << 33;
    for (uint32_t i = 0; i < 2; i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        make_machine(&hardware, 2, 1e10, 1e10, 1e10);
        for (uint32_t d = 0; d < 2; d++) hardware.devices[d].memory_bytes = memory;
        test_gpt_jobs(&jobs, 1, 12, 64, 256, 1);
        struct job *job = &jobs.jobs[0];
        job->microbatches = 2;
        job->parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 2, .chunks = 12,
                                          .schedule = PIPELINE_1F1B,
                                          .recompute = RECOMPUTE_FULL, .prefetch = 1, .offload = OFFLOAD_WEIGHTS,
                                          .swap = true};
        test_parallel_plan(&hardware, &jobs, &plan);
        assert_true(sent_bytes(&plan) <= 0);
        memory = plan_device_bytes(&plan, 0);
        plan_release(&plan);
    }
}

/* --- broken plans ----------------------------------------------------------------------------- */

enum { WHOLE, SWAPPED };

static void whole_plan(struct plan *out, uint32_t variant)
{
    if (variant == SWAPPED) make_tight(out, 2, 0, false);
    else make_gpt(out, 2, 0, UINT64_C(1) << 33, false);
}

static struct plan_access *access_of(struct plan *p, const struct plan_op *op, uint32_t at)
{
    return &p->accesses[op->first_access + at];
}
static struct plan_op *sum_of(struct plan *p) { return test_parallel_op(p, PLAN_UPDATE, 2, OP_COLLECTIVE); }
static struct plan_op *out_of(struct plan *p) { return test_parallel_op(p, PLAN_FORWARD, 0, OP_COPY); }
static struct plan_op *back_of(struct plan *p)
{
    for (uint32_t o = 0; o < p->op_count; o++) {
        const struct plan_buffer *b = &p->buffers[p->accesses[p->ops[o].first_access].buffer];
        if (p->ops[o].stream == STREAM_H2D && b->kind == BUFFER_ACTIVATIONS) return &p->ops[o];
    }
    fail_msg("nothing comes back");
    return NULL;
}

static void break_sum_part(struct plan *p) { sum_of(p)->bytes /= 2; }
static void break_sum_stream(struct plan *p) { sum_of(p)->stream = STREAM_COMPUTE; }
static void break_sum_access(struct plan *p) { access_of(p, sum_of(p), 0)->flags = ACCESS_READ; }
static void break_sum_other(struct plan *p)
{
    access_of(p, sum_of(p), 0)->buffer = access_of(p, test_parallel_op(p, PLAN_UPDATE, 3, OP_COLLECTIVE), 0)->buffer;
}
static void break_sum_room(struct plan *p) { p->buffers[access_of(p, sum_of(p), 0)->buffer].bytes -= 64; }
static void break_early_sum(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 2, 0), test_parallel_task(p, PLAN_UPDATE, 2, 0));
}
static void break_shares(struct plan *p) { p->jobs.jobs[0].parallel.zero = ZERO_WEIGHTS; }
static void break_out_part(struct plan *p) { out_of(p)->bytes /= 2; }
static void break_back_part(struct plan *p) { back_of(p)->bytes /= 2; }
static void break_unsaid(struct plan *p) { p->jobs.jobs[0].parallel.swap = false; }
static void break_staying(struct plan *p) { access_of(p, out_of(p), 0)->flags &= ~(uint32_t)ACCESS_RELEASE; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_sum_part, WHOLE, "work: 0 times all-reduce of 99968 bytes over the data group (expected 1)"},
        {break_sum_stream, WHOLE, "form: 1 collectives over axes 0x2 on 1 buffers, on the compute stream"},
        {break_sum_access, WHOLE, "form: a collective on the gradient of job-0 shard 2"},
        {break_sum_other, WHOLE, "form: a collective on the gradient of job-0 shard 3"},
        {break_sum_room, WHOLE, "form: copies 99968 bytes at 0 of the gradient of job-0 shard 2 (it has 99904)"},
        {break_early_sum, WHOLE, "lifetimes: reads unwritten bytes of the gradient of job-0 shard 2 (expected "
                                 "gradient of job-0 shard 2, microbatch 0)"},
        {break_shares, WHOLE, "memory: state of job-0 shard 0 on the host has 957824 bytes (expected 478912)"},
        {break_out_part, SWAPPED, "lifetimes: copies unwritten bytes from the activations of job-0 shard 0"},
        {break_back_part, SWAPPED, "lifetimes: reads unwritten bytes of the activations of job-0 shard 2 (expected "
                                   "activations of job-0 shard 2, microbatch 0)"},
        {break_unsaid, SWAPPED, "form: a copy on the d2h stream"},
        {break_staying, SWAPPED, "memory: the activations of job-0 shard 2 at bytes 707840 to 773376 of device 0 "
                                 "overlaps the activations of job-0 shard 0 at 707840 to 777472"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

/* --- refused jobs ----------------------------------------------------------------------------- */

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t microbatches;
        const char *message;
    } cases[] = {
        {"dp=2,offload=weights", 6,
         "'offload' of weights (with 'zero' 0) with 3 microbatches of a replica (expected 1)"},
        {"dp=2,swap", 2, "'swap' without 'offload' of weights (expected \"weights\": activations come up with them)"},
        {"dp=2,zero=2,offload=states,swap", 2,
         "'swap' without 'offload' of weights (expected \"weights\": activations come up with them)"},
        {"dp=2,pp=3,offload=weights,swap", 2,
         "'swap' on 3 stages of tensor groups of 1 (expected only 'data')"},
        {"dp=2,zero=3,offload=weights,swap", 4,
         "'swap' with 2 microbatches of a replica (expected 1)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct error err = {0};
        struct job job = {.microbatches = cases[i].microbatches};
        assert_int_equal(parallel_parse_text(cases[i].text, &job.parallel, &err), STATUS_OK);
        assert_int_equal(parallel_offload_check(&job, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
    }
    struct job job = {.microbatches = 2};
    struct error err = {0};
    char text[PARALLEL_TEXT_BYTES];
    const char *known = "dp=2,v=3,prefetch=2,offload=weights,swap";
    assert_int_equal(parallel_parse_text(known, &job.parallel, &err), STATUS_OK);
    assert_string_equal(parallel_text(&job.parallel, text), known);
    assert_int_equal(parallel_offload_check(&job, &err), STATUS_OK);
    job.parallel.schedule = PIPELINE_PIPEDREAM;
    assert_int_equal(parallel_offload_check(&job, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "schedule 'pipedream' with 'offload' (expected none: weights have versions)");
    err = (struct error){0};
    job.parallel.schedule = PIPELINE_TERAPIPE;
    assert_int_equal(parallel_offload_check(&job, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "'offload' of weights (with 'zero' 0) with schedule 'terapipe' (expected one whose "
                                  "microbatches are in one piece)");
    err = (struct error){0};
    job.parallel.schedule = PIPELINE_1F1B;
    job.compression[COMPRESSION_GRADIENTS].ratio = 2;
    assert_int_equal(parallel_offload_check(&job, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text,
                        "'compression' of gradients with 'offload' (expected none: hosts add up uncompressed "
                        "gradients)");
}

/* Too little memory for the permanent data, and chunks without weights, with which activations would return. */
static void refused_machines(void **state)
{
    (void)state;
    static const struct {
        uint64_t memory, parameters;
        const char *message;
    } cases[] = {
        {1500000, 4096, "job 'job-0' needs"},
        {2500000, 0, "job 'job-0' swaps the activations of chunk 0, which has no weights (expected some: they come "
                     "back together)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        struct test_layer layer = {.forward_ns = 1000, .backward_ns = 2000, .activation_bytes = 1000000,
                                   .parameter_bytes = cases[i].parameters};
        const struct planner_options options = {.weight_buffers = 0};
        make_machine(&hardware, 2, 1e10, 1e10, 1e10);
        for (uint32_t d = 0; d < 2; d++) hardware.devices[d].memory_bytes = cases[i].memory;
        test_profile_jobs(&jobs, 1, 4, 1, test_layer_equal, &layer);
        jobs.jobs[0].microbatches = 2;
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 2, .chunks = 4, .prefetch = 1,
                                                  .schedule = PIPELINE_1F1B, .offload = OFFLOAD_WEIGHTS, .swap = true};
        assert_int_not_equal(planner_plan(&hardware, &jobs, &options, &plan, &err), STATUS_OK);
        if (!strstr(err.text, cases[i].message)) fail_msg("'%s', expected '%s'", err.text, cases[i].message);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases),  cmocka_unit_test(alone),   cmocka_unit_test(slow_host),
        cmocka_unit_test(swapped), cmocka_unit_test(ahead),   cmocka_unit_test(memory),
        cmocka_unit_test(stored),  cmocka_unit_test(nothing_kept), cmocka_unit_test(broken),
        cmocka_unit_test(refused), cmocka_unit_test(refused_machines),
    };
    return cmocka_run_group_tests_name("parallel_job_karma", tests, NULL, NULL);
}
