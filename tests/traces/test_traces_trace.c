/* traces/trace.h: making, finishing, checking, writing and reading traces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/size.h"
#include "planner/plan.h"
#include "tests/support/sim/support_traces.h"
#include "traces/trace.h"

/* --- making --------------------------------------------------------------------------------- */

static struct hardware_device devices[2] = {{.memory_bytes = 11000000000},
                                            {.memory_bytes = 12000000000}};
static struct job plan_jobs[2] = {
    {.name = "small", .sequence = 64, .microbatch = 3, .microbatches = 1, .minibatches = 7},
    {.name = "large", .sequence = 128, .microbatch = 5, .microbatches = 1, .minibatches = 11},
};
static uint32_t no_activations[2];

static struct plan bare_plan(const char *backend)
{
    struct plan plan = {0};
    plan.hardware.name = "bench-top";
    plan.hardware.backend = backend;
    plan.hardware.host_bytes.value = 128e9;
    plan.hardware.devices = devices;
    plan.hardware.device_count = 2;
    plan.jobs.jobs = plan_jobs;
    plan.jobs.count = 2;
    plan.job_activations = no_activations;
    plan.policy = "fifo";
    return plan;
}

static void init_names_what_the_plan_has(void **state)
{
    (void)state;
    struct plan plan = bare_plan("cuda");
    struct trace trace = {0};
    struct error err = {0};
    assert_int_equal(trace_init(&trace, &plan, TRACE_MEASURED, 5, 3, &err), STATUS_OK);
    assert_int_equal(trace.source, TRACE_MEASURED);
    assert_int_equal(trace.plan_fingerprint, plan_fingerprint(&plan));
    assert_string_equal(trace.hardware, "bench-top");
    assert_string_equal(trace.policy, "fifo");
    assert_int_equal(trace.stream_count, 8);
    assert_string_equal(trace.streams[plan_stream(&plan, 1, STREAM_D2H)].name, "gpu1 d2h");
    assert_int_equal(trace.streams[5].device, 1);
    assert_int_equal(trace.streams[5].kind, STREAM_D2H);
    assert_string_equal(trace.streams[7].name, "cpu");
    assert_int_equal(trace.streams[7].device, PLAN_NONE);
    assert_string_equal(trace.streams[6].name, "host");
    assert_int_equal(trace.streams[6].device, PLAN_NONE);
    assert_int_equal(trace.place_count, 3);
    assert_string_equal(trace.places[2].name, "gpu1");
    assert_int_equal(trace.places[2].capacity_bytes, 12000000000);
    assert_int_equal(trace.places[0].capacity_bytes, 128000000000);
    assert_int_equal(trace.job_count, 2);
    assert_int_equal(trace.jobs[1].samples, 55);   /* 11 * 5 */
    assert_int_equal(trace.jobs[1].tokens, 7040);  /* 55 * 128 */
    assert_int_equal(trace.jobs[0].minibatches, 7);
    assert_false(trace.complete);
    assert_int_equal(trace.span_count, 0);
    assert_int_equal(trace.level_count, 0);
    assert_int_equal(trace_check(&trace, &err), STATUS_OK);
    trace_release(&trace);

    plan = bare_plan("host");
    assert_int_equal(trace_init(&trace, &plan, TRACE_PREDICTED, 0, 0, &err), STATUS_OK);
    assert_string_equal(trace.streams[0].name, "dev0 compute");
    assert_string_equal(trace.places[1].name, "dev0");
    trace_release(&trace);
}

static void init_refuses_what_is_too_large(void **state)
{
    (void)state;
    struct plan plan = bare_plan("cuda");
    struct trace trace = {0};
    struct error err = {0};
    assert_int_equal(trace_init(&trace, &plan, TRACE_PREDICTED, (uint64_t)1 << 40, 0, &err),
                     STATUS_LIMIT);
    assert_string_equal(err.text, "too many spans (limit is 134217728)");
    trace_release(&trace);
    struct job huge = plan_jobs[0];
    huge.minibatches = UINT64_MAX / 2;
    plan.jobs.jobs = &huge;
    plan.jobs.count = 1;
    err = (struct error){0};
    assert_int_equal(trace_init(&trace, &plan, TRACE_PREDICTED, 0, 0, &err), STATUS_LIMIT);
    assert_string_equal(err.text,
                        "too many tokens in job 'small' (limit is 9223372036854775807)");
    trace_release(&trace);
}

