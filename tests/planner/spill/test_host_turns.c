/*
 * Jobs that take turns in host memory: plans of random jobs for host memory between the need of the largest job and the
 * need of all, and which broken plans are refused. test_contract.c checks that training gives the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/host_files.h"
#include "planner/check/plan_check.h"
#include "planner/plan_hosts.h"
#include "planner/policy/policies.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

#include "planner/spill/order/host_ranges.h"

/* Counts how often the library looks for a range. */
static uint64_t looked;

static bool count_and_find(const struct host_ranges *ranges, uint32_t host, uint64_t bytes, double *ready_s)
{
    looked++;
    return host_ranges_find(ranges, host, bytes, ready_s);
}

#define host_ranges_find count_and_find
#include "planner/spill/order/schedule_builder.c"
#undef host_ranges_find

enum { WIDTH = 64, VOCABULARY = 1021, CASES = 120 };

struct draw {
    uint64_t seed;
    uint32_t devices, jobs;
    uint64_t host_bytes; /* 0: plenty */
    const char *policy;
    bool weights;
    bool best; /* some jobs keep their best weights */
};

static enum status make(const struct draw *d, struct plan *plan, struct error *err)
{
    struct hardware hardware;
    struct job_set jobs;
    const struct planner_options options = {.policy = d->policy, .seed = d->seed >> 1, .activations = PLANNER_AUTO,
                                            .optimizer = PLANNER_AUTO, .iterations = 60,
                                            .live = random_below(d->seed, 7, 4) == 0};
    *plan = (struct plan){0};
    test_hardware(&hardware, d->devices, 3 << 20, 1e10);
    if (d->host_bytes > 0) hardware.host_bytes.value = (double)d->host_bytes;
    test_gpt_jobs(&jobs, d->jobs, 2 + (uint32_t)random_below(d->seed, 1, 3), WIDTH, VOCABULARY, 2);
    for (uint32_t j = 0; j < d->jobs; j++) {
        jobs.jobs[j].minibatches = 1 + random_below(d->seed, 10 + j, 4);
        if (random_below(d->seed, 40 + j, 2)) jobs.jobs[j].optimizer.kind = OPTIMIZER_SGD;
        if (random_below(d->seed, 70 + j, 2)) jobs.jobs[j].microbatch = 2;
        if (!d->best || random_below(d->seed, 100 + j, 3)) continue;
        jobs.jobs[j].evaluation = (struct job_evaluation){.every = 1, .minibatches = 1};
        jobs.jobs[j].keep_best = true;
    }
    return planner_plan(&hardware, &jobs, &options, plan, err);
}

static bool overlap(const struct plan_host_range *a, const struct plan_host_range *b)
{
    return a->offset_bytes < b->offset_bytes + b->bytes && b->offset_bytes < a->offset_bytes + a->bytes;
}

/* In plan order: the bytes of jobs between their first OPEN and their last CLOSE, at most. Ranges of these are
 * apart. */
static uint64_t most_at_a_time(const struct plan *plan, uint32_t *jobs_most)
{
    uint64_t now = 0, most = 0;
    uint32_t jobs = 0;
    bool *under_way = calloc(plan->jobs.count, sizeof *under_way);
    assert_non_null(under_way);
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_unit *unit = &plan->units[plan->tasks[plan->segments[s].first_task + i].unit];
            uint32_t shards = plan->job_first_shard[unit->job + 1] - plan->job_first_shard[unit->job];
            if (unit->pass == PLAN_OPEN && unit->shard == 0) {
                for (uint32_t j = 0; j < plan->jobs.count; j++)
                    assert_false(under_way[j] && overlap(&plan->host_ranges[j], &plan->host_ranges[unit->job]));
                under_way[unit->job] = true;
                now += plan->host_ranges[unit->job].bytes;
                *jobs_most = ++jobs > *jobs_most ? jobs : *jobs_most;
            } else if (unit->pass == PLAN_CLOSE && unit->shard + 1 == shards) {
                under_way[unit->job] = false;
                now -= plan->host_ranges[unit->job].bytes;
                jobs--;
            } else {
                assert_true(under_way[unit->job]);
            }
            if (now > most) most = now;
        }
    free(under_way);
    assert_int_equal(now, 0);
    return most;
}

