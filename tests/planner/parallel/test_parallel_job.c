/*
 * Parallel jobs, from job to simulated makespan (label: fast): closed forms of pipelines and
 * rings; every schedule on random jobs passes plan_check(), keeps its memory and its bounds; devices that
 * others stand for change nothing; broken plans, each with its complaint.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/random.h"
#include "base/size.h"
#include "models/cost/cost.h"
#include "planner/files/plan_io.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/sim/support_chakra.h"
#include "tests/support/support_seed.h"

/* --- closed forms ---------------------------------------------------------------------------- */

enum { FORWARD_NS = 4000000, BACKWARD_NS = 6000000 };

static struct test_layer uniform_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job, (void)layer;
    return (struct test_layer){.forward_ns = FORWARD_NS, .backward_ns = BACKWARD_NS, .activation_bytes = 64};
}

static double pipeline_s(struct parallel parallel, uint32_t microbatches, uint64_t minibatches)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    test_parallel_machine(&hardware, parallel.pipeline, 1e12, 0);
    test_profile_jobs(&jobs, 1, parallel_chunks(&parallel), minibatches, uniform_layer, NULL);
    jobs.jobs[0].microbatches = microbatches;
    jobs.jobs[0].parallel = parallel;
    test_parallel_plan(&hardware, &jobs, &plan);
    double makespan_s = test_parallel_simulate(&plan, false).makespan_s;
    plan_release(&plan);
    return makespan_s;
}

/* Layers of equal length, nothing to send: a minibatch takes (m + P - 1)(f + b), interleaved in v chunks
 * m (f + b) + (P - 1)(f + b) / v with f and b of a stage; the flush keeps minibatches apart.
 * Sources: arXiv 1811.06965, 2104.04473 section 2.2. */
static void bubbles(void **state)
{
    (void)state;
    for (uint32_t stages = 1; stages <= 5; stages++)
        for (uint32_t m = stages; m <= 4 * stages; m += stages)
            for (uint32_t chunks = 1; chunks <= 3; chunks++) {
                struct parallel p = {.tensor = 1, .pipeline = stages, .data = 1, .chunks = chunks,
                                     .schedule = chunks == 1 ? PIPELINE_1F1B : PIPELINE_INTERLEAVED};
                double both_s = (FORWARD_NS + BACKWARD_NS) * 1e-9;
                double minibatch_s = m * chunks * both_s + (stages - 1) * both_s;
                test_parallel_near(pipeline_s(p, m, 1), minibatch_s);
                /* the next one's first stage begins when it has updated, while others still do */
                assert_true(pipeline_s(p, m, 3) >= 3 * m * chunks * both_s + (stages - 1) * both_s - 1e-9);
                assert_true(pipeline_s(p, m, 3) <= 3 * minibatch_s + 1e-9);
                p.schedule = PIPELINE_GPIPE;
                if (chunks == 1) test_parallel_near(pipeline_s(p, m, 1), minibatch_s);
            }
}

static struct test_layer heavy_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)job, (void)layer;
    return (struct test_layer){.forward_ns = FORWARD_NS, .backward_ns = BACKWARD_NS, .activation_bytes = 64,
                               .parameter_bytes = *(uint64_t *)context};
}

/* d replicas: what one does, and a ring's 2 (d - 1) steps with b / d bytes each; a reduce-scatter and an
 * all-gather take as long together. A profile's own step takes no time. */
static void data_parallel(void **state)
{
    (void)state;
    uint64_t bytes = 1200000;
    const double rate = 1e9, latency_s = 1e-6;
    for (uint32_t zero = 0; zero <= 1; zero++)
        for (uint32_t d = 2; d <= 6; d++) {
            double seconds[2];
            for (uint32_t alone = 0; alone < 2; alone++) {
                struct hardware hardware;
                struct job_set jobs;
                struct plan plan = {0};
                test_parallel_machine(&hardware, 6, rate, latency_s);
                test_profile_jobs(&jobs, 1, 1, 1, heavy_layer, &bytes);
                jobs.jobs[0].microbatches = alone ? 3 : 3 * d;
                jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = alone ? 1 : d,
                                                          .chunks = 1, .schedule = PIPELINE_1F1B};
                jobs.jobs[0].parallel.zero = alone ? 0 : zero;
                test_parallel_plan(&hardware, &jobs, &plan);
                seconds[alone] = test_parallel_simulate(&plan, false).makespan_s;
                plan_release(&plan);
            }
            /* each step crosses two links, up and down */
            double ring_s = 2 * (d - 1) * (2 * latency_s + (double)bytes / d / rate);
            test_parallel_near(seconds[1], 3 * (FORWARD_NS + BACKWARD_NS) * 1e-9);
            test_parallel_near(seconds[0], seconds[1] + ring_s);
        }
}

