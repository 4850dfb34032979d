/* A text is read in one pass; edges are kept by index and sorted out at the end. */
#include "models/network/profile_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/number.h"
#include "base/try.h"

enum { EDGES_MAX = 1 << 16 };

struct profile_text_node {
    uint64_t number;
    struct profile_text_layer layer; /* cut_bytes: not yet */
    uint32_t place;           /* in the chain; UINT32_MAX: none yet */
    uint32_t last_reader;     /* by place; its own: none */
};

struct profile_text_edge {
    uint32_t from, to;
};

struct profile_text_reader {
    const char *file, *at, *line_begin;
    unsigned long line;
    struct profile_text_node *nodes;
    struct profile_text_edge *edges;
    uint32_t node_count, edge_count;
    struct arena *arena;
    struct error *err;
};

/* --- the text ------------------------------------------------------------------------------- */

static enum status fail(const struct profile_text_reader *r, const char *at, const char *format, ...) PRINTF_LIKE(3, 4);
static enum status fail(const struct profile_text_reader *r, const char *at, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(r->err, STATUS_BAD_INPUT, "%s:%lu:%ld: %s", r->file, r->line, (long)(at - r->line_begin) + 1,
                     text);
}

/* Returns the length for a message. */
static int found_length(const char *at)
{
    size_t length = strcspn(at, " ,;\n\t");
    return length > 40 ? 40 : (int)length;
}

static enum status expect(struct profile_text_reader *r, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(r->at, word, length) != 0)
        return fail(r, r->at, "found '%.*s' (expected '%s')", found_length(r->at), r->at, word);
    r->at += length;
    return STATUS_OK;
}

/* Reads "node12". */
static enum status parse_node(struct profile_text_reader *r, uint64_t *number)
{
    const char *begin = r->at;
    char digits[24] = "";
    TRY(expect(r, "node"));
    size_t length = strspn(r->at, "0123456789");
    if (length < sizeof digits) memcpy(digits, r->at, length);
    if (!number_read_u64(digits, number))
        return fail(r, begin, "found '%.*s' (expected a node such as node12)", found_length(begin), begin);
    r->at += length;
    return STATUS_OK;
}

static enum status parse_number(struct profile_text_reader *r, double *out)
{
    const char *begin = r->at;
    if (*begin == '-' || !number_read(begin, &r->at, out) || *out > 1e15)
        return fail(r, begin, "found '%.*s' (expected a number from 0 to 1e15)", found_length(begin), begin);
    return STATUS_OK;
}

/* Adds up a list. */
static enum status parse_sum(struct profile_text_reader *r, uint64_t *out)
{
    double sum = 0, one;
    if (*r->at != '[') {
        TRY(parse_number(r, &sum));
    } else {
        do {
            r->at++;
            r->at += strspn(r->at, " ");
            TRY(parse_number(r, &one));
            sum += one;
        } while (*r->at == ';');
        TRY(expect(r, "]"));
    }
    *out = (uint64_t)sum;
    return STATUS_OK;
}

static uint32_t find(const struct profile_text_reader *r, uint64_t number)
{
    uint32_t i = 0;
    while (i < r->node_count && r->nodes[i].number != number) i++;
    return i;
}

static enum status parse_edge(struct profile_text_reader *r)
{
    uint64_t numbers[2];
    const char *places[2];
    r->at++; /* the tab */
    for (uint32_t i = 0; i < 2; i++) {
        places[i] = r->at;
        TRY(parse_node(r, &numbers[i]));
        if (i == 0) TRY(expect(r, " -- "));
    }
    for (uint32_t i = 0; i < 2; i++)
        if (find(r, numbers[i]) == r->node_count)
            return fail(r, places[i], "node%" PRIu64 " is not one of the nodes above", numbers[i]);
    if (r->edge_count == EDGES_MAX)
        return fail(r, places[0], "too many edges (limit is %d)", EDGES_MAX);
    r->edges[r->edge_count++] = (struct profile_text_edge){find(r, numbers[0]), find(r, numbers[1])};
    return STATUS_OK;
}

static enum status parse_layer(struct profile_text_reader *r)
{
    struct profile_text_node node = {.place = UINT32_MAX};
    const char *begin = r->at, *values = strstr(r->at, " -- forward_compute_time="), *end = strchr(r->at, '\n');
    TRY(parse_node(r, &node.number));
    if (find(r, node.number) < r->node_count)
        return fail(r, begin, "a second node%" PRIu64, node.number);
    TRY(expect(r, " -- "));
    if (!values || (end && values > end) || values < r->at)
        return fail(r, r->at, "a layer without times (expected ' -- forward_compute_time=' after its name)");
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)(values - r->at), r->at);
    TRY(arena_string(r->arena, name, &node.layer.name, r->err));
    r->at = values;
    TRY(expect(r, " -- forward_compute_time="));
    TRY(parse_number(r, &node.layer.forward_s));
    TRY(expect(r, ", backward_compute_time="));
    TRY(parse_number(r, &node.layer.backward_s));
    TRY(expect(r, ", activation_size="));
    TRY(parse_sum(r, &node.layer.output_bytes));
    TRY(expect(r, ", parameter_size="));
    TRY(parse_sum(r, &node.layer.weight_bytes));
    bool input = strncmp(name, "Input", strlen("Input")) == 0;
    node.layer.forward_s *= input ? 0 : 1e-3;
    node.layer.backward_s *= input ? 0 : 1e-3;
    if (r->node_count == PROFILE_TEXT_LAYERS_MAX)
        return fail(r, r->line_begin, "too many layers (limit is %d)", PROFILE_TEXT_LAYERS_MAX);
    r->nodes[r->node_count++] = node;
    return STATUS_OK;
}

