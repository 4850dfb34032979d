/*
 * Runs through failures: traces by hand, the parts of every run add up, means against closed forms of renewal
 * theory, cheaper checkpoints, files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/size.h"
#include "sim/failure_simulation.h"
#include "tests/support/support_json.h"
#include "tests/support/support_seed.h"

static uint64_t seed;

static int set_seed(void **state)
{
    (void)state;
    if (seed == 0) seed = support_seed("test_sim_survival");
    return 0;
}

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g is not within %g of %.17g", a, tolerance, b);
}

static enum status parse(const char *text, uint32_t devices, struct arena *arena, struct failures *out,
                         struct error *err)
{
    struct json_input *input;
    enum status status = test_json_parse(text, &input, err);
    if (!status) status = failures_parse(input, json_input_root(input), devices, arena, out, err);
    json_input_destroy(input);
    return status;
}

static struct failure_simulation run_one(const struct failures *f, uint32_t devices, double work_s, uint64_t number)
{
    struct failure_simulation out;
    struct error err = {0};
    struct failure_simulation_case of = {f, devices, work_s, f->checkpoint_every_s, random_u64(seed, number)};
    if (failure_simulation_run(&of, &out, &err)) fail_msg("%s", err.text);
    double parts_s = out.work_s + out.again_s + out.slow_s + out.checkpoint_s + out.restart_s + out.waiting_s;
    assert_near(parts_s, out.wall_s, 1e-9 * (1 + out.wall_s));
    if (out.ended) assert_near(out.work_s, work_s, 1e-9 * work_s);
    return out;
}

static struct failure_simulation run_text(const char *text, uint32_t devices, double work_s)
{
    struct failures f;
    struct arena arena = {0};
    struct error err = {0};
    if (parse(text, devices, &arena, &f, &err)) fail_msg("%s", err.text);
    struct failure_simulation out = run_one(&f, devices, work_s, 0);
    arena_release(&arena);
    return out;
}

/* --- by hand ---------------------------------------------------------------------------------- */

#define F "{'spillway_failures': 1, "
#define CHECKPOINTS F "'checkpoint': {'every': '10s', 'cost': '1s'}, 'restart': '2s', "

static const struct {
    const char *text;
    double work_s, wall_s, again_s, waiting_s, restart_s, slow_s, checkpoint_s;
    uint32_t interruptions;
} by_hand[] = {
    /* 10 work, 1 writing, 10 work, 1 writing, 5 work: none at the end */
    {CHECKPOINTS "'events': []}", 25, 27, 0, 0, 0, 0, 2, 0},
    /* at 15 the 4 s after the first checkpoint are lost; away until 18, back to work at 20, 10, 1, 5 */
    {CHECKPOINTS "'events': [{'at': '15s', 'for': '3s', 'device': 1}]}", 25, 36, 4, 3, 2, 0, 2, 1},
    /* in the middle of writing: the 10 s are lost, and half a second of writing */
    {CHECKPOINTS "'events': [{'at': '10.5s', 'for': '0s', 'device': 0}]}", 25, 39.5, 10, 0, 2, 0, 2.5, 1},
    /* again while it restarts (15 to 17): from 16 on once more */
    {CHECKPOINTS "'events': [{'at': '15s', 'for': '0s', 'device': 1},"
                 " {'at': '16s', 'for': '0s', 'device': 0}]}", 25, 34, 4, 0, 3, 0, 2, 2},
    /* a spare is there at once, whatever the repair takes */
    {CHECKPOINTS "'spares': 1, 'events': [{'at': '15s', 'for': '300s', 'device': 1}]}", 25, 33, 4, 0, 2, 0, 2, 1},
    /* the spare is gone when the second fails, and back at 25: 4 lost, the 3 from 17 to 20 too, waits until 25 */
    {CHECKPOINTS "'spares': 1, 'events': [{'at': '15s', 'for': '10s', 'device': 1},"
                 " {'at': '20s', 'for': '100s', 'device': 0}]}", 25, 43, 7, 5, 4, 0, 2, 2},
    /* slow by 3 from 2 to 8: 2 of the 6 seconds are work */
    {F "'events': [{'at': '2s', 'for': '6s', 'device': 0, 'factor': 3}]}", 25, 29, 0, 0, 0, 4, 0, 0},
    /* the slower of two counts: 3 from 2 to 4, 4 from 4 to 6, 3 until 8 */
    {F "'events': [{'at': '2s', 'for': '6s', 'device': 0, 'factor': 3},"
       " {'at': '4s', 'for': '2s', 'device': 1, 'factor': 4}]}",
     25, 31 - 4. / 3 - 0.5, 0, 0, 0, 6 - 4. / 3 - 0.5, 0, 0},
    /* elastic, half as fast: from 17 on 10 s until 37, writing until 38, when both are there again; 5 more */
    {CHECKPOINTS "'elastic': true, 'events': [{'at': '15s', 'for': '9s', 'device': 1}]}",
     25, 43, 4, 0, 2, 10, 2, 1},
    /* but two at least: as if it were not */
    {CHECKPOINTS "'elastic': true, 'least': 2, 'events': [{'at': '15s', 'for': '3s', 'device': 1}]}",
     25, 36, 4, 3, 2, 0, 2, 1},
    /* nothing was saved */
    {F "'restart': '2s', 'events': [{'at': '24s', 'for': '0s', 'device': 1}]}", 25, 51, 24, 0, 2, 0, 0, 1},
};

