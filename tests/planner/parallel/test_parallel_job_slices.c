/*
 * Sequences in slices of tokens (label: fast): TeraPipe's programme against all slicings, what a slice computes and
 * keeps against the whole, makespans by the closed form, broken plans.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_work.h"
#include "planner/parallel/pipeline/slice_partition.h"
#include "tests/support/planner/support_parallel.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

/* --- the programme ---------------------------------------------------------------------------- */

struct made_up {
    double constant, each, square; /* of a slice, a token, a pair of tokens of which one sees the other */
    uint64_t key;
    uint32_t noise;
};

static double made_up_s(void *context, uint32_t begin, uint32_t end)
{
    const struct made_up *m = context;
    double i = end - begin, j = begin;
    uint64_t key = (uint64_t)begin << 32 | end;
    return m->constant + m->each * i + m->square * (i * (i + 1) / 2 + i * j) +
           (m->noise ? (double)random_below(m->key, key, m->noise) : 0);
}

/* A boundary that is passed on has a latency, and a length. */
static double made_up_send_s(void *context, uint32_t begin, uint32_t end)
{
    const struct made_up *m = context;
    return 0.4 * m->constant + 1.7 * m->each * (end - begin);
}

/* All slicings of up to 12 units; bit u of `cuts`: a slice ends after unit u. */
static double best_s(const struct slice_request *request)
{
    uint32_t units = (request->tokens + request->granularity - 1) / request->granularity;
    double best = INFINITY;
    for (uint32_t cuts = 0; cuts < 1u << (units - 1); cuts++) {
        double sum = 0, most = 0;
        for (uint32_t u = 0, begin = 0; u < units; u++) {
            uint32_t end = u + 1 == units ? request->tokens : (u + 1) * request->granularity;
            if (u + 1 < units && !(cuts >> u & 1)) continue;
            double one_s = request->seconds(request->context, begin, end);
            sum += one_s;
            most = fmax(most, one_s + (request->sends ? request->sends(request->context, begin, end) : 0));
            begin = end;
        }
        best = fmin(best, (double)request->repeats * sum + (request->stages - 1) * most);
    }
    return best;
}

static void slices_are_best(void **state)
{
    (void)state;
    uint64_t seed = support_seed("slices are best");
    uint32_t several = 0;
    for (uint32_t c = 0; c < 200; c++) {
        uint64_t key = random_u64(seed, c);
        struct made_up times = {1 + (double)random_below(key, 0, 60), 1 + (double)random_below(key, 1, 5),
                                0.1 * (double)random_below(key, 2, 10), key, c % 2 ? 40 : 0};
        struct slice_request request = {.tokens = 1 + (uint32_t)random_below(key, 3, 60), .granularity = 5,
                                        .stages = 1 + (uint32_t)random_below(key, 4, 20),
                                        .repeats = 1 + random_below(key, 5, 4), .seconds = made_up_s,
                                        .context = &times};
        if (random_below(key, 6, 2)) request.sends = made_up_send_s;
        struct slice_partition found;
        struct error err = {0};
        if (slice_partition_find(&request, &found, &err)) fail_msg("%s", err.text);
        double best = best_s(&request), sum = 0, most = 0;
        uint32_t at = 0;
        for (uint32_t s = 0; s < found.count; s++) {
            uint32_t end = at + found.tokens[s];
            double one_s = made_up_s(&times, at, end);
            sum += one_s;
            most = fmax(most, one_s + (request.sends ? made_up_send_s(&times, at, end) : 0));
            at = end;
        }
        assert_int_equal(at, request.tokens);
        assert_true(fabs((double)request.repeats * sum + (request.stages - 1) * most - found.seconds) <= 1e-12 * best);
        if (!(fabs(found.seconds - best) <= 1e-12 * best))
            fail_msg("case %u: %.17g, best %.17g", c, found.seconds, best);
        several += found.count > 1;
    }
    assert_true(several > 50);
}

/* With one stage a sequence is not cut; with times that grow towards the end, later slices are no longer. */
static void shape_of_slices(void **state)
{
    (void)state;
    struct made_up times = {.constant = 20, .each = 1, .square = 0.05};
    struct slice_request request = {.tokens = 640, .granularity = 10, .stages = 1, .repeats = 1,
                                    .seconds = made_up_s, .context = &times};
    struct slice_partition found;
    struct error err = {0};
    assert_int_equal(slice_partition_find(&request, &found, &err), STATUS_OK);
    assert_int_equal(found.count, 1);
    request.stages = 16;
    assert_int_equal(slice_partition_find(&request, &found, &err), STATUS_OK);
    assert_true(found.count > 4 && found.tokens[0] > found.tokens[found.count - 2]);
}