static void finish_sorts_and_sums(void **state)
{
    (void)state;
    struct trace trace;
    struct error err = {0};
    support_scene(&trace, TRACE_PREDICTED, 1);
    struct trace_span third = trace.spans[3];
    trace.spans[3] = trace.spans[9];
    trace.spans[9] = third;
    assert_int_equal(trace_check(&trace, &err), STATUS_CHECK);
    trace_finish(&trace);
    err = (struct error){0};
    assert_int_equal(trace_check(&trace, &err), STATUS_OK);
    assert_int_equal(trace.spans[3].number, 3);
    assert_near(trace.makespan_s, 1.375, 0);       /* 1.4375 - 0.0625 */
    assert_near(trace.jobs[0].start_s, 0.0625, 0); /* its batch */
    assert_near(trace.jobs[0].end_s, 1.4375, 0);
    assert_near(trace.jobs[1].start_s, 0.1875, 0);
    assert_near(trace.jobs[1].end_s, 0.6875, 0);
    assert_near(trace_job_tokens_per_s(&trace, 1), 960, 1e-9); /* 480 / 0.5 */
    /* (640 + 480) / 1.375 */
    assert_near(trace_tokens_per_s(&trace), 814.545454545454545, 1e-9);
    trace_release(&trace);
}

static void a_trace_without_spans_keeps_its_totals(void **state)
{
    (void)state;
    struct trace trace;
    struct error err = {0};
    support_trace(&trace, TRACE_PREDICTED, NULL, 0, NULL, 0);
    assert_near(trace_tokens_per_s(&trace), 0, 0);
    assert_near(trace_job_tokens_per_s(&trace, 0), 0, 0);
    trace.makespan_s = 3.5;
    trace.jobs[0].end_s = 2.5;
    trace_finish(&trace);
    assert_near(trace.makespan_s, 3.5, 0);
    assert_near(trace_tokens_per_s(&trace), 320, 1e-9);       /* 1120 / 3.5 */
    assert_near(trace_job_tokens_per_s(&trace, 0), 256, 1e-9); /* 640 / 2.5 */
    assert_int_equal(trace_check(&trace, &err), STATUS_OK);
    trace_release(&trace);
}

/* --- the judge ------------------------------------------------------------------------------ */

static void break_times(struct trace *t) { t->spans[4].end_s = 0.40625; }
static void break_nan(struct trace *t) { t->spans[4].end_s = NAN; }
static void break_negative(struct trace *t) { t->spans[0].start_s = -0.5; }
static void break_overlap(struct trace *t) { t->spans[4].start_s = 0.40625; }
static void break_number(struct trace *t) { t->spans[4].number = 3; }
static void break_stream(struct trace *t) { t->spans[7].stream = 7; }
static void break_job(struct trace *t) { t->spans[7].job = 2; }
static void break_pass(struct trace *t) { t->spans[7].pass = PLAN_PASS_COUNT; }
static void break_copy(struct trace *t) { t->spans[7].kind = OP_COPY; }
static void break_compute(struct trace *t) { t->spans[1].kind = OP_COMPUTE; }
static void break_bytes(struct trace *t) { t->spans[2].bytes = 5; }
static void break_makespan(struct trace *t) { t->makespan_s = 1.3750001; }
static void break_job_start(struct trace *t) { t->jobs[1].start_s = 0.0625; }
static void break_job_loss(struct trace *t) { t->jobs[1].final_loss = INFINITY; }
static void break_level_order(struct trace *t) { t->levels[3].time_s = 0.125; }
static void break_level_place(struct trace *t) { t->levels[3].place = 3; }
static void break_level(struct trace *t) { t->levels[3].bytes += 1; }
static void break_peak(struct trace *t) { t->places[1].peak_bytes = ((uint64_t)8 << 30) + 1; }
static void break_peak_time(struct trace *t) { t->places[1].peak_time_s = -1; }
static void break_device(struct trace *t) { t->streams[3].device = 2; }
static void break_source(struct trace *t) { t->source = 2; }
static void break_places(struct trace *t) { t->place_count = 0; }
static void break_wait(struct trace *t) { t->has_waits = true, t->spans[7].waited_s = 0.125; } /* of a computation */

