#include "planner/strategy/resident_divide.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/extreme.h"

static double on_kind(const struct resident_times *t, uint32_t job, uint32_t kind)
{
    return t->alone_s[(size_t)job * t->kind_count + kind];
}

static double shortest(const struct resident_times *t, uint32_t job)
{
    double least = on_kind(t, job, 0);
    for (uint32_t k = 1; k < t->kind_count; k++) least = min_s(least, on_kind(t, job, k));
    return least;
}

/* --- the longest first ----------------------------------------------------------------------- */

static bool is_after(const struct resident_times *t, uint32_t a, uint32_t b)
{
    double x = shortest(t, a), y = shortest(t, b);
    return x < y || (x <= y && a > b);
}

/* Restores the heap `jobs` [0, count), whose root is the last job, if only [at] is out of place. */
static void sink(const struct resident_times *t, uint32_t *jobs, uint32_t at, uint32_t count)
{
    uint32_t job = jobs[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_after(t, jobs[child + 1], jobs[child])) child++;
        if (!is_after(t, jobs[child], job)) break;
        jobs[at] = jobs[child];
    }
    jobs[at] = job;
}

/* Sorts jobs, the longest first. Heapsort needs no memory. */
void resident_order(const struct resident_times *times, uint32_t *longest)
{
    for (uint32_t j = 0; j < times->job_count; j++) longest[j] = j;
    for (uint32_t at = times->job_count / 2; at-- > 0;) sink(times, longest, at, times->job_count);
    for (uint32_t count = times->job_count; count-- > 1;) {
        uint32_t last = longest[0];
        longest[0] = longest[count];
        longest[count] = last;
        sink(times, longest, 0, count);
    }
}

double resident_share_s(const struct resident_times *times)
{
    double sum = 0, most = 0;
    for (uint32_t j = 0; j < times->job_count; j++) {
        sum += shortest(times, j);
        most = max_s(most, shortest(times, j));
    }
    return max_s(most, sum / times->device_count);
}

/* --- devices by load ------------------------------------------------------------------------- */

/* Lists devices [0, count) without load, by kind and number. */
static void order_devices(const struct resident_times *t, uint32_t count, struct resident_division *out)
{
    uint32_t end = 0;
    for (uint32_t k = 0; k < t->kind_count; k++) out->kind_end[k] = 0;
    for (uint32_t d = 0; d < count; d++) out->kind_end[t->kind[d]]++;
    for (uint32_t k = 0; k < t->kind_count; k++) end = out->kind_end[k] += end;
    for (uint32_t d = count; d-- > 0;) out->order[--out->kind_end[t->kind[d]]] = d;
    for (uint32_t d = 0; d < count; d++) out->kind_end[t->kind[d]]++;
}

static uint32_t kind_begin(const struct resident_division *division, uint32_t kind)
{
    return kind > 0 ? division->kind_end[kind - 1] : 0;
}

/* Returns the first place in [begin, end) whose device has at least this load. */
static uint32_t first_loaded(const struct resident_division *division, uint32_t begin, uint32_t end, double load_s)
{
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (division->load_s[division->order[middle]] >= load_s) end = middle;
        else begin = middle + 1;
    }
    return begin;
}

/* Returns the first place whose device has no room for a job of job_s within `share`. */
static uint32_t first_full(const struct resident_division *division, uint32_t begin, uint32_t end, double job_s,
                           double share)
{
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (division->load_s[division->order[middle]] + job_s > share) end = middle;
        else begin = middle + 1;
    }
    return begin;
}

/* Moves a device whose load has grown after devices with less load, or with equal load and a lower number. */
static void move_on(struct resident_division *division, uint32_t place, uint32_t end)
{
    uint32_t *order = division->order, device = order[place], begin = place + 1;
    double load_s = division->load_s[device];
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        double other_s = division->load_s[order[middle]];
        if (other_s > load_s || (other_s >= load_s && order[middle] > device)) end = middle;
        else begin = middle + 1;
    }
    memmove(order + place, order + place + 1, (begin - place - 1) * sizeof *order);
    order[begin - 1] = device;
}

/* --- the division ---------------------------------------------------------------------------- */

/* Returns the place of the device on which the job would end first. */
static uint32_t first_free(const struct resident_times *t, const struct resident_division *division, uint32_t job)
{
    uint32_t best = RESIDENT_NOWHERE;
    double best_s = HUGE_VAL;
    for (uint32_t k = 0; k < t->kind_count; k++) {
        uint32_t place = kind_begin(division, k);
        if (place == division->kind_end[k]) continue;
        double end_s = division->load_s[division->order[place]] + on_kind(t, job, k);
        bool lower = best != RESIDENT_NOWHERE && division->order[place] < division->order[best];
        if (best != RESIDENT_NOWHERE && !(end_s < best_s || (end_s <= best_s && lower))) continue;
        best = place;
        best_s = end_s;
    }
    return best;
}

/* Returns the place of the fullest device that has room for the job within `share`. An empty device takes any job. */
static uint32_t fullest_with_room(const struct resident_times *t, const struct resident_division *division,
                                  double share, uint32_t job)
{
    uint32_t best = RESIDENT_NOWHERE;
    for (uint32_t k = 0; k < t->kind_count; k++) {
        uint32_t begin = kind_begin(division, k), end = division->kind_end[k], place = begin;
        uint32_t full = first_full(division, begin, end, on_kind(t, job, k), share);
        if (begin == end || (full == begin && division->load_s[division->order[begin]] > 0)) continue;
        if (full > begin) place = first_loaded(division, begin, full, division->load_s[division->order[full - 1]]);
        uint32_t device = division->order[place];
        double load_s = division->load_s[device];
        if (best == RESIDENT_NOWHERE || load_s > division->load_s[division->order[best]] ||
            (load_s >= division->load_s[division->order[best]] && device < division->order[best]))
            best = place;
    }
    return best;
}

void resident_divide(const struct resident_times *times, uint32_t resident, struct resident_division *out)
{
    double share = resident_share_s(times), left = 0, longest_left = 0;
    out->left_count = 0;
    out->resident_s = out->left_s = 0;
    for (uint32_t d = 0; d < times->device_count; d++) out->load_s[d] = 0;
    order_devices(times, resident, out);
    for (uint32_t i = 0; i < times->job_count; i++) {
        uint32_t job = times->longest[i];
        uint32_t place = resident == times->device_count ? first_free(times, out, job)
                                                        : fullest_with_room(times, out, share, job);
        out->device[job] = place == RESIDENT_NOWHERE ? RESIDENT_NOWHERE : out->order[place];
        if (place == RESIDENT_NOWHERE) {
            out->left_count++;
            left += shortest(times, job);
            longest_left = max_s(longest_left, shortest(times, job));
            continue;
        }
        uint32_t device = out->order[place], kind = times->kind[device];
        out->load_s[device] += on_kind(times, job, kind);
        out->resident_s = max_s(out->resident_s, out->load_s[device]);
        move_on(out, place, out->kind_end[kind]);
    }
    if (out->left_count > 0) out->left_s = max_s(longest_left, left / (times->device_count - resident));
}
