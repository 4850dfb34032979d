/*
 * Requests answered in batches: against a server that takes what waits when it is free, against schedules made
 * from scratch for every request, closed forms, files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "sim/placement/serving_bound.h"
#include "tests/support/sim/support_serving.h"
#include "tests/support/support_seed.h"

static uint64_t seed, drawn;

static uint64_t below(uint64_t bound) { return random_below(seed, drawn++, bound); }
static double unit(void) { return random_unit(seed, drawn++); }

static int set_seed(void **state)
{
    (void)state;
    if (seed == 0) seed = support_seed("test_serving_batches");
    drawn = 0;
    return 0;
}

/* All models on each of some groups of one shape. */
struct everywhere {
    struct serving_group groups[4];
    uint32_t models[16];
    struct serving_placement placement;
};

static void place_everywhere(const struct serving *in, struct serving_shape shape, uint32_t groups,
                             struct everywhere *out)
{
    for (uint32_t m = 0; m < in->model_count; m++) out->models[m] = m;
    for (uint32_t g = 0; g < groups; g++) out->groups[g] = (struct serving_group){shape, out->models, in->model_count};
    out->placement = (struct serving_placement){out->groups, groups};
}

/* Latencies of one simulation on `groups` groups of 1 x `stages`; the caller frees them. */
static double *latencies_of(struct serving *in, uint32_t stages, uint32_t groups, bool admit_all,
                            struct traffic *traffic, uint32_t *attained)
{
    struct serving_cuts cuts;
    struct everywhere all;
    struct error err = {0};
    double *latency_s;
    support_serving_cuts(in, &cuts);
    place_everywhere(in, (struct serving_shape){1, stages}, groups, &all);
    assert_int_equal(placement_check(&cuts, &all.placement, &err), STATUS_OK);
    *attained = support_serve(&cuts, &all.placement, traffic, admit_all, &latency_s);
    return latency_s;
}

/* --- a batch of one is a request --------------------------------------------------------------- */

/* A model that could have batches gets no requests: the other models wait as before, and nothing changes. */
static void batches_of_one_change_no_bit(void **state)
{
    (void)state;
    for (int trial = 0; trial < 60; trial++) {
        uint32_t stages = 1u << below(3), groups = 1 + (uint32_t)below(3), attained[2];
        bool admit_all = below(2);
        double rate = 1 + 3 * unit(), objective = 1 + 4 * unit(), hop_s = 0.1 * unit();
        double *latency_s[2];
        struct traffic traffic;
        struct error err = {0};
        uint64_t own = below(UINT32_MAX);
        for (int i = 0; i < 2; i++) {
            struct serving in;
            support_serving(&in, "{'spillway_serving': 1, 'devices': 12, 'memory': '9 B', 'horizon': '100s', "
                                 "'models': [{'name': 'm', 'count': 3, 'latency': '0.7s', 'layers': 4, 'weights': '2 "
                                 "B', 'hop': '%.4fs','objective_scale': %.3f, 'arrivals': {'process': 'gamma', "
                                 "'rate': %.3f, 'cv': 2}},{'name': 'idle', 'latency': '1s', 'layers': 4, 'weights': "
                                 "'0 B', %s'arrivals': {'rate': 0}}]}", hop_s, objective, rate,
                            i ? "'batch': {'most': 8, 'base': '0.3s'}," : "");
            assert_int_equal(traffic_make(&in, own, 1, &traffic, &err), STATUS_OK);
            latency_s[i] = latencies_of(&in, stages, groups, admit_all, &traffic, &attained[i]);
            if (i == 0) traffic_release(&traffic);
            serving_release(&in);
        }
        assert_int_equal(attained[0], attained[1]);
        assert_memory_equal(latency_s[0], latency_s[1], traffic.count * sizeof(double));
        free(latency_s[0]);
        free(latency_s[1]);
        traffic_release(&traffic);
    }
}

/* --- a server that takes what waits ------------------------------------------------------------ */

