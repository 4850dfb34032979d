/*
 * models/rows: files of rows written and read back, compared with plain arrays; broken files and their messages; the
 * order of an epoch is a permutation without preferences; training and held-out rows are disjoint and all there; packs
 * are those of a first fit that looks at every pack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/random.h"
#include "base/size.h"
#include "models/rows/rows_order.h"
#include "models/rows/rows_set.h"
#include "models/rows/rows_write.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { ROWS_MAX = 300, LENGTH_MAX = 200 };

struct rows {
    uint64_t count, lengths[ROWS_MAX];
    uint32_t tokens[ROWS_MAX][LENGTH_MAX];
    bool learned[ROWS_MAX][LENGTH_MAX];
};

/* Draws rows of up to `longest` tokens; each has up to two learned spans. */
static struct rows *draw(uint64_t seed, uint64_t count, uint64_t longest, uint64_t vocabulary)
{
    struct rows *rows = calloc(1, sizeof *rows);
    assert_non_null(rows);
    rows->count = count;
    for (uint64_t r = 0; r < count; r++) {
        rows->lengths[r] = random_below(seed, 10 * r, longest + 1);
        uint64_t at = 0;
        for (uint64_t i = 0; i < rows->lengths[r]; i++)
            rows->tokens[r][i] = (uint32_t)random_below(seed + 1 + r, i, vocabulary);
        for (uint64_t span = 0; span < 2 && rows->lengths[r] > 0; span++) {
            const uint64_t first = at + random_below(seed, 10 * r + 1 + span, 9);
            at = first + random_below(seed, 10 * r + 3 + span, 70);
            for (uint64_t i = first; i < at && i < rows->lengths[r]; i++) rows->learned[r][i] = i > 0;
        }
    }
    return rows;
}

static void write(const struct rows *rows, const char *path, uint64_t vocabulary, uint64_t tokenizer)
{
    struct rows_write *out;
    struct error err = {0};
    if (rows_write_create(path, vocabulary, tokenizer, &out, &err)) fail_msg("%s", err.text);
    for (uint64_t r = 0; r < rows->count; r++) {
        struct rows_write_span spans[LENGTH_MAX];
        uint64_t count = 0;
        for (uint64_t i = 0; i < rows->lengths[r]; i++) /* a span for each, or one for several */
            if (rows->learned[r][i]) {
                if (count > 0 && spans[count - 1].last == i && i % 3 > 0) spans[count - 1].last++;
                else spans[count++] = (struct rows_write_span){i, i + 1};
            }
        if (rows_write_row(out, rows->tokens[r], rows->lengths[r], spans, count, &err)) fail_msg("%s", err.text);
    }
    if (rows_write_commit(out, &err)) fail_msg("%s", err.text);
    rows_write_destroy(out);
}

static void path_in(const char *folder, char path[64])
{
    snprintf(path, 64, "%s/a.rows", folder);
}

/* Draws rows, writes them and opens the file. */
static struct rows *draw_file(uint64_t seed, uint64_t count, uint64_t longest, const char *folder, char path[64],
                              struct rows_file *file)
{
    struct error err = {0};
    struct rows *rows = draw(seed, count, longest, 1000);
    path_in(folder, path);
    write(rows, path, 1000, seed);
    if (rows_file_open(path, file, &err)) fail_msg("%s", err.text);
    return rows;
}

