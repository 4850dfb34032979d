/*
 * Compression of activations (label: fast), kept or swapped: makespans by a closed form and by a network whose layers
 * are equally slow and keep equally little, bytes, broken plans, refused jobs. For the data sent see
 * test_parallel_job_compression.c.
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

/* Seconds of a pass over a chunk, of a copy of its activations as they are, of encoding and decoding these. */
struct chunks {
    uint32_t replicas, chunks, slots, minibatches; /* slots: places for activations; 0: all stay */
    double forward_s, backward_s, copy_s, encode_s, decode_s, ratio;
};
static const double link_rate = 1e9;

/* spelled: codecs in the layers' times, and few activations; no compression is asked for. */
static void make_chunks(const struct chunks *s, bool spelled, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    double bytes = s->copy_s * link_rate, kept = ceil(bytes / s->ratio);
    struct test_layer layer = {.forward_ns = (uint64_t)llround(1e9 * (s->forward_s + (spelled ? s->encode_s : 0))),
                               .backward_ns = (uint64_t)llround(1e9 * (s->backward_s + (spelled ? s->decode_s : 0))),
                               .activation_bytes = (uint64_t)(spelled ? kept : bytes), .parameter_bytes = 64};
    test_parallel_machine(&hardware, s->replicas, 1e10, 0);
    hardware.host_bandwidth = (struct sourced_value){.value = 1e10, .kind = SOURCE_ASSUMED, .source = "a test",
                                                     .as_of = "2026-11"};
    for (uint32_t d = 0; d < s->replicas; d++) hardware.links[d].bandwidth.value = link_rate;
    for (uint32_t d = 0; d < s->replicas && s->slots > 0; d++)
        hardware.devices[d].memory_bytes = s->slots * (uint64_t)kept + (spelled ? 0 : (uint64_t)bytes) + 50000;
    test_profile_jobs(&jobs, 1, s->chunks, s->minibatches, test_layer_equal, &layer);
    jobs.jobs[0].microbatches = s->replicas;
    if (!spelled)
        jobs.jobs[0].compression[COMPRESSION_ACTIVATIONS] = (struct compression){s->ratio, bytes / s->encode_s,
                                                                                bytes / s->decode_s, 0};
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = s->replicas, .chunks = s->chunks,
                                              .schedule = PIPELINE_1F1B, .prefetch = 1,
                                              .offload = OFFLOAD_WEIGHTS, .swap = s->slots > 0};
    *out = (struct plan){0};
    test_parallel_plan(&hardware, &jobs, out);
}

static double chunks_s(const struct chunks *s, bool spelled)
{
    struct plan plan;
    make_chunks(s, spelled, &plan);
    double makespan_s = test_parallel_simulate(&plan, true).makespan_s;
    plan_release(&plan);
    return makespan_s;
}

static const struct chunks usual = {.replicas = 1, .minibatches = 2, .forward_s = 2e-3, .backward_s = 5e-3,
                                    .copy_s = 4e-3,
                                  .encode_s = 3e-4, .decode_s = 7e-4, .ratio = 8};

static void near_to(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-4 * expected)) fail_msg("%.9g (expected %.9g)", found, expected);
}

/* If everything stays, each chunk encodes once and decodes once. */
static void kept(void **state)
{
    (void)state;
    for (uint32_t v = 1; v <= 4; v++) {
        struct chunks s = usual;
        s.chunks = v;
        double chunk_s = s.forward_s + s.encode_s + s.decode_s + s.backward_s;
        near_to(chunks_s(&s, false), s.minibatches * v * chunk_s);
    }
}

/* The same network with the codecs' time written into its layers, with slow and with fast links. */
static void two_roads(void **state)
{
    (void)state;
    static const double copies_s[] = {4e-3, 23e-3, 80e-3};
    for (uint32_t d = 1; d <= 2; d++)
        for (uint32_t slots = 2; slots <= 4; slots++)
            for (size_t c = 0; c < ARRAY_COUNT(copies_s); c++) {
                struct chunks s = usual;
                s.replicas = d;
                s.chunks = 7;
                s.slots = slots;
                s.copy_s = copies_s[c];
                test_parallel_near(chunks_s(&s, false), chunks_s(&s, true));
            }
}

