/*
 * Asynchronous pipelines whose stages have unequal numbers of replicas (label: fast): makespans by closed forms and by
 * a recurrence, equal replicas against data parallelism, the training that they carry out replayed with numbers, plans
 * that are written and read, broken plans, refused jobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/random.h"
#include "base/size.h"
#include "planner/files/plan_io.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

enum { STAGES_MAX = 5, REPLICAS_MAX = 6 };

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

/* Returns the number of microbatches in flight on each replica of a stage. */
static uint32_t depth_of(const struct shape *shape, uint32_t p)
{
    return (sum_of(shape, p) + shape->replicas[p] - 1) / shape->replicas[p];
}

/* A stage for each layer; links that take no time worth mentioning. */
static void make_plan(struct layers *layers, const struct shape *shape, uint32_t schedule, uint64_t microbatches,
                      uint64_t minibatches, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    *out = (struct plan){0};
    test_parallel_machine(&hardware, sum_of(shape, 0), 1e18, 0);
    test_profile_jobs(&jobs, 1, shape->stages, minibatches, test_layer_listed, layers);
    struct parallel *p = &jobs.jobs[0].parallel;
    jobs.jobs[0].microbatches = microbatches;
    *p = (struct parallel){.tensor = 1, .pipeline = shape->stages, .data = 1, .chunks = 1, .schedule = schedule,
                           .replicated = shape->stages};
    memcpy(p->replicas, shape->replicas, sizeof shape->replicas);
    test_parallel_plan(&hardware, &jobs, out);
}

static double makespan_s(struct layers *layers, const struct shape *shape, uint32_t schedule, uint64_t microbatches,
                         uint64_t minibatches)
{
    struct plan plan;
    make_plan(layers, shape, schedule, microbatches, minibatches, &plan);
    double found_s = test_parallel_simulate(&plan, false).makespan_s;
    plan_release(&plan);
    return found_s;
}

static void random_layers(uint64_t key, struct layers *out)
{
    for (uint32_t l = 0; l < STAGES_MAX; l++)
        out->of[l] = (struct test_layer){.forward_ns = 1000000 * (1 + random_below(key, 10 + l, 9)),
                                         .backward_ns = 1000000 * (1 + random_below(key, 30 + l, 19)),
                                         .parameter_bytes = 64, .boundary_bytes = 64, .activation_bytes = 64};
}

static uint64_t turns_in_common(const struct shape *shape)
{
    uint64_t common = 1;
    for (uint32_t p = 0; p < shape->stages; p++) {
        uint64_t step = common;
        while (common % shape->replicas[p] != 0) common += step;
    }
    return common;
}

/* --- time ------------------------------------------------------------------------------------- */

/* Stages of (f + b) r(p) seconds with r(p) replicas: all are equally fast, and each microbatch takes another f + b.
 * Where numbers of replicas change from stage to stage and back, PipeDream's depth leaves some waiting:
 * the last shapes take 5 / 4 of that (see no_slack()). */
static void equal_rates(void **state)
{
    (void)state;
    static const struct shape shapes[] = {{2, {15, 1}}, {2, {1, 15}}, {3, {2, 1, 1}}, {4, {4, 1, 1, 1}}, {2, {5, 2}},
                                          {1, {6}}, {3, {3, 2, 1}}, {3, {2, 3, 4}}, {5, {1, 2, 3, 2, 1}}};
    enum { ALL_BUSY = 6 };
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        struct layers layers;
        const struct shape *shape = &shapes[i];
        uint64_t common = turns_in_common(shape), few = 20 * common;
        for (uint32_t p = 0; p < shape->stages; p++)
            layers.of[p] = (struct test_layer){.forward_ns = 3000000 * shape->replicas[p],
                                               .backward_ns = 5000000 * shape->replicas[p], .parameter_bytes = 0};
        double first_s = makespan_s(&layers, shape, PIPELINE_PIPEDREAM, 1, few);
        double second_s = makespan_s(&layers, shape, PIPELINE_PIPEDREAM, 1, few + 40 * common);
        double found_s = (second_s - first_s) / (40 * (double)common);
        if (i < ALL_BUSY) test_parallel_near(found_s, 8e-3);
        else test_parallel_near(found_s, 10e-3);
    }
}