/* Two models with batches of up to `most` on a pipeline, without objectives or with. */
static void batched_problem(struct serving *out, uint32_t most, double objective)
{
    char wanted[48] = "";
    if (objective > 0) snprintf(wanted, sizeof wanted, "'objective_scale': %.4f, ", objective);
    support_serving(out, "{'spillway_serving': 1, 'devices': 4, 'memory': '40 B', 'horizon': '60s', 'models': ["
                         "{'name': 'a', 'count': 2, 'latency': '0.6s', 'layers': 4, 'weights': '2 B', 'hop': '0.01s', "
                         "%s'batch': {'most': %u, 'base': '%.4fs'}, 'arrivals': {'process': 'gamma', 'rate': %.4f, "
                         "'cv': 2}},{'name': 'b', 'latency': '0.4s', 'layers': 4, 'weights': '0 B', %s"
                         "'batch': {'latency': {'2': '0.5s', '%u': '0.9s'}}, 'arrivals': {'rate': %.4f}}]}",
                    wanted, most, 0.6 * unit(), 0.5 + 4 * unit(), wanted, most < 3 ? 3 : most, 2 * unit());
}

/* When the first stage is free it takes the first request that waits, and others of its model that came before (bursts
 * are so dense that some come at the same instant). */
static void serve_what_waits(const struct serving_cuts *cuts, uint32_t stages, const struct traffic *traffic,
                             double *latency_s)
{
    const struct serving *in = cuts->in;
    double free_s[8] = {0};
    bool *done = calloc(traffic->count + 1, sizeof *done);
    for (uint32_t head = 0; head < traffic->count; head++) {
        if (done[head]) continue;
        uint32_t members[SERVING_BATCH_MAX], count = 0, model = traffic->requests[head].model;
        double end_s = fmax(traffic->requests[head].at_s, free_s[0]);
        const struct serving_kind *kind = &in->kinds[in->models[model].kind];
        for (uint32_t r = head; r < traffic->count && (r == head || traffic->requests[r].at_s < end_s); r++)
            if (!done[r] && traffic->requests[r].model == model && count < kind->batch_max) members[count++] = r;
        const struct stage_cut *cut = serving_cut(cuts, (struct serving_shape){1, stages}, in->models[model].kind);
        for (uint32_t s = 0; s < stages; s++)
            free_s[s] = end_s = fmax(end_s, free_s[s]) + cut->stage_s[s] * kind->degrees[0].growth[count - 1];
        for (uint32_t i = 0; i < count; i++) {
            done[members[i]] = true;
            latency_s[members[i]] = end_s - traffic->requests[members[i]].at_s;
        }
    }
    free(done);
}

static void takes_what_waits(void **state)
{
    (void)state;
    for (int trial = 0; trial < 100; trial++) {
        struct serving in;
        struct serving_cuts cuts;
        struct traffic traffic;
        struct error err = {0};
        uint32_t stages = below(2) ? 1 : 4, attained;
        batched_problem(&in, 1 + (uint32_t)below(6), 0);
        support_serving_cuts(&in, &cuts);
        assert_int_equal(traffic_make(&in, below(UINT32_MAX), 1, &traffic, &err), STATUS_OK);
        double *fast = latencies_of(&in, stages, 1, below(2), &traffic, &attained);
        double *slow = calloc(traffic.count + 1, sizeof *slow);
        serve_what_waits(&cuts, stages, &traffic, slow);
        assert_int_equal(attained, traffic.count);
        for (uint32_t r = 0; r < traffic.count; r++) support_serving_near(fast[r], slow[r], 1e-9);
        free(fast);
        free(slow);
        traffic_release(&traffic);
        serving_release(&in);
    }
}

/* --- promises, from scratch -------------------------------------------------------------------- */

enum { LIST_MAX = 600 };

struct slow_batch {
    uint32_t members[SERVING_BATCH_MAX], count, model;
    double start_s, end_s;
};

struct slow_group {
    struct slow_batch list[LIST_MAX];
    uint32_t count;
};

