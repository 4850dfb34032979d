/*
 * Bisection between known bound and value: do prices prove a makespan impossible? Then smaller ones are, too. Each
 * question starts from the prices that came nearest. An unproven one costs all its rounds, so after a few questions
 * little is left to gain.
 */
#include "planner/solve/bounds/priced_bound.h"

#include "base/process/clock.h"
#include "base/try.h"
#include "planner/solve/bounds/lagrangian_bound.h"

enum { QUESTIONS = 4, ROUNDS_MAX = 100, SPAN_MAX = 1024 };
static const double question_work = 5e7; /* tasks squared by ticks by classes: 0.15 s */

bool priced_bound_takes(const struct instance *in)
{
    return task_net_takes(in);
}

/* Returns true if prices prove that nothing ends by `limit`. */
static bool impossible(struct lagrangian_bound *prices, const struct lagrangian_state *root, int64_t limit,
                       uint32_t rounds, double until_s)
{
    lagrangian_bound_limit(prices, limit);
    lagrangian_bound_fit(prices, root, 1, rounds, until_s);
    return lagrangian_bound_slack(prices, root) < 0;
}

enum status priced_bound(const struct instance *in, const struct instance_bounds *bounds, int64_t value,
                         double until_s, int64_t *out, struct error *err)
{
    struct task_net *net;
    struct lagrangian_bound *prices;
    struct lagrangian_state root;
    int64_t low = instance_bounds_best(bounds), high = value; /* the least possible makespan is in low .. high */
    *out = low;
    if (low >= value) return STATUS_OK;
    TRY(task_net_create(in, false, &net, err));
    if (lagrangian_bound_create(net, bounds, value - 1, &prices, err)) {
        task_net_destroy(net);
        return err->status;
    }
    lagrangian_state_begin(net, &root);
    double ticks = value < SPAN_MAX ? (double)value : SPAN_MAX;
    double most = question_work / (ticks * in->task_count * in->task_count * in->class_count);
    uint32_t rounds = most < ROUNDS_MAX ? (uint32_t)most + 1 : ROUNDS_MAX;
    for (uint32_t q = 0; q < QUESTIONS && low < high && clock_s() < until_s; q++) {
        int64_t limit = low + (high - low) / 2;
        if (impossible(prices, &root, limit, rounds, until_s)) low = limit + 1;
        else high = limit;
    }
    *out = low;
    lagrangian_bound_destroy(prices);
    task_net_destroy(net);
    return STATUS_OK;
}