/*
 * The schedule from its definition, replica by replica: n(p) - 1 forward passes to begin with, then one forward, one
 * backward. A forward pass comes after the update that makes its version, an update after the backward passes of its
 * round on all replicas, and a backward pass after the update of the previous round, which has used the gradient. An
 * update has one place among the passes of all replicas: with 2bw before the next round's first backward pass.
 */
struct recurrence {
    const struct layers *layers;
    const struct shape *shape;
    uint64_t count, size; /* microbatches in all; microbatches of an update of every stage, 0: its number of replicas */
    uint32_t stale;       /* of 2bw, where size > 0 */
    uint32_t extra;       /* under way on each replica of the first stage, beyond PipeDream's depth */
    double *forward_s[STAGES_MAX], *backward_s[STAGES_MAX]; /* by microbatch; negative: not yet */
    double *update_s[STAGES_MAX];                           /* by round; likewise */
    double free_s[STAGES_MAX][REPLICAS_MAX * 3];
    uint64_t forwards[STAGES_MAX][REPLICAS_MAX * 3], backwards[STAGES_MAX][REPLICAS_MAX * 3];
};

static uint64_t size_of(const struct recurrence *x, uint32_t p)
{
    return x->size > 0 ? x->size : x->shape->replicas[p];
}

static uint32_t depth_in(const struct recurrence *x, uint32_t p)
{
    return depth_of(x->shape, p) + (p == 0 ? x->extra : 0);
}

/* Returns the time at which the inputs of a pass are there; negative: not yet. */
static double needs_s(const struct recurrence *x, uint32_t p, uint64_t n, bool forward)
{
    uint64_t round = n / size_of(x, p), stale = x->size > 0 ? x->stale : depth_in(x, p) - 1;
    uint64_t behind = forward ? stale + 1 : 1; /* the update that makes its version; that has used the gradient */
    double from_s = p > 0 ? x->forward_s[p - 1][n] : 0, update_s = 0;
    if (round >= behind) update_s = x->update_s[p][round - behind];
    uint64_t lag = (depth_in(x, p) - 1) * x->shape->replicas[p];
    if (forward && x->size > 0 && n > lag && (n - lag - 1) / x->size > 0) /* replica 0 is at the next round's first */
        update_s = x->update_s[p][(n - lag - 1) / x->size - 1];
    if (!forward) from_s = p + 1 < x->shape->stages ? x->backward_s[p + 1][n] : x->forward_s[p][n];
    if (x->layers->of[p].parameter_bytes == 0) return from_s; /* there is nothing to update */
    return from_s < 0 || update_s < 0 ? -1 : fmax(from_s, update_s);
}

static bool pass(struct recurrence *x, uint32_t p, uint32_t d)
{
    uint64_t f = x->forwards[p][d], b = x->backwards[p][d], r = x->shape->replicas[p], all = x->count / r;
    bool forward = f < all && f - b < depth_in(x, p);
    uint64_t n = (forward ? f : b) * r + d;
    if (!forward && (b == all || b == f)) return false;
    double ready_s = needs_s(x, p, n, forward);
    if (ready_s < 0) return false;
    uint64_t ns = forward ? x->layers->of[p].forward_ns : x->layers->of[p].backward_ns;
    double end_s = x->free_s[p][d] = fmax(x->free_s[p][d], ready_s) + 1e-9 * (double)ns;
    (forward ? x->forward_s : x->backward_s)[p][n] = end_s;
    (forward ? x->forwards : x->backwards)[p][d]++;
    return true;
}

static bool update(struct recurrence *x, uint32_t p)
{
    bool moved = false;
    for (uint64_t u = 0, size = size_of(x, p); (u + 1) * size <= x->count; u++) {
        double last_s = 0;
        if (x->update_s[p][u] >= 0) continue;
        for (uint64_t n = u * size; n < (u + 1) * size && last_s >= 0; n++)
            last_s = x->backward_s[p][n] < 0 ? -1 : fmax(last_s, x->backward_s[p][n]);
        if (last_s < 0) break;
        x->update_s[p][u] = last_s;
        moved = true;
    }
    return moved;
}

