/*
 * The judge of plans: the order of a spilled job's units, with evaluations, kept weights, updates after the norm and
 * frozen layers. The planner's order is accepted; any two neighbours that change places, and any unit that another one
 * of the job replaces, are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_models.h"

enum { TASKS_MAX = 256, SPILLS = 1300000, STAYS = 1 << 26 }; /* and bytes of the device */

static const char form[] =
    "{\"spillway_jobs\": 1, \"jobs\": [{\"network\": {\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 64, "
    "\"n_head\": 4, \"n_positions\": 32, \"vocab_size\": 97}, \"sequence\": 16, \"microbatch\": 2, \"minibatches\": 5, "
    "\"dropout\": false%s}]}";

static const struct {
    const char *extras;
    uint32_t frozen; /* shards without an update */
} cases[] = {
    {"", 0},
    {", \"optimizer\": {\"kind\": \"adamw\", \"clip\": 0.5}", 0},
    {", \"evaluate\": {\"every\": 2, \"minibatches\": 3}", 0},
    {", \"evaluate\": {\"every\": 2, \"minibatches\": 3}, \"keep\": \"best\", \"weights_out\": \"w.safetensors\"", 0},
    {", \"evaluate\": {\"every\": 2, \"minibatches\": 2}, \"keep\": \"best\", \"weights_out\": \"w.safetensors\", "
     "\"freeze\": {\"layers\": [[0, 3]]}, \"optimizer\": {\"kind\": \"adamw\", \"clip\": 0.5}", 1},
};

static void make(struct plan *out, size_t number, uint64_t device_bytes)
{
    char text[1024];
    struct hardware hardware;
    struct job_set jobs = {0};
    struct error err = {0};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    snprintf(text, sizeof text, form, cases[number].extras);
    test_hardware(&hardware, 1, device_bytes, 1e9);
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    if (support_jobs(text, ".", &jobs, &err)) fail_msg("%s", err.text);
    *out = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
    assert_true(out->task_count <= TASKS_MAX);
}

/* Returns true for units of the job's passes, which have one order. */
static bool trains(const struct plan *p, uint32_t task)
{
    const uint32_t pass = p->units[p->tasks[task].unit].pass;
    return pass == PLAN_FORWARD || pass == PLAN_LOSS || pass == PLAN_BACKWARD || pass == PLAN_UPDATE ||
           pass == PLAN_EVALUATE || pass == PLAN_KEEP;
}

static void refuse(const struct plan *plan, const char *what, size_t number, uint32_t task)
{
    struct error err = {0};
    if (plan_check(plan, &err) != STATUS_CHECK)
        fail_msg("case %zu, task %u (%s of shard %u) %s: accepted", number, task,
                 plan_pass_names[plan->units[plan->tasks[task].unit].pass], plan->units[plan->tasks[task].unit].shard,
                 what);
}

/* The next task of the job's passes; task_count: there is none. */
static uint32_t next_of(const struct plan *plan, uint32_t task)
{
    for (task++; task < plan->task_count && !trains(plan, task);) task++;
    return task;
}

static void neighbours_keep_their_order(void **state)
{
    (void)state;
    for (size_t n = 0; n < ARRAY_COUNT(cases); n++) {
        struct plan plan;
        struct error err = {0};
        uint32_t swapped = 0;
        make(&plan, n, SPILLS);
        if (plan_check(&plan, &err)) fail_msg("%s", err.text);
        for (uint32_t i = next_of(&plan, UINT32_MAX); i < plan.task_count; i = next_of(&plan, i)) {
            const uint32_t k = next_of(&plan, i);
            if (k == plan.task_count || plan.tasks[i].unit == plan.tasks[k].unit) continue;
            const struct plan_task first = plan.tasks[i], second = plan.tasks[k];
            plan.tasks[i] = second;
            plan.tasks[k] = first;
            refuse(&plan, "before its neighbour", n, i);
            plan.tasks[k] = plan.tasks[i] = second;
            refuse(&plan, "twice", n, k);
            plan.tasks[k] = plan.tasks[i] = first;
            refuse(&plan, "twice", n, k);
            plan.tasks[k] = second;
            swapped++;
        }
        assert_true(swapped > 20);
        if (plan_check(&plan, &err)) fail_msg("%s", err.text);
        plan_release(&plan);
    }
}

/* States are loaded before the first minibatch and stored after the last. */
static void moves_end_no_minibatch(void **state)
{
    (void)state;
    struct plan plan;
    uint32_t moves = 0;
    make(&plan, 0, STAYS);
    for (uint32_t u = 0; u < plan.unit_count; u++) {
        struct error err = {0};
        if (plan.units[u].pass != PLAN_LOAD && plan.units[u].pass != PLAN_STORE) continue;
        plan.units[u].ends_minibatch = true;
        assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
        assert_non_null(strstr(err.text, ": form: ends the minibatch too early"));
        plan.units[u].ends_minibatch = false;
        moves++;
    }
    assert_true(moves >= 2);
    plan_release(&plan);
}

/* Frozen shards are those before the first that is kept. */
static void cases_have_what_they_say(void **state)
{
    (void)state;
    for (size_t n = 0; n < ARRAY_COUNT(cases); n++) {
        struct plan plan;
        uint32_t counts[PLAN_PASS_COUNT] = {0}, first = UINT32_MAX;
        make(&plan, n, SPILLS);
        for (uint32_t i = 0; i < plan.task_count; i++) {
            const struct plan_unit *unit = &plan.units[plan.tasks[i].unit];
            counts[unit->pass]++;
            if (unit->pass == PLAN_KEEP && unit->shard < first) first = unit->shard;
        }
        assert_int_equal(counts[PLAN_EVALUATE] > 0, n >= 2);
        assert_int_equal(counts[PLAN_KEEP] > 0, n >= 3);
        assert_int_equal(counts[PLAN_UPDATE] > 0, n == 1 || n == 4);
        if (n >= 3) assert_int_equal(first > 0, cases[n].frozen > 0);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases_have_what_they_say),
                                       cmocka_unit_test(neighbours_keep_their_order),
                                       cmocka_unit_test(moves_end_no_minibatch)};
    return cmocka_run_group_tests_name("plan_check: swaps", tests, NULL, NULL);
}
