/*
 * The wire format of protocol buffers, as far as execution traces need it: fields one after the other, each
 * with a number and one of four forms.
 *
 *     form 0  VARINT   seven bits a byte, the lowest first, the top bit says that more follow
 *     form 1  FIXED64  eight bytes, the lowest first
 *     form 2  BYTES    a varint, then so many bytes: a string, a message, or many numbers in a row
 *     form 5  FIXED32  four bytes
 *
 * Written by hand rather than by protobuf-c: two messages of few fields are all there is, a generated
 * decoder cannot say at which byte a file is broken, and one dependency less is to be installed.
 *
 * Source: Protocol Buffers, "Encoding" (protobuf.dev); message streams prefix each with its length.
 */
#ifndef SPILLWAY_TRACES_PROTOBUF_H
#define SPILLWAY_TRACES_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum protobuf_form { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_FIXED32 = 5 };

enum { PROTOBUF_VARINT_BYTES = 10 };

/* --- writing -------------------------------------------------------------------------------- */

/* A message that grows. Zeroed it is empty; the caller frees it with protobuf_out_release(). An allocation
 * that fails is remembered in `failed`, and what follows does nothing. */
struct protobuf_out {
    uint8_t *bytes;
    size_t length, capacity;
    bool failed;
};
void protobuf_out_release(struct protobuf_out *out);

/* The number in at most PROTOBUF_VARINT_BYTES bytes; returns how many. */
size_t protobuf_varint(uint64_t value, uint8_t bytes[PROTOBUF_VARINT_BYTES]);

/* Fields of a message. Repeated numbers are packed: one field for all of them. */
void protobuf_out_u64(struct protobuf_out *out, uint32_t field, uint64_t value);
void protobuf_out_double(struct protobuf_out *out, uint32_t field, double value);
void protobuf_out_bytes(struct protobuf_out *out, uint32_t field, const void *bytes, size_t length);
void protobuf_out_string(struct protobuf_out *out, uint32_t field, const char *text);
void protobuf_out_packed(struct protobuf_out *out, uint32_t field, const uint64_t *values, size_t count);

/* --- reading -------------------------------------------------------------------------------- */

/* What is left of a message: bytes [at, end) of a file, borrowed. */
struct protobuf_in {
    const char *name; /* of the file, for messages */
    const uint8_t *bytes;
    size_t at, end;
};

struct protobuf_field {
    uint32_t number;
    enum protobuf_form form;
    size_t at;      /* where it begins in the file */
    uint64_t value; /* of a varint or a fixed one: its bits */
    struct protobuf_in inside; /* BYTES */
};

/* "NAME: byte AT: message", STATUS_BAD_INPUT. */
enum status protobuf_fail(const struct protobuf_in *in, size_t at, struct error *err, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* At the end: *some is false. Errors: STATUS_BAD_INPUT, with the byte, for what is cut off or no field. */
MUST_CHECK enum status protobuf_in_next(struct protobuf_in *in, struct protobuf_field *out, bool *some,
                                        struct error *err);

/* A varint alone: a length in front of a message, or one of numbers in a row. */
MUST_CHECK enum status protobuf_in_varint(struct protobuf_in *in, uint64_t *out, struct error *err);

double protobuf_double(uint64_t bits); /* of a FIXED64 */
float protobuf_float(uint64_t bits);   /* of a FIXED32 */

#endif