static void make_collective(struct trace *t, bool has_waits, double waited_s)
{
    t->has_waits = has_waits;
    t->spans[9].kind = OP_COLLECTIVE;
    t->spans[9].bytes = 4096;
    t->spans[9].waited_s = waited_s;
}

static void break_wait_unknown(struct trace *t) { make_collective(t, false, 0.03125); }
static void break_wait_negative(struct trace *t) { make_collective(t, true, -0.03125); }
static void break_wait_nan(struct trace *t) { make_collective(t, true, NAN); }
static void break_wait_early(struct trace *t) { make_collective(t, true, 0.09375); }

static void each_broken_rule_is_named(void **state)
{
    (void)state;
    static const struct {
        void (*change)(struct trace *);
        const char *message;
    } cases[] = {
        {break_times, "span 4 runs from 0.4375 s to 0.40625 s"},
        {break_nan, "span 4 runs from 0.4375 s to nan s"},
        {break_negative, "span 0 runs from -0.5 s to 0.125 s"},
        {break_overlap, "span 4 starts at 0.40625 s on stream 'gpu0 compute', where the one before "
                        "it ends at 0.4375 s"},
        {break_number, "span 3 comes after span 3"},
        {break_stream, "span 7 is on stream 7 (there are 7)"},
        {break_job, "span 7 is of job 2 (there are 2)"},
        {break_pass, "span 7 has kind 1 and pass 19"},
        {break_copy, "span 7 is a copy on stream 'gpu1 compute'"},
        {break_compute, "span 1 is a computation on stream 'gpu0 h2d'"},
        {break_bytes, "span 2 is a computation and copies 5 bytes"},
        {break_makespan, "the makespan is 1.3750001 s, but the spans take 1.375 s"},
        {break_job_start, "job 'beta' runs from 0.0625 s to 0.6875 s, but its spans from 0.1875 s "
                          "to 0.6875 s"},
        {break_job_loss, "job 'beta' has no sensible times or loss"},
        {break_level_order, "memory level 3 is at 0.125 s"},
        {break_level_place, "memory level 3 is at place 3 (there are 3)"},
        {break_level, "memory level 3 of 'gpu0' is 7516192769 bytes, above the peak of 7516192768"},
        {break_peak, "the peak of 'gpu0' is 8589934593 bytes, above its capacity of 8589934592"},
        {break_peak_time, "the peak of 'gpu0' is at -1 s"},
        {break_device, "stream 'gpu1 compute' has kind 0 and device 2 (there are 2 devices)"},
        {break_source, "source 2 is neither predicted nor measured"},
        {break_places, "there is no place"},
        {break_wait, "span 7 waits 0.125 s for members (expected 0)"},
        {break_wait_unknown, "span 9 waits 0.03125 s for members (expected 0)"},
        {break_wait_negative, "span 9 waits -0.03125 s for members (expected 0, or more)"},
        {break_wait_nan, "span 9 waits nan s for members (expected 0, or more)"},
        {break_wait_early, "span 9 waits for members from 0.84375 s on stream 'gpu0 compute', where the one before it "
                           "ends at 0.875 s"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct trace trace;
        struct error err = {0};
        support_scene(&trace, TRACE_PREDICTED, 1);
        assert_int_equal(trace_check(&trace, &err), STATUS_OK);
        cases[i].change(&trace);
        assert_int_equal(trace_check(&trace, &err), STATUS_CHECK);
        assert_string_equal(err.text, cases[i].message);
        trace_release(&trace);
    }
}

/* --- files ---------------------------------------------------------------------------------- */

static void assert_same(const struct trace *a, const struct trace *b)
{
    assert_int_equal(a->source, b->source);
    assert_string_equal(a->hardware, b->hardware);
    assert_string_equal(a->policy, b->policy);
    assert_true(a->plan_fingerprint == b->plan_fingerprint);
    assert_int_equal(a->complete, b->complete);
    assert_int_equal(a->has_waits, b->has_waits);
    assert_memory_equal(&a->makespan_s, &b->makespan_s, sizeof a->makespan_s);
    assert_int_equal(a->stream_count, b->stream_count);
    for (uint32_t i = 0; i < a->stream_count; i++) {
        assert_string_equal(a->streams[i].name, b->streams[i].name);
        assert_int_equal(a->streams[i].device, b->streams[i].device);
        assert_int_equal(a->streams[i].kind, b->streams[i].kind);
    }
    assert_int_equal(a->place_count, b->place_count);
    for (uint32_t i = 0; i < a->place_count; i++) {
        assert_string_equal(a->places[i].name, b->places[i].name);
        assert_true(a->places[i].capacity_bytes == b->places[i].capacity_bytes);
        assert_true(a->places[i].peak_bytes == b->places[i].peak_bytes);
        assert_memory_equal(&a->places[i].peak_time_s, &b->places[i].peak_time_s, sizeof(double));
    }
    assert_int_equal(a->job_count, b->job_count);
    for (uint32_t i = 0; i < a->job_count; i++) {
        assert_string_equal(a->jobs[i].name, b->jobs[i].name);
        assert_true(a->jobs[i].tokens == b->jobs[i].tokens);
        assert_true(a->jobs[i].samples == b->jobs[i].samples);
        assert_true(a->jobs[i].minibatches == b->jobs[i].minibatches);
        assert_memory_equal(&a->jobs[i].start_s, &b->jobs[i].start_s, sizeof(double));
        assert_memory_equal(&a->jobs[i].end_s, &b->jobs[i].end_s, sizeof(double));
        assert_memory_equal(&a->jobs[i].final_loss, &b->jobs[i].final_loss, sizeof(double));
        assert_int_equal(a->jobs[i].has_loss, b->jobs[i].has_loss);
    }
    assert_true(a->span_count == b->span_count);
    for (uint64_t i = 0; i < a->span_count; i++) {
        const struct trace_span *s = &a->spans[i], *t = &b->spans[i];
        assert_memory_equal(&s->start_s, &t->start_s, sizeof(double));
        assert_memory_equal(&s->end_s, &t->end_s, sizeof(double));
        assert_memory_equal(&s->waited_s, &t->waited_s, sizeof(double));
        assert_true(s->number == t->number && s->bytes == t->bytes);
        assert_true(s->minibatch == t->minibatch && s->stream == t->stream);
        assert_true(s->job == t->job && s->shard == t->shard && s->kind == t->kind);
        assert_true(s->pass == t->pass && s->op_index == t->op_index);
    }
    assert_true(a->level_count == b->level_count);
    for (uint64_t i = 0; i < a->level_count; i++) {
        assert_memory_equal(&a->levels[i].time_s, &b->levels[i].time_s, sizeof(double));
        assert_true(a->levels[i].bytes == b->levels[i].bytes);
        assert_int_equal(a->levels[i].place, b->levels[i].place);
    }
}

static void round_trip(const char *name, double stretch)
{
    struct trace trace, back = {0};
    struct error err = {0};
    support_scene(&trace, TRACE_MEASURED, stretch);
    trace.jobs[1].final_loss = 10.0 / 3;
    trace.jobs[1].has_loss = true;
    trace.complete = false;
    trace.spans[10].number = 4000000000000;
    trace.spans[10].minibatch = 4000000000;
    assert_int_equal(trace_write(&trace, support_path(name), &err), STATUS_OK);
    char *first = support_slurp(support_path(name), NULL);
    assert_int_equal(trace_read(support_path(name), &back, &err), STATUS_OK);
    assert_same(&trace, &back);
    assert_int_equal(trace_write(&back, support_path(name), &err), STATUS_OK);
    size_t length;
    char *second = support_slurp(support_path(name), &length);
    assert_memory_equal(first, second, length);
    free(first);
    free(second);
    trace_release(&back);
    trace_release(&trace);
    support_clean();
}

static void written_and_read_back_is_the_same(void **state)
{
    (void)state;
    round_trip("trace.json", 1);
    round_trip("trace.json", 1 / 3.0); /* doubles of 17 digits */
    round_trip("trace.json.gz", 1e5 / 7);
}

/* Only traces with waits have their column; older programs read the others. */
static void waits_are_written_and_read_back(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct trace trace, back = {0};
        struct error err = {0};
        support_scene(&trace, TRACE_MEASURED, 1);
        make_collective(&trace, waits, waits ? 0.0625 / 3 : 0);
        assert_int_equal(trace_write(&trace, support_path("waits.json"), &err), STATUS_OK);
        char *text = support_slurp(support_path("waits.json"), NULL);
        assert_int_equal(strstr(text, "\"end_s\", \"waited_s\"]") != NULL, waits);
        assert_non_null(strstr(text, waits ? "\"spillway_trace\": 3" : "\"spillway_trace\": 2"));
        assert_int_equal(trace_read(support_path("waits.json"), &back, &err), STATUS_OK);
        assert_same(&trace, &back);
        free(text);
        trace_release(&back);
        trace_release(&trace);
    }
    support_clean();
}

