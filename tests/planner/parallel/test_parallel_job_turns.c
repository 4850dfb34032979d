/*
 * Synchronous pipelines whose stages have unequal numbers of replicas (label: fast): makespans by closed forms and by a
 * recurrence, equal replicas against data parallelism, places for microbatches under way, the training that they carry
 * out replayed with numbers, broken plans, refused jobs. (Asynchronous ones: test_parallel_job_replicas.c.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

enum { STAGES_MAX = 5, REPLICAS_MAX = 6, MICROBATCHES_MAX = 40 };

struct layers {
    struct test_layer of[STAGES_MAX];
};

struct shape {
    uint32_t stages, replicas[STAGES_MAX];
};

static uint32_t sum_of(const struct shape *shape, uint32_t from)
{
    uint32_t sum = 0;
    for (uint32_t p = from; p < shape->stages; p++) sum += shape->replicas[p];
    return sum;
}

static uint32_t most_of(const struct shape *shape)
{
    uint32_t most = 0;
    for (uint32_t p = 0; p < shape->stages; p++)
        if (shape->replicas[p] > most) most = shape->replicas[p];
    return most;
}

/* Under way on each replica of a stage, at most. */
static uint32_t depth_of(const struct shape *shape, uint32_t p, uint32_t schedule)
{
    if (schedule == PIPELINE_GPIPE && shape->stages > 1) return MICROBATCHES_MAX;
    return (sum_of(shape, p) + shape->replicas[p] - 1) / shape->replicas[p];
}

/* Returns the number of microbatches of replica `d`. */
static uint32_t own_of(const struct shape *shape, uint32_t p, uint32_t d, uint32_t microbatches)
{
    uint32_t count = 0;
    for (uint32_t n = d; n < microbatches; n += shape->replicas[p]) count++;
    return count;
}

/* Makes a plan with a chunk of the network for each stage. */
static void make_plan(struct layers *layers, struct parallel parallel, uint32_t microbatches, uint64_t minibatches,
                      double rate, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    *out = (struct plan){0};
    parallel.tensor = parallel.chunks = 1;
    if (parallel.data == 0) parallel.data = 1;
    test_parallel_machine(&hardware, (uint32_t)parallel_devices(&parallel), rate, 0);
    test_profile_jobs(&jobs, 1, parallel.pipeline, minibatches, test_layer_listed, layers);
    jobs.jobs[0].microbatches = microbatches;
    jobs.jobs[0].parallel = parallel;
    test_parallel_plan(&hardware, &jobs, out);
}

static struct parallel parallel_of(const struct shape *shape, uint32_t schedule)
{
    struct parallel p = {.pipeline = shape->stages, .schedule = schedule, .replicated = shape->stages, .tensor = 1,
                         .data = 1};
    memcpy(p.replicas, shape->replicas, sizeof shape->replicas);
    return p;
}

static double makespan_s(struct layers *layers, const struct shape *shape, uint32_t schedule, uint32_t microbatches,
                         double rate)
{
    struct plan plan;
    make_plan(layers, parallel_of(shape, schedule), microbatches, 1, rate, &plan);
    double found_s = test_parallel_simulate(&plan, false).makespan_s;
    assert_true(test_parallel_simulate(&plan, true).makespan_s == found_s);
    assert_true(plan.lower_bound_s <= found_s * (1 + 1e-9));
    plan_release(&plan);
    return found_s;
}

static struct test_layer layer_ms(uint64_t forward, uint64_t backward)
{
    return (struct test_layer){.forward_ns = 1000000 * forward, .backward_ns = 1000000 * backward};
}

/* --- time ------------------------------------------------------------------------------------- */

/*
 * Seven microbatches, which three replicas do not divide. Where the last stage is the slowest it never waits: 2 + 7 (2
 * + 3) + 3 = 40 ms. A first stage that is the slowest never waits with 1f1b: 7 (2 + 3) = 35 ms; with gpipe it waits for
 * the replica that passes forward over the last microbatch and then back over the first: 5 ms more. One stage is as
 * slow as the replica with three microbatches.
 */
