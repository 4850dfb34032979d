/* traces/compare.h: errors known by arithmetic. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/size.h"
#include "planner/plan.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/support_trace_pair.h"
#include "traces/compare.h"

/*
 * Times in seconds:
 *                     predicted          measured
 *   gpu0 h2d     0    0    .. 1          0    .. 1.25
 *   gpu0         1    1    .. 3          1.25 .. 3.75
 *   gpu0 d2h     2    3    .. 3.5        3.75 .. 4
 *   gpu1         3    0.5  .. 1.5        0.5  .. 2
 *   gpu1         4    2    .. 4          2.5  .. 4
 *   gpu0         5    3.75 .. 5          4    .. 6
 *   host         6    0    .. 0.25       0    .. 0.75
 */
static const struct span_row predicted_rows[] = {
    {GPU0_H2D, 0, 0, PLAN_FORWARD, 0, 0, 0, 1, 1000},
    {GPU0, 0, 0, PLAN_FORWARD, 1, 0, 1, 3, 0},
    {GPU0_D2H, 0, 0, PLAN_FORWARD, 2, 0, 3, 3.5, 500},
    {GPU1, 1, 0, PLAN_FORWARD, 0, 0, 0.5, 1.5, 0},
    {GPU1, 1, 1, PLAN_LOSS, 0, 0, 2, 4, 0},
    {GPU0, 0, 1, PLAN_LOSS, 0, 0, 3.75, 5, 0},
    {HOST, 1, 0, PLAN_BATCH, 0, 0, 0, 0.25, 0},
};
static const double measured_times[][2] = {{0, 1.25}, {1.25, 3.75}, {3.75, 4}, {0.5, 2},
                                           {2.5, 4},  {4, 6},       {0, 0.75}};

static void make_pair(struct trace *predicted, struct trace *measured)
{
    struct span_row rows[ARRAY_COUNT(predicted_rows)];
    memcpy(rows, predicted_rows, sizeof rows);
    support_trace(predicted, TRACE_PREDICTED, rows, ARRAY_COUNT(rows), NULL, 0);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rows[i].start_s = measured_times[i][0];
        rows[i].end_s = measured_times[i][1];
    }
    support_trace(measured, TRACE_MEASURED, rows, ARRAY_COUNT(rows), NULL, 0);
}

static void expect_class(const struct compare_class_result *class, double predicted_s,
                         double measured_s, double error, double share)
{
    assert_near(class->predicted_s, predicted_s, 1e-12);
    assert_near(class->measured_s, measured_s, 1e-12);
    assert_true(class->error_known);
    assert_near(class->error, error, 1e-12);
    assert_near(class->share, share, 1e-12);
}

static void classes_have_their_closed_form(void **state)
{
    (void)state;
    struct trace predicted, measured;
    struct compare_result result;
    struct error err = {0};
    make_pair(&predicted, &measured);
    assert_int_equal(trace_pair_compare(&predicted, &measured, &result, &err), STATUS_OK);
    assert_near(result.predicted_makespan_s, 5, 0);
    assert_near(result.measured_makespan_s, 6, 0);
    /* (1120 / 5) / (1120 / 6) - 1 */
    assert_near(result.throughput_error, 0.2, 1e-12);
    assert_true(result.throughput_error_known);
    /* 2 + 1.25 on gpu0 and 1 + 2 on gpu1, against 2.5 + 2 and 1.5 + 1.5: 6.25 / 7.5 - 1; the
       difference of -1.25 s over two streams, over 6 s */
    expect_class(&result.classes[COMPARE_COMPUTE], 6.25, 7.5, -1.0 / 6, -1.25 / 12);
    expect_class(&result.classes[COMPARE_H2D], 1, 1.25, -0.2, -0.25 / 6);
    expect_class(&result.classes[COMPARE_D2H], 0.5, 0.25, 1, 0.25 / 6);
    /* gpu0 waits 3 .. 3.75, gpu1 1.5 .. 2; measured 3.75 .. 4 and 2 .. 2.5 */
    expect_class(&result.classes[COMPARE_WAITING], 1.25, 0.75, 2.0 / 3, 0.5 / 12);
    compare_release(&result);
    trace_release(&predicted);
    trace_release(&measured);
}

