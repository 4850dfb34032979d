/* The caching allocator: cases worked out by hand, and the same rules with an unsorted list of blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/random.h"
#include "sim/caching.h"
#include "tests/support/support_seed.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static uint32_t allocate(struct sim_caching *c, uint64_t bytes)
{
    uint32_t block;
    assert_true(sim_caching_allocate(c, bytes, &block));
    return block;
}

static void assert_holds(const struct sim_caching *c, uint64_t allocated_bytes, uint64_t reserved_bytes)
{
    assert_true(sim_caching_reserved(c)->allocated_bytes == allocated_bytes);
    assert_true(sim_caching_reserved(c)->reserved_bytes == reserved_bytes);
}

/* 1 B is 512, 513 B are 1024; 1 MiB is small, one byte more is not and takes 20 MiB; 10 MiB have a segment of their own
 * size, 10 MiB and a byte one of 12. */
static void sizes(void **state)
{
    (void)state;
    struct sim_caching *c = sim_caching_create(1024 * MIB);
    allocate(c, 1);
    assert_holds(c, 512, 2 * MIB);
    allocate(c, 513);
    assert_holds(c, 1536, 2 * MIB);
    allocate(c, MIB);
    assert_holds(c, 1536 + MIB, 2 * MIB); /* the rest of 2 MiB less 1536 B has room for it */
    allocate(c, MIB - 1536 + 1); /* 512 B more than the rest */
    assert_holds(c, 2 * MIB + 512, 4 * MIB);
    allocate(c, MIB + 1);
    assert_holds(c, 3 * MIB + 1024, 24 * MIB);
    allocate(c, 10 * MIB);
    assert_holds(c, 13 * MIB + 1024, 24 * MIB); /* in the rest of the 20 MiB */
    allocate(c, 10 * MIB);
    assert_holds(c, 23 * MIB + 1024, 34 * MIB);
    allocate(c, 10 * MIB + 1);
    assert_holds(c, 33 * MIB + 1536, 46 * MIB);
    assert_true(sim_caching_reserved(c)->segments == 5);
    sim_caching_destroy(c);
}

/* A block of 12 MiB is not split for 11 MiB, for 1 MiB would be left over, and is for 10.9. */
static void splitting(void **state)
{
    (void)state;
    struct sim_caching *c = sim_caching_create(1024 * MIB);
    sim_caching_give(c, allocate(c, 12 * MIB));
    uint32_t whole = allocate(c, 11 * MIB);
    assert_holds(c, 12 * MIB, 12 * MIB);
    sim_caching_give(c, whole);
    allocate(c, 11 * MIB - 512);
    assert_holds(c, 11 * MIB - 512, 12 * MIB);
    allocate(c, MIB + 512);
    assert_holds(c, 12 * MIB, 12 * MIB);
    sim_caching_destroy(c);
}

/* 20, 30, 40 MiB side by side are three segments; freed, 25 MiB go into the 30, not the 40. Then 35 into the 40, and
 * 20, 5 and 5 remain, which no request of 21 MiB can use: it gets 22, and 112 MiB are reserved for 82. */
static void best_fit_and_fragments(void **state)
{
    (void)state;
    struct sim_caching *c = sim_caching_create(1024 * MIB);
    uint32_t blocks[] = {allocate(c, 40 * MIB), allocate(c, 20 * MIB), allocate(c, 30 * MIB)};
    for (int i = 0; i < 3; i++) sim_caching_give(c, blocks[i]);
    assert_holds(c, 0, 90 * MIB);
    allocate(c, 25 * MIB);
    allocate(c, 35 * MIB);
    assert_holds(c, 60 * MIB, 90 * MIB);
    allocate(c, 21 * MIB);
    assert_holds(c, 82 * MIB, 112 * MIB);
    assert_true(sim_caching_reserved(c)->reserved_peak_bytes == 112 * MIB);
    assert_true(sim_caching_reserved(c)->allocated_peak_bytes == 90 * MIB);
    sim_caching_destroy(c);
}

/* 30 MiB as three blocks of 10; the middle one and then its neighbours are free, and 30 MiB fit again. */
static void neighbours_are_joined(void **state)
{
    (void)state;
    for (int order = 0; order < 6; order++) {
        static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        struct sim_caching *c = sim_caching_create(1024 * MIB);
        sim_caching_give(c, allocate(c, 30 * MIB));
        uint32_t blocks[] = {allocate(c, 10 * MIB), allocate(c, 10 * MIB), allocate(c, 10 * MIB)};
        assert_holds(c, 30 * MIB, 30 * MIB);
        for (int i = 0; i < 3; i++) sim_caching_give(c, blocks[orders[order][i]]);
        allocate(c, 30 * MIB);
        assert_holds(c, 30 * MIB, 30 * MIB);
        sim_caching_destroy(c);
    }
}

/* A device of 50 MiB: 20 are in use and 24 cached, so that 26 more need the cached ones to go; then 10 MiB more are
 * 6 too many, for 2 MiB small ones are reserved as well. */
static void at_the_capacity(void **state)
{
    (void)state;
    struct sim_caching *c = sim_caching_create(50 * MIB);
    allocate(c, 20 * MIB);
    sim_caching_give(c, allocate(c, 24 * MIB));
    assert_true(sim_caching_reserved(c)->given_back == 0);
    allocate(c, 26 * MIB);
    assert_holds(c, 46 * MIB, 46 * MIB);
    assert_true(sim_caching_reserved(c)->given_back == 1 && sim_caching_reserved(c)->short_bytes == 0);
    allocate(c, 1);
    allocate(c, 8 * MIB); /* in a segment of 20 */
    assert_holds(c, 54 * MIB + 512, 68 * MIB);
    assert_true(sim_caching_reserved(c)->short_bytes == 18 * MIB);
    sim_caching_destroy(c);
}

