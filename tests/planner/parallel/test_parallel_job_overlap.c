/*
 * `overlap` (label: fast): blocks wait for no collective of their tensor group, and weights split by zero=1 are
 * gathered during the next minibatch's forward passes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "models/job/parallel_work.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_planner.h"

static void both_forms_say_it(void **state)
{
    (void)state;
    struct parallel p = {0};
    struct error err = {0};
    char text[PARALLEL_TEXT_BYTES];
    assert_int_equal(parallel_parse_text("tp=2,sp,overlap", &p, &err), STATUS_OK);
    assert_true(p.overlap);
    assert_string_equal(parallel_text(&p, text), "tp=2,sp,overlap");
}

/* Of a block without sequence parallelism: forward 2 sums, backward 2; `exposed` goes before. */
static void blocks_wait_for_nothing(void **state)
{
    (void)state;
    struct job_set jobs;
    test_gpt_jobs(&jobs, 1, 2, 64, 256, 1);
    for (uint32_t way = 0; way < 3; way++) {
        struct job *job = &jobs.jobs[0];
        struct parallel_collective found[PARALLEL_COLLECTIVES_MAX];
        job->parallel = (struct parallel){.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1, .overlap = way > 0,
                                          .exposed = way == 2, .carrying = PARALLEL_SIMULATED};
        const struct parallel_layers block = {1, 1};
        assert_int_equal(parallel_collectives(job, block, PARALLEL_FORWARD, found), 1);
        assert_int_equal(found[0].count, 2);
        assert_int_equal(found[0].overlaps, way == 1);
    }
    job_set_release(&jobs);
}

static struct test_layer layer_of(void *context, uint32_t job, uint32_t layer)
{
    (void)context;
    (void)job;
    (void)layer;
    return (struct test_layer){.forward_ns = 2000000, .backward_ns = 4000000, .boundary_bytes = 64,
                               .activation_bytes = 64, .parameter_bytes = 4000000};
}

static double makespan_s(bool overlap, uint64_t minibatches)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    const struct parallel p = {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 4, .schedule = PIPELINE_1F1B,
                               .zero = ZERO_STATES, .overlap = overlap};
    test_parallel_machine(&hardware, 2, 1e9, 0);
    test_profile_jobs(&jobs, 1, 4, minibatches, layer_of, NULL);
    jobs.jobs[0].microbatches = 2;
    jobs.jobs[0].parallel = p;
    test_parallel_plan(&hardware, &jobs, &plan);
    const double found_s = test_parallel_simulate(&plan, true).makespan_s;
    plan_release(&plan);
    return found_s;
}

/*
 * Four chunks of 2 + 4 ms, w ms to reduce or to gather one. Without overlap a further minibatch takes 24 ms and what
 * the reductions and gathers exceed three backward passes by; with it, the gathers of chunks 1 to 3 end during forward
 * passes, and only the last reduction and the first gather are waited for.
 */
static void gathers_end_in_the_next_minibatch(void **state)
{
    (void)state;
    const double passes_s = 24e-3;
    const double apart_s = (makespan_s(false, 3) - makespan_s(false, 1)) / 2;
    const double within_s = (makespan_s(true, 3) - makespan_s(true, 1)) / 2;
    const double wire_s = 4e6 / 2 / 1e9; /* a half crosses a link once */
    print_message("a further minibatch: %.4f s, with overlap %.4f s\n", apart_s, within_s);
    assert_true(within_s >= passes_s + 2 * wire_s - 1e-9);
    assert_true(within_s < apart_s - 2 * wire_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_say_it),
        cmocka_unit_test(blocks_wait_for_nothing),
        cmocka_unit_test(gathers_end_in_the_next_minibatch),
    };
    return cmocka_run_group_tests_name("overlapping collectives", tests, NULL, NULL);
}
