/* Learning rates: by hand where the schedules bend, and against PyTorch's schedulers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/json/json_in.h"
#include "models/job/learning_rate.h"

static struct job job_of(uint32_t kind, uint64_t warmup, double floor, uint64_t steps)
{
    return (struct job){.minibatches = steps,
                        .optimizer = {.learning_rate = 0.8,
                                      .schedule = {.kind = kind, .warmup = warmup, .floor = floor}}};
}

static void assert_rate(const struct job *job, uint64_t step, double expected)
{
    double found = learning_rate_at(job, step);
    if (!(fabs(found - expected) <= 1e-15))
        fail_msg("step %llu: %.17g, expected %.17g", (unsigned long long)step, found, expected);
}

static void rates_by_hand(void **state)
{
    (void)state;
    struct job job = job_of(RATE_CONSTANT, 0, 0.5, 3);
    for (uint64_t step = 1; step <= 3; step++) assert_true(learning_rate_at(&job, step) == 0.8);

    /* 4 steps up to 0.8, then 5 down: x = 0, 1/5, ... 4/5; 0.2 + 0.8 (1 - x) of it */
    job = job_of(RATE_LINEAR, 4, 0.25, 9);
    assert_rate(&job, 1, 0.2);
    assert_rate(&job, 3, 0.6);
    assert_rate(&job, 4, 0.8);
    assert_rate(&job, 5, 0.8);
    assert_rate(&job, 6, 0.8 * (0.25 + 0.75 * 0.8));
    assert_rate(&job, 9, 0.8 * (0.25 + 0.75 * 0.2));

    /* x = 0, 1/4, 1/2, 3/4: cos = 1, sqrt(1/2), 0, -sqrt(1/2) */
    job = job_of(RATE_COSINE, 0, 0, 4);
    assert_rate(&job, 1, 0.8);
    assert_rate(&job, 2, 0.4 * (1 + sqrt(0.5)));
    assert_rate(&job, 3, 0.4);
    assert_rate(&job, 4, 0.4 * (1 - sqrt(0.5)));
}

static void warm_up_may_be_all(void **state)
{
    (void)state;
    struct job job = job_of(RATE_COSINE, 5, 0, 5);
    assert_rate(&job, 1, 0.16);
    assert_rate(&job, 5, 0.8);
    struct job_optimizer optimizer = optimizer_at(&job, 1);
    assert_true(optimizer.learning_rate == learning_rate_at(&job, 2));
    assert_int_equal(optimizer.schedule.warmup, 5);
}

/* 4 steps up and 5 down, in pieces of 3, 2 and 4 steps, of which the second begins within the warm-up. */
static void pieces_follow_the_whole(void **state)
{
    (void)state;
    static const uint64_t pieces[] = {3, 2, 4};
    struct job whole = job_of(RATE_LINEAR, 4, 0.25, 9), piece = whole;
    assert_int_equal(learning_rate_steps(&whole), 9);
    piece.optimizer.schedule.steps = 9;
    for (uint32_t p = 0; p < 3; p++) {
        piece.minibatches = pieces[p];
        assert_int_equal(learning_rate_steps(&piece), 9);
        for (uint64_t i = 0; i < pieces[p]; i++)
            assert_true(optimizer_at(&piece, piece.first_minibatch + i).learning_rate ==
                        optimizer_at(&whole, piece.first_minibatch + i).learning_rate);
        piece.first_minibatch += pieces[p];
    }
}

static void the_same_as_pytorch(void **state)
{
    (void)state;
    struct json_input *in;
    struct error err = {0};
    if (json_input_read(SOURCE_DIR "/tests/golden/gpt2_torch/rates.json", &in, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    size_t index;
    json_t *row;
    json_array_foreach(json_input_root(in), index, row) {
        const char *kind = json_string_value(json_object_get(row, "kind"));
        const json_t *rates = json_object_get(row, "rates");
        uint32_t k = 0;
        while (strcmp(rate_schedule_names[k], kind) != 0) k++;
        struct job job = job_of(k, (uint64_t)json_integer_value(json_object_get(row, "warmup")),
                                json_number_value(json_object_get(row, "floor")),
                                (uint64_t)json_integer_value(json_object_get(row, "steps")));
        job.optimizer.learning_rate = json_number_value(json_object_get(row, "lr"));
        assert_int_equal(json_array_size(rates), job.minibatches);
        for (uint64_t step = 1; step <= job.minibatches; step++) {
            double expected = json_number_value(json_array_get(rates, step - 1));
            double found = learning_rate_at(&job, step);
            if (!(fabs(found - expected) <= 1e-13 * job.optimizer.learning_rate))
                fail_msg("%s, row %zu, step %llu: %.17g, expected %.17g", kind, index,
                         (unsigned long long)step, found, expected);
        }
    }
    assert_int_equal(index, 12);
    json_input_destroy(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_by_hand),
        cmocka_unit_test(warm_up_may_be_all),
        cmocka_unit_test(pieces_follow_the_whole),
        cmocka_unit_test(the_same_as_pytorch),
    };
    return cmocka_run_group_tests_name("models/job/learning_rate.h", tests, NULL, NULL);
}