static void closed_forms(void **state)
{
    (void)state;
    struct layers same = {{layer_ms(2, 3), layer_ms(2, 3)}}, one = {{layer_ms(4, 7)}};
    const struct shape last = {2, {3, 1}}, first = {2, {1, 3}}, alone = {1, {3}};
    test_parallel_near(makespan_s(&same, &last, PIPELINE_1F1B, 7, 1e18), 40e-3);
    test_parallel_near(makespan_s(&same, &last, PIPELINE_GPIPE, 7, 1e18), 40e-3);
    test_parallel_near(makespan_s(&same, &first, PIPELINE_1F1B, 7, 1e18), 35e-3);
    test_parallel_near(makespan_s(&same, &first, PIPELINE_GPIPE, 7, 1e18), 40e-3);
    test_parallel_near(makespan_s(&one, &alone, PIPELINE_1F1B, 7, 1e18), 33e-3);
}

/* The first stage passes back last. Its two replicas' sum of gradients of b bytes, each of which sends b / 2 twice,
 * is not hidden by anything; nothing else takes its time on links. */
static void exchange(void **state)
{
    (void)state;
    const struct shape shape = {2, {2, 1}};
    struct layers layers = {{layer_ms(2, 3), layer_ms(1, 2)}};
    layers.of[0].parameter_bytes = 4 * UINT64_C(100000);
    for (uint32_t m = 3; m <= 8; m++)
        test_parallel_near(makespan_s(&layers, &shape, PIPELINE_1F1B, m, 1e8),
                           makespan_s(&layers, &shape, PIPELINE_1F1B, m, 1e18) + 4e5 / 1e8);
}

/* The schedule from its definition: a replica passes forward as long as it may have one more under way, else back;
 * nothing takes time on links. */
struct recurrence {
    const struct layers *layers;
    const struct shape *shape;
    uint32_t schedule, microbatches;
    double forward_s[STAGES_MAX][MICROBATCHES_MAX], backward_s[STAGES_MAX][MICROBATCHES_MAX]; /* 0: not yet */
    double free_s[STAGES_MAX][REPLICAS_MAX];
    uint32_t forwards[STAGES_MAX][REPLICAS_MAX], backwards[STAGES_MAX][REPLICAS_MAX];
};

static bool pass(struct recurrence *x, uint32_t p, uint32_t d)
{
    uint32_t *f = &x->forwards[p][d], *b = &x->backwards[p][d], all = own_of(x->shape, p, d, x->microbatches);
    bool forward = *f < all && *f - *b < depth_of(x->shape, p, x->schedule);
    uint32_t n = (forward ? *f : *b) * x->shape->replicas[p] + d;
    if (*b == all) return false;
    double from_s = forward && p == 0 ? -1 : forward ? x->forward_s[p - 1][n]
                  : p + 1 < x->shape->stages ? x->backward_s[p + 1][n] : x->forward_s[p][n];
    if (from_s == 0) return false;
    uint64_t ns = forward ? x->layers->of[p].forward_ns : x->layers->of[p].backward_ns;
    x->free_s[p][d] = fmax(x->free_s[p][d], from_s) + 1e-9 * (double)ns;
    (forward ? x->forward_s : x->backward_s)[p][n] = x->free_s[p][d];
    (*(forward ? f : b))++;
    return true;
}

static double recurrence_s(const struct layers *layers, const struct shape *shape, uint32_t schedule,
                           uint32_t microbatches)
{
    struct recurrence x = {.layers = layers, .shape = shape, .schedule = schedule, .microbatches = microbatches};
    double end_s = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t p = 0; p < shape->stages; p++)
            for (uint32_t d = 0; d < shape->replicas[p]; d++) moved |= pass(&x, p, d);
    }
    for (uint32_t n = 0; n < microbatches; n++) {
        assert_true(x.backward_s[0][n] > 0);
        end_s = fmax(end_s, x.backward_s[0][n]);
    }
    return end_s;
}

