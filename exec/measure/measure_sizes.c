/*
 * Products, convolutions and attention are measured on full grids, over which models/cost/cost.h interpolates in three
 * dimensions; other kernels at a few sizes, by their bytes. The widest axis ends at 3072: a product with 50257 columns
 * runs as fast.
 */
#include "exec/measure/measure_state.h"

#include "base/size.h"

struct axis {
    const uint64_t *sizes;
    uint32_t count;
};
#define AXIS(...) {(const uint64_t[]){__VA_ARGS__}, ARRAY_COUNT(((const uint64_t[]){__VA_ARGS__}))}

struct class_sizes {
    struct axis grid[MEASURE_BENCH_SIZES][3]; /* [how large][m, n, k] */
    const uint64_t (*sizes)[3];     /* NULL: the grid; ascending */
    uint32_t size_count;            /* MEASURE_BENCH_SMALL takes COARSE_SIZES */
    const uint64_t (*gpu_sizes)[3];
    uint32_t gpu_size_count;
};
/* For kernels that GPUs do not have. */
#define HOST_SIZES(list) .sizes = list, .size_count = ARRAY_COUNT(list)
#define SIZES(list)                                                        \
    .sizes = list, .size_count = ARRAY_COUNT(list), .gpu_sizes = gpu_##list, \
    .gpu_size_count = ARRAY_COUNT(gpu_##list)
enum { COARSE_SIZES = 2 };

static const uint64_t norm_sizes[][3] = {
    {16, 128, 1}, {64, 256, 1}, {256, 512, 1}, {1024, 768, 1}, {4096, 1024, 1}};
static const uint64_t wide_sizes[][3] = {
    {16, 512, 0}, {64, 1024, 0}, {256, 2048, 0}, {1024, 3072, 0}, {2048, 4096, 0}};
static const uint64_t narrow_sizes[][3] = {
    {16, 128, 0}, {64, 256, 0}, {256, 512, 0}, {1024, 768, 0}, {4096, 1024, 0}};
static const uint64_t table_sizes[][3] = {{64, 128, 320}, {256, 256, 1280}, {256, 512, 8256}};
static const uint64_t loss_sizes[][3] = {
    {16, 256, 0}, {64, 16384, 0}, {128, 256, 0}, {256, 50257, 0}, {1024, 256, 0}};
static const uint64_t parameter_sizes[][3] = {
    {3 << 14, 0, 0}, {3 << 16, 0, 0}, {3 << 18, 0, 0}, {3 << 20, 0, 0}, {3 << 22, 0, 0}};

static const uint64_t image_sizes[][3] = {
    {64, 64, 0}, {1024, 64, 0}, {4096, 128, 0}, {16384, 64, 0}, {65536, 64, 0}};
static const uint64_t pool_sizes[][3] = {
    {384, 64, 0}, {1536, 128, 0}, {6144, 128, 0}, {24576, 64, 0}, {98304, 64, 0}};

static const uint64_t gpu_norm_sizes[][3] = {
    {64, 256, 1}, {256, 512, 1}, {1024, 768, 1}, {4096, 1024, 1}, {16384, 4096, 1}};
static const uint64_t gpu_wide_sizes[][3] = {
    {64, 1024, 0}, {256, 2048, 0}, {1024, 3072, 0}, {4096, 4096, 0}, {8192, 16384, 0}};
static const uint64_t gpu_narrow_sizes[][3] = {
    {64, 256, 0}, {256, 512, 0}, {1024, 768, 0}, {4096, 1024, 0}, {4096, 4096, 0}};
static const uint64_t gpu_table_sizes[][3] = {
    {64, 128, 320}, {256, 512, 8256}, {1024, 768, 50321}, {4096, 768, 50321}};
static const uint64_t gpu_loss_sizes[][3] = {
    {64, 16384, 0}, {128, 256, 0}, {256, 50257, 0}, {1024, 50257, 0}, {2048, 50257, 0}};
static const uint64_t gpu_parameter_sizes[][3] = {
    {3 << 16, 0, 0}, {3 << 18, 0, 0}, {3 << 20, 0, 0}, {3 << 22, 0, 0}, {3 << 25, 0, 0}};

#define GPU_ROWS AXIS(64, 256, 1024, 4096, 16384)
#define GPU_WIDTHS AXIS(256, 768, 2048, 5120)
#define GPU_HEADS AXIS(16, 128)
#define GPU_LENGTHS AXIS(64, 256, 1024, 2048)
#define GPU_HEAD_WIDTHS AXIS(32, 64, 128)
#define ROWS AXIS(16, 64, 256, 1024)
#define WIDTHS AXIS(128, 384, 1024, 3072)
#define COARSE_ROWS AXIS(16, 256)
#define COARSE_WIDTHS AXIS(128, 1024)
#define PIXELS AXIS(144, 1024, 4096)
#define CHANNELS AXIS(16, 96, 384)
#define TAPS_3X3 AXIS(9 * 16, 9 * 96, 9 * 384)
#define COARSE_PIXELS AXIS(144, 1024)
#define COARSE_CHANNELS AXIS(16, 384)
#define COARSE_TAPS_3X3 AXIS(9 * 16, 9 * 384)
#define HALVED_PIXELS AXIS(256, 2048)
#define HALVED_CHANNELS AXIS(64, 384)
#define HALVED_TAPS AXIS(7 * 7 * 3, 9 * 96, 9 * 384)
#define COARSE_HALVED_PIXELS AXIS(256)
#define COARSE_HALVED_TAPS AXIS(7 * 7 * 3, 9 * 96)
#define HEADS AXIS(4, 32)
#define LENGTHS AXIS(16, 32, 64, 128, 256, 1024)
#define FEW_LENGTHS AXIS(16, 64, 256, 1024)
#define HEAD_WIDTHS AXIS(16, 32, 64)

static const struct class_sizes class_sizes[KERNEL_COUNT] = {
    [KERNEL_MATMUL_FORWARD] = {.grid = {{ROWS, WIDTHS, WIDTHS},
                                        {COARSE_ROWS, COARSE_WIDTHS, COARSE_WIDTHS},
                                        {GPU_ROWS, GPU_WIDTHS, GPU_WIDTHS}}},
    [KERNEL_MATMUL_INPUT] = {.grid = {{ROWS, WIDTHS, WIDTHS},
                                      {COARSE_ROWS, COARSE_WIDTHS, COARSE_WIDTHS},
                                      {GPU_ROWS, GPU_WIDTHS, GPU_WIDTHS}}},
    [KERNEL_MATMUL_WEIGHT] = {.grid = {{WIDTHS, WIDTHS, ROWS},
                                       {COARSE_WIDTHS, COARSE_WIDTHS, COARSE_ROWS},
                                       {GPU_WIDTHS, GPU_WIDTHS, GPU_ROWS}}},
    [KERNEL_ATTENTION_FULL_FORWARD] = {.grid = {{HEADS, FEW_LENGTHS, HEAD_WIDTHS},
                                                {AXIS(4), AXIS(16, 256), AXIS(16, 64)},
                                                {GPU_HEADS, GPU_LENGTHS, GPU_HEAD_WIDTHS}}},
    [KERNEL_ATTENTION_FULL_BACKWARD] = {.grid = {{HEADS, FEW_LENGTHS, HEAD_WIDTHS},
                                                 {AXIS(4), AXIS(16, 256), AXIS(16, 64)},
                                                 {GPU_HEADS, GPU_LENGTHS, GPU_HEAD_WIDTHS}}},
    [KERNEL_ATTENTION_FORWARD] = {.grid = {{HEADS, LENGTHS, HEAD_WIDTHS},
                                           {AXIS(4), AXIS(16, 256), AXIS(16, 64)},
                                           {GPU_HEADS, GPU_LENGTHS, GPU_HEAD_WIDTHS}}},
    [KERNEL_ATTENTION_BACKWARD] = {.grid = {{HEADS, LENGTHS, HEAD_WIDTHS},
                                            {AXIS(4), AXIS(16, 256), AXIS(16, 64)},
                                            {GPU_HEADS, GPU_LENGTHS, GPU_HEAD_WIDTHS}}},
    [KERNEL_NORM_FORWARD] = {SIZES(norm_sizes)},
    [KERNEL_NORM_BACKWARD] = {SIZES(norm_sizes)},
    [KERNEL_GELU_FORWARD] = {SIZES(wide_sizes)},
    [KERNEL_GELU_BACKWARD] = {SIZES(wide_sizes)},
    [KERNEL_RESIDUAL] = {SIZES(narrow_sizes)},
    [KERNEL_BIAS_BACKWARD] = {SIZES(wide_sizes)},
    [KERNEL_EMBED_FORWARD] = {SIZES(narrow_sizes)},
    [KERNEL_EMBED_BACKWARD] = {SIZES(table_sizes)},
    [KERNEL_LOSS] = {SIZES(loss_sizes)},
    [KERNEL_SGD] = {SIZES(parameter_sizes)},
    [KERNEL_ADAMW] = {SIZES(parameter_sizes)},
    [KERNEL_RMS_NORM_FORWARD] = {SIZES(norm_sizes)},
    [KERNEL_RMS_NORM_BACKWARD] = {SIZES(norm_sizes)},
    [KERNEL_ROPE] = {SIZES(narrow_sizes)},
    [KERNEL_SWIGLU_FORWARD] = {SIZES(wide_sizes)},
    [KERNEL_SWIGLU_BACKWARD] = {SIZES(wide_sizes)},
    [KERNEL_GATHER] = {SIZES(narrow_sizes)},
    [KERNEL_MOMENTUM] = {SIZES(parameter_sizes)},
    [KERNEL_SQUARES] = {SIZES(parameter_sizes)},
    [KERNEL_ADAMW_BF16] = {SIZES(parameter_sizes)},
    [KERNEL_MOMENTUM_BF16] = {SIZES(parameter_sizes)},
    [KERNEL_SGD_APART] = {SIZES(parameter_sizes)},
    [KERNEL_ADAMW_APART] = {SIZES(parameter_sizes)},
    [KERNEL_MOMENTUM_APART] = {SIZES(parameter_sizes)},
    [KERNEL_ADAMW_BF16_APART] = {SIZES(parameter_sizes)},
    [KERNEL_MOMENTUM_BF16_APART] = {SIZES(parameter_sizes)},
    [KERNEL_ROUND] = {SIZES(parameter_sizes)},
    [KERNEL_CONVOLUTION_FORWARD] = {.grid = {{HALVED_PIXELS, HALVED_CHANNELS, HALVED_TAPS},
                                             {COARSE_HALVED_PIXELS, HALVED_CHANNELS, COARSE_HALVED_TAPS}}},
    [KERNEL_CONVOLUTION_INPUT] = {.grid = {{HALVED_PIXELS, HALVED_TAPS, HALVED_CHANNELS},
                                           {COARSE_HALVED_PIXELS, COARSE_HALVED_TAPS, HALVED_CHANNELS}}},
    [KERNEL_CONVOLUTION_WEIGHT] = {.grid = {{HALVED_CHANNELS, HALVED_TAPS, HALVED_PIXELS},
                                            {HALVED_CHANNELS, COARSE_HALVED_TAPS, COARSE_HALVED_PIXELS}}},
    [KERNEL_CONVOLUTION_3X3_FORWARD] = {.grid = {{PIXELS, CHANNELS, TAPS_3X3},
                                                 {COARSE_PIXELS, COARSE_CHANNELS, COARSE_TAPS_3X3}}},
    [KERNEL_CONVOLUTION_3X3_INPUT] = {.grid = {{PIXELS, TAPS_3X3, CHANNELS},
                                               {COARSE_PIXELS, COARSE_TAPS_3X3, COARSE_CHANNELS}}},
    [KERNEL_CONVOLUTION_3X3_WEIGHT] = {.grid = {{CHANNELS, TAPS_3X3, PIXELS},
                                                {COARSE_CHANNELS, COARSE_TAPS_3X3, COARSE_PIXELS}}},
    [KERNEL_BATCH_NORM_FORWARD] = {HOST_SIZES(image_sizes)},
    [KERNEL_BATCH_NORM_BACKWARD] = {HOST_SIZES(image_sizes)},
    [KERNEL_RELU_FORWARD] = {HOST_SIZES(image_sizes)},
    [KERNEL_RELU_BACKWARD] = {HOST_SIZES(image_sizes)},
    [KERNEL_POOL] = {HOST_SIZES(pool_sizes)},
    [KERNEL_MATMUL_BF16_FORWARD] = {.grid = {{ROWS, WIDTHS, WIDTHS},
                                             {COARSE_ROWS, COARSE_WIDTHS, COARSE_WIDTHS},
                                             {GPU_ROWS, GPU_WIDTHS, GPU_WIDTHS}}},
    [KERNEL_MATMUL_BF16_INPUT] = {.grid = {{ROWS, WIDTHS, WIDTHS},
                                           {COARSE_ROWS, COARSE_WIDTHS, COARSE_WIDTHS},
                                           {GPU_ROWS, GPU_WIDTHS, GPU_WIDTHS}}},
    [KERNEL_MATMUL_BF16_WEIGHT] = {.grid = {{WIDTHS, WIDTHS, ROWS},
                                            {COARSE_WIDTHS, COARSE_WIDTHS, COARSE_ROWS},
                                            {GPU_WIDTHS, GPU_WIDTHS, GPU_ROWS}}},
};

uint32_t measure_sizes(enum kernel kernel, enum measure_bench_size size,
                       struct work_item items[HARDWARE_RATE_POINTS_MAX])
{
    const struct class_sizes *const class = &class_sizes[kernel];
    uint32_t count = 0;
    if (class->sizes) {
        const bool gpu = size == MEASURE_BENCH_GPU;
        const uint64_t (*const sizes)[3] = gpu ? class->gpu_sizes : class->sizes;
        const uint32_t all = gpu ? class->gpu_size_count : class->size_count;
        for (uint32_t i = 0; i < (size == MEASURE_BENCH_SMALL ? COARSE_SIZES : all); i++)
            items[count++] =
                (struct work_item){.m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2]};
        return count;
    }
    const struct axis *const axes = class->grid[size];
    for (uint32_t m = 0; m < axes[0].count; m++)
        for (uint32_t n = 0; n < axes[1].count; n++)
            for (uint32_t k = 0; k < axes[2].count; k++)
                items[count++] = (struct work_item){
                    .m = axes[0].sizes[m], .n = axes[1].sizes[n], .k = axes[2].sizes[k]};
    return count;
}