/* --- a slice ----------------------------------------------------------------------------------- */

static double flops_of(const struct job *job, enum parallel_pass pass)
{
    struct work_item items[PARALLEL_WORK_MAX];
    uint32_t count = parallel_work(job, support_all_layers(job), pass, items);
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += work_item_flops(&items[i]);
    return sum;
}

/* The slices' products are the sequence's, exactly; so are boundaries. Activations are, but for attention's weights:
 * a slice's i rows see j + i tokens, together not all T T pairs. */
static void slices_add_up(void **state)
{
    (void)state;
    struct job job = support_parallel_job(support_preset("gpt2"), 2, 1, 1);
    struct parallel *p = &job.parallel;
    p->schedule = PIPELINE_TERAPIPE;
    p->slices = 3;
    p->slice_tokens[0] = (uint32_t)job.sequence / 2;
    p->slice_tokens[1] = (uint32_t)job.sequence / 8;
    p->slice_tokens[2] = (uint32_t)job.sequence - p->slice_tokens[0] - p->slice_tokens[1];
    for (uint32_t recompute = 0; recompute < RECOMPUTE_COUNT; recompute++) {
        p->recompute = recompute;
        for (enum parallel_pass pass = PARALLEL_FORWARD; pass <= PARALLEL_WEIGHT; pass++) {
            struct job whole = job;
            double sum = 0;
            whole.parallel.slices = 0;
            for (uint32_t s = 0; s < 3; s++) {
                struct job slice = parallel_slice(&job, s);
                sum += flops_of(&slice, pass);
            }
            assert_true(fabs(sum / flops_of(&whole, pass) - 1) < 1e-12);
        }
        uint64_t kept = 0, boundary = 0, pairs = 0, begin = 0;
        for (uint32_t s = 0; s < 3; s++) {
            struct job slice = parallel_slice(&job, s);
            kept += parallel_kept_bytes(&slice, support_all_layers(&job), false);
            boundary += parallel_boundary_bytes(&slice, 0);
            pairs += p->slice_tokens[s] * (begin + p->slice_tokens[s]);
            begin += p->slice_tokens[s];
        }
        uint64_t scores = 12 * 2 * 12 * 2 * (job.sequence * job.sequence - pairs); /* blocks, B, H, bytes */
        assert_int_equal(boundary, parallel_boundary_bytes(&job, 0));
        assert_int_equal(kept + (recompute == RECOMPUTE_NONE ? scores : 0),
                         parallel_kept_bytes(&job, support_all_layers(&job), false));
    }
}

/* --- makespans --------------------------------------------------------------------------------- */

enum { FORWARD_NS = 4800000, BACKWARD_NS = 9600000, TOKENS = 48 };

static struct test_layer uniform_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job, (void)layer;
    return (struct test_layer){.forward_ns = FORWARD_NS, .backward_ns = BACKWARD_NS, .activation_bytes = 4800};
}

/* Equal stages, nothing to send: M sum of (f + b) + (K - 1)(max f + max b); minibatches one after the other, the
 * first stage of the next beginning when it has updated. */
static void closed_form(void **state)
{
    (void)state;
    uint64_t seed = support_seed("closed form");
    for (uint32_t c = 0; c < 60; c++) {
        uint64_t key = random_u64(seed, c);
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct parallel p = {.tensor = 1, .pipeline = 1 + (uint32_t)random_below(key, 0, 6), .data = 1, .chunks = 1,
                             .schedule = PIPELINE_TERAPIPE};
        uint64_t microbatches = 1 + random_below(key, 1, 3);
        uint32_t longest = 0;
        for (uint32_t left = TOKENS; left > 0; left -= p.slice_tokens[p.slices++]) {
            p.slice_tokens[p.slices] = 1 + (uint32_t)random_below(key, 10 + p.slices, left < 17 ? left : 17);
            if (p.slice_tokens[p.slices] > longest) longest = p.slice_tokens[p.slices];
        }
        test_parallel_machine(&hardware, p.pipeline, 1e12, 0);
        test_profile_jobs(&jobs, 1, p.pipeline, 1, uniform_layer, NULL);
        jobs.jobs[0].microbatches = microbatches;
        jobs.jobs[0].sequence = TOKENS;
        jobs.jobs[0].parallel = p;
        test_parallel_plan(&hardware, &jobs, &plan);
        double both_s = 1e-9 * (FORWARD_NS + BACKWARD_NS);
        test_parallel_near(test_parallel_simulate(&plan, false).makespan_s,
                           both_s * ((double)microbatches + (p.pipeline - 1) * (double)longest / TOKENS));
        plan_release(&plan);
    }
}

