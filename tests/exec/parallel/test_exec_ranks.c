/*
 * Ranks without a plan, as threads of one process: sums over members in any order of ranks have the bits of a loop over
 * the members, or of a tree; sends that cross each other arrive; a rank that ends early is named by all others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "exec/ranks/rank_measure.h"
#include "exec/ranks/rank_mesh.h"
#include "exec/ranks/rank_sum.h"
#include "models/hardware/collective_rate.h"
#include "tests/support/support_seed.h"

enum { RANKS_MOST = 5, MEMBERS_MOST = 9, CASES = 16 };

struct group {
    uint32_t ranks, members, ranks_of[MEMBERS_MOST];
    uint64_t count, seed;
    bool tree;
    char meet[64];
};

/* A rank, which is a thread. */
struct one {
    const struct group *group;
    uint32_t rank;
    float *values[MEMBERS_MOST]; /* of its members */
    struct ranks *ranks;
    struct error err;
    pthread_t thread;
};

struct worker {
    const struct rank_sum *sum;
    uint32_t number;
    bool tree, done;
    pthread_t thread;
};

static float value(const struct group *g, uint32_t member, uint64_t i)
{
    return (float)(random_unit(g->seed + member, i) - 0.5);
}

static enum status join(struct one *one)
{
    const struct ranks_options options = {.rank = one->rank, .count = one->group->ranks, .meet_file = one->group->meet,
                                          .patience_s = 60, .plan = 1, .machine = "test", .options = ""};
    return ranks_join(&options, &one->ranks, &one->err);
}

/* In the order of members, or as a tree: pairs, then pairs of pairs; who has no partner waits for the next round. */
static float sum_of(const struct group *g, const float *values)
{
    float sums[MEMBERS_MOST];
    memcpy(sums, values, g->members * sizeof *sums);
    for (uint32_t m = 1; !g->tree && m < g->members; m++) sums[0] += sums[m];
    for (uint32_t step = 1; g->tree && step < g->members; step *= 2)
        for (uint32_t m = 0; m + step < g->members; m += 2 * step) sums[m] += sums[m + step];
    return sums[0];
}

static void *work(void *pointer)
{
    struct worker *const worker = pointer;
    worker->done = (worker->tree ? rank_tree_work : rank_sum_work)(worker->sum, worker->number);
    return NULL;
}

/* Adds up twice, so that messages of different sums meet. */
static void add_up(struct one *one)
{
    const struct group *const g = one->group;
    struct rank_sum sum = {.ranks = one->ranks, .members = g->members, .ranks_of = g->ranks_of, .values = one->values,
                           .count = g->count};
    for (uint32_t m = 0; m < g->members; m++) sum.workers += one->values[m] != NULL;
    for (sum.number = 1; sum.number <= 2 && sum.workers > 0; sum.number++) {
        struct worker workers[MEMBERS_MOST];
        for (uint32_t w = 0; w < sum.workers; w++) {
            workers[w] = (struct worker){.sum = &sum, .number = w, .tree = g->tree};
            assert_int_equal(pthread_create(&workers[w].thread, NULL, work, &workers[w]), 0);
        }
        for (uint32_t w = 0; w < sum.workers; w++) {
            pthread_join(workers[w].thread, NULL);
            if (!workers[w].done) one->err.status = STATUS_DEVICE;
        }
    }
}

static void *sum_as_rank(void *pointer)
{
    struct one *const one = pointer;
    if (join(one) != STATUS_OK) return NULL;
    add_up(one);
    if (one->err.status == STATUS_OK) one->err.status = ranks_leave(one->ranks, NULL, &one->err);
    ranks_destroy(one->ranks);
    return NULL;
}

static void run_all(struct one *ones, const struct group *g, void *(*as_rank)(void *))
{
    for (uint32_t r = 0; r < g->ranks; r++) {
        ones[r].group = g;
        ones[r].rank = r;
        assert_int_equal(pthread_create(&ones[r].thread, NULL, as_rank, &ones[r]), 0);
    }
    for (uint32_t r = 0; r < g->ranks; r++) pthread_join(ones[r].thread, NULL);
}

static void name_meeting(struct group *g)
{
    static unsigned number;
    snprintf(g->meet, sizeof g->meet, "/tmp/test-ranks-%ld-%u", (long)getpid(), number++);
}

