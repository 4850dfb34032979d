/* The host's highest rate of multiplications and additions. */
#include <assert.h>
#include <math.h>

#include "base/process/clock.h"
#include "exec/kernels/kernels.h"
#include "exec/measure/measure_bench.h"

enum { PEAK_REPEATS = 9 };

static void compute_peak(const struct kernels *kernels, void *argument)
{
    double best_s = INFINITY;
    for (int i = 0; i < PEAK_REPEATS; i++) {
        volatile float factor = 0.5f, sink = 0;
        const double start_s = clock_s();
#pragma omp parallel num_threads((int)kernels->threads)
        {
            const float sum = kernels_peak_loop(factor);
#pragma omp critical
            sink += sum;
        }
        (void)sink;
        best_s = fmin(best_s, clock_s() - start_s);
    }
    *(double *)argument = (double)KERNELS_PEAK_FLOPS * kernels->threads / best_s;
}

double measure_peak(struct measure_bench *bench)
{
    assert(bench->backend->arena_on_host);
    struct device_stream *const stream = device_stream(bench->device, STREAM_COMPUTE);
    double rate = 0;
    device_compute(stream, compute_peak, &rate, 0, NULL);
    while (!device_synchronize(stream, device_record(stream), 1))
        ;
    return rate;
}
