/*
 * Nodes of a colour are consecutive in `order`. A colour that may have to be split is *due*: each of its nodes is
 * described by the sorted roles and colours of its neighbours, and nodes with equal descriptions stay together. The
 * largest part keeps its colour; the other parts get new colours, and then the colours of their neighbours are due.
 *
 *     order    [ 0 4 7 | 1 2 | 3 5 6 ]      colours 0, 1, 2: their begins and counts
 *
 * Cost: computing and sorting descriptions. A node is described again only when a neighbour's colour has changed, so a
 * difference that spreads along a chain of n stages costs n small steps and not n passes over the graph.
 */
#include "sim/symmetry/refinement.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/order.h"

enum { NODES_MAX = 1 << 30, NUMBERS_MAX = 1 << 30 };

struct refinement_edge {
    uint32_t from, to;
    uint32_t role; /* of `to` for `from` */
};

struct colour {
    uint32_t first, count; /* in order */
    bool due;
};

/* A node, in the form in which it is compared with others of its colour. */
struct description {
    const uint64_t *numbers;
    uint32_t count, node;
};

struct sim_refinement {
    size_t *label_ends; /* by node: in labels */
    uint64_t *labels;
    struct refinement_edge *edges; /* after sim_refinement_find(): sorted by `from` */
    size_t node_count, label_count, edge_count;
    size_t node_capacity, label_capacity, edge_capacity;
    bool failed;        /* memory ended */
    struct error ignored; /* with the same information */

    size_t *first_edge; /* by node, and one more */
    uint32_t *order;    /* nodes */
    uint32_t *colour_of; /* by node */
    struct colour *colours;
    uint32_t colour_count;
    uint32_t *due;      /* colours */
    uint32_t due_count;
    struct description *descriptions; /* scratch: one per node ... */
    uint64_t *numbers;  /* ... and one per edge, or label number */
};

struct sim_refinement *sim_refinement_create(void)
{
    return alloc_zeroed(1, sizeof(struct sim_refinement));
}

void sim_refinement_destroy(struct sim_refinement *c)
{
    if (!c) return;
    free(c->label_ends);
    free(c->labels);
    free(c->edges);
    free(c->first_edge);
    free(c->order);
    free(c->colour_of);
    free(c->colours);
    free(c->due);
    free(c->descriptions);
    free(c->numbers);
    free(c);
}

/* --- the graph ------------------------------------------------------------------------------- */

uint32_t sim_refinement_node(struct sim_refinement *c)
{
    if (array_reserve(&c->label_ends, &c->node_capacity, c->node_count, sizeof *c->label_ends, NODES_MAX, "nodes",
                      &c->ignored)) {
        c->failed = true;
        return 0;
    }
    c->label_ends[c->node_count] = c->label_count;
    return (uint32_t)c->node_count++;
}

void sim_refinement_label(struct sim_refinement *c, uint64_t number)
{
    if (c->failed || array_reserve(&c->labels, &c->label_capacity, c->label_count, sizeof *c->labels, NUMBERS_MAX,
                                   "labels", &c->ignored)) {
        c->failed = true;
        return;
    }
    c->labels[c->label_count++] = number;
    c->label_ends[c->node_count - 1] = c->label_count;
}

static void add_edge(struct sim_refinement *c, struct refinement_edge edge)
{
    if (c->failed || array_reserve(&c->edges, &c->edge_capacity, c->edge_count, sizeof *c->edges, NUMBERS_MAX,
                                   "edges", &c->ignored)) {
        c->failed = true;
        return;
    }
    assert(edge.from < c->node_count);
    c->edges[c->edge_count++] = edge;
}

void sim_refinement_edge(struct sim_refinement *c, uint32_t a, uint32_t b, uint32_t role_of_b, uint32_t role_of_a)
{
    add_edge(c, (struct refinement_edge){a, b, role_of_b});
    add_edge(c, (struct refinement_edge){b, a, role_of_a});
}

static bool sort_edges(struct sim_refinement *c)
{
    struct refinement_edge *sorted = alloc_zeroed(c->edge_count, sizeof *sorted);
    if (!sorted) return false;
    for (size_t e = 0; e < c->edge_count; e++) c->first_edge[c->edges[e].from + 1]++;
    for (size_t n = 0; n < c->node_count; n++) c->first_edge[n + 1] += c->first_edge[n];
    for (size_t e = 0; e < c->edge_count; e++) sorted[c->first_edge[c->edges[e].from]++] = c->edges[e];
    for (size_t n = c->node_count; n > 0; n--) c->first_edge[n] = c->first_edge[n - 1];
    c->first_edge[0] = 0;
    free(c->edges);
    c->edges = sorted;
    return true;
}

/* --- splitting ------------------------------------------------------------------------------- */

static int compare_contents(const struct description *a, const struct description *b)
{
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->numbers[i] != b->numbers[i]) return a->numbers[i] < b->numbers[i] ? -1 : 1;
    return 0;
}

static int compare_descriptions(const void *left, const void *right)
{
    const struct description *a = left, *b = right;
    int contents = compare_contents(a, b);
    return contents != 0 ? contents : (a->node > b->node) - (a->node < b->node);
}

static void become_due(struct sim_refinement *c, uint32_t colour)
{
    if (c->colours[colour].due || c->colours[colour].count == 1) return;
    c->colours[colour].due = true;
    c->due[c->due_count++] = colour;
}

