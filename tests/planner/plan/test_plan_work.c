/* The work of computations: what each pass consists of, blocks multiplied, slices that sum to the
 * whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "planner/plan_work.h"
#include "tests/support/planner/support_planner.h"

/* Blocks 5, width 8, 96 words, 32 positions, sequence 16, microbatch 2: 32 rows, layers 0 .. 6. */
static void make_jobs(struct job_set *out)
{
    test_gpt_jobs(out, 2, 5, 8, 96, 3);
}

static uint64_t count_of(const struct work_item *items, uint32_t count, uint32_t kernel)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        if (items[i].kernel == kernel) total += items[i].count;
    return total;
}

static void assert_item(const struct work_item *item, struct work_item expected)
{
    assert_int_equal(item->kernel, expected.kernel);
    assert_int_equal(item->count, expected.count);
    assert_int_equal(item->m, expected.m);
    assert_int_equal(item->n, expected.n);
    assert_int_equal(item->k, expected.k);
}

static void test_passes(void **state)
{
    (void)state;
    struct job_set jobs;
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    make_jobs(&jobs);
    const struct job *job = &jobs.jobs[0];

    /* Layers 1 .. 3, forward: 4 products, 2 norms and an attention each. */
    uint32_t count = plan_work_items(job, 1, 3, PLAN_FORWARD, false, 0, 0, items);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_FORWARD), 3 * 4);
    assert_int_equal(count_of(items, count, KERNEL_NORM_FORWARD), 3 * 2);
    assert_int_equal(count_of(items, count, KERNEL_ATTENTION_FORWARD), 3);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_WEIGHT), 0);
    assert_int_equal(count_of(items, count, KERNEL_ADAMW), 0);

    /* Backward recomputes the forward pass unless the activations were kept; nothing reads the last
     * block's output, so its last product and sum are left out. */
    count = plan_work_items(job, 1, 3, PLAN_BACKWARD, false, 0, 0, items);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_FORWARD), 3 * 4 - 1);
    assert_int_equal(count_of(items, count, KERNEL_RESIDUAL), 3 - 1);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_WEIGHT), 3 * 4);
    assert_int_equal(count_of(items, count, KERNEL_ADAMW), 3);
    count = plan_work_items(job, 1, 3, PLAN_BACKWARD, true, 0, 0, items);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_FORWARD), 0);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_WEIGHT), 3 * 4);

    /* The last block and the head: both passes and the loss. The head's two norm vectors are its
     * only parameters: 16. */
    count = plan_work_items(job, 5, 2, PLAN_LOSS, false, 0, 0, items);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_FORWARD), 4 + 1);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_WEIGHT), 4 + 1);
    assert_int_equal(count_of(items, count, KERNEL_LOSS), 1);
    assert_item(&items[count - 1], (struct work_item){KERNEL_ADAMW, 1, 16, 0, 0});
    job_set_release(&jobs);
}

/* From the inputs of blocks: each block is recomputed for itself, so none makes its output again. In
 * the loss all but the last, whose activations are still there. */
static void test_from_inputs(void **state)
{
    (void)state;
    struct job_set jobs;
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    make_jobs(&jobs);
    const struct job *job = &jobs.jobs[0];
    const uint32_t kept = UNIT_KEEP | UNIT_INPUTS;
    uint32_t count = plan_work_items(job, 1, 3, PLAN_FORWARD, kept, 0, 0, items);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_FORWARD), 3 * 4);
    count = plan_work_items(job, 1, 3, PLAN_BACKWARD, kept, 0, 0, items);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_FORWARD), 3 * 3);
    assert_int_equal(count_of(items, count, KERNEL_RESIDUAL), 0);
    assert_int_equal(count_of(items, count, KERNEL_ATTENTION_FORWARD), 3);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_WEIGHT), 3 * 4);
    assert_int_equal(count_of(items, count, KERNEL_ADAMW), 3);
    /* three blocks and the head: forward 3 * 4 + 1, again 2 * 3 */
    count = plan_work_items(job, 3, 4, PLAN_LOSS, UNIT_INPUTS, 0, 0, items);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_FORWARD), 3 * 4 + 1 + 2 * 3);
    assert_int_equal(count_of(items, count, KERNEL_RESIDUAL), 3);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_WEIGHT), 3 * 4 + 1);
    count = plan_work_items(job, 5, 2, PLAN_LOSS, UNIT_INPUTS, 0, 0, items);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_FORWARD), 4 + 1);
    count = plan_work_items(job, 6, 1, PLAN_LOSS, UNIT_INPUTS, 0, 0, items);
    assert_int_equal(count_of(items, count, KERNEL_MATMUL_FORWARD), 1);
    job_set_release(&jobs);
}

/* A run of blocks is a block times its length. */
static void test_many_blocks(void **state)
{
    (void)state;
    struct job_set jobs;
    struct work_item one[PLAN_WORK_ITEMS_MAX], four[PLAN_WORK_ITEMS_MAX];
    make_jobs(&jobs);
    for (enum plan_pass pass = PLAN_FORWARD; pass <= PLAN_BACKWARD; pass++) {
        if (pass == PLAN_LOSS) continue;
        uint32_t count = plan_work_items(&jobs.jobs[1], 2, 1, pass, true, 0, 0, one);
        assert_int_equal(plan_work_items(&jobs.jobs[1], 1, 4, pass, true, 0, 0, four), count);
        for (uint32_t i = 0; i < count; i++) {
            one[i].count *= 4;
            assert_item(&four[i], one[i]);
        }
    }
    job_set_release(&jobs);
}

