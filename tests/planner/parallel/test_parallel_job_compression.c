/*
 * Compression of what parallel jobs send (label: fast): makespans by closed forms and by a network whose layers are as
 * slow and whose boundaries are as small, bytes, broken plans, files and jobs that are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"

/* Seconds of a pass, of a boundary plain and encoded, of encoding and decoding one. */
struct stages {
    uint32_t pipeline, chunks, microbatches, minibatches, schedule;
    double forward_s, backward_s, send_s, encode_s, decode_s;
    double ratio;
    uint64_t from;
};
static const double wire = 1e9;

struct layers {
    const struct stages *s;
    bool spelled; /* codecs in the layers' times, and small boundaries: no compression is asked for */
};

static struct test_layer layer_of(void *context, uint32_t job, uint32_t layer)
{
    (void)job;
    const struct layers *of = context;
    const struct stages *s = of->s;
    uint32_t last = s->pipeline * s->chunks - 1;
    bool in = layer > 0 && layer >= s->from, out = layer < last && layer + 1 >= s->from;
    double forward_s = s->forward_s, backward_s = s->backward_s, bytes = s->send_s * wire;
    if (of->spelled) {
        forward_s += (in ? s->decode_s : 0) + (out ? s->encode_s : 0);
        backward_s += (in ? s->decode_s + s->encode_s : 0) + (out ? s->decode_s : 0);
        if (out) bytes /= s->ratio;
    }
    return (struct test_layer){.forward_ns = (uint64_t)llround(1e9 * forward_s),
                               .backward_ns = (uint64_t)llround(1e9 * backward_s), .activation_bytes = 64,
                               .parameter_bytes = 256, .boundary_bytes = (uint64_t)llround(bytes)};
}

static void make_stages(const struct stages *s, bool spelled, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct layers layers = {s, spelled};
    uint32_t chunks = s->pipeline * s->chunks;
    test_parallel_machine(&hardware, s->pipeline, wire, 0);
    test_profile_jobs(&jobs, 1, chunks, s->minibatches, layer_of, &layers);
    jobs.jobs[0].microbatches = s->microbatches;
    if (!spelled)
        jobs.jobs[0].compression[COMPRESSION_BOUNDARIES] =
            (struct compression){s->ratio, s->send_s * wire / s->encode_s, s->send_s * wire / s->decode_s, s->from};
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = s->pipeline, .data = 1, .chunks = s->chunks,
                                              .schedule = s->schedule, .prefetch = 1};
    *out = (struct plan){0};
    test_parallel_plan(&hardware, &jobs, out);
}

static double stages_s(const struct stages *s, bool spelled)
{
    struct plan plan;
    make_stages(s, spelled, &plan);
    double makespan_s = test_parallel_simulate(&plan, true).makespan_s;
    plan_release(&plan);
    return makespan_s;
}

static const struct stages usual = {.forward_s = 2e-3, .backward_s = 5e-3, .send_s = 4e-3, .encode_s = 3e-4,
                                    .decode_s = 7e-4, .ratio = 8, .minibatches = 1, .chunks = 1};

/* One microbatch through K stages: K (f + b), and for each of K - 1 boundaries, there and back: encoded, sent,
 * decoded; and the one that came in once more for the pass back. */
static void one_microbatch(void **state)
{
    (void)state;
    for (uint32_t k = 2; k <= 5; k++) {
        struct stages s = usual;
        s.pipeline = k;
        s.microbatches = 1;
        s.schedule = PIPELINE_1F1B;
        double boundary_s = 2 * (s.encode_s + s.send_s / s.ratio + s.decode_s) + s.decode_s;
        test_parallel_near(stages_s(&s, false), k * (s.forward_s + s.backward_s) + (k - 1) * boundary_s);
    }
}