/* --- random jobs ----------------------------------------------------------------------------- */

/* A GPT-2 job on some devices by `key`; how many devices. */
static uint32_t random_job(uint64_t key, struct job_set *jobs)
{
    struct parallel p = {.tensor = 1u << random_below(key, 0, 3), .data = 1 + (uint32_t)random_below(key, 1, 3),
                         .pipeline = 1 + (uint32_t)random_below(key, 2, 4), .chunks = 1,
                         .schedule = (uint32_t)random_below(key, 3, PIPELINE_SCHEDULE_COUNT),
                         .recompute = (uint32_t)random_below(key, 4, RECOMPUTE_COUNT),
                         .zero = (uint32_t)random_below(key, 5, 4), .prefetch = (uint32_t)random_below(key, 12, 4)};
    if (p.pipeline == 1 && p.schedule < PIPELINE_ZB_H1) p.chunks = 1 + (uint32_t)random_below(key, 13, 3);
    if (p.schedule == PIPELINE_INTERLEAVED) p.chunks = 2 + (uint32_t)random_below(key, 6, 2);
    if (p.schedule == PIPELINE_ZB_V) p.chunks = 2;
    p.sequence = p.tensor > 1 && random_below(key, 7, 2) && p.schedule != PIPELINE_TERAPIPE;
    uint64_t blocks = parallel_chunks(&p) + random_below(key, 8, 5);
    if (random_below(key, 15, 3) == 0) p.partition = PARALLEL_BALANCED;
    if (random_below(key, 16, 4) == 0) { /* the first chunk gets the remaining layers */
        p.cuts = parallel_chunks(&p);
        for (uint32_t r = 0; r < p.cuts; r++) p.cut_lengths[r] = r > 0 ? 1 : (uint32_t)(blocks - p.cuts + 1);
    }
    test_gpt_jobs(jobs, 1, (uint32_t)blocks, 64, 256, 1 + random_below(key, 9, 3));
    struct job *job = &jobs->jobs[0];
    job->network.heads = 4;
    job->network.head_width = 16;
    job->microbatches = p.data * p.pipeline * (1 + random_below(key, 10, 4));
    if (pipeline_is_asynchronous(p.schedule)) {
        p.zero = ZERO_NOTHING;
        job->minibatches = 1 + random_below(key, 9, 20);
        if (p.schedule == PIPELINE_PIPEDREAM) job->microbatches = p.data;
    }
    if (p.schedule == PIPELINE_TERAPIPE && random_below(key, 14, 3) > 0) /* of 16 tokens; else the planner chooses */
        for (uint32_t left = 16; left > 0; left -= p.slice_tokens[p.slices++])
            p.slice_tokens[p.slices] = 1 + (uint32_t)random_below(key, 30 + p.slices, left < 7 ? left : 7);
    job->precision = random_below(key, 11, 2) ? PRECISION_BF16 : PRECISION_FP32;
    job->parallel = p;
    return (uint32_t)parallel_devices(&p);
}

static void all_together(void **state)
{
    (void)state;
    /* jobs in which copies that begin together did not end together, but a bit apart */
    static const uint64_t known[][2] = {{2, 667}, {4, 1391}, {4, 1407}, {3468949724338174379, 2},
                                        {1915816734464525719, 1492}};
    uint64_t seed = support_seed("all together");
    uint32_t folded = 0;
    for (uint32_t c = 0; c < 150 + ARRAY_COUNT(known); c++) {
        uint64_t key = c < 150 ? random_u64(seed, c) : random_u64(known[c - 150][0], known[c - 150][1]);
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        test_parallel_machine(&hardware, random_job(key, &jobs), 1e9 + 1e9 * (double)random_below(key, 20, 50),
                1e-6 * (double)random_below(key, 21, 10));
        test_parallel_plan(&hardware, &jobs, &plan); /* which asks plan_check() */
        struct test_parallel_outcome all = test_parallel_simulate(&plan, true),
            one = test_parallel_simulate(&plan, false);
        if (all.makespan_s < plan.lower_bound_s * (1 - 1e-9))
            fail_msg("case %u: %g s, bound %g s", c, all.makespan_s, plan.lower_bound_s);
        /* the same to the last bit */
        if (memcmp(&all.makespan_s, &one.makespan_s, sizeof all.makespan_s) != 0)
            fail_msg("case %u: %.17g s with all devices, %.17g with %u of them", c, all.makespan_s, one.makespan_s,
                     one.represented);
        assert_int_equal(all.peak_bytes, one.peak_bytes);
        assert_int_equal(all.represented, 0);
        assert_int_equal(all.operations, plan_operations(&plan));
        if (c % 6 == 0) { /* as execution traces; what a share of three rounds up is told in them */
            double back_s = test_chakra_there_and_back(&plan);
            double slack = plan.jobs.jobs[0].parallel.data == 3 ? 1e-3 : 1e-9;
            if (!(fabs(back_s - all.makespan_s) <= slack * all.makespan_s))
                fail_msg("case %u: %.17g s, and as execution traces %.17g", c, all.makespan_s, back_s);
        }
        folded += one.represented > 0;
        if (one.represented > 0) assert_true(one.operations < all.operations);
        plan_release(&plan);
    }
    assert_true(folded > 50);
}