static double deeper_recurrence_s(const struct layers *layers, const struct shape *shape, uint64_t size, uint64_t count,
                                  uint32_t extra)
{
    struct recurrence x = {.layers = layers, .shape = shape, .count = count, .size = size, .stale = 1, .extra = extra};
    double end_s = 0;
    for (uint32_t p = 0; p < shape->stages; p++) {
        double **rows[] = {&x.forward_s[p], &x.backward_s[p], &x.update_s[p]};
        for (uint32_t i = 0; i < 3; i++) {
            *rows[i] = malloc(count * sizeof(double));
            assert_true(*rows[i]);
            for (uint64_t n = 0; n < count; n++) (*rows[i])[n] = -1;
        }
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t p = 0; p < shape->stages; p++) {
            for (uint32_t d = 0; d < shape->replicas[p]; d++) moved |= pass(&x, p, d);
            moved |= update(&x, p);
        }
    }
    for (uint32_t p = 0; p < shape->stages; p++) {
        for (uint64_t n = 0; n < count; n++) {
            assert_true(x.backward_s[p][n] >= 0);
            end_s = fmax(end_s, x.backward_s[p][n]);
        }
        free(x.forward_s[p]);
        free(x.backward_s[p]);
        free(x.update_s[p]);
    }
    return end_s;
}

static double recurrence_s(const struct layers *layers, const struct shape *shape, uint64_t size, uint64_t count)
{
    return deeper_recurrence_s(layers, shape, size, count, 0);
}

/*
 * Why some shapes of equal_rates() take 10 ms and not 8. NOAM is ceil(devices / replicas of the first stage), so
 * the number of microbatches under way is about the number of devices, and each needs 8 ms of each device on its way
 * there and back: by Little's law that is enough for 8 ms if none ever waits. On its way between stages whose passes
 * take other times it does. The recurrence, which knows neither ticks nor places, agrees with the plan at PipeDream's
 * depth; with one more on each replica of the first stage it takes 8 ms, but for the last shape, where one forward, one
 * backward is what makes them wait.
 */
static void no_slack(void **state)
{
    (void)state;
    static const struct {
        struct shape shape;
        double deeper_s;
    } cases[] = {{{3, {3, 2, 1}}, 8e-3}, {{3, {2, 3, 4}}, 8e-3}, {{5, {1, 2, 3, 2, 1}}, 10e-3}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct shape *shape = &cases[i].shape;
        struct layers layers;
        uint64_t few = 20 * turns_in_common(shape), more = 2 * few;
        for (uint32_t p = 0; p < shape->stages; p++)
            layers.of[p] = (struct test_layer){.forward_ns = 3000000 * shape->replicas[p],
                                               .backward_ns = 5000000 * shape->replicas[p], .parameter_bytes = 0};
        test_parallel_near(makespan_s(&layers, shape, PIPELINE_PIPEDREAM, 1, more),
                           recurrence_s(&layers, shape, 0, more));
        double step_s = recurrence_s(&layers, shape, 0, more) - recurrence_s(&layers, shape, 0, few);
        double deeper_s = deeper_recurrence_s(&layers, shape, 0, more, 1) -
                          deeper_recurrence_s(&layers, shape, 0, few, 1);
        test_parallel_near(step_s / (double)few, 10e-3);
        test_parallel_near(deeper_s / (double)few, cases[i].deeper_s);
    }
}

static void random_shape(uint64_t key, struct shape *out)
{
    *out = (struct shape){.stages = 1 + (uint32_t)random_below(key, 0, 4)};
    for (uint32_t p = 0; p < out->stages; p++) out->replicas[p] = 1 + (uint32_t)random_below(key, 50 + p, REPLICAS_MAX);
}

/* Never earlier than the recurrence, and hardly later: it knows no places that gradients wait for (6.9 % with one of
 * some 250 seeds, 3.1 % with another, less with the others). */
static bool same(double found_s, double recurrence)
{
    if (found_s < recurrence * (1 - 1e-9) || found_s > recurrence * 1.1)
        fail_msg("%.17g, by the recurrence %.17g", found_s, recurrence);
    return found_s <= recurrence * (1 + 1e-9);
}

/* Random stages, an exchange of 64 bytes at 1e18 bytes/s: the recurrence. In the long run never less than the slowest
 * stage's time over its replicas, and that time for most. */
