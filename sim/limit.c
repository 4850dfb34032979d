/*
 * The nearest cause wins. A computation that never pauses limits a run. Next is a link that is always full, and keeps
 * copy streams busy; then a copy stream that never pauses on a link with spare bandwidth; then a link full most of the
 * time. Otherwise operations wait for each other: the answer is the job whose chain of units ends last.
 */
#include "sim/limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "planner/plan.h"

static const double nearly_all = 0.9, most = 0.5; /* of the makespan */

/* Finds the device with the most used stream of a kind, if it is used for nearly all the makespan. */
static bool busiest_device(const struct trace *trace, const struct sim_result *result, uint32_t kind,
                           uint32_t *out)
{
    bool some = false;
    double least_s = nearly_all * result->makespan_s;
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        double busy_s = result->streams[s].busy_s;
        if (trace->streams[s].kind != kind || busy_s <= least_s) continue;
        some = true;
        least_s = busy_s;
        *out = trace->streams[s].device;
    }
    return some;
}

/* Finds the fullest link; of links equal up to rounding, the first. Storage comes after the links. */
static bool fullest_link(const struct hardware *hardware, const struct sim_result *result,
                         double share, uint32_t *out)
{
    bool some = false;
    double least_s = share * result->makespan_s;
    for (uint32_t l = 0; l < hardware->link_count + hardware_storage_count(hardware); l++) {
        if (result->links[l].saturated_s <= least_s * (1 + 1e-9)) continue;
        some = true;
        least_s = result->links[l].saturated_s;
        *out = l;
    }
    return some;
}

static void link_text(const struct hardware *hardware, uint32_t link,
                      char text[SIM_LIMIT_TEXT_BYTES])
{
    if (link >= hardware->link_count && hardware_storage_count(hardware) > 1)
        snprintf(text, SIM_LIMIT_TEXT_BYTES, "storage of node %" PRIu32, link - hardware->link_count);
    else if (link >= hardware->link_count)
        snprintf(text, SIM_LIMIT_TEXT_BYTES, "storage");
    else
        snprintf(text, SIM_LIMIT_TEXT_BYTES, "link '%s'", hardware->links[link].name);
}

static uint32_t last_job(const struct trace *trace)
{
    uint32_t last = 0;
    for (uint32_t j = 1; j < trace->job_count; j++)
        if (trace->jobs[j].end_s > trace->jobs[last].end_s) last = j;
    return last;
}

const char *sim_limit_text(const struct hardware *hardware, const struct sim_result *result,
                           const struct trace *trace, char text[SIM_LIMIT_TEXT_BYTES])
{
    size_t size = SIM_LIMIT_TEXT_BYTES;
    uint32_t index = 0;
    if (busiest_device(trace, result, STREAM_COMPUTE, &index))
        snprintf(text, size, "compute of device %" PRIu32, index);
    else if (fullest_link(hardware, result, nearly_all, &index))
        link_text(hardware, index, text);
    else if (busiest_device(trace, result, STREAM_READ, &index) ||
             busiest_device(trace, result, STREAM_WRITE, &index))
        snprintf(text, size, "storage");
    else if (busiest_device(trace, result, STREAM_H2D, &index))
        snprintf(text, size, "H2D copies of device %" PRIu32, index);
    else if (busiest_device(trace, result, STREAM_D2H, &index))
        snprintf(text, size, "D2H copies of device %" PRIu32, index);
    else if (busiest_device(trace, result, STREAM_P2P, &index))
        snprintf(text, size, "P2P copies to device %" PRIu32, index);
    else if (fullest_link(hardware, result, most, &index))
        link_text(hardware, index, text);
    else if (trace->job_count > 0)
        snprintf(text, size, "the chain of %s", trace->jobs[last_job(trace)].name);
    else
        snprintf(text, size, "nothing");
    return text;
}
