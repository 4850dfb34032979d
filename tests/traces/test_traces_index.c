/* label: medium, all rounds: slow
 * The index of traces (traces/trace_index.h) and their writer: a window read with the index equals the window read
 * without it; the rest of the trace is not read; a wrong index is refused; spans in any order are sorted by their
 * numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/random.h"
#include "base/size.h"
#include "planner/plan.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/support_seed.h"
#include "traces/trace_order.h"
#include "traces/trace_reader.h"
#include "traces/trace_writer.h"

/* --- traces of chance ----------------------------------------------------------------------- */

/* A few streams that drift apart, minibatches that go up and down a little, levels of three places, the host's only
 * at first. */
static void random_trace(struct trace *trace, uint64_t key, uint64_t spans)
{
    static const uint32_t streams[] = {GPU0, GPU0_H2D, GPU1, GPU1_H2D};
    double ends_s[ARRAY_COUNT(streams)] = {0};
    struct span_row *rows = calloc(spans, sizeof *rows);
    struct trace_level *levels = calloc(spans, sizeof *levels);
    assert_true(rows && levels);
    for (uint64_t i = 0; i < spans; i++) {
        uint64_t s = random_below(key, 4 * i, ARRAY_COUNT(streams));
        double start_s = ends_s[s] + random_unit(key, 4 * i + 1) / 4, end_s = start_s + random_unit(key, 4 * i + 2);
        ends_s[s] = end_s;
        uint32_t minibatch = (uint32_t)(i / 40 + random_below(key, 4 * i + 3, 5));
        bool copy = streams[s] == GPU0_H2D || streams[s] == GPU1_H2D;
        rows[i] = (struct span_row){streams[s], (uint32_t)s / 2, (uint32_t)(i % 7), PLAN_FORWARD, (uint32_t)(i % 3),
                                    minibatch, start_s, end_s, copy ? 1000 : 0};
    }
    for (uint64_t i = 0; i < spans; i++) {
        uint32_t place = i == 0 ? 0 : i < spans / 2 ? 1 : 1 + (uint32_t)random_below(key + 1, i, 2);
        levels[i] = (struct trace_level){(double)(i / 2) * 0.21, random_below(key + 2, i, (uint64_t)1 << 31), place};
    }
    support_trace(trace, TRACE_PREDICTED, rows, spans, levels, spans);
    free(rows);
    free(levels);
}

/* The same file without the line that says where the index is. */
static void write_without_index(const char *from, const char *to)
{
    struct error err = {0};
    size_t length;
    char *text;
    struct file_out *out;
    if (file_read(from, (size_t)1 << 30, &text, &length, &err)) fail_msg("%s", err.text);
    char *line = strstr(text, ",\n  \"ends\": [");
    assert_non_null(line);
    if (file_out_create(to, &out, &err)) fail_msg("%s", err.text);
    file_out_write(out, text, (size_t)(line - text));
    file_out_printf(out, "\n}\n");
    if (file_out_commit(out, &err)) fail_msg("%s", err.text);
    free(text);
}

static void assert_equal_parts(const struct trace *a, const struct trace *b)
{
    assert_int_equal(a->span_count, b->span_count);
    assert_int_equal(a->level_count, b->level_count);
    if (a->span_count > 0) assert_memory_equal(a->spans, b->spans, a->span_count * sizeof *a->spans);
    for (uint64_t i = 0; i < a->level_count; i++) {
        assert_true(a->levels[i].time_s == b->levels[i].time_s);
        assert_true(a->levels[i].bytes == b->levels[i].bytes && a->levels[i].place == b->levels[i].place);
    }
    assert_true(a->makespan_s == b->makespan_s);
}

static void two_roads(const char *indexed, const char *plain, const struct trace_part *part)
{
    struct error err = {0};
    struct trace a = {0}, b = {0};
    if (trace_read_part(indexed, part, &a, &err)) fail_msg("%s", err.text);
    if (trace_read_part(plain, part, &b, &err)) fail_msg("%s", err.text);
    assert_equal_parts(&a, &b);
    trace_release(&a);
    trace_release(&b);
}

static void windows_are_the_same_by_both_roads(void **state)
{
    (void)state;
    uint64_t seed = support_seed("traces/trace_index.h");
    for (uint32_t round = 0; round < SUPPORT_ROUNDS(12); round++) {
        uint64_t key = random_mix(seed) + round, spans = round < 3 ? round : random_below(key, 1, 30000);
        struct trace trace;
        struct error err = {0};
        char indexed[200], plain[200];
        random_trace(&trace, key, spans);
        snprintf(indexed, sizeof indexed, "%s", support_path(round % 2 ? "indexed.json" : "indexed.json.gz"));
        snprintf(plain, sizeof plain, "%s", support_path(round % 3 ? "plain.json" : "plain.json.gz"));
        if (trace_write(&trace, indexed, &err)) fail_msg("%s", err.text);
        write_without_index(indexed, plain);
        two_roads(indexed, plain, NULL);
        for (uint64_t w = 0; w < 16; w++) {
            double end_s = trace.makespan_s + 1, from_s = random_unit(key + 9, 3 * w) * end_s;
            struct trace_part part = {.from_s = w % 4 == 0 ? 0 : from_s,
                                      .to_s = w % 3 == 0
                                              ? 0 : from_s + random_unit(key + 9, 3 * w + 1) * end_s / (double)(1 + w),
                                      .minibatches = w % 5 < 2 ? random_below(key + 9, 3 * w + 2, spans / 40 + 2) : 0};
            two_roads(indexed, plain, &part);
        }
        trace_release(&trace);
        support_clean();
    }
}

