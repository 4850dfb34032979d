/*
 * The judge on plans with kept outputs: it takes the planner's, and finds a plan that is broken in one of these ways by
 * the rule that it breaks. Options that do not go with kept outputs are refused by name; their time is in the bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "models/jobs/job_outputs.h"
#include "planner/check/plan_check.h"
#include "planner/prefix/prefix_keep.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_trained.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_rows.h"

enum { JOBS = 2, LAYERS = 4, VOCABULARY = 131 };

static const char config[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 5, \"n_embd\": 32, \"n_head\": 4, \"n_positions\": 32, "
    "\"vocab_size\": 131, \"embd_pdrop\": 0, \"attn_pdrop\": 0, \"resid_pdrop\": 0}";
static const uint64_t first_layers[][2] = {{0, LAYERS - 1}};
static char folder[SUPPORT_FOLDER_BYTES], path[SUPPORT_FOLDER_BYTES + 16];

static int setup(void **state)
{
    (void)state;
    support_folder_make(folder);
    snprintf(path, sizeof path, "%s/a.rows", folder);
    support_rows_write(path, 3, 21, 18, VOCABULARY, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    support_folder_remove(folder);
    return 0;
}

static void make_jobs(struct job_set *jobs)
{
    test_network_jobs(jobs, JOBS, config, 9);
    for (uint32_t j = 0; j < JOBS; j++) {
        struct job *job = &jobs->jobs[j];
        job->data = path;
        job->data_format = DATA_ROWS;
        job->evaluation = (struct job_evaluation){
            .every = 4, .minibatches = 2, .data_format = DATA_NONE, .share = 0.2, .split_seed = 1};
        job->seed = 5;
        job->freeze = (struct network_freeze){.layers = first_layers, .layer_count = 1};
        support_train_only(job, &jobs->arena);
    }
}

/* Plans two jobs that take the outputs of the same layers. */
static enum status make_with(const struct planner_options *options, uint32_t devices, struct plan *out,
                             struct error *err)
{
    uint64_t layers[JOBS] = {LAYERS, LAYERS};
    const struct prefix_choice choice = {.layers = layers};
    struct prefix_problem problem;
    struct arena arena = {0};
    struct hardware hardware;
    struct job_set jobs;
    test_hardware(&hardware, devices, 1 << 22, 1e9);
    hardware.backend = "host";
    make_jobs(&jobs);
    if (prefix_problem_make(&hardware, &jobs, 1e9, &arena, &problem, err) || prefix_keep(&problem, &choice, &jobs, err))
        fail_msg("%s", err->text);
    assert_int_equal(problem.group_count, 1);
    assert_int_equal(jobs.count, JOBS + 1);
    arena_release(&arena);
    *out = (struct plan){0};
    return planner_plan(&hardware, &jobs, options, out, err);
}

static void make(struct plan *out)
{
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                            .no_persistence = true};
    struct error err = {0};
    if (make_with(&options, 1, out, &err)) fail_msg("%s", err.text);
}

/* --- breaking ----------------------------------------------------------------------------------- */

/* Returns the first operation that is a recall, or a copy of outputs. */
static struct plan_op *find_op(struct plan *plan, bool recall)
{
    for (uint32_t o = 0; o < plan->op_count; o++) {
        struct plan_op *op = &plan->ops[o];
        const bool kept = plan->buffers[plan->accesses[op->first_access].buffer].kind == BUFFER_OUTPUTS;
        if (recall ? op->kind == OP_COMPUTE && op->pass == PLAN_RECALL : op->kind == OP_COPY && kept) return op;
    }
    fail();
    return NULL;
}

static void other_maker(struct plan *plan) { plan->jobs.jobs[0].outputs.maker = 1; }
static void other_layers(struct plan *plan) { plan->jobs.jobs[0].outputs.layers = LAYERS - 1; }
static void trained_layers(struct plan *plan) { plan->jobs.jobs[1].outputs.layers = LAYERS + 1; }
static void fewer_samples(struct plan *plan) { plan->jobs.jobs[JOBS].outputs.samples -= 2; }
static void fewer_held_out(struct plan *plan)
{
    plan->jobs.jobs[JOBS].outputs.held_out--;
    plan->jobs.jobs[JOBS].outputs.samples++;
}
static void other_rows(struct plan *plan) { plan->jobs.jobs[1].skips_long = true; }
static void other_seed(struct plan *plan) { plan->jobs.jobs[1].seed++; }
static void no_rows(struct plan *plan) { plan->jobs.jobs[0].data_format = DATA_TEXT; }
static void a_part(struct plan *plan) { find_op(plan, false)->bytes -= 64; }
static void no_work(struct plan *plan) { find_op(plan, true)->work = PLAN_NONE; }
static void on_a_device(struct plan *plan) { find_op(plan, true)->stream = STREAM_COMPUTE; }
static void embeds(struct plan *plan) { find_op(plan, true)->pass = PLAN_FORWARD; }

