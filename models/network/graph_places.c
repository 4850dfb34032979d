/* Scratch is handed out first fit among the ranges in use, which are few. */
#include "models/network/graph_places.h"

#include <assert.h>
#include <string.h>

#include "base/extreme.h"

/* --- scratch ---------------------------------------------------------------------------------- */

/* Ranges in use of a sample, by offset. */
enum { RANGES_MAX = 3 * GRAPH_LAYER_OPS_MAX };
struct graph_places_room {
    uint64_t samples;
    struct {
        uint64_t offset, words;
    } ranges[RANGES_MAX];
    uint32_t count;
    uint64_t most;
};

/* Returns a range of words, whose offset is for all samples. */
static uint64_t take(struct graph_places_room *room, uint64_t needed)
{
    uint64_t offset = 0;
    uint32_t at = 0;
    while (at < room->count && room->ranges[at].offset < offset + needed) {
        offset = room->ranges[at].offset + room->ranges[at].words;
        at++;
    }
    assert(room->count < RANGES_MAX);
    memmove(&room->ranges[at + 1], &room->ranges[at], (room->count - at) * sizeof room->ranges[0]);
    room->ranges[at].offset = offset;
    room->ranges[at].words = needed;
    room->count++;
    room->most = max_u64(room->most, offset + needed);
    return offset * room->samples;
}

static void give_back(struct graph_places_room *room, uint64_t offset)
{
    uint32_t at = 0;
    while (room->ranges[at].offset * room->samples != offset) at++;
    room->count--;
    memmove(&room->ranges[at], &room->ranges[at + 1], (room->count - at) * sizeof room->ranges[0]);
}

/* --- results ---------------------------------------------------------------------------------- */

struct graph_places_layer {
    const struct network_graph *graph;
    uint64_t samples;
    uint32_t begin, end;
};

static struct graph_places_layer layer_of(const struct network_graph *graph, uint64_t layer, uint64_t samples)
{
    return (struct graph_places_layer){graph, samples, graph->begins[layer], graph->begins[layer + 1]};
}

static bool reads(const struct graph_op *o, uint32_t op)
{
    for (uint32_t i = 0; i < graph_op_reads(o->kind); i++)
        if (o->from[i] == op) return true;
    return false;
}

/* Returns the only reader, which works in place; 0: the result has a place of its own. */
static uint32_t sharer(const struct graph_places_layer *l, uint32_t op)
{
    const struct graph_op *const o = &l->graph->ops[op];
    if (o->kept || o->readers != 1 || o->own_readers != 1) return 0;
    for (uint32_t i = op + 1; i < l->end; i++) {
        const struct graph_op *const reader = &l->graph->ops[i];
        if (!reads(reader, op)) continue;
        const bool in_place = reader->kind == GRAPH_RELU || reader->kind == GRAPH_LOSS ||
                              (reader->kind == GRAPH_ADD && reader->from[0] == op);
        return in_place ? i : 0;
    }
    return 0;
}

/* Returns the operation in whose place the result is. */
static uint32_t root_of(const struct graph_places_layer *l, uint32_t op)
{
    for (uint32_t next; (next = sharer(l, op)) > 0;) op = next;
    return op;
}

/* Returns the last operation of the layer that reads the result, or itself. */
static uint32_t last_reader(const struct graph_places_layer *l, uint32_t op)
{
    uint32_t last = op;
    for (uint32_t i = op + 1; i < l->end; i++)
        if (reads(&l->graph->ops[i], op)) last = i;
    return last;
}

static bool turns(const struct graph_places_layer *l, uint32_t op)
{
    const struct graph_op *const o = &l->graph->ops[op];
    return o->kind == GRAPH_LINEAR && l->graph->ops[o->from[0]].side > 1;
}

/* Places what is not scratch: kept results and notes, outputs, logits. */
static void place_kept(const struct graph_places_layer *l, struct graph_places *out)
{
    uint64_t kept = 0, output = 0, own = 0, logits = 0;
    for (uint32_t i = l->begin; i < l->end; i++) {
        const struct graph_op *const o = &l->graph->ops[i];
        const uint32_t at = i - l->begin;
        const uint64_t words = graph_elements(l->graph, i, l->samples);
        struct graph_place *const place = &out->results[at];
        out->notes[at] = kept;
        kept += graph_noted_words(l->graph, i, l->samples);
        if (o->last_layer > o->layer) {
            *place = (struct graph_place){.kind = GRAPH_PLACE_OUTPUT, .op = i, .offset = output};
            out->copies[at] = own;
            output += words;
            own += o->own_readers > 0 ? words : 0;
        } else if (o->kind == GRAPH_LOSS) {
            *place = (struct graph_place){.kind = GRAPH_PLACE_LOGITS, .offset = logits};
            logits += words;
        } else if (o->kept) {
            *place = (struct graph_place){.kind = GRAPH_PLACE_KEPT, .offset = kept};
            kept += words;
        }
    }
}