/* The same network with the codecs' time written into its layers, by every schedule that has them. */
static void two_roads(void **state)
{
    (void)state;
    static const struct {
        uint32_t schedule, pipeline, chunks, microbatches, minibatches;
    } cases[] = {{PIPELINE_GPIPE, 3, 1, 5, 2},       {PIPELINE_1F1B, 4, 1, 6, 2},
                 {PIPELINE_INTERLEAVED, 2, 3, 4, 2},
                 {PIPELINE_PIPEDREAM, 3, 1, 1, 7},   {PIPELINE_2BW, 3, 1, 3, 4},
                 {PIPELINE_INTERLEAVED, 3, 2, 6, 1}};
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct stages s = usual;
        s.schedule = cases[c].schedule;
        s.pipeline = cases[c].pipeline;
        s.chunks = cases[c].chunks;
        s.microbatches = cases[c].microbatches;
        s.minibatches = cases[c].minibatches;
        double found = stages_s(&s, false), spelled = stages_s(&s, true);
        test_parallel_near(found, spelled);
    }
}

/* From the third stage on: one boundary of three goes as it is. */
static void from_a_layer_on(void **state)
{
    (void)state;
    for (uint64_t from = 0; from <= 3; from++) {
        struct stages s = usual;
        s.pipeline = 4;
        s.microbatches = 1;
        s.schedule = PIPELINE_1F1B;
        s.from = from;
        double coded = from < 1 ? 3 : (double)(4 - from), plain = 3 - coded; /* boundaries; none enters layer 0 */
        double boundary_s = 2 * (s.encode_s + s.send_s / s.ratio + s.decode_s) + s.decode_s;
        test_parallel_near(stages_s(&s, false),
                           4 * (s.forward_s + s.backward_s) + coded * boundary_s + plain * 2 * s.send_s);
        s.microbatches = 5;
        test_parallel_near(stages_s(&s, false), stages_s(&s, true));
    }
}

/* Sending nine tenths less pays on a slow link, and costs on a fast one. */
static void worth(void **state)
{
    (void)state;
    struct stages s = usual, plain = usual;
    s.schedule = plain.schedule = PIPELINE_1F1B;
    s.pipeline = plain.pipeline = 4;
    s.microbatches = plain.microbatches = 8;
    s.send_s = plain.send_s = 20e-3;
    plain.ratio = 1;
    plain.encode_s = plain.decode_s = 1e-12;
    assert_true(stages_s(&s, false) < 0.5 * stages_s(&plain, false));
    s.send_s = plain.send_s = 1e-4;
    assert_true(stages_s(&s, false) > stages_s(&plain, false));
}

/* --- gradients ------------------------------------------------------------------------------- */

static struct test_layer gradient_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job, (void)layer;
    return (struct test_layer){.forward_ns = 2000000, .backward_ns = 5000000, .activation_bytes = 64,
                               .parameter_bytes = 12000000};
}

static void make_gradients(struct plan *out, uint32_t replicas, uint32_t chunks, uint32_t microbatches, uint32_t zero,
                           const struct compression *compression)
{
    struct hardware hardware;
    struct job_set jobs;
    test_parallel_machine(&hardware, replicas, wire, 0);
    test_profile_jobs(&jobs, 1, chunks, 1, gradient_layer, NULL);
    jobs.jobs[0].microbatches = microbatches * replicas;
    if (compression) jobs.jobs[0].compression[COMPRESSION_GRADIENTS] = *compression;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = replicas, .chunks = chunks,
                                              .zero = zero,
                                              .schedule = PIPELINE_1F1B, .prefetch = 1};
    *out = (struct plan){0};
    test_parallel_plan(&hardware, &jobs, out);
}

/* v chunks: after its last backward pass each is encoded (e) and reduced in a seconds during the next; updates decode
 * (d), all but the last during the last reduction:
 *     (m - 1) v (f + b) + v (f + b + e) + max(a, (v - 1) d) + d
 */
