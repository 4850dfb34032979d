/* Extents against one record per byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "planner/buffer_contents.h"
#include "tests/support/support_seed.h"

enum { BYTES = 40, BUFFERS = 3 };

struct byte {
    bool held;
    uint32_t thing;
    uint64_t version, thing_offset;
};

struct pair {
    struct buffer_contents contents;
    struct byte bytes[BYTES];
};

static void put(struct pair *pair, const struct buffer_extent *e)
{
    assert_true(buffer_contents_put(&pair->contents, e));
    for (uint64_t i = e->first; i < e->end; i++)
        pair->bytes[i] = (struct byte){true, e->thing, e->version, e->thing_offset + i - e->first};
}

static void copy(struct pair *from, uint64_t first, uint64_t count, struct pair *to,
                 uint64_t to_first)
{
    bool complete, expected = true;
    for (uint64_t i = 0; i < count; i++) expected = expected && from->bytes[first + i].held;
    assert_true(buffer_contents_copy(&from->contents, first, count, &to->contents, to_first, &complete));
    assert_int_equal(complete, expected);
    if (expected) memcpy(to->bytes + to_first, from->bytes + first, count * sizeof *to->bytes);
}

/* The same bytes; ascending, disjoint, and no two that could be one. */
static void compare(const struct pair *pair)
{
    struct byte bytes[BYTES] = {{0}};
    const struct buffer_contents *c = &pair->contents;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct buffer_extent *e = &c->extents[i], *before = e - 1;
        assert_true(e->first < e->end);
        if (i > 0) {
            assert_true(before->end <= e->first);
            bool one = before->end == e->first && before->thing == e->thing &&
                       before->version == e->version &&
                       before->thing_offset + (before->end - before->first) == e->thing_offset;
            assert_false(one);
        }
        for (uint64_t b = e->first; b < e->end; b++)
            bytes[b] = (struct byte){true, e->thing, e->version, e->thing_offset + b - e->first};
    }
    for (uint32_t b = 0; b < BYTES; b++) {
        assert_int_equal(bytes[b].held, pair->bytes[b].held);
        if (!bytes[b].held) continue;
        assert_int_equal(bytes[b].thing, pair->bytes[b].thing);
        assert_int_equal(bytes[b].version, pair->bytes[b].version);
        assert_int_equal(bytes[b].thing_offset, pair->bytes[b].thing_offset);
    }
}

static void ask(const struct pair *pair, const struct buffer_extent *wanted)
{
    bool expected = true;
    for (uint64_t i = wanted->first; i < wanted->end; i++) {
        const struct byte *b = &pair->bytes[i];
        expected = expected && b->held && b->thing == wanted->thing &&
                   b->version == wanted->version &&
                   b->thing_offset == wanted->thing_offset + i - wanted->first;
    }
    const struct buffer_extent *found;
    assert_int_equal(buffer_contents_hold(&pair->contents, wanted, &found), expected);
}

static void test_random_extents(void **state)
{
    (void)state;
    uint64_t seed = support_seed("test_random_extents");
    for (uint64_t n = 0; n < 400; n++) {
        struct pair pairs[BUFFERS];
        memset(pairs, 0, sizeof pairs);
        for (uint64_t step = 0; step < 60; step++) {
            uint64_t key = random_u64(seed, n * 100 + step);
            struct pair *pair = &pairs[random_below(key, 0, BUFFERS)];
            struct pair *other = &pairs[random_below(key, 1, BUFFERS)];
            uint64_t first = random_below(key, 2, BYTES);
            struct buffer_extent e = {.first = first,
                                      .end = first + random_below(key, 3, BYTES - first + 1),
                                      .thing_offset = first + 5 * random_below(key, 4, 2),
                                      .version = random_below(key, 5, 2),
                                      .thing = (uint32_t)random_below(key, 6, 2)};
            uint64_t bytes = e.end - e.first;
            if (random_below(key, 7, 2) == 0)
                put(pair, &e);
            else if (pair != other)
                copy(pair, e.first, bytes, other, random_below(key, 8, BYTES - bytes + 1));
            ask(pair, &e);
            compare(pair);
            compare(other);
        }
        for (uint32_t i = 0; i < BUFFERS; i++) buffer_contents_release(&pairs[i].contents);
    }
}

/* A state of three parts of 100 bytes whose rows are updated in two slices. */
static void test_slices(void **state)
{
    (void)state;
    struct buffer_contents c = {0};
    const struct buffer_extent *found;
    struct buffer_extent all = {.end = 300, .thing = 4};
    assert_true(buffer_contents_put(&c, &all));
    for (uint64_t part = 0; part < 3; part++) {
        struct buffer_extent e = {100 * part, 100 * part + 60, 100 * part, 1, 4};
        assert_true(buffer_contents_put(&c, &e));
    }
    assert_int_equal(c.count, 6);
    struct buffer_extent wanted = {0, 100, 0, 1, 4};
    assert_false(buffer_contents_hold(&c, &wanted, &found));
    assert_int_equal(found->first, 60);
    assert_int_equal(found->version, 0);
    for (uint64_t part = 0; part < 3; part++) {
        struct buffer_extent e = {100 * part + 60, 100 * part + 100, 100 * part + 60, 1, 4};
        assert_true(buffer_contents_put(&c, &e));
    }
    assert_int_equal(c.count, 1);
    assert_true(buffer_contents_hold(&c, &wanted, &found));
    buffer_contents_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_extents),
        cmocka_unit_test(test_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
