#include "models/cost/compression.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/text/number.h"
#include "base/try.h"

const char *const compression_names[COMPRESSION_COUNT] = {
    [COMPRESSION_BOUNDARIES] = "boundaries",
    [COMPRESSION_GRADIENTS] = "gradients",
    [COMPRESSION_ACTIVATIONS] = "activations",
};

static const uint64_t from_max = UINT64_C(1) << 32;
static const double ratio_max = 1e6, rate_min = 1, rate_max = 1e18; /* a day of a terabyte is below 2^63 ns */

uint64_t compression_bytes(const struct compression *compression, uint64_t bytes)
{
    if (!compression_is_set(compression)) return bytes;
    return (uint64_t)ceil((double)bytes / compression->ratio);
}

static const double code_ratios[] = {[COMPRESSION_BF16] = 2, [COMPRESSION_INT8] = 3.75};

enum compression_code compression_code(const struct compression *compression)
{
    for (uint32_t code = COMPRESSION_BF16; code <= COMPRESSION_INT8; code++)
        if (!(compression->ratio < code_ratios[code]) && !(compression->ratio > code_ratios[code]))
            return (enum compression_code)code;
    return COMPRESSION_PLAIN;
}

uint64_t compression_code_bytes(enum compression_code code, uint64_t numbers)
{
    switch (code) {
    case COMPRESSION_BF16: return numbers * 2;
    case COMPRESSION_INT8: return numbers + (numbers + COMPRESSION_INT8_BLOCK - 1) / COMPRESSION_INT8_BLOCK;
    default: return numbers * sizeof(float);
    }
}

static uint64_t nanoseconds(const struct compression *compression, uint64_t bytes, double bytes_per_s)
{
    if (!compression_is_set(compression)) return 0;
    double ns = round((double)bytes / bytes_per_s * 1e9);
    return ns < 1e18 ? (uint64_t)ns : (uint64_t)1e18;
}

uint64_t compression_encode_ns(const struct compression *compression, uint64_t bytes)
{
    return nanoseconds(compression, bytes, compression->encode_bytes_per_s);
}

uint64_t compression_decode_ns(const struct compression *compression, uint64_t bytes)
{
    return nanoseconds(compression, bytes, compression->decode_bytes_per_s);
}

static enum status parse_one(const struct json_input *in, const json_t *value, bool boundaries, struct compression *out,
                             struct error *err)
{
    struct json_object o;
    TRY(json_object_open(&o, in, value, "a compression", err));
    TRY(json_take_double(&o, "ratio", JSON_REQUIRED, 1, ratio_max, &out->ratio, err));
    TRY(json_take_quantity(&o, "encode", JSON_REQUIRED, DIMENSION_BYTES_PER_S, rate_min, rate_max,
                           &out->encode_bytes_per_s, err));
    TRY(json_take_quantity(&o, "decode", JSON_REQUIRED, DIMENSION_BYTES_PER_S, rate_min, rate_max,
                           &out->decode_bytes_per_s, err));
    if (boundaries) TRY(json_take_u64(&o, "from", JSON_OPTIONAL, 0, from_max, &out->from, err));
    return json_object_close(&o, err);
}

enum status compression_parse(const struct json_input *in, const json_t *value,
                              struct compression out[COMPRESSION_COUNT], struct error *err)
{
    struct json_object o;
    TRY(json_object_open(&o, in, value, "a compression object", err));
    for (uint32_t i = 0; i < COMPRESSION_COUNT; i++) {
        const json_t *one = NULL;
        TRY(json_take_object(&o, compression_names[i], JSON_OPTIONAL, &one, err));
        if (one) TRY(parse_one(in, one, i == COMPRESSION_BOUNDARIES, &out[i], err));
    }
    return json_object_close(&o, err);
}

/* --- text ------------------------------------------------------------------------------------ */

enum { WORD_BYTES = 64 };

/* Copies the part up to one of `ends` and moves *text after that. Returns false when there is none or it is too
 * long. */