/* Nodes of eight and four, whose stages and groups lie in them or across: with a NIC for each device those fold, with
 * one NIC for all, the copies of a stage's places meet in it, and only replicas fold. Forced algorithms change the
 * time, never the fold. */
static void clusters(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        struct parallel parallel;
        bool folds;
    } cases[] = {
        {"4x dgx-a100-80gb", {.tensor = 8, .pipeline = 2, .data = 2, .chunks = 2, .schedule = PIPELINE_INTERLEAVED},
         true},
        {"4x dgx-a100-80gb", {.tensor = 4, .pipeline = 2, .data = 4, .chunks = 1, .schedule = PIPELINE_1F1B}, true},
        {"4x dgx-a100-80gb",
         {.tensor = 2, .pipeline = 4, .data = 4, .chunks = 1, .schedule = PIPELINE_ZB_H1, .zero = 1}, true},
        {"2x dgx-h100", {.tensor = 1, .pipeline = 1, .data = 16, .chunks = 1, .schedule = PIPELINE_1F1B}, true},
        {"4x p3dn.24xlarge", {.tensor = 8, .pipeline = 4, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B}, false},
        {"4x p3dn.24xlarge", {.tensor = 8, .pipeline = 1, .data = 4, .chunks = 1, .schedule = PIPELINE_1F1B}, true},
        {"4x nc24v3", {.tensor = 4, .pipeline = 2, .data = 2, .chunks = 1, .schedule = PIPELINE_GPIPE}, true},
    };
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        double seconds[PARALLEL_ALGORITHM_COUNT];
        for (uint32_t way = 0; way < PARALLEL_ALGORITHM_COUNT; way++) {
            struct hardware hardware = {0};
            struct job_set jobs;
            struct plan plan = {0};
            struct error err = {0};
            if (hardware_find(cases[c].machine, &hardware, &err)) fail_msg("%s", err.text);
            test_gpt_jobs(&jobs, 1, 8, 512, 256, 2);
            jobs.jobs[0].network.heads = 8;
            jobs.jobs[0].network.head_width = 64;
            jobs.jobs[0].microbatches = 16;
            jobs.jobs[0].parallel = cases[c].parallel;
            jobs.jobs[0].parallel.collective = way;
            test_parallel_plan(&hardware, &jobs, &plan);
            struct test_parallel_outcome all = test_parallel_simulate(&plan, true),
                one = test_parallel_simulate(&plan, false);
            assert_memory_equal(&all.makespan_s, &one.makespan_s, sizeof all.makespan_s);
            assert_int_equal(all.peak_bytes, one.peak_bytes);
            if ((one.represented > 0) != cases[c].folds)
                fail_msg("case %zu: %u devices are represented", c, one.represented);
            seconds[way] = all.makespan_s;
            plan_release(&plan);
        }
        /* each collective by the fastest of these three, in pipelines that cannot run ahead of it */
        if (cases[c].parallel.pipeline > 1) continue;
        assert_true(seconds[PARALLEL_FASTEST] <= seconds[PARALLEL_RING + COLLECTIVE_RING]);
        assert_true(seconds[PARALLEL_FASTEST] <= seconds[PARALLEL_RING + COLLECTIVE_TREE]);
        assert_true(seconds[PARALLEL_FASTEST] <= seconds[PARALLEL_RING + COLLECTIVE_HIERARCHICAL]);
    }
}

/* Two replicas on two nodes with one NIC: what data-parallel ranks exchange, 2 steps of b / 2 over an eighth of
 * the NIC each in eight groups at once, is the difference to one replica. */
