/*
 * Attention by cuDNN on the emulated machine, where a library of our own carries graphs out
 * (tests/emulator/cudnn): what the graphs mean against sums in double and against the host's kernels, what
 * happens when the library refuses, and trainings with it.
 *
 * Device memory is host memory here, so the table of the device works on the cases' arrays.
 */
#define KERNELS_NUMBER float
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "base/json/json_out.h"
#include "base/size.h"
#include "exec/cuda/gpu_attention.h"
#include "exec/cuda/kernels_cuda.h"
#include "exec/run/run.h"
#include "models/job/memory.h"
#include "planner/strategy/planner.h"
#include "tests/emulator/cudnn/emulated_cudnn.h"
#include "tests/support/kernels/support_kernels.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_memory.h"

static emulated_cudnn_refuse_function refuse;
static emulated_cudnn_executions_function executions;

static int open_library(void **state)
{
    (void)state;
    setenv("SPILLWAY_CUDNN", EMULATED_CUDNN, 1);
    void *const library = dlopen(EMULATED_CUDNN, RTLD_NOW);
    if (!library) {
        print_error("%s\n", dlerror());
        return -1;
    }
    void *symbol = dlsym(library, "emulated_cudnn_refuse");
    memcpy(&refuse, &symbol, sizeof refuse);
    symbol = dlsym(library, "emulated_cudnn_executions");
    memcpy(&executions, &symbol, sizeof executions);
    return refuse && executions ? 0 : -1;
}

/* --- kernels ----------------------------------------------------------------------------------- */

static cudaStream_t stream;
static struct kernels *device, *host;

static void finish(void)
{
    device->finish(device);
    const char *const failed = kernels_cuda_failure(device);
    if (failed) fail_msg("%s", failed);
}

static void device_forward(const struct kernels *kernels, const struct kernel_attention *attention)
{
    (void)kernels;
    device->attention_forward(device, attention);
    finish();
}

static void device_backward(const struct kernels *kernels, const struct kernel_attention *attention)
{
    (void)kernels;
    device->attention_backward(device, attention);
    finish();
}

static const struct kernels device_table = {
    .name = "cuda", .attention_forward = device_forward, .attention_backward = device_backward};

static int open_kernels(void **state)
{
    (void)state;
    struct error err = {0};
    refuse(REFUSE_NOTHING);
    executions();
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        kernels_cuda_create(stream, false, &device, &err) != STATUS_OK ||
        kernels_host_create(1, &host, &err) != STATUS_OK)
        return -1;
    return kernel_cases_setup(&(struct kernel_cases){.first = &device_table,
                                                     .second = &device_table,
                                                     .shift = CUDA_OPERAND_ALIGNMENT / sizeof(float),
                                                     .slack = 4});
}

static int close_kernels(void **state)
{
    (void)state;
    kernels_cuda_destroy(device);
    kernels_host_destroy(host);
    cudaStreamDestroy(stream);
    kernel_cases_teardown();
    return 0;
}

/* The library did compute: earlier cases have heads whose width 8 divides. */
static void test_it_was_used(void **state)
{
    (void)state;
    assert_true(executions() > 0);
}

static struct attention_sizes sizes_of(const struct kernel_attention *a)
{
    return (struct attention_sizes){.samples = (uint64_t)a->b,
                                    .tokens = (uint64_t)a->t,
                                    .heads = (uint64_t)a->h,
                                    .kv_heads = (uint64_t)a->kv,
                                    .head_width = (uint64_t)a->d};
}

static struct kernel_attention make_attention(int64_t b, int64_t t, int64_t h, int64_t kv, int64_t d,
                                              bool causal)
{
    struct kernel_attention a = {.b = b, .t = t, .h = h, .kv = kv, .d = d, .row_q = h * d,
                          .row_kv = kv * d, .causal = causal, .rounded = true};
    a.q = random_array(b * t * h * d, 1, 3);
    a.k = random_array(b * t * kv * d, 2, 3);
    a.v = random_array(b * t * kv * d, 3, 3);
    a.dout = random_array(b * t * h * d, 4, 1);
    a.out = empty_array(b * t * h * d);
    a.stats = empty_array(b * h * t);
    a.dq = empty_array(b * t * h * d);
    a.dk = empty_array(b * t * kv * d);
    a.dv = empty_array(b * t * kv * d);
    const struct attention_sizes sizes = sizes_of(&a);
    a.scratch = empty_array((int64_t)(memory_attention_copies(sizes, true) +
                                      memory_attention_workspace(sizes, true)));
    return a;
}

