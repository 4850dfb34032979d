/* label: device
 *
 * The real cuDNN, where it is found, without a GPU: our descriptors, and the choice of engines and plans for
 * devices that are described to the library and not there. It is asked everything but to compute; it even
 * compiles, and loads the code into a driver of ours (tests/emulator/cudnn/described_driver.c).
 *
 * Two things need a GPU and are not done here: creating a handle, and carrying a plan out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifndef SPILLWAY_CUDNN

static void test_left_out(void **state)
{
    (void)state;
    print_message("built without CUDA or without cuDNN's header\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_left_out)};
    return cmocka_run_group_tests_name("cuDNN", tests, NULL, NULL);
}

#else

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "exec/cuda/attention_cudnn.h"
#include "models/job/memory.h"

static struct cudnn_library library;

static void need_library(void)
{
    if (library.handle) return;
    struct error err = {0};
    if (cudnn_library_open(&library, &err) == STATUS_OK) return;
    print_message("skipped: %s\n", err.text);
    skip();
}

static struct kernel_attention shape_of(const int64_t s[6])
{
    return (struct kernel_attention){.b = s[0], .t = s[1], .h = s[2], .kv = s[3], .d = s[4],
                                     .causal = s[5], .rounded = true};
}

/* GPT-2, Llama 3 8B, BERT base, ViT base, and lengths and groups that nothing divides. */
static const int64_t shapes[][6] = {{4, 1024, 12, 12, 64, true}, {1, 2048, 32, 8, 128, true},
                                    {8, 512, 12, 12, 64, false}, {4, 197, 12, 12, 64, false},
                                    {3, 1001, 6, 2, 128, true},  {1, 1, 1, 1, 8, false},
                                    {5, 77, 7, 7, 72, true}};

static void test_descriptors(void **state)
{
    (void)state;
    need_library();
    print_message("cuDNN %zu\n", library.version);
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        const struct kernel_attention shape = shape_of(shapes[i]);
        uint64_t wants[2];
        char why[2][CUDNN_GRAPH_REASON];
        attention_cudnn_describe(&library, NULL, &shape, wants, why);
        if (why[0][0] || why[1][0]) fail_msg("shape %zu: %s%s", i, why[0], why[1]);
    }
}

/* The library checks a graph: its first error is kept. */
static void test_wrong_descriptors(void **state)
{
    (void)state;
    need_library();
    struct cudnn_graph graph = {.library = &library};
    const int64_t one[4] = {1, 2, 16, 16}, negative[4] = {1, 2, -16, 16}, strides[4] = {512, 256, 16, 1};
    const struct cudnn_tensor a = cudnn_array(&graph, 1, CUDNN_DATA_BFLOAT16, one, strides);
    assert_string_equal(graph.failure, "");
    cudnn_array(&graph, 2, CUDNN_DATA_BFLOAT16, negative, strides);
    assert_true(strncmp(graph.failure, "a tensor: status ", 17) == 0);
    char first[CUDNN_GRAPH_REASON];
    memcpy(first, graph.failure, sizeof first);
    cudnn_matmul(&graph, a, a, a);
    assert_string_equal(graph.failure, first);
    cudnn_graph_release(&graph);

    struct cudnn_graph other = {.library = &library};
    const struct cudnn_tensor x = cudnn_array(&other, 1, CUDNN_DATA_BFLOAT16, one, strides);
    const struct cudnn_tensor y = cudnn_array(&other, 2, CUDNN_DATA_BFLOAT16,
                                              (int64_t[]){1, 2, 24, 16}, (int64_t[]){768, 384, 16, 1});
    cudnn_matmul(&other, x, y, x);
    assert_true(strncmp(other.failure, "a product: status ", 18) == 0);
    cudnn_graph_release(&other);
}

/* --- devices that are not there ------------------------------------------------------------------ */

/* The properties of a device that the library asks for, from data sheets. */
struct described {
    const char *name;
    int version, processors, shared, blocks, threads;
};
static const struct described h200 = {"H200", 900, 132, 232448, 32, 2048};
static const struct described a100 = {"A100", 800, 108, 166912, 32, 2048};

