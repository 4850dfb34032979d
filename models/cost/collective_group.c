/*
 * The messages of a level are its rings':
 *
 *     inner   in each node from member to member
 *     outer   from each member to the member at the same place of the next node
 *     alone   from the last member of each node to the first of the next: a ring through all members
 *
 * For each, the messages of all groups are counted on every link. A message's speed is its share of its most crowded
 * link; for the slowest message, max-min fair sharing gives the same.
 */
#include "models/cost/collective_group.h"

#include <math.h>
#include <stdlib.h>

#include "base/try.h"
#include "models/cost/cost.h"

enum step { STEP_INNER, STEP_OUTER, STEP_ALONE };

enum status collective_finder_init(struct arena *arena, const struct hardware *hardware,
                                   struct collective_finder *out, struct error *err)
{
    size_t devices = hardware->device_count;
    *out = (struct collective_finder){.hardware = hardware};
    TRY(ARENA_NEW(arena, 2 * (size_t)hardware->link_count, out->flows, err));
    TRY(ARENA_NEW(arena, 2 * (size_t)hardware->link_count, out->messages, err));
    TRY(ARENA_NEW(arena, 3 * devices, out->order, err));
    out->nodes = out->order + devices;
    out->counts = out->nodes + devices;
    return STATUS_OK;
}

/* --- nodes ---------------------------------------------------------------------------------- */

/* Returns the innermost network, or without one the host. */
static uint32_t node_of(const struct hardware *hardware, uint32_t device)
{
    const struct hardware_device *of = &hardware->devices[device];
    return of->network_count > 0 ? of->networks[0].group : HARDWARE_NETWORK_GROUPS_MAX + 1 + of->host;
}

/* Sorts the group's devices by node into order[] and returns the number of nodes. */
static uint32_t arrange(const struct collective_finder *f, const uint32_t *devices, uint32_t members,
                        uint32_t *order)
{
    uint32_t nodes = 0;
    bool even = true;
    for (uint32_t i = 0; i < members; i++) {
        uint32_t group = node_of(f->hardware, devices[i]), k = 0;
        while (k < nodes && f->nodes[k] != group) k++;
        if (k == nodes) {
            f->nodes[nodes] = group;
            f->counts[nodes++] = 0;
        }
        f->counts[k]++;
    }
    for (uint32_t k = 1; k < nodes; k++) even = even && f->counts[k] == f->counts[0];
    uint32_t locals = even ? members / nodes : 1;
    for (uint32_t k = 0; k < nodes; k++) f->counts[k] = 0;
    for (uint32_t i = 0; i < members; i++) {
        uint32_t group = node_of(f->hardware, devices[i]), k = 0;
        while (f->nodes[k] != group) k++;
        order[even ? k * locals + f->counts[k]++ : i] = devices[i];
    }
    return even ? nodes : members;
}

/* --- messages ------------------------------------------------------------------------------- */

/* Finds message i < members of a group's step; false when there is none. */
static bool message(const struct collective_group *group, enum step step, uint32_t i, uint32_t *from,
                    uint32_t *to)
{
    uint32_t locals = group->inner.members, nodes = group->outer.members;
    uint32_t node = i / locals, place = i % locals, next = (node + 1) % nodes;
    *from = i;
    *to = step == STEP_INNER   ? node * locals + (place + 1) % locals
          : step == STEP_OUTER ? next * locals + place
                               : next * locals;
    return (step == STEP_INNER ? locals : nodes) > 1 && (step != STEP_ALONE || place + 1 == locals);
}

static void count_message(const struct collective_finder *f, uint32_t from, uint32_t to, uint32_t change)
{
    const struct p2p_route route = hardware_p2p_route(f->hardware, from, to);
    for (uint32_t h = 0; h < route.up_count + route.down_count; h++)
        f->flows[hardware_route_link_dir(f->hardware, &route, h)] += change;
}

static void time_message(const struct collective_finder *f, uint32_t from, uint32_t to,
                         struct collective_level *level)
{
    const struct hardware *hardware = f->hardware;
    const struct p2p_route route = hardware_p2p_route(hardware, from, to);
    double bytes_per_s = cost_p2p_bandwidth(hardware, from, to);
    for (uint32_t h = 0; h < route.up_count + route.down_count; h++)
        bytes_per_s = fmin(bytes_per_s, hardware->links[route.links[h]].bandwidth.value /
                                            f->flows[hardware_route_link_dir(hardware, &route, h)]);
    level->latency_s = fmax(level->latency_s, cost_p2p_latency_s(hardware, from, to));
    if (level->bytes_per_s <= 0 || bytes_per_s < level->bytes_per_s) level->bytes_per_s = bytes_per_s;
}

