/*
 *     pattern --h2d--> from's arena --p2p--> to's arena --d2h--> host, compared byte for byte
 *                                            (full of the complement before, so that no byte is
 *                                            right that was not copied)
 *
 * Each word of the pattern is drawn from its place, so misplaced bytes are noticed; a second round inverts all bits.
 * The length is odd, and the copy begins and ends inside of pages. The tested copy is the one that a run makes: same
 * call, same stream, same thread. Only its pace is not kept: on an emulated slow link the test would take minutes.
 */
#include "exec/device/device_p2p.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/try.h"
#include "exec/device/device_backend.h"

enum { PATTERN_BYTES = (1 << 20) - 3, ROUNDS = 2 };
static const double PATIENCE_S = 60;

struct trial {
    struct device *to, *from;
    uint64_t bytes;
    unsigned char *pattern, *found;
};

static void fill_pattern(struct trial *t, int round)
{
    for (uint64_t i = 0; i < t->bytes; i += sizeof(uint64_t)) {
        const uint64_t word = random_mix(i) ^ (round ? UINT64_MAX : 0);
        const uint64_t left = t->bytes - i;
        memcpy(t->pattern + i, &word, left < sizeof word ? left : sizeof word);
    }
    for (uint64_t i = 0; i < t->bytes; i++) t->found[i] = (unsigned char)~t->pattern[i];
}

static enum status settle(struct device *device, uint32_t kind, struct error *err)
{
    struct device_stream *const stream = device_stream(device, kind);
    if (!device_synchronize(stream, device_record(stream), PATIENCE_S))
        return error_set(err, STATUS_DEVICE, "a copy on the %s stream of device %" PRIu32
                         " has not ended after %g s", plan_stream_names[kind],
                         device->options.index, PATIENCE_S);
    return device_failed(device, err);
}

static enum status copy_pattern(const struct trial *t, struct error *err)
{
    unsigned char *const source = device_arena(t->from), *const target = device_arena(t->to);
    device_copy(device_stream(t->from, STREAM_H2D), source, t->pattern, t->bytes, NULL);
    device_copy(device_stream(t->to, STREAM_H2D), target, t->found, t->bytes, NULL);
    TRY(settle(t->from, STREAM_H2D, err));
    TRY(settle(t->to, STREAM_H2D, err));
    device_copy_p2p(device_stream(t->to, STREAM_P2P), target, t->from, source, t->bytes,
                    (struct device_guard){.limit = NULL}, NULL);
    TRY(settle(t->to, STREAM_P2P, err));
    device_copy(device_stream(t->to, STREAM_D2H), t->found, target, t->bytes, NULL);
    return settle(t->to, STREAM_D2H, err);
}

static enum status try_copies(struct trial *t, bool *arrived, char why[P2P_WHY_BYTES],
                              struct error *err)
{
    *arrived = true;
    for (int round = 0; round < ROUNDS && *arrived; round++) {
        fill_pattern(t, round);
        TRY(copy_pattern(t, err));
        if (memcmp(t->found, t->pattern, t->bytes) == 0) continue;
        uint64_t at = 0;
        while (t->found[at] == t->pattern[at]) at++;
        *arrived = false;
        snprintf(why, P2P_WHY_BYTES, "byte %" PRIu64 " of %" PRIu64 " arrived as 0x%02x, not 0x%02x",
                 at, t->bytes, t->found[at], t->pattern[at]);
    }
    return STATUS_OK;
}

static enum status link_tried(struct trial *t, enum p2p_way *way, char why[P2P_WHY_BYTES],
                              struct error *err)
{
    bool arrived;
    char again[P2P_WHY_BYTES];
    *way = P2P_DIRECT;
    TRY(try_copies(t, &arrived, why, err));
    if (arrived) return STATUS_OK;
    *way = P2P_STAGED;
    if (!t->to->ops->stage)
        return error_set(err, STATUS_DEVICE, "copies from device %" PRIu32 " to device %" PRIu32
                         " do not work: %s", t->from->options.index, t->to->options.index, why);
    TRY(t->to->ops->stage(t->to, t->from, err));
    TRY(try_copies(t, &arrived, again, err));
    if (arrived) return STATUS_OK;
    return error_set(err, STATUS_DEVICE, "copies from device %" PRIu32 " to device %" PRIu32
                     " do not work, not even through host memory: %s", t->from->options.index,
                     t->to->options.index, again);
}

/* Exchanges the paces of the streams that carry patterns, which are idle, with `paces`. */
static void exchange_paces(struct device *device, double paces[STREAM_KIND_COUNT])
{
    for (uint32_t kind = STREAM_H2D; kind <= STREAM_P2P; kind++) {
        double *const pace = &device->streams[kind].pace.bytes_per_s;
        const double other = paces[kind];
        paces[kind] = *pace;
        *pace = other;
    }
}

static enum status link_unpaced(struct trial *t, enum p2p_way *way, char why[P2P_WHY_BYTES], struct error *err)
{
    double to[STREAM_KIND_COUNT] = {0}, from[STREAM_KIND_COUNT] = {0};
    exchange_paces(t->to, to);
    exchange_paces(t->from, from);
    TRY(link_tried(t, way, why, err)); /* else a stream may still copy, and the device is of no use */
    exchange_paces(t->to, to);
    exchange_paces(t->from, from);
    return STATUS_OK;
}

enum status device_link(struct device *to, struct device *from, enum p2p_way *way,
                        char why[P2P_WHY_BYTES], struct error *err)
{
    struct trial t = {.to = to, .from = from, .bytes = PATTERN_BYTES};
    if (t.bytes > to->options.arena_bytes) t.bytes = to->options.arena_bytes;
    if (t.bytes > from->options.arena_bytes) t.bytes = from->options.arena_bytes;
    t.pattern = alloc_zeroed(PATTERN_BYTES, 1);
    t.found = alloc_zeroed(PATTERN_BYTES, 1);
    enum status status = STATUS_OK;
    if (!t.pattern || !t.found)
        status = error_memory(err, "trying a link between devices", 2 * (uint64_t)PATTERN_BYTES);
    if (status == STATUS_OK && to->ops->link) status = to->ops->link(to, from, err);
    if (status == STATUS_OK) status = link_unpaced(&t, way, why, err);
    if (status == STATUS_OK) {
        device_poison(device_stream(to, STREAM_H2D), device_arena(to), t.bytes);
        device_poison(device_stream(from, STREAM_H2D), device_arena(from), t.bytes);
        status = settle(to, STREAM_H2D, err);
    }
    if (status == STATUS_OK) status = settle(from, STREAM_H2D, err);
    free(t.pattern);
    free(t.found);
    return status;
}
