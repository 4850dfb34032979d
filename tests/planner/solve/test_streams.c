/* label: medium
 * Instances with streams: the clock against its independent check, bounds against all orders, and the programs for
 * solvers against the optimum.
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
#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/exact/stream_solve.h"
#include "planner/solve/exact/stream_tails.h"
#include "planner/solve/instance/timetable.h"
#include "planner/solve/instance/timetable_check.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/support_seed.h"

/* Draws jobs of one to three shards: forward passes, then backward passes that write. */
static void draw_job(uint64_t key, uint32_t j, bool extras, struct instance *in)
{
    struct instance_job *job = &in->jobs[j];
    bool on_host = random_below(key, j, 2), embedding = random_below(key, 100 + j, 3) == 0;
    for (uint32_t i = 0; i < job->unit_count; i++) {
        uint64_t at = 1000 + j * 64 + i;
        uint32_t shards = (job->unit_count + 1) / 2;
        struct instance_unit *u = &in->units[job->first_unit + i];
        *u = (struct instance_unit){.job = j, .shard = i < shards ? i : 2 * shards - 2 - i, .memory = 1,
                                    .writes = i + 1 >= shards, .in = (int64_t)random_below(key, at, 9),
                                    .edge_in = i > 0 ? (int64_t)random_below(key, at + 300, 4) : 0,
                                    .edge_out = i + 1 < job->unit_count ? (int64_t)random_below(key, at + 600, 4) : 0};
        u->out = u->writes || random_below(key, at + 900, 3) == 0 ? (int64_t)random_below(key, at + 1200, 7) : 0;
        u->update = u->writes && on_host ? (int64_t)random_below(key, at + 1500, 8) : 0;
        u->out_apart = !u->writes || on_host;
        u->in_apart = u->writes && random_below(key, at + 1800, 3) == 0;
        if (i == 0 && embedding) u->host_before = 1 + (int64_t)random_below(key, at + 2100, 4);
        if (i + 1 == job->unit_count && embedding) u->host_after = 1 + (int64_t)random_below(key, at + 2400, 4);
        if (extras && u->writes) {
            u->table = (int64_t)random_below(key, at + 3000, 5);
            u->after_host = embedding && random_below(key, at + 3300, 2);
        }
        if (extras) u->memory = random_below(key, at + 3600, 4);
        in->compute[job->first_unit + i] = 1 + (int64_t)random_below(key, at + 2700, 9);
    }
}

/* Draws an instance of `jobs` jobs with 1 or 3 units in `minibatches` minibatches. `extras`: with parts that tails and
 * programs leave out. */
static void draw(uint64_t key, uint32_t jobs, uint32_t minibatches, bool extras, struct instance *in)
{
    struct error err = {0};
    uint32_t counts[16], units = 0;
    for (uint32_t j = 0; j < jobs; j++) units += counts[j] = 1 + 2 * (uint32_t)random_below(key, 50 + j, 2);
    *in = (struct instance){.streams = true, .name = "streams"};
    if (instance_init(in, 1, jobs, units, &err)) fail_msg("%s", err.text);
    in->classes[0] = (struct instance_class){.name = "device", .device_count = 1 + (uint32_t)random_below(key, 40, 2),
                                             .memory = 4, .slots = 1 + (uint32_t)random_below(key, 41, 3)};
    if (extras) in->classes[0].edges = (uint32_t)random_below(key, 42, 4);
    for (uint32_t j = 0, first = 0; j < jobs; first += counts[j++]) {
        in->jobs[j] = (struct instance_job){.name = "job", .first_unit = first, .unit_count = counts[j], .weight = 1,
                                            .repeat = minibatches, .deadline = INSTANCE_HORIZON_MAX};
        if (extras) in->jobs[j].load = (int64_t)random_below(key, 60 + j, 5);
        if (extras) in->jobs[j].store = (int64_t)random_below(key, 80 + j, 5);
        draw_job(key, j, extras, in);
    }
    if (instance_finish(in, &err)) fail_msg("%s", err.text);
}

static void random_order(const struct instance *in, uint64_t key, struct dispatch_step *steps)
{
    uint32_t left[16], jobs = in->job_count;
    for (uint32_t j = 0; j < jobs; j++) left[j] = instance_length(&in->jobs[j]);
    for (uint32_t t = 0; t < in->task_count; t++) {
        uint32_t job = (uint32_t)random_below(key, 2 * t, jobs);
        while (left[job] == 0) job = (job + 1) % jobs;
        left[job]--;
        steps[t] = (struct dispatch_step){job, (uint32_t)random_below(key, 2 * t + 1, in->device_count)};
    }
}

