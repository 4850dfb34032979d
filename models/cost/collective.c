/*
 * A collective's parts add up. A part is a number of steps of one size on one level (a ring), or of growing sizes
 * (halving), or a pipelined stream (a tree).
 *
 * Halving. In step i of an all-gather, a member has 2^i shares and sends them to the member 2^i places before it; the
 * last step sends only the n - 2^i missing ones. A group of any size n thus takes L steps and sends n - 1 shares. A
 * reduce-scatter is the reverse. An all-to-all sends in step i all shares whose distance to their destination has bit
 * i set.
 *
 * Worked example: all-reduce of 1 MB among 8 members, 10 us and 100 GB/s. Ring: 14 steps of 125 kB, 14 (10 us + 1.25
 * us) = 157.5 us. Tree: 6 steps and 2 MB, 60 us + 20 us = 80 us. They cost the same if b = n latency bandwidth (n - 1
 * - L) = 8 * 1 MB * 4 = 32 MB.
 */
#include "models/cost/collective.h"

#include <assert.h>
#include <math.h>

#include "base/size.h"
#include "models/cost/cost.h"
#include "models/hardware/collective_rate.h"

#define ALGORITHM_NAME(algorithm, name) [COLLECTIVE_##algorithm] = name,
const char *const collective_algorithm_names[] = {COLLECTIVE_ALGORITHMS(ALGORITHM_NAME)};
#undef ALGORITHM_NAME
static_assert(ARRAY_COUNT(collective_algorithm_names) == COLLECTIVE_ALGORITHM_COUNT,
              "a name per algorithm");

bool collective_has(enum collective_kind kind, enum collective_algorithm algorithm)
{
    static const bool table[COLLECTIVE_KIND_COUNT][COLLECTIVE_ALGORITHM_COUNT] = {
        [COLLECTIVE_ALL_REDUCE] = {true, true, true, true},
        [COLLECTIVE_REDUCE_SCATTER] = {true, false, true, true},
        [COLLECTIVE_ALL_GATHER] = {true, false, true, true},
        [COLLECTIVE_BROADCAST] = {true, true, false, true},
        [COLLECTIVE_ALL_TO_ALL] = {true, false, true, true},
        [COLLECTIVE_SEND] = {true, false, false, false},
    };
    assert(kind < COLLECTIVE_KIND_COUNT && algorithm < COLLECTIVE_ALGORITHM_COUNT);
    return table[kind][algorithm];
}

/* --- links ------------------------------------------------------------------------------------ */

static double transfer_s(const struct collective_level *level, double bytes)
{
    if (level->point_count == 0) return bytes / level->bytes_per_s;
    return fmax(0, cost_curve_s(level->points, level->point_count, level->latency_s, bytes) -
                       level->latency_s);
}

/* One level, or the slower of two. */
struct links {
    const struct collective_level *levels[2];
    uint32_t count;
};

static struct links links_of(const struct collective_group *group, enum collective_way way)
{
    struct links links = {.count = 0};
    bool outside = group->outer.members > 1 && way != COLLECTIVE_INSIDE;
    bool inside = group->inner.members > 1 && way != COLLECTIVE_BETWEEN && !(way == COLLECTIVE_ONE && outside);
    if (inside) links.levels[links.count++] = &group->inner;
    if (outside)
        links.levels[links.count++] =
            way == COLLECTIVE_AROUND && group->alone.members > 0 ? &group->alone : &group->outer;
    assert(links.count > 0);
    return links;
}

static double latency_of(const struct links *links)
{
    double slowest = 0;
    for (uint32_t i = 0; i < links->count; i++) slowest = fmax(slowest, links->levels[i]->latency_s);
    return slowest;
}

static double step_s(const struct links *links, double bytes)
{
    double slowest = 0;
    for (uint32_t i = 0; i < links->count; i++) {
        const struct collective_level *level = links->levels[i];
        slowest = fmax(slowest, level->latency_s + transfer_s(level, bytes));
    }
    return slowest;
}

static double step_transfer_s(const struct links *links, double bytes)
{
    double slowest = 0;
    for (uint32_t i = 0; i < links->count; i++) slowest = fmax(slowest, transfer_s(links->levels[i], bytes));
    return slowest;
}

/* --- parts ------------------------------------------------------------------------------------ */

struct collective_parts {
    const struct collective_group *group;
    struct collective_part *at;
    uint32_t count;
};