static void collectives_are_a_class(void **state)
{
    (void)state;
    static const uint32_t kinds[] = {STREAM_GROUP, STREAM_DATA};
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        struct trace predicted, measured;
        struct compare_result result;
        struct error err = {0};
        make_pair(&predicted, &measured);
        predicted.streams[GPU0_D2H].kind = measured.streams[GPU0_D2H].kind = kinds[k];
        assert_int_equal(trace_pair_compare(&predicted, &measured, &result, &err), STATUS_OK);
        expect_class(&result.classes[COMPARE_COLLECTIVE], 0.5, 0.25, 1, 0.25 / 6);
        expect_class(&result.classes[COMPARE_D2H], 0, 0, 0, 0);
        compare_release(&result);
        trace_release(&predicted);
        trace_release(&measured);
    }
}

/* Spans 3 and 4 of gpu1 become collectives; each waited before its start for a known time, in traces that have
 * waits. */
static void collectives_wait_and_transfer(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct trace predicted, measured;
        struct compare_result result;
        struct error err = {0};
        make_pair(&predicted, &measured);
        struct trace *const both[] = {&predicted, &measured};
        for (uint32_t s = 0; s < 2; s++)
            for (uint32_t i = 3; i <= 4; i++) {
                both[s]->has_waits = s == 0 || waits;
                both[s]->spans[i].kind = OP_COLLECTIVE;
                both[s]->spans[i].bytes = 100 * i;
                both[s]->spans[i].pass = i == 3 ? PLAN_FORWARD : PLAN_BACKWARD;
                if (both[s]->has_waits) both[s]->spans[i].waited_s = 0.125 * (s + 1) * (i - 2);
            }
        assert_int_equal(trace_pair_compare(&predicted, &measured, &result, &err), STATUS_OK);
        const struct compare_collectives *first = &result.collectives[STREAM_COMPUTE][PLAN_FORWARD];
        const struct compare_collectives *second = &result.collectives[STREAM_COMPUTE][PLAN_BACKWARD];
        assert_true(result.predicted_waits && result.measured_waits == waits);
        assert_int_equal(first->operations, 1);
        assert_int_equal(second->bytes, 400);
        assert_near(first->predicted_waited_s, 0.125, 0);
        assert_near(first->measured_waited_s, waits * 0.25, 0);
        assert_near(first->predicted_transfer_s, 1, 0);
        assert_near(first->measured_transfer_s, 1.5, 0);
        assert_near(second->predicted_waited_s, 0.25, 0);
        assert_near(second->measured_waited_s, waits * 0.5, 0);
        assert_near(second->predicted_transfer_s, 2, 0);
        assert_int_equal(result.collectives[STREAM_DATA][PLAN_REDUCE].operations, 0);
        compare_release(&result);
        trace_release(&predicted);
        trace_release(&measured);
    }
}

static void jobs_and_the_worst_operations(void **state)
{
    (void)state;
    struct trace predicted, measured;
    struct compare_result result;
    struct error err = {0};
    make_pair(&predicted, &measured);
    assert_int_equal(trace_pair_compare(&predicted, &measured, &result, &err), STATUS_OK);
    assert_int_equal(result.job_count, 2);
    /* alpha: 640 tokens in 5 s and 6 s; beta: 480 in 4 s and 4 s, its batch first */
    assert_near(result.jobs[0].predicted_tokens_per_s, 128, 1e-9);
    assert_near(result.jobs[0].error, 0.2, 1e-12);
    assert_near(result.jobs[1].measured_tokens_per_s, 120, 1e-9);
    assert_near(result.jobs[1].error, 0, 1e-12);
    /* differences: -0.25, -0.5, +0.25, -0.5, +0.5, -0.75, -0.5; equal ones in plan order */
    static const struct {
        uint64_t index;
        double difference_s;
    } expected[] = {{5, -0.75}, {1, -0.5}, {3, -0.5}, {4, 0.5}, {6, -0.5}, {0, -0.25}, {2, 0.25}};
    assert_int_equal(result.worst_count, ARRAY_COUNT(expected));
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        assert_int_equal(result.worst[i].predicted.number, expected[i].index);
        assert_int_equal(result.worst[i].measured.number, expected[i].index);
        assert_near(result.worst[i].difference_s, expected[i].difference_s, 1e-12);
    }
    compare_release(&result);
    trace_release(&predicted);
    trace_release(&measured);
}

/* 50 operations of 2 s, measured 2 + (7 i mod 50) / 100 s: the 20 largest differences are
   0.49, 0.48, ... 0.30 s, and 7 i mod 50 takes each value once. */