static struct collective_level *level_of(struct collective_group *group, enum step step)
{
    return step == STEP_INNER ? &group->inner : step == STEP_OUTER ? &group->outer : &group->alone;
}

/* Applies measured ring steps inside a node of one type; for large messages their last rate. */
static void use_measured_ring(const struct hardware *hardware, const uint32_t *order, struct collective_level *inner)
{
    if (inner->members < 2) return;
    const struct device_type *type = &hardware->types[hardware->devices[order[0]].type];
    if (type->ring_count == 0) return;
    for (uint32_t i = 1; i < inner->members; i++)
        if (hardware->devices[order[i]].type != hardware->devices[order[0]].type) return;
    const struct copy_point *last = &type->ring[type->ring_count - 1];
    inner->points = type->ring;
    inner->point_count = type->ring_count;
    inner->latency_s = fmin(inner->latency_s, type->ring[0].seconds);
    inner->bytes_per_s = (double)last->bytes / last->seconds;
}

static bool is_paced(const struct hardware *hardware, uint32_t from, uint32_t to)
{
    const struct p2p_route route = hardware_p2p_route(hardware, from, to);
    for (uint32_t h = 0; h < route.up_count + route.down_count; h++)
        if (hardware->links[route.links[h]].paced) return true;
    return false;
}

/* Applies measured collectives to a group of one node, whose devices are of one type without paced links. */
static void use_measured_collectives(const struct hardware *hardware, const uint32_t *order,
                                     struct collective_group *group)
{
    const uint32_t type = hardware->devices[order[0]].type;
    if (group->outer.members > 1 || group->inner.members < 2 || hardware->types[type].collective_count == 0) return;
    for (uint32_t i = 1; i < group->inner.members; i++)
        if (hardware->devices[order[i]].type != type || is_paced(hardware, order[i - 1], order[i])) return;
    group->measured = &hardware->types[type];
}

static void find_level(const struct collective_finder *f, uint32_t members, uint32_t count,
                       struct collective_group *groups, enum step step)
{
    uint32_t from, to;
    for (uint32_t pass = 0; pass < 3; pass++)
        for (uint32_t g = 0; g < count; g++) {
            const uint32_t *order = f->order + (size_t)g * members;
            for (uint32_t i = 0; i < members; i++) {
                if (!message(&groups[g], step, i, &from, &to)) continue;
                if (pass == 1) time_message(f, order[from], order[to], level_of(&groups[g], step));
                else count_message(f, order[from], order[to], pass == 0 ? 1 : UINT32_MAX); /* back to 0 */
            }
        }
}

/* Returns true when every message has a route. */
static bool connected(const struct collective_finder *f, const uint32_t *order, uint32_t members,
                      const struct collective_group *group, uint32_t lacking[2])
{
    uint32_t from, to;
    for (enum step step = STEP_INNER; step <= STEP_ALONE; step++)
        for (uint32_t i = 0; i < members; i++) {
            if (!message(group, step, i, &from, &to)) continue;
            if (hardware_reaches(f->hardware, order[from], order[to])) continue;
            lacking[0] = order[from];
            lacking[1] = order[to];
            return false;
        }
    return true;
}

/* --- link directions of a way ----------------------------------------------------------- */

struct collecting {
    const struct collective_finder *finder;
    const struct collective_group *group;
    struct collective_link_dir *link_dirs; /* so far */
    uint32_t count;
    bool more_of_two;
};

/* Turns the count on a link direction into messages, once. */
static void flush_count(struct collecting *c, uint32_t link, uint32_t link_dir, double share)
{
    uint32_t *flows = &c->finder->flows[link_dir];
    double *messages = &c->finder->messages[link_dir], more = *flows * share;
    *flows = 0;
    if (!(more > 0)) return;
    if (!(*messages > 0))
        c->link_dirs[c->count++] = (struct collective_link_dir){.link = link, .direction = link_dir % 2};
    *messages = c->more_of_two ? fmax(*messages, more) : *messages + more;
}