static enum status parse_lines(struct profile_text_reader *r)
{
    for (r->line = 1; *r->at; r->line++) {
        r->line_begin = r->at;
        if (*r->at == '\t') TRY(parse_edge(r));
        else if (*r->at != '\n' && *r->at != '\r') TRY(parse_layer(r));
        if (*r->at == '\r') r->at++;
        if (*r->at && *r->at != '\n')
            return fail(r, r->at, "found '%.*s' (expected the end of the line)", found_length(r->at), r->at);
        if (*r->at) r->at++;
    }
    if (r->node_count == 0) return error_set(r->err, STATUS_BAD_INPUT, "%s: no layers", r->file);
    return STATUS_OK;
}

/* --- in order ------------------------------------------------------------------------------ */

static bool is_ready(const struct profile_text_reader *r, uint32_t node)
{
    for (uint32_t e = 0; e < r->edge_count; e++)
        if (r->edges[e].to == node && r->nodes[r->edges[e].from].place == UINT32_MAX) return false;
    return true;
}

static enum status order_nodes(struct profile_text_reader *r)
{
    for (uint32_t place = 0; place < r->node_count; place++) {
        uint32_t best = r->node_count;
        for (uint32_t i = 0; i < r->node_count; i++)
            if (r->nodes[i].place == UINT32_MAX &&
                (best == r->node_count || r->nodes[i].number < r->nodes[best].number) && is_ready(r, i))
                best = i;
        if (best == r->node_count)
            return error_set(r->err, STATUS_BAD_INPUT, "%s: the edges form a cycle", r->file);
        r->nodes[best].place = place;
    }
    return STATUS_OK;
}

/* Counts outputs that later layers still read. */
static void find_cuts(const struct profile_text_reader *r, struct profile_text_layer *layers)
{
    for (uint32_t i = 0; i < r->node_count; i++) {
        struct profile_text_node *node = &r->nodes[i];
        node->last_reader = node->place;
        layers[node->place] = node->layer;
    }
    for (uint32_t e = 0; e < r->edge_count; e++) {
        struct profile_text_node *from = &r->nodes[r->edges[e].from];
        uint32_t reader = r->nodes[r->edges[e].to].place;
        if (reader > from->last_reader) from->last_reader = reader;
    }
    for (uint32_t i = 0; i < r->node_count; i++)
        for (uint32_t at = r->nodes[i].place; at < r->nodes[i].last_reader; at++)
            layers[at].cut_bytes += r->nodes[i].layer.output_bytes;
}

enum status profile_text_parse(struct arena *arena, const char *name, const char *text, struct profile_text *out,
                               struct error *err)
{
    struct profile_text_reader r = {.file = name, .at = text, .line_begin = text, .arena = arena, .err = err};
    struct profile_text profile = {0};
    r.nodes = alloc_zeroed(PROFILE_TEXT_LAYERS_MAX, sizeof *r.nodes);
    r.edges = alloc_zeroed(EDGES_MAX, sizeof *r.edges);
    if (!r.nodes || !r.edges) error_memory(err, "a profile", PROFILE_TEXT_LAYERS_MAX * sizeof *r.nodes);
    if (!err->status && !parse_lines(&r) && !order_nodes(&r) && !arena_string(arena, name, &profile.name, err) &&
        !ARENA_NEW(arena, r.node_count, profile.layers, err)) {
        profile.count = r.node_count;
        find_cuts(&r, profile.layers);
        *out = profile;
    }
    free(r.nodes);
    free(r.edges);
    return err->status;
}

enum status profile_text_read(struct arena *arena, const char *path, struct profile_text *out, struct error *err)
{
    char *text = NULL;
    size_t length;
    TRY(file_read(path, PROFILE_TEXT_BYTES_MAX, &text, &length, err));
    if (strlen(text) != length)
        error_set(err, STATUS_BAD_INPUT, "%s: a zero byte in the text", path);
    else if (profile_text_parse(arena, path, text, out, err) != STATUS_OK)
        out->count = 0;
    free(text);
    return err->status;
}


/* --- a network ------------------------------------------------------------------------------ */

static uint64_t rounded(double value) { return (uint64_t)llround(value); }

enum status profile_text_network(struct arena *arena, const struct profile_text *text, struct network *out,
                                 struct error *err)
{
    struct layer_profile *profile;
    TRY(ARENA_NEW(arena, text->count, profile, err));
    for (uint32_t l = 0; l < text->count; l++) {
        const struct profile_text_layer *layer = &text->layers[l];
        profile[l] = (struct layer_profile){.parameter_bytes = layer->weight_bytes / sizeof(float) * sizeof(float),
                                            .activation_bytes = layer->output_bytes,
                                            .boundary_bytes = layer->cut_bytes,
                                            .forward_ns = rounded(layer->forward_s * 1e9),
                                            .backward_ns = rounded(layer->backward_s * 1e9)};
        if (layer->weight_bytes > NETWORK_PROFILE_BYTES_MAX || layer->output_bytes > NETWORK_PROFILE_BYTES_MAX ||
            layer->cut_bytes > NETWORK_PROFILE_BYTES_MAX || profile[l].forward_ns > NETWORK_PROFILE_NS_MAX ||
            profile[l].backward_ns > NETWORK_PROFILE_NS_MAX)
            return error_set(err, STATUS_LIMIT,
                             "%s: layer '%s' is too large (limits are %" PRIu64 " bytes and %" PRIu64 " ns)",
                             text->name, layer->name, NETWORK_PROFILE_BYTES_MAX, NETWORK_PROFILE_NS_MAX);
    }
    out->family = NETWORK_PROFILE;
    out->layer_count = text->count;
    out->profile = profile;
    return STATUS_OK;
}