/* Returns the words of a sample's scratch. */
static uint64_t place_forward(const struct network_graph *graph, uint64_t layer, uint64_t samples,
                              struct graph_places *out)
{
    const struct graph_places_layer l = layer_of(graph, layer, samples);
    struct graph_places_room room = {.samples = samples};
    memset(out, 0, sizeof *out);
    place_kept(&l, out);
    for (uint32_t i = l.begin; i < l.end; i++) {
        const uint32_t root = root_of(&l, i);
        struct graph_place *const place = &out->results[root - l.begin];
        if (place->kind == GRAPH_PLACE_NONE)
            *place = (struct graph_place){.kind = GRAPH_PLACE_SCRATCH,
                                          .offset = take(&room, graph_elements(graph, root, 1))};
        out->results[i - l.begin] = *place;
        if (turns(&l, i)) {
            out->turned[i - l.begin] = take(&room, graph_elements(graph, graph->ops[i].from[0], 1));
            give_back(&room, out->turned[i - l.begin]);
        }
        for (uint32_t j = l.begin; j <= i; j++) /* read for the last time */
            if (out->results[j - l.begin].kind == GRAPH_PLACE_SCRATCH && root_of(&l, j) == j && last_reader(&l, j) == i)
                give_back(&room, out->results[j - l.begin].offset);
    }
    return room.most;
}

/* --- gradients -------------------------------------------------------------------------------- */

struct graph_places_walk {
    struct graph_places_layer of;
    struct graph_places_room room;
    struct graph_place gradients[GRAPH_LAYER_OPS_MAX]; /* of results so far; NONE: there is none yet */
    uint32_t earlier[GRAPH_LAYER_OPS_MAX * GRAPH_FROM_MAX], earlier_count; /* results with a gradient */
    uint64_t layer;
};

static struct graph_place new_place(struct graph_places_walk *w, uint32_t op)
{
    return (struct graph_place){.kind = GRAPH_PLACE_SCRATCH,
                                .offset = take(&w->room, graph_elements(w->of.graph, op, 1))};
}

/* Adds a gradient of an earlier layer's result. That of a result that also crosses the layer is there from the
 * beginning. */
static struct graph_gradient to_earlier(struct graph_places_walk *w, uint32_t op)
{
    struct graph_gradient gradient = {.to = {.kind = GRAPH_PLACE_EARLIER, .op = op},
                                      .adds = w->of.graph->ops[op].last_layer > w->layer};
    for (uint32_t i = 0; i < w->earlier_count; i++) gradient.adds = gradient.adds || w->earlier[i] == op;
    w->earlier[w->earlier_count++] = op;
    return gradient;
}

/* Returns where the operand's gradient goes. `own`: the operation's own gradient, which it may hand on (else NONE). */
static struct graph_gradient to_operand(struct graph_places_walk *w, uint32_t op, const struct graph_place *own)
{
    if (op == 0) return (struct graph_gradient){.adds = false}; /* images have none */
    if (op < w->of.begin) return to_earlier(w, op);
    struct graph_place *const place = &w->gradients[op - w->of.begin];
    if (place->kind == GRAPH_PLACE_NONE && own->kind != GRAPH_PLACE_NONE) {
        *place = *own;
        return (struct graph_gradient){.to = *place, .shared = true};
    }
    struct graph_gradient gradient = {.adds = place->kind != GRAPH_PLACE_NONE};
    if (place->kind == GRAPH_PLACE_GIVEN) gradient.from = *place;
    if (place->kind != GRAPH_PLACE_SCRATCH && place->kind != GRAPH_PLACE_LOGITS) *place = new_place(w, op);
    gradient.to = *place;
    return gradient;
}

/* Returns true if the kind leaves the operand's gradient in the place of the result's. */
static bool hands_on(const struct graph_back *step, const struct graph_op *o)
{
    if (o->kind == GRAPH_ADD || o->kind == GRAPH_LOSS) return true;
    if (o->kind == GRAPH_RELU && !step->masks) return true;
    return (o->kind == GRAPH_RELU || o->kind == GRAPH_BATCH_NORM) && step->gradient.kind != GRAPH_PLACE_GIVEN;
}

