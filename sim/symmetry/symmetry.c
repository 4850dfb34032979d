/*
 * One node of each colour is simulated: the device with the lowest number, and its copies and collectives. The links of
 * these are replaced by the links that stand for them.
 *
 *     stage 0: devices 0 1 2 3      copies 0 -> 4, 1 -> 5, 2 -> 6, 3 -> 7, each over links of its own:
 *     stage 1: devices 4 5 6 7      0 stands for 0 .. 3, 4 for 4 .. 7
 *     device 2 slow                 0 stands for 0, 1, 3; 4 for 4, 5, 7; an all-reduce over 0 .. 3 joins 0 and 2
 *
 * Two flows of a colour that share a link, such as copies of a stage whose devices have one NIC, get different colours
 * by their positions in its order, and the refinement is refined. In replicas with a NIC each, all first devices still
 * do the same, all second devices do, and so on. Not done: one such flow in place of several, which would have to begin
 * together.
 *
 * Rounding is equal. A simulated link has the same crossing flows in the same order. Only flows that share links affect
 * each other. Equal times have the order of the plan, and within an operation the order of places, as on every other
 * link of that colour. Flows without shared links but with equal caps are one class of sim/network/share.h, which is
 * told their full number.
 */
#include "sim/symmetry/symmetry.h"

#include <assert.h>

#include "sim/engine/allocate.h"
#include "sim/symmetry/symmetry_graph.h"

static uint32_t colour_of(const struct symmetry_graph *g, uint32_t node)
{
    return sim_refinement_of(g->refinement, node);
}

/* --- splitting colours ------------------------------------------------------------------------- */

struct telling {
    uint32_t *marks;  /* per node: number of earlier nodes of its colour on a link direction */
    uint32_t node_count;
    uint32_t *counts; /* per direction and colour: count on the current link ... */
    uint32_t *links;  /* ... which is this number - 1 */
    bool some;
};

static void mark(struct telling *t, uint32_t node, uint32_t times)
{
    if (times > t->marks[node]) t->marks[node] = times;
    t->some |= times > 0;
}

static void mark_flows(const struct symmetry_graph *g, struct telling *t)
{
    for (uint32_t i = 0; i < 2 * t->node_count; i++) t->links[i] = 0;
    for (size_t i = 0; i < g->crossing_count; i++) {
        const struct symmetry_crossing *at = &g->crossings[i];
        uint32_t direction = g->setup->hardware->links[at->link].duplex ? at->direction : 0;
        uint32_t entry = 2 * colour_of(g, at->node) + direction;
        if (t->links[entry] != at->link + 1) t->counts[entry] = 0;
        t->links[entry] = at->link + 1;
        mark(t, at->node, t->counts[entry]++);
    }
}

/* Marks copies of a device from two devices of one colour, which would become one copy. */
static void mark_pairs(const struct symmetry_graph *g, struct telling *t)
{
    for (uint32_t i = 0; i < g->pair_count; i++) {
        uint32_t alike = 0;
        for (uint32_t k = i; k > 0 && g->pairs[k - 1].to == g->pairs[i].to; k--)
            alike += g->pairs[k - 1].from != g->pairs[i].from &&
                     colour_of(g, g->pairs[k - 1].from) == colour_of(g, g->pairs[i].from);
        mark(t, g->pairs[i].node, alike);
    }
}

/* Splits colours by the marks. Returns false if nothing had to be split. */
static bool tell_apart(const struct symmetry_graph *g, struct telling *t)
{
    for (uint32_t n = 0; n < t->node_count; n++) t->marks[n] = 0;
    t->some = false;
    mark_flows(g, t);
    mark_pairs(g, t);
    if (!t->some) return false;
    if (sim_refinement_tell_apart(g->refinement, t->marks)) return true;
    for (uint32_t n = 0; n < t->node_count; n++) t->marks[n] = t->marks[n] > 0 ? 1 + n : 0;
    bool told = sim_refinement_tell_apart(g->refinement, t->marks);
    assert(told);
    return true;
}

static enum status colour(const struct symmetry_graph *g, struct arena *scratch, struct error *err)
{
    enum status status = sim_refinement_find(g->refinement, err);
    if (status != STATUS_OK) return status;
    struct telling t = {.node_count = sim_refinement_nodes(g->refinement)};
    t.marks = sim_allocate(scratch, t.node_count, sizeof *t.marks, &status, err);
    t.counts = sim_allocate(scratch, 2 * (size_t)t.node_count, sizeof *t.counts, &status, err);
    t.links = sim_allocate(scratch, 2 * (size_t)t.node_count, sizeof *t.links, &status, err);
    if (status != STATUS_OK) return status;
    while (tell_apart(g, &t)) continue;
    return STATUS_OK;
}

