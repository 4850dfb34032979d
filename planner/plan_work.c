/*
 * The kernels of a COMPUTE operation, summed over its layers.
 *
 * models/ knows the work of one pass over one layer. An operation is a few passes over a run of layers, nearly all
 * equal blocks: their work is the first block's, with counts multiplied by the run's length. So 3000 layers cost as
 * much as 3.
 *
 *     backward of [block, block, block]:  forward x 2 and recompute x 1, backward x 3, update x 3
 *                                         (the last block's output is not needed again)
 *       from the inputs of the blocks:    recompute x 3, backward x 3, update x 3
 *     loss of [block, block, head]
 *       from the inputs of the blocks:    forward x 3, recompute x 1, backward x 3, update x 3
 *                                         (the last block's activations are still there)
 *     backward of [embedding]:            backward, update: rows are not gathered again, because its
 *                                         backward pass needs the tokens only
 *
 * With k microbatches all passes count k times, except an embedding's, which take all samples at once, and the update.
 * Adding gradients up k - 1 times is a sum over all parameters; where sums are a tree, those of a tied table are added
 * up apart from its product, too. The update then comes after all passes, as in a unit of
 * its own: parameters and gradients have left the cache (KERNEL_ADAMW_APART and the like).
 *
 * Slices. An embedding's tables are consecutive rows of C numbers, so any range of rows can be updated by itself. The
 * parts of a slice's work in proportion to its rows (sweeping the table's gradient, the optimizer) are divided by rows;
 * parts once per microbatch (gathering and adding the tokens, norms) belong to the slice with row 0. So a shard's
 * slices sum to the whole. For V + P = 50257 + 1024 rows in two slices of 25641 and 25640:
 *
 *                       whole                   rows 0..25640         rows 25641..51280
 *     embed_backward    m = R, k = 51281        m = R, k = 25641      m = 0, k = 25640
 *     adamw             m = 51281 C             m = 25641 C           m = 25640 C
 *
 * Measured layers (KERNEL_FIXED) are one item; all other networks stay far below PLAN_WORK_ITEMS_MAX.
 */
#include "planner/plan_work.h"

#include <assert.h>

#include "base/extreme.h"
#include "models/job/memory.h"
#include "models/kernel/work_list.h"

/* --- whole layers --------------------------------------------------------------------------- */

static void add_layers(struct work_list *list, const struct job *job, uint64_t first_layer,
                       uint64_t layer_count, enum network_pass pass)
{
    const struct network *network = &job->network;
    uint64_t end = first_layer + layer_count;
    for (uint64_t layer = first_layer, next; layer < end; layer = next) {
        next = network_alike_end(network, layer);
        if (next > end) next = end;
        struct work_item items[LAYER_WORK_MAX];
        uint64_t samples = job_pass_samples(job, layer);
        uint64_t microbatches = pass == PASS_UPDATE ? 1 : job_samples(job) / samples;
        uint32_t count = network_layer_work(network, layer, pass, samples, job->sequence,
                                            job_state_format(job), items);
        for (uint32_t i = 0; i < count; i++) work_list_add(list, &items[i], (next - layer) * microbatches);
    }
}

/* Adds the sums of gradients of all microbatches but the first. */
static void add_sums(struct work_list *list, const struct job *job, uint64_t first_layer,
                     uint64_t layer_count)
{
    if (!(job_pass_way(job, first_layer) & UNIT_ACCUMULATE)) return;
    for (uint64_t layer = first_layer; layer < first_layer + layer_count; layer++) {
        struct work_item sum = {.kernel = KERNEL_RESIDUAL, .count = 1, .n = 1};
        sum.m = network_layer_trained_parameters(&job->network, layer);
        if (sum.m > 0) work_list_add(list, &sum, job->microbatches - 1);
    }
    if (!job->tree || first_layer + layer_count < job->network.layer_count) return;
    struct work_item table = {.kernel = KERNEL_RESIDUAL, .count = 1, .n = 1};
    const struct memory_level level = memory_level(&job->network, first_layer, layer_count);
    table.m = (level.loss_offset - level.table_offset) / sizeof(float);
    if (table.m > 0) work_list_add(list, &table, job->microbatches - 1);
}

static void add_recomputed(struct work_list *list, const struct job *job, uint64_t first_layer,
                           uint64_t layer_count, enum plan_pass pass, uint32_t how)
{
    uint64_t end = first_layer + layer_count, fresh = 0;
    if (pass == PLAN_LOSS) { /* the activations of the head and of the layer before it are still there */
        if (!unit_holds_inputs(UNIT_LOSS, how)) return;
        fresh = network_layer_kind(&job->network, end - 1) == LAYER_HEAD ? 2 : 1;
    } else if (!(how & UNIT_KEEP)) {
        if (layer_count > 1) add_layers(list, job, first_layer, layer_count - 1, PASS_FORWARD);
        first_layer = end - 1;
    } else if (!unit_holds_inputs(UNIT_BACKWARD, how)) {
        return;
    }
    if (unit_holds_inputs(pass == PLAN_LOSS ? UNIT_LOSS : UNIT_BACKWARD, how))
        first_layer = max_u64(first_layer, network_first_trained(&job->network)); /* no inputs are needed below */
    if (end > first_layer + fresh)
        add_layers(list, job, first_layer, end - first_layer - fresh, PASS_RECOMPUTE);
}

