/*
 * Dilated devices share this machine's memory. Devices that work in step also step parameters at the same moment, and
 * halve each other's bandwidth, which real devices would not do. Steps, squares and sums therefore take turns: a device
 * has time to wait, since it sleeps longer than it computes.
 */
#include <pthread.h>

#include "exec/kernels/kernels_host.h"

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void update_in_turn(const struct kernels *kernels, const struct kernel_parameters *parameters, const float *g,
                           int64_t n, const struct job_optimizer *optimizer, bool decays, uint64_t step)
{
    pthread_mutex_lock(&turn);
    host_update(kernels, parameters, g, n, optimizer, decays, step);
    pthread_mutex_unlock(&turn);
}

static void update_scaled_in_turn(const struct kernels *kernels, const struct kernel_parameters *parameters,
                                  const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                                  uint64_t step, float scale)
{
    pthread_mutex_lock(&turn);
    host_update_scaled(kernels, parameters, g, n, optimizer, decays, step, scale);
    pthread_mutex_unlock(&turn);
}

static void squares_in_turn(const struct kernels *kernels, double *sum, const float *g, int64_t n, bool adds)
{
    pthread_mutex_lock(&turn);
    host_squares(kernels, sum, g, n, adds);
    pthread_mutex_unlock(&turn);
}

static void add_in_turn(const struct kernels *kernels, float *z, const float *x, const float *y, int64_t n)
{
    pthread_mutex_lock(&turn);
    host_residual(kernels, z, x, y, n);
    pthread_mutex_unlock(&turn);
}

static void take_turns(struct kernels *kernels)
{
    kernels->update = update_in_turn;
    kernels->update_scaled = update_scaled_in_turn;
    kernels->squares = squares_in_turn;
    kernels->add = add_in_turn;
}

void kernels_host_take_turns(struct kernels *kernels)
{
    struct host_context *const context = kernels->context;
    take_turns(kernels);
    take_turns(&context->half);
}