static void gradients(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 4; n++)
        for (uint32_t v = 1; v <= 4; v++)
            for (uint32_t m = 1; m <= 2; m++) {
                const struct compression c = {.ratio = 6, .encode_bytes_per_s = 8e9, .decode_bytes_per_s = 12e9};
                const double f = 2e-3, b = 5e-3, e = 12e6 / 8e9, d = 12e6 / 12e9;
                double a = 2.0 * (n - 1) / n * (12e6 / c.ratio) / wire;
                struct plan plan;
                make_gradients(&plan, n, v, m, 0, &c);
                assert_true(a < b + e);
                test_parallel_near(test_parallel_simulate(&plan, false).makespan_s,
                                   (m - 1) * v * (f + b) + v * (f + b + e) + fmax(a, (v - 1) * d) + d);
                plan_release(&plan);
            }
}

/* With shares of states each rank decodes its own, and whole weights are gathered as they are. */
static void shares(void **state)
{
    (void)state;
    const struct compression c = {.ratio = 6, .encode_bytes_per_s = 8e9, .decode_bytes_per_s = 1e10};
    for (uint32_t n = 2; n <= 4; n++) {
        struct plan plan;
        double e = 12e6 / 8e9, d = 12e6 / n / 1e10, step = (double)(n - 1) / n * 12e6 / wire;
        make_gradients(&plan, n, 1, 1, 1, &c);
        test_parallel_near(test_parallel_simulate(&plan, false).makespan_s, 7e-3 + e + step / c.ratio + d + step);
        plan_release(&plan);
    }
}

/* --- bytes ----------------------------------------------------------------------------------- */

static void bytes(void **state)
{
    (void)state;
    struct compression c = {.ratio = 3, .encode_bytes_per_s = 1e9, .decode_bytes_per_s = 2e9};
    assert_int_equal(compression_bytes(&c, 10), 4);
    assert_int_equal(compression_bytes(&c, 0), 0);
    assert_int_equal(compression_encode_ns(&c, 10), 10);
    assert_int_equal(compression_decode_ns(&c, 10), 5);
    c.ratio = 0;
    assert_int_equal(compression_bytes(&c, 10), 10);
    assert_int_equal(compression_encode_ns(&c, 10), 0);

    struct plan plan;
    struct stages s = usual;
    s.pipeline = 3;
    s.microbatches = 2;
    s.schedule = PIPELINE_1F1B;
    make_stages(&s, false, &plan);
    uint32_t found = 0;
    for (uint32_t i = 0; i < plan.buffer_count; i++) {
        const struct plan_buffer *buffer = &plan.buffers[i];
        uint64_t plain = buffer->shard > 0 && buffer->shard < 3 ? 4000000 : 0;
        if (buffer->kind == BUFFER_BOUNDARY || buffer->kind == BUFFER_BOUNDARY_GRADIENT)
            assert_int_equal(buffer->bytes, plain / 8), found++;
        /* decoded data: the boundary that came in and its gradient, the boundary that goes out */
        if (buffer->kind == BUFFER_WORKSPACE)
            assert_int_equal(buffer->bytes, (buffer->shard > 0 ? 8000000u : 0) + (buffer->shard < 2 ? 4000000u : 0));
    }
    assert_true(found >= 4);
    plan_release(&plan);
}

/* --- broken plans ---------------------------------------------------------------------------- */

static void whole_plan(struct plan *out, uint32_t gradients_too)
{
    const struct compression c = {.ratio = 6, .encode_bytes_per_s = 8e9, .decode_bytes_per_s = 12e9};
    struct stages s = usual;
    s.pipeline = 3;
    s.microbatches = 4;
    s.schedule = PIPELINE_1F1B;
    if (gradients_too) make_gradients(out, 2, 3, 2, 0, &c);
    else make_stages(&s, false, out);
}