/* Returns the largest difference, relative to the largest number. */
static double difference(const float *x, const float *y, int64_t count)
{
    double largest = 0, apart = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)y[i]));
        apart = fmax(apart, fabs((double)x[i] - (double)y[i]));
        if (isnan(x[i]) || isnan(y[i])) return INFINITY;
    }
    return apart / largest;
}

/* Both ways with the same operands: a few roundings to 8 bits differ. */
static void test_as_the_host(void **state)
{
    (void)state;
    static const int64_t shapes[][6] = {{2, 33, 4, 4, 16, true},  {2, 33, 4, 4, 16, false},
                                        {1, 65, 6, 2, 24, true},  {3, 17, 4, 1, 8, false},
                                        {1, 128, 2, 2, 64, true}, {2, 1, 2, 1, 32, true}};
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        const int64_t *const s = shapes[i];
        test_kernels(); /* forgets the arrays */
        const struct kernel_attention a = make_attention(s[0], s[1], s[2], s[3], s[4], s[5]);
        struct kernel_attention b = a;
        const int64_t queries = a.b * a.t * a.row_q, keys = a.b * a.t * a.row_kv;
        b.out = empty_array(queries);
        b.stats = empty_array(a.b * a.h * a.t);
        b.dq = empty_array(queries);
        b.dk = empty_array(keys);
        b.dv = empty_array(keys);
        struct kernel_attention a_forward = a, b_forward = b;
        a_forward.dout = b_forward.dout = NULL;
        executions();
        device_forward(NULL, &a_forward);
        device_backward(NULL, &a);
        assert_true(executions() >= 2);
        host->attention_forward(host, &b_forward);
        host->attention_backward(host, &b);
        assert_true(difference(a.out, b.out, queries) < 1.0 / 128);
        assert_true(difference(a.stats, b.stats, a.b * a.h * a.t) < 1e-5);
        assert_true(difference(a.dv, b.dv, keys) < 1.0 / 100);
        if (a.t == 1) continue; /* one weight, which is 1: no gradient of its score */
        assert_true(difference(a.dq, b.dq, queries) < 1.0 / 64);
        assert_true(difference(a.dk, b.dk, keys) < 1.0 / 64);
    }
}

/* A shape that needs more than the planner grants at once is computed in pieces, with equal bits. */
static void test_pieces(void **state)
{
    (void)state;
    const struct kernel_attention a = make_attention(6, 32, 24, 12, 8, true);
    const int64_t queries = a.b * a.t * a.row_q, keys = a.b * a.t * a.row_kv;
    struct kernel_attention forward = a;
    forward.dout = NULL;
    executions();
    device_forward(NULL, &forward);
    const uint64_t there = executions();
    device_backward(NULL, &a);
    const uint64_t back = executions();
    print_message("%llu graphs forward, %llu back\n", (unsigned long long)there,
                  (unsigned long long)back);
    assert_int_equal(there, 1);
    assert_true(back > 1);
    /* each sample as a call of its own has it */
    for (int64_t sample = 0; sample < a.b; sample++) {
        struct kernel_attention one = a;
        one.b = 1;
        one.q += sample * a.t * a.row_q;
        one.k += sample * a.t * a.row_kv;
        one.v += sample * a.t * a.row_kv;
        one.dout += sample * a.t * a.row_q;
        one.out += sample * a.t * a.row_q;
        one.stats += sample * a.h * a.t;
        one.dq = empty_array(queries / a.b);
        one.dk = empty_array(keys / a.b);
        one.dv = empty_array(keys / a.b);
        device_backward(NULL, &one);
        assert_memory_equal(one.dq, a.dq + sample * a.t * a.row_q,
                            (size_t)(queries / a.b) * sizeof(float));
        assert_memory_equal(one.dk, a.dk + sample * a.t * a.row_kv,
                            (size_t)(keys / a.b) * sizeof(float));
        assert_memory_equal(one.dv, a.dv + sample * a.t * a.row_kv,
                            (size_t)(keys / a.b) * sizeof(float));
    }
}