/* (96 + 32) rows of 8: forward gathers 32 rows; backward adds them into a swept table of 128 rows
 * and updates 1024 parameters; nothing is recomputed. */
static void test_embedding(void **state)
{
    (void)state;
    struct job_set jobs;
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    make_jobs(&jobs);
    assert_int_equal(plan_work_items(&jobs.jobs[0], 0, 1, PLAN_FORWARD, false, 0, 0, items), 1);
    assert_item(&items[0], (struct work_item){KERNEL_EMBED_FORWARD, 1, 32, 8, 0});
    assert_int_equal(plan_work_items(&jobs.jobs[0], 0, 1, PLAN_BACKWARD, false, 0, 0, items), 2);
    assert_item(&items[0], (struct work_item){KERNEL_EMBED_BACKWARD, 1, 32, 8, 128});
    assert_item(&items[1], (struct work_item){KERNEL_ADAMW, 1, 1024, 0, 0});
    job_set_release(&jobs);
}

/* Returns the only kernel that steps parameters. */
static uint32_t stepping_kernel(const struct work_item *items, uint32_t count)
{
    uint32_t found = KERNEL_COUNT;
    for (uint32_t i = 0; i < count; i++)
        if (items[i].kernel == KERNEL_ADAMW || items[i].kernel == KERNEL_ADAMW_APART) {
            assert_int_equal(found, KERNEL_COUNT);
            found = items[i].kernel;
        }
    return found;
}

/* A step right after a layer's backward pass finds gradients in the cache. A unit of its own does not, nor do the steps
 * after the last of several microbatches. */
static void test_steps_apart(void **state)
{
    (void)state;
    struct job_set jobs;
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    make_jobs(&jobs);
    struct job job = jobs.jobs[0];
    uint32_t count = plan_work_items(&job, 1, 1, PLAN_BACKWARD, false, 0, 0, items);
    assert_int_equal(stepping_kernel(items, count), KERNEL_ADAMW);
    count = plan_work_items(&job, 1, 1, PLAN_UPDATE, false, 0, 0, items);
    assert_int_equal(stepping_kernel(items, count), KERNEL_ADAMW_APART);
    job.microbatches = 2;
    count = plan_work_items(&job, 1, 1, PLAN_BACKWARD, false, 0, 0, items);
    assert_int_equal(stepping_kernel(items, count), KERNEL_ADAMW_APART);
    count = plan_work_items(&job, 0, 1, PLAN_BACKWARD, false, 0, 0, items); /* takes all samples at once */
    assert_int_equal(stepping_kernel(items, count), KERNEL_ADAMW);
    job_set_release(&jobs);
}

/* Rows 0..49, 50..99, 100..127: the first gathers and adds, each sweeps and updates its own. */
static void test_slices(void **state)
{
    (void)state;
    static const uint64_t first[] = {0, 50, 100}, rows[] = {50, 50, 28};
    struct job_set jobs;
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    make_jobs(&jobs);
    const struct job *job = &jobs.jobs[1]; /* sgd */
    for (int k = 0; k < 3; k++) {
        uint32_t count =
            plan_work_items(job, 0, 1, PLAN_FORWARD, false, first[k], rows[k], items);
        assert_int_equal(count, k == 0 ? 1 : 0);
        if (k == 0) assert_item(&items[0], (struct work_item){KERNEL_EMBED_FORWARD, 1, 32, 8, 0});
        count = plan_work_items(job, 0, 1, PLAN_BACKWARD, false, first[k], rows[k], items);
        assert_int_equal(count, 2);
        assert_item(&items[0],
                    (struct work_item){KERNEL_EMBED_BACKWARD, 1, k == 0 ? 32 : 0, 8, rows[k]});
        assert_item(&items[1], (struct work_item){KERNEL_SGD, 1, rows[k] * 8, 0, 0});
    }
    job_set_release(&jobs);
}

static struct test_layer odd_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job;
    return (struct test_layer){64, 64, 64, 1000 + layer, 5000 + 10 * layer};
}

/* 300 different layers are more than a list holds; their nanoseconds are one item. Forward of
 * layers 10 .. 309: 300 * 1000 + sum of 10 .. 309 = 300 000 + 47 850; only backward: 300 * 5000 + 478 500. */
static void test_profile(void **state)
{
    (void)state;
    struct job_set jobs;
    struct work_item items[PLAN_WORK_ITEMS_MAX];
    test_profile_jobs(&jobs, 1, 400, 3, odd_layer, NULL);
    const struct job *job = &jobs.jobs[0];
    assert_int_equal(plan_work_items(job, 10, 300, PLAN_FORWARD, false, 0, 0, items), 1);
    assert_item(&items[0], (struct work_item){KERNEL_FIXED, 1, 347850, 0, 0});
    uint32_t count = plan_work_items(job, 10, 300, PLAN_BACKWARD, true, 0, 0, items);
    assert_item(&items[0], (struct work_item){KERNEL_FIXED, 1, 1978500, 0, 0});
    assert_int_equal(plan_work_items(job, 10, 300, PLAN_BACKWARD, false, 0, 0, items), count);
    assert_item(&items[0], (struct work_item){KERNEL_FIXED, 1, 347850 + 1978500, 0, 0});
    job_set_release(&jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),      cmocka_unit_test(test_from_inputs),
        cmocka_unit_test(test_many_blocks), cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_steps_apart),
        cmocka_unit_test(test_slices),      cmocka_unit_test(test_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
