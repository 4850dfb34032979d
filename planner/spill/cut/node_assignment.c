/* Graham's rule: within a third of the best sharing of the work. */
#include "planner/spill/cut/node_assignment.h"

#include <stdlib.h>

#include "base/alloc.h"

struct node_assignment_work {
    double seconds;
    uint32_t job;
};

struct node_assignment_node {
    double seconds;    /* of the node's jobs */
    double bytes;      /* likewise */
    uint32_t devices;  /* in use; 0: no job can be here */
};

static int compare_work(const void *left, const void *right)
{
    const struct node_assignment_work *a = left, *b = right;
    if (a->seconds < b->seconds || a->seconds > b->seconds) return a->seconds > b->seconds ? -1 : 1;
    return a->job < b->job ? -1 : 1;
}

/* Returns the node that ends first with the added seconds, preferably with room for the state; the lowest of
 * several. */
static uint32_t soonest(const struct node_assignment_node *nodes, uint32_t count,
                        const struct node_assignment_work *work, double bytes, double room)
{
    uint32_t best = UINT32_MAX;
    bool best_fits = false;
    double best_s = 0;
    for (uint32_t n = 0; n < count; n++) {
        if (nodes[n].devices == 0) continue;
        bool fits = nodes[n].bytes + bytes <= room;
        double end_s = (nodes[n].seconds + work->seconds) / nodes[n].devices;
        if (best != UINT32_MAX && (fits == best_fits ? !(end_s < best_s) : !fits)) continue;
        best = n;
        best_fits = fits;
        best_s = end_s;
    }
    return best;
}

enum status node_assignment_choose(const struct hardware *hardware, uint32_t devices, const struct job_set *jobs,
                                   const double *seconds, uint32_t *node_of_job, struct error *err)
{
    uint32_t count = hardware_host_count(hardware);
    double room = hardware_of_host(hardware, hardware->host_bytes.value +
                                                 hardware->storage.capacity_bytes.value);
    struct node_assignment_node *nodes = alloc_zeroed(count, sizeof *nodes);
    struct node_assignment_work *works = alloc_zeroed(jobs->count, sizeof *works);
    enum status status = STATUS_OK;
    if (!nodes || !works) status = error_memory(err, "the nodes of jobs", count * sizeof *nodes);
    for (uint32_t d = 0; !status && d < devices; d++) nodes[hardware->devices[d].host].devices++;
    for (uint32_t j = 0; !status && j < jobs->count; j++) works[j] = (struct node_assignment_work){seconds[j], j};
    if (!status && jobs->count > 1) qsort(works, jobs->count, sizeof *works, compare_work);
    for (uint32_t i = 0; !status && i < jobs->count; i++) {
        const struct job *job = &jobs->jobs[works[i].job];
        double bytes = (double)job_state(job, 0, job->network.layer_count).bytes;
        uint32_t node = soonest(nodes, count, &works[i], bytes, room);
        nodes[node].seconds += works[i].seconds;
        nodes[node].bytes += bytes;
        node_of_job[works[i].job] = node;
    }
    free(nodes);
    free(works);
    return status;
}
