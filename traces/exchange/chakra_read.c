/*
 * Reads one rank. The bytes are read twice: first to count and check, then into arrays of the right size. Unknown
 * fields and attributes are skipped, as protocol buffers require; known ones must have a type that can hold them.
 */
#include "traces/exchange/chakra.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "traces/exchange/chakra_fields.h"

const char *const chakra_collective_names[CHAKRA_COLLECTIVE_COUNT] = {
    "ALL_REDUCE", "REDUCE",     "ALL_GATHER",     "GATHER",               "SCATTER",
    "BROADCAST",  "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"};

/* --- attributes ----------------------------------------------------------------------------- */

enum attribute_kind { KIND_BOOL, KIND_U32, KIND_U64, KIND_STRING, KIND_SECONDS };

static const struct attribute {
    const char *name;
    size_t offset; /* in struct chakra_node */
    enum attribute_kind kind;
    uint64_t most; /* of a number */
} attributes[] = {
    {"is_cpu_op", offsetof(struct chakra_node, is_cpu_op), KIND_BOOL, 1},
    {"num_ops", offsetof(struct chakra_node, num_ops), KIND_U64, INT64_MAX},
    {"tensor_size", offsetof(struct chakra_node, tensor_size), KIND_U64, CHAKRA_BYTES_MAX},
    {"comm_size", offsetof(struct chakra_node, comm_size), KIND_U64, CHAKRA_BYTES_MAX},
    {"comm_type", offsetof(struct chakra_node, comm_type), KIND_U32, CHAKRA_COLLECTIVE_COUNT - 1},
    {"comm_src", offsetof(struct chakra_node, comm_src), KIND_U32, CHAKRA_RANKS_MAX - 1},
    {"comm_dst", offsetof(struct chakra_node, comm_dst), KIND_U32, CHAKRA_RANKS_MAX - 1},
    {"comm_tag", offsetof(struct chakra_node, comm_tag), KIND_U32, UINT32_MAX},
    {"pg_name", offsetof(struct chakra_node, pg_name), KIND_STRING, 0},
    {"spillway_stream", offsetof(struct chakra_node, stream), KIND_STRING, 0},
    {"spillway_algorithm", offsetof(struct chakra_node, algorithm), KIND_STRING, 0},
    {"spillway_family", offsetof(struct chakra_node, family), KIND_U32, INT32_MAX},
    {"spillway_signal", offsetof(struct chakra_node, is_signal), KIND_BOOL, 1},
    {"spillway_seconds", offsetof(struct chakra_node, seconds), KIND_SECONDS, 0},
};

/* Reads the value as a whole number. Returns false when it is not a whole number or is negative. */
static bool whole(const struct protobuf_field *value, uint64_t *out)
{
    uint64_t bits = value->value;
    switch (value->number) {
    case CHAKRA_ATTRIBUTE_INT32:
    case CHAKRA_ATTRIBUTE_INT64:
    case CHAKRA_ATTRIBUTE_SFIXED64:
    case CHAKRA_ATTRIBUTE_SFIXED32:
        *out = bits;
        return value->number == CHAKRA_ATTRIBUTE_SFIXED32 ? bits <= INT32_MAX : bits <= INT64_MAX;
    case CHAKRA_ATTRIBUTE_SINT32:
    case CHAKRA_ATTRIBUTE_SINT64: /* zigzag: 0, -1, 1, -2 ... */
        *out = bits >> 1;
        return !(bits & 1);
    case CHAKRA_ATTRIBUTE_UINT32:
    case CHAKRA_ATTRIBUTE_UINT64:
    case CHAKRA_ATTRIBUTE_FIXED32:
    case CHAKRA_ATTRIBUTE_FIXED64:
    case CHAKRA_ATTRIBUTE_BOOL:
        *out = bits;
        return true;
    default: return false;
    }
}

/* Returns the form of a number of this field. */
static enum protobuf_form form_of(uint32_t field)
{
    switch (field) {
    case CHAKRA_ATTRIBUTE_DOUBLE:
    case CHAKRA_ATTRIBUTE_FIXED64:
    case CHAKRA_ATTRIBUTE_SFIXED64: return PROTOBUF_FIXED64;
    case CHAKRA_ATTRIBUTE_FLOAT:
    case CHAKRA_ATTRIBUTE_FIXED32:
    case CHAKRA_ATTRIBUTE_SFIXED32: return PROTOBUF_FIXED32;
    case CHAKRA_ATTRIBUTE_INT32:
    case CHAKRA_ATTRIBUTE_INT64:
    case CHAKRA_ATTRIBUTE_UINT32:
    case CHAKRA_ATTRIBUTE_UINT64:
    case CHAKRA_ATTRIBUTE_SINT32:
    case CHAKRA_ATTRIBUTE_SINT64:
    case CHAKRA_ATTRIBUTE_BOOL: return PROTOBUF_VARINT;
    default: return PROTOBUF_BYTES;
    }
}