static void dispatches_pass_the_check(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    uint32_t refused = 0, tried = 0;
    for (uint32_t c = 0; c < 2000; c++) {
        uint64_t key = random_mix(seed + c);
        struct instance in;
        struct timetable table;
        struct error err = {0};
        struct dispatch_step steps[64];
        struct instance_bounds bounds;
        draw(key, 2 + c % 4, 1 + c % 3, c % 2, &in);
        random_order(&in, key, steps);
        assert_int_equal(timetable_make(&in, steps, &table, &err), 0);
        if (timetable_check(&in, &table, &err))
            fail_msg("case %u of seed %llu: %s", c, (unsigned long long)seed, err.text);
        assert_int_equal(instance_bounds_make(&in, &bounds, &err), 0);
        if (instance_bounds_best(&bounds) > table.value)
            fail_msg("case %u of seed %llu: the %s bound is %lld, an order ends at %lld", c, (unsigned long long)seed,
                     instance_bound_names[bounds.best], (long long)instance_bounds_best(&bounds),
                     (long long)table.value);
        /* The last task of a schedule waits for nothing but these rules. */
        uint32_t last = 0;
        for (uint32_t t = 1; t < table.task_count; t++)
            if (table.tasks[t].start > table.tasks[last].start) last = t;
        table.tasks[last].start--;
        struct error why = {0};
        refused += timetable_check(&in, &table, &why) == STATUS_CHECK;
        tried++;
        instance_bounds_release(&bounds);
        timetable_release(&table);
        instance_release(&in);
    }
    assert_true(refused * 10 > tried * 9);
}

static void raise(int64_t *longest, int64_t clock, int64_t tail)
{
    if (tail >= 0 && clock + tail > *longest) *longest = clock + tail;
}

/* Returns the longest of all clocks' paths, and of the jobs' ends so far. */
static int64_t longest_of(const struct dispatch *d, const struct stream_tails *tails)
{
    const struct instance *in = d->in;
    int64_t longest = 0;
    for (uint32_t j = 0; j < in->job_count; j++) {
        raise(&longest, d->jobs[j].end, 0);
        raise(&longest, d->jobs[j].ended, tails->ended[j]);
        raise(&longest, d->streams->boundary[j], tails->boundary[j]);
    }
    for (uint32_t g = 0; g < in->device_count; g++) {
        const struct stream_device *on = &d->streams->devices[g];
        const struct stream_device_tails *to = &tails->devices[g];
        raise(&longest, on->in, to->in);
        raise(&longest, on->compute, to->compute);
        raise(&longest, on->out, to->out);
        for (uint32_t i = 0; i < in->classes[0].slots; i++) {
            raise(&longest, on->buffer[(on->turn + i) % in->classes[0].slots], to->buffer[i]);
            raise(&longest, on->left[(on->turn + i) % in->classes[0].slots], to->left[i]);
        }
    }
    for (uint32_t u = 0; u < in->unit_count; u++) raise(&longest, d->streams->ready[u], tails->ready[u]);
    raise(&longest, d->streams->host, tails->host);
    return longest;
}

/* The largest clock plus its path is the makespan, where no task waits for another device's start. */
static void tails_lead_to_the_end(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    uint32_t equal = 0, cases = 500;
    for (uint32_t c = 0; c < cases; c++) {
        uint64_t key = random_mix(seed + c);
        struct instance in;
        struct error err = {0};
        struct dispatch_step steps[64];
        struct dispatch *d = NULL, *whole = NULL;
        struct stream_tails tails;
        draw(key, 2 + c % 4, 1 + c % 3, false, &in);
        random_order(&in, key, steps);
        assert_int_equal(dispatch_create(&in, &d, &err), 0);
        assert_int_equal(dispatch_create(&in, &whole, &err), 0);
        uint32_t cut = (uint32_t)random_below(key, 777, in.task_count);
        for (uint32_t t = 0; t < cut; t++) dispatch_put(d, steps[t].job, steps[t].device);
        assert_int_equal(stream_tails_make(d, steps + cut, in.task_count - cut, &tails, &err), 0);
        dispatch_copy(whole, d);
        for (uint32_t t = cut; t < in.task_count; t++) dispatch_put(whole, steps[t].job, steps[t].device);
        int64_t longest = longest_of(d, &tails);
        assert_true(longest <= dispatch_value(whole));
        equal += longest == dispatch_value(whole);
        if (in.device_count == 1) assert_int_equal(longest, dispatch_value(whole));
        stream_tails_release(&tails);
        dispatch_destroy(d);
        dispatch_destroy(whole);
        instance_release(&in);
    }
    assert_true(equal * 2 > cases);
}