static void add_squares(struct work_list *list, const struct job *job, uint64_t first_layer,
                        uint64_t layer_count)
{
    struct work_item squares = {.kernel = KERNEL_SQUARES, .count = 1};
    for (uint64_t layer = first_layer; layer < first_layer + layer_count; layer++)
        squares.m += network_layer_trained_parameters(&job->network, layer);
    if (squares.m > 0) work_list_add(list, &squares, 1);
}

/* Makes steps of a pass of its own of those that follow the gradients at once. */
static void step_apart(struct work_list *list, const struct job *job)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].kernel == optimizer_kernel(job_state_format(job), false))
            list->items[i].kernel = optimizer_kernel(job_state_format(job), true);
}

/* --- slices of an embedding ----------------------------------------------------------------- */

static uint64_t overlap(uint64_t total, uint64_t first, uint64_t count)
{
    if (first >= total) return 0;
    return count < total - first ? count : total - first;
}

static void add_sliced_pass(struct work_list *list, const struct job *job, uint64_t layer,
                            enum network_pass pass, uint64_t first_row, uint64_t row_count)
{
    struct work_item items[LAYER_WORK_MAX];
    uint32_t count = network_layer_work(&job->network, layer, pass, job_samples(job), job->sequence,
                                        job_state_format(job), items);
    for (uint32_t i = 0; i < count; i++) {
        struct work_item item = items[i];
        if (item.kernel == KERNEL_EMBED_BACKWARD) {
            item.k = overlap(item.k, first_row, row_count);
            if (first_row > 0) item.m = 0;
            if (item.m == 0 && item.k == 0) continue;
        } else if (first_row > 0) {
            continue;
        }
        work_list_add(list, &item, 1);
    }
}

static void add_sliced_update(struct work_list *list, const struct job *job, uint64_t layer,
                              uint64_t first_row, uint64_t row_count)
{
    struct work_item items[LAYER_WORK_MAX];
    uint32_t count = network_layer_work(&job->network, layer, PASS_UPDATE, job_samples(job),
                                        job->sequence, job_state_format(job), items);
    if (count == 0) return;
    uint64_t width = job->network.width;
    struct work_item share = {.kernel = items[0].kernel, .count = 1, .n = items[0].n};
    share.m = overlap(network_layer_parameters(&job->network, layer),
                      work_product(first_row, width), work_product(row_count, width));
    if (share.m > 0) work_list_add(list, &share, 1);
}

/* Adds the copying of kept outputs' rows. */
static void add_recalled(struct work_list *list, const struct job *job)
{
    const uint64_t bytes = job_samples(job) * job_output_bytes(job), width = job->network.width;
    const bool half = job->precision == PRECISION_BF16;
    const struct work_item rows = {.kernel = half ? KERNEL_EMBED_HALF_FORWARD : KERNEL_EMBED_FORWARD, .count = 1,
                                   .m = bytes / (width * (half ? 2 : sizeof(float))), .n = width};
    work_list_add(list, &rows, 1);
}

/* --- public --------------------------------------------------------------------------------- */

uint32_t plan_work_items(const struct job *job, uint64_t first_layer, uint64_t layer_count,
                         enum plan_pass pass, uint32_t how, uint64_t first_row, uint64_t row_count,
                         struct work_item items[PLAN_WORK_ITEMS_MAX])
{
    assert(layer_count > 0);
    assert(first_layer <= job->network.layer_count - layer_count);
    struct work_list list = {.items = items, .capacity = PLAN_WORK_ITEMS_MAX};
    bool embedding = network_layer_kind(&job->network, first_layer) == LAYER_EMBEDDING;
    bool forward = pass == PLAN_FORWARD || pass == PLAN_LOSS || pass == PLAN_EVALUATE;
    bool backward = pass == PLAN_LOSS || pass == PLAN_BACKWARD;
    bool update = pass == PLAN_UPDATE || (backward && !(how & UNIT_GRADIENTS_OUT));
    bool apart = pass == PLAN_UPDATE || (job_pass_way(job, first_layer) & UNIT_ACCUMULATE);

    if (pass == PLAN_RECALL) {
        add_recalled(&list, job);
        return list.count;
    }
    if (row_count > 0) {
        assert(embedding && layer_count == 1);
        if (forward) add_sliced_pass(&list, job, first_layer, PASS_FORWARD, first_row, row_count);
        if (backward) add_sliced_pass(&list, job, first_layer, PASS_BACKWARD, first_row, row_count);
        if (update) add_sliced_update(&list, job, first_layer, first_row, row_count);
        if (apart) step_apart(&list, job);
        return list.count;
    }
    if (pass == PLAN_NORM) add_squares(&list, job, first_layer, layer_count);
    if (forward) add_layers(&list, job, first_layer, layer_count, PASS_FORWARD);
    if (backward && !embedding)
        add_recomputed(&list, job, first_layer, layer_count, pass, how);
    if (backward) add_layers(&list, job, first_layer, layer_count, PASS_BACKWARD);
    if (backward) add_sums(&list, job, first_layer, layer_count);
    if (update) add_layers(&list, job, first_layer, layer_count, PASS_UPDATE);
    if (apart) step_apart(&list, job);
    return list.count;
}