static enum status copy_text(struct arena *arena, const struct protobuf_in *text, const char **out,
                             struct error *err)
{
    char *copy;
    size_t length = text->end - text->at;
    const uint8_t *bytes = text->bytes + text->at;
    if (memchr(bytes, 0, length)) return protobuf_fail(text, text->at, err, "a text contains a zero byte");
    TRY(ARENA_NEW(arena, length + 1, copy, err));
    memcpy(copy, bytes, length);
    *out = copy;
    return STATUS_OK;
}

static enum status put_value(struct arena *arena, const struct attribute *attribute,
                             const struct protobuf_in *in, const struct protobuf_field *value,
                             struct chakra_node *node, struct error *err)
{
    void *to = (char *)node + attribute->offset;
    uint64_t number = 0;
    if (value->form != form_of(value->number))
        return protobuf_fail(in, value->at, err, "the value of attribute '%s' has form %d (expected %d)",
                             attribute->name, (int)value->form, (int)form_of(value->number));
    if (attribute->kind == KIND_STRING) {
        if (value->number != CHAKRA_ATTRIBUTE_STRING)
            return protobuf_fail(in, value->at, err, "attribute '%s' is not a string", attribute->name);
        return copy_text(arena, &value->inside, to, err);
    }
    if (attribute->kind == KIND_SECONDS) {
        node->seconds = protobuf_double(value->value);
        node->has_seconds = true;
        if (value->number == CHAKRA_ATTRIBUTE_DOUBLE && node->seconds >= 0 && isfinite(node->seconds)) return STATUS_OK;
        return protobuf_fail(in, value->at, err, "attribute '%s' is not a duration (expected a double, at least 0)",
                             attribute->name);
    }
    if (!whole(value, &number) || number > attribute->most)
        return protobuf_fail(in, value->at, err, "attribute '%s' is not a whole number from 0 to %" PRIu64,
                             attribute->name, attribute->most);
    if (attribute->kind == KIND_U64) memcpy(to, &number, sizeof number);
    else if (attribute->kind == KIND_U32) memcpy(to, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
    else memcpy(to, &(bool){number != 0}, sizeof(bool));
    return STATUS_OK;
}

static enum status read_attribute(struct arena *arena, struct protobuf_in in, struct chakra_node *node,
                                  struct error *err)
{
    struct protobuf_field field, name = {0}, value = {0};
    const struct protobuf_in whole_attribute = in;
    for (bool some;;) {
        TRY(protobuf_in_next(&in, &field, &some, err));
        if (!some) break;
        if (field.number == CHAKRA_ATTRIBUTE_NAME && field.form == PROTOBUF_BYTES) name = field;
        else if (field.number >= CHAKRA_ATTRIBUTE_DOUBLE) value = field; /* one of them; the last counts */
    }
    if (name.number == 0 || value.number == 0) return STATUS_OK;
    size_t length = name.inside.end - name.inside.at;
    for (size_t i = 0; i < ARRAY_COUNT(attributes); i++)
        if (strlen(attributes[i].name) == length &&
            memcmp(attributes[i].name, name.inside.bytes + name.inside.at, length) == 0)
            return put_value(arena, &attributes[i], &whole_attribute, &value, node, err);
    return STATUS_OK;
}

/* --- nodes ---------------------------------------------------------------------------------- */

static enum status check_form(const struct protobuf_in *in, const struct protobuf_field *field,
                              struct error *err)
{
    static const enum protobuf_form forms[] = {
        [CHAKRA_NODE_ID] = PROTOBUF_VARINT, [CHAKRA_NODE_NAME] = PROTOBUF_BYTES,
        [CHAKRA_NODE_TYPE] = PROTOBUF_VARINT, [CHAKRA_NODE_DURATION_MICROS] = PROTOBUF_VARINT,
        [CHAKRA_NODE_ATTRIBUTE] = PROTOBUF_BYTES};
    bool deps = field->number == CHAKRA_NODE_CTRL_DEPS || field->number == CHAKRA_NODE_DATA_DEPS;
    bool known = field->number <= CHAKRA_NODE_ATTRIBUTE && !(field->number == 6 || field->number == 8 ||
                                                             field->number == 9);
    if (deps ? field->form == PROTOBUF_VARINT || field->form == PROTOBUF_BYTES
             : !known || field->form == forms[field->number])
        return STATUS_OK;
    return protobuf_fail(in, field->at, err, "field %" PRIu32 " of a node has form %d", field->number,
                         (int)field->form);
}

/* Dependencies in a field: a number, or many in a row. To `ids` from *count on, if that is not NULL. */
static enum status read_deps(struct protobuf_field *field, uint64_t *ids, uint64_t *count, struct error *err)
{
    if (field->form == PROTOBUF_VARINT) {
        if (ids) ids[*count] = field->value;
        ++*count;
        return STATUS_OK;
    }
    for (struct protobuf_in in = field->inside; in.at < in.end; ++*count) {
        uint64_t id;
        TRY(protobuf_in_varint(&in, &id, err));
        if (ids) ids[*count] = id;
    }
    return STATUS_OK;
}

/* Counts the node's dependencies of each kind, and checks the forms of its fields. */
static enum status count_node(struct protobuf_in in, uint64_t counts[2], struct error *err)
{
    struct protobuf_field field;
    for (bool some;;) {
        TRY(protobuf_in_next(&in, &field, &some, err));
        if (!some) return STATUS_OK;
        TRY(check_form(&in, &field, err));
        if (field.number == CHAKRA_NODE_CTRL_DEPS || field.number == CHAKRA_NODE_DATA_DEPS)
            TRY(read_deps(&field, NULL, &counts[field.number - CHAKRA_NODE_CTRL_DEPS], err));
    }
}

static enum status check_node(const struct protobuf_in *in, const struct chakra_node *node, struct error *err)
{
    if (node->type == 0 || node->type >= CHAKRA_TYPE_COUNT)
        return protobuf_fail(in, (size_t)node->at, err,
                             "node %" PRIu64 " is of type %" PRIu32 " (expected 1 to %d)", node->id, node->type,
                             CHAKRA_TYPE_COUNT - 1);
    if (node->type == CHAKRA_COLLECTIVE && node->comm_type == CHAKRA_NONE && !node->is_cpu_op)
        return protobuf_fail(in, (size_t)node->at, err,
                             "node %" PRIu64 " is a collective without attribute 'comm_type'", node->id);
    return STATUS_OK;
}

static enum status read_node(struct arena *arena, struct protobuf_in in, struct chakra_node *node,
                             struct error *err)
{
    const struct protobuf_in whole_node = in;
    struct protobuf_field field;
    uint64_t counts[2] = {0}, *deps[2];
    *node = (struct chakra_node){.name = "", .comm_type = CHAKRA_NONE, .comm_src = CHAKRA_NONE,
                                 .comm_dst = CHAKRA_NONE, .family = CHAKRA_NONE, .at = in.at};
    TRY(count_node(in, counts, err));
    if (counts[0] + counts[1] > CHAKRA_NODES_MAX)
        return error_set(err, STATUS_LIMIT, "%s: byte %zu: too many dependencies (limit is %d)", in.name, in.at,
                         CHAKRA_NODES_MAX);
    TRY(ARENA_NEW(arena, (size_t)(counts[0] + counts[1]), deps[0], err));
    node->ctrl_deps = deps[0];
    node->data_deps = deps[1] = deps[0] + counts[0];
    node->ctrl_count = (uint32_t)counts[0];
    node->data_count = (uint32_t)counts[1];
    counts[0] = counts[1] = 0;
    for (bool some;;) {
        enum status status = protobuf_in_next(&in, &field, &some, err);
        if (status == STATUS_OK && !some) break;
        if (status != STATUS_OK) return status;
        if (field.number == CHAKRA_NODE_ID) node->id = field.value;
        else if (field.number == CHAKRA_NODE_TYPE)
            node->type = field.value < UINT32_MAX ? (uint32_t)field.value : UINT32_MAX;
        else if (field.number == CHAKRA_NODE_DURATION_MICROS) node->duration_micros = field.value;
        else if (field.number == CHAKRA_NODE_NAME) status = copy_text(arena, &field.inside, &node->name, err);
        else if (field.number == CHAKRA_NODE_ATTRIBUTE) status = read_attribute(arena, field.inside, node, err);
        else if (field.number == CHAKRA_NODE_CTRL_DEPS || field.number == CHAKRA_NODE_DATA_DEPS)
            status = read_deps(&field, deps[field.number - CHAKRA_NODE_CTRL_DEPS],
                               &counts[field.number - CHAKRA_NODE_CTRL_DEPS], err);
        if (status != STATUS_OK) return status;
    }
    TRY(check_node(&whole_node, node, err));
    if (node->is_cpu_op && node->type >= CHAKRA_SEND) node->type = CHAKRA_COMP;
    return STATUS_OK;
}

/* --- files ---------------------------------------------------------------------------------- */

/* Reads the next message of the file, which follows its length; *some is false at the end. */
static enum status next_message(struct protobuf_in *file, struct protobuf_in *message, bool *some,
                                struct error *err)
{
    uint64_t length;
    size_t begin = file->at;
    *some = file->at < file->end;
    if (!*some) return STATUS_OK;
    TRY(protobuf_in_varint(file, &length, err));
    if (length > file->end - file->at)
        return protobuf_fail(file, begin, err, "a message is cut off: %zu of %" PRIu64 " bytes",
                             file->end - file->at, length);
    *message = *file;
    message->end = file->at + (size_t)length;
    file->at = message->end;
    return STATUS_OK;
}

/* Reads the first message, which must exist and must not be a node: it has only a version and attributes. */
static enum status read_metadata(struct protobuf_in *file, struct error *err)
{
    struct protobuf_in in;
    struct protobuf_field field;
    bool some;
    TRY(next_message(file, &in, &some, err));
    if (!some) return protobuf_fail(file, file->at, err, "the file is empty (expected GlobalMetadata)");
    for (;;) {
        TRY(protobuf_in_next(&in, &field, &some, err));
        if (!some) return STATUS_OK;
        if (field.form != PROTOBUF_BYTES || field.number > 2)
            return protobuf_fail(&in, field.at, err, "the first message is not GlobalMetadata: field %" PRIu32
                                 " of form %d", field.number, (int)field.form);
    }
}

static enum status count_nodes(struct protobuf_in file, uint32_t *count, struct error *err)
{
    struct protobuf_in message;
    for (bool some;; ++*count) {
        TRY(next_message(&file, &message, &some, err));
        if (!some) return STATUS_OK;
        if (*count == CHAKRA_NODES_MAX)
            return error_set(err, STATUS_LIMIT, "%s: too many nodes (limit is %d)", file.name, CHAKRA_NODES_MAX);
    }
}

static int compare_ids(const void *a, const void *b, void *nodes)
{
    const struct chakra_node *left = (struct chakra_node *)nodes + *(const uint32_t *)a;
    const struct chakra_node *right = (struct chakra_node *)nodes + *(const uint32_t *)b;
    if (left->id != right->id) return left->id < right->id ? -1 : 1;
    return (left->at > right->at) - (left->at < right->at);
}

static enum status sort_ids(const struct protobuf_in *file, struct chakra_rank *rank, struct error *err)
{
    for (uint32_t n = 0; n < rank->count; n++) rank->by_id[n] = n;
    qsort_r(rank->by_id, rank->count, sizeof *rank->by_id, compare_ids, rank->nodes);
    for (uint32_t i = 1; i < rank->count; i++) {
        const struct chakra_node *before = &rank->nodes[rank->by_id[i - 1]], *node = &rank->nodes[rank->by_id[i]];
        if (node->id == before->id)
            return protobuf_fail(file, (size_t)node->at, err,
                                 "a second node %" PRIu64 " (the first is at byte %" PRIu64 ")", node->id,
                                 before->at);
    }
    return STATUS_OK;
}

uint32_t chakra_rank_find(const struct chakra_rank *rank, uint64_t id)
{
    uint32_t low = 0, high = rank->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rank->nodes[rank->by_id[middle]].id < id) low = middle + 1;
        else high = middle;
    }
    bool found = low < rank->count && rank->nodes[rank->by_id[low]].id == id;
    return found ? rank->by_id[low] : CHAKRA_NONE;
}