/* Takes room for what a step makes on its way. */
static void take_rooms(struct graph_places_walk *w, struct graph_back *step)
{
    const struct graph_op *const o = &w->of.graph->ops[step->op];
    const uint64_t in = graph_elements(w->of.graph, o->from[0], 1);
    const bool turned = turns(&w->of, step->op);
    const bool product = o->kind == GRAPH_CONVOLUTION || o->kind == GRAPH_UPSAMPLE;
    const bool goes = step->in[0].to.kind != GRAPH_PLACE_NONE;
    const bool apart = product || (o->kind == GRAPH_RELU && step->masks); /* made in one piece, then added */
    const bool first = turned || (apart && goes && step->in[0].adds), second = turned && goes;
    if (first) step->scratch = take(&w->room, in);
    if (second) step->turned = take(&w->room, in);
    if (first) give_back(&w->room, step->scratch);
    if (second) give_back(&w->room, step->turned);
}

/* Sets where the operands' gradients go. The last operand in the layer may have the result's own place. */
static void step_back(struct graph_places_walk *w, struct graph_back *step)
{
    static const struct graph_place none = {.kind = GRAPH_PLACE_NONE};
    const struct graph_op *const o = &w->of.graph->ops[step->op];
    const uint32_t count = graph_op_reads(o->kind);
    const bool hands = hands_on(step, o), given = step->gradient.kind == GRAPH_PLACE_GIVEN;
    bool shared = false;
    for (uint32_t i = 0; i < count; i++) {
        bool last = true;
        for (uint32_t j = i + 1; j < count; j++) last = last && o->from[j] < w->of.begin;
        const bool may = hands && (given || last); /* all may read what is only read */
        step->in[i] = to_operand(w, o->from[i], may ? &step->gradient : &none);
        shared = shared || step->in[i].shared;
    }
    take_rooms(w, step);
    if (step->gradient.kind == GRAPH_PLACE_SCRATCH && !shared) give_back(&w->room, step->gradient.offset);
}

/* Returns the words of a sample's scratch. */
static uint64_t place_back(const struct network_graph *graph, uint64_t layer, uint64_t samples,
                           struct graph_places_back *out)
{
    struct graph_places_walk w = {.of = layer_of(graph, layer, samples), .room.samples = samples, .layer = layer};
    memset(out, 0, sizeof *out);
    for (uint32_t i = w.of.begin; i < w.of.end; i++) {
        struct graph_place *const gradient = &w.gradients[i - w.of.begin];
        if (graph->ops[i].last_layer > layer) *gradient = (struct graph_place){.kind = GRAPH_PLACE_GIVEN, .op = i};
        if (graph->ops[i].kind == GRAPH_LOSS) *gradient = (struct graph_place){.kind = GRAPH_PLACE_LOGITS};
    }
    for (uint32_t i = w.of.end; i-- > w.of.begin;) {
        const struct graph_op *const o = &graph->ops[i];
        struct graph_back *const step = &out->steps[out->count++];
        step->op = i;
        step->masks = o->kind == GRAPH_RELU && (o->last_layer == layer || o->own_readers > 0);
        step->gradient = w.gradients[i - w.of.begin];
        step_back(&w, step);
    }
    return w.room.most;
}

/* --- public ------------------------------------------------------------------------------------ */

void graph_places_forward(const struct network_graph *graph, uint64_t layer, uint64_t samples,
                          struct graph_places *out)
{
    (void)place_forward(graph, layer, samples, out);
}

void graph_places_back(const struct network_graph *graph, uint64_t layer, uint64_t samples,
                       struct graph_places_back *out)
{
    (void)place_back(graph, layer, samples, out);
}

void graph_places_count(const struct network_graph *graph, uint64_t layer, uint64_t words[2])
{
    struct graph_places forward;
    struct graph_places_back back;
    words[0] = place_forward(graph, layer, 1, &forward);
    words[1] = place_back(graph, layer, 1, &back);
}

/* --- outputs ---------------------------------------------------------------------------------- */

uint64_t graph_output_offset(const struct network_graph *graph, uint32_t op, uint64_t samples)
{
    uint64_t words = 0;
    const uint64_t layer = graph->ops[op].layer;
    for (uint32_t i = graph->begins[layer]; i < op; i++)
        if (graph->ops[i].last_layer > layer) words += graph_elements(graph, i, samples);
    return words;
}

uint64_t graph_crossing_offset(const struct network_graph *graph, uint64_t layer, uint32_t op, uint64_t samples)
{
    uint64_t words = 0;
    for (uint32_t i = 1; i < op; i++)
        if (graph->ops[i].last_layer > layer) words += graph_elements(graph, i, samples);
    return words;
}