static void data_parallel_over_a_nic(void **state)
{
    (void)state;
    uint64_t bytes = 48000000;
    double seconds[2];
    for (uint32_t alone = 0; alone < 2; alone++) {
        struct hardware hardware = {0};
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        if (hardware_find("2x p3dn.24xlarge", &hardware, &err)) fail_msg("%s", err.text);
        test_profile_jobs(&jobs, 1, 8, 1, heavy_layer, &bytes);
        jobs.jobs[0].microbatches = alone ? 8 : 16;
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = alone ? 8 : 16, .chunks = 1,
                                                  .schedule = PIPELINE_1F1B,
                                                  .collective = PARALLEL_RING + COLLECTIVE_HIERARCHICAL};
        test_parallel_plan(&hardware, &jobs, &plan);
        seconds[alone] = test_parallel_simulate(&plan, false).makespan_s;
        plan_release(&plan);
    }
    /* inside of a node as with eight; 2 (N - 1) = 2 steps between nodes of an eighth's half, 12.5e9 / 8 B/s */
    double between_s = 2 * (3e-5 + 8.0 * (double)bytes / 8 / 2 / (12.5e9 / 8));
    test_parallel_near(seconds[0], seconds[1] + between_s);
}

/* A slower link of one device: nothing is folded. */
static void unlike_devices(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    test_parallel_machine(&hardware, 4, 1e10, 0);
    test_gpt_jobs(&jobs, 1, 4, 64, 256, 2);
    jobs.jobs[0].microbatches = 8;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1,
                                              .schedule = PIPELINE_1F1B};
    test_parallel_plan(&hardware, &jobs, &plan);
    double before_s = test_parallel_simulate(&plan, false).makespan_s;
    assert_int_equal(test_parallel_simulate(&plan, false).represented, 2);
    plan.hardware.links[4 + 3].bandwidth.value = 1e8; /* of device 3 */
    assert_int_equal(test_parallel_simulate(&plan, false).represented, 0);
    assert_true(test_parallel_simulate(&plan, false).makespan_s > before_s);
    plan_release(&plan);
}

/* --- by the rules ---------------------------------------------------------------------------- */

/* The rules of plan.h taken literally, for plans without contention: in plan order every operation starts
 * at the end of the latest that it waits for. */
struct range {
    uint64_t first, end;
    double end_s; /* of the last user of the lifetime that had it */
};
struct cell { /* a buffer on a device */
    double written_s, read_s, used_s;
    uint64_t first, end;
    bool live;
};
struct literal {
    const struct plan *plan;
    struct cell *cells;     /* [device][buffer] */
    struct range *ranges;   /* [device][RANGES] */
    uint32_t *range_counts;
    double *stream_s;
};
enum { RANGES = 4096 };

static struct cell *cell_of(struct literal *l, uint32_t device, uint32_t buffer)
{
    return &l->cells[(size_t)device * l->plan->buffer_count + buffer];
}

/* Over the ends of a pipeline a device has the buffer of its own. */
static bool is_other_end(const struct plan_op *op, uint32_t access, uint32_t end)
{
    return op->kind == OP_COLLECTIVE && op->axes == 1u << AXIS_ENDS && access != end;
}

/* Returns the time at which the operation's buffers allow it to start on the device. */
static double buffers_ready_s(struct literal *l, const struct plan_op *op, uint32_t device, uint32_t peer,
                              const uint32_t *layout, uint32_t end)
{
    double ready_s = 0;
    for (uint32_t a = 0; a < op->access_count; a++) {
        if (is_other_end(op, a, end)) continue;
        const struct plan_access *access = &l->plan->accesses[op->first_access + a];
        uint32_t at = op->stream == STREAM_P2P && a == 0 ? peer : device;
        struct cell *cell = cell_of(l, at, access->buffer);
        if (access->flags & ACCESS_ACQUIRE) {
            const struct plan_slot *slot = &l->plan->slots[*layout++];
            *cell = (struct cell){.first = slot->offset_bytes, .end = slot->offset_bytes + slot->bytes, .live = true};
            for (uint32_t r = 0; r < l->range_counts[at]; r++) {
                const struct range *range = &l->ranges[(size_t)at * RANGES + r];
                if (range->first < cell->end && cell->first < range->end) ready_s = fmax(ready_s, range->end_s);
            }
        }
        assert_true(cell->live);
        ready_s = fmax(ready_s, cell->written_s);
        if (access->flags & ACCESS_WRITE) ready_s = fmax(ready_s, cell->read_s);
    }
    return ready_s;
}

