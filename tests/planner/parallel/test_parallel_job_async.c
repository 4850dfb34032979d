/*
 * Asynchronous pipelines (label: fast): PipeDream's and 2BW's makespans by closed forms and by a recurrence, the
 * memory that their papers state, the training that they carry out replayed with numbers, broken plans.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

enum { STAGES_MAX = 8, ALIGNED = 4096 };

struct layers {
    struct test_layer of[STAGES_MAX];
};

/* A stage for each layer; `m` microbatches to an update on each of `data` replicas. */
static void make_plan(struct layers *layers, uint32_t schedule, uint32_t stages, uint32_t data, uint64_t m,
                      uint64_t minibatches, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    *out = (struct plan){0};
    test_parallel_machine(&hardware, stages * data, 1e12, 0);
    test_profile_jobs(&jobs, 1, stages, minibatches, test_layer_listed, layers);
    jobs.jobs[0].microbatches = m * data;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = stages, .data = data, .chunks = 1,
                                              .schedule = schedule};
    if (schedule != PIPELINE_PIPEDREAM) jobs.jobs[0].parallel.recompute = RECOMPUTE_FULL;
    test_parallel_plan(&hardware, &jobs, out);
}

static double makespan_s(struct layers *layers, uint32_t schedule, uint32_t stages, uint64_t m, uint64_t minibatches)
{
    struct plan plan;
    make_plan(layers, schedule, stages, 1, m, minibatches, &plan);
    if (stages <= 4 && minibatches * m > 800) assert_true(plan.task_count < minibatches * m); /* stored once */
    double found_s = test_parallel_simulate(&plan, false).makespan_s;
    plan_release(&plan);
    return found_s;
}

/* --- time ------------------------------------------------------------------------------------ */

/* N microbatches over equal stages: (P - 1)(f + b) to fill and drain, N (f + b) in between, whatever the
 * minibatches; a flush would add P - 1 for each of these. Recomputing costs f once more. */
static void equal_stages(void **state)
{
    (void)state;
    struct layers layers;
    const uint64_t forward_ns = 3000000, backward_ns = 5000000;
    for (uint32_t i = 0; i < STAGES_MAX; i++)
        layers.of[i] = (struct test_layer){.forward_ns = forward_ns, .backward_ns = backward_ns, .parameter_bytes = 64};
    for (uint32_t stages = 1; stages <= 6; stages++)
        for (uint32_t trial = 0; trial < 3; trial++) {
            uint64_t minibatches = trial == 0 ? 1 : trial == 1 ? 7 : 900, m = stages + trial;
            double both_s = 1e-9 * (double)(forward_ns + backward_ns);
            test_parallel_near(makespan_s(&layers, PIPELINE_PIPEDREAM, stages, 1, minibatches),
                               (double)(minibatches + stages - 1) * both_s);
            both_s += 1e-9 * (double)forward_ns;
            test_parallel_near(makespan_s(&layers, PIPELINE_2BW, stages, m, minibatches),
                               (double)(minibatches * m + stages - 1) * both_s);
        }
}

/* Of 1F1B with P - 1 - p forward passes to begin with and no flush: each pass when its stage is free and the pass
 * that it needs is done. Written from the paper's figure, not from ticks. */
static double recurrence_s(const struct layers *layers, uint32_t stages, uint64_t count, bool recompute)
{
    double *forward_s = calloc(stages * count, sizeof *forward_s), *backward_s = calloc(stages * count, sizeof(double));
    uint64_t forwards[STAGES_MAX] = {0}, backwards[STAGES_MAX] = {0};
    double free_s[STAGES_MAX] = {0}, end_s = 0;
    assert_true(forward_s && backward_s);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t p = 0; p < stages; p++) {
            uint64_t f = forwards[p], b = backwards[p], ahead = f - b;
            bool forward = f < count && ahead < stages - p &&
                           (ahead < stages - 1 - p || f == 0 || f - b <= stages - 1 - p);
            double f_s = 1e-9 * (double)layers->of[p].forward_ns, b_s = 1e-9 * (double)layers->of[p].backward_ns;
            double *own = forward ? &forward_s[p * count + f] : &backward_s[p * count + b], ready_s;
            if (forward) {
                if (p > 0 && forwards[p - 1] <= f) continue;
                ready_s = p > 0 ? forward_s[(p - 1) * count + f] : 0;
            } else {
                if (b == count || b >= f || (p + 1 < stages && backwards[p + 1] <= b)) continue;
                ready_s = p + 1 < stages ? backward_s[(p + 1) * count + b] : forward_s[p * count + b];
            }
            *own = free_s[p] = fmax(free_s[p], ready_s) + (forward ? f_s : b_s + (recompute ? f_s : 0));
            end_s = fmax(end_s, *own);
            (forward ? forwards : backwards)[p]++;
            moved = true;
        }
    }
    for (uint32_t p = 0; p < stages; p++) assert_true(forwards[p] == count && backwards[p] == count);
    free(forward_s);
    free(backward_s);
    return end_s;
}