static void many_spans_survive(void **state)
{
    (void)state;
    enum { COUNT = 20000 }; /* more operations than the table of the writer begins with */
    struct span_row *rows = calloc(COUNT, sizeof *rows);
    assert_non_null(rows);
    for (uint32_t i = 0; i < COUNT; i++)
        rows[i] = (struct span_row){.stream = i % 6 % 3 == 0 ? GPU0 : GPU0_H2D,
                                    .job = i % 2,
                                    .shard = i % 5000,
                                    .pass = i % 3,
                                    .minibatch = i / 7,
                                    .start_s = i * 0.1,
                                    .end_s = i * 0.1 + 0.07,
                                    .bytes = i % 6 % 3 == 0 ? 0 : 12345};
    struct trace trace, back = {0};
    struct error err = {0};
    support_trace(&trace, TRACE_PREDICTED, rows, COUNT, NULL, 0);
    assert_int_equal(trace_write(&trace, support_path("many.json"), &err), STATUS_OK);
    assert_int_equal(trace_read(support_path("many.json"), &back, &err), STATUS_OK);
    assert_same(&trace, &back);
    trace_release(&back);
    trace_release(&trace);
    free(rows);
    support_clean();
}

static void a_broken_trace_is_not_written(void **state)
{
    (void)state;
    struct trace trace;
    struct error err = {0};
    support_scene(&trace, TRACE_PREDICTED, 1);
    trace.makespan_s = 2;
    assert_int_equal(trace_write(&trace, support_path("no.json"), &err), STATUS_CHECK);
    assert_non_null(strstr(err.text, "no.json': the makespan is 2 s, but the spans take 1.375 s"));
    assert_int_not_equal(access(support_path("no.json"), F_OK), 0);
    trace_release(&trace);
    support_clean();
}