/* Counts `share` of each of the first `senders` members' messages. */
static void collect(struct collecting *c, enum step step, uint32_t senders, double share)
{
    const struct collective_finder *f = c->finder;
    uint32_t from, to;
    for (uint32_t i = 0; i < senders; i++)
        if (message(c->group, step, i, &from, &to)) count_message(f, f->order[from], f->order[to], 1);
    for (uint32_t i = 0; i < senders; i++) {
        if (!message(c->group, step, i, &from, &to)) continue;
        const struct p2p_route route = hardware_p2p_route(f->hardware, f->order[from], f->order[to]);
        for (uint32_t h = 0; h < route.up_count + route.down_count; h++)
            flush_count(c, route.links[h], hardware_route_link_dir(f->hardware, &route, h), share);
    }
}

static double slowest_start_s(const struct collective_finder *f, const uint32_t *devices, uint32_t members)
{
    double slowest = 0;
    for (uint32_t i = 0; i < members && members > 1; i++)
        slowest = fmax(slowest, f->hardware->types[f->hardware->devices[devices[i]].type].collective_latency.value);
    return slowest;
}

/* --- public --------------------------------------------------------------------------------- */

bool collective_groups_find(const struct collective_finder *f, const uint32_t *devices, uint32_t members,
                            uint32_t count, struct collective_group *groups, uint32_t lacking[2])
{
    for (uint32_t g = 0; g < count; g++) {
        const uint32_t *own = devices + (size_t)g * members;
        uint32_t *order = f->order + (size_t)g * members;
        uint32_t nodes = members > 1 ? arrange(f, own, members, order) : 1;
        groups[g] = (struct collective_group){.inner = {.members = members / nodes},
                                              .outer = {.members = nodes},
                                              .alone = {.members = nodes}};
        if (!connected(f, order, members, &groups[g], lacking)) return false;
        groups[g].start_s = slowest_start_s(f, own, members);
    }
    for (enum step step = STEP_INNER; step <= STEP_ALONE; step++)
        find_level(f, members, count, groups, step);
    for (uint32_t g = 0; g < count; g++) {
        use_measured_ring(f->hardware, f->order + (size_t)g * members, &groups[g].inner);
        use_measured_collectives(f->hardware, f->order + (size_t)g * members, &groups[g]);
    }
    return true;
}

static int compare_link_dirs(const void *left, const void *right)
{
    const struct collective_link_dir *a = left, *b = right;
    uint32_t link_dir_a = 2 * a->link + a->direction, link_dir_b = 2 * b->link + b->direction;
    return link_dir_a < link_dir_b ? -1 : link_dir_a > link_dir_b;
}

uint32_t collective_group_link_dirs(const struct collective_finder *f, const uint32_t *devices, uint32_t members,
                                    enum collective_way way, struct collective_link_dir *link_dirs)
{
    const uint32_t nodes = arrange(f, devices, members, f->order), locals = members / nodes;
    struct collective_group group = {.inner = {.members = locals}, .outer = {.members = nodes}};
    double inside = way == COLLECTIVE_SPREAD ? (locals - 1.0) / (members - 1.0) : 1;
    double between = way == COLLECTIVE_SPREAD ? (double)(members - locals) / (members - 1.0) : 1;
    struct collecting c = {
        .finder = f, .group = &group, .link_dirs = link_dirs, .more_of_two = way == COLLECTIVE_AROUND};
    if (way == COLLECTIVE_ONE) {
        collect(&c, nodes > 1 ? STEP_OUTER : STEP_INNER, 1, 1);
    } else {
        if (way != COLLECTIVE_BETWEEN) collect(&c, STEP_INNER, members, inside);
        if (way == COLLECTIVE_AROUND) collect(&c, STEP_ALONE, members, between);
        else if (way != COLLECTIVE_INSIDE) collect(&c, STEP_OUTER, members, between);
    }
    for (uint32_t i = 0; i < c.count; i++) {
        double *messages = &f->messages[2 * link_dirs[i].link + link_dirs[i].direction];
        link_dirs[i].messages = *messages;
        *messages = 0;
    }
    qsort(link_dirs, c.count, sizeof *link_dirs, compare_link_dirs);
    return c.count;
}

enum collective_algorithm collective_algorithm_of(enum collective_kind kind, enum collective_algorithm forced,
                                                  const struct collective_group *group, uint64_t bytes)
{
    if (forced != COLLECTIVE_ALGORITHM_COUNT && collective_has(kind, forced)) return forced;
    return collective_choose(kind, group, bytes);
}

double collective_seconds(enum collective_kind kind, enum collective_algorithm forced,
                          const struct collective_group *group, uint64_t bytes)
{
    return collective_cost(kind, collective_algorithm_of(kind, forced, group, bytes), group, bytes).seconds;
}