static double simulated_s(const struct plan *plan)
{
    struct sim_options options = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    if (sim_run(plan, &options, &result, &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    double seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    return seconds;
}

static void test_random_jobs(void **state)
{
    (void)state;
    uint64_t seed = support_seed(__func__);
    uint32_t turned = 0, several = 0;
    for (uint32_t c = 0; c < CASES; c++) {
        struct plan plan, whole;
        struct error err = {0};
        struct draw d = {.seed = random_u64(seed, c), .policy = policy_at(c % 9)->name, .best = true};
        d.devices = 1 + (uint32_t)random_below(d.seed, 2, 3);
        d.jobs = 2 + (uint32_t)random_below(d.seed, 3, 6);
        if (make(&d, &whole, &err) != STATUS_OK) { /* too small a device for what a policy keeps there */
            assert_int_equal(err.status, policy_at(c % 9)->resident ? err.status : STATUS_OK);
            continue;
        }
        uint64_t all = plan_host_bytes(&whole);
        assert_null(whole.host_ranges);
        uint32_t together = 0;
        assert_int_equal(plan_host_jobs(&whole, &together, &err), STATUS_OK);
        assert_int_equal(together, d.jobs);
        /* somewhere between a third more than an even share, for jobs differ, and all but a byte */
        uint64_t least = all / d.jobs * 3;
        d.host_bytes = least < all ? least + random_below(d.seed, 4, all - least) : all - 1;
        if (make(&d, &plan, &err) != STATUS_OK) fail_msg("case %u, %s: %s", c, d.policy, err.text);
        assert_true(plan_host_fullest(&plan).memory_bytes <= d.host_bytes);
        uint32_t jobs = 0;
        if (plan.host_ranges) {
            uint32_t told = 0;
            assert_true(most_at_a_time(&plan, &jobs) <= d.host_bytes);
            assert_int_equal(plan_host_jobs(&plan, &told, &err), STATUS_OK);
            assert_int_equal(told, jobs);
            turned++;
            several += jobs > 1;
        }
        assert_true(simulated_s(&plan) >= plan.lower_bound_s * (1 - 1e-9));
        plan_release(&plan);
        plan_release(&whole);
    }
    print_message("%u plans in turns, %u with several jobs at a time\n", turned, several);
    assert_true(turned >= CASES / 3 && several >= CASES / 6);
}

/* --- refusals --------------------------------------------------------------------------------- */

static const struct draw five = {.seed = 11, .devices = 2, .jobs = 5, .policy = "sharded-lrtf"};

static void make_jobs(struct draw d, struct plan *plan)
{
    struct plan whole;
    struct error err = {0};
    if (make(&d, &whole, &err) != STATUS_OK) fail_msg("%s", err.text);
    d.host_bytes = plan_host_bytes(&whole) - 1;
    plan_release(&whole);
    if (make(&d, plan, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_non_null(plan->host_ranges);
}

static void make_five(struct plan *plan) { make_jobs(five, plan); }

static struct plan_unit *unit_of(struct plan *plan, uint32_t pass, uint32_t job)
{
    for (uint32_t u = 0; u < plan->unit_count; u++)
        if (plan->units[u].pass == pass && plan->units[u].job == job) return &plan->units[u];
    fail();
    return NULL;
}

/* The first task of such a unit, in plan order. */
static struct plan_task *task_of(struct plan *plan, uint32_t pass, uint32_t job)
{
    for (uint32_t i = 0; i < plan->task_count; i++)
        if (plan->units[plan->tasks[i].unit].pass == pass && plan->units[plan->tasks[i].unit].job == job)
            return &plan->tasks[i];
    fail();
    return NULL;
}

static void on_top_of_another(struct plan *plan)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++) plan->host_ranges[j].offset_bytes = 0;
}
static void too_small(struct plan *plan) { plan->host_ranges[1].bytes = 4096; }
static void unaligned(struct plan *plan) { plan->host_ranges[1].offset_bytes += 64; }
static void too_far(struct plan *plan) { plan->host_ranges[2].offset_bytes += 1 << 30; }
static void without(struct plan *plan) { plan->host_ranges[0].bytes = 0; }
static void in_no_range(struct plan *plan)
{
    without(plan);
    plan->hardware.host_bytes.value *= 4; /* which is enough for its buffers as well */
}
static void wrong_state(struct plan *plan)
{
    const struct plan_unit *open = unit_of(plan, PLAN_OPEN, 0), *close = unit_of(plan, PLAN_CLOSE, 0);
    plan->accesses[plan->ops[open->first_op].first_access].buffer =
        plan->accesses[plan->ops[close[1].first_op].first_access].buffer;
}
static void opened_twice(struct plan *plan)
{
    struct plan_task *second = task_of(plan, PLAN_OPEN, 0) + 1;
    second->unit = (uint32_t)(unit_of(plan, PLAN_OPEN, 0) - plan->units);
}
static void closed_early(struct plan *plan)
{
    struct plan_task *last = task_of(plan, PLAN_CLOSE, 0), swap = last[-1];
    last[-1] = last[0];
    last[0] = swap;
}

static void closed_twice(struct plan *plan)
{
    struct plan_task *first = task_of(plan, PLAN_CLOSE, 0), *next = first + 1;
    while (plan->units[next->unit].pass != PLAN_CLOSE || plan->units[next->unit].job != 0) next++;
    next->unit = first->unit;
}
static void used_before_all_are_open(struct plan *plan)
{
    struct plan_task *last = task_of(plan, PLAN_OPEN, 0), *next = last + 1, swap;
    for (; plan->units[next->unit].job != 0 || plan->units[next->unit].pass == PLAN_OPEN; next++)
        if (plan->units[next->unit].job == 0) last = next;
    swap = *last;
    *last = *next;
    *next = swap;
}
static struct plan_op *file_op(struct plan *plan, uint32_t pass) { return &plan->ops[unit_of(plan, pass, 0)->first_op];
                                                                  }
static struct plan_access *file_access(struct plan *plan, uint32_t pass)
{
    return &plan->accesses[file_op(plan, pass)->first_access];
}
static uint32_t buffer_of(const struct plan *plan, uint32_t kind, bool on_device)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == kind && plan->buffers[b].job == 0 && plan->buffers[b].on_device == on_device &&
            (plan->buffers[b].shard == 0 || plan->buffers[b].shard == PLAN_NONE))
            return b;
    fail();
    return PLAN_NONE;
}
static void other_pass(struct plan *plan) { file_op(plan, PLAN_OPEN)->pass = PLAN_CLOSE; }
static void two_operations(struct plan *plan) { unit_of(plan, PLAN_OPEN, 0)->op_count = 2; }
static void with_work(struct plan *plan) { file_op(plan, PLAN_CLOSE)->work = 0; }
static void with_rows(struct plan *plan) { file_op(plan, PLAN_OPEN)->row_count = 1; }
static void of_loss(struct plan *plan) { file_access(plan, PLAN_OPEN)->buffer = buffer_of(plan, BUFFER_LOSS, false); }
static void of_device(struct plan *plan) { file_access(plan, PLAN_CLOSE)->buffer = buffer_of(plan, BUFFER_STATE, true);
                                          }