static void unequal_stages(void **state)
{
    (void)state;
    uint64_t seed = support_seed("unequal stages with replicas");
    uint32_t reached = 0, compared = 0, equal = 0;
    for (uint32_t c = 0; c < 120; c++) {
        uint64_t key = random_u64(seed, c);
        struct layers layers;
        struct shape shape;
        double interval_s = 0;
        random_layers(key, &layers);
        random_shape(key, &shape);
        uint64_t common = turns_in_common(&shape), count = common * (1 + random_below(key, 1, 8)), most = 0;
        for (uint32_t p = 0; p < shape.stages; p++) {
            uint64_t both_ns = layers.of[p].forward_ns + layers.of[p].backward_ns;
            interval_s = fmax(interval_s, 1e-9 * (double)both_ns / shape.replicas[p]);
            if (shape.replicas[p] * depth_of(&shape, p) > most) most = shape.replicas[p] * depth_of(&shape, p);
        }
        equal += same(makespan_s(&layers, &shape, PIPELINE_PIPEDREAM, 1, count),
                      recurrence_s(&layers, &shape, 0, count));
        uint64_t m = common * ((most + common - 1) / common), minibatches = 1 + random_below(key, 2, 4);
        equal += same(makespan_s(&layers, &shape, PIPELINE_2BW, m, minibatches),
                      recurrence_s(&layers, &shape, m, m * minibatches));
        if (c % 4 > 0) continue;
        double few_s = makespan_s(&layers, &shape, PIPELINE_PIPEDREAM, 1, 30 * common);
        double many_s = makespan_s(&layers, &shape, PIPELINE_PIPEDREAM, 1, 90 * common);
        double found_s = (many_s - few_s) / (60 * (double)common);
        assert_true(found_s >= interval_s * (1 - 1e-9));
        reached += found_s <= interval_s * 1.02;
        compared++;
    }
    assert_true(equal >= 2 * 120 - 12 && 5 * reached > 2 * compared);
}

/* Equal numbers of replicas are data parallelism: the same makespan, of r times the minibatches of pipedream. */
static void equal_replicas(void **state)
{
    (void)state;
    uint64_t seed = support_seed("equal replicas");
    for (uint32_t c = 0; c < 24; c++) {
        uint64_t key = random_u64(seed, c);
        struct layers layers;
        struct shape shape = {.stages = 1 + c % 4};
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        random_layers(key, &layers);
        uint32_t r = 2 + (uint32_t)random_below(key, 0, 3), schedule = c % 2 ? PIPELINE_2BW : PIPELINE_PIPEDREAM;
        for (uint32_t p = 0; p < shape.stages; p++) shape.replicas[p] = r;
        uint64_t m = c % 2 ? shape.stages + random_below(key, 1, 3) : 1, minibatches = 3 + random_below(key, 2, 30);
        test_parallel_machine(&hardware, shape.stages * r, 1e18, 0);
        test_profile_jobs(&jobs, 1, shape.stages, minibatches, test_layer_listed, &layers);
        jobs.jobs[0].microbatches = m * r;
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = shape.stages, .data = r, .chunks = 1,
                                                  .schedule = schedule};
        test_parallel_plan(&hardware, &jobs, &plan);
        double step_s = test_parallel_simulate(&plan, false).makespan_s;
        plan_release(&plan);
        bool dream = schedule == PIPELINE_PIPEDREAM;
        test_parallel_near(makespan_s(&layers, &shape, schedule, dream ? 1 : m * r,
                                      dream ? minibatches * r : minibatches),
                           step_s);
    }
}

/* --- the training ----------------------------------------------------------------------------- */

/* Weights are numbers, on every device in the plan's buffers; the gradient of microbatch n at w is w (1 + n mod 5) +
 * n. */
struct replay {
    const struct plan *plan;
    const struct shape *shape;
    double *held;                                     /* [device][buffer] */
    double gradient[STAGES_MAX][REPLICAS_MAX];
    uint64_t passed[2][STAGES_MAX][REPLICAS_MAX];     /* backward, forward */
    double *read;                                     /* [stage][microbatch]: by the forward pass */
    uint64_t count;
};

static const double rate = 0.01;

static double slope(double w, uint64_t n)
{
    return w * (1 + (double)(n % 5)) + (double)n;
}

/* The buffers of weights that the unit's computation reads and writes, on a device. */
static void find_weights(const struct replay *x, const struct plan_unit *unit, uint32_t device, double **from,
                         double **to)
{
    const struct plan *plan = x->plan;
    *from = *to = NULL;
    for (uint32_t o = 0; o < unit->op_count; o++) {
        const struct plan_op *op = &plan->ops[unit->first_op + o];
        for (uint32_t a = 0; op->kind == OP_COMPUTE && a < op->access_count; a++) {
            const struct plan_access *access = &plan->accesses[op->first_access + a];
            double *value = &x->held[(size_t)device * plan->buffer_count + access->buffer];
            if (plan->buffers[access->buffer].kind != BUFFER_PARAMETERS) continue;
            if (access->flags & ACCESS_READ) *from = value;
            if (access->flags & ACCESS_WRITE) *to = value;
        }
    }
}