/* Sets starts and ends of all batches. Returns true if all requests are within the objective. */
static bool schedule(struct slow_group *group, const struct serving_cuts *cuts, uint32_t stages,
                     const struct traffic *traffic)
{
    const struct serving *in = cuts->in;
    double free_s[8] = {0};
    bool all = true;
    for (uint32_t b = 0; b < group->count; b++) {
        struct slow_batch *batch = &group->list[b];
        const struct serving_model *model = &in->models[batch->model];
        const struct stage_cut *cut = serving_cut(cuts, (struct serving_shape){1, stages}, model->kind);
        double growth = in->kinds[model->kind].degrees[0].growth[batch->count - 1];
        batch->start_s = batch->end_s = fmax(free_s[0], traffic->requests[batch->members[0]].at_s);
        for (uint32_t s = 0; s < stages; s++)
            free_s[s] = batch->end_s = fmax(batch->end_s, free_s[s]) + cut->stage_s[s] * growth;
        for (uint32_t i = 0; i < batch->count; i++)
            all = all && batch->end_s - traffic->requests[batch->members[i]].at_s <=
                             model->objective_s * (1 + SERVING_OBJECTIVE_SLACK);
    }
    return all;
}

static bool try_join(struct slow_group *group, const struct serving_cuts *cuts, uint32_t stages,
                     const struct traffic *traffic, uint32_t request)
{
    uint32_t model = traffic->requests[request].model, b = group->count;
    while (b > 0 && group->list[b - 1].model != model) b--;
    if (b == 0) return false;
    struct slow_batch *batch = &group->list[b - 1];
    if (batch->start_s <= traffic->requests[request].at_s) return false;
    assert_true(group->count < LIST_MAX);
    if (batch->count == cuts->in->kinds[cuts->in->models[model].kind].batch_max) return false;
    group->list[group->count++] = (struct slow_batch){{request}, 1, model, 0, 0};
    schedule(group, cuts, stages, traffic);
    double alone_s = group->list[--group->count].end_s;
    batch->members[batch->count++] = request;
    if (schedule(group, cuts, stages, traffic) && batch->end_s <= alone_s) return true;
    batch->count--;
    schedule(group, cuts, stages, traffic);
    return false;
}

static bool try_alone(struct slow_group *group, const struct serving_cuts *cuts, uint32_t stages,
                      const struct traffic *traffic, uint32_t request)
{
    assert_true(group->count < LIST_MAX);
    group->list[group->count++] = (struct slow_batch){{request}, 1, traffic->requests[request].model, 0, 0};
    if (schedule(group, cuts, stages, traffic)) return true;
    group->count--;
    return false;
}

static uint32_t under_way(const struct slow_group *group, double now_s)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < group->count; b++) count += group->list[b].end_s > now_s ? group->list[b].count : 0;
    return count;
}

static void keeps_its_promises(void **state)
{
    (void)state;
    uint64_t joined = 0, refused = 0;
    for (int trial = 0; trial < 60; trial++) {
        struct serving in;
        struct serving_cuts cuts;
        struct traffic traffic;
        struct error err = {0};
        uint32_t stages = below(2) ? 1 : 2, attained, bound, expected = 0;
        static struct slow_group groups[2];
        batched_problem(&in, 1 + (uint32_t)below(6), 1 + 3 * unit());
        support_serving_cuts(&in, &cuts);
        assert_int_equal(traffic_make(&in, below(UINT32_MAX), 1, &traffic, &err), STATUS_OK);
        double *fast = latencies_of(&in, stages, 2, false, &traffic, &attained);
        double *slow = calloc(traffic.count + 1, sizeof *slow);
        groups[0].count = groups[1].count = 0;
        for (uint32_t r = 0; r < traffic.count; r++) {
            double now_s = traffic.requests[r].at_s;
            struct slow_group *group = &groups[under_way(&groups[1], now_s) < under_way(&groups[0], now_s)];
            slow[r] = NAN;
            if (try_join(group, &cuts, stages, &traffic, r))
                joined++;
            else if (!try_alone(group, &cuts, stages, &traffic, r))
                refused++;
        }
        for (int g = 0; g < 2; g++)
            for (uint32_t b = 0; b < groups[g].count; b++)
                for (uint32_t i = 0; i < groups[g].list[b].count; i++, expected++) {
                    uint32_t r = groups[g].list[b].members[i];
                    slow[r] = groups[g].list[b].end_s - traffic.requests[r].at_s;
                }
        assert_int_equal(attained, expected);
        for (uint32_t r = 0; r < traffic.count; r++) {
            assert_int_equal(isnan(fast[r]), isnan(slow[r]));
            if (!isnan(fast[r])) support_serving_near(fast[r], slow[r], 1e-9);
        }
        assert_int_equal(serving_bound(&in, &traffic, &bound, &err), STATUS_OK);
        assert_true(attained <= bound);
        free(fast);
        free(slow);
        traffic_release(&traffic);
        serving_release(&in);
    }
    assert_true(joined > 100 && refused > 100);
}

