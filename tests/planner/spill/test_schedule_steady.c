/* Minibatches that a schedule leaves out (planner/spill/order/schedule_steady.h; label: medium): a plan of many
 * minibatches has the tasks that it has when all of them are placed one after the other, and its planner's clock
 * says the same to the last bit. For that the test puts a schedule_steady_look() in place of the library's that can
 * be switched off; rounds that nearly repeat (schedule_near.h) are off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/size.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

#define schedule_steady_look steady_look
#include "planner/spill/order/schedule_steady.c"
#undef schedule_steady_look

#define schedule_near_begin near_begin
#include "planner/spill/order/schedule_near.c"
#undef schedule_near_begin

bool schedule_steady_look(struct schedule_steady *steady, const struct schedule_unit *unit, uint32_t count,
                          struct schedule_cycle *out);
enum status schedule_near_begin(struct schedule_near *near, struct schedule_builder *builder, bool one_device,
                                const struct policy *policy, uint64_t units, struct error *err);

enum status schedule_near_begin(struct schedule_near *near, struct schedule_builder *builder, bool one_device,
                                const struct policy *policy, uint64_t units, struct error *err)
{
    (void)builder, (void)one_device, (void)policy, (void)units, (void)err;
    *near = (struct schedule_near){0};
    return STATUS_OK;
}

static bool places_all;
static uint32_t in_turns; /* plans of jobs that take turns in host memory */
static uint64_t left_out;

bool schedule_steady_look(struct schedule_steady *steady, const struct schedule_unit *unit, uint32_t count,
                          struct schedule_cycle *out)
{
    if (places_all || !steady_look(steady, unit, count, out)) return false;
    left_out += out->times * (out->end - out->first);
    return true;
}

enum { PLANS = SUPPORT_ROUNDS(80) };

/* --- plans ------------------------------------------------------------------------------------ */

static const char *const policies[] = {
    "sharded-lrtf", "sharded-lrtf-cached", "lrtf-emptiest", "srtf", "fifo", "random", "spill-sequential",
    "model-parallel",
    "shard-parallel"};

static void draw_jobs(uint64_t key, struct job_set *out)
{
    uint32_t count = 1 + (uint32_t)random_below(key, 1, 4);
    struct test_random_layers layers = {random_below(key, 2, 2) ? key : 1, 1 + random_below(key, 3, 6)};
    if (random_below(key, 4, 2)) test_gpt_jobs(out, count, 1 + (uint32_t)random_below(key, 5, 3), 8, 64, 1);
    else test_profile_jobs(out, count, 2 + (uint32_t)random_below(key, 5, 4), 1, test_random_layer, &layers);
    bool equal = random_below(key, 6, 2) == 0, text = out->jobs[0].network.family != NETWORK_PROFILE;
    for (uint32_t j = 0; j < count; j++) {
        struct job *job = &out->jobs[j];
        job->minibatches = 9000 + random_below(key, 10 + (equal ? 0 : j), 12000);
        if (text && random_below(key, 20 + j, 3) == 0)
            job->evaluation = (struct job_evaluation){.every = 1 + random_below(key, 30 + j, 20), .minibatches = 1};
        if (text && random_below(key, 40 + j, 4) == 0) job->optimizer.clip = 0.5;
    }
}

static void draw_machine(uint64_t key, struct hardware *out)
{
    test_hardware(out, 1 + (uint32_t)random_below(key, 50, 3), 60000 + random_below(key, 51, 900000), 1e9);
    out->host_bandwidth.value = 4e9;
    out->host_bandwidth.source = "made up";
    if (random_below(key, 52, 4) == 0)
        out->storage = (struct hardware_storage){.capacity_bytes = {.value = 1e12}, .read_rate = {.value = 2.5e9},
                                                 .write_rate = {.value = 1.7e9}, .latency = {.value = 1e-6}};
}

/* Plans with host memory for a share of what all jobs need; 0: for all. */
static enum status plan_within(uint64_t key, uint64_t host_bytes, struct plan *out, struct error *err)
{
    struct hardware hardware;
    struct job_set jobs;
    draw_machine(key, &hardware);
    draw_jobs(key, &jobs);
    if (host_bytes > 0) hardware.host_bytes.value = (double)host_bytes;
    const struct planner_options options = {
        .policy = policies[random_below(key, 53, ARRAY_COUNT(policies))], .seed = key >> 1, .activations = PLANNER_AUTO,
        .optimizer = PLANNER_AUTO, .shards = (uint32_t)random_below(key, 54, 4),
        .storage = hardware_has_storage(&hardware) && random_below(key, 55, 2)
                   ? PLANNER_STORAGE_ALL : PLANNER_STORAGE_AUTO};
    return planner_plan(&hardware, &jobs, &options, out, err);
}

