/*
 * Elementwise kernels: GELU, ReLU and SwiGLU, their derivatives, sums, optimizer steps.
 *
 * All are bound by memory. A thread takes EACH numbers that are THREADS apart: neighbouring threads read neighbouring
 * numbers, and all loads of a thread are in flight before its first store. Loads have four bytes, not sixteen: every
 * alignment works, a result does not depend on its position, and the difference is a few per cent.
 *
 * The formulas are as in kernels_elementwise.c and kernels_swiglu.c.
 */
#include "exec/cuda/kernels_cuda_device.cuh"

#include "exec/cuda/kernels_cuda_launch.h"
#include "exec/cuda/kernels_cuda_step.cuh"

enum { THREADS = 256, EACH = 4, PER_BLOCK = THREADS * EACH };

#define ROOT_2_OVER_PI 0.797884561f
#define INVERSE_ROOT_2_PI 0.398942280f
#define INVERSE_ROOT_2 0.707106781f
#define CUBIC 0.044715f

/* --- arithmetic of one number -------------------------------------------------------------------- */

/* Returns 1 / (1 + exp(-2 u(x))), u as in kernels_elementwise.c. */
__device__ static inline float gate(float x)
{
    const float doubled = x * (-2.0f * ROOT_2_OVER_PI - 2.0f * ROOT_2_OVER_PI * CUBIC * (x * x));
    return 1.0f / (1.0f + expf(doubled));
}

__device__ static inline float normal(float x)
{
    return 0.5f * erfcf(-x * INVERSE_ROOT_2);
}

struct gelu_tanh {
    __device__ float operator()(float x) const { return x * gate(x); }
};

struct gelu_exact {
    __device__ float operator()(float x) const { return x * normal(x); }
};

struct gelu_tanh_slope {
    __device__ float operator()(float dy, float x) const
    {
        const float s = gate(x);
        const float slope = 2.0f * ROOT_2_OVER_PI + 6.0f * ROOT_2_OVER_PI * CUBIC * (x * x);
        return dy * (s + x * slope * (s * (1.0f - s)));
    }
};

struct gelu_exact_slope {
    __device__ float operator()(float dy, float x) const
    {
        return dy * (normal(x) + x * INVERSE_ROOT_2_PI * expf(-0.5f * x * x));
    }
};

struct relu {
    __device__ float operator()(float x) const { return x > 0.0f ? x : 0.0f; }
};

struct relu_slope {
    __device__ float operator()(float dy, float x) const { return x > 0.0f ? dy : 0.0f; }
};