/* Random stages follow the recurrence; in the long run only the slowest stage counts. */
static void unequal_stages(void **state)
{
    (void)state;
    uint64_t seed = support_seed("unequal stages");
    for (uint32_t c = 0; c < 60; c++) {
        uint64_t key = random_u64(seed, c);
        struct layers layers;
        uint32_t stages = 1 + (uint32_t)random_below(key, 0, STAGES_MAX);
        uint64_t count = 1 + random_below(key, 1, c % 4 == 0 ? 4000 : 60), slowest_ns = 0;
        for (uint32_t p = 0; p < stages; p++) {
            layers.of[p] = (struct test_layer){.forward_ns = 1000 * (1 + random_below(key, 10 + p, 9)),
                                               .backward_ns = 1000 * (1 + random_below(key, 30 + p, 19)),
                                               .parameter_bytes = 64};
            uint64_t both_ns = layers.of[p].forward_ns + layers.of[p].backward_ns;
            if (both_ns > slowest_ns) slowest_ns = both_ns;
        }
        double found_s = makespan_s(&layers, PIPELINE_PIPEDREAM, stages, 1, count);
        test_parallel_near(found_s, recurrence_s(&layers, stages, count, false));
        if (stages <= 4 && count >= 30)
            test_parallel_near(makespan_s(&layers, PIPELINE_PIPEDREAM, stages, 1, count + 1000),
                               found_s + 1e-6 * (double)slowest_ns);
        uint64_t m = stages + random_below(key, 2, 3), minibatches = 1 + random_below(key, 3, 30);
        test_parallel_near(makespan_s(&layers, PIPELINE_2BW, stages, m, minibatches),
                           recurrence_s(&layers, stages, m * minibatches, true));
    }
}

/* --- memory ---------------------------------------------------------------------------------- */

static uint64_t part_bytes(uint64_t bytes)
{
    return bytes > 0 ? bytes : MEMORY_ALIGNMENT; /* an empty range is one all the same */
}

/*
 * W, A and I: weights, activations and input of a stage, all stages equal, d = P. By arXiv 2006.09503, section 3.3,
 * plus the memory that it leaves out (gradients G and the optimizer's states S; boundaries on their way out and
 * gradients of boundaries, two each):
 *
 *     pipedream          (P - p) W + (P - p) A      the first stage, which has most: d W + d A
 *     2bw, recomputing   2 W + A + d I              on the second stage: the first one's input is the batch
 *     gpipe, recomputing W + A + m I
 */
static void memory_of_papers(void **state)
{
    (void)state;
    const uint64_t weight = 7 * ALIGNED, activations = 13 * ALIGNED, input = 3 * ALIGNED;
    struct layers layers;
    for (uint32_t i = 0; i < STAGES_MAX; i++)
        layers.of[i] = (struct test_layer){.forward_ns = 1000, .backward_ns = 2000, .parameter_bytes = weight,
                                           .boundary_bytes = input, .activation_bytes = activations};
    for (uint32_t stages = 2; stages <= 6; stages++)
        for (uint32_t schedule = 0; schedule < 3; schedule++) {
            static const uint32_t schedules[] = {PIPELINE_PIPEDREAM, PIPELINE_2BW, PIPELINE_GPIPE};
            bool dream = schedule == 0, flush = schedule == 2;
            uint64_t m = dream ? 1 : 2 * stages, d = stages;
            struct plan plan;
            make_plan(&layers, schedules[schedule], stages, 1, m, dream ? 40 : 5, &plan);
            struct rank_state each = parallel_state(&plan.jobs.jobs[0], parallel_layers(&plan.jobs.jobs[0], 1));
            assert_int_equal(each.weight_bytes, weight);
            uint64_t apart = flush ? each.state_bytes : part_bytes(each.state_bytes);
            for (uint32_t p = 0; p < stages; p++) {
                uint64_t kept = flush ? m : d - p, versions = dream ? d - p : flush ? 1 : 2;
                uint64_t inputs = p == 0 ? 0 : flush ? m : kept + 1;
                uint64_t outputs = p + 1 == stages ? 0 : flush ? m : kept;
                uint64_t gradients = (uint64_t)((p > 0) + (p + 1 < stages)) * (flush ? 1 : 2);
                /* recomputed activations take the workspace; nothing else is kept then */
                uint64_t passes = dream ? kept * activations + MEMORY_ALIGNMENT
                                        : activations + kept * MEMORY_ALIGNMENT;
                uint64_t expected = versions * weight + each.gradient_bytes + apart + passes +
                                    (inputs + outputs + gradients) * input;
                if (flush) { /* variants follow from the order; not fewer than the paper's */
                    assert_true(plan_device_bytes(&plan, p) <= expected + (2 * m + 4) * input);
                    assert_true(plan_device_bytes(&plan, p) >= weight + activations + (p > 0 ? m * input : 0));
                    continue;
                }
                assert_int_equal(plan_device_bytes(&plan, p), expected);
                if (p == 1 && !dream) assert_int_equal(versions * weight + inputs * input, 2 * weight + d * input);
                if (p == 0 && dream)
                    assert_int_equal(versions * weight + kept * activations, d * (weight + activations));
            }
            test_parallel_simulate(&plan, false); /* which holds peaks to this */
            plan_release(&plan);
        }
}

