/*
 * jansson refuses duplicate names. Each entry is checked by itself (keys, type, shape times type's size against the
 * range), then all together: sorted by offset, they must cover the file from 0 to its end. After that a tensor's
 * pointer and length can be trusted.
 *
 * A second JSON object, of integers, is the index from names to tensors.
 *
 * 16-bit types: BF16 is the upper half of a float. F16's sign, exponent and mantissa are shifted to their places. Its
 * subnormal numbers get an exponent of 2^-14, which is subtracted again: no intermediate float is subnormal, since a
 * thread may treat those as zero.
 */
#include "exec/files/safetensors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/clones.h"
#include "base/files/file.h"
#include "base/files/mapped_file.h"
#include "base/json/json_out.h"
#include "base/size.h"
#include "base/try.h"

struct safetensors {
    struct mapped_file file; /* empty when parsed from memory */
    json_t *header;          /* owns the names */
    json_t *index;           /* name -> index into tensors */
    struct safetensors_tensor *tensors;
    size_t count;
};

/* Unknown types are refused: their ranges could not be checked. */
static const struct type {
    const char *name;
    uint32_t type, bytes;
} types[] = {
    {"F32", SAFETENSORS_F32, 4},      {"F16", SAFETENSORS_F16, 2},   {"BF16", SAFETENSORS_BF16, 2},
    {"F64", SAFETENSORS_OTHER, 8},    {"I64", SAFETENSORS_OTHER, 8}, {"U64", SAFETENSORS_OTHER, 8},
    {"I32", SAFETENSORS_OTHER, 4},    {"U32", SAFETENSORS_OTHER, 4}, {"I16", SAFETENSORS_OTHER, 2},
    {"U16", SAFETENSORS_OTHER, 2},    {"I8", SAFETENSORS_OTHER, 1},  {"U8", SAFETENSORS_OTHER, 1},
    {"BOOL", SAFETENSORS_OTHER, 1},   {"F8_E4M3", SAFETENSORS_OTHER, 1}, {"F8_E5M2", SAFETENSORS_OTHER, 1},
};

/* --- one entry -------------------------------------------------------------------------------- */

struct safetensors_place {
    const char *file, *tensor;
};

static enum status fail(struct safetensors_place place, struct error *err, const char *format, ...)
    PRINTF_LIKE(3, 4);
static enum status fail(struct safetensors_place place, struct error *err, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(err, STATUS_BAD_INPUT, "%s: tensor '%.120s' %s", place.file, place.tensor,
                     text);
}

static enum status parse_shape(struct safetensors_place place, const json_t *shape,
                               struct safetensors_tensor *tensor, struct error *err)
{
    if (!json_is_array(shape)) return fail(place, err, "has no shape (expected an array)");
    if (json_array_size(shape) > SAFETENSORS_RANK_MAX)
        return fail(place, err, "has %zu dimensions (limit is %d)", json_array_size(shape),
                    (int)SAFETENSORS_RANK_MAX);
    tensor->rank = (uint32_t)json_array_size(shape);
    tensor->elements = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return fail(place, err, "has a size that is not a natural number");
        tensor->shape[i] = (uint64_t)json_integer_value(size);
        if (!size_mul(tensor->elements, tensor->shape[i], &tensor->elements))
            return fail(place, err, "has more elements than 64 bits can count");
    }
    return STATUS_OK;
}

/* Checks the range against the size by type and shape, and against the file. */
static enum status parse_range(struct safetensors_place place, const json_t *range, uint32_t element_bytes,
                               uint64_t data_bytes, struct safetensors_tensor *tensor,
                               struct error *err)
{
    const json_t *from = json_array_get(range, 0), *to = json_array_get(range, 1);
    if (json_array_size(range) != 2 || !json_is_integer(from) || !json_is_integer(to) ||
        json_integer_value(from) < 0 || json_integer_value(to) < json_integer_value(from))
        return fail(place, err, "has bad data_offsets (expected [begin, end])");
    uint64_t begin = (uint64_t)json_integer_value(from), end = (uint64_t)json_integer_value(to);
    uint64_t expected;
    if (!size_mul(tensor->elements, element_bytes, &expected))
        return fail(place, err, "has more bytes than 64 bits can count");
    if (end - begin != expected)
        return fail(place, err, "has %" PRIu64 " bytes (expected %" PRIu64 " by its shape)",
                    end - begin, expected);
    if (end > data_bytes)
        return fail(place, err, "ends at byte %" PRIu64 " of the data (the file has %" PRIu64 ")",
                    end, data_bytes);
    tensor->offset = begin;
    tensor->bytes = expected;
    return STATUS_OK;
}

