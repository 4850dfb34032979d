/* A load like training while copies are measured. */
#include "base/size.h"
#include "exec/measure/measure_calls.h"

/* Lists a block 256 wide on 4 samples of 64 tokens. */
static void list_step(struct measure_bench *bench)
{
    const struct network network = {.family = NETWORK_GPT2,
                                    .layer_count = 3,
                                    .width = 256,
                                    .heads = 4,
                                    .head_width = 64,
                                    .ff_width = 1024,
                                    .blocks = 1,
                                    .vocabulary = MEASURE_FEW_WORDS,
                                    .positions = 64,
                                    .tied_head = true,
                                    .causal = true,
                                    .biases = true,
                                    .gelu_tanh = true};
    for (uint32_t pass = PASS_FORWARD; pass <= PASS_UPDATE; pass++) {
        struct work_item items[LAYER_WORK_MAX];
        const uint32_t count = network_layer_work(&network, 1, (enum network_pass)pass, 4, 64,
                                                  (struct state_format){.optimizer = OPTIMIZER_ADAMW},
                                                  items);
        for (uint32_t i = 0; i < count && bench->step_count < ARRAY_COUNT(bench->step); i++)
            bench->step[bench->step_count++] = items[i];
    }
}

void measure_bench_compute_step(const struct kernels *kernels, void *bench_step)
{
    const struct measure_bench_step *const step = bench_step;
    struct measure_bench *const bench = step->bench;
    if (bench->step_count == 0) list_step(bench);
    for (uint32_t i = 0; i < bench->step_count; i++) {
        const struct work_item *const item = &bench->step[i];
        const struct measure_kernel_class *const class = &measure_kernel_classes[item->kernel];
        if (class->less) continue; /* no kernel of its own */
        for (uint32_t again = 0; again < item->count; again++)
            class->call(&(struct measure_call){.bench = bench,
                                               .kernels = kernels,
                                               .m = (int64_t)item->m,
                                               .n = (int64_t)item->n,
                                               .k = (int64_t)item->k,
                                               .operands = step->operands * 4 + again});
    }
}
