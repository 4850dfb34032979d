/*
 * Units of parallel jobs (label: fast): the judge refuses passes that a job has none of, and a pass that is computed
 * never or once too often.
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
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_parallel_variants.h"
#include "tests/support/planner/support_planner.h"

/* Of layers that are profiles: they are only simulated. UNEQUAL has three stages, whose boundaries differ, BELOW three
 * chunks, whose weights are offloaded. */
enum { SIMULATED = VARIANT_END, UNEQUAL, BELOW };

static void make_of_three(struct plan *out, bool in_stages)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    struct test_random_layers layers = {.key = 1, .copy_weight = 1};
    *out = (struct plan){0};
    test_parallel_machine(&hardware, in_stages ? 3 : 1, 1e9, 1e-6);
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    test_profile_jobs(&jobs, 1, 6, 2, test_random_layer, &layers);
    jobs.jobs[0].microbatches = 4;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = in_stages ? 3 : 1, .data = 1,
                                              .chunks = in_stages ? 1 : 3, .schedule = PIPELINE_1F1B, .prefetch = 1,
                                              .offload = in_stages ? OFFLOAD_NOTHING : OFFLOAD_WEIGHTS};
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
}

static void make(struct plan *out, uint32_t variant)
{
    if (variant == SIMULATED) test_parallel_or_spilled(1, true, out);
    else if (variant >= UNEQUAL) make_of_three(out, variant == UNEQUAL);
    else test_parallel_variant(out, variant);
}

static struct plan_unit *unit_of(struct plan *p, uint32_t pass, uint32_t shard)
{
    return &p->units[test_parallel_task(p, pass, shard, 0)->unit];
}

/* Removes all but the unit's first `left` operations. */
static void cut(struct plan *p, struct plan_unit *unit, uint32_t left)
{
    const uint32_t first = unit->first_op + left, gone = unit->op_count - left;
    memmove(p->ops + first, p->ops + first + gone, (p->op_count - first - gone) * sizeof *p->ops);
    p->op_count -= gone;
    unit->op_count = left;
    unit->acquire_count = 0;
    for (uint32_t u = 0; u < p->unit_count; u++)
        if (p->units[u].first_op > unit->first_op) p->units[u].first_op -= gone;
}

/* Leaves the first operation of a kind in a unit. */
static struct plan_op *leave(struct plan *p, uint32_t pass, uint32_t shard, uint32_t kind)
{
    struct plan_unit *const unit = unit_of(p, pass, shard);
    const struct plan_op op = *test_parallel_op(p, pass, shard, kind);
    cut(p, unit, 1);
    p->ops[unit->first_op] = op;
    for (uint32_t a = 0; a < op.access_count; a++)
        if (p->accesses[op.first_access + a].flags & ACCESS_ACQUIRE) unit->acquire_count++;
    return &p->ops[unit->first_op];
}