static enum status parse_tensor(struct safetensors_place place, const json_t *value, uint64_t data_bytes,
                                struct safetensors_tensor *out, struct error *err)
{
    struct safetensors_tensor tensor = {.name = place.tensor};
    if (!json_is_object(value)) return fail(place, err, "is no object");
    const char *key;
    json_t *unused;
    json_object_foreach((json_t *)(uintptr_t)value, key, unused)
        if (strcmp(key, "dtype") != 0 && strcmp(key, "shape") != 0 &&
            strcmp(key, "data_offsets") != 0)
            return fail(place, err,
                        "has the unknown key '%.60s' (expected dtype, shape and data_offsets)",
                        key);
    const char *type_name = json_string_value(json_object_get(value, "dtype"));
    if (!type_name) return fail(place, err, "has no dtype");
    const struct type *type = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        if (strcmp(types[i].name, type_name) == 0) type = &types[i];
    if (!type) return fail(place, err, "has the unknown dtype '%.60s'", type_name);
    tensor.type = type->type;
    tensor.type_name = type->name;
    TRY(parse_shape(place, json_object_get(value, "shape"), &tensor, err));
    TRY(parse_range(place, json_object_get(value, "data_offsets"), type->bytes, data_bytes,
                         &tensor, err));
    *out = tensor;
    return STATUS_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int by_offset(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static enum status check_cover(const char *name, const struct safetensors *file,
                               uint64_t data_bytes, struct error *err)
{
    uint64_t end = 0; /* offsets count from the data here */
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        struct safetensors_place place = {name, tensor->name};
        if (tensor->offset != end)
            return fail(place, err,
                        "begins at byte %" PRIu64 " of the data (expected %" PRIu64
                        ", where the one before it ends)",
                        tensor->offset, end);
        end = tensor->offset + tensor->bytes;
    }
    if (end != data_bytes)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: %" PRIu64 " bytes of data (the tensors end at %" PRIu64 ")", name,
                         data_bytes, end);
    return STATUS_OK;
}

static uint64_t length_at(const unsigned char *data)
{
    uint64_t length = 0;
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++) length |= (uint64_t)data[i] << 8 * i;
    return length;
}

bool safetensors_head_bytes(const void *first, uint64_t file_bytes, uint64_t *out)
{
    const uint64_t length = length_at(first);
    if (file_bytes < SAFETENSORS_LENGTH_BYTES || length > SAFETENSORS_HEADER_MAX ||
        length > file_bytes - SAFETENSORS_LENGTH_BYTES)
        return false;
    *out = SAFETENSORS_LENGTH_BYTES + length;
    return true;
}

static enum status parse_metadata(const char *name, json_t *metadata, struct error *err)
{
    bool strings = json_is_object(metadata);
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value) strings = strings && json_is_string(value);
    if (strings) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "%s: '__metadata__' is not an object of strings", name);
}

static enum status parse_entries(const char *name, struct safetensors *file, uint64_t data_bytes,
                                 struct error *err)
{
    file->tensors = alloc_zeroed(json_object_size(file->header) + 1, sizeof *file->tensors);
    file->index = json_object();
    if (!file->tensors || !file->index)
        return error_memory(err, "a table of tensors",
                            json_object_size(file->header) * sizeof *file->tensors);
    const char *key;
    json_t *value;
    json_object_foreach(file->header, key, value) {
        enum status status;
        if (strcmp(key, "__metadata__") == 0) {
            status = parse_metadata(name, value, err);
        } else {
            status = parse_tensor((struct safetensors_place){name, key}, value, data_bytes,
                                  &file->tensors[file->count], err);
            file->count++;
        }
        if (status != STATUS_OK) return status;
    }
    qsort(file->tensors, file->count, sizeof *file->tensors, by_offset);
    for (size_t i = 0; i < file->count; i++)
        if (json_object_set_new(file->index, file->tensors[i].name, json_integer((json_int_t)i)) !=
            0)
            return error_memory(err, "a table of tensors", file->count);
    return check_cover(name, file, data_bytes, err);
}