/* A trace as small as they come, one value per line where a case below changes it. */
static const char small[] =
    "{\"spillway_trace\": 1, \"source\": \"measured\",\n"
    " \"hardware\": \"h\", \"policy\": \"p\", \"plan\": \"00000000000000ff\",\n"
    " \"complete\": true, \"makespan_s\": 0.75,\n"
    " \"streams\": [{\"name\": \"gpu0 compute\", \"device\": 0, \"kind\": \"compute\"},\n"
    "  {\"name\": \"gpu0 h2d\", \"device\": 0, \"kind\": \"h2d\"}],\n"
    " \"places\": [{\"name\": \"host\", \"capacity_bytes\": 9, \"peak_bytes\": 0,"
    " \"peak_time_s\": 0},\n"
    "  {\"name\": \"gpu0\", \"capacity_bytes\": 8, \"peak_bytes\": 7, \"peak_time_s\": 0.25}],\n"
    " \"jobs\": [{\"name\": \"a\", \"tokens\": 6, \"samples\": 3, \"minibatches\": 1,\n"
    "  \"start_s\": 0.25, \"end_s\": 1}],\n"
    " \"operation_columns\": [\"stream\", \"job\", \"shard\", \"pass\", \"index\", \"bytes\"],\n"
    " \"operations\": [[1, 0, 0, \"loss\", 0, 7], [0, 0, 0, \"loss\", 1, 0]],\n"
    " \"span_columns\": [\"number\", \"operation\", \"minibatch\", \"start_s\", \"end_s\"],\n"
    " \"spans\": [[0, 0, 0, 0.25, 0.5],\n"
    "  [1, 1, 0, 0.5, 1]],\n"
    " \"level_columns\": [\"time_s\", \"place\", \"bytes\"],\n"
    " \"levels\": [[0.25, 1, 7]]}\n";

