/* See settle_divide.h. */
#include "planner/settle_divide.h"

#include <stddef.h>

#include "base/extreme.h"

static double on_device(const struct settle_times *t, uint32_t job, uint32_t device)
{
    return t->alone_s[(size_t)job * t->kind_count + t->kind[device]];
}

static double shortest(const struct settle_times *t, uint32_t job)
{
    double least = on_device(t, job, 0);
    for (uint32_t d = 1; d < t->device_count; d++) least = min_s(least, on_device(t, job, d));
    return least;
}

void settle_order(const struct settle_times *times, uint32_t *longest)
{
    for (uint32_t j = 0; j < times->job_count; j++) {
        uint32_t at = j;
        while (at > 0 && shortest(times, longest[at - 1]) < shortest(times, j)) {
            longest[at] = longest[at - 1];
            at--;
        }
        longest[at] = j;
    }
}

double settle_share_s(const struct settle_times *times)
{
    double sum = 0, most = 0;
    for (uint32_t j = 0; j < times->job_count; j++) {
        sum += shortest(times, j);
        most = max_s(most, shortest(times, j));
    }
    return max_s(most, sum / times->device_count);
}

/* The device on which the job would end first. */
static uint32_t first_free(const struct settle_times *t, const double *load_s, uint32_t job)
{
    uint32_t best = 0;
    for (uint32_t d = 1; d < t->device_count; d++)
        if (load_s[d] + on_device(t, job, d) < load_s[best] + on_device(t, job, best)) best = d;
    return best;
}

/* The fullest of the first devices that has room for the job within `share`; one that has nothing yet takes any. */
static uint32_t fullest_with_room(const struct settle_times *t, const double *load_s, uint32_t settled,
                                  double share, uint32_t job)
{
    uint32_t best = SETTLED_NOWHERE;
    for (uint32_t d = 0; d < settled; d++) {
        if (load_s[d] > 0 && load_s[d] + on_device(t, job, d) > share) continue;
        if (best == SETTLED_NOWHERE || load_s[d] > load_s[best]) best = d;
    }
    return best;
}

void settle_divide(const struct settle_times *times, uint32_t settled, struct settle_division *out)
{
    double share = settle_share_s(times), left = 0, longest_left = 0;
    out->left_count = 0;
    out->settled_s = out->left_s = 0;
    for (uint32_t d = 0; d < times->device_count; d++) out->load_s[d] = 0;
    for (uint32_t i = 0; i < times->job_count; i++) {
        uint32_t job = times->longest[i];
        uint32_t d = settled == times->device_count ? first_free(times, out->load_s, job)
                                                    : fullest_with_room(times, out->load_s, settled, share, job);
        out->device[job] = d;
        if (d == SETTLED_NOWHERE) {
            out->left_count++;
            left += shortest(times, job);
            longest_left = max_s(longest_left, shortest(times, job));
            continue;
        }
        out->load_s[d] += on_device(times, job, d);
        out->settled_s = max_s(out->settled_s, out->load_s[d]);
    }
    if (out->left_count > 0) out->left_s = max_s(longest_left, left / (times->device_count - settled));
}
