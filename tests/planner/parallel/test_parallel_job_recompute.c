/*
 * planner/parallel/parallel_job_recompute.h (label: fast): its clock against the simulator, its choices against all
 * others, simulated; its search against trying all; its plans against only swapping and only recomputing; broken plans,
 * refused jobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "planner/check/plan_check.h"
#include "planner/parallel/parallel_job_recompute.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

/* The next of a stream. */
struct draws {
    uint64_t key, count;
};
static uint64_t draw(struct draws *d, uint64_t bound) { return random_below(d->key, d->count++, bound); }
static double draw_unit(struct draws *d) { return random_unit(d->key, d->count++); }

/* --- jobs ------------------------------------------------------------------------------------- */

static const double link_rate = 1e9;
enum { ACTIVATION_BYTES = 4000000, LARGEST_WEIGHTS = 1700000, LARGEST = 8 };

/* Chunks that keep equal bytes and differ in everything else. */
struct mixed {
    uint32_t chunks, replicas, prefetch, places;
    struct test_layer layers[LARGEST];
};

static void make_mixed(struct draws *random, struct mixed *out)
{
    out->chunks = 2 + (uint32_t)draw(random, LARGEST - 1);
    out->replicas = 1 + (uint32_t)draw(random, 2);
    out->prefetch = (uint32_t)draw(random, 3);
    out->places = out->prefetch + 1 + (uint32_t)draw(random, 2);
    for (uint32_t r = 0; r < out->chunks; r++)
        out->layers[r] = (struct test_layer){.forward_ns = 500000 + draw(random, 5000000),
                                             .backward_ns = 500000 + draw(random, 9000000),
                                             .activation_bytes = ACTIVATION_BYTES, .boundary_bytes = 64,
                                             .parameter_bytes = 64 + 4 * draw(random, 400000)};
}

static struct test_layer layer_of(void *context, uint32_t job, uint32_t layer)
{
    (void)job;
    return ((const struct mixed *)context)->layers[layer];
}

/* choices NULL: the planner's. */
static void plan_mixed(struct mixed *m, const char *choices, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    test_parallel_machine(&hardware, m->replicas, 1e12, 0);
    hardware.host_bandwidth =
        (struct sourced_value){.value = 1e12, .kind = SOURCE_ASSUMED, .source = "a test", .as_of = "2026-11"};
    for (uint32_t d = 0; d < m->replicas; d++) {
        hardware.links[d].bandwidth.value = link_rate;
        hardware.devices[d].memory_bytes = (m->prefetch + 3) * LARGEST_WEIGHTS +
                                           (m->places + 1) * (uint64_t)ACTIVATION_BYTES;
    }
    test_profile_jobs(&jobs, 1, m->chunks, 1, layer_of, m);
    jobs.jobs[0].microbatches = m->replicas;
    struct parallel *p = &jobs.jobs[0].parallel;
    *p = (struct parallel){.tensor = 1, .pipeline = 1, .data = m->replicas, .chunks = m->chunks,
                           .schedule = PIPELINE_1F1B,
                           .prefetch = m->prefetch, .offload = OFFLOAD_WEIGHTS, .swap = true, .choose = !choices};
    if (choices) {
        p->chosen = m->chunks;
        memcpy(p->choices, choices, m->chunks);
    }
    *out = (struct plan){0};
    test_parallel_plan(&hardware, &jobs, out);
}

static double makespan_s(struct mixed *m, const char *choices)
{
    struct plan plan;
    plan_mixed(m, choices, &plan);
    double seconds = test_parallel_simulate(&plan, false).makespan_s;
    plan_release(&plan);
    return seconds;
}

/* --- the clock -------------------------------------------------------------------------------- */