static void open_reads(struct plan *plan) { file_access(plan, PLAN_OPEN)->flags = ACCESS_READ; }
static void close_writes(struct plan *plan) { file_access(plan, PLAN_CLOSE)->flags = ACCESS_READ | ACCESS_WRITE; }
static void of_two(struct plan *plan) { file_op(plan, PLAN_OPEN)->access_count = 2; }
static void beyond_all(struct plan *plan) { plan->host_ranges[1].offset_bytes = UINT64_MAX - 4095; }
static void stored(struct plan *plan) { plan->buffers[buffer_of(plan, BUFFER_STATE, false)].kind = BUFFER_STORED; }

static void test_broken_plans(void **state)
{
    (void)state;
    const struct {
        void (*change)(struct plan *plan);
        const char *says;
    } cases[] = {
        {on_top_of_another, "takes host memory that"},
        {too_small, "and its buffers take"},
        {unaligned, "not at a multiple of 4096"},
        {too_far, "host buffers"},
        {without, "the host buffers are"},
        {in_no_range, "job-0 has no range of host memory"},
        {wrong_state, "opens something else than the shard's state"},
        {opened_twice, "expected each once, in order"},
        {closed_early, "expected each once, in order, at its end"},
        {closed_twice, "closes shard 0 of job-0 (expected each once, in order, at its end)"},
        {used_before_all_are_open, "job-0 is not in host memory yet ("},
        {other_pass, "in a unit that is about more"},
        {two_operations, "in a unit that is about more"},
        {with_work, "in a unit that is about more"},
        {with_rows, "in a unit that is about more"},
        {of_loss, "opens something else than the shard's state on the host"},
        {of_device, "closes something else than the shard's state on the host"},
        {open_reads, "opens something else than the shard's state on the host"},
        {close_writes, "closes something else than the shard's state on the host"},
        {of_two, "opens something else than the shard's state on the host"},
        {beyond_all, "in host memory ends beyond 2^64 bytes"},
        {stored, ", of a job that has a range of host memory"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct plan plan;
        struct error err = {0};
        make_five(&plan);
        assert_int_equal(plan_check(&plan, &err), STATUS_OK);
        cases[i].change(&plan);
        if (plan_check(&plan, &err) != STATUS_CHECK) fail_msg("case %zu: status %d, %s", i, (int)err.status, err.text);
        if (!strstr(err.text, cases[i].says)) fail_msg("case %zu: %s", i, err.text);
        plan_release(&plan);
    }
}

/* Returns the host buffer of a kind and a shard. */
static uint32_t host_buffer(const struct plan *plan, uint32_t kind, uint32_t job, uint32_t shard)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == kind && plan->buffers[b].job == job && plan->buffers[b].shard == shard &&
            !plan->buffers[b].on_device)
            return b;
    fail();
    return PLAN_NONE;
}