static void only_the_twenty_worst_are_kept(void **state)
{
    (void)state;
    enum { COUNT = 50 };
    struct span_row rows[COUNT];
    struct trace predicted, measured;
    struct compare_result result;
    struct error err = {0};
    for (uint32_t i = 0; i < COUNT; i++)
        rows[i] = (struct span_row){GPU1, 1, i, PLAN_FORWARD, 0, 0, 3.0 * i, 3.0 * i + 2, 0};
    support_trace(&predicted, TRACE_PREDICTED, rows, COUNT, NULL, 0);
    for (uint32_t i = 0; i < COUNT; i++) rows[i].end_s += i * 7 % 50 / 100.0;
    support_trace(&measured, TRACE_MEASURED, rows, COUNT, NULL, 0);
    assert_int_equal(trace_pair_compare(&predicted, &measured, &result, &err), STATUS_OK);
    assert_int_equal(result.worst_count, COMPARE_WORST_MAX);
    for (uint32_t i = 0; i < COMPARE_WORST_MAX; i++) {
        assert_near(result.worst[i].difference_s, -0.49 + 0.01 * i, 1e-9);
        assert_int_equal(result.worst[i].predicted.number * 7 % 50, 49 - i);
    }
    compare_release(&result);
    trace_release(&predicted);
    trace_release(&measured);
}

static void nothing_measured_has_no_error(void **state)
{
    (void)state;
    struct trace predicted, measured;
    struct compare_result result;
    struct error err = {0};
    make_pair(&predicted, &measured);
    measured.spans[2].end_s = measured.spans[2].start_s; /* the only D2H copy */
    assert_int_equal(trace_pair_compare(&predicted, &measured, &result, &err), STATUS_OK);
    assert_false(result.classes[COMPARE_D2H].error_known);
    assert_near(result.classes[COMPARE_D2H].error, 0, 0);
    compare_release(&result);
    predicted.spans[2].end_s = predicted.spans[2].start_s;
    assert_int_equal(trace_pair_compare(&predicted, &measured, &result, &err), STATUS_OK);
    assert_true(result.classes[COMPARE_D2H].error_known);
    assert_near(result.classes[COMPARE_D2H].error, 0, 0);
    compare_release(&result);
    trace_release(&predicted);
    trace_release(&measured);
}

static void other_plan(struct trace *p, struct trace *m) { (void)p; m->plan_fingerprint++; }
static void swapped(struct trace *p, struct trace *m)
{
    p->source = TRACE_MEASURED;
    m->source = TRACE_PREDICTED;
}
static void stopped(struct trace *p, struct trace *m) { (void)p; m->complete = false; }
static void empty(struct trace *p, struct trace *m) { (void)m; p->span_count = 0; }
static void shorter(struct trace *p, struct trace *m) { (void)p; m->span_count--; }
static void another_job(struct trace *p, struct trace *m) { (void)p; m->spans[3].job = 0; }

static void what_cannot_be_compared_is_refused(void **state)
{
    (void)state;
    static const struct {
        void (*change)(struct trace *, struct trace *);
        const char *message;
    } cases[] = {
        {other_plan,
         "the traces are of different plans (0123456789abcdef and 0123456789abcdf0)"},
        {swapped, "the traces are measured and predicted (expected predicted and measured)"},
        {stopped, "the measured trace stopped before its end"},
        {empty, "the predicted trace has no spans"},
        {shorter, "the traces differ: 7 and 6 spans, 7 and 7 streams, 2 and 2 jobs"},
        {another_job, "the traces differ at span 3: operation 3 of job 'beta' and operation 3 of "
                      "job 'alpha'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct trace predicted, measured;
        struct compare_result result = {.worst_count = 17};
        struct error err = {0};
        make_pair(&predicted, &measured);
        cases[i].change(&predicted, &measured);
        assert_int_equal(trace_pair_compare(&predicted, &measured, &result, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(result.worst_count, 17); /* untouched */
        trace_release(&predicted);
        trace_release(&measured);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_have_their_closed_form),
        cmocka_unit_test(collectives_are_a_class),
        cmocka_unit_test(collectives_wait_and_transfer),
        cmocka_unit_test(jobs_and_the_worst_operations),
        cmocka_unit_test(only_the_twenty_worst_are_kept),
        cmocka_unit_test(nothing_measured_has_no_error),
        cmocka_unit_test(what_cannot_be_compared_is_refused),
    };
    return cmocka_run_group_tests_name("traces/compare.h", tests, NULL, NULL);
}