static void test_written_is_read(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("rows written and read");
    char folder[SUPPORT_FOLDER_BYTES], path[64];
    support_folder_make(folder);
    path_in(folder, path);
    for (uint64_t n = 0; n < 40; n++) {
        const uint64_t vocabulary = n % 2 == 0 ? 65536 : 65537;
        struct rows *rows = draw(seed + n, n < 3 ? n : random_below(seed, n, ROWS_MAX),
                                 n % 5 == 0 ? 3 : LENGTH_MAX - 1, vocabulary);
        struct rows_file file;
        struct error err = {0};
        write(rows, path, vocabulary, seed ^ n);
        if (rows_file_open(path, &file, &err)) fail_msg("%s", err.text);
        assert_true(rows_file_is(path));
        assert_int_equal(file.rows, rows->count);
        assert_int_equal(file.token_bytes, n % 2 == 0 ? 2 : 4);
        assert_int_equal(file.vocabulary, vocabulary);
        assert_int_equal(file.tokenizer, seed ^ n);
        for (uint64_t r = 0, at = 0; r < rows->count; at += rows->lengths[r++]) {
            uint64_t learned = 0;
            assert_int_equal(rows_file_begin(&file, r), at);
            assert_int_equal(rows_file_length(&file, r), rows->lengths[r]);
            for (uint64_t i = 0; i < rows->lengths[r]; i++) {
                assert_int_equal(rows_file_token(&file, at + i), rows->tokens[r][i]);
                assert_int_equal(rows_file_learns(&file, at + i), rows->learned[r][i]);
                learned += rows->learned[r][i];
            }
            assert_int_equal(rows_file_count_learned(&file, at, rows->lengths[r]), learned);
        }
        assert_int_equal(rows_file_check_tokens(&file, vocabulary, &err), STATUS_OK);
        rows_file_close(&file);
        free(rows);
    }
    support_folder_remove(folder);
}

/* --- broken files --------------------------------------------------------------------------------- */

static void put(unsigned char *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(number >> 8 * i);
}

/* Two rows of 3 and 2 tokens; written by hand, from the description. */
enum { SMALL_BYTES = 64 + 24 + 8 + 10 };
static void make_small(unsigned char data[SMALL_BYTES])
{
    memset(data, 0, SMALL_BYTES);
    memcpy(data, "SPILROWS", 8);
    put(data + 8, 1, 4);
    put(data + 12, 2, 4);
    put(data + 16, 2, 8);
    put(data + 24, 5, 8);
    put(data + 32, 300, 8);
    put(data + 64 + 8, 3, 8);
    put(data + 64 + 16, 5, 8);
    put(data + 64 + 24, 0x16, 8); /* tokens 1, 2 and 4 */
    for (int i = 0; i < 5; i++) put(data + 96 + 2 * i, 10 * (uint64_t)(i + 1), 2);
}

static void test_broken_files(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint64_t number;
        int bytes;
        const char *message;
    } breaks[] = {
        {0, 'X', 1, "a: this is no file of rows (expected one that 'spillway tokenize --rows' wrote)"},
        {8, 2, 4, "a: unknown version 2 (expected 1)"},
        {12, 3, 4, "a: tokens of 3 bytes (expected 2 or 4)"},
        {50, 1, 1, "a: bytes 48 to 63 are not 0"},
        {16, 3, 8, "a: 106 bytes (expected 114: the header announces 3 rows of 5 tokens)"},
        {16, UINT64_MAX, 8, "a: 18446744073709551615 rows of 5 tokens are too many"},
        {24, UINT64_MAX, 8, "a: 2 rows of 18446744073709551615 tokens are too many"},
        {24, 4, 8, "a: 106 bytes (expected 104: the header announces 2 rows of 4 tokens)"},
        {64, 1, 8, "a: row 0 begins at token 1 (expected 0)"},
        {72, 6, 8, "a: row 0 has the tokens from 0 to 6 of 5"},
        {80, 2, 8, "a: row 1 has the tokens from 3 to 2 of 5"},
        {80, 4, 8, "a: the rows have 4 tokens (expected 5)"},
        {88, 0x36, 8, "a: tokens after the last one are marked as learned"},
    };
    unsigned char data[SMALL_BYTES];
    struct rows_file file = {0};
    struct error err = {0};
    make_small(data);
    assert_int_equal(rows_file_parse("a", data, sizeof data, &file, &err), STATUS_OK);
    assert_int_equal(rows_file_token(&file, 4), 50);
    assert_int_equal(rows_file_count_learned(&file, 0, 5), 3);
    assert_int_equal(rows_file_check_tokens(&file, 50, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "a: token 4 is 50 (expected less than the vocabulary, 50)");
    for (size_t i = 0; i < ARRAY_COUNT(breaks); i++) {
        struct error own = {0};
        make_small(data);
        put(data + breaks[i].at, breaks[i].number, breaks[i].bytes);
        assert_int_equal(rows_file_parse("a", data, sizeof data, &file, &own), STATUS_BAD_INPUT);
        assert_string_equal(own.text, breaks[i].message);
    }
    for (uint64_t length = 0; length < SMALL_BYTES; length++) {
        struct error own = {0};
        make_small(data);
        assert_int_equal(rows_file_parse("a", data, length, &file, &own), STATUS_BAD_INPUT);
    }
}