static void programs_have_the_optimum(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    uint32_t proven = 0, cases = SUPPORT_ROUNDS(60);
    for (uint32_t c = 0; c < cases; c++) {
        uint64_t key = random_mix(seed + c);
        struct instance in;
        struct error err = {0};
        struct dispatch_step steps[64];
        struct timetable table;
        struct stream_solve_result result;
        const struct stream_solve_options how = {.solver = "glpk", .until_s = HUGE_VAL, .windows = 10};
        for (uint32_t draws = 0;; draws++) {
            draw(random_mix(key + draws), 2 + c % 2, 1 + c % 2, c % 3 == 2, &in);
            if (in.task_count <= 6) break;
            instance_release(&in);
        }
        int64_t best = test_brute_force(&in), value;
        random_order(&in, key, steps);
        assert_int_equal(timetable_make(&in, steps, &table, &err), 0);
        value = table.value;
        timetable_release(&table);
        if (stream_solve(&in, 0, &how, steps, &value, &result, &err)) fail_msg("%s", err.text);
        if (result.bound > best) test_instance_wrong(&in, seed, c, "GLPK's bound", result.bound, best);
        if (value < best) test_instance_wrong(&in, seed, c, "an order", value, best);
        if (result.proven && value != best) test_instance_wrong(&in, seed, c, "a proven order", value, best);
        proven += result.proven;
        instance_release(&in);
    }
    printf("%u of %u proven\n", proven, cases);
    assert_true(proven * 10 >= cases); /* programs leave some waits out */
}

/* Windows never make an order worse, and improve bad ones. */
static void windows_improve(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    uint32_t improved = 0, cases = SUPPORT_ROUNDS(12);
    for (uint32_t c = 0; c < cases; c++) {
        struct instance in;
        struct error err = {0};
        struct dispatch_step steps[64];
        struct timetable table;
        struct stream_solve_result result;
        const struct stream_solve_options how = {.solver = "glpk", .until_s = HUGE_VAL, .windows = 8, .nodes_max = 300};
        draw(random_mix(seed + c), 5, 3, c % 2, &in);
        random_order(&in, seed + c, steps);
        assert_int_equal(timetable_make(&in, steps, &table, &err), 0);
        int64_t before = table.value, value = before;
        timetable_release(&table);
        if (stream_solve(&in, 0, &how, steps, &value, &result, &err)) fail_msg("%s", err.text);
        assert_int_equal(timetable_make(&in, steps, &table, &err), 0);
        assert_int_equal(table.value, value);
        assert_true(value <= before);
        improved += value < before;
        timetable_release(&table);
        instance_release(&in);
    }
    assert_true(improved * 2 > cases);
}

/* The search is certified, and near the optimum where all orders can be looked at. */
static void certificates_hold(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    uint32_t optimal = 0, cases = 40;
    for (uint32_t c = 0; c < cases; c++) {
        struct instance in;
        struct error err = {0};
        struct timetable table;
        struct certificate certificate;
        const struct certify_options how = {.seed = c, .iterations = 400, .search_limit_s = HUGE_VAL,
                                            .exact_limit_s = HUGE_VAL};
        draw(random_mix(seed + c), 2, 1 + c % 2, c % 2, &in);
        if (in.task_count <= 7) {
            int64_t best = test_brute_force(&in);
            if (certify(&in, &how, &table, &certificate, &err)) fail_msg("%s", err.text);
            assert_true(certificate.bound <= best && certificate.value >= best);
            optimal += certificate.value == best;
            timetable_release(&table);
        } else {
            optimal++;
        }
        instance_release(&in);
    }
    printf("%u of %u optimal\n", optimal, cases);
    assert_true(optimal * 10 >= cases * 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dispatches_pass_the_check), cmocka_unit_test(tails_lead_to_the_end),
        cmocka_unit_test(programs_have_the_optimum), cmocka_unit_test(windows_improve),
        cmocka_unit_test(certificates_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
