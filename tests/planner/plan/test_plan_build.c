/*
 * The builder: equal things are stored once, repetition is folded and unfolds to what went in,
 * errors wait for the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/random.h"
#include "base/size.h"
#include "planner/walk/plan_build.h"
#include "planner/walk/plan_fold.h"
#include "tests/support/planner/support_plan.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

static struct test_layer some_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job, (void)layer;
    return (struct test_layer){64, 64, 64, 7, 11};
}

static struct plan_builder *new_builder(uint32_t jobs_count, uint32_t layers)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan_builder *builder = NULL;
    struct error err = {0};
    test_hardware(&hardware, 2, 1 << 20, 1e9);
    test_profile_jobs(&jobs, jobs_count, layers, 3, some_layer, NULL);
    assert_int_equal(plan_builder_create(&hardware, &jobs, &builder, &err), STATUS_OK);
    assert_int_equal(hardware.device_count, 0); /* taken over */
    assert_int_equal(jobs.count, 0);
    return builder;
}

static void finish(struct plan_builder *builder, struct plan *out)
{
    struct error err = {0};
    if (plan_builder_finish(builder, out, &err) != STATUS_OK) fail_msg("%s", err.text);
    plan_builder_destroy(builder);
}

/* --- equal things --------------------------------------------------------------------------- */

static void test_shards(void **state)
{
    (void)state;
    struct plan plan;
    struct plan_builder *builder = new_builder(4, 5);
    assert_int_equal(plan_builder_shard(builder, 0, 0, 3, false), 0);
    assert_int_equal(plan_builder_shard(builder, 0, 3, 2, false), 1);
    assert_int_equal(plan_builder_shard(builder, 2, 0, 5, false), 2); /* job 1 has none */
    finish(builder, &plan);
    const uint32_t expected[] = {0, 2, 2, 3, 3};
    for (uint32_t j = 0; j <= 4; j++) assert_int_equal(plan.job_first_shard[j], expected[j]);
    plan_release(&plan);
}

static void test_works(void **state)
{
    (void)state;
    struct plan plan;
    struct plan_builder *builder = new_builder(1, 1);
    const struct work_item items[] = {{KERNEL_ADAMW, 2, 5, 0, 0},
                                      {KERNEL_MATMUL_INPUT, 3, 7, 8, 9}};
    struct work_item other = items[1];
    other.k++;
    assert_int_equal(plan_builder_work(builder, items, 2), 0);
    assert_int_equal(plan_builder_work(builder, items, 1), 1); /* a beginning is not the whole */
    assert_int_equal(plan_builder_work(builder, items, 2), 0);
    assert_int_equal(plan_builder_work(builder, &other, 1), 2);
    assert_int_equal(plan_builder_work(builder, NULL, 0), 3);
    finish(builder, &plan);
    assert_int_equal(plan.work_count, 4);
    assert_int_equal(plan.item_count, 4); /* 2 + 1 + 1 + 0 */
    plan_release(&plan);
}

static void test_buffers_and_slots(void **state)
{
    (void)state;
    struct plan plan;
    struct plan_builder *builder = new_builder(1, 1);
    struct plan_buffer buffer = {BUFFER_BOUNDARY, 0, 1, 0, true, 100};
    assert_int_equal(plan_builder_buffer(builder, &buffer), 0);
    buffer.bytes = 300;
    assert_int_equal(plan_builder_buffer(builder, &buffer), 0); /* larger */
    buffer.bytes = 200;
    assert_int_equal(plan_builder_buffer(builder, &buffer), 0); /* stays so */
    buffer.on_device = false;
    assert_int_equal(plan_builder_buffer(builder, &buffer), 1);
    buffer.variant = 7;
    assert_int_equal(plan_builder_buffer(builder, &buffer), 2);
    assert_int_equal(plan_builder_slot(builder, 256, 64), 0);
    assert_int_equal(plan_builder_slot(builder, 64, 256), 1);
    assert_int_equal(plan_builder_slot(builder, 256, 64), 0);
    finish(builder, &plan);
    assert_int_equal(plan.buffer_count, 3);
    assert_int_equal(plan.buffers[0].bytes, 300);
    assert_int_equal(plan.buffers[1].bytes, 200);
    assert_int_equal(plan.slot_count, 2);
    plan_release(&plan);
}