static void use_buffers(struct literal *l, const struct plan_op *op, uint32_t device, uint32_t peer, double end_s,
                        uint32_t end)
{
    for (uint32_t a = 0; a < op->access_count; a++) {
        if (is_other_end(op, a, end)) continue;
        const struct plan_access *access = &l->plan->accesses[op->first_access + a];
        uint32_t at = op->stream == STREAM_P2P && a == 0 ? peer : device;
        struct cell *cell = cell_of(l, at, access->buffer);
        if (access->flags & ACCESS_WRITE) cell->written_s = end_s;
        else cell->read_s = fmax(cell->read_s, end_s);
        cell->used_s = fmax(cell->used_s, end_s);
        if (!(access->flags & ACCESS_RELEASE)) continue;
        assert_true(l->range_counts[at] < RANGES);
        l->ranges[(size_t)at * RANGES + l->range_counts[at]++] = (struct range){cell->first, cell->end, cell->used_s};
        cell->live = false;
    }
}

static double duration_s(const struct plan *plan, const struct plan_op *op, uint32_t device, uint32_t peer,
                         uint32_t joined)
{
    const struct hardware *h = &plan->hardware;
    if (op->kind == OP_COPY) return cost_p2p_s(h, peer, device, op->bytes);
    if (op->kind == OP_COMPUTE) {
        const struct plan_work *work = op->work == PLAN_NONE ? NULL : &plan->works[op->work];
        return work ? cost_work_s(h, device, plan->items + work->first_item, work->item_count, NULL) : 0;
    }
    double steps = (op->collective == COLLECTIVE_ALL_REDUCE ? 2.0 : 1.0) * (joined - 1);
    double rate = cost_p2p_bandwidth(h, 0, 1); /* no latency: a ring is never beaten */
    return op->rounds * steps * (double)op->bytes / joined / rate;
}

/* The devices of a gang's group: all that agree with the first in all axes but these. */
static bool same_group(const struct plan_gang *gang, uint32_t axes, uint32_t a, uint32_t b)
{
    for (uint32_t axis = 0; axis < AXIS_COUNT; axis++) {
        if (!(axes & 1u << axis) && a % gang->extents[axis] != b % gang->extents[axis]) return false;
        a /= gang->extents[axis];
        b /= gang->extents[axis];
    }
    return true;
}

static double chunk_literally(struct literal *l, const struct plan_task *task)
{
    const struct plan *plan = l->plan;
    const struct plan_gang *gang = &plan->gangs[task->gang];
    const struct plan_unit *unit = &plan->units[task->unit];
    const uint32_t *layout = plan->layouts + task->layout, size = plan_gang_size(gang);
    double last_s = 0, start_s[64], end_s[64];
    for (uint32_t o = 0; o < unit->op_count; o++) {
        const struct plan_op *op = &plan->ops[unit->first_op + o];
        uint32_t acquires = 0, peers[64];
        for (uint32_t a = 0; a < op->access_count; a++)
            acquires += (plan->accesses[op->first_access + a].flags & ACCESS_ACQUIRE) != 0;
        for (uint32_t i = 0; i < size; i++) {
            uint32_t device = plan->gang_devices[gang->first + i];
            peers[i] = task->peer == PLAN_NONE ? PLAN_NONE
                                                   : plan->gang_devices[plan->gangs[task->peer].first + i];
            start_s[i] = fmax(buffers_ready_s(l, op, device, peers[i], layout, i / (size / gang->extents[AXIS_ENDS])),
                              l->stream_s[plan_stream(plan, device, op->stream)]);
        }
        for (uint32_t i = 0; i < size; i++) {
            uint32_t device = plan->gang_devices[gang->first + i], joined = 1;
            double begin_s = start_s[i];
            for (uint32_t k = 0; op->kind == OP_COLLECTIVE && k < size; k++) {
                if (k == i || !same_group(gang, op->axes, i, k)) continue;
                begin_s = fmax(begin_s, start_s[k]);
                joined++;
            }
            end_s[i] = begin_s + duration_s(plan, op, device, peers[i], joined);
        }
        for (uint32_t i = 0; i < size; i++) {
            uint32_t device = plan->gang_devices[gang->first + i];
            use_buffers(l, op, device, peers[i], end_s[i], i / (size / gang->extents[AXIS_ENDS]));
            l->stream_s[plan_stream(plan, device, op->stream)] = end_s[i];
            last_s = fmax(last_s, end_s[i]);
        }
        layout += acquires;
    }
    return last_s;
}