/* --- refusals ---------------------------------------------------------------------------------- */

/* The answer of a new table for a shape, and its result. */
static bool prepared(const struct kernel_attention *a, char *by, size_t size, bool *failed)
{
    struct kernels *kernels = NULL;
    struct error err = {0};
    if (kernels_cuda_create(stream, false, &kernels, &err) != STATUS_OK) fail_msg("%s", err.text);
    const bool best = kernels->prepare_attention(kernels, a, by, size);
    struct kernel_attention forward = *a;
    forward.dout = NULL;
    kernels->attention_forward(kernels, &forward);
    kernels->finish(kernels);
    kernels->attention_backward(kernels, a);
    kernels->finish(kernels);
    *failed = kernels_cuda_failure(kernels) != NULL;
    if (*failed) assert_non_null(strstr(kernels_cuda_failure(kernels), "attention by cuDNN"));
    kernels_cuda_destroy(kernels);
    return best;
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const reasons[REFUSAL_COUNT] = {
        [REFUSE_VERSION] = "cuDNN 0.89.7 is not of 9.0.0 to 9.99.99",
        [REFUSE_HANDLE] = "cuDNN gives no handle: status 3000: it was told to refuse",
        [REFUSE_TENSORS] = "attention forward: a tensor: status 3000: it was told to refuse",
        [REFUSE_OPERATIONS] = "attention forward: a product: status 3000: it was told to refuse",
        [REFUSE_GRAPH] = "attention forward: the graph: status 3000: it was told to refuse",
        [REFUSE_ENGINES] = "no engine for the graph (0 proposed, 0 of them",
        [REFUSE_STEADINESS] = "no engine for the graph (4 proposed, 4 of them",
        [REFUSE_PLANS] = "no engine for the graph (4 proposed, 0 of them",
        [REFUSE_LITTLE] = "attention backward: it wants 17179869184 bytes of workspace, and the plan",
    };
    char by[512];
    bool failed;
    const struct kernel_attention a = make_attention(2, 37, 4, 2, 16, true);
    const int64_t queries = a.b * a.t * a.row_q;
    float *const own = support_floats(queries), *const own_dq = support_floats(queries);

    setenv("SPILLWAY_CUDNN", "off", 1);
    assert_false(prepared(&a, by, sizeof by, &failed));
    assert_string_equal(by, "Spillway's own kernels (cannot load cuDNN: SPILLWAY_CUDNN is 'off')");
    memcpy(own, a.out, (size_t)queries * sizeof *own);
    memcpy(own_dq, a.dq, (size_t)queries * sizeof *own);
    setenv("SPILLWAY_CUDNN", "/nowhere/libcudnn.so.9", 1);
    assert_false(prepared(&a, by, sizeof by, &failed));
    assert_non_null(strstr(by, "/nowhere/libcudnn.so.9"));
    setenv("SPILLWAY_CUDNN", EMULATED_CUDNN, 1);

    executions();
    for (int what = REFUSE_VERSION; what < REFUSE_EXECUTION; what++) {
        refuse(what);
        memset(a.out, 0xff, (size_t)queries * sizeof *a.out);
        assert_false(prepared(&a, by, sizeof by, &failed));
        refuse(REFUSE_NOTHING);
        if (!strstr(by, reasons[what])) fail_msg("refusal %d: %s", what, by);
        assert_true(strncmp(by, "Spillway's own kernels (", 24) == 0);
        assert_false(failed);
        assert_int_equal(executions(), 0);
        assert_memory_equal(a.out, own, (size_t)queries * sizeof *own);
        assert_memory_equal(a.dq, own_dq, (size_t)queries * sizeof *own);
    }
    assert_true(prepared(&a, by, sizeof by, &failed));
    assert_string_equal(by, "cuDNN 9.19.0");
    assert_int_equal(executions(), 2);
    assert_memory_not_equal(a.dq, own_dq, (size_t)queries * sizeof *own);
}