static struct plan_op *reduce_of(struct plan *p, uint32_t kind) { return test_parallel_op(p, PLAN_REDUCE, 1, kind); }
static void break_bytes(struct plan *p) { reduce_of(p, OP_COLLECTIVE)->bytes *= 6; }
static void break_encode(struct plan *p) { reduce_of(p, OP_COMPUTE)->work = PLAN_NONE; }
static void break_order(struct plan *p)
{
    struct plan_op *encode = reduce_of(p, OP_COMPUTE), swap = *encode;
    encode[0] = encode[1];
    encode[1] = swap;
}
static void break_pass(struct plan *p) { reduce_of(p, OP_COMPUTE)->pass = PLAN_UPDATE; }
static void break_decode(struct plan *p) { test_parallel_op(p, PLAN_UPDATE, 1, OP_COMPUTE)->work = PLAN_NONE; }
static void break_ratio(struct plan *p) { p->jobs.jobs[0].compression[COMPRESSION_BOUNDARIES].ratio = 2; }
static void break_rate(struct plan *p) { p->jobs.jobs[0].compression[COMPRESSION_BOUNDARIES].encode_bytes_per_s *= 2; }
static void break_none(struct plan *p) { p->jobs.jobs[0].compression[COMPRESSION_BOUNDARIES].ratio = 0; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_bytes, 1, "0 times all-reduce of 2000000 bytes over the data group (expected 1)"},
        {break_encode, 1, "work: has 0 kernels (expected 1)"},
        {break_order, 1, "finds gradient of job-0 shard 1, microbatch 2 (expected encoded gradient of job-0 shard 1, "
                         "microbatch 2)"},
        {break_pass, 1, "form: a update in a unit that is about reduce"},
        {break_decode, 1, "work: has 0 kernels (expected 1)"},
        {break_ratio, 0, "memory: the boundary of job-0 shard 1 has 500000 bytes (expected 2000000)"},
        {break_rate, 0, "work: kernel 0 is 1 fixed of 2300000 x 0 x 0 (expected 1 fixed of 2150000 x 0 x 0)"},
        {break_none, 0, "memory: the boundary of job-0 shard 1 has 500000 bytes (expected 4000000)"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

/* --- refused --------------------------------------------------------------------------------- */

static void refused(void **state)
{
    (void)state;
    static const struct {
        struct parallel parallel;
        bool gradients;
        const char *message;
    } cases[] = {
        {{.tensor = 1, .pipeline = 1, .data = 2, .chunks = 1, .schedule = PIPELINE_1F1B}, false,
         "job 'job-0': 'compression' of boundaries on one stage (expected 'pipeline' above 1)"},
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_ZB_H1}, false,
         "job 'job-0': 'compression' of boundaries with schedule 'zb-h1' (expected a schedule with undivided backward "
         "passes)"},
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B}, true,
         "job 'job-0': 'compression' of gradients on one replica (expected 'data' above 1)"},
        {{.tensor = 1, .pipeline = 1, .data = 2, .chunks = 1, .schedule = PIPELINE_1F1B, .zero = 2}, true,
         "job 'job-0': 'compression' of gradients with 'zero' 2 (expected 0 or 1: their sum is compressed)"},
        {{0}, true, "job 'job-0' has a compression of gradients and is not a parallel job (see --parallel)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        const struct planner_options options = {.weight_buffers = 0};
        test_parallel_machine(&hardware, 4, wire, 0);
        test_profile_jobs(&jobs, 1, 4, 1, gradient_layer, NULL);
        jobs.jobs[0].microbatches = 2;
        jobs.jobs[0].parallel = cases[i].parallel;
        jobs.jobs[0].compression[cases[i].gradients] =
            (struct compression){.ratio = 2, .encode_bytes_per_s = 1e9, .decode_bytes_per_s = 1e9};
        assert_int_equal(planner_plan(&hardware, &jobs, &options, &plan, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
    }
}

static void refused_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"boundaries\": {\"ratio\": 0.5, \"encode\": \"1GB/s\", \"decode\": \"1GB/s\"}}",
         "c.json:1:26: 'ratio' is 0.5 (expected 1 to 1000000)"},
        {"{\"boundaries\": {\"ratio\": 2, \"encode\": \"1GB/s\"}}", "c.json:1:16: missing key 'decode'"},
        {"{\"gradients\": {\"ratio\": 2, \"encode\": \"1GB\", \"decode\": \"1GB/s\"}}", "'encode'"},
        {"{\"weights\": {\"ratio\": 2}}", "unknown key 'weights'"},
        {"{\"gradients\": {\"ratio\": 2, \"encode\": \"1GB/s\", \"decode\": \"1GB/s\", \"from\": 3}}",
         "unknown key 'from'"},
        {"{\"boundaries\": {\"ratio\": 2, \"encode\": \"1GB/s\", \"decode\": \"1GB/s\", \"from\": -1}}", "'from'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct compression out[COMPRESSION_COUNT] = {{0}};
        struct json_input *in;
        struct error err = {0};
        assert_int_equal(json_input_parse("c.json", cases[i].text, strlen(cases[i].text), &in, &err), STATUS_OK);
        assert_int_equal(compression_parse(in, json_input_root(in), out, &err), STATUS_BAD_INPUT);
        if (!strstr(err.text, cases[i].message)) fail_msg("'%s', expected '%s'", err.text, cases[i].message);
        json_input_destroy(in);
    }
}

