/* label: medium
 * Repetitions that plan_check() leaves out of its walk: whatever is changed in a long plan, it says the
 * same as if it walked them all. For that the test puts a check_repeat_done() in place of the library's that can be
 * switched off, and that counts.
 *
 * Long plans are of text networks with many minibatches, some of which are evaluated, and random ones of other
 * families. In these a segment that repeats is made to repeat more often, and its jobs get the additional minibatches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_random_family.h"
#include "tests/support/support_seed.h"

#define check_repeat_done repeat_done
#include "planner/check/plan_check_repeat.c"
#undef check_repeat_done

enum status check_repeat_done(struct check_walk *r, const struct plan_segment *segment, uint32_t done,
                              uint32_t *left_out);

static bool walks_all;
static uint64_t left_out_count;

enum status check_repeat_done(struct check_walk *r, const struct plan_segment *segment, uint32_t done,
                              uint32_t *left_out)
{
    *left_out = 0;
    enum status status = walks_all ? STATUS_OK : repeat_done(r, segment, done, left_out);
    left_out_count += *left_out;
    return status;
}

enum { PLANS = 200, MORE = 60 };

/* --- long plans ------------------------------------------------------------------------------- */

/* Returns a segment that repeats; PLAN_NONE: none. */
static uint32_t repeated_segment(const struct plan *plan)
{
    for (uint32_t s = 0; s < plan->segment_count; s++)
        if (plan->segments[s].repeat_count > 1) return s;
    return PLAN_NONE;
}

static void lengthen(struct plan *plan, struct plan_segment *segment, uint32_t more)
{
    for (uint32_t i = 0; i < segment->task_count; i++) {
        const struct plan_unit *unit = &plan->units[plan->tasks[segment->first_task + i].unit];
        if (unit->ends_minibatch) plan->jobs.jobs[unit->job].minibatches += more;
    }
    segment->repeat_count += more;
}

/* One or two jobs whose states come and go, or stay. */
static bool text_plan(uint64_t key, struct plan *out, uint32_t *segment)
{
    static const char *const policies[] = {"sharded-lrtf", "fifo", "spill-sequential", "model-parallel",
                                           "shard-parallel"};
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, 1 + (uint32_t)random_below(key, 10, 2), 60000 + random_below(key, 11, 400000), 1e9);
    test_gpt_jobs(&jobs, 1 + (uint32_t)random_below(key, 12, 2), 1 + (uint32_t)random_below(key, 13, 3), 8, 64,
                  MORE + random_below(key, 14, 8));
    for (uint32_t j = 0; j < jobs.count; j++)
        if (random_below(key, 20 + j, 2) == 0)
            jobs.jobs[j].evaluation = (struct job_evaluation){.every = 1 + random_below(key, 22 + j, 9),
                                                              .minibatches = 1};
    const struct planner_options options = {.policy = policies[random_below(key, 15, ARRAY_COUNT(policies))],
                                            .activations = PLANNER_AUTO};
    enum status status = planner_plan(&hardware, &jobs, &options, out, &err);
    if (status && status != STATUS_INFEASIBLE) fail_msg("key %" PRIu64 ": %s", key, err.text);
    if (status) return false;
    *segment = 0;
    for (uint32_t s = 1; s < out->segment_count; s++)
        if (out->segments[s].repeat_count > out->segments[*segment].repeat_count) *segment = s;
    return true;
}

/* Plans some minibatches; not all of them may be in repeated segments. */
static bool long_plan(enum random_family family, uint64_t key, struct plan *out, uint32_t *segment)
{
    if (family == RANDOM_SPILLED || family == RANDOM_RESIDENT) return text_plan(key, out, segment);
    if (!random_family_plan(family, key, out)) return false;
    *segment = repeated_segment(out);
    if (*segment == PLAN_NONE) {
        plan_release(out);
        return false;
    }
    lengthen(out, &out->segments[*segment], MORE);
    return true;
}

/* --- damages ---------------------------------------------------------------------------------- */

struct damage {
    const char *name;
    void (*make)(struct plan *plan, struct plan_segment *segment, uint64_t key);
};

static struct plan_task *a_task(struct plan *plan, const struct plan_segment *segment, uint64_t key)
{
    return &plan->tasks[segment->first_task + random_below(key, 1, segment->task_count)];
}

static struct plan_op *an_op(struct plan *plan, const struct plan_segment *segment, uint64_t key)
{
    const struct plan_unit *unit = &plan->units[a_task(plan, segment, key)->unit];
    return &plan->ops[unit->first_op + random_below(key, 2, unit->op_count)];
}

static void nothing(struct plan *plan, struct plan_segment *segment, uint64_t key)
{
    (void)plan, (void)segment, (void)key;
}

static void one_repetition_more(struct plan *plan, struct plan_segment *segment, uint64_t key)
{
    (void)plan, (void)key;
    segment->repeat_count++;
}