/* Describes places as the plan has them: the number of chunks that leave decides them. */
static void describe(const struct mixed *m, const struct plan *plan, struct parallel_job_choice_chunk *chunks,
                     struct parallel_job_choice_problem *out)
{
    const struct job *job = &plan->jobs.jobs[0];
    uint64_t own = 0, work = 0, each = parallel_job_range_bytes(ACTIVATION_BYTES);
    uint32_t swapped = 0, turns = 0;
    for (uint32_t r = 0; r < m->chunks; r++) {
        bool again = job->parallel.choices[r] == PARALLEL_AGAIN;
        struct parallel_layers layers = parallel_layers(job, r);
        const struct test_layer *l = &m->layers[r];
        double forward_s = 1e-9 * (double)l->forward_ns, backward_s = 1e-9 * (double)l->backward_ns;
        double weights_s = (double)l->parameter_bytes / link_rate, copy_s = ACTIVATION_BYTES / link_rate;
        uint64_t kept = parallel_kept_bytes(job, layers, false), needs = parallel_workspace_bytes(job, layers);
        chunks[r] = (struct parallel_job_choice_chunk){.forward_s = forward_s,
                                                   .backward_s = {backward_s, backward_s + forward_s},
                                                   .weights_s = weights_s,
                                                   .down_s = weights_s,
                                                   .copy_s = {copy_s, copy_s},
                                                   .kept_bytes = {ACTIVATION_BYTES, 0},
                                                   .work_bytes = {needs, needs},
                                                   .gathers = true};
        assert_int_equal(kept, again ? 0 : ACTIVATION_BYTES);
        bool alone = again || (r + 1 == m->chunks && turns == 0);
        if (alone) own += parallel_job_range_bytes(kept);
        else turns++;
        work = work > needs ? work : needs;
    }
    swapped = plan_swapped_shards(plan, 0);
    *out = (struct parallel_job_choice_problem){.chunks = chunks, .count = m->chunks, .slots = m->prefetch + 1,
                                                .have_bytes = own + parallel_job_range_bytes(work) +
                                                              (turns - swapped) * each};
}

/* The clock gives the time that the simulator takes for a plan, for every choice. */
static void clock_and_simulator(void **state)
{
    (void)state;
    uint32_t left = 0;
    struct draws random = {support_seed("parallel_job_choose_recompute: clock"), 0};
    for (uint32_t i = 0; i < 120; i++) {
        struct mixed m;
        struct plan plan;
        struct parallel_job_choice_chunk chunks[LARGEST];
        struct parallel_job_choice_problem problem;
        char choices[LARGEST];
        bool fits;
        make_mixed(&random, &m);
        m.replicas = 1; /* nothing to add up */
        for (uint32_t r = 0; r < m.chunks; r++) choices[r] = draw(&random, 3) == 0 ? PARALLEL_AGAIN : PARALLEL_SWAPPED;
        plan_mixed(&m, choices, &plan);
        describe(&m, &plan, chunks, &problem);
        double clock_s = parallel_job_choice_clock_s(&problem, plan.jobs.jobs[0].parallel.choices, &fits);
        assert_true(fits);
        left += plan_swapped_shards(&plan, 0) > 0;
        test_parallel_near(test_parallel_simulate(&plan, false).makespan_s, clock_s);
        plan_release(&plan);
    }
    assert_true(left > 30);
}

/* --- the choices ------------------------------------------------------------------------------ */

/* All choices are planned and simulated; none ends before the planner's. */
static void best_of_all(void **state)
{
    (void)state;
    uint32_t mixtures = 0;
    struct draws random = {support_seed("parallel_job_choose_recompute: best"), 0};
    for (uint32_t i = 0; i < 12; i++) {
        struct mixed m;
        struct plan plan;
        char choices[LARGEST];
        make_mixed(&random, &m);
        m.chunks = m.chunks > 5 ? 5 : m.chunks;
        plan_mixed(&m, NULL, &plan);
        const struct parallel *p = &plan.jobs.jobs[0].parallel;
        double found_s = test_parallel_simulate(&plan, false).makespan_s;
        assert_int_equal(p->chosen, m.chunks);
        mixtures += memchr(p->choices, PARALLEL_AGAIN, m.chunks) && memchr(p->choices, PARALLEL_SWAPPED, m.chunks);
        for (uint32_t set = 0; set < UINT32_C(1) << m.chunks; set++) {
            for (uint32_t r = 0; r < m.chunks; r++) choices[r] = set >> r & 1 ? PARALLEL_AGAIN : PARALLEL_SWAPPED;
            double other_s = makespan_s(&m, choices);
            if (found_s > other_s * (1 + 1e-9))
                fail_msg("%.*s takes %.9g, %.*s %.9g", (int)m.chunks, p->choices, found_s, (int)m.chunks, choices,
                         other_s);
        }
        plan_release(&plan);
    }
    print_message("%" PRIu32 " of 12 jobs swap some chunks and compute others again\n", mixtures);
}