/* --- closed forms ------------------------------------------------------------------------------ */

/*
 * K requests at once: the first in a batch of 1, all others in full batches but for the last. L(b) = 0.3 + 0.4 b; of 24
 * requests in batches of 5 the last ends at L(1) + 4 L(5) + L(3) = 0.7 + 4 x 2.3 + 1.5 = 11.4 s, on two stages of
 * half of that each at (0.7 + 4 x 2.3 + 1.5 + 2.3) / 2, for after the slowest batch (of 5) the pipeline is full.
 */
static void saturated_servers_answer_full_batches(void **state)
{
    (void)state;
    for (uint32_t stages = 1; stages <= 2; stages++) {
        struct serving in;
        struct traffic traffic;
        struct error err = {0};
        uint32_t attained;
        double last_s = 0;
        support_serving(&in, "{'spillway_serving': 1, 'devices': 2, 'memory': '9 B', 'horizon': '1s', 'models': ["
                             "{'name': 'm', 'latency': '0.7s', 'layers': 2, 'weights': '2 B', 'batch': {'most': 5, "
                             "'base': '0.3s'},'arrivals': {'times': [0,0,0,0,0,0,0,0, 0,0,0,0,0,0,0,0, "
                             "0,0,0,0,0,0,0,0]}}]}");
        assert_int_equal(traffic_make(&in, 0, 1, &traffic, &err), STATUS_OK);
        double *latency_s = latencies_of(&in, stages, 1, false, &traffic, &attained);
        for (uint32_t r = 0; r < traffic.count; r++) last_s = fmax(last_s, latency_s[r]);
        support_serving_near(last_s, stages == 1 ? 11.4 : 13.7 / 2, 1e-9);
        free(latency_s);
        traffic_release(&traffic);
        serving_release(&in);
    }
}

/*
 * Batches that take D whatever their size, and room for all: every service takes all that came during the one
 * before. They are rate D in the mean; none with probability exp(-rate D), and then the next request begins a
 * service itself. A service takes rate D + exp(-rate D) requests, and rate D of them wait for D / 2 in the mean.
 */
static void free_batches_wait_as_theory_says(void **state)
{
    (void)state;
    static const double rates[] = {0.3, 1, 2.5};
    for (size_t i = 0; i < ARRAY_COUNT(rates); i++) {
        struct serving in;
        struct traffic traffic;
        struct error err = {0};
        uint32_t attained;
        double rate = rates[i], sum = 0, busy = rate / (rate + exp(-rate));
        support_serving(&in, "{'spillway_serving': 1, 'devices': 1, 'memory': '9 B', 'horizon': '100000s', 'models': ["
                             "{'name': 'm', 'latency': '1s', 'weights': '2 B', 'batch': {'most': 64, 'base': '1s'},"
                             "'arrivals': {'rate': %g}}]}", rate);
        assert_int_equal(traffic_make(&in, below(UINT32_MAX), 1, &traffic, &err), STATUS_OK);
        double *latency_s = latencies_of(&in, 1, 1, false, &traffic, &attained);
        for (uint32_t r = 0; r < traffic.count; r++) sum += latency_s[r];
        /* waits are in [0, 1], and waits of one service are correlated: ten times their independent error */
        support_serving_near(sum / traffic.count, 1 + busy / 2, 10 * 0.3 / sqrt(traffic.count));
        free(latency_s);
        traffic_release(&traffic);
        serving_release(&in);
    }
}

