/*
 * The wire format of protocol buffers, as needed for execution traces: a sequence of fields, each with a number and
 * one of four forms.
 *
 *     form 0  VARINT   seven bits per byte, lowest first; the top bit means that more bytes follow
 *     form 1  FIXED64  eight bytes, lowest first
 *     form 2  BYTES    a varint n, then n bytes: a string, a message, or packed numbers
 *     form 5  FIXED32  four bytes
 *
 * It is written by hand instead of using protobuf-c. There are only two messages of few fields, a generated decoder
 * cannot report the byte at which a file is broken, and it would be another dependency to install.
 *
 * Source: Protocol Buffers, "Encoding" (protobuf.dev); in message streams a length precedes each message.
 */
#ifndef SPILLWAY_TRACES_EXCHANGE_PROTOBUF_H
#define SPILLWAY_TRACES_EXCHANGE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum protobuf_form { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_FIXED32 = 5 };

enum { PROTOBUF_VARINT_BYTES = 10 };

/* --- writing -------------------------------------------------------------------------------- */

/* A growing message. Zeroed, it is empty; the caller frees it with protobuf_out_release(). A failed allocation is
 * remembered in `failed`, and later calls do nothing. */
struct protobuf_out {
    uint8_t *bytes;
    size_t length, capacity;
    bool failed;
};
void protobuf_out_release(struct protobuf_out *out);

/* Encodes a number in at most PROTOBUF_VARINT_BYTES bytes; returns their number. */
size_t protobuf_varint(uint64_t value, uint8_t bytes[PROTOBUF_VARINT_BYTES]);

/* Append fields. Repeated numbers are packed into one field. */
void protobuf_out_u64(struct protobuf_out *out, uint32_t field, uint64_t value);
void protobuf_out_double(struct protobuf_out *out, uint32_t field, double value);
void protobuf_out_bytes(struct protobuf_out *out, uint32_t field, const void *bytes, size_t length);
void protobuf_out_string(struct protobuf_out *out, uint32_t field, const char *text);
void protobuf_out_packed(struct protobuf_out *out, uint32_t field, const uint64_t *values, size_t count);

/* --- reading -------------------------------------------------------------------------------- */

/* The unread part of a message: bytes [at, end) of a file, borrowed. */
struct protobuf_in {
    const char *name; /* name of the file, for messages */
    const uint8_t *bytes;
    size_t at, end;
};

struct protobuf_field {
    uint32_t number;
    enum protobuf_form form;
    size_t at;      /* its first byte in the file */
    uint64_t value; /* bits of a varint or fixed number */
    struct protobuf_in inside; /* BYTES */
};

/* Sets the error "NAME: byte AT: message" and returns STATUS_BAD_INPUT. */
enum status protobuf_fail(const struct protobuf_in *in, size_t at, struct error *err, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* Reads the next field. *some is false at the end. Errors: STATUS_BAD_INPUT, with the byte, for a truncated or
 * invalid field. */
MUST_CHECK enum status protobuf_in_next(struct protobuf_in *in, struct protobuf_field *out, bool *some,
                                        struct error *err);

/* Reads a bare varint: the length of a message, or one of packed numbers. */
MUST_CHECK enum status protobuf_in_varint(struct protobuf_in *in, uint64_t *out, struct error *err);

double protobuf_double(uint64_t bits); /* of a FIXED64 */

#endif