/* `data` is the whole file, or its head when data_bytes < file_bytes. */
static enum status parse(const char *name, const unsigned char *data, uint64_t data_bytes,
                         uint64_t file_bytes, struct safetensors *file, struct error *err)
{
    if (file_bytes < SAFETENSORS_LENGTH_BYTES)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: %" PRIu64 " bytes are too few for a safetensors file", name,
                         file_bytes);
    uint64_t head_bytes;
    if (!safetensors_head_bytes(data, file_bytes, &head_bytes))
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: a header of %" PRIu64 " bytes in a file of %" PRIu64
                         " (limit is %d; is it a safetensors file?)",
                         name, length_at(data), file_bytes, (int)SAFETENSORS_HEADER_MAX);
    assert(data_bytes >= head_bytes);
    json_error_t where;
    file->header = json_loadb((const char *)data + SAFETENSORS_LENGTH_BYTES,
                              (size_t)(head_bytes - SAFETENSORS_LENGTH_BYTES),
                              JSON_REJECT_DUPLICATES, &where);
    if (!file->header && json_error_code(&where) == json_error_out_of_memory)
        return error_memory(err, "a header", head_bytes);
    if (!file->header)
        return error_set(err, STATUS_BAD_INPUT, "%s: header, line %d, column %d: %s", name,
                         where.line, where.column, where.text);
    if (!json_is_object(file->header))
        return error_set(err, STATUS_BAD_INPUT, "%s: the header is not an object", name);
    const enum status status = parse_entries(name, file, file_bytes - head_bytes, err);
    for (size_t i = 0; i < file->count && status == STATUS_OK; i++) {
        file->tensors[i].offset += head_bytes;
        if (data_bytes == file_bytes) file->tensors[i].data = data + file->tensors[i].offset;
    }
    return status;
}

/* Takes `mapped` (may be empty) over, also on failure. */
static enum status create(const char *name, const void *data, uint64_t bytes, uint64_t file_bytes,
                          struct mapped_file *mapped, struct safetensors **out, struct error *err)
{
    struct safetensors *file = alloc_zeroed(1, sizeof *file);
    if (!file) {
        mapped_file_close(mapped);
        return error_memory(err, "a safetensors file", sizeof *file);
    }
    file->file = *mapped;
    enum status status = parse(name, data, bytes, file_bytes, file, err);
    if (status == STATUS_OK)
        *out = file;
    else
        safetensors_close(file);
    return status;
}

enum status safetensors_parse(const char *name, const void *data, uint64_t bytes,
                              struct safetensors **out, struct error *err)
{
    struct mapped_file none = {0};
    return create(name, data, bytes, bytes, &none, out, err);
}

enum status safetensors_parse_head(const char *name, const void *head, uint64_t head_bytes,
                                   uint64_t file_bytes, struct safetensors **out,
                                   struct error *err)
{
    struct mapped_file none = {0};
    return create(name, head, head_bytes, file_bytes, &none, out, err);
}

enum status safetensors_open(const char *path, struct safetensors **out, struct error *err)
{
    struct mapped_file mapped = {0};
    TRY(mapped_file_open(path, &mapped, err));
    return create(path, mapped.data, mapped.bytes, mapped.bytes, &mapped, out, err);
}

void safetensors_close(struct safetensors *file)
{
    if (!file) return;
    json_decref(file->header);
    json_decref(file->index);
    free(file->tensors);
    mapped_file_close(&file->file);
    free(file);
}

size_t safetensors_count(const struct safetensors *file)
{
    return file->count;
}

const struct safetensors_tensor *safetensors_at(const struct safetensors *file, size_t index)
{
    assert(index < file->count);
    return &file->tensors[index];
}

const char *safetensors_shape_text(const uint64_t *shape, uint32_t rank, char text[SAFETENSORS_SHAPE_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < rank && used < SAFETENSORS_SHAPE_BYTES; i++)
        used += (size_t)snprintf(text + used, SAFETENSORS_SHAPE_BYTES - used, "%s%" PRIu64, i > 0 ? ", " : "",
                                 shape[i]);
    return text;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *file,
                                                  const char *name)
{
    const json_t *index = json_object_get(file->index, name);
    return index ? &file->tensors[json_integer_value(index)] : NULL;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

/* --- numbers ---------------------------------------------------------------------------------- */

enum { CHUNK = 1024 };

CLONES static bool all_finite(const float *x, uint64_t n)
{
    uint32_t worst = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        uint32_t magnitude = bits & 0x7fffffff;
        worst = magnitude > worst ? magnitude : worst;
    }
    return worst < 0x7f800000; /* infinity */
}

CLONES static void from_half(float *out, const uint16_t *in, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t half = in[i], magnitude = half & 0x7fff, bits = magnitude << 13;
        uint32_t least_bits = bits + (113u << 23), result;
        float least;
        memcpy(&least, &least_bits, sizeof least);
        least -= 0x1p-14f;
        memcpy(&result, &least, sizeof result);
        result = magnitude >= 0x0400 ? bits + (112u << 23) : result; /* normal */
        result = magnitude >= 0x7c00 ? bits | 0x7f800000u : result;  /* infinity or NaN */
        result |= (half & 0x8000) << 16;
        memcpy(&out[i], &result, sizeof result);
    }
}

CLONES static void from_brain(float *out, const uint16_t *in, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)in[i] << 16;
        memcpy(&out[i], &bits, sizeof bits);
    }
}