static enum status check_deps(const struct protobuf_in *file, const struct chakra_rank *rank, struct error *err)
{
    for (uint32_t n = 0; n < rank->count; n++) {
        const struct chakra_node *node = &rank->nodes[n];
        for (uint32_t i = 0; i < node->ctrl_count + node->data_count; i++) {
            uint64_t id = i < node->ctrl_count ? node->ctrl_deps[i] : node->data_deps[i - node->ctrl_count];
            if (chakra_rank_find(rank, id) == CHAKRA_NONE)
                return protobuf_fail(file, (size_t)node->at, err,
                                     "node %" PRIu64 " depends on node %" PRIu64 ", which does not exist", node->id,
                                     id);
        }
    }
    return STATUS_OK;
}

enum status chakra_rank_parse(const char *name, const void *bytes, size_t length, struct chakra_rank *out,
                              struct error *err)
{
    struct protobuf_in file = {.name = name, .bytes = bytes, .end = length}, message;
    uint32_t count = 0;
    bool some;
    TRY(read_metadata(&file, err));
    TRY(count_nodes(file, &count, err));
    TRY(ARENA_NEW(&out->arena, count, out->nodes, err));
    TRY(ARENA_NEW(&out->arena, count, out->by_id, err));
    for (uint32_t n = 0; n < count; n++) {
        TRY(next_message(&file, &message, &some, err));
        TRY(read_node(&out->arena, message, &out->nodes[n], err));
    }
    out->count = count;
    TRY(sort_ids(&file, out, err));
    return check_deps(&file, out, err);
}

void chakra_rank_release(struct chakra_rank *rank)
{
    arena_release(&rank->arena);
    *rank = (struct chakra_rank){0};
}