/* --- unread parts --------------------------------------------------------------------------- */

enum { SPANS = 50000 };

static char *text_of_long(size_t *length)
{
    struct trace trace;
    struct error err = {0};
    char *text;
    random_trace(&trace, 77, SPANS);
    if (trace_write(&trace, support_path("long.json"), &err)) fail_msg("%s", err.text);
    if (file_read(support_path("long.json"), (size_t)1 << 30, &text, length, &err)) fail_msg("%s", err.text);
    trace_release(&trace);
    return text;
}

/* Reads a window of a text; the number of its spans. */
static uint64_t spans_of(const char *text, size_t length, const struct trace_part *part, enum status *status,
                         struct error *err)
{
    struct trace_reader *reader = NULL;
    struct trace_span span;
    uint64_t count = 0;
    bool more = true;
    *status = trace_reader_of_text("t", text, length, part, &reader, err);
    while (*status == STATUS_OK && more) {
        *status = trace_reader_span(reader, &span, &more, err);
        count += *status == STATUS_OK && more;
    }
    if (*status == STATUS_OK) *status = trace_reader_finish(reader, &(uint64_t){0}, err);
    trace_reader_close(reader);
    return count;
}

/* Damaged spans at the beginning are noticed only by those who read them. */
static void a_window_reads_nothing_else(void **state)
{
    (void)state;
    struct error err = {0};
    enum status status;
    size_t length;
    char *text = text_of_long(&length);
    const struct trace_part late = {.from_s = 3000, .to_s = 3010}, early = {.to_s = 10};
    uint64_t count = spans_of(text, length, &late, &status, &err);
    assert_int_equal(status, STATUS_OK);
    assert_true(count > 10 && count < 1000);
    char *row = strstr(text, "\n    [100, ");
    assert_non_null(row);
    row[6] = 'x';
    assert_int_equal(spans_of(text, length, &late, &status, &err), count);
    assert_int_equal(status, STATUS_OK);
    spans_of(text, length, &early, &status, &err);
    assert_int_equal(status, STATUS_BAD_INPUT);
    assert_string_equal(err.text, "t:107:6: invalid token near 'x'");
    err = (struct error){0};
    spans_of(text, length, NULL, &status, &err);
    assert_int_equal(status, STATUS_BAD_INPUT);
    free(text);
    support_clean();
}

/* --- an index that is wrong ----------------------------------------------------------------- */

/* Each digit of the index is changed, one at a time: the file is refused, unless the index is not used. */
static void a_wrong_index_is_refused(void **state)
{
    (void)state;
    size_t length, tried = 0, unused = 0;
    char *text = text_of_long(&length);
    char *blocks = strstr(text, "\"span_blocks\": ["), *ends = strstr(text, "\"ends\": [");
    assert_true(blocks && ends);
    for (char *c = blocks; c < text + length; c++) {
        struct error err = {0};
        enum status status;
        if (*c < '0' || *c > '9' || (size_t)(c - text) * 31 % 97 > 9) continue;
        char was = *c;
        *c = was == '9' ? '1' : (char)(was + 1);
        uint64_t count = spans_of(text, length, NULL, &status, &err);
        tried++;
        if (status == STATUS_OK) {
            unused++; /* a raw offset or a line and column, which are not used for a whole trace */
            assert_int_equal(count, SPANS);
        } else if (!strstr(err.text, "of the index is wrong") && !strstr(err.text, "differs from the trace") &&
                   c < ends) {
            fail_msg("digit %td of the index: %s", c - blocks, err.text);
        }
        *c = was;
    }
    print_message("%zu digits changed, %zu not used\n", tried, unused);
    assert_true(tried > 40 && unused < tried * 2 / 3);
    free(text);
    support_clean();
}

