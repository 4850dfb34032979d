/* plots/plot_boxes.h: which spans are merged, and shares known by arithmetic. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/plan.h"
#include "plots/plot_boxes.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/support_seed.h"

/* Rows 0, 1, 2 for gpu0; nothing else is drawn. */
static const uint32_t of_stream[] = {0, 1, 2, PLOT_ROW_NONE, PLOT_ROW_NONE, PLOT_ROW_NONE,
                                     PLOT_ROW_NONE};
enum { ROWS = 3 };

/* The boxes of a trace; bin_count 0: of its spans. The caller releases them. */
static struct plot_boxes make(const struct trace *trace, const struct plot_window *window, uint32_t bin_count,
                              size_t limit)
{
    struct error err = {0};
    struct plot_boxes boxes = {
        .window = *window, .row_count = ROWS, .job_count = trace->job_count, .bin_count = bin_count, .limit = limit};
    enum status status = plot_boxes_begin(&boxes, &err);
    for (uint64_t i = 0; i < trace->span_count && status == STATUS_OK; i++)
        status = plot_boxes_add(&boxes, &trace->spans[i], of_stream[trace->spans[i].stream], &err);
    if (status == STATUS_OK) status = plot_boxes_end(&boxes, trace, of_stream, &err);
    if (status != STATUS_OK) fail_msg("%s", err.text);
    return boxes;
}

static void expect_box(const struct plot_box *box, double from_px, double to_px, uint32_t job,
                       enum plot_shade shade, bool merged)
{
    assert_near(box->from_px, from_px, 1e-9);
    assert_near(box->to_px, to_px, 1e-9);
    assert_int_equal(box->job, job);
    assert_int_equal(box->shade, shade);
    assert_int_equal(box->merged, merged);
}

/* 100 pixels for 10 s: a pixel is 0.1 s. */
static void spans_become_boxes(void **state)
{
    (void)state;
    static const struct span_row spans[] = {
        {GPU0, 0, 4, PLAN_FORWARD, 0, 0, 0.5, 1.0, 0},
        {GPU0, 0, 5, PLAN_FORWARD, 0, 0, 1.0, 1.5, 0},    /* wide next to wide: a line between */
        {GPU0, 0, 6, PLAN_FORWARD, 0, 0, 1.52, 1.6, 0},   /* 0.8 px, 0.2 px away: merged */
        {GPU0, 0, 6, PLAN_LOSS, 0, 0, 1.6, 1.65, 0},      /* another shade */
        {GPU0, 1, 0, PLAN_BACKWARD, 0, 0, 1.65, 1.7, 0},  /* another job */
        {GPU0, 1, 1, PLAN_BACKWARD, 0, 0, 1.75, 1.8, 0},  /* 0.5 px away: seen */
        {GPU0_H2D, 1, 1, PLAN_FORWARD, 0, 0, 9, 11, 7},   /* cut at the end of the window */
        {GPU0_D2H, 1, 1, PLAN_FORWARD, 0, 0, 10, 11, 7},  /* outside */
        {GPU1, 1, 1, PLAN_FORWARD, 0, 0, 3, 4, 0},        /* not drawn */
    };
    struct trace trace;
    support_trace(&trace, TRACE_PREDICTED, spans, ARRAY_COUNT(spans), NULL, 0);
    struct plot_window window = {0, 10, 100};
    struct plot_boxes few = make(&trace, &window, 0, 2), made = make(&trace, &window, 0, 8);
    const struct plot_box *boxes = made.items;
    assert_int_equal(few.count, 6); /* counted, not kept */
    expect_box(&few.items[1], 10, 16, 0, PLOT_SHADE_FORWARD, true);
    assert_int_equal(made.count, 6);
    expect_box(&boxes[0], 5, 10, 0, PLOT_SHADE_FORWARD, false);
    expect_box(&boxes[1], 10, 16, 0, PLOT_SHADE_FORWARD, true);
    expect_box(&boxes[2], 16, 16.5, 0, PLOT_SHADE_LOSS, false);
    expect_box(&boxes[3], 16.5, 17, 1, PLOT_SHADE_BACKWARD, false);
    expect_box(&boxes[4], 17.5, 18, 1, PLOT_SHADE_BACKWARD, false);
    expect_box(&boxes[5], 90, 100, 1, PLOT_SHADE_BACKWARD, false);
    assert_int_equal(boxes[0].shard, 4);
    assert_int_equal(boxes[5].row, 1);
    plot_boxes_release(&few);
    plot_boxes_release(&made);
    trace_release(&trace);
}