static struct collective_part *add_part(struct collective_parts *parts, enum collective_way way)
{
    assert(parts->count < COLLECTIVE_PARTS_MAX);
    parts->at[parts->count] = (struct collective_part){.way = way};
    return &parts->at[parts->count++];
}

static void add_steps(struct collective_part *part, const struct links *links, uint64_t steps, double bytes)
{
    part->steps += steps;
    part->sent_bytes += (double)steps * bytes;
    part->seconds += (double)steps * step_s(links, bytes);
    part->transfer_s += (double)steps * step_transfer_s(links, bytes);
}

/* Adds steps of latency, and all bytes once. */
static void add_stream(struct collective_part *part, const struct links *links, uint64_t steps, double bytes)
{
    part->steps += steps;
    part->sent_bytes += bytes;
    part->seconds += (double)(steps - 1) * latency_of(links) + step_s(links, bytes);
    part->transfer_s += step_transfer_s(links, bytes);
}

static uint32_t log2_up(uint32_t members)
{
    uint32_t log = 0;
    while (UINT64_C(1) << log < members) log++;
    return log;
}

static void add_ring(struct collective_parts *parts, enum collective_kind kind, enum collective_way way,
                     uint32_t members, double bytes)
{
    if (members == 1) return;
    const struct links links = links_of(parts->group, way);
    struct collective_part *part = add_part(parts, way);
    uint64_t once = members - 1;
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE: add_steps(part, &links, 2 * once, bytes / members); break;
    case COLLECTIVE_BROADCAST: add_stream(part, &links, once, bytes); break;
    case COLLECTIVE_SEND: add_steps(part, &links, 1, bytes); break;
    default: add_steps(part, &links, once, bytes / members); break;
    }
}

static void add_tree(struct collective_parts *parts, enum collective_kind kind, uint32_t members, double bytes)
{
    if (members == 1) return;
    const struct links links = links_of(parts->group, COLLECTIVE_AROUND);
    uint32_t phases = kind == COLLECTIVE_ALL_REDUCE ? 2 : 1; /* up and down again */
    add_stream(add_part(parts, COLLECTIVE_AROUND), &links, phases * log2_up(members), phases * bytes);
}

/* Counts 0 ... members - 1 with bit `bit` set. */
static uint64_t count_with_bit(uint32_t members, uint32_t bit)
{
    uint64_t half = UINT64_C(1) << bit, rest = members % (2 * half);
    return members / (2 * half) * half + (rest > half ? rest - half : 0);
}

static void add_halving(struct collective_parts *parts, enum collective_kind kind, uint32_t members, double bytes)
{
    if (members == 1) return;
    const struct links links = links_of(parts->group, COLLECTIVE_SPREAD);
    struct collective_part *part = add_part(parts, COLLECTIVE_SPREAD);
    uint32_t phases = kind == COLLECTIVE_ALL_REDUCE ? 2 : 1; /* reduce-scatter, all-gather */
    for (uint32_t i = 0; i < log2_up(members); i++) {
        uint64_t power = UINT64_C(1) << i, missing = members - power;
        uint64_t shares = power < missing ? power : missing;
        if (kind == COLLECTIVE_ALL_TO_ALL) shares = count_with_bit(members, i);
        add_steps(part, &links, phases, (double)shares * bytes / members);
    }
}

/* Adds parts inside nodes, between nodes with one member's share, and inside nodes again. */
static void add_hierarchical(struct collective_parts *parts, enum collective_kind kind, double bytes)
{
    uint32_t locals = parts->group->inner.members, nodes = parts->group->outer.members;
    double share = bytes / locals;
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        add_ring(parts, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_INSIDE, locals, bytes);
        add_ring(parts, COLLECTIVE_ALL_REDUCE, COLLECTIVE_BETWEEN, nodes, share);
        add_ring(parts, COLLECTIVE_ALL_GATHER, COLLECTIVE_INSIDE, locals, bytes);
        break;
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALL_GATHER: /* in the other order, which costs the same */
        add_ring(parts, kind, COLLECTIVE_INSIDE, locals, bytes);
        add_ring(parts, kind, COLLECTIVE_BETWEEN, nodes, share);
        break;
    default: /* to one member of each node, or to equal places; then inside the nodes */
        add_ring(parts, kind, COLLECTIVE_BETWEEN, nodes, bytes);
        add_ring(parts, kind, COLLECTIVE_INSIDE, locals, bytes);
        break;
    }
}

/* --- public ----------------------------------------------------------------------------------- */