/* Returns false if the jobs do not fit. */
static bool make_plan(uint64_t key, bool all, struct plan *out)
{
    struct error err = {0};
    uint64_t host_bytes = 0;
    places_all = all;
    /* jobs take turns in host memory */
    if (random_below(key, 56, 3) > 0 && plan_within(key, 0, out, &err) == STATUS_OK) {
        host_bytes = plan_host_bytes(out) / 10 * (4 + random_below(key, 57, 6));
        plan_release(out);
    }
    const enum status status = plan_within(key, host_bytes, out, &err);
    if (status && status != STATUS_INFEASIBLE && status != STATUS_BAD_INPUT)
        fail_msg("key %" PRIu64 ": %s", key, err.text);
    in_turns += status == STATUS_OK && out->host_ranges && !all;
    return status == STATUS_OK;
}

/* --- tasks -------------------------------------------------------------------------------- */

struct place {
    const struct plan *plan;
    uint32_t segment, repeat, index;
};

static const struct plan_task *next_task(struct place *at)
{
    if (at->segment == at->plan->segment_count) return NULL;
    const struct plan_segment *segment = &at->plan->segments[at->segment];
    const struct plan_task *task = &at->plan->tasks[segment->first_task + at->index];
    if (++at->index < segment->task_count) return task;
    at->index = 0;
    if (++at->repeat < segment->repeat_count) return task;
    at->repeat = 0;
    at->segment++;
    return task;
}

static bool same_slots(const struct plan *a, const struct plan_task *x, const struct plan *b,
                       const struct plan_task *y)
{
    for (uint32_t i = 0; i < a->units[x->unit].acquire_count; i++)
        if (a->slots[a->layouts[x->layout + i]].offset_bytes != b->slots[b->layouts[y->layout + i]].offset_bytes)
            return false;
    return true;
}

static bool same_order(const struct plan *some, const struct plan *all)
{
    struct place at_some = {.plan = some}, at_all = {.plan = all};
    for (;;) {
        const struct plan_task *a = next_task(&at_some), *b = next_task(&at_all);
        if (!a || !b) return a == b;
        const struct plan_unit *u = &some->units[a->unit], *v = &all->units[b->unit];
        if (u->job != v->job || u->shard != v->shard || u->pass != v->pass || u->op_count != v->op_count ||
            u->ends_minibatch != v->ends_minibatch || a->device != b->device || a->peer != b->peer ||
            !same_slots(some, a, all, b))
            return false;
    }
}

static void as_if_all_were_placed(void **state)
{
    uint64_t seed = support_seed("steady schedules");
    uint32_t plans = 0, shorter = 0;
    (void)state;
    for (uint32_t round = 0; round < PLANS; round++) {
        uint64_t key = random_u64(seed, round), before = left_out;
        struct plan some, all;
        if (!make_plan(key, false, &some)) continue;
        assert_true(make_plan(key, true, &all));
        bool same_s = !(some.estimated_makespan_s < all.estimated_makespan_s) &&
                      !(some.estimated_makespan_s > all.estimated_makespan_s);
        if (!same_s || !same_order(&some, &all) || plan_operations(&some) != plan_operations(&all))
            fail_msg("key %" PRIu64 ", %s: %.17g s, %" PRIu64 " operations, and all placed: %.17g s, %" PRIu64, key,
                     all.policy, some.estimated_makespan_s, plan_operations(&some), all.estimated_makespan_s,
                     plan_operations(&all));
        plans++;
        shorter += left_out > before;
        plan_release(&some);
        plan_release(&all);
    }
    print_message("%u plans, %u with minibatches left out, %u of jobs in turns\n", plans, shorter, in_turns);
    const bool all_rounds = !SUPPORT_SANITIZED; /* few have none of a kind */
    if (all_rounds && (shorter * 2 < plans || in_turns < 1))
        fail_msg("%u plans, %u with minibatches left out", plans, shorter);
}

/* --- no memory -------------------------------------------------------------------------------- */

/* Plans spilled jobs of 12000 minibatches with the n-th allocation failing. */
static enum status plan_failing_at(uint64_t n, uint64_t *made)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    const struct planner_options options = {.policy = "sharded-lrtf", .activations = PLANNER_AUTO,
                                            .optimizer = PLANNER_AUTO};
    test_hardware(&hardware, 2, 100000, 1e9);
    test_gpt_jobs(&jobs, 2, 3, 8, 64, 12000);
    alloc_test_fail_at(n);
    const enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
    *made = alloc_test_fail_at(0);
    if (status == STATUS_OK) plan_release(&plan);
    return status;
}

/* Each allocation of the cut, the schedule and the plan that is written down fails in turn. */
static void every_allocation_fails(void **state)
{
    (void)state;
    places_all = false;
    const uint64_t before = left_out;
    uint64_t made, failures = 0;
    enum status status = STATUS_NO_MEMORY;
    for (uint64_t n = 1; status == STATUS_NO_MEMORY; n++, failures++) status = plan_failing_at(n, &made);
    assert_int_equal(status, STATUS_OK);
    assert_true(failures > made); /* none failed in the last plan */
    assert_true(left_out > before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_if_all_were_placed),
                                       cmocka_unit_test(every_allocation_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