static void bad_files_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *find, *put, *message;
        enum status status;
    } cases[] = {
        {"\"spillway_trace\": 1", "\"spillway_trace\": 4",
         "t:1:20: trace version 4 is not known (expected 1 to 3)", STATUS_BAD_INPUT},
        {"\"end_s\"],", "\"end_s\", \"waited_s\"],", "t:13:12: element 0 has 5 elements (expected 6)",
         STATUS_BAD_INPUT},
        {"\"end_s\"],", "\"end_s\", \"waited\"],",
         "t:12:75: column 'waited' of 'span_columns' (expected 'waited_s')", STATUS_BAD_INPUT},
        {"\"source\": \"measured\"", "\"source\": \"guessed\"",
         "t:1:33: ", STATUS_BAD_INPUT},
        {"00000000000000ff", "00000000000000FF",
         "t:2:42: '00000000000000FF' is not the fingerprint of a plan (16 hexadecimal digits)",
         STATUS_BAD_INPUT},
        {"0.75", "-0.75", "t:3:34: ", STATUS_BAD_INPUT},
        {"\"complete\": true, ", "", "t:1:1: ", STATUS_BAD_INPUT},
        {"\"complete\": true", "\"complete\": true, \"compleat\": true", "t:3:20: ",
         STATUS_BAD_INPUT},
        {"\"kind\": \"h2d\"", "\"kind\": \"h2h\"",
         "t:5:45: unknown kind 'h2h' (expected compute, h2d, d2h, p2p, group, data, host, cpu, read, write or file)",
         STATUS_BAD_INPUT},
        {" \"places\"", " \"hosts\": 3, \"places\"", "t: 2 hosts after the first among 2 places", STATUS_CHECK},
        {" \"places\"", " \"hosts\": 2, \"places\"",
         "t: stream 'gpu0 compute' has kind 0 and device 0 (there are 0 devices)", STATUS_CHECK},
        {" \"places\"", " \"hosts\": 0, \"places\"", "t:6:11: ", STATUS_BAD_INPUT},
        {"{\"name\": \"gpu0 h2d\", \"device\": 0, \"kind\": \"h2d\"}",
         "{\"name\": \"cpu\", \"host\": 1, \"kind\": \"cpu\"}",
         "t: stream 'cpu' is of host 1 (there are 1)", STATUS_CHECK},
        {"\"device\": 0, \"kind\": \"h2d\"", "\"device\": 0, \"host\": 0, \"kind\": \"h2d\"", "t:5:", STATUS_BAD_INPUT},
        {"{\"name\": \"gpu0 h2d\", \"device\": 0, \"kind\": \"h2d\"}", "7", "t:5:3: ",
         STATUS_BAD_INPUT},
        {"\"device\": 0, \"kind\": \"h2d\"", "\"device\": 99999, \"kind\": \"h2d\"", "t:5:34: ",
         STATUS_BAD_INPUT},
        {"\"pass\", \"index\"", "\"index\", \"pass\"",
         "t:10:50: column 'index' of 'operation_columns' (expected 'pass')", STATUS_BAD_INPUT},
        {", \"bytes\"],\n \"levels\"", "],\n \"levels\"",
         "t:15:19: 'level_columns' has 2 columns (expected 3)", STATUS_BAD_INPUT},
        {"[[1, 0, 0, \"loss\"", "[[2, 0, 0, \"loss\"",
         "t:11:18: stream 2 does not exist (there are 2)", STATUS_BAD_INPUT},
        {"[[1, 0, 0, \"loss\"", "[[1, 1, 0, \"loss\"",
         "t:11:21: job 1 does not exist (there are 1)", STATUS_BAD_INPUT},
        {"[[1, 0, 0, \"loss\"", "[[1, 0, 0, \"lost\"", "t:11:27: unknown pass 'lost'",
         STATUS_BAD_INPUT},
        {"\"loss\", 0, 7]", "\"loss\", 256, 7]", "t:11:35: ", STATUS_BAD_INPUT},
        {"\"loss\", 0, 7]", "\"loss\", 0]", "t:11:17: ", STATUS_BAD_INPUT},
        {"[1, 1, 0, 0.5, 1]", "[1, 2, 0, 0.5, 1]",
         "t:14:7: operation 2 does not exist (there are 2)", STATUS_BAD_INPUT},
        {"[1, 1, 0, 0.5, 1]", "[1, 1, 4294967296, 0.5, 1]", "t:14:10: ", STATUS_BAD_INPUT},
        {"[1, 1, 0, 0.5, 1]", "[1, 1, 0, 0.5, 1e13]", "t:14:18: ", STATUS_BAD_INPUT},
        {"[[0.25, 1, 7]]", "[[0.25, 2, 7]]", "t:16:20: place 2 does not exist (there are 2)",
         STATUS_BAD_INPUT},
        {"[[0.25, 1, 7]]", "[[0.25, 1, -7]]", "t:16:23: ", STATUS_BAD_INPUT},
        {"[[0.25, 1, 7]]}", "[[0.25, 1, 7]]", "t:", STATUS_BAD_INPUT},
        {"[1, 1, 0, 0.5, 1]", "[0, 1, 0, 0.5, 1]", "t: span 0 comes after span 0", STATUS_CHECK},
        {"[[0.25, 1, 7]]", "[[0.25, 1, 8]]",
         "t: memory level 0 of 'gpu0' is 8 bytes, above the peak of 7", STATUS_CHECK},
    };
    struct trace trace = {0};
    struct error err = {0};
    assert_int_equal(trace_parse("t", small, strlen(small), &trace, &err), STATUS_OK);
    assert_int_equal(trace.spans[0].kind, OP_COPY);
    assert_int_equal(trace.spans[1].kind, OP_COMPUTE);
    assert_int_equal(trace.spans[1].pass, PLAN_LOSS);
    assert_true(trace.plan_fingerprint == 255);
    trace_release(&trace);

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char text[4096];
        const char *at = strstr(small, cases[i].find);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - small), small, cases[i].put,
                 at + strlen(cases[i].find));
        err = (struct error){0};
        enum status status = trace_parse("t", text, strlen(text), &trace, &err);
        if (strncmp(err.text, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("'%s': got '%s', expected '%s'", cases[i].put, err.text, cases[i].message);
        assert_int_equal(status, cases[i].status);
        trace_release(&trace);
    }
}