/* A choice never changes: a later failure ends the device and does not choose another way. */
static void test_no_other_way_later(void **state)
{
    (void)state;
    char by[512];
    bool failed;
    const struct kernel_attention a = make_attention(1, 24, 2, 2, 8, false);
    refuse(REFUSE_EXECUTION);
    assert_true(prepared(&a, by, sizeof by, &failed));
    refuse(REFUSE_NOTHING);
    assert_true(failed);
    assert_true(isnan(a.dq[0]));

    struct kernels *kernels = NULL;
    struct error err = {0};
    assert_int_equal(kernels_cuda_create(stream, false, &kernels, &err), STATUS_OK);
    refuse(REFUSE_PLANS);
    assert_false(kernels->prepare_attention(kernels, &a, by, sizeof by));
    refuse(REFUSE_NOTHING);
    assert_false(kernels->prepare_attention(kernels, &a, by, sizeof by));
    kernels_cuda_destroy(kernels);

    struct kernel_attention odd = a;
    odd.d = 12;
    assert_int_equal(kernels_cuda_create(stream, false, &kernels, &err), STATUS_OK);
    assert_false(kernels->prepare_attention(kernels, &odd, by, sizeof by));
    assert_non_null(strstr(by, "heads are 12 numbers wide (expected a multiple of 8)"));
    odd.rounded = false; /* a job in fp32 has no choice, and nothing to be told */
    assert_true(kernels->prepare_attention(kernels, &odd, by, sizeof by));
    assert_string_equal(by, "Spillway's own kernels");
    kernels_cuda_destroy(kernels);
}

/* --- rates ------------------------------------------------------------------------------------- */

/* Returns a member of an object, a number. */
static double member(const json_t *object, const char *key)
{
    const json_t *const value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no %s", key);
    return json_number_value(value);
}

/* The part of the output of exec/cuda/gpu-check about attention. */
static void test_rates(void **state)
{
    (void)state;
    static const struct gpu_attention_shape shapes[] = {{1, 33, 4, 2, 16, true, true},
                                                        {2, 8, 2, 2, 8, false, false}};
    struct json_out *const json = json_out_create(NULL);
    struct error err = {0};
    json_out_object_begin(json, NULL, false);
    executions();
    if (gpu_attention_write(json, "attention_bf16", shapes, ARRAY_COUNT(shapes), &err) != STATUS_OK)
        fail_msg("%s", err.text);
    json_out_object_end(json);
    assert_true(executions() > 0);
    json_t *const root = json_loads(json_out_text(json, NULL), 0, NULL);
    json_out_destroy(json);
    assert_non_null(root);
    const json_t *const all = json_object_get(root, "attention_bf16");
    assert_int_equal(json_array_size(all), 2);
    for (size_t i = 0; i < 2; i++)
        for (int own = 0; own < 2; own++) {
            const json_t *const way = json_object_get(json_array_get(all, i), own ? "own" : "usual");
            const char *const by = json_string_value(json_object_get(way, "by"));
            assert_string_equal(by, own ? "Spillway's own kernels (cuDNN is left out)" : "cuDNN 9.19.0");
            assert_true(member(way, "forward_flops_per_s") > 0);
            assert_true(member(way, "backward_flops_per_s") > 0);
            if (i > 0) continue;
            assert_true(member(way, "out_from_host") < 1.0 / 32);
            assert_true(member(way, "dq_from_host") < 1.0 / 32);
            assert_true(member(way, "dk_from_host") < 1.0 / 32);
            assert_true(member(way, "dv_from_host") < 1.0 / 32);
        }
    json_decref(root);
}

/* --- trainings --------------------------------------------------------------------------------- */

enum { STEPS = 3 };