/* With more chunks than are tried exhaustively, the result is within 1 % of the optimum on average, 3 % at most. */
static void search(void **state)
{
    (void)state;
    double sum = 0, most = 0;
    enum { RUNS = PARALLEL_JOB_CHOICE_EXACT + 1, TIMES = 4 };
    struct draws random = {support_seed("parallel_job_choose_recompute: search"), 0};
    for (uint32_t i = 0; i < TIMES; i++) {
        struct parallel_job_choice_chunk chunks[RUNS];
        struct parallel_job_choice_problem problem = {.chunks = chunks, .count = RUNS, .slots = 2,
                                                      .have_bytes = 4200 * (2 + i)};
        char choices[RUNS];
        double found_s, best_s = INFINITY;
        bool exact, fits;
        for (uint32_t r = 0; r < RUNS; r++)
            chunks[r] = (struct parallel_job_choice_chunk){.forward_s = 1 + draw_unit(&random),
                                                           .weights_s = draw_unit(&random),
                                                       .down_s = draw_unit(&random), .kept_bytes = {4096, 0},
                                                       .gathers = true,
                                                       .copy_s = {2 + draw_unit(&random), 2 + draw_unit(&random)}};
        for (uint32_t r = 0; r < RUNS; r++) {
            chunks[r].backward_s[0] = 2 * chunks[r].forward_s;
            chunks[r].backward_s[1] = 3 * chunks[r].forward_s;
        }
        assert_true(parallel_job_choice_best(&problem, choices, &found_s, &exact));
        assert_false(exact);
        test_parallel_near(parallel_job_choice_clock_s(&problem, choices, &fits), found_s);
        for (uint32_t set = 0; set < UINT32_C(1) << RUNS; set++) {
            for (uint32_t r = 0; r < RUNS; r++) choices[r] = set >> r & 1 ? PARALLEL_AGAIN : PARALLEL_SWAPPED;
            double other_s = parallel_job_choice_clock_s(&problem, choices, &fits);
            if (fits) best_s = fmin(best_s, other_s);
        }
        sum += found_s / best_s - 1;
        most = fmax(most, found_s / best_s - 1);
    }
    print_message("search over %d chunks: %.3f %% above the best, at most %.3f %%\n", (int)RUNS, 100 * sum / TIMES,
                  100 * most);
    assert_true(sum / TIMES < 0.01 && most < 0.03);
}

/* No place for a single chunk's activations: nothing fits. */
static void nothing_fits(void **state)
{
    (void)state;
    struct parallel_job_choice_chunk chunks[2] =
        {{.forward_s = 1, .backward_s = {2, 3}, .kept_bytes = {4096, 4096}, .work_bytes = {512, 512}},
         {.forward_s = 1, .backward_s = {2, 3}, .kept_bytes = {4096, 4096}, .work_bytes = {512, 512}}};
    struct parallel_job_choice_problem problem = {.chunks = chunks, .count = 2, .slots = 1, .have_bytes = 4096};
    char choices[2];
    double seconds;
    bool exact;
    assert_false(parallel_job_choice_best(&problem, choices, &seconds, &exact));
    problem.have_bytes = 3 * 4096; /* for both, and the workspace: no layer leaves, no copies */
    assert_true(parallel_job_choice_best(&problem, choices, &seconds, &exact));
    test_parallel_near(seconds, 6);
}

/* --- refused jobs ----------------------------------------------------------------------------- */