/* Four bins of 2 s and 20 pixels. */
static void shares_have_their_closed_form(void **state)
{
    (void)state;
    static const struct span_row spans[] = {
        {GPU0, 0, 0, PLAN_FORWARD, 0, 0, 0.5, 1.0, 0},      /* bin 0: alpha 0.5 s of 2 */
        {GPU0, 1, 0, PLAN_FORWARD, 0, 0, 1.0, 3.0, 0},      /* bin 0: beta 1 s; bin 1: beta 1 s */
        {GPU0, 0, 1, PLAN_LOSS, 0, 0, 3.0, 3.25, 0},        /* bin 1: alpha 0.25 s */
        {GPU0, 0, 1, PLAN_FORWARD, 0, 1, 6.0, 8.0, 0},      /* bin 3: alpha all of it */
        {GPU0_H2D, 0, 1, PLAN_FORWARD, 0, 1, 4.0, 4.5, 9},  /* bin 2: copies of both jobs */
        {GPU0_H2D, 1, 1, PLAN_FORWARD, 0, 1, 5.0, 5.25, 9},
    };
    static const struct {
        uint32_t row, job;
        double from_px, from_part, to_part;
    } expected[] = {
        {0, 0, 0, 0, 0.25},     {0, 1, 0, 0.25, 0.75},          {0, 0, 20, 0, 0.125},
        {0, 1, 20, 0.125, 0.625}, {0, 0, 60, 0, 1}, {1, UINT32_MAX, 40, 0, 0.375},
    };
    struct trace trace;
    support_trace(&trace, TRACE_PREDICTED, spans, ARRAY_COUNT(spans), NULL, 0);
    struct plot_window window = {0, 8, 80};
    struct plot_boxes made = make(&trace, &window, 4, SIZE_MAX);
    const struct plot_box *boxes = made.items;
    assert_int_equal(made.count, ARRAY_COUNT(expected));
    for (size_t i = 0; i < made.count; i++) {
        assert_int_equal(boxes[i].row, expected[i].row);
        assert_int_equal(boxes[i].job, expected[i].job);
        assert_near(boxes[i].from_px, expected[i].from_px, 1e-9);
        assert_near(boxes[i].to_px, expected[i].from_px + 20, 1e-9);
        assert_near(boxes[i].from_part, expected[i].from_part, 1e-12);
        assert_near(boxes[i].to_part, expected[i].to_part, 1e-12);
    }
    plot_boxes_release(&made);
    trace_release(&trace);
}

/* Whatever the spans, the area of the boxes of a row is its busy time, except for boxes too thin to draw (least_part
 * = 0.004 of a bin, for each of two jobs). */
static void areas_are_busy_times(void **state)
{
    (void)state;
    uint64_t seed = support_seed("areas_are_busy_times");
    enum { COUNT = 3000, BINS = 37 };
    struct span_row *spans = calloc(COUNT, sizeof *spans);
    assert_non_null(spans);
    double now_s[3] = {0}, busy_s[3] = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t row = (uint32_t)random_below(seed, 4 * i, 3);
        double start_s = now_s[row] + random_unit(seed, 4 * i + 1) * 0.1;
        double end_s = start_s + random_unit(seed, 4 * i + 2);
        uint32_t job = (uint32_t)random_below(seed, 4 * i + 3, 2);
        spans[i] = (struct span_row){row, job, 0, PLAN_FORWARD, 0, 0, start_s, end_s, row ? 8 : 0};
        now_s[row] = end_s;
        busy_s[row] += end_s - start_s;
    }
    struct trace trace;
    support_trace(&trace, TRACE_PREDICTED, spans, COUNT, NULL, 0);
    double all_s = fmax(now_s[0], fmax(now_s[1], now_s[2]));
    struct plot_window window = {0, all_s, 1000};
    struct plot_boxes made = make(&trace, &window, BINS, SIZE_MAX);
    const struct plot_box *boxes = made.items;
    assert_true(made.count <= (size_t)BINS * 3 * 2);
    double area_s[3] = {0};
    for (size_t i = 0; i < made.count; i++)
        area_s[boxes[i].row] += (boxes[i].to_px - boxes[i].from_px) *
                                (boxes[i].to_part - boxes[i].from_part) * all_s / 1000;
    for (int r = 0; r < 3; r++) assert_near(area_s[r], busy_s[r], 2 * 0.004 * all_s);
    plot_boxes_release(&made);
    trace_release(&trace);
    free(spans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_become_boxes),
        cmocka_unit_test(shares_have_their_closed_form),
        cmocka_unit_test(areas_are_busy_times),
    };
    return cmocka_run_group_tests_name("plots/plot_boxes.h", tests, NULL, NULL);
}