bool safetensors_floats(const struct safetensors_tensor *tensor, float *out)
{
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "data are copied as they are");
    assert(tensor->type != SAFETENSORS_OTHER);
    if (tensor->type == SAFETENSORS_F32) {
        if (tensor->bytes > 0) memcpy(out, tensor->data, tensor->bytes);
        return all_finite(out, tensor->elements);
    }
    bool finite = true;
    for (uint64_t first = 0; first < tensor->elements; first += CHUNK) {
        uint64_t rest = tensor->elements - first, n = rest < CHUNK ? rest : CHUNK;
        uint16_t in[CHUNK];
        memcpy(in, tensor->data + 2 * first, n * sizeof *in);
        if (tensor->type == SAFETENSORS_F16)
            from_half(out + first, in, n);
        else
            from_brain(out + first, in, n);
        finite = finite && all_finite(out + first, n);
    }
    return finite;
}

/* --- writing ---------------------------------------------------------------------------------- */

static const struct type *type_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        if (strcmp(types[i].name, name ? name : "F32") == 0) return &types[i];
    return NULL;
}

/* Sets bytes of tensors, and offsets relative to the data. */
static void write_header(struct json_out *json, struct safetensors_tensor *tensors, size_t count,
                         const struct safetensors_pair *metadata, size_t metadata_count)
{
    uint64_t offset = 0;
    json_out_object_begin(json, NULL, true);
    json_out_object_begin(json, "__metadata__", true);
    for (size_t i = 0; i < metadata_count; i++)
        json_out_string(json, metadata[i].key, metadata[i].value);
    json_out_object_end(json);
    for (size_t i = 0; i < count; i++) {
        struct safetensors_tensor *const tensor = &tensors[i];
        const struct type *const type = type_named(tensor->type_name);
        assert(type);
        tensor->bytes = type->bytes;
        tensor->offset = offset;
        json_out_object_begin(json, tensor->name, true);
        json_out_string(json, "dtype", type->name);
        json_out_array_begin(json, "shape", true);
        for (uint32_t d = 0; d < tensor->rank; d++) {
            json_out_u64(json, NULL, tensor->shape[d]);
            tensor->bytes *= tensor->shape[d];
        }
        json_out_array_end(json);
        json_out_array_begin(json, "data_offsets", true);
        json_out_u64(json, NULL, offset);
        offset += tensor->bytes;
        json_out_u64(json, NULL, offset);
        json_out_array_end(json);
        json_out_object_end(json);
    }
    json_out_object_end(json);
}

enum status safetensors_head(struct safetensors_tensor *tensors, size_t count,
                             const struct safetensors_pair *metadata, size_t metadata_count,
                             char **out, size_t *length, struct error *err)
{
    struct json_out *json = json_out_create(NULL);
    if (!json) return error_memory(err, "a header", 0);
    write_header(json, tensors, count, metadata, metadata_count);
    size_t text_length;
    const char *text = json_out_text(json, &text_length);
    const uint64_t padded = size_align(text_length, 8), bytes = SAFETENSORS_LENGTH_BYTES + padded;
    char *head = json_out_complete(json) ? alloc_resize(NULL, bytes) : NULL;
    if (head) {
        for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++) head[i] = (char)(padded >> 8 * i & 0xff);
        memcpy(head + SAFETENSORS_LENGTH_BYTES, text, text_length);
        memset(head + SAFETENSORS_LENGTH_BYTES + text_length, ' ', padded - text_length);
        for (size_t i = 0; i < count; i++) tensors[i].offset += bytes;
        *out = head;
        *length = bytes;
    }
    json_out_destroy(json);
    return head ? STATUS_OK : error_memory(err, "a header", bytes);
}

enum status safetensors_write(const char *path, struct safetensors_tensor *tensors, size_t count,
                              struct error *err)
{
    return safetensors_write_with(path, tensors, count, NULL, err);
}

enum status safetensors_write_with(const char *path, struct safetensors_tensor *tensors, size_t count,
                                   const struct safetensors_pair *more, struct error *err)
{
    const struct safetensors_pair metadata[2] = {{"format", "pt"}, more ? *more : (struct safetensors_pair){0}};
    char *head = NULL;
    size_t length;
    enum status status = safetensors_head(tensors, count, metadata, more ? 2 : 1, &head, &length, err);
    struct file_out *file = NULL;
    if (status == STATUS_OK) status = file_out_create(path, &file, err);
    if (status == STATUS_OK) {
        file_out_write(file, head, length);
        for (size_t i = 0; i < count; i++)
            file_out_write(file, tensors[i].data, (size_t)tensors[i].bytes);
        status = file_out_commit(file, err);
    }
    free(head);
    return status;
}