/* A unit of one computation that acquires two buffers. `bytes` belongs to copies: for a computation
 * it means nothing and must not make units differ. */
static uint32_t small_unit(struct plan_builder *builder, uint32_t shard, uint32_t after,
                           uint64_t bytes)
{
    struct plan_access accesses[2] = {{.flags = ACCESS_WRITE | ACCESS_ACQUIRE | ACCESS_RELEASE},
                                      {.flags = ACCESS_WRITE | ACCESS_ACQUIRE | ACCESS_RELEASE}};
    struct plan_op op = {.kind = OP_COMPUTE, .work = PLAN_NONE, .bytes = bytes};
    struct plan_after back = {.tasks = after};
    for (uint32_t a = 0; a < 2; a++)
        accesses[a].buffer = plan_builder_buffer(
            builder, &(struct plan_buffer){BUFFER_WORKSPACE, 0, 0, a, true, 64});
    plan_builder_unit_begin(builder, 0, shard, PLAN_FORWARD, false);
    plan_builder_op(builder, &op, accesses, 2, &back, after > 0);
    return plan_builder_unit_end(builder);
}

static void test_units(void **state)
{
    (void)state;
    struct plan plan;
    struct plan_builder *builder = new_builder(1, 1);
    assert_int_equal(small_unit(builder, 0, 0, 0), 0);
    assert_int_equal(small_unit(builder, 0, 0, 99), 0);
    assert_int_equal(small_unit(builder, 1, 0, 0), 1);
    assert_int_equal(small_unit(builder, 0, 5, 0), 2);
    assert_int_equal(small_unit(builder, 0, 5, 0), 2);
    assert_int_equal(small_unit(builder, 0, 6, 0), 3);
    finish(builder, &plan);
    assert_int_equal(plan.unit_count, 4);
    assert_int_equal(plan.op_count, 4);
    assert_int_equal(plan.access_count, 8);
    assert_int_equal(plan.after_count, 2);
    assert_int_equal(plan.units[2].acquire_count, 2);
    plan_release(&plan);
}

static void test_layouts(void **state)
{
    (void)state;
    struct plan plan;
    struct plan_builder *builder = new_builder(1, 1);
    uint32_t unit = small_unit(builder, 0, 0, 0);
    const uint32_t slots[] = {plan_builder_slot(builder, 0, 64), plan_builder_slot(builder, 64, 64),
                              plan_builder_slot(builder, 0, 64)};
    plan_builder_task(builder, unit, 0, slots, 2);
    plan_builder_task(builder, unit, 1, slots + 1, 2); /* the other way round */
    plan_builder_task(builder, unit, 1, slots, 2);
    finish(builder, &plan);
    assert_int_equal(plan.layout_count, 4);
    assert_int_equal(plan.task_count, 3);
    assert_int_equal(plan.tasks[0].layout, plan.tasks[2].layout);
    assert_int_equal(plan.layouts[plan.tasks[1].layout], slots[1]);
    plan_release(&plan);
}

static void test_many(void **state)
{
    (void)state;
    struct plan plan;
    struct plan_builder *builder = new_builder(1, 1);
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 20000; i++)
            assert_int_equal(plan_builder_slot(builder, 64 * (i % 173), i), i);
    finish(builder, &plan);
    assert_int_equal(plan.slot_count, 20000);
    plan_release(&plan);
}

/* --- folding -------------------------------------------------------------------------------- */

/* Letters stand for units. */
static uint32_t fold_text(const char *text, struct plan_folded *folded,
                          struct plan_task *tasks)
{
    struct error err = {0};
    uint32_t count = (uint32_t)strlen(text);
    for (uint32_t i = 0; i < count; i++)
        tasks[i] = (struct plan_task){.unit = (uint32_t)text[i]};
    assert_int_equal(plan_fold(tasks, count, folded, &err), STATUS_OK);
    return count;
}

/* "3(abc) 4(d) 1(ae)" */
static const char *folded_text(const struct plan_folded *folded,
                               const struct plan_task *tasks, char *text)
{
    char *end = text;
    *end = '\0';
    for (uint32_t s = 0; s < folded->segment_count; s++) {
        end += sprintf(end, "%s%u(", s > 0 ? " " : "", folded->segments[s].repeat_count);
        for (uint32_t i = 0; i < folded->segments[s].task_count; i++)
            *end++ = (char)tasks[folded->segments[s].first_task + i].unit;
        end += sprintf(end, ")");
    }
    return text;
}