/* Makes a unit of the second shard one of another pass, whose computation has one operand. */
static void compute(struct plan *p, uint32_t pass, uint8_t other, uint8_t stream, uint32_t operand, uint32_t flags)
{
    struct plan_unit *const unit = unit_of(p, pass, 1);
    struct plan_op *const op = leave(p, pass, 1, OP_COMPUTE);
    op->first_access = (uint32_t)(test_parallel_access(p, op, operand) - p->accesses);
    op->access_count = 1;
    op->pass = other;
    op->stream = stream;
    p->accesses[op->first_access].flags = (uint8_t)flags;
    unit->pass = other;
    unit->acquire_count = 0;
}
static void evaluates(struct plan *p)
{
    struct plan_unit *const unit = unit_of(p, PLAN_FORWARD, 1);
    struct plan_op *const op = leave(p, PLAN_FORWARD, 1, OP_COMPUTE);
    *test_parallel_access(p, op, BUFFER_ACTIVATIONS) = p->accesses[op->first_access + --op->access_count];
    op->pass = PLAN_EVALUATE;
    unit->pass = PLAN_EVALUATE;
    unit->acquire_count--;
}
static void takes_norm(struct plan *p)
{
    compute(p, PLAN_UPDATE, PLAN_NORM, STREAM_COMPUTE, BUFFER_GRADIENT, ACCESS_READ);
    const struct plan_op *const op = &p->ops[unit_of(p, PLAN_NORM, 1)->first_op];
    if (op->work != PLAN_NONE) p->items[p->works[op->work].first_item].kernel = KERNEL_SQUARES;
}
static void refreshes(struct plan *p)
{
    leave(p, PLAN_FORWARD, 1, OP_COPY);
    unit_of(p, PLAN_FORWARD, 1)->pass = PLAN_REFRESH;
}
static void refreshes_below(struct plan *p) { unit_of(p, PLAN_GATHER, 1)->pass = PLAN_REFRESH; }
/* Shortens each copy between devices in the units of a pass; PLAN_NONE: of all shards. */
static void fetch_less(struct plan *p, uint32_t pass, uint32_t shard)
{
    for (uint32_t u = 0; u < p->unit_count; u++) {
        if (p->units[u].pass != pass || (shard != PLAN_NONE && p->units[u].shard != shard)) continue;
        for (uint32_t o = p->units[u].first_op; o < p->units[u].first_op + p->units[u].op_count; o++)
            if (p->ops[o].kind == OP_COPY && p->ops[o].stream == STREAM_P2P) p->ops[o].bytes -= 64;
    }
}
static void fetches_less(struct plan *p) { fetch_less(p, PLAN_FORWARD, PLAN_NONE); }
static void fetches_less_back(struct plan *p) { fetch_less(p, PLAN_BACKWARD, PLAN_NONE); }
static void fetches_less_in_halves(struct plan *p) { fetch_less(p, PLAN_BACKWARD_INPUT, PLAN_NONE); }
/* The next chunk is on the same stage, the one before is not; and the reverse. */
static void fetches_less_down(struct plan *p) { fetch_less(p, PLAN_FORWARD, 1); }
static void fetches_less_up(struct plan *p) { fetch_less(p, PLAN_BACKWARD_INPUT, 2); }
static void fetches_less_late(struct plan *p)
{
    struct plan_op *const ops = &p->ops[unit_of(p, PLAN_FORWARD, 1)->first_op], first = ops[0];
    ops[0] = ops[1];
    ops[1] = first;
    ops[1].bytes -= 64;
}
static void no_forward(struct plan *p) { leave(p, PLAN_FORWARD, 1, OP_COPY); }
static void no_backward(struct plan *p) { leave(p, PLAN_BACKWARD, 0, OP_COPY); }
static void no_update(struct plan *p) { leave(p, PLAN_UPDATE, 1, OP_COPY); }
static void reduces_by_computing(struct plan *p)
{
    compute(p, PLAN_UPDATE, PLAN_REDUCE, STREAM_COMPUTE, BUFFER_GRADIENT, ACCESS_READ | ACCESS_WRITE);
}

static void broken(void **state)
{
    (void)state;
    static const char never[] = ": training: computes its pass 0 times (expected 1)";
    static const struct test_parallel_damage cases[] = {
        {evaluates, SIMULATED, ": form: an evaluation of a job that has none"},
        {evaluates, VARIANT_PLAIN + 3, ": form: an evaluation of a job that has none"},
        {takes_norm, SIMULATED, ": form: a norm for a job that does not clip"},
        {takes_norm, VARIANT_PLAIN + 2, ": form: a norm for a job that does not clip"},
        {refreshes, SIMULATED, ": form: resident weights are refreshed (expected only where states are offloaded)"},
        {refreshes, VARIANT_PLAIN + 2, never},
        {refreshes_below, BELOW, ": form: resident weights are refreshed (expected only where states are offloaded)"},
        {fetches_less, SIMULATED, ": work: fetches 1600 bytes of the boundary (expected 1664)"},
        {fetches_less_back, SIMULATED,
         ": work: fetches 1600 bytes of the gradient of the next boundary (expected 1664)"},
        {fetches_less_in_halves, VARIANT_HALVES + 2,
         ": work: fetches 4032 bytes of the gradient of the next boundary (expected 4096)"},
        {fetches_less_down, VARIANT_VALLEY + 2, ": work: fetches 4032 bytes of the boundary (expected 4096)"},
        {fetches_less_up, VARIANT_VALLEY + 2,
         ": work: fetches 4032 bytes of the gradient of the next boundary (expected 4096)"},
        {fetches_less_late, VARIANT_PLAIN + 2, ": work: fetches 4032 bytes of the boundary (expected 4096)"},
        {fetches_less, UNEQUAL, ": work: fetches"},
        {no_forward, VARIANT_PLAIN + 2, never},
        {no_forward, SIMULATED, never},
        {no_backward, VARIANT_PLAIN + 3, never},
        {no_backward, SIMULATED, never},
        {no_update, VARIANT_HOSTS + 2, never},
        {reduces_by_computing, SIMULATED, ": training: computes its pass 1 times (expected 0)"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), make);
}

static void whole(void **state)
{
    (void)state;
    static const uint32_t variants[] = {SIMULATED, UNEQUAL, BELOW, VARIANT_PLAIN + 3, VARIANT_VALLEY + 2};
    for (size_t i = 0; i < ARRAY_COUNT(variants); i++) {
        struct plan plan;
        struct error err = {0};
        make(&plan, variants[i]);
        if (plan_check(&plan, &err)) fail_msg("%s", err.text);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(broken), cmocka_unit_test(whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