/* --- order ---------------------------------------------------------------------------------------- */

static void test_order_is_a_permutation(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("order of rows");
    static unsigned char seen[5000];
    for (uint64_t n = 1; n < 700; n++) {
        const uint64_t count = n <= 600 ? n : 1 + random_below(seed, n, sizeof seen);
        memset(seen, 0, sizeof seen);
        for (uint64_t place = 0; place < count; place++) {
            const uint64_t at = rows_order_at(seed + n, count, place);
            assert_true(at < count);
            assert_int_equal(seen[at]++, 0);
        }
    }
}

/* Over keys each place has each element equally often, and so have neighbouring places each pair. */
static void test_order_has_no_preference(void **state)
{
    (void)state;
    enum { COUNT = 7, KEYS = 42000 };
    const uint64_t seed = support_seed("uniform order of rows");
    static uint32_t at_place[COUNT][COUNT], pairs[COUNT][COUNT];
    for (uint64_t key = 0; key < KEYS; key++)
        for (uint64_t place = 0, before = 0; place < COUNT; place++) {
            const uint64_t at = rows_order_at(random_u64(seed, key), COUNT, place);
            at_place[place][at]++;
            if (place > 0) pairs[before][at]++;
            before = at;
        }
    for (int a = 0; a < COUNT; a++)
        for (int b = 0; b < COUNT; b++) {
            const double mean = (double)KEYS / COUNT, deviation = sqrt(mean);
            assert_true(fabs((double)at_place[a][b] - mean) < 6 * deviation);
            if (a != b) assert_true(fabs((double)pairs[a][b] - mean) < 6 * deviation);
        }
}

/* --- sets ----------------------------------------------------------------------------------------- */

static void check_epochs(const struct rows_set *set, uint64_t seed)
{
    unsigned char *seen = calloc(set->samples, 1);
    uint64_t moved = 0;
    assert_non_null(seen);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        memset(seen, 0, set->samples);
        for (uint64_t s = 0; s < set->samples; s++) {
            const uint64_t at = rows_set_sample(set, seed, epoch * set->samples + s);
            assert_int_equal(seen[at]++, 0);
            moved += at != rows_set_sample(set, seed + 1, epoch * set->samples + s);
        }
    }
    assert_true(set->samples < 5 || moved > 0);
    free(seen);
}

/* Marks the rows of a set's samples, and checks its counts against the plain rows. */
static void check_set(const struct rows_set *set, const struct rows *rows, unsigned char *seen)
{
    const uint64_t t = set->choice.sequence;
    uint64_t filled = 0;
    for (uint64_t s = 0; s < set->samples; s++) {
        uint32_t one;
        const uint32_t *list;
        uint64_t places = 0, learned = 0;
        const uint64_t count = rows_set_rows(set, s, &one, &list);
        assert_true(count > 0);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t length = rows->lengths[list[i]], used = length > t + 1 ? t + 1 : length;
            assert_true(!set->choice.skips_long || length <= t + 1);
            assert_int_equal(seen[list[i]]++, 0);
            places += used > 0 ? used - 1 : 0;
            for (uint64_t k = 0; k < used; k++) learned += rows->learned[list[i]][k];
        }
        assert_true(places <= t);
        assert_int_equal(rows_set_learned(set, s), learned);
        filled += places;
    }
    assert_int_equal(set->filled, filled);
}