/* A chunk marked as recomputed must have the work and the kept bytes of one. */
static void broken(void **state)
{
    (void)state;
    struct draws random = {7, 0};
    for (uint32_t r = 0; r < 3; r++) {
        struct mixed m;
        struct plan plan;
        struct error err = {0};
        char choices[LARGEST + 1] = "srsssss";
        do make_mixed(&random, &m);
        while (m.chunks < 3);
        plan_mixed(&m, choices, &plan);
        char *choice = &plan.jobs.jobs[0].parallel.choices[r];
        *choice = *choice == PARALLEL_AGAIN ? PARALLEL_SWAPPED : PARALLEL_AGAIN;
        assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
        plan_release(&plan);
    }
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        bool swap, choose;
        uint32_t chosen, recompute;
        const char *text;
    } cases[] = {
        {false, true, 0, RECOMPUTE_NONE, "'choose' without 'swap' (expected it: activations leave or are computed "
                                         "again)"},
        {false, false, 3, RECOMPUTE_NONE, "'choices' without 'swap' (expected it: activations leave or are computed "
                                          "again)"},
        {true, true, 0, RECOMPUTE_FULL,
         "'choose' with recomputation of all chunks (expected none or selective: recomputed activations are not "
         "swapped)"},
        {true, false, 2, RECOMPUTE_NONE, "'choices' of 2 chunks (expected one for each chunk, 3)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct job_set jobs;
        struct error err = {0};
        struct mixed m = {.chunks = 3};
        for (uint32_t r = 0; r < 3; r++) m.layers[r] = (struct test_layer){.forward_ns = 1000, .backward_ns = 1000};
        test_profile_jobs(&jobs, 1, 3, 1, layer_of, &m);
        jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 1, .chunks = 3, .prefetch = 1,
                                                  .schedule = PIPELINE_1F1B, .offload = OFFLOAD_WEIGHTS,
                                                  .swap = cases[i].swap, .choose = cases[i].choose,
                                                  .chosen = cases[i].chosen, .recompute = cases[i].recompute};
        memset(jobs.jobs[0].parallel.choices, PARALLEL_SWAPPED, 3);
        assert_int_equal(parallel_check(&jobs.jobs[0], &err), STATUS_BAD_INPUT);
        assert_non_null(strstr(err.text, cases[i].text));
        job_set_release(&jobs);
    }
}

/* Reads and writes the texts of jobs files, and of the command line, where only the planner chooses. */
static void texts(void **state)
{
    (void)state;
    static const char *const job = "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": \"gpt2\", "
                                   "\"minibatches\": 1,\n"
                                   "\"parallel\": {\"data\": 1, \"chunks\": 3, \"offload\": \"weights\", "
                                   "\"swap\": true,\n"
                                   "\"choices\": \"%s\"}}]}";
    struct job_set jobs = {0};
    struct error err = {0};
    struct parallel p = {0};
    char given[512], text[PARALLEL_TEXT_BYTES];
    snprintf(given, sizeof given, job, "rsr");
    assert_int_equal(support_jobs(given, "/no/such/folder", &jobs, &err), STATUS_OK);
    assert_int_equal(jobs.jobs[0].parallel.chosen, 3);
    assert_memory_equal(jobs.jobs[0].parallel.choices, "rsr", 3);
    job_set_release(&jobs);
    snprintf(given, sizeof given, job, "rsx");
    assert_int_equal(support_jobs(given, "/no/such/folder", &jobs, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "test:3:12: 'choices' is 'rsx' (expected a letter for each of at most 128 chunks: "
                                  "s, swapped, or r, computed again)");
    err = (struct error){0};
    assert_int_equal(parallel_parse_text("v=3,offload=weights,swap,choose", &p, &err), STATUS_OK);
    assert_true(p.choose && p.chosen == 0);
    assert_string_equal(parallel_text(&p, text), "v=3,offload=weights,swap,choose");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_and_simulator), cmocka_unit_test(best_of_all), cmocka_unit_test(search),
        cmocka_unit_test(nothing_fits),        cmocka_unit_test(broken),      cmocka_unit_test(refused),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests_name("planner/parallel/parallel_job_recompute.h", tests, NULL, NULL);
}