/* Adds empty host activations of the same shard. */
static uint32_t add_activations(struct plan *plan, uint32_t like)
{
    struct plan_buffer *buffers;
    struct error err = {0};
    if (ARENA_NEW(&plan->arena, plan->buffer_count + 1, buffers, &err)) fail_msg("%s", err.text);
    memcpy(buffers, plan->buffers, plan->buffer_count * sizeof *buffers);
    buffers[plan->buffer_count] = buffers[like];
    buffers[plan->buffer_count].kind = BUFFER_ACTIVATIONS;
    buffers[plan->buffer_count].bytes = 0; /* the range has no room */
    plan->buffers = buffers;
    return plan->buffer_count++;
}

/* A job that keeps its best weights closes both its state and them, of the same shard. */
static void test_broken_best_weights(void **state)
{
    (void)state;
    static const char of_state[] = "closes something else than the shard's state on the host",
                      of_weights[] = "closes something else than the shard's best weights";
    static const char *const says[] = {of_weights, of_state, of_weights, of_weights, of_state};
    for (uint32_t c = 0; c < ARRAY_COUNT(says); c++) {
        struct draw d = five;
        struct plan plan;
        struct error err = {0};
        uint32_t job = 0;
        d.best = true;
        make_jobs(d, &plan);
        while (job < plan.jobs.count && !plan.jobs.jobs[job].keep_best) job++;
        assert_true(job < plan.jobs.count);
        const struct plan_unit *close = unit_of(&plan, PLAN_CLOSE, job);
        while (close->pass != PLAN_CLOSE || close->job != job || close->shard != 1) close++;
        struct plan_op *op = &plan.ops[close->first_op];
        struct plan_access *ends = &plan.accesses[op->first_access];
        assert_int_equal(op->access_count, 2);
        const uint32_t own = ends[0].buffer, kept = ends[1].buffer;
        if (c == 0) ends[1].buffer = host_buffer(&plan, BUFFER_KEPT, job, 0);
        if (c == 1) ends[0].buffer = kept, ends[1].buffer = own;
        if (c == 2) ends[1].buffer = add_activations(&plan, kept);
        if (c == 3) ends[1].flags = ACCESS_READ | ACCESS_WRITE;
        if (c == 4) op->access_count = 1;
        assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
        if (!strstr(err.text, says[c])) fail_msg("case %u: %s", c, err.text);
        plan_release(&plan);
    }
}