/* --- the training ----------------------------------------------------------------------------- */

/* Weights are numbers, in the plan's buffers; the gradient of microbatch n at w is w (1 + n mod 5) + n. */
struct replay {
    const struct plan *plan;
    double *held;                     /* per buffer */
    double gradient[STAGES_MAX];
    uint64_t forwards[STAGES_MAX], backwards[STAGES_MAX];
    double forward_read[STAGES_MAX][64]; /* by microbatch mod 64: what the forward pass read */
};

static double slope(double w, uint64_t n)
{
    return w * (1 + (double)(n % 5)) + (double)n;
}
static const double rate = 0.01;

static void replay_unit(struct replay *x, const struct plan_unit *unit)
{
    const struct plan *plan = x->plan;
    double *from = NULL, *to = NULL;
    uint32_t r = unit->shard;
    for (uint32_t o = 0; o < unit->op_count; o++) {
        const struct plan_op *op = &plan->ops[unit->first_op + o];
        for (uint32_t a = 0; op->kind == OP_COMPUTE && a < op->access_count; a++) {
            const struct plan_access *access = &plan->accesses[op->first_access + a];
            if (plan->buffers[access->buffer].kind != BUFFER_PARAMETERS) continue;
            if (access->flags & ACCESS_READ) from = &x->held[access->buffer];
            if (access->flags & ACCESS_WRITE) to = &x->held[access->buffer];
        }
    }
    if (unit->pass == PLAN_LOAD) *to = 1 + r;
    if (unit->pass == PLAN_FORWARD) x->forward_read[r][x->forwards[r]++ % 64] = *from;
    if (unit->pass == PLAN_BACKWARD) {
        uint64_t n = x->backwards[r]++;
        assert_true(*from == x->forward_read[r][n % 64]);
        x->gradient[r] += slope(*from, n);
    }
    if (unit->pass == PLAN_UPDATE) {
        *to = *from - rate * x->gradient[r];
        x->gradient[r] = 0;
    }
}

/* Stage by stage W(t+1) = W(t) - v grad f(W(max(t - s, 0))): s = P - 1 - p for pipedream, 1 for 2bw. The weights that
 * STORE finds are those, to the last bit. */
static void recurrences_of_papers(void **state)
{
    (void)state;
    struct layers layers;
    for (uint32_t i = 0; i < STAGES_MAX; i++)
        layers.of[i] = (struct test_layer){.forward_ns = 1000, .backward_ns = 2000, .parameter_bytes = 64};
    for (uint32_t c = 0; c < 40; c++) {
        uint32_t stages = 1 + c % 5, schedule = c / 5 % 2 ? PIPELINE_2BW : PIPELINE_PIPEDREAM;
        uint64_t m = schedule == PIPELINE_2BW ? stages + c % 3 : 1, minibatches = 1 + c * c / 4;
        struct plan plan;
        make_plan(&layers, schedule, stages, 1, m, minibatches, &plan);
        struct replay x = {.plan = &plan, .held = calloc(plan.buffer_count, sizeof(double))};
        double *versions = calloc(minibatches + 1, sizeof *versions);
        assert_true(x.held && versions);
        for (uint32_t s = 0; s < plan.segment_count; s++)
            for (uint32_t k = 0; k < plan.segments[s].repeat_count; k++)
                for (uint32_t i = 0; i < plan.segments[s].task_count; i++)
                    replay_unit(&x, &plan.units[plan.tasks[plan.segments[s].first_task + i].unit]);
        for (uint32_t r = 0; r < stages; r++) {
            uint64_t stale = schedule == PIPELINE_2BW ? 1 : stages - 1 - r;
            versions[0] = 1 + r;
            for (uint64_t t = 0; t < minibatches; t++) {
                double sum = 0;
                for (uint64_t n = t * m; n < (t + 1) * m; n++) sum += slope(versions[t > stale ? t - stale : 0], n);
                versions[t + 1] = versions[t] - rate * sum;
            }
            const struct plan_unit *store = &plan.units[test_parallel_task(&plan, PLAN_STORE, r, 0)->unit];
            const struct plan_op *op = &plan.ops[store->first_op];
            bool found = false;
            for (uint32_t a = 0; a < op->access_count; a++) {
                uint32_t b = plan.accesses[op->first_access + a].buffer;
                if (plan.buffers[b].kind != BUFFER_PARAMETERS) continue;
                assert_true(x.held[b] == versions[minibatches]);
                found = true;
            }
            assert_true(found);
        }
        free(versions);
        free(x.held);
        plan_release(&plan);
    }
}