/* Lets a job begin before the last outputs are made. */
static void too_early(struct plan *plan)
{
    uint32_t t = 0;
    while (plan->units[plan->tasks[t].unit].job == JOBS) t++;
    const struct plan_task first = plan->tasks[t];
    plan->tasks[t] = plan->tasks[t - 1];
    plan->tasks[t - 1] = first;
}

static void test_broken(void **state)
{
    static const struct {
        void (*breaks)(struct plan *plan);
        const char *found;
    } cases[] = {
        {other_maker, "form: job-0 takes outputs of 4 layers, which job-1 does not make"},
        {other_layers, "form: job-0 takes outputs of 3 layers, which job-0-outputs does not make"},
        {trained_layers, "form: the outputs of the first 5 layers of job-1 cannot be kept: not all of them are frozen"},
        {fewer_samples, "form: job-0-outputs makes outputs in"},
        {fewer_held_out, "form: job-0-outputs makes outputs of 3 held-out samples (expected 4)"},
        {other_rows, "form: job-1 does not compute the outputs of job-0-outputs: they have different rows"},
        {other_seed, "job-1 does not compute the outputs of job-0-outputs: their weights come from different seeds"},
        {no_rows, "form: the outputs of the first 4 layers of job-0 cannot be kept: its samples do not return"},
        {a_part, "bytes of kept outputs on the d2h stream"},
        {no_work, "work: a recall does not copy the rows of a minibatch"},
        {on_a_device, "form: a computation on the compute stream"},
        {embeds, "training: passes over layers whose outputs the job takes"},
        {too_early, "recall): training: finds kept outputs of job-0-outputs, minibatch"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct plan plan;
        struct error err = {0};
        make(&plan);
        if (plan_check(&plan, &err)) fail_msg("%s", err.text);
        cases[i].breaks(&plan);
        if (plan_check(&plan, &err) != STATUS_CHECK || !strstr(err.text, cases[i].found))
            fail_msg("case %zu: '%s' (expected '%s')", i, err.text, cases[i].found);
        plan_release(&plan);
    }
}

static void test_refused(void **state)
{
    const struct {
        struct planner_options options;
        const char *found;
    } cases[] = {
        {{.policy = "model-parallel"}, "states that stay on devices"},
        {{.policy = "shared-base"}, "jobs that share a base"},
        {{.live = true}, "an order that is decided during the run"},
        {{.host = PLANNER_HOST_TURNS}, "jobs that take turns in host memory"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct planner_options options = cases[i].options;
        struct plan plan;
        struct error err = {0};
        options.activations = options.optimizer = PLANNER_AUTO;
        assert_int_equal(make_with(&options, 1, &plan, &err), STATUS_BAD_INPUT);
        if (!strstr(err.text, cases[i].found)) fail_msg("'%s'", err.text);
    }
}

/* What the jobs compute is less than without, and no more than the planner's clock has. */
static void test_bound(void **state)
{
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    (void)state;
    for (uint32_t devices = 1; devices <= 3; devices++) {
        struct plan with, without = {0};
        struct hardware hardware;
        struct job_set jobs;
        struct error err = {0};
        test_hardware(&hardware, devices, 1 << 22, 1e9);
        hardware.backend = "host";
        make_jobs(&jobs);
        if (make_with(&options, devices, &with, &err) || planner_plan(&hardware, &jobs, &options, &without, &err))
            fail_msg("%s", err.text);
        assert_true(with.lower_bound_s > 0 && with.lower_bound_s < without.lower_bound_s);
        assert_true(with.lower_bound_s <= with.estimated_makespan_s);
        plan_release(&with);
        plan_release(&without);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_broken), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_bound)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
