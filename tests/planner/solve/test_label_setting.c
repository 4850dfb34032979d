/* label: medium, all rounds: slow
 * The label-setting dynamic program against trying everything and against branch and bound in depth; the bounds by
 * prices against schedules that exist; both directions; limits of width, memory, nodes and time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/clock.h"
#include "base/random.h"
#include "planner/solve/bounds/lagrangian_bound.h"
#include "planner/solve/exact/branch_bound.h"
#include "planner/solve/exact/label_set.h"
#include "planner/solve/exact/label_setting.h"
#include "planner/solve/instance/instance_random.h"
#include "planner/solve/instance/timetable_check.h"
#include "planner/solve/search/list_baseline.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/support_seed.h"

static void stop(const struct instance *in, uint64_t seed, const char *what, int64_t found, int64_t expected)
{
    test_instance_print(in);
    fail_msg("seed %" PRIu64 ": %s %" PRId64 ", optimum %" PRId64, seed, what, found, expected);
}

/* A makespan of jobs on devices, alike or not, with what makes rules of time differ. */
static bool make_tiny(uint64_t seed, uint32_t jobs, uint32_t tasks_max, struct instance *in)
{
    struct error err = {0};
    test_instance_tiny(seed, jobs, in);
    in->objective = OBJECTIVE_MAKESPAN;
    in->bridge_bytes_per_tick = 0;
    for (uint32_t u = 0; u < in->unit_count && seed % 3 == 0; u++) { /* what one task writes the next one reads */
        in->units[u].shard = 0;
        in->units[u].writes = true;
        in->units[u].out = (int64_t)random_below(seed, u, 8);
    }
    if (instance_finish(in, &err)) fail_msg("%s", err.text);
    if (in->task_count <= tasks_max) return true;
    instance_release(in);
    return false;
}

/* Label setting from a schedule of `value`, none if nothing was found; the schedule is checked. */
static int64_t by_label_setting(const struct instance *in, const struct label_setting_options *options, int64_t value)
{
    struct instance_bounds bounds = {0};
    struct label_setting_result result;
    struct timetable table = {0};
    struct error err = {0};
    struct dispatch_step *steps = calloc(in->task_count, sizeof *steps);
    int64_t found = value;
    assert_non_null(steps);
    if (instance_bounds_make(in, &bounds, &err)) fail_msg("%s", err.text);
    if (label_setting_run(in, &bounds, options, steps, &found, &result, &err)) fail_msg("%s", err.text);
    assert_true(result.proven);
    if (found < value) {
        if (timetable_make(in, steps, &table, &err) || timetable_check(in, &table, &err)) fail_msg("%s", err.text);
        assert_int_equal(table.value, found);
        timetable_release(&table);
    }
    instance_bounds_release(&bounds);
    free(steps);
    return found;
}

static int64_t by_depth(const struct instance *in)
{
    struct instance_bounds bounds = {0};
    struct branch_bound_options options = {.until_s = HUGE_VAL};
    struct branch_bound_result result;
    struct error err = {0};
    int64_t value;
    struct dispatch_step *steps = calloc(in->task_count, sizeof *steps);
    assert_non_null(steps);
    if (instance_bounds_make(in, &bounds, &err) || list_baseline_lrtf(in, HUGE_VAL, steps, &value, &err) ||
        branch_bound_run(in, &bounds, &options, steps, &value, &result, &err))
        fail_msg("%s", err.text);
    assert_true(result.proven);
    instance_bounds_release(&bounds);
    free(steps);
    return value;
}

/* Checks that the optimum is found, or proven, from any known schedule. */
static void check_optimum(const struct instance *in, uint64_t seed, uint64_t draw, int64_t best)
{
    struct label_setting_options options = {
        .until_s = HUGE_VAL, .memory_bytes = 64 << 20, .sides = (uint32_t)(draw % 4),
        .width = (uint32_t)(draw / 4 % 3), .fit_min = (uint32_t)(draw / 12 % 4 / 2 * 2)};
    static const char *const names[] = {"label setting", "label setting from the front", "label setting from the end",
                                        "label setting of both"};
    int64_t before[] = {best, best + 1, best + 1 + best / 4};
    for (uint32_t b = 0; b < (draw % 5 == 0 ? 3 : 2); b++) {
        int64_t found = by_label_setting(in, &options, before[b]);
        if (found != best) stop(in, seed, names[options.sides], found, best);
    }
}