static bool parse_part(const char **text, const char *ends, char part[WORD_BYTES])
{
    size_t length = strcspn(*text, ends);
    if (length == 0 || length >= WORD_BYTES) return false;
    memcpy(part, *text, length);
    part[length] = '\0';
    *text += length;
    return true;
}

static enum status parse_rate(const char *text, double *out, struct error *err)
{
    TRY(quantity_parse(text, DIMENSION_BYTES_PER_S, out, err));
    if (*out >= rate_min && *out <= rate_max) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "'%s' is out of range (expected 1 B/s to 1000000 TB/s)", text);
}

/* "10:400GB/s" or "10:400GB/s:300GB/s" */
static enum status parse_values(const char **text, struct compression *out, struct error *err)
{
    char part[WORD_BYTES];
    const char *end;
    struct compression one = {0};
    if (!parse_part(text, ":,", part))
        return error_set(err, STATUS_BAD_INPUT, "a ratio is missing (expected such as 10)");
    if (!number_read(part, &end, &one.ratio) || *end != '\0' || !(one.ratio >= 1 && one.ratio <= ratio_max))
        return error_set(err, STATUS_BAD_INPUT, "ratio '%s' (expected a number from 1 to 1000000)", part);
    if (*(*text)++ != ':' || !parse_part(text, ":,", part))
        return error_set(err, STATUS_BAD_INPUT, "the rate of encoding is missing (expected such as 10:400GB/s)");
    TRY(parse_rate(part, &one.encode_bytes_per_s, err));
    one.decode_bytes_per_s = one.encode_bytes_per_s;
    if (**text == ':') {
        ++*text;
        if (!parse_part(text, ",", part))
            return error_set(err, STATUS_BAD_INPUT,
                             "the rate of decoding is missing (expected such as 10:400GB/s:300GB/s)");
        TRY(parse_rate(part, &one.decode_bytes_per_s, err));
    }
    *out = one;
    return STATUS_OK;
}

enum status compression_parse_text(const char *text, struct compression out[COMPRESSION_COUNT], struct error *err)
{
    bool said[COMPRESSION_COUNT] = {false};
    for (;;) {
        char name[WORD_BYTES] = "";
        uint32_t i = 0;
        (void)parse_part(&text, "=,", name);
        while (i < COMPRESSION_COUNT && strcmp(name, compression_names[i]) != 0) i++;
        if (i == COMPRESSION_COUNT || *text++ != '=')
            return error_set(err, STATUS_BAD_INPUT,
                             "'%s' (expected boundaries=, gradients= or activations=, followed by "
                             "ratio:rate)",
                             name);
        if (said[i]) return error_set(err, STATUS_BAD_INPUT, "'%s' is given twice", name);
        said[i] = true;
        if (parse_values(&text, &out[i], err) != STATUS_OK) return error_add(err, "%s", compression_names[i]);
        if (*text == '\0') return STATUS_OK;
        text++;
    }
}

/* --- writing --------------------------------------------------------------------------------- */

/* Writes all digits, so that it reads back unchanged. */
static void write_rate(struct json_out *out, const char *key, double bytes_per_s)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g B/s", bytes_per_s);
    json_out_string(out, key, text);
}

void compression_write(const struct compression of[COMPRESSION_COUNT], struct json_out *out, const char *key)
{
    bool any = false;
    for (uint32_t i = 0; i < COMPRESSION_COUNT; i++) any |= compression_is_set(&of[i]);
    if (!any) return;
    json_out_object_begin(out, key, true);
    for (uint32_t i = 0; i < COMPRESSION_COUNT; i++) {
        if (!compression_is_set(&of[i])) continue;
        json_out_object_begin(out, compression_names[i], true);
        json_out_double(out, "ratio", of[i].ratio);
        write_rate(out, "encode", of[i].encode_bytes_per_s);
        write_rate(out, "decode", of[i].decode_bytes_per_s);
        if (of[i].from > 0) json_out_u64(out, "from", of[i].from);
        json_out_object_end(out);
    }
    json_out_object_end(out);
}