static void random_case(uint64_t key, struct layers *layers, struct shape *shape, uint32_t *microbatches)
{
    *layers = (struct layers){0};
    *shape = (struct shape){.stages = 1 + (uint32_t)random_below(key, 0, STAGES_MAX)};
    for (uint32_t p = 0; p < shape->stages; p++) {
        layers->of[p] = layer_ms(1 + random_below(key, 10 + p, 9), 1 + random_below(key, 30 + p, 19));
        layers->of[p].boundary_bytes = layers->of[p].activation_bytes = layers->of[p].parameter_bytes = 64;
        shape->replicas[p] = 1 + (uint32_t)random_below(key, 50 + p, REPLICAS_MAX);
    }
    *microbatches = most_of(shape) + (uint32_t)random_below(key, 1, MICROBATCHES_MAX - REPLICAS_MAX);
}

static void unequal_stages(void **state)
{
    (void)state;
    uint64_t seed = support_seed("unequal stages that flush");
    for (uint32_t c = 0; c < 200; c++) {
        uint64_t key = random_u64(seed, c);
        struct layers layers;
        struct shape shape;
        uint32_t m, schedule = c % 2 ? PIPELINE_1F1B : PIPELINE_GPIPE;
        random_case(key, &layers, &shape, &m);
        for (uint32_t p = 0; p < shape.stages; p++) layers.of[p].parameter_bytes = 0;
        test_parallel_near(makespan_s(&layers, &shape, schedule, m, 1e18), recurrence_s(&layers, &shape, schedule, m));
    }
}

/* Equal numbers of replicas everywhere are data parallelism: the same makespan where links take no time, and the
 * same bytes of places where they do. (With slow links it matters which place is free first, and here they are taken
 * in turn.) */