/* Sending seven eighths less pays on a slow link, and costs on a fast one. */
static void worth(void **state)
{
    (void)state;
    struct chunks s = usual, plain = usual;
    s.chunks = plain.chunks = 8;
    s.slots = plain.slots = 2;
    s.copy_s = plain.copy_s = 20e-3;
    plain.ratio = 1;
    plain.encode_s = plain.decode_s = 1e-12;
    assert_true(chunks_s(&s, false) < 0.5 * chunks_s(&plain, false));
    s.copy_s = plain.copy_s = 1e-4;
    assert_true(chunks_s(&s, false) > chunks_s(&plain, false));
}

/* Between the passes of a chunk a third of its activations, rounded up, stays; during a pass all of them as well. */
static void bytes(void **state)
{
    (void)state;
    struct job_set jobs;
    test_gpt_jobs(&jobs, 1, 6, 64, 256, 1);
    struct job *job = &jobs.jobs[0];
    job->parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 1, .chunks = 3, .schedule = PIPELINE_1F1B};
    for (uint32_t r = 0; r < 3; r++) {
        struct parallel_layers layers = parallel_layers(job, r);
        uint64_t plain = parallel_kept_bytes(job, layers, false), workspace = parallel_workspace_bytes(job, layers);
        assert_true(plain > 0);
        struct job encoded = *job;
        encoded.compression[COMPRESSION_ACTIVATIONS] = (struct compression){3, 1e9, 1e9, 0};
        assert_int_equal(parallel_kept_bytes(&encoded, layers, false), (plain + 2) / 3);
        assert_int_equal(parallel_plain_kept_bytes(&encoded, layers, false), plain);
        assert_int_equal(parallel_workspace_bytes(&encoded, layers), workspace + plain);
    }
    job_set_release(&jobs);
}

/* --- broken plans, refused jobs --------------------------------------------------------------- */

static void whole_plan(struct plan *out, uint32_t variant)
{
    struct chunks s = usual;
    (void)variant;
    s.chunks = 5;
    s.slots = 2;
    make_chunks(&s, false, out);
}

static struct compression *of(struct plan *p) { return &p->jobs.jobs[0].compression[COMPRESSION_ACTIVATIONS]; }
static void break_ratio(struct plan *p) { of(p)->ratio = 2; }
static void break_rate(struct plan *p) { of(p)->encode_bytes_per_s *= 2; }
static void break_none(struct plan *p) { of(p)->ratio = 0; }
static void break_copy(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 0, OP_COPY)->bytes /= 2; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_ratio, 0, "memory: the activations of job-0 shard 0 has 500000 bytes (expected 2000000)"},
        {break_rate, 0, "work: kernel 0 is 1 fixed of 2300000 x 0 x 0 (expected 1 fixed of 2150000 x 0 x 0)"},
        {break_none, 0, "memory: the activations of job-0 shard 0 has 500000 bytes (expected 4000000)"},
        {break_copy, 0, "lifetimes: copies unwritten bytes from the activations of job-0 shard 0"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

static void refused(void **state)
{
    (void)state;
    struct error err = {0};
    struct job job = {.microbatches = 4, .network = {.family = NETWORK_PROFILE, .layer_count = 4}};
    job.compression[COMPRESSION_ACTIVATIONS] = (struct compression){2, 1e9, 1e9, 0};
    assert_int_equal(parallel_parse_text("pp=2", &job.parallel, &err), STATUS_OK);
    assert_int_equal(parallel_check(&job, &err), STATUS_OK);
    job.parallel.schedule = PIPELINE_ZB_H1;
    assert_int_equal(parallel_check(&job, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "'compression' of activations with schedule 'zb-h1' (expected a schedule with "
                                  "undivided backward passes)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept),  cmocka_unit_test(two_roads), cmocka_unit_test(worth),
        cmocka_unit_test(bytes), cmocka_unit_test(broken),    cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("parallel_job_encoded", tests, NULL, NULL);
}
