/*
 * Numbers go by pieces through small arrays on the stack, so that a code may lie over its own numbers: encoding goes
 * up, where a piece's code ends before its numbers do; decoding goes down.
 *
 *     numbers   [ piece 0         | piece 1         | piece 2         ]
 *     code      [ c0 | c1 | c2 ]
 */
#include "exec/kernels/kernels_code.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/bf16.h"
#include "base/clones.h"

enum { PIECE = KERNELS_CODE_UNIT, BLOCK = COMPRESSION_INT8_BLOCK, NOT_FINITE = 255, BIAS = 127, Q_BITS = 6,
      Q_MAX = 127 };
static_assert(PIECE % BLOCK == 0, "whole blocks");

static uint64_t min_count(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- bf16 ------------------------------------------------------------------------------------- */

CLONES static void round_numbers(bf16 *restrict out, const float *restrict x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) out[i] = bf16_nearest(x[i]);
}

CLONES static void widen_numbers(float *restrict out, const bf16 *restrict x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) out[i] = bf16_widen(x[i]);
}

/* --- int8 ------------------------------------------------------------------------------------- */

static float power_of_two(int32_t exponent)
{
    const uint32_t bits = (uint32_t)(exponent + BIAS) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Returns the exponent's byte. */
static uint8_t exponent_of(const float *x, uint64_t count)
{
    uint32_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t size = bf16_bits_of(x[i]) & 0x7fffffffu;
        largest = size > largest ? size : largest;
    }
    const uint32_t exponent = largest >> 23;
    if (exponent == 0) return 0;
    if (exponent == NOT_FINITE) return NOT_FINITE;
    return (uint8_t)(exponent > Q_BITS ? exponent - Q_BITS : 1);
}

/* Both powers are normal numbers: the byte is from 1 to 248. */
static void encode_block(uint8_t *out, const float *x, uint64_t count)
{
    const uint8_t exponent = exponent_of(x, count);
    const float scale = exponent == 0 || exponent == NOT_FINITE ? 0 : power_of_two(BIAS - exponent);
    out[0] = exponent;
    for (uint64_t i = 0; i < count; i++) {
        const bool none = exponent == NOT_FINITE || (bf16_bits_of(x[i]) & 0x7f800000u) == 0;
        const float q = none ? 0 : rintf(x[i] * scale);
        const float most = q > Q_MAX ? Q_MAX : q < -Q_MAX ? -Q_MAX : q;
        out[1 + i] = (uint8_t)(int8_t)most;
    }
}

static void decode_block(float *out, const uint8_t *from, uint64_t count)
{
    const uint8_t exponent = from[0];
    const float scale = exponent == NOT_FINITE ? NAN : exponent == 0 ? 0 : power_of_two(exponent - BIAS);
    for (uint64_t i = 0; i < count; i++) out[i] = (float)(int8_t)from[1 + i] * scale;
}

CLONES static void encode_blocks(uint8_t *restrict out, const float *restrict x, uint64_t count)
{
    for (uint64_t at = 0; at < count; at += BLOCK, out += 1 + BLOCK)
        encode_block(out, x + at, min_count(BLOCK, count - at));
}

CLONES static void decode_blocks(float *restrict out, const uint8_t *restrict from, uint64_t count)
{
    for (uint64_t at = 0; at < count; at += BLOCK, from += 1 + BLOCK)
        decode_block(out + at, from, min_count(BLOCK, count - at));
}

/* --- pieces ----------------------------------------------------------------------------------- */

union code {
    bf16 halves[PIECE];
    uint8_t bytes[2 * PIECE];
};

static void encode_piece(enum compression_code code, union code *out, const float *x, uint64_t count)
{
    if (code == COMPRESSION_BF16) round_numbers(out->halves, x, count);
    else encode_blocks(out->bytes, x, count);
}

static void decode_piece(enum compression_code code, float *out, const union code *from, uint64_t count)
{
    if (code == COMPRESSION_BF16) widen_numbers(out, from->halves, count);
    else decode_blocks(out, from->bytes, count);
}

void kernels_encode(enum compression_code code, void *out, const float *x, uint64_t count)
{
    for (uint64_t at = 0; at < count; at += PIECE) {
        const uint64_t n = min_count(PIECE, count - at);
        union code piece;
        encode_piece(code, &piece, x + at, n);
        memcpy((char *)out + compression_code_bytes(code, at), &piece, compression_code_bytes(code, n));
    }
}

void kernels_decode(enum compression_code code, float *out, const void *from, uint64_t count)
{
    for (uint64_t pieces = (count + PIECE - 1) / PIECE; pieces-- > 0;) {
        const uint64_t at = pieces * PIECE, n = min_count(PIECE, count - at);
        union code piece;
        memcpy(&piece, (const char *)from + compression_code_bytes(code, at), compression_code_bytes(code, n));
        decode_piece(code, out + at, &piece, n);
    }
}

void kernels_code_round(enum compression_code code, float *x, uint64_t count)
{
    for (uint64_t at = 0; at < count; at += PIECE) {
        const uint64_t n = min_count(PIECE, count - at);
        union code piece;
        encode_piece(code, &piece, x + at, n);
        decode_piece(code, x + at, &piece, n);
    }
}