static void test_sums_in_the_order_of_members(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("sums over ranks");
    for (uint64_t n = 0; n < CASES; n++) {
        struct group g = {.seed = seed + 100 * n};
        struct one ones[RANKS_MOST] = {0};
        static const uint64_t counts[] = {1, 63, 65536, 65537, 200001, 400000};
        name_meeting(&g);
        g.tree = random_below(seed, 50 * n + 20, 2) > 0;
        g.ranks = 2 + (uint32_t)random_below(seed, 50 * n, RANKS_MOST - 1);
        g.members = g.ranks + (uint32_t)random_below(seed, 50 * n + 1, MEMBERS_MOST - RANKS_MOST + 1);
        g.count = counts[random_below(seed, 50 * n + 2, 6)];
        for (uint32_t m = 0; m < g.members; m++) { /* in order, or any */
            g.ranks_of[m] = m < 2 ? m : n % 2
                            ? (uint32_t)random_below(seed, 50 * n + 3 + m, g.ranks) : 1 + m * (g.ranks - 1) / g.members;
            float *const values = malloc(g.count * sizeof *values);
            for (uint64_t i = 0; i < g.count; i++) values[i] = value(&g, m, i);
            ones[g.ranks_of[m]].values[m] = values;
        }
        run_all(ones, &g, sum_as_rank);
        for (uint32_t r = 0; r < g.ranks; r++)
            if (ones[r].err.status != STATUS_OK) fail_msg("rank %u: %s", r, ones[r].err.text);
        for (uint64_t i = 0; i < g.count; i++) {
            float once[MEMBERS_MOST], sums[MEMBERS_MOST];
            for (uint32_t m = 0; m < g.members; m++) once[m] = value(&g, m, i);
            for (uint32_t m = 0; m < g.members; m++) sums[m] = sum_of(&g, once);
            const float twice = sum_of(&g, sums);
            for (uint32_t r = 0; r < g.ranks; r++)
                for (uint32_t m = 0; m < g.members; m++)
                    if (ones[r].values[m] && memcmp(&ones[r].values[m][i], &twice, sizeof twice) != 0)
                        fail_msg("case %u: value %u of member %u is %.9g, not %.9g", (unsigned)n, (unsigned)i, m,
                                 (double)ones[r].values[m][i], (double)twice);
        }
        for (uint32_t r = 0; r < g.ranks; r++)
            for (uint32_t m = 0; m < g.members; m++) free(ones[r].values[m]);
    }
}

/* Each rank sends to all others before it receives from any. */
static void *cross(void *pointer)
{
    enum { WORDS = 100000 };
    struct one *const one = pointer;
    const uint32_t count = one->group->ranks;
    struct ranks_request sent[RANKS_MOST], received[RANKS_MOST];
    uint64_t *const words = malloc((1 + RANKS_MOST) * WORDS * sizeof *words);
    if (join(one) != STATUS_OK) return NULL;
    for (uint64_t i = 0; i < WORDS; i++) words[i] = one->rank * 1000000 + i;
    for (uint32_t r = 0; r < count; r++)
        if (r != one->rank) ranks_send(one->ranks, r, 7, one->rank, words, WORDS * sizeof *words, &sent[r]);
    for (uint32_t r = 0; r < count; r++)
        if (r != one->rank)
        ranks_receive(one->ranks, r, 7, r, words + (1 + r) * WORDS, WORDS * sizeof *words, &received[r]);
    for (uint32_t r = 0; r < count; r++) {
        if (r == one->rank) continue;
        if (!ranks_await(one->ranks, &received[r]) || !ranks_await(one->ranks, &sent[r]))
            one->err.status = STATUS_DEVICE;
        for (uint64_t i = 0; i < WORDS; i++)
            if (words[(1 + r) * WORDS + i] != r * 1000000 + i) one->err.status = STATUS_CHECK;
    }
    if (one->err.status == STATUS_OK) one->err.status = ranks_leave(one->ranks, NULL, &one->err);
    ranks_destroy(one->ranks);
    free(words);
    return NULL;
}

static void test_sends_that_cross(void **state)
{
    (void)state;
    struct group g = {.ranks = RANKS_MOST};
    struct one ones[RANKS_MOST] = {0};
    name_meeting(&g);
    run_all(ones, &g, cross);
    for (uint32_t r = 0; r < g.ranks; r++)
        if (ones[r].err.status != STATUS_OK) fail_msg("rank %u: %d %s", r, (int)ones[r].err.status, ones[r].err.text);
}

/* Rank 2 ends with an error; the others take their leave, and learn of it. */
static void *leave(void *pointer)
{
    struct one *const one = pointer;
    const struct error own = {.status = STATUS_IO, .text = "the disk is full"};
    if (join(one) != STATUS_OK) return NULL;
    one->err.status = ranks_leave(one->ranks, one->rank == 2 ? &own : NULL, &one->err);
    ranks_destroy(one->ranks);
    return NULL;
}