static double literal_makespan_s(const struct plan *plan)
{
    uint32_t devices = plan->hardware.device_count;
    struct literal l = {.plan = plan};
    double makespan_s = 0;
    l.cells = calloc((size_t)devices * plan->buffer_count, sizeof *l.cells);
    l.ranges = calloc((size_t)devices * RANGES, sizeof *l.ranges);
    l.range_counts = calloc(devices, sizeof *l.range_counts);
    l.stream_s = calloc(plan_stream_count(plan), sizeof *l.stream_s);
    assert_true(l.cells && l.ranges && l.range_counts && l.stream_s);
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t repeat = 0; repeat < plan->segments[s].repeat_count; repeat++)
            for (uint32_t i = 0; i < plan->segments[s].task_count; i++)
                makespan_s = fmax(makespan_s, chunk_literally(&l, &plan->tasks[plan->segments[s].first_task + i]));
    free(l.cells);
    free(l.ranges);
    free(l.range_counts);
    free(l.stream_s);
    return makespan_s;
}

/* Devices share one memory, but their copies do not contend. A job on one device has a resident plan, without gangs. */
static void by_the_rules(void **state)
{
    (void)state;
    uint64_t seed = support_seed("by the rules");
    uint32_t compared = 0;
    for (uint32_t c = 0; c < 60; c++) {
        uint64_t key = random_u64(seed, c);
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        uint32_t devices = random_job(key, &jobs);
        test_hardware(&hardware, devices, UINT64_C(1) << 40, 1e10);
        for (uint32_t d = 0; d < devices; d++) hardware_join(&hardware.devices[d], 1);
        hardware_note_p2p(&hardware);
        test_parallel_plan(&hardware, &jobs, &plan);
        if (plan.gang_count > 0) {
            test_parallel_near(test_parallel_simulate(&plan, c % 2).makespan_s, literal_makespan_s(&plan));
            compared++;
        }
        plan_release(&plan);
    }
    assert_true(compared > 20);
}

/* --- files ----------------------------------------------------------------------------------- */

static void round_trip(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 30; c++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0}, again = {0};
        struct error err = {0};
        test_parallel_machine(&hardware, random_job(random_u64(77, c), &jobs), 1e10, 1e-6);
        test_parallel_plan(&hardware, &jobs, &plan);
        struct json_out *out = json_out_create(NULL);
        size_t length;
        assert_non_null(out);
        plan_write_json(&plan, out);
        const char *text = json_out_text(out, &length);
        if (plan_parse("plan.json", text, length, &again, &err)) fail_msg("%s", err.text);
        assert_int_equal(plan_fingerprint(&plan), plan_fingerprint(&again));
        struct test_parallel_outcome a = test_parallel_simulate(&plan, false),
            b = test_parallel_simulate(&again, false);
        assert_memory_equal(&a.makespan_s, &b.makespan_s, sizeof a.makespan_s);
        json_out_destroy(out);
        plan_release(&plan);
        plan_release(&again);
    }
}

/* --- broken plans ---------------------------------------------------------------------------- */

/* Two stages, two replicas, tensor groups of two; m = 2 on each replica. */
static void whole_plan(struct plan *out, uint32_t schedule)
{
    struct hardware hardware;
    struct job_set jobs;
    *out = (struct plan){0};
    test_parallel_machine(&hardware, 8, 1e10, 0);
    test_gpt_jobs(&jobs, 1, 4, 64, 256, 2);
    jobs.jobs[0].network.heads = 4;
    jobs.jobs[0].network.head_width = 16;
    jobs.jobs[0].microbatches = 4;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 2, .pipeline = 2, .data = 2, .chunks = 1,
                                              .schedule = schedule};
    test_parallel_plan(&hardware, &jobs, out);
}

