/*
 * The choice of kept outputs against all choices of small random problems: GLPK's has the least cost within the budget,
 * its bound is that cost, and the greedy one is within the budget and never worse than keeping nothing. The costs are
 * computed here in another way: sample by sample, layer by layer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/prefix/prefix_choose.h"
#include "tests/support/support_seed.h"

enum { JOBS_MOST = 4, GROUPS_MOST = 2, LAYERS_MOST = 6 };

struct drawn {
    struct prefix_problem problem;
    struct prefix_job jobs[JOBS_MOST];
    struct prefix_group groups[GROUPS_MOST];
    struct prefix_layer layers[GROUPS_MOST][LAYERS_MOST + 1];
};

static void draw_group(uint64_t seed, struct prefix_group *group, struct prefix_layer *layers)
{
    double compute_s = 0;
    *group = (struct prefix_group){.layers = layers, .rows = (double)(1 + random_below(seed, 0, 40))};
    for (uint64_t l = 1; l <= LAYERS_MOST; l++) {
        compute_s += 0.1 + random_unit(seed, 4 * l);
        layers[l] = (struct prefix_layer){.compute_s = compute_s,
                                          .make_s = compute_s * (1 + random_unit(seed, 4 * l + 1)),
                                          .load_s = 2 * random_unit(seed, 4 * l + 2),
                                          .bytes = 1 + 9 * random_unit(seed, 4 * l + 3)};
    }
}

static void draw(uint64_t seed, struct drawn *out)
{
    memset(out, 0, sizeof *out);
    struct prefix_problem *p = &out->problem;
    p->jobs = out->jobs;
    p->groups = out->groups;
    p->job_count = 1 + (uint32_t)random_below(seed, 0, JOBS_MOST);
    p->group_count = 1 + (uint32_t)random_below(seed, 1, GROUPS_MOST);
    for (uint32_t g = 0; g < p->group_count; g++)
        draw_group(random_u64(seed, 100 + g), &out->groups[g], out->layers[g]);
    for (uint32_t j = 0; j < p->job_count; j++) {
        const bool none = random_below(seed, 10 + j, 6) == 0;
        out->jobs[j] = (struct prefix_job){.group = none ? PREFIX_NONE
                                                         : (uint32_t)random_below(seed, 20 + j, p->group_count),
                                           .most = 2 + random_below(seed, 30 + j, LAYERS_MOST - 1),
                                           .samples = (double)random_below(seed, 40 + j, 200)};
        if (none) continue;
        struct prefix_group *group = &out->groups[out->jobs[j].group];
        if (out->jobs[j].most > group->most) group->most = out->jobs[j].most;
    }
    p->budget_bytes = 1 + random_unit(seed, 50) * 600;
}

/* Adds up a choice; returns false if it is beyond the budget. */
static bool add_up(const struct drawn *d, const uint64_t *choice, double *seconds)
{
    bool made[GROUPS_MOST][LAYERS_MOST + 1] = {{false}};
    double bytes = 0;
    *seconds = 0;
    for (uint32_t j = 0; j < d->problem.job_count; j++) {
        const struct prefix_job *job = &d->jobs[j];
        if (job->group == PREFIX_NONE) continue;
        const struct prefix_layer *layers = d->layers[job->group];
        for (uint64_t l = choice[j] + 1; l <= job->most; l++)
            *seconds += job->samples * (layers[l].compute_s - layers[l - 1].compute_s);
        if (choice[j] == 0) continue;
        *seconds += job->samples * layers[choice[j]].load_s;
        if (made[job->group][choice[j]]) continue;
        made[job->group][choice[j]] = true;
        *seconds += d->groups[job->group].rows * layers[choice[j]].make_s;
        bytes += d->groups[job->group].rows * layers[choice[j]].bytes;
    }
    return bytes <= d->problem.budget_bytes;
}

/* Goes through all choices. */
static double least_of_all(const struct drawn *d)
{
    uint64_t choice[JOBS_MOST] = {0};
    double least = HUGE_VAL, seconds;
    for (;;) {
        if (add_up(d, choice, &seconds) && seconds < least) least = seconds;
        uint32_t j = 0;
        for (; j < d->problem.job_count; j++) {
            const uint64_t most = d->jobs[j].group == PREFIX_NONE ? 0 : d->jobs[j].most;
            choice[j] = choice[j] == 0 ? 2 : choice[j] + 1;
            if (choice[j] <= most) break;
            choice[j] = 0;
        }
        if (j == d->problem.job_count) return least;
    }
}

static void test_against_all_choices(void **state)
{
    const uint64_t seed = support_seed("test_prefix");
    uint32_t kept = 0, shared = 0, greedy_best = 0, tight = 0;
    const uint64_t rounds = support_rounds(200, 1000);
    (void)state;
    for (uint64_t n = 0; n < rounds; n++) {
        struct drawn d;
        struct prefix_choice choice, greedy;
        struct arena arena = {0};
        struct error err = {0};
        double seconds;
        draw(random_u64(seed, n), &d);
        if (prefix_choose(&d.problem, 20, &arena, &choice, &err) || prefix_choose(&d.problem, 0, &arena, &greedy, &err))
            fail_msg("%s", err.text);
        const double least = least_of_all(&d), room = 1e-6 * (1 + least);
        assert_true(add_up(&d, choice.layers, &seconds));
        assert_true(fabs(seconds - choice.seconds) < room);
        if (d.problem.groups[0].most > 0) assert_true(choice.proven && choice.failure[0] == '\0');
        assert_true(fabs(choice.seconds - least) < room);
        if (choice.proven) assert_true(fabs(choice.bound_s - least) < room);
        assert_true(add_up(&d, greedy.layers, &seconds));
        assert_true(!greedy.proven && greedy.seconds <= greedy.without_s + room && greedy.seconds >= least - room);
        greedy_best += greedy.seconds < least + room;
        for (uint32_t j = 0; j < d.problem.job_count; j++) {
            kept += choice.layers[j] > 0;
            shared += choice.layers[j] > 0 && prefix_is_shared(&d.problem, choice.layers, j);
        }
        tight += choice.bytes > 0.7 * d.problem.budget_bytes;
        arena_release(&arena);
    }
    print_message("%u jobs take outputs, %u of them another's; %u budgets nearly full; the greedy rule was best in %u "
                  "of %u\n", kept, shared, tight, greedy_best, (uint32_t)rounds);
    assert_true(kept > rounds / 4 && shared > 0 && tight > 0);
}

/* Without a budget, or anything to keep, nothing is. */
static void test_nothing(void **state)
{
    struct drawn d;
    struct prefix_choice choice;
    struct arena arena = {0};
    struct error err = {0};
    (void)state;
    draw(5, &d);
    d.problem.budget_bytes = 0;
    if (prefix_choose(&d.problem, 20, &arena, &choice, &err)) fail_msg("%s", err.text);
    for (uint32_t j = 0; j < d.problem.job_count; j++) assert_int_equal(choice.layers[j], 0);
    assert_true(choice.bytes <= 0 && !choice.by_program);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_all_choices), cmocka_unit_test(test_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
