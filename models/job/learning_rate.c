/* Computes in double. */
#include "models/job/learning_rate.h"

#include <assert.h>
#include <math.h>

/* x: share of the steps after the warm-up. Returns the rate relative to the full one, without
 * floor. */
static double decayed(uint32_t kind, double x)
{
    static const double pi = 3.14159265358979323846;
    switch ((enum rate_schedule_kind)kind) {
    case RATE_CONSTANT: return 1;
    case RATE_LINEAR: return 1 - x;
    case RATE_COSINE: return (1 + cos(pi * x)) / 2;
    case RATE_SCHEDULE_COUNT: break;
    }
    assert(false);
    return 1;
}

uint64_t learning_rate_steps(const struct job *job)
{
    uint64_t steps = job->optimizer.schedule.steps;
    return steps > 0 ? steps : job->first_minibatch + job->minibatches;
}

double learning_rate_at(const struct job *job, uint64_t step)
{
    const struct rate_schedule *schedule = &job->optimizer.schedule;
    uint64_t warmup = schedule->warmup, steps = learning_rate_steps(job);
    assert(step > 0);
    if (step <= warmup) return job->optimizer.learning_rate * ((double)step / (double)warmup);
    double x = steps > warmup ? (double)(step - 1 - warmup) / (double)(steps - warmup) : 0;
    double rest = decayed(schedule->kind, x);
    return job->optimizer.learning_rate * (schedule->floor + (1 - schedule->floor) * rest);
}

struct job_optimizer optimizer_at(const struct job *job, uint64_t minibatch)
{
    struct job_optimizer optimizer = job->optimizer;
    optimizer.learning_rate = learning_rate_at(job, minibatch + 1);
    return optimizer;
}