static void break_rounds(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 0, OP_COLLECTIVE)->rounds++; }
static void break_bytes(struct plan *p) { test_parallel_op(p, PLAN_REDUCE, 0, OP_COLLECTIVE)->bytes /= 2; }
static void break_axes(struct plan *p) { test_parallel_op(p, PLAN_REDUCE, 0, OP_COLLECTIVE)->axes = 1u << AXIS_TENSOR; }
static void break_work(struct plan *p)
{
    p->items[p->works[test_parallel_op(p, PLAN_FORWARD, 1, OP_COMPUTE)->work].first_item].m++;
}
static void break_pass(struct plan *p) { test_parallel_op(p, PLAN_UPDATE, 1, OP_COMPUTE)->pass = PLAN_FORWARD; }
static void break_gang(struct plan *p) { test_parallel_task(p, PLAN_FORWARD, 0, 0)->gang = 1; }
static void break_lone(struct plan *p) { test_parallel_task(p, PLAN_FORWARD, 0, 0)->gang = PLAN_NONE; }
static void break_peer(struct plan *p) { test_parallel_task(p, PLAN_FORWARD, 1, 0)->peer = 1; }
static void break_device(struct plan *p) { p->gang_devices[1] = 0; }
static void break_end(struct plan *p)
{
    p->units[test_parallel_task(p, PLAN_UPDATE, 1, 0)->unit].ends_minibatch ^= true;
}
static void break_repeat(struct plan *p) { p->segments[1].repeat_count = 1; }
static void break_update(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_BACKWARD, 1, 1));
}
static void break_reduce(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 1, 0), test_parallel_task(p, PLAN_BACKWARD, 1, 1));
}
static void break_weight(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_BACKWARD_INPUT, 1, 0),
                       test_parallel_task(p, PLAN_BACKWARD_WEIGHT, 1, 0));
}
static void break_stream(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 0, OP_COMPUTE)->stream = STREAM_GROUP; }
static void break_kind(struct plan *p)
{
    test_parallel_op(p, PLAN_FORWARD, 0, OP_COLLECTIVE)->collective = COLLECTIVE_KIND_COUNT;
}
static void break_memory(struct plan *p)
{
    struct plan_op *op = test_parallel_op(p, PLAN_LOAD, 0, OP_COMPUTE);
    p->buffers[p->accesses[op->first_access].buffer].bytes -= 64;
}
static void break_small(struct plan *p) { p->hardware.devices[6].memory_bytes = 1000; } /* not the first place */
static void break_link(struct plan *p) /* of another host, through whose memory nothing can be staged */
{
    p->hardware.devices[5].network_count = 0;
    p->hardware.devices[5].host = 1;
    p->hardware.host_nodes = 2;
}
static void break_order(struct plan *p) { p->jobs.jobs[0].parallel.chunks = 2; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_rounds, PIPELINE_1F1B, "times all-reduce of 8192 bytes over the tensor group (expected 5)"},
        {break_bytes, PIPELINE_1F1B, "over the data group (expected 1)"},
        {break_axes, PIPELINE_1F1B, "over the tensor group (expected"},
        {break_work, PIPELINE_1F1B, "work: kernel 0 is"},
        {break_pass, PIPELINE_1F1B, "form: a forward in a unit that is about update"},
        {break_gang, PIPELINE_1F1B, "is on gang 1, device 0"},
        {break_lone, PIPELINE_1F1B, "is not on the devices of stage 0"},
        {break_peer, PIPELINE_1F1B, "copies from devices that are not of the previous stage"},
        {break_device, PIPELINE_1F1B, "form: gang 0 has device 0 twice"},
        {break_end, PIPELINE_1F1B, "ends the minibatch too early"},
        {break_repeat, PIPELINE_1F1B, "forward and 2 backward passes and 1 updates (expected 4, 4, 2)"},
        {break_update, PIPELINE_1F1B, "finds gradient of job-0 shard 1, microbatch 1 (expected joined gradient of "
                                      "job-0 shard 1, microbatch 2)"},
        {break_reduce, PIPELINE_1F1B, "finds gradient of job-0 shard 1, microbatch 1 (expected gradient of job-0 "
                                      "shard 1, microbatch 2)"},
        {break_weight, PIPELINE_ZB_H1, "lifetimes: accesses the"},
        {break_stream, PIPELINE_1F1B, "form: a computation on the group stream"},
        {break_kind, PIPELINE_1F1B, "collectives of kind 6"},
        {break_memory, PIPELINE_1F1B, "memory: the state of job-0 shard 0 has"},
        {break_small, PIPELINE_1F1B, "memory: slot 2 ends at byte"},
        {break_small, PIPELINE_1F1B, ", device 6 at 1000"},
        {break_link, PIPELINE_1F1B, "form: device 5 does not reach device 1"},
        {break_order, PIPELINE_1F1B, "form: job-0: schedule '1f1b' with 2 chunks"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

/* --- what does not fit ----------------------------------------------------------------------- */

static void refused(void **state)
{
    (void)state;
    static const struct {
        struct parallel parallel;
        uint64_t microbatches, memory_bytes;
        const char *message;
    } cases[] = {
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B, .first_device = 3,
          .prefetch = 1},
         4, 1u << 30,
         "job 'job-0' runs on devices 3 to 4, and machine 'made-up' has 4"},
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 2, .schedule = PIPELINE_1F1B, .prefetch = 1},
         4, 1u << 30,
         "job 'job-0': schedule '1f1b' with 2 chunks (expected 1; 'interleaved' has several)"},
        {{.tensor = 1, .pipeline = 2, .data = 3, .chunks = 1, .schedule = PIPELINE_1F1B, .prefetch = 1},
         4, 1u << 30,
         "job 'job-0': 4 microbatches on 3 data-parallel replicas (expected a multiple)"},
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_ZB_V, .prefetch = 1},
         4, 1u << 30,
         "job 'job-0': schedule 'zb-v' with 1 chunk (expected 2)"},
        {{.tensor = 3, .pipeline = 1, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B, .prefetch = 1},
         4, 1u << 30,
         "job 'job-0': tensor parallelism of 3 with 4 attention heads (expected a multiple of 3)"},
        {{.tensor = 1, .pipeline = 4, .data = 1, .chunks = 2, .schedule = PIPELINE_INTERLEAVED, .prefetch = 1},
         4, 1u << 30,
         "job 'job-0': 4 layers on 4 stages of 2 chunks (expected at least one each)"},
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B, .prefetch = 1},
         4, 1u << 16, "(expected nothing)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        const struct planner_options options = {.weight_buffers = 0};
        test_parallel_machine(&hardware, 4, 1e10, 0);
        for (uint32_t d = 0; d < 4; d++) hardware.devices[d].memory_bytes = cases[i].memory_bytes;
        test_gpt_jobs(&jobs, 1, 4, 64, 256, 2);
        jobs.jobs[0].network.heads = 4;
        jobs.jobs[0].network.head_width = 16;
        jobs.jobs[0].microbatches = cases[i].microbatches;
        jobs.jobs[0].parallel = cases[i].parallel;
        enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
        if (cases[i].memory_bytes == 1u << 16) {
            assert_int_equal(status, STATUS_INFEASIBLE);
            assert_non_null(strstr(err.text, "job 'job-0' needs "));
            assert_non_null(strstr(err.text, " bytes missing)"));
        } else {
            assert_string_equal(err.text, cases[i].message);
            assert_int_equal(status, STATUS_BAD_INPUT);
        }
        plan_release(&plan);
    }
}