static void replay_task(struct replay *x, const struct plan_task *task, double *stored)
{
    const struct plan_unit *unit = &x->plan->units[task->unit];
    const struct plan_gang *gang = &x->plan->gangs[task->gang];
    uint32_t p = unit->shard, first = sum_of(x->shape, 0) - sum_of(x->shape, p);
    double sum = 0, *from, *to;
    for (uint32_t d = 0; d < x->shape->replicas[p]; d++) sum += x->gradient[p][d];
    for (uint32_t i = 0; i < plan_gang_size(gang); i++) {
        uint32_t device = x->plan->gang_devices[gang->first + i], d = device - first;
        find_weights(x, unit, device, &from, &to);
        if (unit->pass == PLAN_LOAD) *to = 1 + p;
        if (unit->pass == PLAN_FORWARD || unit->pass == PLAN_BACKWARD) {
            bool forward = unit->pass == PLAN_FORWARD;
            uint64_t n = x->passed[forward][p][d]++ * x->shape->replicas[p] + d;
            double *read = &x->read[p * x->count + n];
            if (forward) *read = *from;
            assert_true(*read == *from);
            if (!forward) x->gradient[p][d] += slope(*from, n);
        }
        if (unit->pass == PLAN_UPDATE) *to = *from - rate * sum;
        if (unit->pass == PLAN_UPDATE) x->gradient[p][d] = 0;
        if (unit->pass == PLAN_STORE) stored[p] = *from;
    }
}

/* Stage by stage W(u+1) = W(u) - v sum of grad f(W(max(u - s, 0))) over the microbatches of round u: with pipedream
 * one for each replica, s = n(p) - 1; with 2bw the microbatches of a minibatch, s = 1. Replicas add up their own
 * first. */
static void recurrences_of_papers(void **state)
{
    (void)state;
    uint64_t seed = support_seed("training of replicas");
    for (uint32_t c = 0; c < 60; c++) {
        uint64_t key = random_u64(seed, c);
        struct layers layers;
        struct shape shape;
        struct plan plan;
        random_layers(key, &layers);
        random_shape(key, &shape);
        bool dream = c % 2 == 0;
        uint64_t common = turns_in_common(&shape), most = (uint64_t)depth_of(&shape, 0) * shape.replicas[0];
        uint64_t m = dream ? 1 : common * ((most + common - 1) / common);
        uint64_t minibatches = dream ? common * (1 + random_below(key, 1, 60)) : 1 + random_below(key, 1, 9);
        make_plan(&layers, &shape, dream ? PIPELINE_PIPEDREAM : PIPELINE_2BW, m, minibatches, &plan);
        struct replay x = {.plan = &plan, .shape = &shape, .count = m * minibatches};
        x.held = calloc((size_t)plan.hardware.device_count * plan.buffer_count, sizeof(double));
        x.read = calloc(shape.stages * x.count, sizeof(double));
        double *versions = calloc(x.count + 1, sizeof *versions), stored[STAGES_MAX];
        assert_true(x.held && x.read && versions);
        for (uint32_t s = 0; s < plan.segment_count; s++)
            for (uint32_t k = 0; k < plan.segments[s].repeat_count; k++)
                for (uint32_t i = 0; i < plan.segments[s].task_count; i++)
                    replay_task(&x, &plan.tasks[plan.segments[s].first_task + i], stored);
        for (uint32_t p = 0; p < shape.stages; p++) {
            uint64_t r = shape.replicas[p], size = dream ? r : m, stale = dream ? depth_of(&shape, p) - 1 : 1;
            versions[0] = 1 + p;
            for (uint64_t u = 0; u < x.count / size; u++) {
                double sum = 0, w = versions[u > stale ? u - stale : 0];
                for (uint64_t d = 0; d < r; d++) {
                    double own = 0;
                    for (uint64_t n = u * size + d; n < (u + 1) * size; n += r) own += slope(w, n);
                    sum += own;
                }
                versions[u + 1] = versions[u] - rate * sum;
            }
            assert_true(stored[p] == versions[x.count / size]);
        }
        free(versions);
        free(x.read);
        free(x.held);
        plan_release(&plan);
    }
}

/* --- plans ------------------------------------------------------------------------------------ */