/* Values that the text does not name stay; boundaries that it names are compressed from the first block on. */
static void text_keeps_what_it_does_not_name(void **state)
{
    (void)state;
    static const struct compression before = {.ratio = 3, .encode_bytes_per_s = 5e9, .decode_bytes_per_s = 7e9,
                                              .from = 12};
    struct compression out[COMPRESSION_COUNT] = {[COMPRESSION_BOUNDARIES] = before, [COMPRESSION_ACTIVATIONS] = before};
    struct error err = {0};
    assert_int_equal(compression_parse_text("boundaries=4.5:120GB/s:90GB/s,gradients=10:400GB/s", out, &err),
                     STATUS_OK);
    const struct compression expected[COMPRESSION_COUNT] = {
        [COMPRESSION_BOUNDARIES] = {4.5, 120e9, 90e9, 0},
        [COMPRESSION_GRADIENTS] = {10, 400e9, 400e9, 0},
        [COMPRESSION_ACTIVATIONS] = before,
    };
    for (uint32_t i = 0; i < COMPRESSION_COUNT; i++) {
        assert_true(fabs(out[i].ratio - expected[i].ratio) < 1e-12);
        assert_true(fabs(out[i].encode_bytes_per_s - expected[i].encode_bytes_per_s) < 1e-3);
        assert_true(fabs(out[i].decode_bytes_per_s - expected[i].decode_bytes_per_s) < 1e-3);
        assert_int_equal(out[i].from, expected[i].from);
    }
}

static void refused_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"boundaries=0x10:4GB/s", "boundaries: ratio '0x10' (expected a number from 1 to 1000000)"},
        {"boundaries=inf:4GB/s", "boundaries: ratio 'inf' (expected a number from 1 to 1000000)"},
        {"boundaries= 2:4GB/s", "boundaries: ratio ' 2' (expected a number from 1 to 1000000)"},
        {"boundaries=2", "boundaries: the rate of encoding is missing (expected such as 10:400GB/s)"},
        {"boundaries=2:4GB/s,", "'' (expected boundaries=, gradients= or activations=, followed by ratio:rate)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct compression out[COMPRESSION_COUNT] = {{0}};
        struct error err = {0};
        assert_int_equal(compression_parse_text(cases[i].text, out, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_microbatch), cmocka_unit_test(two_roads), cmocka_unit_test(from_a_layer_on),
        cmocka_unit_test(worth),          cmocka_unit_test(gradients), cmocka_unit_test(shares),
        cmocka_unit_test(bytes),          cmocka_unit_test(broken),    cmocka_unit_test(refused),
        cmocka_unit_test(refused_files),  cmocka_unit_test(text_keeps_what_it_does_not_name),
        cmocka_unit_test(refused_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
