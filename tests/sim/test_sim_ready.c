/*
 * sim/engine/ready.h against a search through all jobs, by random operations: whatever it says comes first has the
 * highest rank, and among equal ones the lowest number.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"
#include "sim/engine/ready.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

enum { JOBS = 70 };

struct model {
    bool ready[JOBS];
    double ranks[JOBS];
    uint32_t count;
};

static uint32_t model_first(const struct model *model)
{
    uint32_t first = JOBS;
    for (uint32_t j = 0; j < JOBS; j++)
        if (model->ready[j] && (first == JOBS || model->ranks[j] > model->ranks[first])) first = j;
    return first;
}

/* Draws a rank of few, so that ties are frequent; infinite ranks are allowed. */
static double draw_rank(struct sim_test_random *random)
{
    static const double special[] = {-INFINITY, INFINITY, -0.0, 0.0, -1e300};
    uint32_t draw = sim_test_below(random, 30);
    return draw < ARRAY_COUNT(special) ? special[draw] : 0.5 * draw - 6;
}

static void remove_job(struct sim_ready *ready, struct model *model, uint32_t job)
{
    sim_ready_remove(ready, job);
    model->ready[job] = false;
    model->count--;
}

static void random_operations(uint64_t key, uint32_t jobs)
{
    struct sim_test_random random = {.key = key};
    struct arena arena = {0};
    struct error err = {0};
    struct sim_ready ready;
    struct model model = {0};
    assert_int_equal(sim_ready_create(&arena, jobs, &ready, &err), STATUS_OK);
    for (int step = 0; step < 2000; step++) {
        uint32_t what = sim_test_below(&random, 10), job = sim_test_below(&random, jobs);
        if (what < 5 && !model.ready[job]) {
            model.ranks[job] = draw_rank(&random);
            model.ready[job] = true;
            model.count++;
            sim_ready_add(&ready, job, model.ranks[job]);
        } else if (what < 6 && model.ready[job]) {
            remove_job(&ready, &model, job); /* as where the first one's memory is not there */
        } else if (what < 9 && model.count > 0) {
            uint32_t first = sim_ready_first(&ready);
            assert_int_equal(first, model_first(&model));
            remove_job(&ready, &model, first);
        }
        if (model.count > 0) assert_int_equal(sim_ready_next(&ready), model_first(&model));
    }
    while (model.count > 0) {
        uint32_t first = sim_ready_first(&ready);
        assert_int_equal(first, model_first(&model));
        remove_job(&ready, &model, first);
    }
    arena_release(&arena);
}

static void test_against_a_search(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sim/engine/ready.h");
    static const uint32_t jobs[] = {1, 2, 3, 4, 17, JOBS};
    for (uint64_t round = 0; round < 36; round++) random_operations(seed + round, jobs[round % ARRAY_COUNT(jobs)]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_search),
    };
    return cmocka_run_group_tests_name("sim/engine/ready.h", tests, NULL, NULL);
}