static void as_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(by_hand); i++) {
        struct failure_simulation got = run_text(by_hand[i].text, 2, by_hand[i].work_s);
        assert_true(got.ended);
        assert_near(got.wall_s, by_hand[i].wall_s, 1e-9);
        assert_near(got.again_s, by_hand[i].again_s, 1e-9);
        assert_near(got.waiting_s, by_hand[i].waiting_s, 1e-9);
        assert_near(got.restart_s, by_hand[i].restart_s, 1e-9);
        assert_near(got.slow_s, by_hand[i].slow_s, 1e-9);
        assert_near(got.checkpoint_s, by_hand[i].checkpoint_s, 1e-9);
        assert_int_equal(got.interruptions, by_hand[i].interruptions);
    }
}

/* --- closed forms ----------------------------------------------------------------------------- */

struct moments {
    double mean, error;
};

static struct moments wall_of(const struct failures *f, uint32_t devices, double work_s, uint32_t runs)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < runs; i++) {
        double s = run_one(f, devices, work_s, i).wall_s;
        sum += s;
        squares += s * s;
    }
    double mean = sum / runs;
    return (struct moments){mean, sqrt((squares / runs - mean * mean) / (runs - 1))};
}

static struct failures never(void)
{
    return (struct failures){.mtbf_s = HUGE_VAL, .shape = 1, .checkpoint_every_s = HUGE_VAL,
                             .straggle_every_s = HUGE_VAL, .straggle_factor = 1, .least = 1};
}

/*
 * Exponential failures of rate r in all, that cost a restart R which can fail too: a stretch of length L takes
 * e^(r R) (e^(r L) - 1) / r in the mean. The last stretch has no checkpoint after it.
 */
static void means_are_those_of_theory(void **state)
{
    (void)state;
    static const struct {
        uint32_t devices;
        double mtbf_s, restart_s, every_s, cost_s, work_s;
    } cases[] = {{1, 100, 0, 30, 0, 100}, {1, 100, 20, 30, 5, 100},
                 {64, 3000, 10, 25, 3, 250}, {7, 700, 30, 1000, 3, 80}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct failures f = never();
        f.mtbf_s = cases[i].mtbf_s;
        f.restart_s = cases[i].restart_s;
        f.checkpoint_every_s = cases[i].every_s;
        f.checkpoint_s = cases[i].cost_s;
        double r = cases[i].devices / f.mtbf_s, whole = ceil(cases[i].work_s / f.checkpoint_every_s) - 1;
        double last_s = cases[i].work_s - whole * f.checkpoint_every_s;
        double expected_s = exp(r * f.restart_s) / r *
                            (whole * expm1(r * (f.checkpoint_every_s + f.checkpoint_s)) + expm1(r * last_s));
        struct moments got = wall_of(&f, cases[i].devices, cases[i].work_s, 20000);
        assert_near(got.mean, expected_s, 5 * got.error);
        assert_true(got.error < 0.02 * expected_s);
    }
    /* one device that is away for a repair, during which nothing else fails: (e^(r W) - 1) (1 / r + repair) */
    struct failures f = never();
    f.mtbf_s = 50;
    f.repair_s = 40;
    struct moments got = wall_of(&f, 1, 60, 20000);
    assert_near(got.mean, expm1(60. / 50) * (50 + 40), 5 * got.error);
    /* slow for b every a, by a factor: in the long run a share b / (a + b) of the time at 1 / factor */
    f = never();
    f.straggle_every_s = 30;
    f.straggle_s = 10;
    f.straggle_factor = 4;
    got = wall_of(&f, 1, 40000, 40);
    assert_near(got.mean, 40000 / (0.75 + 0.25 / 4), 5 * got.error + 40);
}