static void test_sets(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("sets of rows");
    char folder[SUPPORT_FOLDER_BYTES], path[64];
    support_folder_make(folder);
    for (uint64_t n = 0; n < 60; n++) {
        struct rows_file file;
        struct rows *rows = draw_file(seed + n, 40 + random_below(seed, n, ROWS_MAX - 40), 100, folder, path, &file);
        struct rows_choice choice = {.sequence = 20 + random_below(seed, n + 100, 90), .skips_long = n % 2,
                                     .packs = n % 3 == 0,
                                     .held_out = n % 4 == 0 ? 0 : 0.01 + 0.5 * random_unit(seed, n + 200),
                                     .split_seed = n % 7};
        struct rows_set training, held = {0};
        unsigned char seen[ROWS_MAX] = {0};
        struct error err = {0};
        uint64_t long_rows = 0, left = 0, used = 0;
        if (rows_set_make(&file, &choice, false, &training, &err)) fail_msg("%s", err.text);
        if (choice.held_out > 0 && rows_set_make(&file, &choice, true, &held, &err)) fail_msg("%s", err.text);
        check_set(&training, rows, seen);
        check_set(&held, rows, seen);
        for (uint64_t r = 0; r < rows->count; r++) {
            const bool is_long = rows->lengths[r] > choice.sequence + 1;
            long_rows += is_long;
            left += !seen[r] && !(is_long && choice.skips_long) && !(choice.packs && rows->lengths[r] < 2);
            used += !(is_long && choice.skips_long);
        }
        assert_int_equal(left, 0);
        assert_int_equal(training.long_rows, long_rows);
        assert_int_equal(training.rows + held.rows, used);
        if (choice.held_out > 0) assert_true(fabs((double)held.rows - choice.held_out * (double)used) <= 1);
        check_epochs(&training, seed + n);
        rows_set_release(&training);
        rows_set_release(&held);
        rows_file_close(&file);
        free(rows);
    }
    support_folder_remove(folder);
}

static void test_sets_that_are_too_small(void **state)
{
    (void)state;
    unsigned char data[SMALL_BYTES];
    struct rows_file file = {0};
    struct rows_set set;
    struct error err = {0};
    make_small(data);
    if (rows_file_parse("a", data, sizeof data, &file, &err)) fail_msg("%s", err.text);
    struct rows_choice choice = {.sequence = 2, .held_out = 0.9};
    assert_int_equal(rows_set_make(&file, &choice, false, &set, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "a: 2 rows are too few to hold some out for evaluations");
    choice = (struct rows_choice){.sequence = 1, .skips_long = true, .held_out = 0.5};
    err = (struct error){0};
    assert_int_equal(rows_set_make(&file, &choice, false, &set, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text,
                        "a: 1 rows that are not longer than a sample are too few to hold some out for evaluations");
}

/* --- packs ---------------------------------------------------------------------------------------- */

static void test_packs_are_first_fit(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("packs of rows");
    enum { COUNT = 500 };
    for (uint64_t n = 0; n < 50; n++) {
        uint32_t rows[COUNT], sizes[COUNT], used[COUNT] = {0}, listed[COUNT] = {0};
        const uint64_t room = 1 + random_below(seed, n, 200), count = random_below(seed, n + 100, COUNT);
        struct rows_pack pack;
        struct error err = {0};
        for (uint64_t i = 0; i < count; i++) {
            rows[i] = (uint32_t)(7 * i + 3);
            sizes[i] = 1 + (uint32_t)random_below(seed + n, i, room);
        }
        if (rows_pack_make(rows, sizes, count, room, &pack, &err)) fail_msg("%s", err.text);
        uint64_t packs = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t p = 0;
            while (used[p] + sizes[i] > room) p++;
            used[p] += sizes[i];
            if (p >= packs) packs = p + 1;
            assert_true(pack.begins[p] + listed[p] < pack.begins[p + 1]);
            assert_int_equal(pack.rows[pack.begins[p] + listed[p]++], rows[i]);
        }
        assert_int_equal(pack.count, packs);
        assert_int_equal(pack.begins[pack.count], count);
        rows_pack_release(&pack);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_is_read),        cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_order_is_a_permutation), cmocka_unit_test(test_order_has_no_preference),
        cmocka_unit_test(test_sets),                   cmocka_unit_test(test_sets_that_are_too_small),
        cmocka_unit_test(test_packs_are_first_fit),
    };
    return cmocka_run_group_tests_name("models/rows", tests, NULL, NULL);
}