static void equal_replicas(void **state)
{
    (void)state;
    uint64_t seed = support_seed("equal replicas that flush");
    for (uint32_t c = 0; c < 40; c++) {
        uint64_t key = random_u64(seed, c);
        struct layers layers;
        struct shape shape;
        struct plan plan, in_turn;
        uint32_t m, schedule = c % 2 ? PIPELINE_1F1B : PIPELINE_GPIPE;
        random_case(key, &layers, &shape, &m);
        for (uint32_t p = 0; p < shape.stages; p++) {
            shape.replicas[p] = shape.replicas[0];
            layers.of[p].boundary_bytes = 100000 * (1 + random_below(key, 70 + p, 9));
            layers.of[p].parameter_bytes = 4096 * random_below(key, 80 + p, 9);
        }
        m -= m % shape.replicas[0];
        struct parallel data = {.data = shape.replicas[0], .pipeline = shape.stages, .schedule = schedule};
        for (uint32_t slow = 0; slow < 2; slow++) {
            make_plan(&layers, data, m, 2, slow ? 1e9 : 1e18, &plan);
            make_plan(&layers, parallel_of(&shape, schedule), m, 2, slow ? 1e9 : 1e18, &in_turn);
            for (uint32_t d = 0; d < plan.hardware.device_count; d++)
                assert_int_equal(plan_device_bytes(&in_turn, d), plan_device_bytes(&plan, d));
            double found_s = test_parallel_simulate(&in_turn, false).makespan_s;
            if (!slow) test_parallel_near(found_s, test_parallel_simulate(&plan, false).makespan_s);
            plan_release(&in_turn);
            plan_release(&plan);
        }
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Each device holds the activations of all microbatches under way there, which nothing else comes near; it has the
 * places of the first replica, which has most. */
static void places(void **state)
{
    (void)state;
    uint64_t seed = support_seed("places of replicas"), each = UINT64_C(1) << 20;
    for (uint32_t c = 0; c < 40; c++) {
        struct layers layers;
        struct shape shape;
        struct plan plan;
        struct sim_result result = {0};
        struct trace trace = {0};
        struct error err = {0};
        uint32_t m, schedule = c % 2 ? PIPELINE_1F1B : PIPELINE_GPIPE, device = 0;
        random_case(random_u64(seed, c), &layers, &shape, &m);
        for (uint32_t p = 0; p < shape.stages; p++) layers.of[p].activation_bytes = each;
        make_plan(&layers, parallel_of(&shape, schedule), m, 1, 1e18, &plan);
        if (sim_run(&plan, &(struct sim_options){.no_fold = true}, &result, &trace, &err)) fail_msg("%s", err.text);
        for (uint32_t p = 0; p < shape.stages; p++)
            for (uint32_t d = 0; d < shape.replicas[p]; d++, device++) {
                uint32_t all = own_of(&shape, p, d, m), depth = depth_of(&shape, p, schedule);
                assert_int_equal(trace.places[1 + device].peak_bytes / each, depth < all ? depth : all);
                if (d == 0) assert_int_equal(plan_device_bytes(&plan, device) / each, depth < all ? depth : all);
            }
        sim_result_release(&result);
        trace_release(&trace);
        plan_release(&plan);
    }
}

/* --- the training ----------------------------------------------------------------------------- */

/* Weights and gradients are numbers, and so is all that is handed on: which microbatch it is of. The gradient of
 * microbatch n at w is w (1 + n mod 5) + n. */
struct replay {
    const struct plan *plan;
    const struct shape *shape;
    uint32_t microbatches;
    double *held;                              /* [device][buffer] */
    uint32_t began[REPLICAS_MAX];              /* forward passes of the first stage */
    uint32_t passed[STAGES_MAX][REPLICAS_MAX]; /* backward passes of all */
};

static double slope(double w, double n) { return w * (1 + fmod(n, 5)) + n; }

static double *cell(const struct replay *x, uint32_t device, const struct plan_access *access)
{
    return &x->held[(size_t)device * x->plan->buffer_count + access->buffer];
}

/* Returns the cell of the only access to a buffer of a kind. */
static double *cell_of(const struct replay *x, uint32_t device, const struct plan_op *op, uint32_t kind)
{
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &x->plan->accesses[op->first_access + a];
        if (x->plan->buffers[access->buffer].kind == kind) return cell(x, device, access);
    }
    fail_msg("no such buffer");
    return NULL;
}

static bool is_handed_on(uint32_t kind)
{
    return kind == BUFFER_BOUNDARY || kind == BUFFER_BOUNDARY_GRADIENT || kind == BUFFER_ACTIVATIONS;
}

/* All that a pass reads is of one microbatch, and so is all that it makes: minibatch by minibatch, each microbatch
 * on the replica whose turn it is. */
static void replay_pass(struct replay *x, const struct plan_unit *unit, const struct plan_op *op, uint32_t device,
                        uint32_t d)
{
    const struct plan_access *accesses = &x->plan->accesses[op->first_access];
    uint32_t own = own_of(x->shape, unit->shard, d, x->microbatches), k = x->began[d];
    double n = -1;
    if (unit->pass == PLAN_FORWARD && unit->shard == 0) {
        n = k / own * x->microbatches + k % own * x->shape->replicas[0] + d;
        x->began[d]++;
    }
    for (uint32_t a = 0; a < op->access_count; a++) {
        if (!is_handed_on(x->plan->buffers[accesses[a].buffer].kind) || !(accesses[a].flags & ACCESS_READ)) continue;
        if (n < 0) n = *cell(x, device, &accesses[a]);
        assert_true(*cell(x, device, &accesses[a]) == n);
    }
    assert_true(fmod(fmod(n, x->microbatches), x->shape->replicas[unit->shard]) == d);
    for (uint32_t a = 0; a < op->access_count; a++)
        if (is_handed_on(x->plan->buffers[accesses[a].buffer].kind) && accesses[a].flags & ACCESS_WRITE)
            *cell(x, device, &accesses[a]) = n;
    if (unit->pass == PLAN_FORWARD) return;
    *cell_of(x, device, op, BUFFER_GRADIENT) += slope(*cell_of(x, device, op, BUFFER_STATE), n);
    x->passed[unit->shard][d]++;
}

static void replay_op(struct replay *x, const struct plan_task *task, const struct plan_op *op)
{
    const struct plan *plan = x->plan;
    const struct plan_unit *unit = &plan->units[task->unit];
    const struct plan_gang *gang = &plan->gangs[task->gang];
    uint32_t first = sum_of(x->shape, 0) - sum_of(x->shape, unit->shard);
    double sum = 0;
    for (uint32_t i = 0; op->kind == OP_COLLECTIVE && i < plan_gang_size(gang); i++)
        sum += *cell_of(x, plan->gang_devices[gang->first + i], op, BUFFER_GRADIENT);
    for (uint32_t i = 0; i < plan_gang_size(gang); i++) {
        uint32_t device = plan->gang_devices[gang->first + i];
        const struct plan_access *accesses = &plan->accesses[op->first_access];
        if (op->kind == OP_COLLECTIVE) {
            *cell_of(x, device, op, BUFFER_GRADIENT) = sum;
        } else if (op->kind == OP_COPY) {
            uint32_t peer = plan->gang_devices[plan->gangs[task->peer].first + i];
            *cell(x, device, &accesses[1]) = *cell(x, peer, &accesses[0]);
        } else if (unit->pass == PLAN_FORWARD || unit->pass == PLAN_BACKWARD) {
            replay_pass(x, unit, op, device, device - first);
        } else if (unit->pass == PLAN_LOAD) {
            *cell_of(x, device, op, BUFFER_STATE) = 1 + unit->shard;
        } else if (unit->pass == PLAN_UPDATE) {
            *cell_of(x, device, op, BUFFER_STATE) -= 1e-4 * *cell_of(x, device, op, BUFFER_GRADIENT);
            *cell_of(x, device, op, BUFFER_GRADIENT) = 0;
        } else {
            assert_int_equal(unit->pass, PLAN_STORE);
        }
    }
}

/* Stage by stage the steps of SGD: W(t+1) = W(t) - v sum of grad f(W(t)) over the minibatch, on every replica. */
static void trained(void **state)
{
    (void)state;
    uint64_t seed = support_seed("training of replicas that flush");
    enum { MINIBATCHES = 3 };
    for (uint32_t c = 0; c < 60; c++) {
        struct layers layers;
        struct shape shape;
        struct plan plan;
        struct replay x = {.plan = &plan, .shape = &shape};
        random_case(random_u64(seed, c), &layers, &shape, &x.microbatches);
        make_plan(&layers, parallel_of(&shape, c % 2 ? PIPELINE_1F1B : PIPELINE_GPIPE), x.microbatches, MINIBATCHES,
                  1e18, &plan);
        x.held = calloc((size_t)plan.hardware.device_count * plan.buffer_count, sizeof(double));
        assert_non_null(x.held);
        for (uint32_t s = 0; s < plan.segment_count; s++)
            for (uint32_t i = 0; i < plan.segments[s].repeat_count * plan.segments[s].task_count; i++) {
                const struct plan_task *at =
                    &plan.tasks[plan.segments[s].first_task + i % plan.segments[s].task_count];
                const struct plan_unit *unit = &plan.units[at->unit];
                for (uint32_t o = 0; o < unit->op_count; o++) replay_op(&x, at, &plan.ops[unit->first_op + o]);
            }
        for (uint32_t p = 0, device = 0; p < shape.stages; p++) {
            double w = 1 + p;
            for (uint32_t t = 0; t < MINIBATCHES; t++) {
                double sum = 0;
                for (uint32_t n = 0; n < x.microbatches; n++) sum += slope(w, t * x.microbatches + n);
                w -= 1e-4 * sum;
            }
            const struct plan_op *store = test_parallel_op(&plan, PLAN_STORE, p, OP_COMPUTE);
            for (uint32_t d = 0; d < shape.replicas[p]; d++, device++) {
                test_parallel_near(*cell_of(&x, device, store, BUFFER_STATE), w);
                assert_int_equal(x.passed[p][d], MINIBATCHES * own_of(&shape, p, d, x.microbatches));
            }
        }
        free(x.held);
        plan_release(&plan);
    }
}

/* --- plans ------------------------------------------------------------------------------------ */

/* Replica 0 of the first stage has microbatches 0, 3 and 6, the others two each. */
static void whole_plan(struct plan *out, uint32_t variant)
{
    const struct shape shape = {2, {3, 1}};
    const struct test_layer layer = {.forward_ns = 2000000, .backward_ns = 3000000, .parameter_bytes = 64,
                                     .boundary_bytes = 64, .activation_bytes = 64};
    struct layers layers = {{layer, layer}};
    (void)variant;
    make_plan(&layers, parallel_of(&shape, PIPELINE_1F1B), 7, 2, 1e18, out);
}

/* Swaps the boundaries that two replicas pass over. */
static void break_turn(struct plan *p)
{
    test_parallel_swap_places(test_parallel_task(p, PLAN_FORWARD, 0, 1), test_parallel_task(p, PLAN_FORWARD, 0, 2));
}
/* the microbatch of another replica */
static void break_peer(struct plan *p)
{
    test_parallel_task(p, PLAN_FORWARD, 1, 1)->peer = test_parallel_task(p, PLAN_FORWARD, 1, 2)->peer;
}
static void break_gang(struct plan *p)
{
    test_parallel_task(p, PLAN_REDUCE, 0, 0)->gang = test_parallel_task(p, PLAN_FORWARD, 0, 0)->gang;
}
/* Reduces before the last replica has passed backward; break_sum(): after the update. */
static void break_round(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 0, 0), test_parallel_task(p, PLAN_BACKWARD, 0, 6));
}
static void break_sum(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 0, 0), test_parallel_task(p, PLAN_UPDATE, 0, 0));
}
static void break_count(struct plan *p) { p->jobs.jobs[0].microbatches = 8; }
static void break_replicas(struct plan *p) { p->jobs.jobs[0].parallel.replicas[0] = 2; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_turn, 0, "is not live"},
        {break_peer, 0, "is not live"},
        {break_gang, 0, "of job-0 shard 0 is not on the devices of stage 0"},
        {break_round, 0, "finds gradient of job-0 shard 0, microbatch 2 (expected gradient of job-0 shard 0, "
                         "microbatch 3)"},
        {break_sum, 0, "finds gradient of job-0 shard 0, microbatch 3 (expected reduced gradient of job-0 shard 0, "
                       "microbatch 3)"},
        {break_count, 0, "finds gradient of job-0 shard 1, microbatch 7 (expected gradient of job-0 shard 1, "
                         "microbatch 8)"},
        {break_replicas, 0, "is not on the devices of stage 0"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

/* --- refused jobs ----------------------------------------------------------------------------- */

static void refused(void **state)
{
    (void)state;
    static const struct {
        struct parallel parallel;
        const char *message;
    } cases[] = {
        {{.pipeline = 2, .schedule = PIPELINE_ZB_H1, .replicated = 2, .replicas = {2, 1}},
         "schedule 'zb-h1' with 'replicas' (expected none; 'gpipe', '1f1b', 'pipedream' and '2bw' have them)"},
        {{.pipeline = 2, .schedule = PIPELINE_1F1B, .replicated = 2, .replicas = {5, 1}},
         "4 microbatches on 5 replicas of stage 0 (expected at least one each)"},
        {{.pipeline = 1, .schedule = PIPELINE_GPIPE, .replicated = 1, .replicas = {2}, .chunks = 2},
         "'replicas' with 2 chunks (expected 1)"},
        {{.pipeline = 2, .schedule = PIPELINE_1F1B, .replicated = 2, .replicas = {2, 1}, .zero = 1},
         "'replicas' with 'zero' above 0 (expected 0: replicas keep all the state that they update)"},
        {{.pipeline = 2, .schedule = PIPELINE_1F1B, .replicated = 2, .replicas = {2, 1}, .offload = OFFLOAD_WEIGHTS},
         "'replicas' with 'offload' (expected none: replicas keep all the state that they update)"},
        {{.pipeline = 2, .schedule = PIPELINE_1F1B, .replicated = 2, .replicas = {2, 1}, .partition = PARALLEL_RANNC},
         "'partition' 'rannc' with 'replicas' (expected none: it chooses them)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct job_set jobs;
        struct error err = {0};
        test_gpt_jobs(&jobs, 1, 4, 64, 256, 1);
        struct parallel *p = &jobs.jobs[0].parallel;
        *p = cases[i].parallel;
        jobs.jobs[0].microbatches = 4;
        p->tensor = p->data = 1;
        if (p->chunks == 0) p->chunks = 1;
        assert_int_equal(parallel_check(&jobs.jobs[0], &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
        job_set_release(&jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms),   cmocka_unit_test(exchange), cmocka_unit_test(unequal_stages),
        cmocka_unit_test(equal_replicas), cmocka_unit_test(places),   cmocka_unit_test(trained),
        cmocka_unit_test(broken),         cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