static void test_folding(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"a", "1(a)"},
        {"aa", "1(aa)"},   /* saves 1: not worth two records */
        {"aaaa", "4(a)"},
        {"abab", "1(abab)"},
        {"abcabc", "2(abc)"},
        {"abcabcabcddddae", "3(abc) 4(d) 1(ae)"},
        {"xyzabcabcabcabcq", "1(xyz) 4(abc) 1(q)"},
        {"aabaabaabaab", "4(aab)"}, /* not a twice, b, ... */
        {"abcdeabcdfabcde", "1(abcdeabcdfabcde)"},
        {"aaaaaaaabaaaaaaaabaaaaaaaab", "3(aaaaaaaab)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct plan_task tasks[64];
        struct plan_folded folded = {0};
        char text[256];
        fold_text(cases[i].text, &folded, tasks);
        assert_string_equal(folded_text(&folded, tasks, text), cases[i].expected);
        free(folded.segments);
    }
}

/* "a b [c d]2 e": the part in brackets is carried out twice more. */
static uint32_t bracketed(const char *text, struct plan_task *tasks, struct plan_repeat *repeats, uint32_t *count)
{
    uint32_t at = 0;
    *count = 0;
    for (; *text; text++) {
        if (*text == '[') repeats[*count].first = at;
        else if (*text == ']') repeats[*count].count = at - repeats[*count].first;
        else if (*text >= '0' && *text <= '9') repeats[(*count)++].times = (uint64_t)(*text - '0');
        else tasks[at++] = (struct plan_task){.unit = (uint32_t)*text};
    }
    return at;
}

static void test_folding_repeats(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"abc", "1(abc)"},
        {"[ab]3", "4(ab)"},
        {"x[abcd]2y", "1(x) 3(abcd) 1(y)"},
        {"xabcabc[abc]7abcy", "1(x) 11(abc) 1(y)"},       /* of a stretch that is found without it */
        {"abcabca[bca]2bcy", "6(abc) 1(y)"},              /* in another phase */
        {"aaaa[aa]3b", "12(a) 1(b)"},                     /* several periods */
        {"abcabcabc[xy]2abcabcabc", "3(abc) 3(xy) 3(abc)"},
        {"abcabcabc[ca]2bcabc", "3(abc) 3(ca) 1(bcabc)"}, /* no whole period */
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct plan_task tasks[64];
        struct plan_repeat repeats[8];
        struct plan_folded folded = {0};
        struct error err = {0};
        char text[256];
        uint32_t repeat_count, count = bracketed(cases[i].text, tasks, repeats, &repeat_count);
        assert_int_equal(plan_fold_repeats(tasks, count, repeats, repeat_count, &folded, &err), STATUS_OK);
        assert_string_equal(folded_text(&folded, tasks, text), cases[i].expected);
        free(folded.segments);
    }
}

/* Returns true if unfolding gives `original` again. */
static bool unfolds_to(const struct plan_folded *folded, const struct plan_task *tasks,
                       const struct plan_task *original, uint32_t count)
{
    uint32_t at = 0, next = 0;
    for (uint32_t s = 0; s < folded->segment_count; s++) {
        const struct plan_segment *segment = &folded->segments[s];
        if (segment->first_task != next) return false;
        next += segment->task_count;
        for (uint32_t r = 0; r < segment->repeat_count; r++)
            for (uint32_t i = 0; i < segment->task_count; i++, at++)
                if (at >= count || memcmp(&tasks[segment->first_task + i], &original[at],
                                          sizeof *original) != 0)
                    return false;
    }
    return at == count && next == folded->task_count;
}

/* Repetitions of repetitions of a few letters, with some disturbed. */
static uint32_t random_sequence(uint64_t key, struct plan_task *out, uint32_t room)
{
    uint64_t drawn = 0;
    uint32_t count = 1 + (uint32_t)random_below(key, drawn++, 3);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (struct plan_task){.unit = (uint32_t)random_below(key, drawn++, 3)};
        out[i].device = (uint32_t)random_below(key, drawn++, 2);
    }
    while (count < room) {
        uint32_t first = (uint32_t)random_below(key, drawn++, count);
        uint32_t length = 1 + (uint32_t)random_below(key, drawn++, count - first);
        uint32_t times = 1 + (uint32_t)random_below(key, drawn++, 6);
        for (uint32_t t = 0; t < times && count + length <= room; t++) {
            memcpy(out + count, out + first, length * sizeof *out);
            count += length;
        }
        if (random_below(key, drawn++, 3) == 0) {
            uint32_t disturbed = (uint32_t)random_below(key, drawn++, count);
            out[disturbed].layout = (uint32_t)random_below(key, drawn++, 4);
        }
        if (random_below(key, drawn++, 8) == 0) break;
    }
    return count;
}