static void test_a_rank_that_fails(void **state)
{
    (void)state;
    struct group g = {.ranks = 4};
    struct one ones[RANKS_MOST] = {0};
    name_meeting(&g);
    run_all(ones, &g, leave);
    for (uint32_t r = 0; r < g.ranks; r++) {
        assert_int_equal(ones[r].err.status, r == 2 ? STATUS_OK : STATUS_DEVICE);
        if (r == 2) continue;
        assert_non_null(strstr(ones[r].err.text, "rank 2 ("));
        assert_non_null(strstr(ones[r].err.text, "the disk is full"));
    }
}

/* --- measuring --------------------------------------------------------------------------------- */

struct measuring {
    struct one one;
    volatile bool stop;
    bool leaves;             /* it fails instead of measuring */
    struct hardware machine; /* its device type has no collectives */
};

static void *measure_as_rank(void *pointer)
{
    struct measuring *const m = pointer;
    struct one *const one = &m->one;
    if (join(one) != STATUS_OK) return NULL;
    struct error ignored = {0};
    if (m->leaves) {
        one->err.status = error_set(&one->err, STATUS_DEVICE, "its fan is broken");
        (void)!ranks_leave(one->ranks, &one->err, &ignored);
    } else {
        one->err.status = rank_measure(one->ranks, 0.05, &m->stop, one->rank == 0 ? &m->machine : NULL, &one->err);
    }
    ranks_destroy(one->ranks);
    return NULL;
}

enum measure_case { MEASURE_WELL, MEASURE_STOPPED, MEASURE_WITH_A_FAILURE, MEASURE_CASES };

static void measure_over(uint32_t ranks, enum measure_case which)
{
    struct group g = {.ranks = ranks};
    struct measuring all[RANKS_MOST] = {{.one = {0}}};
    name_meeting(&g);
    for (uint32_t r = 0; r < ranks; r++) {
        struct measuring *const m = &all[r];
        m->one.group = &g;
        m->one.rank = r;
        m->stop = which == MEASURE_STOPPED && r == 0;
        m->leaves = which == MEASURE_WITH_A_FAILURE && r == ranks - 1;
        if (hardware_find("rtx-3090-24gb", &m->machine, &m->one.err)) fail_msg("%s", m->one.err.text);
        assert_int_equal(pthread_create(&m->one.thread, NULL, measure_as_rank, m), 0);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        pthread_join(all[r].one.thread, NULL);
        const enum status wanted = which == MEASURE_WELL ? STATUS_OK : which == MEASURE_STOPPED
                                   ? STATUS_INTERRUPTED : STATUS_DEVICE;
        if (all[r].one.err.status != wanted) fail_msg("case %d, rank %u: %s", (int)which, r, all[r].one.err.text);
        if (which == MEASURE_WITH_A_FAILURE && !strstr(all[r].one.err.text, "its fan is broken"))
            fail_msg("%s", all[r].one.err.text);
    }
    const struct device_type *const type = &all[0].machine.types[0];
    assert_int_equal(type->collective_count, which == MEASURE_WELL ? 2 : 0);
    for (uint32_t c = 0; c < type->collective_count; c++) {
        const struct collective_rate *const rate = &type->collectives[c];
        assert_int_equal(rate->kind, c == 0 ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_SEND);
        assert_int_equal(rate->processes, c == 0 ? ranks : 2);
        assert_true(rate->point_count >= 5);
        for (uint32_t p = 0; p < rate->point_count; p++) assert_true(rate->points[p].seconds > 0);
        const struct collective_rate *both[2];
        assert_false(collective_rate_around(type, rate->kind, rate->members, both)); /* plans do not read it */
    }
    for (uint32_t r = 0; r < ranks; r++) hardware_release(&all[r].machine);
}

/* Rank 0 has the rates of an all-reduce over all ranks and of messages; or all stop, or all learn who failed. */
static void test_measuring(void **state)
{
    (void)state;
    for (uint32_t which = 0; which < MEASURE_CASES; which++)
        for (uint32_t ranks = 2; ranks <= 3; ranks++) measure_over(ranks, (enum measure_case)which);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_in_the_order_of_members),
        cmocka_unit_test(test_sends_that_cross),
        cmocka_unit_test(test_a_rank_that_fails),
        cmocka_unit_test(test_measuring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
