/*
 * base/arena.h, base/alloc.h and base/size.h: pieces are zeroed, aligned and apart; growth stops at
 * the limit with its message; every failing allocation is an error and leaves things as they were.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/random.h"
#include "base/size.h"
#include "tests/support/support_seed.h"

enum { PIECE_COUNT = 3000 };

static void pieces_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    uint64_t seed = support_seed("arena");
    struct arena arena = {0};
    struct error err = {0};
    static unsigned char *pieces[PIECE_COUNT];
    static size_t sizes[PIECE_COUNT];
    size_t total = 0;
    for (size_t i = 0; i < PIECE_COUNT; i++) {
        /* Mostly small, now and then past the largest block of 16 MiB. */
        uint64_t most = i % 1000 == 999 ? (uint64_t)40 << 20 : i % 50 == 49 ? 300000 : 500;
        size_t size = (size_t)random_below(seed, i, most);
        void *piece;
        assert_int_equal(arena_array(&arena, size, 1, &piece, &err), STATUS_OK);
        pieces[i] = piece;
        sizes[i] = size;
        total += (size_t)size_align(size > 0 ? size : 1, 16);
        assert_int_equal((uintptr_t)piece % 16, 0);
        for (size_t j = 0; j < size && j < 4096; j++) assert_int_equal(pieces[i][j], 0);
        if (size > 0) assert_int_equal(pieces[i][size - 1], 0);
        memset(pieces[i], (int)(i % 251 + 1), size < 4096 ? size : 4096);
        if (size > 0) pieces[i][size - 1] = (unsigned char)(i % 251 + 1);
    }
    assert_int_equal(arena.total_bytes, total);
    for (size_t i = 0; i < PIECE_COUNT; i++) {
        for (size_t j = 0; j < sizes[i] && j < 4096; j++)
            assert_int_equal(pieces[i][j], i % 251 + 1);
        if (sizes[i] > 0) assert_int_equal(pieces[i][sizes[i] - 1], i % 251 + 1);
    }
    arena_release(&arena);
    assert_null(arena.newest);
    assert_int_equal(arena.total_bytes, 0);
    arena_release(&arena);
}

static void what_is_adopted_stays_where_it_is(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    char *first = alloc_resize(NULL, 70001), *second = alloc_resize(NULL, 3);
    void *piece;
    assert_non_null(first);
    assert_non_null(second);
    memset(first, 7, 70001);
    assert_int_equal(arena_adopt(&arena, first, 70001, &err), STATUS_OK);
    assert_int_equal(arena_array(&arena, 5, 8, &piece, &err), STATUS_OK);
    assert_int_equal(arena_adopt(&arena, second, 3, &err), STATUS_OK);
    assert_int_equal(first[70000], 7);
    assert_int_equal(arena.total_bytes, 70001 + 48 + 3 + 2 * 16); /* two notes of adopted memory */
    arena_release(&arena); /* sanitizers see leaks */
    assert_null(arena.adopted);

    char *refused = alloc_resize(NULL, 11);
    assert_non_null(refused);
    alloc_test_fail_at(1);
    assert_int_equal(arena_adopt(&arena, refused, 11, &err), STATUS_NO_MEMORY);
    alloc_test_fail_at(0);
    assert_null(arena.adopted);
    free(refused);
    arena_release(&arena);
}

/* Sanitizers see pieces that are freed too early, twice or never. */
static void shared_pieces_live_as_long_as_any_holder(void **state)
{
    (void)state;
    struct arena arenas[4] = {{0}};
    struct error err = {0};
    char *adopted = alloc_resize(NULL, 70001);
    const char *first, *second;
    assert_non_null(adopted);
    adopted[70000] = 7;
    assert_int_equal(arena_string(&arenas[0], "wte.weight", &first, &err), STATUS_OK);
    assert_int_equal(arena_adopt(&arenas[0], adopted, 70001, &err), STATUS_OK);
    alloc_test_fail_at(1);
    assert_int_equal(arena_share(&arenas[0], &arenas[1], &err), STATUS_NO_MEMORY);
    alloc_test_fail_at(0);
    assert_null(arenas[1].shared);
    assert_int_equal(arena_share(&arenas[0], &arenas[1], &err), STATUS_OK);
    assert_int_equal(arena_share(&arenas[0], &arenas[2], &err), STATUS_OK);
    assert_int_equal(arena_string(&arenas[0], "wpe.weight", &second, &err), STATUS_OK);
    assert_int_equal(arena_share(&arenas[0], &arenas[3], &err), STATUS_OK); /* the second piece, too */
    arena_release(&arenas[0]);
    arena_release(&arenas[2]);
    assert_null(arenas[0].shared);
    assert_string_equal(second, "wpe.weight");
    arena_release(&arenas[3]);
    assert_string_equal(first, "wte.weight");
    assert_int_equal(adopted[70000], 7);
    arena_release(&arenas[1]);
}

static void overflow_is_no_memory(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    void *out = &arena;
    assert_int_equal(arena_array(&arena, SIZE_MAX / 4, 8, &out, &err), STATUS_NO_MEMORY);
    assert_string_equal(err.text, "no memory for 4611686018427387903 elements of 8 bytes");
    assert_ptr_equal(out, &arena);
    err = (struct error){0};
    assert_int_equal(arena_array(&arena, SIZE_MAX - 3, 1, &out, &err), STATUS_NO_MEMORY);
    assert_ptr_equal(out, &arena);
    arena_release(&arena);
}