static void tiny(void **state)
{
    (void)state;
    uint32_t tried = 0;
    uint64_t seed = support_seed("layers of tiny instances");
    for (uint32_t c = 0; c < support_rounds(60, 150); c++) {
        struct instance in;
        if (!make_tiny(random_u64(seed, c), 3, 7, &in)) continue;
        check_optimum(&in, seed, random_u64(seed ^ 1, c), test_brute_force(&in));
        instance_release(&in);
        tried++;
    }
    assert_true(tried > support_rounds(12, 40));
}

/* More tasks than can be tried one after another: two exact methods that share neither bounds nor memory. */
static void small(void **state)
{
    (void)state;
    uint64_t seed = support_seed("layers of small instances");
    for (uint32_t c = 0; c < support_rounds(16, 40); c++) {
        struct instance in;
        if (!make_tiny(random_u64(seed, c), 6, 13, &in)) continue;
        check_optimum(&in, seed, random_u64(seed ^ 1, c), by_depth(&in));
        instance_release(&in);
    }
    for (uint32_t c = 0; c < 12; c++) {
        struct instance_random options = {.family = (enum instance_family)(c % 4), .seed = random_u64(seed ^ 2, c) >> 8,
                                          .devices = {2, 4}, .jobs = {3, 5}, .shards = {2, 3}, .minibatches = {1, 1}};
        struct instance in = {0};
        struct error err = {0};
        if (instance_random(&options, &in, &err)) fail_msg("%s", err.text);
        if (in.task_count <= 15) check_optimum(&in, seed, random_u64(seed ^ 3, c), by_depth(&in));
        instance_release(&in);
    }
}

/* --- prices ---------------------------------------------------------------------------------- */

static int compare_tasks(const void *a, const void *b)
{
    const struct timetable_task *x = *(const struct timetable_task *const *)a,
        *y = *(const struct timetable_task *const *)b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->job != y->job) return x->job < y->job ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

/* Returns the states that a schedule goes through, in order of time or mirrored. */
static uint32_t pass_states(const struct task_net *net, const struct timetable *table, int64_t limit,
                            struct lagrangian_state *states)
{
    const struct timetable_task *tasks[TASK_NET_TASKS_MAX];
    uint32_t n = net->task_count;
    for (uint32_t t = 0; t < n; t++) tasks[t] = &table->tasks[t];
    qsort(tasks, n, sizeof tasks[0], compare_tasks);
    lagrangian_state_begin(net, &states[0]);
    for (uint32_t t = 0; t < n; t++) {
        const struct timetable_task *task = tasks[net->mirrored ? n - 1 - t : t];
        struct lagrangian_state *to = &states[t + 1];
        *to = states[t];
        uint32_t k = to->next[task->job]++, g = 0;
        while ((uint32_t)(task - table->tasks) >= table->device_first[g + 1]) g++;
        to->now = (int32_t)(net->mirrored ? limit - task->start : task->start);
        to->start[g] = to->now;
        to->task[g] = (uint16_t)k;
        to->soon[task->job] = to->now + net->classes[net->in->device_class[g]].step[k];
    }
    return n + 1;
}