struct training {
    double losses[STEPS];
    uint64_t weights;
    char libraries[512], note[512];
};

static void keep_note(void *context, const char *text)
{
    struct training *const training = context;
    snprintf(training->note, sizeof training->note, "%s", text);
}

static struct training train(const char *backend, uint64_t memory_bytes, const char *policy,
                             uint64_t delay_seed)
{
    static const char config[] =
        "{\"model_type\": \"llama\", \"vocab_size\": 67, \"hidden_size\": 32, "
        "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
        "\"intermediate_size\": 44, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-5}";
    struct training out = {.note = ""};
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    const struct planner_options options = {.policy = policy, .activations = PLANNER_AUTO, .seed = 1};
    const struct run_options run = {
        .poison = true, .delay_seed = delay_seed, .on_note = keep_note, .context = &out};
    test_hardware(&hardware, 1, memory_bytes, 1e9);
    hardware.backend = backend;
    hardware.threads = strcmp(backend, "host") == 0;
    hardware.host_bytes.value = 1e9;
    test_network_jobs(&jobs, 1, config, STEPS);
    jobs.jobs[0].precision = PRECISION_BF16_WEIGHTS;
    enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
    if (!status) status = run_plan(&plan, &run, &result, &trace, &err);
    if (status) fail_msg("%s", err.text);
    assert_memory_as_planned(&plan, &result);
    memcpy(out.losses, result.jobs[0].losses, sizeof out.losses);
    out.weights = result.jobs[0].weights_fingerprint;
    snprintf(out.libraries, sizeof out.libraries, "%s", result.libraries);
    run_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    return out;
}

/* Spilled equals resident with the library, too; losses with and without it equal the host's up to rounding. */
static void test_trainings(void **state)
{
    (void)state;
    executions();
    const struct training alone = train("cuda", 1 << 26, "model-parallel", 0);
    assert_true(executions() > 0);
    assert_non_null(strstr(alone.libraries, ", bf16 attention by cuDNN 9.19.0"));
    assert_string_equal(alone.note, "");
    const struct training spilled = train("cuda", 400000, "sharded-lrtf", 5);
    assert_memory_equal(alone.losses, spilled.losses, sizeof alone.losses);
    assert_int_equal(alone.weights, spilled.weights);

    setenv("SPILLWAY_CUDNN", "off", 1);
    const struct training own = train("cuda", 1 << 26, "model-parallel", 0);
    setenv("SPILLWAY_CUDNN", EMULATED_CUDNN, 1);
    assert_non_null(strstr(own.libraries, ", bf16 attention by Spillway's own kernels (cannot load "
                                          "cuDNN: SPILLWAY_CUDNN is 'off')"));
    assert_non_null(strstr(own.note, "is computed by Spillway's own kernels (cannot load cuDNN: "));
    const struct training host_run = train("host", 1 << 26, "model-parallel", 0);
    assert_null(strstr(host_run.libraries, "attention"));
    for (int i = 0; i < STEPS; i++) {
        assert_true(fabs(alone.losses[i] - host_run.losses[i]) < 2e-3);
        assert_true(fabs(own.losses[i] - host_run.losses[i]) < 2e-3);
    }
    assert_true(alone.weights != own.weights);
}

int main(void)
{
    const struct CMUnitTest kernels[] = {KERNEL_CASES_ATTENTION(KERNEL_CASE_TEST)
                                         cmocka_unit_test(test_it_was_used),
                                         cmocka_unit_test(test_as_the_host),
                                         cmocka_unit_test(test_pieces),
                                         cmocka_unit_test(test_refusals),
                                         cmocka_unit_test(test_no_other_way_later)};
    const struct CMUnitTest trainings[] = {cmocka_unit_test(test_rates),
                                           cmocka_unit_test(test_trainings)};
    if (open_library(NULL)) return 1;
    return cmocka_run_group_tests_name("attention by cuDNN", kernels, open_kernels, close_kernels) +
           cmocka_run_group_tests_name("trainings with cuDNN", trainings, NULL, NULL);
}