static void strings_are_copied(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    char text[] = "wte.weight";
    const char *copy, *empty;
    assert_int_equal(arena_string(&arena, text, &copy, &err), STATUS_OK);
    assert_int_equal(arena_string(&arena, "", &empty, &err), STATUS_OK);
    text[0] = 'X';
    assert_string_equal(copy, "wte.weight");
    assert_string_equal(empty, "");
    arena_release(&arena);
}

/* Does the same steps with allocation n failing: an error, and earlier allocations are still valid. */
static enum status fill(struct arena *arena, uint32_t **items, size_t *capacity, size_t *count,
                        struct error *err)
{
    for (uint32_t i = 0; i < 100; i++) {
        enum status status = array_reserve(items, capacity, *count, sizeof **items, 1000,
                                           "numbers", err);
        if (status != STATUS_OK) return status;
        (*items)[(*count)++] = i * 3;
        void *piece;
        status = arena_array(arena, 10000, 1, &piece, err);
        if (status != STATUS_OK) return status;
        memset(piece, 7, 10000);
    }
    return STATUS_OK;
}

static void every_failing_allocation_is_told(void **state)
{
    (void)state;
    uint64_t calls = 1;
    for (uint64_t n = 0; n <= calls; n++) {
        struct arena arena = {0};
        struct error err = {0};
        uint32_t *items = NULL;
        size_t capacity = 0, count = 0;
        alloc_test_fail_at(n);
        enum status status = fill(&arena, &items, &capacity, &count, &err);
        uint64_t made = alloc_test_fail_at(0);
        if (n == 0) {
            calls = made;
            assert_true(calls > 5);
            assert_int_equal(status, STATUS_OK);
        } else {
            assert_int_equal(status, STATUS_NO_MEMORY);
            assert_memory_equal(err.text, "no memory for ", 14);
        }
        for (uint32_t i = 0; i < count; i++) assert_int_equal(items[i], i * 3);
        free(items);
        arena_release(&arena);
    }
}

static void arrays_grow_to_their_limit(void **state)
{
    (void)state;
    struct error err = {0};
    uint64_t *items = NULL;
    size_t capacity = 0;
    for (size_t count = 0; count < 37; count++) {
        assert_int_equal(array_reserve(&items, &capacity, count, sizeof *items, 37, "tasks", &err),
                         STATUS_OK);
        assert_true(capacity > count);
        assert_true(capacity <= 37);
        items[count] = count * 5;
    }
    uint64_t *before = items;
    assert_int_equal(array_reserve(&items, &capacity, 37, sizeof *items, 37, "tasks", &err),
                     STATUS_LIMIT);
    assert_string_equal(err.text, "too many tasks (limit is 37)");
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, 37);
    for (size_t i = 0; i < 37; i++) assert_int_equal(items[i], i * 5);
    free(items);
}

static void sizes_report_overflow(void **state)
{
    (void)state;
    uint64_t out = 42;
    assert_true(size_mul(65536 * 1024ull, 50304, &out));
    assert_int_equal(out, 3375844294656); /* 2^26 * 50304 = 67108864 * 50304 */
    assert_false(size_mul(UINT64_MAX / 3, 4, &out));
    assert_int_equal(out, 3375844294656);
    assert_true(size_add(UINT64_MAX - 5, 5, &out));
    assert_true(out == UINT64_MAX);
    out = 42;
    assert_false(size_add(UINT64_MAX - 5, 6, &out));
    assert_int_equal(out, 42);
    assert_int_equal(size_align(4097, 4096), 8192);
    assert_int_equal(size_align(4096, 4096), 4096);
    assert_int_equal(size_align(0, 256), 0);
}

static void random_numbers_depend_on_key_and_counter_alone(void **state)
{
    (void)state;
    assert_int_equal(random_u64(7, 3), random_u64(7, 3));
    assert_true(random_u64(7, 3) != random_u64(3, 7));
    /* The mean of n uniform numbers has a standard deviation of 1/sqrt(12 n): 0.0009 for 100000. */
    double sum = 0;
    size_t counts[6] = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        double x = random_unit(11, i);
        assert_true(x >= 0 && x < 1);
        sum += x;
        counts[random_below(13, i, 6)]++;
    }
    assert_true(sum / 100000 > 0.495 && sum / 100000 < 0.505);
    /* 16667 each, standard deviation sqrt(100000 * 5/36) = 118. */
    for (size_t i = 0; i < 6; i++) assert_in_range(counts[i], 16667 - 600, 16667 + 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
        cmocka_unit_test(what_is_adopted_stays_where_it_is),
        cmocka_unit_test(shared_pieces_live_as_long_as_any_holder),
        cmocka_unit_test(overflow_is_no_memory),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(every_failing_allocation_is_told),
        cmocka_unit_test(arrays_grow_to_their_limit),
        cmocka_unit_test(sizes_report_overflow),
        cmocka_unit_test(random_numbers_depend_on_key_and_counter_alone),
    };
    return cmocka_run_group_tests_name("base/arena.h", tests, NULL, NULL);
}