/* --- representatives --------------------------------------------------------------------------- */

/* Finds, for each of `count` things, the first one with the colour of its node; PLAN_NONE: no node. `firsts`: per
 * colour, first + 1, zeroed before. */
static void find_firsts(const struct symmetry_graph *g, const uint32_t *nodes, uint32_t count, uint32_t *firsts,
                        uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = nodes ? nodes[i] : i;
        out[i] = i;
        if (node == PLAN_NONE) continue;
        uint32_t *first = &firsts[colour_of(g, node)];
        if (*first == 0) *first = i + 1;
        out[i] = *first - 1;
    }
}

static enum status keep_groups(const struct symmetry_graph *g, struct arena *arena, uint32_t *firsts,
                               struct sim_symmetry *out, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t count = sim_collectives_group_count(g->setup->collectives);
    uint32_t *stands_for = sim_allocate(g->arena, count, sizeof *stands_for, &status, err);
    out->kept = sim_allocate(arena, count, sizeof *out->kept, &status, err);
    if (status != STATUS_OK) return status;
    find_firsts(g, g->group_nodes, count, firsts, stands_for);
    for (uint32_t i = 0; i < count; i++) out->kept[i] = stands_for[i] == i;
    return STATUS_OK;
}

/* Counts each pair of devices once. */
static enum status count_pairs(const struct symmetry_graph *g, struct arena *arena, uint32_t *times,
                               struct sim_symmetry *out, struct error *err)
{
    enum status status = STATUS_OK;
    out->pairs = sim_allocate(arena, g->pair_count, sizeof *out->pairs, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < g->pair_count; i++) {
            const struct symmetry_pair *pair = &g->pairs[i];
            if (i > 0 && g->pairs[i - 1].node == pair->node) continue;
            uint32_t *of_colour = &times[colour_of(g, pair->node)];
            if (pass == 0) ++*of_colour;
            else out->pairs[count++] = (struct sim_symmetry_pair){pair->to, pair->from, *of_colour};
        }
        out->pair_count = count;
    }
    return STATUS_OK;
}

static enum status fill(const struct symmetry_graph *g, struct arena *arena, struct sim_symmetry *out,
                        struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t devices = g->setup->plan->hardware.device_count, links = g->setup->hardware->link_count;
    uint32_t *by_colour = sim_allocate(g->arena, sim_refinement_nodes(g->refinement), sizeof *by_colour, &status, err);
    out->stands_for = sim_allocate(arena, devices, sizeof *out->stands_for, &status, err);
    out->link_for = sim_allocate(arena, links, sizeof *out->link_for, &status, err);
    if (status != STATUS_OK) return status;
    find_firsts(g, NULL, devices, by_colour, out->stands_for); /* each colour has nodes of one kind */
    find_firsts(g, g->link_nodes, links, by_colour, out->link_for);
    status = keep_groups(g, arena, by_colour, out, err);
    if (status == STATUS_OK) status = count_pairs(g, arena, by_colour, out, err);
    for (uint32_t d = 0; d < devices; d++) out->represented += out->stands_for[d] != d;
    return status;
}

/* --- public ---------------------------------------------------------------------------------- */

enum status sim_symmetry_find(struct arena *arena, const struct sim_symmetry_setup *setup, struct sim_symmetry *out,
                              struct error *err)
{
    struct arena scratch = {0};
    struct symmetry_graph graph;
    struct sim_symmetry found = {0};
    bool possible;
    enum status status = symmetry_graph_make(&scratch, setup, &graph, &possible, err);
    if (status == STATUS_OK && possible) status = colour(&graph, &scratch, err);
    if (status == STATUS_OK && possible) status = fill(&graph, arena, &found, err);
    if (status == STATUS_OK) *out = found.represented > 0 ? found : (struct sim_symmetry){0};
    symmetry_graph_release(&graph);
    arena_release(&scratch);
    return status;
}

uint32_t sim_symmetry_times(const struct sim_symmetry *symmetry, uint32_t to, uint32_t from)
{
    uint32_t low = 0, high = symmetry->pair_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        const struct sim_symmetry_pair *pair = &symmetry->pairs[middle];
        if (pair->to < to || (pair->to == to && pair->from <= from)) low = middle;
        else high = middle;
    }
    assert(low < symmetry->pair_count && symmetry->pairs[low].to == to && symmetry->pairs[low].from == from);
    return symmetry->pairs[low].times;
}