/* Windows with a wrong index give spans of the window or an error, and no crash. */
static void windows_of_a_wrong_index_end(void **state)
{
    (void)state;
    uint64_t seed = support_seed("traces/trace_index.h");
    size_t length, refused = 0;
    char *text = text_of_long(&length);
    char *blocks = strstr(text, "\"span_blocks\": [");
    size_t room = (size_t)(text + length - blocks);
    for (uint64_t round = 0; round < support_rounds(80, 300); round++) {
        struct error err = {0};
        enum status status;
        const struct trace_part part = {.from_s = random_unit(seed, 3 * round) * 10000, .minibatches = round % 2 * 500};
        char *c = blocks + random_below(seed, 3 * round + 1, room), was = *c;
        if (was < '0' || was > '9') continue;
        *c = (char)('0' + random_below(seed, 3 * round + 2, 10));
        spans_of(text, length, &part, &status, &err);
        refused += status != STATUS_OK;
        *c = was;
    }
    print_message("%zu refused\n", refused);
    assert_true(refused > 0);
    free(text);
    support_clean();
}

/* A file that another program rewrote contains an index whose offsets are wrong. */
static void a_file_written_again_is_read_without_its_index(void **state)
{
    (void)state;
    struct error err = {0};
    enum status status;
    size_t length;
    char *text = text_of_long(&length);
    char *longer = malloc(length + 2);
    assert_non_null(longer);
    longer[0] = '{';
    longer[1] = ' ';
    memcpy(longer + 2, text + 1, length);
    assert_int_equal(spans_of(longer, length + 1, NULL, &status, &err), SPANS);
    assert_int_equal(status, STATUS_OK);
    free(longer);
    free(text);
    support_clean();
}

/* --- the order of spans --------------------------------------------------------------------- */

static void spans_come_into_order(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    uint64_t seed = support_seed("traces/trace_order.h");
    struct trace_order order = {0};
    struct trace_span span;
    uint64_t numbers[COUNT], next = 0;
    for (uint64_t i = 0; i < COUNT; i++) numbers[i] = i;
    for (uint64_t i = 0; i + 1 < COUNT; i++) { /* none is more than about 300 away from its place */
        uint64_t reach = COUNT - i < 300 ? COUNT - i : 300, k = i + (i % 2 ? random_below(seed, i, reach) : 0),
            was = numbers[i];
        numbers[i] = numbers[k];
        numbers[k] = was;
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_true(trace_order_put(&order, &(struct trace_span){.number = numbers[i], .bytes = 3 * numbers[i]}));
        while (trace_order_take(&order, &span)) {
            assert_int_equal(span.number, next);
            assert_int_equal(span.bytes, 3 * next++);
        }
    }
    assert_int_equal(next, COUNT);
    trace_order_release(&order);
}

/* --- the writer ----------------------------------------------------------------------------- */

static void the_first_error_is_told_at_the_end(void **state)
{
    (void)state;
    struct trace trace;
    struct error err = {0};
    struct trace_writer *writer;
    support_scene(&trace, TRACE_PREDICTED, 1);
    if (trace_writer_create(support_path("t.json"), &writer, &err) || trace_writer_begin(writer, &trace, &err))
        fail_msg("%s", err.text);
    struct trace_span span = trace.spans[0];
    span.end_s = -1;
    trace_writer_span(writer, &span);
    trace_writer_span(writer, &trace.spans[0]);
    assert_int_equal(trace_writer_commit(writer, &trace, &err), STATUS_CHECK);
    char expected[300];
    snprintf(expected, sizeof expected, "the trace for '%s': span 0 runs from 0.0625 s to -1 s",
             support_path("t.json"));
    assert_string_equal(err.text, expected);
    assert_null(support_slurp(support_path("t.json"), NULL));
    trace_release(&trace);
    support_clean();
}

static void a_level_above_the_peak_is_refused(void **state)
{
    (void)state;
    struct trace trace;
    struct error err = {0};
    struct trace_writer *writer;
    support_scene(&trace, TRACE_PREDICTED, 1);
    if (trace_writer_create(support_path("t.json"), &writer, &err) || trace_writer_begin(writer, &trace, &err))
        fail_msg("%s", err.text);
    for (uint64_t i = 0; i < trace.level_count; i++) trace_writer_level(writer, &trace.levels[i]);
    trace.places[1].peak_bytes -= 1;
    assert_int_equal(trace_writer_commit(writer, &trace, &err), STATUS_CHECK);
    assert_non_null(strstr(err.text, "memory level 3 of 'gpu0' is 7516192768 bytes, above the peak of 7516192767"));
    trace_release(&trace);
    support_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_the_same_by_both_roads),
        cmocka_unit_test(a_window_reads_nothing_else),
        cmocka_unit_test(a_wrong_index_is_refused),
        cmocka_unit_test(windows_of_a_wrong_index_end),
        cmocka_unit_test(a_file_written_again_is_read_without_its_index),
        cmocka_unit_test(spans_come_into_order),
        cmocka_unit_test(the_first_error_is_told_at_the_end),
        cmocka_unit_test(a_level_above_the_peak_is_refused),
    };
    return cmocka_run_group_tests_name("traces/trace_index.h", tests, NULL, NULL);
}