static void test_unfolding(void **state)
{
    (void)state;
    enum { ROOM = 600 };
    uint64_t seed = support_seed("test_unfolding");
    uint64_t before = 0, after = 0;
    for (uint64_t n = 0; n < 3000; n++) {
        struct plan_task original[ROOM], tasks[ROOM];
        struct plan_folded folded;
        struct error err = {0};
        uint32_t count = random_sequence(random_u64(seed, n), original, ROOM);
        memcpy(tasks, original, count * sizeof *original);
        assert_int_equal(plan_fold(tasks, count, &folded, &err), STATUS_OK);
        assert_true(unfolds_to(&folded, tasks, original, count));
        before += count;
        after += folded.task_count + 2 * folded.segment_count;
        free(folded.segments);
    }
    assert_true(after * 3 < before * 2); /* it does fold */
}

/* Sequences that tempt a folder into quadratic work, which would be minutes; 20 ms is usual. */
static void test_hostile_sequences(void **state)
{
    (void)state;
    enum { COUNT = 240000 };
    struct plan_task *tasks = malloc(COUNT * sizeof *tasks);
    struct plan_task *original = malloc(COUNT * sizeof *original);
    assert_non_null(tasks);
    assert_non_null(original);
    static const char *const names[] = {"distinct", "equal", "fibonacci", "thue-morse",
                                        "equal but for one in the middle", "random bits"};
    for (uint32_t kind = 0; kind < ARRAY_COUNT(names); kind++) {
        struct plan_folded folded;
        struct error err = {0};
        uint32_t fibonacci_a = 1, fibonacci_b = 2;
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t unit = 0;
            if (kind == 0) unit = i;
            if (kind == 2 && i >= 2) { /* the word repeats its own beginning */
                if (i >= fibonacci_a + fibonacci_b) {
                    uint32_t sum = fibonacci_a + fibonacci_b;
                    fibonacci_a = fibonacci_b;
                    fibonacci_b = sum;
                }
                unit = original[i - fibonacci_b].unit;
            }
            if (kind == 2 && i == 1) unit = 1;
            if (kind == 3) unit = (uint32_t)__builtin_popcount(i) & 1;
            if (kind == 4) unit = i == COUNT / 2;
            if (kind == 5) unit = (uint32_t)random_u64(1, i) & 1;
            original[i] = (struct plan_task){.unit = unit};
        }
        memcpy(tasks, original, COUNT * sizeof *original);
        double start_s = clock_s();
        assert_int_equal(plan_fold(tasks, COUNT, &folded, &err), STATUS_OK);
        double seconds = clock_s() - start_s;
        print_message("%s: %.0f ms, %u tasks in %u segments\n", names[kind], seconds * 1e3,
                      folded.task_count, folded.segment_count);
        assert_true(seconds < 10);
        assert_true(unfolds_to(&folded, tasks, original, COUNT));
        free(folded.segments);
    }
    free(tasks);
    free(original);
}

static void test_minibatches_fold(void **state)
{
    (void)state;
    const struct draft_shape shape = {.devices = 2, .jobs = 2, .middle = 1, .minibatches = 50};
    struct plan plan;
    support_plan(&shape, &plan);
    /* 2 jobs x 5 units; devices and halves take turns with the parity of the task: period 10 */
    assert_int_equal(plan.task_count, 10);
    assert_int_equal(plan.segment_count, 1);
    assert_int_equal(plan.segments[0].repeat_count, 50);
    /* of the units of two jobs: forward 0 is 5 operations, forward 1 is 4, loss 9, backward 1 6,
     * backward 0 6 */
    assert_int_equal(plan_operations(&plan), 50 * 2 * (5 + 4 + 9 + 6 + 6));
    plan_release(&plan);
}