/* --- the same rules, plainly ------------------------------------------------------------------ */

enum { PIECES_MAX = 4096 };

/* A piece of a segment, in the order of addresses; pieces of one segment are neighbours. */
struct piece {
    uint64_t segment, bytes;
    int small;
    int owner; /* -1: free */
};

struct plain {
    struct piece pieces[PIECES_MAX];
    int count;
    uint64_t capacity_bytes, segments, reserved_bytes;
};

static void remove_piece(struct plain *w, int at)
{
    for (int i = at; i + 1 < w->count; i++) w->pieces[i] = w->pieces[i + 1];
    w->count--;
}

static void insert_piece(struct plain *w, int at, struct piece piece)
{
    assert_true(w->count < PIECES_MAX);
    for (int i = w->count++; i > at; i--) w->pieces[i] = w->pieces[i - 1];
    w->pieces[at] = piece;
}

static int alone(const struct plain *w, int i)
{
    return (i == 0 || w->pieces[i - 1].segment != w->pieces[i].segment) &&
           (i + 1 == w->count || w->pieces[i + 1].segment != w->pieces[i].segment);
}

static void plain_take(struct plain *w, uint64_t bytes, int owner)
{
    uint64_t size = (bytes + 511) & ~UINT64_C(511);
    int small = size <= MIB, best = -1;
    for (int i = 0; i < w->count; i++) {
        const struct piece *p = &w->pieces[i];
        if (p->owner < 0 && p->small == small && p->bytes >= size && (best < 0 || p->bytes < w->pieces[best].bytes))
            best = i;
    }
    if (best < 0) {
        uint64_t segment = small ? 2 * MIB : size < 10 * MIB ? 20 * MIB : (size + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
        for (int i = w->count - 1; w->reserved_bytes + segment > w->capacity_bytes && i >= 0; i--)
            w->pieces[i].segment |= (uint64_t)(w->pieces[i].owner < 0 && alone(w, i)) << 63; /* all of them go */
        for (int i = w->count - 1; i >= 0; i--)
            if (w->pieces[i].segment >> 63) {
                w->reserved_bytes -= w->pieces[i].bytes;
                remove_piece(w, i);
            }
        best = w->count;
        insert_piece(w, best, (struct piece){w->segments++, segment, small, -1});
        w->reserved_bytes += segment;
    }
    struct piece *p = &w->pieces[best];
    uint64_t left = p->bytes - size;
    p->owner = owner;
    if (small ? left < 512 : left <= MIB) return;
    p->bytes = size;
    insert_piece(w, best + 1, (struct piece){p->segment, left, small, -1});
}

static void plain_give(struct plain *w, int owner)
{
    int i = 0;
    while (w->pieces[i].owner != owner) i++;
    w->pieces[i].owner = -1;
    for (int k = i; k >= i - 1 && k >= 0; k--) {
        if (k + 1 >= w->count || w->pieces[k].owner >= 0 || w->pieces[k + 1].owner >= 0 ||
            w->pieces[k].segment != w->pieces[k + 1].segment)
            continue;
        w->pieces[k].bytes += w->pieces[k + 1].bytes;
        remove_piece(w, k + 1);
    }
}

static void agrees_with_the_plain_one(void **state)
{
    (void)state;
    enum { LIVE = 64 };
    static struct plain plain;
    uint64_t seed = support_seed("test_sim_caching"), drawn = 0, given_back = 0;
    for (int trial = 0; trial < 60; trial++) {
        plain = (struct plain){.capacity_bytes = (100 + random_below(seed, drawn++, 800)) * MIB};
        struct sim_caching *c = sim_caching_create(plain.capacity_bytes);
        uint32_t blocks[LIVE];
        int there[LIVE] = {0};
        for (int step = 0; step < 1500; step++) {
            int i = (int)random_below(seed, drawn++, LIVE);
            if (there[i]) {
                sim_caching_give(c, blocks[i]);
                plain_give(&plain, i);
            } else {
                uint64_t most = random_below(seed, drawn++, 3) == 0 ? 2 * MIB : 30 * MIB;
                most = random_below(seed, drawn++, most) + 1; /* small ones are more likely */
                uint64_t bytes = 1 + random_below(seed, drawn++, most);
                blocks[i] = allocate(c, bytes);
                plain_take(&plain, bytes, i);
            }
            there[i] = !there[i];
            uint64_t allocated = 0;
            for (int k = 0; k < plain.count; k++) allocated += plain.pieces[k].owner >= 0 ? plain.pieces[k].bytes : 0;
            assert_holds(c, allocated, plain.reserved_bytes);
        }
        assert_true(sim_caching_reserved(c)->segments == plain.segments);
        given_back += sim_caching_reserved(c)->given_back;
        sim_caching_destroy(c);
    }
    assert_true(given_back > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(splitting),
        cmocka_unit_test(best_fit_and_fragments),
        cmocka_unit_test(neighbours_are_joined),
        cmocka_unit_test(at_the_capacity),
        cmocka_unit_test(agrees_with_the_plain_one),
    };
    return cmocka_run_group_tests_name("sim/caching.h", tests, NULL, NULL);
}