/* Each device has a part of the columns of every expert, of the expert of all tokens, and of blocks without experts. */
static void experts_divide(void **state)
{
    (void)state;
    static const struct {
        uint64_t of_expert, of_all, dense;
        uint32_t pieces;
        const char *message;
    } cases[] = {
        {8, 12, 24, 0, ""},
        {8, 12, 24, 4, ""},
        {7, 12, 24, 0, "tensor parallelism of 2 with 7 columns of the feed-forward part (expected a multiple of 2)"},
        {8, 11, 24, 0, "tensor parallelism of 2 with 11 columns of the part for all tokens (expected a multiple of 2)"},
        {8, 12, 23, 0, "tensor parallelism of 2 with 23 columns of blocks without experts (expected a multiple of 2)"},
        {8, 10, 24, 4, "'tensor_pieces' 4 with 10 columns of the part for all tokens (expected a divisor)"},
        {8, 12, 22, 4, "'tensor_pieces' 4 with 22 columns of blocks without experts (expected a divisor)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char config[512];
        struct job_set jobs;
        struct error err = {0};
        snprintf(config, sizeof config,
                 "{\"model_type\": \"qwen2_moe\", \"num_hidden_layers\": 4, \"hidden_size\": 16, "
                 "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"num_experts\": 3, "
                 "\"num_experts_per_tok\": 1, \"moe_intermediate_size\": %d, "
                 "\"shared_expert_intermediate_size\": %d, \"intermediate_size\": %d, \"decoder_sparse_step\": 2, "
                 "\"max_position_embeddings\": 16, \"vocab_size\": 67}",
                 (int)cases[i].of_expert, (int)cases[i].of_all, (int)cases[i].dense);
        test_network_jobs(&jobs, 1, config, 1);
        jobs.jobs[0].parallel = (struct parallel){.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1,
                                                  .tensor_pieces = cases[i].pieces};
        const enum status status = parallel_check(&jobs.jobs[0], &err);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(status, cases[i].message[0] ? STATUS_BAD_INPUT : STATUS_OK);
        job_set_release(&jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bubbles),    cmocka_unit_test(data_parallel), cmocka_unit_test(all_together),
        cmocka_unit_test(unlike_devices), cmocka_unit_test(round_trip),    cmocka_unit_test(broken),
        cmocka_unit_test(refused),        cmocka_unit_test(by_the_rules),   cmocka_unit_test(experts_divide),
        cmocka_unit_test(clusters),       cmocka_unit_test(data_parallel_over_a_nic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