/* --- errors --------------------------------------------------------------------------------- */

static void test_limit(void **state)
{
    (void)state;
    struct plan_builder *builder = new_builder(1, 1);
    struct plan plan = {0};
    struct error err = {0};
    for (uint32_t i = 0; i < PLAN_SLOTS_MAX; i++)
        assert_int_equal(plan_builder_slot(builder, 64 * (uint64_t)i, 64), i);
    assert_int_equal(plan_builder_slot(builder, 1, 1), 0);
    assert_int_equal(plan_builder_slot(builder, 64, 64), 0); /* nothing is done any more */
    plan_builder_unit_begin(builder, 0, 0, PLAN_FORWARD, false);
    assert_int_equal(plan_builder_unit_end(builder), 0);
    assert_int_equal(plan_builder_finish(builder, &plan, &err), STATUS_LIMIT);
    assert_string_equal(err.text, "too many slots (limit is 1048576)");
    assert_int_equal(plan.slot_count, 0);
    plan_builder_destroy(builder);
}

/* Fail each allocation in turn: from the first call of the builder to the end. */
static void test_allocation_failures(void **state)
{
    (void)state;
    enum status status = STATUS_NO_MEMORY;
    for (uint64_t n = 1; status == STATUS_NO_MEMORY; n++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan_builder *builder = NULL;
        struct plan plan = {0};
        struct error err = {0};
        test_hardware(&hardware, 2, 1 << 20, 1e9);
        test_profile_jobs(&jobs, 1, 1, 3, some_layer, NULL);
        alloc_test_fail_at(n);
        status = plan_builder_create(&hardware, &jobs, &builder, &err);
        assert_int_equal(hardware.device_count, 0);
        if (status == STATUS_OK) {
            const struct work_item item = {KERNEL_ADAMW, 1, 5, 0, 0};
            uint32_t slots[2];
            plan_builder_shard(builder, 0, 0, 1, false);
            plan_builder_work(builder, &item, 1);
            for (uint32_t i = 0; i < 40; i++) {
                uint32_t unit = small_unit(builder, i, i, 0);
                for (uint32_t a = 0; a < 2; a++) slots[a] = plan_builder_slot(builder, i + a, 64);
                plan_builder_task(builder, unit, 0, slots, 2);
            }
            status = plan_builder_finish(builder, &plan, &err);
            assert_int_equal(plan.task_count, status == STATUS_OK ? 40 : 0);
            plan_builder_destroy(builder);
            plan_release(&plan);
        }
        assert_true(n < 1000);
    }
    alloc_test_fail_at(0);
    assert_int_equal(status, STATUS_OK);
}

/* A random sequence with random repeats, against the same written out. */
static void test_random_repeats(void **state)
{
    enum { ROOM = 200, LONG = 4000 };
    static struct plan_task given[ROOM], whole[LONG];
    uint64_t seed = support_seed("repeats");
    (void)state;
    for (uint32_t round = 0; round < 3000; round++) {
        struct plan_repeat repeats[ROOM];
        struct plan_folded folded = {0};
        struct error err = {0};
        uint64_t key = random_u64(seed, round);
        uint32_t count = random_sequence(key, given, ROOM), repeat_count = 0, length = 0, at = 0;
        for (uint32_t next; at < count; at = next) {
            uint32_t some = 1 + (uint32_t)random_below(key, 1000 + at, 20);
            uint64_t times = random_below(key, 2000 + at, 3) == 0 ? 1 + random_below(key, 3000 + at, 4) : 0;
            next = at + some < count ? at + some : count;
            if (times > 0) repeats[repeat_count++] = (struct plan_repeat){at, next - at, times};
            for (uint64_t t = 0; t <= times; t++)
                for (uint32_t i = at; i < next; i++) whole[length++] = given[i];
        }
        assert_int_equal(plan_fold_repeats(given, count, repeats, repeat_count, &folded, &err), STATUS_OK);
        assert_true(unfolds_to(&folded, given, whole, length));
        free(folded.segments);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_works),
        cmocka_unit_test(test_buffers_and_slots),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_folding),
        cmocka_unit_test(test_folding_repeats),
        cmocka_unit_test(test_random_repeats),
        cmocka_unit_test(test_unfolding),
        cmocka_unit_test(test_hostile_sequences),
        cmocka_unit_test(test_minibatches_fold),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
