#include "tests/support/planner/support_p2p.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"

enum { ARENA_BYTES = 5 << 20, LONGEST = 3 << 20 };

static const struct {
    uint64_t from, to, bytes;
} moves[] = {{0, 1, 1}, {3, 4099, 4093}, {9000, 8193, 0}, {70001, 70000, 1 << 20},
             {1 << 21, (1 << 21) - 7, LONGEST}};

void p2p_open_pair(p2p_open open, struct device_options options, enum p2p_way way,
                   struct device *pair[2])
{
    struct error err = {0};
    options.arena_bytes = ARENA_BYTES;
    options.threads = 1;
    options.p2p = true;
    for (uint32_t d = 0; d < 2; d++) {
        options.index = d;
        pair[d] = NULL;
        if (open(&options, &pair[d], &err) != STATUS_OK) fail_msg("%s", err.text);
    }
    for (uint32_t d = 0; d < 2; d++) {
        enum p2p_way found;
        char why[P2P_WHY_BYTES] = "";
        if (device_link(pair[d], pair[1 - d], &found, why, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        if (found != way) fail_msg("linked the other way: %s", why);
    }
}

void p2p_close_pair(struct device *pair[2])
{
    for (uint32_t d = 0; d < 2; d++) device_stop(pair[d]);
    for (uint32_t d = 0; d < 2; d++) device_close(pair[d]);
}

static void finish(struct device_stream *stream)
{
    assert_true(device_synchronize(stream, device_record(stream), 60));
}

static void fill(struct device *device, unsigned char *bytes)
{
    struct device_stream *const h2d = device_stream(device, STREAM_H2D);
    device_copy(h2d, device_arena(device), bytes, ARENA_BYTES, NULL);
    finish(h2d);
}

static double check_one_way(struct device *to, struct device *from, uint64_t key)
{
    struct device_stream *const p2p = device_stream(to, STREAM_P2P);
    struct device_stream *const d2h = device_stream(to, STREAM_D2H);
    unsigned char *const sent = malloc(ARENA_BYTES), *const expected = malloc(ARENA_BYTES);
    unsigned char *const found = malloc(ARENA_BYTES);
    struct device_timing timings[ARRAY_COUNT(moves)];
    assert_true(sent && expected && found);
    for (uint64_t i = 0; i < ARENA_BYTES; i++) {
        sent[i] = (unsigned char)random_u64(key, i);
        expected[i] = 0x55;
    }
    fill(from, sent);
    fill(to, expected);
    for (size_t i = 0; i < ARRAY_COUNT(moves); i++) {
        const struct device_guard none = {.limit = NULL};
        device_copy_p2p(p2p, (char *)device_arena(to) + moves[i].to, from,
                        (char *)device_arena(from) + moves[i].from, moves[i].bytes, none, &timings[i]);
        memcpy(expected + moves[i].to, sent + moves[i].from, moves[i].bytes);
    }
    device_wait(d2h, p2p, device_record(p2p));
    device_copy(d2h, found, device_arena(to), ARENA_BYTES, NULL);
    finish(d2h);
    assert_memory_equal(found, expected, ARENA_BYTES);
    free(sent);
    free(expected);
    free(found);
    const struct device_timing *const longest = &timings[ARRAY_COUNT(moves) - 1];
    return longest->end_s - longest->start_s;
}

double p2p_check_copies(struct device *pair[2])
{
    const double there_s = check_one_way(pair[1], pair[0], 5);
    const double back_s = check_one_way(pair[0], pair[1], 6);
    return there_s > back_s ? there_s : back_s;
}