static void too_many_streams_are_refused(void **state)
{
    (void)state;
    const char *at = strstr(small, "\"streams\": [") + strlen("\"streams\": [");
    char *text = malloc(sizeof small + 280000 * 3);
    assert_non_null(text);
    size_t length = (size_t)(at - small);
    memcpy(text, small, length);
    for (int i = 0; i < 280000; i++, length += 3) memcpy(text + length, "{},", 3);
    strcpy(text + length, at);
    struct trace trace = {0};
    struct error err = {0};
    assert_int_equal(trace_parse("t", text, strlen(text), &trace, &err), STATUS_LIMIT);
    assert_string_equal(err.text, "t:4:13: too many streams (limit is 270336)");
    trace_release(&trace);
    free(text);
}

/* Every allocation that can fail does, once; the sanitizer run shows that nothing leaks. */
static void reading_survives_every_failing_allocation(void **state)
{
    (void)state;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        struct trace trace = {0};
        struct error err = {0};
        assert_true(n < 10000);
        alloc_test_fail_at(n);
        enum status status = trace_parse("t", small, strlen(small), &trace, &err);
        alloc_test_fail_at(0);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        done = status == STATUS_OK;
        trace_release(&trace);
    }
}

static void writing_survives_every_failing_allocation(void **state)
{
    (void)state;
    struct trace trace;
    support_scene(&trace, TRACE_PREDICTED, 1);
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        struct error err = {0};
        assert_true(n < 10000);
        alloc_test_fail_at(n);
        enum status status = trace_write(&trace, support_path("full.json"), &err);
        alloc_test_fail_at(0);
        assert_true(status == STATUS_OK || status == STATUS_NO_MEMORY);
        done = status == STATUS_OK;
        assert_int_equal(access(support_path("full.json"), F_OK) == 0, done);
    }
    trace_release(&trace);
    support_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_names_what_the_plan_has),
        cmocka_unit_test(init_refuses_what_is_too_large),
        cmocka_unit_test(finish_sorts_and_sums),
        cmocka_unit_test(a_trace_without_spans_keeps_its_totals),
        cmocka_unit_test(each_broken_rule_is_named),
        cmocka_unit_test(written_and_read_back_is_the_same),
        cmocka_unit_test(waits_are_written_and_read_back),
        cmocka_unit_test(many_spans_survive),
        cmocka_unit_test(a_broken_trace_is_not_written),
        cmocka_unit_test(bad_files_are_refused_with_their_place),
        cmocka_unit_test(too_many_streams_are_refused),
        cmocka_unit_test(reading_survives_every_failing_allocation),
        cmocka_unit_test(writing_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests_name("traces/trace.h", tests, NULL, NULL);
}