/* How many more attain with batches of 8 than without, of requests for one model on one device. */
static double gain(double objective)
{
    double share[2];
    for (int i = 0; i < 2; i++) {
        struct serving in;
        struct traffic traffic;
        struct error err = {0};
        uint32_t attained;
        support_serving(&in, "{'spillway_serving': 1, 'devices': 1, 'memory': '9 B', 'horizon': '2000s', 'models': ["
                             "{'name': 'm', 'latency': '1s', 'weights': '2 B', 'objective_scale': %g, %s"
                             "'arrivals': {'process': 'gamma', 'rate': 1.2, 'cv': 2}}]}", objective,
                        i ? "'batch': {'most': 8, 'base': '0.4s'}," : "");
        assert_int_equal(traffic_make(&in, 3, 1, &traffic, &err), STATUS_OK);
        free(latencies_of(&in, 1, 1, false, &traffic, &attained));
        share[i] = (double)attained / traffic.count;
        traffic_release(&traffic);
        serving_release(&in);
    }
    print_message("objective %g x: %.3f alone, %.3f in batches\n", objective, share[0], share[1]);
    return share[1] - share[0];
}

/* AlpaServe, section 6: with tight objectives there is no time for batches. */
static void tight_objectives_leave_no_time(void **state)
{
    (void)state;
    double tight = gain(1.5), loose = gain(10);
    assert_true(tight == 0); /* two together take 1.6 s */
    assert_true(gain(3) > 0.02 && loose > 0.1);
}

/* --- files ------------------------------------------------------------------------------------- */

#define HEAD "{'spillway_serving': 1, 'devices': 2, 'memory': '4GB', 'horizon': '1s', 'models': [" \
             "{'name': 'a', 'latency': '1s', 'weights': '1GB', 'arrivals': {'rate': 1}, "

static const struct {
    const char *text, *message;
} refused[] = {
    {HEAD "'batch': 4}]}", "test:1:167: 'batch' is a number (expected an object)"},
    {HEAD "'batch': {}}]}", "test:1:167: missing keys 'most' and 'base'"},
    {HEAD "'batch': {'most': 65, 'base': '0s'}}]}", "test:1:176: 'most' is 65 (expected 1 to 64)"},
    {HEAD "'batch': {'most': 4, 'base': '2s'}}]}", "test:1:187: 'base' is '2s' (expected 0 s to 1 s)"},
    {HEAD "'batch': {'latency': {'1': '2s'}}}]}", "test:1:185: '1' is not a batch size (expected 2 to 64)"},
    {HEAD "'batch': {'latency': {'4': '3s', '2': '4s'}}}]}",
     "test:1:179: 4 requests take 3 s, and 2 take 4 s (expected ascending times)"},
    {HEAD "'batch': {'latency': {'4': '0.5s'}}}]}",
     "test:1:179: 4 requests take 0.5 s, and 1 take 1 s (expected ascending times)"},
    {HEAD "'batch': {'latency': {'4': '3s'}, 'most': 2}}]}",
     "test:1:192: unknown key 'most' (expected latency)"},
};

static void files_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct serving in = {0};
        struct error err = {0};
        assert_int_equal(support_serving_parse(refused[i].text, &in, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, refused[i].message);
        serving_release(&in);
    }
}

/* Points at 1, 3 and 4: straight lines between. */
static void tables_have_straight_lines(void **state)
{
    (void)state;
    static const double expected[] = {1, 1.75, 2.5, 2.75};
    struct serving in;
    support_serving(&in, HEAD "'batch': {'latency': {'3': '2.5s', '4': '2.75s'}}}]}");
    assert_int_equal(in.kinds[0].batch_max, 4);
    for (uint32_t b = 0; b < 4; b++) support_serving_near(in.kinds[0].degrees[0].growth[b], expected[b], 1e-12);
    support_serving_near(serving_least_work_s(&in.kinds[0], 1), 2.75 / 4, 1e-12);
    support_serving_near(serving_least_growth(&in.kinds[0], &in.kinds[0].degrees[0], 2.6), 2.5 / 3, 1e-12);
    serving_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(batches_of_one_change_no_bit, set_seed),
        cmocka_unit_test_setup(takes_what_waits, set_seed),
        cmocka_unit_test_setup(keeps_its_promises, set_seed),
        cmocka_unit_test(saturated_servers_answer_full_batches),
        cmocka_unit_test_setup(free_batches_wait_as_theory_says, set_seed),
        cmocka_unit_test(tight_objectives_leave_no_time),
        cmocka_unit_test(files_are_refused),
        cmocka_unit_test(tables_have_straight_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