__device__ static inline float logistic(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

struct swiglu {
    __device__ float operator()(float gate, float up) const { return gate * logistic(gate) * up; }
};

struct sum_of_two {
    __device__ float operator()(float x, float y) const { return x + y; }
};

/* --- kernels ---------------------------------------------------------------------------------------- */

/* y = f(x); y may be x */
template <typename Function>
__global__ static void map_one(float *y, const float *x, int64_t n)
{
    const Function function = Function();
    const int64_t first = (int64_t)blockIdx.x * PER_BLOCK + threadIdx.x;
    float in[EACH];
    for (int e = 0; e < EACH; e++) in[e] = first + e * THREADS < n ? x[first + e * THREADS] : 0.0f;
    for (int e = 0; e < EACH; e++)
        if (first + e * THREADS < n) y[first + e * THREADS] = function(in[e]);
}

/* z = f(x, y); z may be x or y */
template <typename Function>
__global__ static void map_two(float *z, const float *x, const float *y, int64_t n)
{
    const Function function = Function();
    const int64_t first = (int64_t)blockIdx.x * PER_BLOCK + threadIdx.x;
    float left[EACH], right[EACH];
    for (int e = 0; e < EACH; e++) {
        const bool inside = first + e * THREADS < n;
        left[e] = inside ? x[first + e * THREADS] : 0.0f;
        right[e] = inside ? y[first + e * THREADS] : 0.0f;
    }
    for (int e = 0; e < EACH; e++)
        if (first + e * THREADS < n) z[first + e * THREADS] = function(left[e], right[e]);
}

/* dgate may be dy */
__global__ static void swiglu_slopes(float *dgate, float *dup, const float *dy, const float *gate,
                                     const float *up, int64_t n)
{
    const int64_t first = (int64_t)blockIdx.x * PER_BLOCK + threadIdx.x;
    float g[EACH], u[EACH], d[EACH];
    for (int e = 0; e < EACH; e++) {
        const int64_t i = first + e * THREADS;
        g[e] = i < n ? gate[i] : 0.0f;
        u[e] = i < n ? up[i] : 0.0f;
        d[e] = i < n ? dy[i] : 0.0f;
    }
    for (int e = 0; e < EACH; e++) {
        const int64_t i = first + e * THREADS;
        if (i >= n) break;
        const float s = logistic(g[e]), silu = g[e] * s;
        dgate[i] = d[e] * u[e] * (s + silu * (1.0f - s));
        dup[i] = d[e] * silu;
    }
}

/* MOMENTS is a constant, so that no unused moments are loaded. `scale` is a factor of the gradient. */
template <int MOMENTS>
__global__ static void update(struct kernel_parameters parameters, const float *g, int64_t n,
                              struct kernel_step s, float scale)
{
    const int64_t first = (int64_t)blockIdx.x * PER_BLOCK + threadIdx.x;
    struct step_numbers numbers[EACH];
    float gradient[EACH];
    if (MOMENTS < 1) parameters.m = nullptr;
    if (MOMENTS < 2) parameters.v = nullptr;
    for (int e = 0; e < EACH; e++) {
        const int64_t i = first + e * THREADS;
        if (i >= n) break;
        numbers[e] = step_load(parameters, i, s);
        gradient[e] = step_scaled(g[i], scale);
    }
    for (int e = 0; e < EACH; e++) {
        const int64_t i = first + e * THREADS;
        if (i >= n) break;
        step_apply(&numbers[e], gradient[e], MOMENTS > 0, MOMENTS > 1, s);
        step_store(parameters, i, numbers[e], s);
    }
}

/* y may be x */
__global__ static void scale(float *y, const float *x, int64_t n, float factor)
{
    const int64_t first = (int64_t)blockIdx.x * PER_BLOCK + threadIdx.x;
    for (int e = 0; e < EACH; e++)
        if (first + e * THREADS < n) y[first + e * THREADS] = factor * x[first + e * THREADS];
}

__global__ static void round_to_bf16(bf16 *out, const float *x, int64_t n)
{
    const int64_t first = (int64_t)blockIdx.x * PER_BLOCK + threadIdx.x;
    float in[EACH];
    for (int e = 0; e < EACH; e++) in[e] = first + e * THREADS < n ? x[first + e * THREADS] : 0.0f;
    for (int e = 0; e < EACH; e++)
        if (first + e * THREADS < n) out[first + e * THREADS] = bf16_nearest(in[e]);
}

__global__ static void round_rows(bf16 *out, const float *x, int64_t width, int64_t stride)
{
    for (int64_t i = threadIdx.x; i < width; i += THREADS)
        out[blockIdx.x * width + i] = bf16_nearest(x[blockIdx.x * stride + i]);
}

__global__ static void widen_rows(float *out, const bf16 *x, int64_t width, int64_t stride)
{
    for (int64_t i = threadIdx.x; i < width; i += THREADS)
        out[blockIdx.x * stride + i] = bf16_widen(x[blockIdx.x * width + i]);
}

__global__ static void copy_rows(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t width)
{
    for (int64_t i = threadIdx.x; i < width; i += THREADS)
        to[blockIdx.x * to_row + i] = from[blockIdx.x * from_row + i];
}

__global__ static void add_bias(float *y, const float *bias, int64_t m, int64_t n)
{
    const int64_t first = (int64_t)blockIdx.x * PER_BLOCK + threadIdx.x;
    for (int e = 0; e < EACH; e++) {
        const int64_t i = first + e * THREADS;
        if (i < m * n) y[i] += bias[i % n];
    }
}

/* nanosleep takes at most a millisecond at a time. */
__global__ static void pause_for(unsigned long long nanoseconds)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        __nanosleep(10000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
#else
    (void)nanoseconds;
#endif
}

/* --- launchers ---------------------------------------------------------------------------------------- */

extern "C" cudaError_t cuda_gelu_forward(cudaStream_t stream, float *y, const float *x, int64_t n,
                                         bool tanh_form)
{
    return launch(tanh_form ? map_one<gelu_tanh> : map_one<gelu_exact>, blocks_for(n, PER_BLOCK),
                  dim3(THREADS), 0, stream, y, x, n);
}

extern "C" cudaError_t cuda_gelu_backward(cudaStream_t stream, float *dx, const float *dy,
                                          const float *x, int64_t n, bool tanh_form)
{
    return launch(tanh_form ? map_two<gelu_tanh_slope> : map_two<gelu_exact_slope>,
                  blocks_for(n, PER_BLOCK), dim3(THREADS), 0, stream, dx, dy, x, n);
}

extern "C" cudaError_t cuda_relu_forward(cudaStream_t stream, float *y, const float *x, int64_t n)
{
    return launch(map_one<relu>, blocks_for(n, PER_BLOCK), dim3(THREADS), 0, stream, y, x, n);
}

extern "C" cudaError_t cuda_relu_backward(cudaStream_t stream, float *dx, const float *dy, const float *x, int64_t n)
{
    return launch(map_two<relu_slope>, blocks_for(n, PER_BLOCK), dim3(THREADS), 0, stream, dx, dy, x, n);
}

extern "C" cudaError_t cuda_swiglu_forward(cudaStream_t stream, float *y, const float *gate,
                                           const float *up, int64_t n)
{
    return launch(map_two<swiglu>, blocks_for(n, PER_BLOCK), dim3(THREADS), 0, stream, y, gate, up,
                  n);
}

extern "C" cudaError_t cuda_swiglu_backward(cudaStream_t stream, float *dgate, float *dup,
                                            const float *dy, const float *gate, const float *up,
                                            int64_t n)
{
    return launch(swiglu_slopes, blocks_for(n, PER_BLOCK), dim3(THREADS), 0, stream, dgate, dup, dy,
                  gate, up, n);
}

extern "C" cudaError_t cuda_residual(cudaStream_t stream, float *z, const float *x, const float *y,
                                     int64_t n)
{
    return launch(map_two<sum_of_two>, blocks_for(n, PER_BLOCK), dim3(THREADS), 0, stream, z, x, y,
                  n);
}

extern "C" cudaError_t cuda_scale(cudaStream_t stream, float *y, const float *x, int64_t n, float factor)
{
    return launch(scale, blocks_for(n, PER_BLOCK), dim3(THREADS), 0, stream, y, x, n, factor);
}

extern "C" cudaError_t cuda_update(cudaStream_t stream,
                                   const struct kernel_parameters *parameters, const float *g,
                                   int64_t n, const struct kernel_step *step, float scale)
{
    const int moments = !parameters->m ? 0 : !parameters->v ? 1 : 2;
    return launch(moments == 0 ? update<0> : moments == 1 ? update<1> : update<2>,
                  blocks_for(n, PER_BLOCK), dim3(THREADS), 0, stream, *parameters, g, n, *step,
                  scale);
}

extern "C" cudaError_t cuda_round(cudaStream_t stream, bf16 *out, const float *x, int64_t n)
{
    return launch(round_to_bf16, blocks_for(n, PER_BLOCK), dim3(THREADS), 0, stream, out, x, n);
}

extern "C" cudaError_t cuda_round_rows(cudaStream_t stream, bf16 *out, const float *x,
                                       int64_t rows, int64_t width, int64_t stride)
{
    return launch(round_rows, rows, dim3(THREADS), 0, stream, out, x, width, stride);
}

extern "C" cudaError_t cuda_widen_rows(cudaStream_t stream, float *out, const bf16 *x,
                                       int64_t rows, int64_t width, int64_t stride)
{
    return launch(widen_rows, rows, dim3(THREADS), 0, stream, out, x, width, stride);
}

extern "C" cudaError_t cuda_copy_rows(cudaStream_t stream, float *to, int64_t to_row, const float *from,
                                      int64_t from_row, int64_t rows, int64_t width)
{
    return launch(copy_rows, rows, dim3(THREADS), 0, stream, to, to_row, from, from_row, width);
}

extern "C" cudaError_t cuda_add_bias(cudaStream_t stream, float *y, const float *bias, int64_t m,
                                     int64_t n)
{
    return launch(add_bias, blocks_for(m * n, PER_BLOCK), dim3(THREADS), 0, stream, y, bias, m, n);
}

extern "C" cudaError_t cuda_pause(cudaStream_t stream, uint64_t nanoseconds)
{
    return launch(pause_for, 1, dim3(1), 0, stream, nanoseconds);
}

extern "C" cudaError_t cuda_elementwise_load(void)
{
    const void *const kernels[] = {
        (const void *)map_one<gelu_tanh>,       (const void *)map_one<gelu_exact>,
        (const void *)map_two<gelu_tanh_slope>, (const void *)map_two<gelu_exact_slope>,
        (const void *)map_two<swiglu>,          (const void *)swiglu_slopes,
        (const void *)map_one<relu>,            (const void *)map_two<relu_slope>,
        (const void *)map_two<sum_of_two>,      (const void *)update<0>,
        (const void *)update<1>,                (const void *)update<2>,
        (const void *)round_to_bf16,            (const void *)add_bias,
        (const void *)pause_for,                (const void *)round_rows,
        (const void *)widen_rows,               (const void *)copy_rows,
        (const void *)scale,
    };
    return cuda_load_kernels(kernels);
}