static double rate_s(const struct collective_rate *rate, double bytes)
{
    return cost_curve_s(rate->points, rate->point_count, rate->points[0].seconds, bytes);
}

/* Replaces the seconds of a collective's parts by measured ones, if there are some. */
static void use_measured(enum collective_kind kind, double bytes, struct collective_parts *parts)
{
    const struct collective_group *group = parts->group;
    const uint32_t members = kind == COLLECTIVE_SEND ? 2 : group->inner.members;
    const struct collective_rate *both[2];
    if (!group->measured || bytes <= 0 || !collective_rate_around(group->measured, kind, members, both)) return;
    const double low_s = rate_s(both[0], bytes), high_s = rate_s(both[1], bytes);
    const uint32_t low = both[0]->members, high = both[1]->members;
    const double seconds = low == high ? low_s : low_s + (high_s - low_s) * (members - low) / (high - low);
    double sum_s = 0;
    for (uint32_t i = 0; i < parts->count; i++) sum_s += parts->at[i].seconds;
    for (uint32_t i = 0; i < parts->count; i++) {
        struct collective_part *part = &parts->at[i];
        part->seconds = parts->count == 1 ? seconds : seconds * (part->seconds / sum_s);
        part->transfer_s = fmin(part->transfer_s, part->seconds);
    }
}

uint32_t collective_parts(enum collective_kind kind, enum collective_algorithm algorithm,
                          const struct collective_group *group, uint64_t bytes,
                          struct collective_part out[COLLECTIVE_PARTS_MAX])
{
    assert(collective_has(kind, algorithm));
    assert(group->inner.members > 0 && group->outer.members > 0);
    struct collective_parts parts = {.group = group, .at = out};
    uint32_t members = group->inner.members * group->outer.members;
    enum collective_way ring = kind == COLLECTIVE_ALL_TO_ALL ? COLLECTIVE_SPREAD
                               : kind == COLLECTIVE_SEND     ? COLLECTIVE_ONE
                                                             : COLLECTIVE_AROUND;
    switch (algorithm) {
    case COLLECTIVE_RING: add_ring(&parts, kind, ring, members, (double)bytes); break;
    case COLLECTIVE_TREE: add_tree(&parts, kind, members, (double)bytes); break;
    case COLLECTIVE_HALVING: add_halving(&parts, kind, members, (double)bytes); break;
    case COLLECTIVE_HIERARCHICAL: add_hierarchical(&parts, kind, (double)bytes); break;
    case COLLECTIVE_ALGORITHM_COUNT: break;
    }
    if (parts.count > 0 && kind != COLLECTIVE_SEND) out[0].seconds += group->start_s;
    if (parts.count > 0) use_measured(kind, (double)bytes, &parts);
    return parts.count;
}

struct collective_cost collective_cost(enum collective_kind kind, enum collective_algorithm algorithm,
                                       const struct collective_group *group, uint64_t bytes)
{
    struct collective_part parts[COLLECTIVE_PARTS_MAX];
    struct collective_cost cost = {0};
    uint32_t count = collective_parts(kind, algorithm, group, bytes, parts);
    for (uint32_t i = 0; i < count; i++) {
        cost.steps += parts[i].steps;
        cost.sent_bytes += parts[i].sent_bytes;
        cost.seconds += parts[i].seconds;
    }
    return cost;
}

double collective_way_bytes_per_s(const struct collective_group *group, enum collective_way way)
{
    const struct links links = links_of(group, way);
    double slowest = INFINITY;
    for (uint32_t i = 0; i < links.count; i++) slowest = fmin(slowest, links.levels[i]->bytes_per_s);
    return slowest;
}

enum collective_algorithm collective_choose(enum collective_kind kind,
                                            const struct collective_group *group, uint64_t bytes)
{
    enum collective_algorithm best = COLLECTIVE_RING;
    double best_s = collective_cost(kind, best, group, bytes).seconds;
    bool nested = group->inner.members > 1 && group->outer.members > 1;
    static const enum collective_algorithm others[] = {COLLECTIVE_TREE, COLLECTIVE_HIERARCHICAL};
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        if (!collective_has(kind, others[i])) continue;
        if (others[i] == COLLECTIVE_HIERARCHICAL && !nested) continue;
        double seconds = collective_cost(kind, others[i], group, bytes).seconds;
        if (seconds >= best_s) continue;
        best = others[i];
        best_s = seconds;
    }
    return best;
}