static cudnnBackendDescriptor_t describe(const struct described *d)
{
    char text[1024];
    cudnnBackendDescriptor_t device = NULL;
    const int length = snprintf(
        text, sizeof text,
        "{\"deviceName\": \"%s\", \"deviceVer\": %d, \"multiProcessorCount\": %d, "
        "\"maxSharedMemoryPerBlockOptin\": %d, \"maxCtasPerSM\": %d, \"maxThreadsPerSM\": %d, "
        "\"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64], "
        "\"cudaDeviceId\": 0, \"regsPerBlock\": 65536, \"smClockRateKHz\": 1700000, "
        "\"memClockRateKHz\": 2600000, \"l2CacheSize\": 41943040, \"warpSize\": 32, "
        "\"maxSharedMemoryPerBlock\": 49152, \"reservedSharedMemoryPerBlock\": 1024, "
        "\"maxRegistersPerSM\": 65536, \"pciDeviceId\": 0, \"maxThreadsPerBlock\": 1024, "
        "\"isTccDriver\": 0, \"supportCoopLaunch\": 1, \"driverVer\": 13000, "
        "\"totalGlobalMem\": 80000000000}",
        d->name, d->version, d->processors, d->shared, d->blocks, d->threads);
    if (library.create_descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device) !=
            CUDNN_STATUS_SUCCESS ||
        library.set_attribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                              length, text) != CUDNN_STATUS_SUCCESS ||
        library.finalize(device) != CUDNN_STATUS_SUCCESS) {
        char reason[256];
        cudnn_library_reason(&library, CUDNN_STATUS_BAD_PARAM, reason, sizeof reason);
        fail_msg("the %s: %s", d->name, reason);
    }
    return device;
}

/* Describing devices is new in 9.8, and its required attributes are undocumented: these are 9.19's. */
static void need_described_devices(void)
{
    need_library();
    if (library.version / 100 == 919) return;
    print_message("skipped: what cuDNN %zu wants to know of a device is not known\n",
                  library.version);
    skip();
}

static void plan(const struct described *described, const int64_t s[6], uint64_t wants[2],
                 char why[2][CUDNN_GRAPH_REASON])
{
    cudnnBackendDescriptor_t const device = describe(described);
    const struct kernel_attention shape = shape_of(s);
    attention_cudnn_describe(&library, device, &shape, wants, why);
    library.destroy_descriptor(device);
    print_message("%s, B %lld T %lld H %lld K %lld D %lld%s: %lld and %lld bytes %s%s\n",
                  described->name, (long long)s[0], (long long)s[1], (long long)s[2],
                  (long long)s[3], (long long)s[4], s[5] ? ", causal" : "", (long long)wants[0],
                  (long long)wants[1], why[0], why[1]);
}

/* Plans for the shapes of the networks, in both directions, within what the planner grants. */
static void test_plans(void **state)
{
    (void)state;
    need_described_devices();
    const struct {
        const struct described *device;
        size_t shape;
    } cases[] = {{&h200, 0}, {&h200, 1}, {&h200, 2}, {&h200, 3},
                 {&h200, 4}, {&h200, 6}, {&a100, 0}, {&a100, 3}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        uint64_t wants[2];
        char why[2][CUDNN_GRAPH_REASON];
        plan(cases[i].device, shapes[cases[i].shape], wants, why);
        if (why[0][0] || why[1][0]) fail_msg("%s%s", why[0], why[1]);
    }
}

/* The planner grants the memory that the library asks for with heads that share keys, and not much more. */
static void test_the_grant(void **state)
{
    (void)state;
    need_described_devices();
    static const int64_t groups[][6] = {{1, 512, 1, 1, 64, true},   {1, 1000, 1, 1, 128, false},
                                        {1, 2048, 4, 1, 128, true}, {1, 333, 3, 1, 64, true}};
    for (size_t i = 0; i < ARRAY_COUNT(groups); i++) {
        const int64_t *const s = groups[i];
        const struct attention_sizes sizes = {(uint64_t)s[0], (uint64_t)s[1], (uint64_t)s[2],
                                              (uint64_t)s[3], (uint64_t)s[4]};
        uint64_t wants[2];
        char why[2][CUDNN_GRAPH_REASON];
        plan(&h200, s, wants, why);
        for (int back = 0; back < 2; back++) {
            const uint64_t granted = memory_attention_library(sizes, back) * sizeof(float);
            assert_true(wants[back] <= granted);
            assert_true(wants[back] + 4096 >= granted);
        }
    }
}

/* Shapes that the library does not support, and one for which it wants too much memory. */
static void test_no_plans(void **state)
{
    (void)state;
    need_described_devices();
    uint64_t wants[2];
    char why[2][CUDNN_GRAPH_REASON];
    plan(&a100, (int64_t[]){1, 64, 1, 1, 256, true}, wants, why);
    assert_string_equal(why[0], "");
    assert_non_null(strstr(why[1], "no engine for the graph (0 proposed"));
    assert_true(wants[1] == UINT64_MAX);
    plan(&h200, (int64_t[]){1, 16384, 1, 1, 64, true}, wants, why);
    assert_string_equal(why[0], "");
    assert_non_null(strstr(why[1], "bytes of workspace, and the plan grants 8388352"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors), cmocka_unit_test(test_wrong_descriptors),
        cmocka_unit_test(test_plans),       cmocka_unit_test(test_the_grant),
        cmocka_unit_test(test_no_plans),
    };
    /* in place of a driver, which the library finds by its name */
    if (!dlopen(DESCRIBED_DRIVER, RTLD_NOW | RTLD_GLOBAL)) print_message("%s\n", dlerror());
    const int failed = cmocka_run_group_tests_name("cuDNN", tests, NULL, NULL);
    cudnn_library_close(&library);
    return failed;
}

#endif
