/*
 * Codes of numbers that devices send and keep: the bytes of exec/kernels/kernels_code.h.
 *
 * A block of threads takes THREADS blocks of 15 numbers. It reads all of them before it writes, through shared memory,
 * where a stride of 15 numbers has no bank conflicts; memory is read and written in order.
 *
 * A code may lie over its own numbers, and blocks of threads have no order. So encoding in place goes up in ranges, a
 * launch each, whose code ends before their numbers begin; decoding goes down in such ranges. They grow by the code's
 * ratio.
 *
 *     numbers   [ 0         | 1         | 2         | 3         | ...
 *     code      [ 0 | 1 | 2 | 3 ]                                       launches: 0; 1; 2 and 3; 4 to 7; ...
 */
#include "exec/cuda/kernels_cuda_device.cuh"

#include "exec/cuda/kernels_cuda_launch.h"

enum { BLOCK = 15, THREADS = 256, NUMBERS = THREADS * BLOCK, NUMBER_BYTES = sizeof(float) };

/* --- a block of 15 numbers, the last one perhaps shorter ------------------------------------------ */

struct bf16_code {
    enum { BYTES = BLOCK * sizeof(bf16) };

    __device__ static int bytes(int numbers) { return numbers * (int)sizeof(bf16); }

    __device__ static void encode(uint8_t *out, const float *x, int count)
    {
        for (int i = 0; i < count; i++) ((bf16 *)out)[i] = bf16_nearest(x[i]);
    }

    __device__ static void decode(float *out, const uint8_t *from, int count)
    {
        for (int i = 0; i < count; i++) out[i] = bf16_widen(((const bf16 *)from)[i]);
    }
};

/* Returns a power of two by its biased exponent, of a normal number. */
__device__ static inline float power_of_two(uint32_t exponent)
{
    const uint32_t bits = exponent << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

struct int8_code {
    enum { BYTES = 1 + BLOCK, NOT_FINITE = 255, Q_BITS = 6, Q_MAX = 127 };

    __device__ static int bytes(int numbers) { return numbers + (numbers + BLOCK - 1) / BLOCK; }

    __device__ static uint32_t exponent_of(const float *x, int count)
    {
        uint32_t largest = 0;
        for (int i = 0; i < count; i++) {
            const uint32_t size = bf16_bits_of(x[i]) & 0x7fffffffu;
            largest = size > largest ? size : largest;
        }
        const uint32_t exponent = largest >> 23;
        if (exponent == 0 || exponent == NOT_FINITE) return exponent;
        return exponent > Q_BITS ? exponent - Q_BITS : 1u;
    }

    __device__ static void encode(uint8_t *out, const float *x, int count)
    {
        const uint32_t exponent = exponent_of(x, count);
        const bool none = exponent == 0 || exponent == NOT_FINITE;
        const float scale = none ? 0.0f : power_of_two(2 * 127 - exponent);
        out[0] = (uint8_t)exponent;
        for (int i = 0; i < count; i++) {
            const bool zero = none || (bf16_bits_of(x[i]) & 0x7f800000u) == 0;
            const float q = zero ? 0.0f : rintf(x[i] * scale);
            out[1 + i] = (uint8_t)(int8_t)fminf(fmaxf(q, (float)-Q_MAX), (float)Q_MAX);
        }
    }

    __device__ static void decode(float *out, const uint8_t *from, int count)
    {
        const uint32_t exponent = from[0];
        const float scale = exponent == NOT_FINITE ? NAN : exponent == 0 ? 0.0f : power_of_two(exponent);
        for (int i = 0; i < count; i++) out[i] = (float)(int8_t)from[1 + i] * scale;
    }
};

/* --- kernels -------------------------------------------------------------------------------------- */

/* Copies bytes with all threads of a block; both ends are aligned to four. */
__device__ static inline void copy_bytes(uint8_t *to, const uint8_t *from, int bytes)
{
    for (int i = threadIdx.x; i < bytes / 4; i += THREADS) ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
    for (int i = bytes / 4 * 4 + threadIdx.x; i < bytes; i += THREADS) to[i] = from[i];
}

/* Returns how many numbers there are from the first of piece `at` on, at most a piece's. */
__device__ static inline int numbers_at(int64_t at, int64_t count)
{
    return count - at * NUMBERS < NUMBERS ? (int)(count - at * NUMBERS) : NUMBERS;
}

__device__ static inline int numbers_of_block(int numbers, int block)
{
    return numbers - block * BLOCK < BLOCK ? numbers - block * BLOCK : BLOCK;
}

template <typename Code> __global__ static void encode(uint8_t *out, const float *x, int64_t first, int64_t count)
{
    __shared__ float numbers[NUMBERS];
    __shared__ uint32_t code[THREADS * Code::BYTES / sizeof(uint32_t)];
    const int64_t at = first + blockIdx.x;
    const int n = numbers_at(at, count), own = numbers_of_block(n, threadIdx.x);
    for (int i = threadIdx.x; i < n; i += THREADS) numbers[i] = x[at * NUMBERS + i];
    __syncthreads();
    if (own > 0) Code::encode((uint8_t *)code + threadIdx.x * Code::BYTES, numbers + threadIdx.x * BLOCK, own);
    __syncthreads();
    copy_bytes(out + at * THREADS * Code::BYTES, (const uint8_t *)code, Code::bytes(n));
}

template <typename Code> __global__ static void decode(float *out, const uint8_t *from, int64_t first, int64_t count)
{
    __shared__ float numbers[NUMBERS];
    __shared__ uint32_t code[THREADS * Code::BYTES / sizeof(uint32_t)];
    const int64_t at = first + blockIdx.x;
    const int n = numbers_at(at, count), own = numbers_of_block(n, threadIdx.x);
    copy_bytes((uint8_t *)code, from + at * THREADS * Code::BYTES, Code::bytes(n));
    __syncthreads();
    if (own > 0) Code::decode(numbers + threadIdx.x * BLOCK, (const uint8_t *)code + threadIdx.x * Code::BYTES, own);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += THREADS) out[at * NUMBERS + i] = numbers[i];
}