static void whole_plan(struct plan *out, uint32_t schedule)
{
    struct layers layers;
    const struct shape shape = {2, {3, 1}};
    random_layers(7, &layers);
    make_plan(&layers, &shape, schedule, schedule == PIPELINE_2BW ? 6 : 1, schedule == PIPELINE_2BW ? 3 : 18, out);
}

/* A written plan is read again as the same plan. */
static void written_and_read(void **state)
{
    (void)state;
    struct plan plan, again = {0};
    struct error err = {0};
    whole_plan(&plan, PIPELINE_PIPEDREAM);
    assert_int_equal(parallel_devices(&plan.jobs.jobs[0].parallel), 4);
    struct json_out *json = json_out_create(NULL);
    assert_non_null(json);
    plan_write_json(&plan, json);
    size_t length;
    const char *text = json_out_text(json, &length);
    if (plan_parse("replicas.json", text, length, &again, &err)) fail_msg("%s", err.text);
    json_out_destroy(json);
    assert_true(plan_fingerprint(&plan) == plan_fingerprint(&again));
    const struct parallel *p = &again.jobs.jobs[0].parallel;
    assert_int_equal(p->replicated, 2);
    assert_int_equal(p->replicas[0], 3);
    assert_true(test_parallel_simulate(&plan, false).makespan_s == test_parallel_simulate(&again, true).makespan_s);
    plan_release(&again);
    plan_release(&plan);
}