/* The planner's choice for a network of 12 blocks on 4 stages ends no later than the uncut sequence. */
static void planners_choice(void **state)
{
    (void)state;
    double seconds[2];
    for (uint32_t uncut = 0; uncut < 2; uncut++) {
        struct hardware hardware = {0};
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        if (hardware_find("4x h100-sxm5-80gb", &hardware, &err)) fail_msg("%s", err.text);
        test_gpt_jobs(&jobs, 1, 12, 2048, 256, 1);
        struct job *job = &jobs.jobs[0];
        job->network.heads = 16;
        job->network.head_width = 128;
        job->network.positions = job->sequence = 4096;
        job->microbatches = 1;
        job->precision = PRECISION_BF16;
        job->parallel = (struct parallel){.tensor = 1, .pipeline = 4, .data = 1, .chunks = 1,
                                          .schedule = uncut ? PIPELINE_GPIPE : PIPELINE_TERAPIPE};
        test_parallel_plan(&hardware, &jobs, &plan);
        if (!uncut) assert_true(plan.jobs.jobs[0].parallel.slices > 1);
        seconds[uncut] = test_parallel_simulate(&plan, false).makespan_s;
        plan_release(&plan);
    }
    assert_true(seconds[0] < 0.7 * seconds[1]);
}

/* --- broken plans ------------------------------------------------------------------------------ */

static void whole_plan(struct plan *out, uint32_t variant)
{
    struct hardware hardware;
    struct job_set jobs;
    (void)variant;
    *out = (struct plan){0};
    test_parallel_machine(&hardware, 4, 1e10, 0);
    test_gpt_jobs(&jobs, 1, 4, 64, 256, 2);
    jobs.jobs[0].network.heads = 4;
    jobs.jobs[0].network.head_width = 16;
    jobs.jobs[0].microbatches = 4;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1,
                                              .schedule = PIPELINE_TERAPIPE, .slices = 3, .slice_tokens = {8, 4, 4}};
    test_parallel_plan(&hardware, &jobs, out);
}

static void break_slice(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 0, OP_COMPUTE)->slice = 1; }
static void break_many(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 0, OP_COMPUTE)->slice = 3; }
static void break_turn(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_FORWARD, 0, 1), test_parallel_task(p, PLAN_FORWARD, 0, 2));
}
static void break_back(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_BACKWARD, 1, 0), test_parallel_task(p, PLAN_BACKWARD, 1, 1));
}
static void break_copy(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 1, OP_COPY)->bytes /= 2; }
static void break_sum(struct plan *p) { p->jobs.jobs[0].parallel.slice_tokens[1] = 5; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_slice, 0, "job-0 shard 0 forward): work: has 10 kernels (expected 12)"},
        {break_many, 0, "form: slice 3 in a unit that is about slice 3 of 3"},
        {break_turn, 0, "training: "},
        {break_back, 0, "training: finds"},
        {break_copy, 0, "job-0 shard 1"},
        {break_sum, 0, "form: job-0: slices of 17 tokens in all (expected 16, the sequence)"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t schedule, slices, tensor;
        bool sequence, sees_all;
        const char *message;
    } cases[] = {
        {PIPELINE_1F1B, 2, 1, false, false, "schedule '1f1b' with 'slices' (expected none; 'terapipe' has them)"},
        {PIPELINE_TERAPIPE, 2, 1, false, false, "slices of 12 tokens in all (expected 16, the sequence)"},
        {PIPELINE_TERAPIPE, 0, 2, true, false, "schedule 'terapipe' with sequence parallelism (expected none)"},
        {PIPELINE_TERAPIPE, 0, 1, false, true,
         "schedule 'terapipe' for a network whose tokens see later tokens (expected gpt2 or llama)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct job_set jobs;
        struct error err = {0};
        test_gpt_jobs(&jobs, 1, 4, 64, 256, 2);
        if (cases[i].sees_all) jobs.jobs[0].network.causal = false;
        jobs.jobs[0].parallel = (struct parallel){.tensor = cases[i].tensor, .pipeline = 2, .data = 1, .chunks = 1,
                                                  .schedule = cases[i].schedule, .sequence = cases[i].sequence,
                                                  .slices = cases[i].slices, .slice_tokens = {8, 4}};
        assert_int_equal(parallel_check(&jobs.jobs[0], &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
        job_set_release(&jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_best), cmocka_unit_test(shape_of_slices), cmocka_unit_test(slices_add_up),
        cmocka_unit_test(closed_form),     cmocka_unit_test(planners_choice), cmocka_unit_test(broken),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