/* Weibull lives have the stated mean: counts renewals in a long time. */
static void lives_have_their_mean(void **state)
{
    (void)state;
    static const double shapes[] = {0.5, 1, 3};
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        struct failures f = never();
        f.mtbf_s = 10;
        f.shape = shapes[i];
        f.checkpoint_every_s = 0.01;
        double count = 0, time_s = 0;
        for (uint32_t n = 0; n < 20; n++) {
            struct failure_simulation one = run_one(&f, 4, 2000, n);
            count += one.interruptions;
            time_s += one.wall_s;
        }
        double expected = 4 * time_s / 10, cv = shapes[i] < 1 ? sqrt(5) : 1;
        assert_near(count, expected, 5 * cv * sqrt(expected) + 20 * 4 * 2);
    }
}

/* Compares the minimum of the closed form with points around it. */
static void best_interval_is_a_minimum(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        double rate = pow(10, 6 * random_unit(seed, 2 * i) - 7);
        double cost_s = pow(10, 4 * random_unit(seed, 2 * i + 1) - 1);
        double best_s = failures_best_interval_s(rate, cost_s);
        double least = expm1(rate * (best_s + cost_s)) / best_s;
        for (double factor = 0.5; factor < 2; factor += 0.0625)
            assert_true(expm1(rate * (factor * best_s + cost_s)) / (factor * best_s) >= least * (1 - 1e-9));
        /* Young's first order, where it holds */
        if (rate * cost_s < 1e-6) assert_near(best_s, sqrt(2 * cost_s / rate), 0.01 * best_s);
    }
    assert_true(failures_best_interval_s(0, 1) == HUGE_VAL);
    assert_true(failures_best_interval_s(1, 0) == HUGE_VAL);
}

/* With the same failures at the same times, checkpoints that cost nothing never make a run longer. */
static void cheaper_checkpoints_help(void **state)
{
    (void)state;
    uint32_t shorter = 0;
    for (uint32_t i = 0; i < 300; i++) {
        struct failures f = never();
        f.mtbf_s = 20 + 400 * random_unit(seed, 1000 + 2 * i);
        f.checkpoint_every_s = 5;
        f.checkpoint_s = 0.5;
        struct failure_simulation plain = run_one(&f, 3, 100, i);
        f.checkpoint_s = 0;
        struct failure_simulation cheap = run_one(&f, 3, 100, i);
        assert_true(cheap.wall_s <= plain.wall_s);
        shorter += cheap.wall_s < plain.wall_s;
    }
    assert_true(shorter > 290);
}

static void gives_up(void **state)
{
    (void)state;
    /* it never comes back; and one that cannot come to its first checkpoint */
    struct failure_simulation got = run_text(F "'events': [{'at': '5s', 'for': '1000000s', 'device': 1}]}", 2, 10);
    assert_false(got.ended);
    assert_true(got.wall_s >= FAILURE_SIMULATION_PATIENCE * 10);
    got = run_text(F "'mtbf': '1s'}", 1000, 10);
    assert_false(got.ended);
}

/* --- files ------------------------------------------------------------------------------------ */

static const struct {
    const char *text, *message;
} refused[] = {
    {"{'mtbf': '1h'}", "test:1:1: missing key 'spillway_failures'"},
    {F "'mtbf': '0s'}", "test:1:34: 'mtbf' is '0s' (expected 1 ms to 11574074 d 2 h)"},
    {F "'mtbf': '10'}", "test:1:34: 'mtbf': '10' has no unit (expected a time such as 5us)"},
    {F "'least': 3}", "test:1:35: 'least' is 3 (expected 1 to 2)"},
    {F "'checkpoint': {'cost': '1s'}}", "test:1:40: missing key 'every'"},
    {F "'events': [{'at': '1s', 'device': 2, 'for': '1s'}]}", "test:1:60: 'device' is 2 (expected 0 to 1)"},
    {F "'events': [{'at': '1s', 'device': 1, 'for': '1s', 'factor': 0.5}]}",
     "test:1:86: 'factor' is 0.5 (expected 1 to 1000000)"},
    {F "'mtfb': '1h'}", "test:1:26: unknown key 'mtfb' (did you mean 'mtbf'?)"},
};

static void files_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct failures f;
        struct arena arena = {0};
        struct error err = {0};
        assert_int_equal(parse(refused[i].text, 2, &arena, &f, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, refused[i].message);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(as_by_hand, set_seed),
        cmocka_unit_test_setup(means_are_those_of_theory, set_seed),
        cmocka_unit_test_setup(lives_have_their_mean, set_seed),
        cmocka_unit_test_setup(best_interval_is_a_minimum, set_seed),
        cmocka_unit_test_setup(cheaper_checkpoints_help, set_seed),
        cmocka_unit_test_setup(gives_up, set_seed),
        cmocka_unit_test_setup(files_are_refused, set_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