static void one_repetition_less(struct plan *plan, struct plan_segment *segment, uint64_t key)
{
    (void)plan, (void)key;
    segment->repeat_count--;
}

static void half_as_many_minibatches(struct plan *plan, struct plan_segment *segment, uint64_t key)
{
    const struct plan_unit *unit = &plan->units[a_task(plan, segment, key)->unit];
    plan->jobs.jobs[unit->job].minibatches /= 2;
}

static void evaluation_now_and_then(struct plan *plan, struct plan_segment *segment, uint64_t key)
{
    const struct plan_unit *unit = &plan->units[a_task(plan, segment, key)->unit];
    plan->jobs.jobs[unit->job].evaluation.every = 17;
    plan->jobs.jobs[unit->job].evaluation.minibatches = 1;
}

static void another_slot(struct plan *plan, struct plan_segment *segment, uint64_t key)
{
    struct plan_task *task = a_task(plan, segment, key), *other = a_task(plan, segment, key + 1);
    if (plan->units[task->unit].acquire_count <= plan->units[other->unit].acquire_count) task->layout = other->layout;
}

static void two_tasks_swapped(struct plan *plan, struct plan_segment *segment, uint64_t key)
{
    struct plan_task *a = a_task(plan, segment, key), *b = a_task(plan, segment, key + 1), kept = *a;
    *a = *b;
    *b = kept;
}

static void other_flags(struct plan *plan, struct plan_segment *segment, uint64_t key)
{
    const struct plan_op *op = an_op(plan, segment, key);
    static const uint32_t flags[] = {ACCESS_READ, ACCESS_WRITE, ACCESS_RELEASE};
    plan->accesses[op->first_access + random_below(key, 3, op->access_count)].flags ^= flags[random_below(key, 4, 3)];
}

static void an_offset(struct plan *plan, struct plan_segment *segment, uint64_t key)
{
    const struct plan_op *op = an_op(plan, segment, key);
    plan->accesses[op->first_access + random_below(key, 3, op->access_count)].offset_bytes += 64;
}

static const struct damage damages[] = {
    {"nothing", nothing},
    {"one repetition more", one_repetition_more},
    {"one repetition less", one_repetition_less},
    {"half as many minibatches", half_as_many_minibatches},
    {"evaluation now and then", evaluation_now_and_then},
    {"another slot", another_slot},
    {"two tasks swapped", two_tasks_swapped},
    {"other flags", other_flags},
    {"an offset", an_offset},
};

/* --- the test --------------------------------------------------------------------------------- */

/* Checks that both verdicts are equal, and returns the verdict. */
static enum status same_verdict(const struct plan *plan, const char *family, const char *damage, uint64_t key)
{
    struct error some = {0}, all = {0};
    walks_all = false;
    enum status status = plan_check(plan, &some);
    walks_all = true;
    if (plan_check(plan, &all) != status || strcmp(some.text, all.text) != 0)
        fail_msg("%s, %s (key %" PRIu64 "): '%s', and all walked: '%s'", family, damage, key, some.text, all.text);
    return status;
}

static void whatever_is_changed(void **state)
{
    static const enum random_family families[] = {RANDOM_SPILLED, RANDOM_RESIDENT,  RANDOM_SWAPPED, RANDOM_REPLICAS,
                                                  RANDOM_STALE,    RANDOM_PIPELINED};
    uint64_t seed = support_seed("repetitions");
    uint32_t accepted[RANDOM_FAMILY_COUNT] = {0}, found[ARRAY_COUNT(damages)] = {0};
    uint64_t left_out[RANDOM_FAMILY_COUNT] = {0};
    (void)state;
    for (uint32_t round = 0; round < PLANS * ARRAY_COUNT(families); round++) {
        enum random_family family = families[round % ARRAY_COUNT(families)];
        for (uint32_t d = 0; d < ARRAY_COUNT(damages); d++) {
            struct plan plan;
            uint32_t segment;
            uint64_t key = random_u64(seed, round), before = left_out_count;
            if (!long_plan(family, key, &plan, &segment)) break;
            damages[d].make(&plan, &plan.segments[segment], random_u64(key, d));
            enum status status = same_verdict(&plan, random_family_names[family], damages[d].name, key);
            if (d == 0) {
                accepted[family] += status == STATUS_OK;
                left_out[family] += left_out_count - before;
            }
            found[d] += status == STATUS_CHECK;
            plan_release(&plan);
        }
    }
    for (uint32_t f = 0; f < ARRAY_COUNT(families); f++)
        if (left_out[families[f]] < 3 * accepted[families[f]] || accepted[families[f]] < 5)
            fail_msg("%s: %u right plans, %" PRIu64 " repetitions left out", random_family_names[families[f]],
                     accepted[families[f]], left_out[families[f]]);
    for (uint32_t d = 1; d < ARRAY_COUNT(damages); d++)
        if (found[d] < 20) fail_msg("%s: only %u times", damages[d].name, found[d]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_is_changed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
