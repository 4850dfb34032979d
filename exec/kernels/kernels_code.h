/*
 * Codes of fp32 numbers that devices send and keep (models/cost/compression.h). They are deterministic: the same
 * numbers have the same bytes on every processor, with any number of threads.
 *
 *     bf16   each number rounded to nearest, ties to even; two bytes
 *     int8   blocks of 15 numbers, the last one perhaps shorter: a byte with an exponent e, then a signed byte q for
 *            each number, which stands for q 2^(e - 127)
 *
 * Of a block, let E be the biased exponent of its largest number: 2^(E - 127) <= |x| < 2^(E - 126). Then e = E - 6, at
 * least 1, and q = x / 2^(e - 127), rounded to nearest, ties to even, at most 127 in size. So numbers of the largest
 * exponent keep 7 bits. Numbers below 2^-126 count as zero, and a block of zeros has e = 0. A block with an infinity or
 * a NaN has e = 255 and is decoded to NaN, so that a run sees it.
 *
 * Numbers may be encoded and decoded in place: the code is at the beginning of the numbers' memory.
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_CODE_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_CODE_H

#include "models/cost/compression.h"

/* Numbers that begin at a multiple of this have whole blocks and lines of 32 bytes before them, in every code. */
enum { KERNELS_CODE_UNIT = 480 };

void kernels_encode(enum compression_code code, void *out, const float *x, uint64_t count);
void kernels_decode(enum compression_code code, float *out, const void *from, uint64_t count);

/* Replaces numbers by what they become when they are encoded and decoded. */
void kernels_code_round(enum compression_code code, float *x, uint64_t count);

#endif