/* A state of a schedule within the limit is never found hopeless, for any fit of the prices. */
static void prices(void **state)
{
    (void)state;
    uint64_t seed = support_seed("prices");
    for (uint32_t c = 0; c < support_rounds(16, 40); c++) {
        struct instance in;
        struct instance_bounds bounds = {0};
        struct timetable table = {0};
        struct error err = {0};
        int64_t value;
        if (!make_tiny(random_u64(seed, c), 6, 14, &in)) continue;
        struct dispatch_step *steps = calloc(in.task_count, sizeof *steps);
        struct lagrangian_state *states = calloc(in.task_count + 1u, sizeof *states);
        assert_non_null(steps);
        assert_non_null(states);
        if (instance_bounds_make(&in, &bounds, &err) || list_baseline_hydra(&in, HUGE_VAL, steps, &value, &err) ||
            timetable_make(&in, steps, &table, &err))
            fail_msg("%s", err.text);
        for (uint32_t mirrored = 0; mirrored < (in.class_count == 1 ? 2 : 1); mirrored++) {
            struct task_net *net;
            struct lagrangian_bound *p;
            if (task_net_create(&in, mirrored, &net, &err) ||
                lagrangian_bound_create(net, &bounds, value + 5, &p, &err))
                fail_msg("%s", err.text);
            lagrangian_bound_limit(p, value);
            uint32_t count = pass_states(net, &table, value, states);
            for (uint32_t round = 0; round < 4; round++) {
                lagrangian_bound_fit(p, states + random_below(seed ^ c, round, count), 1, 5u << round, HUGE_VAL);
                for (uint32_t s = 0; s < count; s++)
                    if (lagrangian_bound_slack(p, &states[s]) < 0)
                        stop(&in, seed, mirrored ? "mirrored slack" : "slack", lagrangian_bound_slack(p, &states[s]),
                             s);
            }
            lagrangian_bound_destroy(p);
            task_net_destroy(net);
        }
        free(steps);
        free(states);
        timetable_release(&table);
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
}

/* Two tasks of 3 and 4 ticks in a chain, copies of 2 in and 1 out: 2 + 3 + 4 + 1 = 10, which only the windows know. */
static void prices_of_a_chain(void **state)
{
    (void)state;
    struct instance in;
    struct instance_bounds bounds = {0};
    struct error err = {0};
    test_instance("{'spillway_instance': 1, 'devices': [{'memory': 9}], 'jobs': [{'name': 'a', 'units': ["
                  "{'compute': 3, 'in': 2, 'memory': 1, 'shard': 0},"
                  "{'compute': 4, 'in': 1, 'out': 1, 'writes': true, 'memory': 1, 'shard': 1}]}]}", &in);
    if (instance_bounds_make(&in, &bounds, &err)) fail_msg("%s", err.text);
    for (uint32_t mirrored = 0; mirrored < 2; mirrored++) {
        struct task_net *net;
        struct lagrangian_bound *p;
        struct lagrangian_state root;
        if (task_net_create(&in, mirrored, &net, &err) || lagrangian_bound_create(net, &bounds, 10, &p, &err))
            fail_msg("%s", err.text);
        lagrangian_state_begin(net, &root);
        lagrangian_bound_fit(p, &root, 1, 1, HUGE_VAL);
        assert_true(lagrangian_bound_slack(p, &root) >= 0);
        lagrangian_bound_limit(p, 9);
        lagrangian_bound_fit(p, &root, 1, 1, HUGE_VAL);
        assert_true(lagrangian_bound_slack(p, &root) < 0);
        lagrangian_bound_destroy(p);
        task_net_destroy(net);
    }
    instance_bounds_release(&bounds);
    instance_release(&in);
}

/* --- label sets ------------------------------------------------------------------------------ */

/* Returns how many of two states are kept. */
static uint32_t kept_of(const struct task_net *net, const struct lagrangian_state *first,
                        const struct lagrangian_state *second)
{
    struct label_set *set;
    struct error err = {0};
    if (label_set_create(net, 2, &set, &err)) fail_msg("%s", err.text);
    label_set_begin(set, net);
    label_set_add(set, first, &(struct label_entry){0});
    label_set_add(set, second, &(struct label_entry){0});
    label_set_reduce(set, 100, HUGE_VAL);
    uint32_t count = label_set_count(set);
    label_set_destroy(set);
    return count;
}

/*
 * Tasks 0 and 1 are of one job and shard, 0 writes it: between them 4 ticks out and 4 in, unless 1 is right after 0.
 * Task 2 is of another job. Device and start of tasks 0 and 2, when 1 can start, everything else being equal:
 *
 *     there      0 on 0 at 0, 2 on 1 at 10: at 10 after 0; the present
 *     elsewhere  0 on 0 at 0, 2 on 0 at 10: at 0 + 5 + 8 = 13
 *     late       0 on 0 at 5, 2 on 0 at 10: at 5 + 5 + 8 = 18
 */
static void neighbours(void **state)
{
    (void)state;
    struct instance in;
    struct task_net *net;
    struct error err = {0};
    test_instance("{'spillway_instance': 1, 'devices': [{'count': 2, 'memory': 9}], 'jobs': [{'name': 'a', 'units': ["
                  "{'compute': 5, 'in': 4, 'out': 4, 'writes': true, 'memory': 1, 'shard': 0},"
                  "{'compute': 5, 'in': 4, 'memory': 1, 'shard': 0}]},"
                  "{'name': 'b', 'units': [{'compute': 2, 'memory': 1}]}]}", &in);
    if (task_net_create(&in, false, &net, &err)) fail_msg("%s", err.text);
    struct lagrangian_state there = {.now = 10, .soon = {5, 12}, .next = {1, 3}, .start = {0, 10}, .task = {0, 2}};
    struct lagrangian_state elsewhere = {.now = 10, .soon = {5, 12}, .next = {1, 3}, .start = {10, 0}, .task = {2, 3}};
    struct lagrangian_state late = {.now = 10, .soon = {10, 12}, .next = {1, 3}, .start = {10, 0}, .task = {2, 3}};
    assert_int_equal(kept_of(net, &there, &elsewhere), 1);
    assert_int_equal(kept_of(net, &elsewhere, &there), 2);
    assert_int_equal(kept_of(net, &elsewhere, &late), 1);
    assert_int_equal(kept_of(net, &late, &elsewhere), 2);
    task_net_destroy(net);
    instance_release(&in);
}

/* --- limits ---------------------------------------------------------------------------------- */

static void run_copy(const struct label_setting_options *options, int64_t *value, struct label_setting_result *result)
{
    struct instance_random shape = {.family = INSTANCE_FAMILY_COPY, .seed = 83, .devices = {4, 4}, .jobs = {6, 6},
                                    .shards = {4, 4}, .minibatches = {1, 1}};
    struct instance in = {0};
    struct instance_bounds bounds = {0};
    struct timetable table = {0};
    struct error err = {0};
    if (instance_random(&shape, &in, &err) || instance_bounds_make(&in, &bounds, &err)) fail_msg("%s", err.text);
    struct dispatch_step *steps = calloc(in.task_count, sizeof *steps);
    assert_non_null(steps);
    if (list_baseline_lrtf(&in, HUGE_VAL, steps, value, &err) ||
        label_setting_run(&in, &bounds, options, steps, value, result, &err) ||
        timetable_make(&in, steps, &table, &err) || timetable_check(&in, &table, &err))
        fail_msg("%s", err.text);
    assert_int_equal(table.value, *value);
    assert_true(*value >= instance_bounds_best(&bounds));
    free(steps);
    timetable_release(&table);
    instance_bounds_release(&bounds);
    instance_release(&in);
}

/* With 42 tasks the search is cut short: it claims nothing, and equal budgets give equal answers. */
static void limits(void **state)
{
    (void)state;
    struct label_setting_result result, again;
    int64_t value, same;
    struct label_setting_options nodes = {.until_s = HUGE_VAL, .nodes_max = 30000};
    run_copy(&nodes, &value, &result);
    run_copy(&nodes, &same, &again);
    assert_false(result.proven);
    assert_int_equal(value, same);
    assert_int_equal(result.nodes, again.nodes);
    assert_true(result.nodes < 30000 + 16 * 6 * 4); /* looked at between labels: 16 of them, 6 jobs, 4 devices */
    for (uint32_t width = 8; width <= 128; width *= 4) {
        run_copy(&(struct label_setting_options){.until_s = HUGE_VAL, .width = width, .width_max = width}, &value,
                 &result);
        assert_false(result.proven);
    }
    run_copy(&(struct label_setting_options){.until_s = HUGE_VAL, .width = 1000, .memory_bytes = 1}, &value, &result);
    assert_false(result.proven);
    double started = clock_s();
    run_copy(&(struct label_setting_options){.until_s = started + 0.2}, &value, &result);
    assert_false(result.proven);
    assert_true(clock_s() - started < 2); /* a busy machine */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiny), cmocka_unit_test(small), cmocka_unit_test(prices),
                                       cmocka_unit_test(prices_of_a_chain),
                                       cmocka_unit_test(neighbours), cmocka_unit_test(limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