/* --- launchers ------------------------------------------------------------------------------------ */

template <typename Code> static cudaError_t encode_ranges(cudaStream_t stream, void *out, const float *x, int64_t count)
{
    const int64_t pieces = blocks_for(count, NUMBERS);
    cudaError_t failed = cudaSuccess;
    for (int64_t at = 0, next; at < pieces && failed == cudaSuccess; at = next) {
        next = at == 0 ? 1 : at * BLOCK * NUMBER_BYTES / Code::BYTES;
        if (out != x || next > pieces) next = pieces;
        failed = launch(encode<Code>, next - at, dim3(THREADS), 0, stream, (uint8_t *)out, x, at, count);
    }
    return failed;
}

template <typename Code>
static cudaError_t decode_ranges(cudaStream_t stream, float *out, const void *from, int64_t count)
{
    cudaError_t failed = cudaSuccess;
    for (int64_t end = blocks_for(count, NUMBERS), at; end > 0 && failed == cudaSuccess; end = at) {
        at = out != from || end == 1 ? 0 : blocks_for(end * Code::BYTES, BLOCK * NUMBER_BYTES);
        failed = launch(decode<Code>, end - at, dim3(THREADS), 0, stream, out, (const uint8_t *)from, at, count);
    }
    return failed;
}

extern "C" cudaError_t cuda_encode(cudaStream_t stream, bool halves, void *out, const float *x, int64_t count)
{
    return (halves ? encode_ranges<bf16_code> : encode_ranges<int8_code>)(stream, out, x, count);
}

extern "C" cudaError_t cuda_decode(cudaStream_t stream, bool halves, float *out, const void *from, int64_t count)
{
    return (halves ? decode_ranges<bf16_code> : decode_ranges<int8_code>)(stream, out, from, count);
}

extern "C" cudaError_t cuda_code_load(void)
{
    const void *const kernels[] = {(const void *)encode<bf16_code>, (const void *)encode<int8_code>,
                                   (const void *)decode<bf16_code>, (const void *)decode<int8_code>};
    return cuda_load_kernels(kernels);
}
