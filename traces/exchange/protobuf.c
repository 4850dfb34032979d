#include "traces/exchange/protobuf.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"

enum { FIELD_NUMBER_MAX = (1 << 29) - 1, FIRST_CAPACITY = 256 };

/* --- writing -------------------------------------------------------------------------------- */

void protobuf_out_release(struct protobuf_out *out)
{
    free(out->bytes);
    *out = (struct protobuf_out){0};
}

/* Makes room for `more` bytes; returns NULL when there is no memory. */
static uint8_t *extend(struct protobuf_out *out, size_t more)
{
    if (out->failed) return NULL;
    if (out->capacity - out->length < more) {
        size_t capacity = out->capacity > 0 ? out->capacity : FIRST_CAPACITY;
        while (capacity - out->length < more) capacity *= 2;
        uint8_t *bytes = alloc_resize(out->bytes, capacity);
        out->failed = !bytes;
        if (!bytes) return NULL;
        out->bytes = bytes;
        out->capacity = capacity;
    }
    uint8_t *begin = out->bytes + out->length;
    out->length += more;
    return begin;
}

static void append(struct protobuf_out *out, const void *bytes, size_t length)
{
    uint8_t *to = extend(out, length);
    if (to && length > 0) memcpy(to, bytes, length);
}

size_t protobuf_varint(uint64_t value, uint8_t bytes[PROTOBUF_VARINT_BYTES])
{
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    return count;
}

static void append_varint(struct protobuf_out *out, uint64_t value)
{
    uint8_t bytes[PROTOBUF_VARINT_BYTES];
    append(out, bytes, protobuf_varint(value, bytes));
}

static void append_tag(struct protobuf_out *out, uint32_t field, enum protobuf_form form)
{
    assert(field > 0 && field <= FIELD_NUMBER_MAX);
    append_varint(out, (uint64_t)field << 3 | form);
}

void protobuf_out_u64(struct protobuf_out *out, uint32_t field, uint64_t value)
{
    append_tag(out, field, PROTOBUF_VARINT);
    append_varint(out, value);
}

void protobuf_out_double(struct protobuf_out *out, uint32_t field, double value)
{
    uint8_t bytes[8];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(bits >> 8 * i);
    append_tag(out, field, PROTOBUF_FIXED64);
    append(out, bytes, sizeof bytes);
}

void protobuf_out_bytes(struct protobuf_out *out, uint32_t field, const void *bytes, size_t length)
{
    append_tag(out, field, PROTOBUF_BYTES);
    append_varint(out, length);
    append(out, bytes, length);
}

void protobuf_out_string(struct protobuf_out *out, uint32_t field, const char *text)
{
    protobuf_out_bytes(out, field, text, strlen(text));
}

void protobuf_out_packed(struct protobuf_out *out, uint32_t field, const uint64_t *values, size_t count)
{
    uint8_t bytes[PROTOBUF_VARINT_BYTES];
    size_t length = 0;
    for (size_t i = 0; i < count; i++) length += protobuf_varint(values[i], bytes);
    append_tag(out, field, PROTOBUF_BYTES);
    append_varint(out, length);
    for (size_t i = 0; i < count; i++) append_varint(out, values[i]);
}

/* --- reading -------------------------------------------------------------------------------- */

enum status protobuf_fail(const struct protobuf_in *in, size_t at, struct error *err, const char *format, ...)
{
    char text[sizeof err->text / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(err, STATUS_BAD_INPUT, "%s: byte %zu: %s", in->name, at, text);
}

enum status protobuf_in_varint(struct protobuf_in *in, uint64_t *out, struct error *err)
{
    uint64_t value = 0;
    size_t begin = in->at;
    for (uint32_t shift = 0;; shift += 7) {
        if (in->at == in->end) return protobuf_fail(in, begin, err, "a number is cut off");
        uint8_t byte = in->bytes[in->at++];
        if (shift == 63 && byte > 1) return protobuf_fail(in, begin, err, "a number has more than 64 bits");
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) break;
    }
    *out = value;
    return STATUS_OK;
}

static enum status read_fixed(struct protobuf_in *in, size_t count, struct protobuf_field *field,
                              struct error *err)
{
    if (in->end - in->at < count)
        return protobuf_fail(in, field->at, err, "field %" PRIu32 " is cut off: %zu of %zu bytes", field->number,
                             in->end - in->at, count);
    for (size_t i = 0; i < count; i++) field->value |= (uint64_t)in->bytes[in->at + i] << 8 * i;
    in->at += count;
    return STATUS_OK;
}

enum status protobuf_in_next(struct protobuf_in *in, struct protobuf_field *out, bool *some, struct error *err)
{
    uint64_t tag;
    struct protobuf_field field = {.at = in->at};
    *some = in->at < in->end;
    if (!*some) return STATUS_OK;
    TRY(protobuf_in_varint(in, &tag, err));
    if (tag >> 3 == 0 || tag >> 3 > FIELD_NUMBER_MAX)
        return protobuf_fail(in, field.at, err, "a field has number %" PRIu64 " (expected 1 to %d)", tag >> 3,
                             FIELD_NUMBER_MAX);
    field.number = (uint32_t)(tag >> 3);
    field.form = tag & 7;
    enum status status = STATUS_OK;
    if (field.form == PROTOBUF_VARINT) {
        status = protobuf_in_varint(in, &field.value, err);
    } else if (field.form == PROTOBUF_FIXED64 || field.form == PROTOBUF_FIXED32) {
        status = read_fixed(in, field.form == PROTOBUF_FIXED64 ? 8 : 4, &field, err);
    } else if (field.form == PROTOBUF_BYTES) {
        TRY(protobuf_in_varint(in, &field.value, err));
        if (field.value > in->end - in->at)
            return protobuf_fail(in, field.at, err, "field %" PRIu32 " is cut off: %zu of %" PRIu64 " bytes",
                                 field.number, in->end - in->at, field.value);
        field.inside = *in;
        field.inside.end = in->at + (size_t)field.value;
        in->at = field.inside.end;
    } else {
        return protobuf_fail(in, field.at, err, "field %" PRIu32 " has form %d (expected 0, 1, 2 or 5)",
                             field.number, (int)field.form);
    }
    if (status == STATUS_OK) *out = field;
    return status;
}

double protobuf_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