/* --- broken plans ----------------------------------------------------------------------------- */

static void whole_plan(struct plan *out, uint32_t schedule)
{
    struct layers layers;
    for (uint32_t i = 0; i < STAGES_MAX; i++)
        layers.of[i] = (struct test_layer){.forward_ns = 1000, .backward_ns = 2000, .parameter_bytes = 64,
                                           .boundary_bytes = 64, .activation_bytes = 64};
    make_plan(&layers, schedule, 3, 2, schedule == PIPELINE_2BW ? 3 : 1, 6, out);
}

/* Makes the unit's computation read another version. */
static void shift_version(struct plan *p, uint32_t pass, uint32_t chunk, uint32_t n, uint32_t by)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, pass, chunk, n)->unit];
    for (uint32_t o = 0; o < unit->op_count; o++) {
        const struct plan_op *op = &p->ops[unit->first_op + o];
        for (uint32_t a = 0; op->kind == OP_COMPUTE && a < op->access_count; a++) {
            struct plan_access *access = &p->accesses[op->first_access + a];
            const struct plan_buffer *b = &p->buffers[access->buffer];
            if (b->kind != BUFFER_PARAMETERS || !(access->flags & ACCESS_READ)) continue;
            for (uint32_t k = 0; k < p->buffer_count; k++)
                if (p->buffers[k].kind == BUFFER_PARAMETERS && p->buffers[k].shard == chunk &&
                    p->buffers[k].variant == (b->variant + by) % 3) {
                    access->buffer = k;
                    return;
                }
        }
    }
    fail_msg("no version to shift");
}
/* Passes forward with the weights that the next update of the stage makes: not as stale as stated. */
static void break_fresh(struct plan *p) { shift_version(p, PLAN_FORWARD, 0, 4, 1); }
/* Passes backward with the newest version, not the forward pass's. */
static void break_two_versions(struct plan *p) { shift_version(p, PLAN_BACKWARD, 0, 3, 2); }
static void break_sum(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 0, 0), test_parallel_task(p, PLAN_BACKWARD, 0, 3));
}
static void break_count(struct plan *p) { p->jobs.jobs[0].minibatches = 7; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_fresh, PIPELINE_PIPEDREAM, "job-0 shard 0 forward): training: finds weights of job-0 shard 0, version"},
        {break_two_versions, PIPELINE_PIPEDREAM, "job-0 shard 0 backward): training: finds weights of job-0 shard 0, "
                                                 "version"},
        {break_sum, PIPELINE_2BW, "training: finds reduced gradient of job-0 shard 0, microbatch 3 (expected gradient "
                                  "of job-0 shard 0, microbatch 3)"},
        {break_count, PIPELINE_PIPEDREAM, "6 forward and 6 backward passes and 6 updates (expected 7, 7, 7)"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t schedule, stages, zero;
        uint64_t microbatches;
        const char *message;
    } cases[] = {
        {PIPELINE_PIPEDREAM, 2, 0, 2,
         "schedule 'pipedream' with 2 microbatches of a replica (expected 1: it updates after each)"},
        {PIPELINE_2BW, 3, 0, 2, "schedule '2bw' with 2 microbatches of a replica on 3 stages (expected at least one "
                                "for each stage)"},
        {PIPELINE_2BW, 2, 1, 4, "schedule '2bw' with 'zero' 1 (expected 0: every rank has several versions)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct job_set jobs;
        struct error err = {0};
        test_gpt_jobs(&jobs, 1, 4, 64, 256, 2);
        jobs.jobs[0].microbatches = cases[i].microbatches;
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = cases[i].stages, .data = 1, .chunks = 1,
                                                  .schedule = cases[i].schedule, .zero = cases[i].zero};
        assert_int_equal(parallel_check(&jobs.jobs[0], &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
        job_set_release(&jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_stages),          cmocka_unit_test(unequal_stages), cmocka_unit_test(memory_of_papers),
        cmocka_unit_test(recurrences_of_papers), cmocka_unit_test(broken),         cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