/* Swaps the boundaries that two replicas pass over. */
static void break_turn(struct plan *p)
{
    test_parallel_swap_places(test_parallel_task(p, PLAN_FORWARD, 0, 3), test_parallel_task(p, PLAN_FORWARD, 0, 4));
}
/* the microbatch of another replica */
static void break_peer(struct plan *p)
{
    test_parallel_task(p, PLAN_FORWARD, 1, 1)->peer = test_parallel_task(p, PLAN_FORWARD, 1, 2)->peer;
}
static void break_gang(struct plan *p)
{
    struct plan_task *update = test_parallel_task(p, PLAN_UPDATE, 0, 0);
    update->gang = test_parallel_task(p, PLAN_FORWARD, 0, 0)->gang;
}
static void break_pass_of_all(struct plan *p)
{
    test_parallel_task(p, PLAN_FORWARD, 0, 0)->gang = test_parallel_task(p, PLAN_UPDATE, 0, 0)->gang;
}
/* Exchanges before the last replica has passed backward. */
static void break_round(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 0, 0), test_parallel_task(p, PLAN_BACKWARD, 0, 2));
}
/* Makes a forward pass not wait for the update that makes its version. */
static void break_version(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 0, 0), test_parallel_task(p, PLAN_FORWARD, 0, 6));
}
static void break_count(struct plan *p) { p->jobs.jobs[0].minibatches = 21; }
static void break_replicas(struct plan *p) { p->jobs.jobs[0].parallel.replicas[0] = 2; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_turn, PIPELINE_PIPEDREAM, "which is not live on device"},
        {break_peer, PIPELINE_PIPEDREAM, "is not live"},
        {break_gang, PIPELINE_PIPEDREAM, "of job-0 shard 0 is not on the devices of stage 0"},
        {break_pass_of_all, PIPELINE_2BW, "of job-0 shard 0 is not on the devices of stage 0"},
        {break_round, PIPELINE_PIPEDREAM, "training: finds gradient of job-0 shard 0, microbatch"},
        {break_version, PIPELINE_PIPEDREAM, "(job-0 shard 0 forward): "},
        {break_count, PIPELINE_PIPEDREAM, "has 6 forward and 6 backward passes and 6 updates (expected 7, 7, 7)"},
        {break_replicas, PIPELINE_PIPEDREAM, "is not on the devices of stage 0"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

/* --- refused jobs ----------------------------------------------------------------------------- */

static void refused(void **state)
{
    (void)state;
    static const struct {
        struct parallel parallel;
        uint64_t minibatches, microbatches;
        const char *message;
    } cases[] = {
        {{.pipeline = 3, .data = 1, .schedule = PIPELINE_PIPEDREAM, .replicated = 2, .replicas = {2, 1}}, 2, 1,
         "'replicas' of 2 stages (expected 3)"},
        {{.pipeline = 2, .data = 4, .schedule = PIPELINE_PIPEDREAM, .replicated = 2, .replicas = {2, 1}}, 2, 1,
         "'replicas' with 'data' 4 (expected 1: they take its place)"},
        {{.pipeline = 2, .data = 1, .schedule = PIPELINE_PIPEDREAM, .replicated = 2, .replicas = {2, 1}}, 2, 2,
         "schedule 'pipedream' with 'replicas' and 2 microbatches (expected 1: a stage with r replicas updates after "
         "r minibatches)"},
        {{.pipeline = 2, .data = 1, .schedule = PIPELINE_PIPEDREAM, .replicated = 2, .replicas = {1, 3}}, 10, 1,
         "10 minibatches on 3 replicas of stage 1 (expected a multiple)"},
        {{.pipeline = 2, .data = 1, .schedule = PIPELINE_2BW, .replicated = 2, .replicas = {1, 3}}, 10, 4,
         "4 microbatches on 3 replicas of stage 1 (expected a multiple)"},
        {{.pipeline = 2, .data = 1, .schedule = PIPELINE_2BW, .replicated = 2, .replicas = {1, 3}}, 10, 3,
         "schedule '2bw' with 3 microbatches on these 'replicas' (expected at least 4, the number in flight)"},
        {{.pipeline = 2, .data = 1, .schedule = PIPELINE_PIPEDREAM, .replicated = 2, .replicas = {2, 1}, .zero = 1}, 10,
         1, "schedule 'pipedream' with 'zero' 1 (expected 0: every rank has several versions)"},
        {{.pipeline = 2, .data = 1, .schedule = PIPELINE_PIPEDREAM, .partition = PARALLEL_PIPEDREAM}, 10, 1,
         "'partition' 'pipedream' without 'replicas' (expected their total number, such as [16])"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct job_set jobs;
        struct error err = {0};
        test_gpt_jobs(&jobs, 1, 4, 64, 256, cases[i].minibatches);
        jobs.jobs[0].microbatches = cases[i].microbatches;
        jobs.jobs[0].parallel = cases[i].parallel;
        jobs.jobs[0].parallel.tensor = jobs.jobs[0].parallel.chunks = 1;
        assert_int_equal(parallel_check(&jobs.jobs[0], &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
        job_set_release(&jobs);
    }
}

/* The command line's form: there and back, and refused forms. */
static void text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message, *back;
    } cases[] = {
        {"replicas=15-1", NULL, "replicas=15-1"},
        {"tp=2,replicas=2-1-1", NULL, "replicas=2-1-1,tp=2"},
        {"dp=4,replicas=16", NULL, "replicas=16,dp=4"}, /* which parallel_check() refuses */
        {"replicas=", "'replicas=' is not understood (expected such as replicas=15-1, of at most 128 stages)", NULL},
        {"replicas=15-", "'replicas=15-' is not understood (expected such as replicas=15-1, of at most 128 stages)",
         NULL},
        {"replicas=3-0", "'replicas=3-0' is not understood (expected such as replicas=15-1, of at most 128 stages)",
         NULL},
        {"replicas=3+1,tp=2", "'replicas=3+1' is not understood (expected such as replicas=15-1, of at most 128 "
                              "stages)",
         NULL},
        {"replicas=99999-1", "'replicas=99999-1' is not understood (expected such as replicas=15-1, of at most 128 "
                             "stages)",
         NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct parallel p = {0};
        struct error err = {0};
        char back[PARALLEL_TEXT_BYTES];
        enum status status = parallel_parse_text(cases[i].text, &p, &err);
        assert_int_equal(status, cases[i].message ? STATUS_BAD_INPUT : STATUS_OK);
        assert_string_equal(status ? err.text : parallel_text(&p, back), status ? cases[i].message : cases[i].back);
    }
    struct parallel many = {.tensor = 4, .pipeline = 128, .data = 1, .chunks = 1, .replicated = 128, .sequence = true};
    char back[PARALLEL_TEXT_BYTES];
    for (uint32_t s = 0; s < 128; s++) many.replicas[s] = 1000 + s;
    assert_string_equal(parallel_text(&many, back), "replicas=1000-1001-1002-1003-1004-1005-1006-1007-...,tp=4,sp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_rates),      cmocka_unit_test(no_slack),
        cmocka_unit_test(unequal_stages),   cmocka_unit_test(equal_replicas),
        cmocka_unit_test(recurrences_of_papers), cmocka_unit_test(written_and_read), cmocka_unit_test(broken),
        cmocka_unit_test(refused),          cmocka_unit_test(text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