/* A range may be as large as its job's buffers, each of whole pages, and no smaller. */
static void test_smallest_range(void **state)
{
    (void)state;
    struct plan plan;
    struct error err = {0};
    make_five(&plan);
    for (uint32_t j = 0; j < plan.jobs.count; j++) {
        uint64_t used = 0;
        for (uint32_t b = 0; b < plan.buffer_count; b++)
            if (plan.buffers[b].job == j && !plan.buffers[b].on_device)
            used += (plan.buffers[b].bytes + 4095) / 4096 * 4096;
        assert_true(plan.host_ranges[j].bytes >= used);
        plan.host_ranges[j].bytes = used;
    }
    if (plan_check(&plan, &err)) fail_msg("%s", err.text);
    plan.host_ranges[1].bytes--;
    assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
    assert_non_null(strstr(err.text, "job-1 has a range of "));
    assert_non_null(strstr(err.text, " bytes of host memory, and its buffers take "));
    plan_release(&plan);
}

/* A job larger than the host: by how much, and what would help. */
static void test_refusal(void **state)
{
    (void)state;
    struct draw d = five;
    struct plan plan;
    struct error err = {0};
    d.host_bytes = 700000;
    assert_int_equal(make(&d, &plan, &err), STATUS_INFEASIBLE);
    assert_non_null(strstr(err.text, "job 'job-0' needs at least "));
    assert_non_null(strstr(err.text, "--storage-memory"));
}

/* The cost of files: bytes over the rates that the machine states, or over the assumed ones. */
static void test_seconds(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    test_hardware(&hardware, 1, 1 << 20, 1e9);
    test_gpt_jobs(&jobs, 1, 2, WIDTH, VOCABULARY, 3);
    struct job *job = &jobs.jobs[0];
    uint64_t layers = job->network.layer_count;
    double values = (double)memory_parameter_bytes(&job->network, 0, layers);
    double bytes = (double)job_state(job, 0, layers).bytes;
    hardware.file_read.value = 3e8;
    hardware.file_write.value = 7e7;
    double clear_s = bytes / 5e9;
    assert_true(fabs(host_file_open_s(&hardware, job, 0, layers) - (clear_s + values / 2e9)) < 1e-12);
    assert_true(host_file_close_s(&hardware, job, 0, layers) <= 0);
    job->weights_in = "in.safetensors";
    job->weights_out = "out.safetensors";
    assert_true(fabs(host_file_open_s(&hardware, job, 0, layers) - (clear_s + values / 3e8)) < 1e-12);
    assert_true(fabs(host_file_close_s(&hardware, job, 0, layers) - values / 7e7) < 1e-12);
    job->first_minibatch = 4; /* from a checkpoint, with its moments */
    assert_true(fabs(host_file_open_s(&hardware, job, 0, layers) - (clear_s + bytes / 3e8)) < 1e-12);
    hardware.file_read.value = hardware.file_write.value = 0;
    assert_true(host_file_read_rate(&hardware) > host_file_write_rate(&hardware)); /* assumed */
    job->weights_in = job->weights_out = NULL;
    job_set_release(&jobs);
    hardware_release(&hardware);
}

/*
 * At the begin and end of each job a range is sought once for all jobs that need equally much, here in four kinds by
 * optimizer and microbatch. It was once a job.
 */
static void test_equal_jobs_look_once(void **state)
{
    (void)state;
    enum { JOBS = 300, KINDS = 4 };
    struct plan plan;
    struct error err = {0};
    struct draw d = {.seed = 9, .devices = 1, .jobs = JOBS, .policy = "sharded-lrtf"};
    if (make(&d, &plan, &err)) fail_msg("%s", err.text);
    d.host_bytes = plan_host_bytes(&plan) / JOBS * 4;
    plan_release(&plan);
    looked = 0;
    if (make(&d, &plan, &err)) fail_msg("%s", err.text);
    print_message("%d jobs: looked %" PRIu64 " times\n", JOBS, looked);
    assert_non_null(plan.host_ranges);
    assert_true(looked >= JOBS && looked < JOBS * 3 * KINDS * 4);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_jobs),
        cmocka_unit_test(test_broken_plans),
        cmocka_unit_test(test_broken_best_weights),
        cmocka_unit_test(test_smallest_range),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_equal_jobs_look_once),
    };
    return cmocka_run_group_tests_name("host turns", tests, NULL, NULL);
}