static void neighbours_become_due(struct sim_refinement *c, uint32_t colour)
{
    const struct colour *of = &c->colours[colour];
    for (uint32_t i = of->first; i < of->first + of->count; i++)
        for (size_t e = c->first_edge[c->order[i]]; e < c->first_edge[c->order[i] + 1]; e++)
            become_due(c, c->colour_of[c->edges[e].to]);
}

/* Gives descriptions [begin, end), of a colour that begins at `first`, a new colour. */
static void recolour(struct sim_refinement *c, uint32_t first, uint32_t begin, uint32_t end)
{
    uint32_t colour = c->colour_count++;
    c->colours[colour] = (struct colour){.first = first + begin, .count = end - begin};
    for (uint32_t i = begin; i < end; i++) c->colour_of[c->descriptions[i].node] = colour;
}

static void split(struct sim_refinement *c, uint32_t colour)
{
    struct description *all = c->descriptions;
    const uint32_t first_new = c->colour_count;
    const uint32_t first = c->colours[colour].first, count = c->colours[colour].count;
    uint32_t keeps = 0, largest = 0, parts = 0;
    qsort(all, count, sizeof *all, compare_descriptions);
    for (uint32_t begin = 0, end; begin < count; begin = end, parts++) {
        for (end = begin + 1; end < count && compare_contents(&all[begin], &all[end]) == 0;) end++;
        if (end - begin <= largest) continue;
        keeps = begin;
        largest = end - begin;
    }
    if (parts == 1) return;
    for (uint32_t i = 0; i < count; i++) c->order[first + i] = all[i].node;
    c->colours[colour].first = first + keeps;
    c->colours[colour].count = largest;
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && compare_contents(&all[begin], &all[end]) == 0;) end++;
        if (begin != keeps) recolour(c, first, begin, end);
    }
    for (uint32_t added = first_new; added < c->colour_count; added++) neighbours_become_due(c, added);
}

/* Describes a node by its neighbours; `numbers` has room. Returns how many numbers it wrote. */
static uint32_t describe(const struct sim_refinement *c, uint32_t node, uint64_t *numbers)
{
    uint32_t count = 0;
    for (size_t e = c->first_edge[node]; e < c->first_edge[node + 1]; e++)
        numbers[count++] = (uint64_t)c->edges[e].role << 32 | c->colour_of[c->edges[e].to];
    if (count > 1) qsort(numbers, count, sizeof *numbers, order_u64);
    return count;
}

static void refine(struct sim_refinement *c)
{
    while (c->due_count > 0) {
        uint32_t colour = c->due[--c->due_count];
        struct colour *of = &c->colours[colour];
        uint64_t *numbers = c->numbers;
        of->due = false;
        for (uint32_t i = 0; i < of->count; i++) {
            uint32_t node = c->order[of->first + i], count = describe(c, node, numbers);
            c->descriptions[i] = (struct description){numbers, count, node};
            numbers += count;
        }
        split(c, colour);
    }
}

/* --- public ---------------------------------------------------------------------------------- */

static bool allocate(struct sim_refinement *c)
{
    size_t nodes = c->node_count, numbers = c->edge_count > nodes ? c->edge_count : nodes;
    c->first_edge = alloc_zeroed(nodes + 1, sizeof *c->first_edge);
    c->order = alloc_zeroed(nodes, sizeof *c->order);
    c->colour_of = alloc_zeroed(nodes, sizeof *c->colour_of);
    c->colours = alloc_zeroed(nodes, sizeof *c->colours);
    c->due = alloc_zeroed(nodes, sizeof *c->due);
    c->descriptions = alloc_zeroed(nodes, sizeof *c->descriptions);
    c->numbers = alloc_zeroed(numbers, sizeof *c->numbers);
    return c->first_edge && c->order && c->colour_of && c->colours && c->due && c->descriptions && c->numbers;
}

enum status sim_refinement_find(struct sim_refinement *c, struct error *err)
{
    if (c->failed || !allocate(c) || !sort_edges(c))
        return error_set(err, STATUS_NO_MEMORY, "no memory for finding out which devices do the same");
    if (c->node_count == 0) return STATUS_OK;
    c->colour_count = 1;
    c->colours[0].count = (uint32_t)c->node_count;
    for (uint32_t n = 0; n < c->node_count; n++) {
        size_t begin = n > 0 ? c->label_ends[n - 1] : 0;
        c->order[n] = n;
        c->descriptions[n] = (struct description){c->labels + begin, (uint32_t)(c->label_ends[n] - begin), n};
    }
    split(c, 0);
    for (uint32_t colour = 0; colour < c->colour_count; colour++) become_due(c, colour);
    refine(c);
    return STATUS_OK;
}

bool sim_refinement_tell_apart(struct sim_refinement *c, const uint32_t *marks)
{
    uint32_t before = c->colour_count;
    for (uint32_t colour = 0; colour < before; colour++) {
        const struct colour *of = &c->colours[colour];
        for (uint32_t i = 0; i < of->count; i++) {
            c->numbers[i] = marks[c->order[of->first + i]];
            c->descriptions[i] = (struct description){c->numbers + i, 1, c->order[of->first + i]};
        }
        split(c, colour);
    }
    refine(c);
    return c->colour_count > before;
}

uint32_t sim_refinement_of(const struct sim_refinement *c, uint32_t node)
{
    assert(node < c->node_count);
    return c->colour_of[node];
}

uint32_t sim_refinement_nodes(const struct sim_refinement *c)
{
    return (uint32_t)c->node_count;
}
