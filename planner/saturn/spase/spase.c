/*
 * spase_finish() checks the conditions that searches rely on: every job has a mode, every mode has room, and sums of
 * run times cannot overflow.
 */
#include "planner/saturn/spase/spase.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"

enum status spase_init(struct spase *in, uint32_t class_count, uint32_t node_count, uint32_t job_count,
                       uint32_t config_count, struct error *err)
{
    if (class_count == 0 || node_count == 0) return error_set(err, STATUS_BAD_INPUT, "no nodes");
    if (job_count == 0) return error_set(err, STATUS_BAD_INPUT, "no jobs");
    if (class_count > SPASE_CLASSES_MAX)
        return error_set(err, STATUS_LIMIT, "too many classes of devices (limit is %d)", SPASE_CLASSES_MAX);
    if (node_count > SPASE_NODES_MAX)
        return error_set(err, STATUS_LIMIT, "too many nodes (limit is %d)", SPASE_NODES_MAX);
    if (job_count > SPASE_JOBS_MAX)
        return error_set(err, STATUS_LIMIT, "too many jobs (limit is %d)", SPASE_JOBS_MAX);
    if (config_count > SPASE_CONFIGS_MAX)
        return error_set(err, STATUS_LIMIT, "too many configurations (limit is %d)", SPASE_CONFIGS_MAX);
    TRY(ARENA_NEW(&in->arena, class_count, in->class_names, err));
    TRY(ARENA_NEW(&in->arena, node_count, in->nodes, err));
    TRY(ARENA_NEW(&in->arena, job_count, in->jobs, err));
    TRY(ARENA_NEW(&in->arena, config_count, in->configs, err));
    TRY(ARENA_NEW(&in->arena, (size_t)config_count * class_count, in->ticks, err));
    TRY(ARENA_NEW(&in->arena, class_count, in->class_devices, err));
    TRY(ARENA_NEW(&in->arena, class_count, in->class_widest, err));
    in->class_count = class_count;
    in->node_count = node_count;
    in->job_count = job_count;
    in->config_count = config_count;
    return STATUS_OK;
}

/* --- names ----------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Checks that all names are different. Sorts `names`. */
static enum status check_names(const char **names, uint32_t count, const char *what, struct error *err)
{
    qsort(names, count, sizeof *names, compare_names);
    for (uint32_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return error_set(err, STATUS_BAD_INPUT, "two %s have the name '%.80s'", what, names[i]);
    return STATUS_OK;
}

static enum status check_all_names(const struct spase *in, struct error *err)
{
    uint32_t most = in->job_count > in->node_count ? in->job_count : in->node_count;
    const char **names = alloc_zeroed(most, sizeof *names);
    if (!names) return error_memory(err, "names", most * sizeof *names);
    for (uint32_t j = 0; j < in->job_count; j++) names[j] = in->jobs[j].name;
    if (!check_names(names, in->job_count, "jobs", err)) {
        for (uint32_t n = 0; n < in->node_count; n++) names[n] = in->nodes[n].name;
        if (check_names(names, in->node_count, "nodes", err)) {} /* told in err */
    }
    free(names);
    return err->status;
}

/* --- devices --------------------------------------------------------------------------------- */

static enum status finish_nodes(struct spase *in, struct error *err)
{
    uint64_t devices = 0;
    memset(in->class_devices, 0, in->class_count * sizeof *in->class_devices);
    memset(in->class_widest, 0, in->class_count * sizeof *in->class_widest);
    for (uint32_t n = 0; n < in->node_count; n++) {
        struct spase_node *node = &in->nodes[n];
        if (node->device_count == 0)
            return error_set(err, STATUS_BAD_INPUT, "node '%.80s': no devices", node->name);
        node->first_device = (uint32_t)devices;
        devices += node->device_count;
        if (devices > SPASE_DEVICES_MAX)
            return error_set(err, STATUS_LIMIT, "too many devices (limit is %d)", SPASE_DEVICES_MAX);
        in->class_devices[node->class] += node->device_count;
        if (node->device_count > in->class_widest[node->class])
            in->class_widest[node->class] = node->device_count;
    }
    in->device_count = (uint32_t)devices;
    return STATUS_OK;
}

/* --- modes ----------------------------------------------------------------------------------- */

/* Returns true when mode a makes mode b needless; of equal ones the first stays. */
static bool dominates(const struct spase_mode *a, const struct spase_mode *b)
{
    if (a->class != b->class || a->devices > b->devices || a->ticks > b->ticks) return false;
    if (b->spans && !a->spans) return false;
    bool equal = a->devices == b->devices && a->ticks == b->ticks && a->spans == b->spans;
    return !equal || a->config < b->config;
}

static int compare_modes(const void *a, const void *b)
{
    const struct spase_mode *x = a, *y = b;
    if (x->class != y->class) return x->class < y->class ? -1 : 1;
    if (x->devices != y->devices) return x->devices < y->devices ? -1 : 1;
    if (x->ticks != y->ticks) return x->ticks < y->ticks ? -1 : 1;
    if (x->spans != y->spans) return x->spans ? -1 : 1;
    return (x->config > y->config) - (x->config < y->config);
}

static enum status finish_job(struct spase *in, struct spase_job *job, int64_t *longest, struct error *err)
{
    struct spase_mode *modes = in->modes + job->first_mode;
    uint32_t count = 0, least = UINT32_MAX, widest = 0;
    if (job->config_count == 0)
        return error_set(err, STATUS_BAD_INPUT, "job '%.80s': no configurations", job->name);
    for (uint32_t c = job->first_config; c < job->first_config + job->config_count; c++) {
        const struct spase_config *config = &in->configs[c];
        if (config->devices == 0)
            return error_set(err, STATUS_BAD_INPUT, "job '%.80s', '%.80s': no devices", job->name,
                             config->parallelism);
        for (uint32_t k = 0; k < in->class_count; k++) {
            int64_t ticks = spase_ticks(in, c, k);
            bool spans = config->spans && in->class_devices[k] > in->class_widest[k];
            uint32_t room = spans ? in->class_devices[k] : in->class_widest[k];
            if (ticks == SPASE_NOWHERE) continue;
            if (ticks < 0 || ticks > SPASE_TICKS_MAX)
                return error_set(err, STATUS_BAD_INPUT,
                                 "job '%.80s', '%.80s': runs for %" PRId64 " ticks (expected 1 to %" PRId64 ")",
                                 job->name, config->parallelism, ticks, SPASE_TICKS_MAX);
            if (config->devices < least) least = config->devices;
            if (room > widest) widest = room;
            if (config->devices > room) continue;
            modes[count++] = (struct spase_mode){c, k, config->devices, spans, ticks};
        }
    }
    if (count == 0 && least == UINT32_MAX)
        return error_set(err, STATUS_INFEASIBLE, "job '%.80s' fits nowhere: no configuration runs on any class",
                         job->name);
    if (count == 0)
        return error_set(err, STATUS_INFEASIBLE,
                         "job '%.80s' fits nowhere: it needs %u devices at least, and a gang has room for %u",
                         job->name, least, widest);
    uint32_t kept = 0;
    qsort(modes, count, sizeof *modes, compare_modes);
    *longest = 0;
    for (uint32_t m = 0; m < count; m++) {
        bool needless = false; /* a dominating mode comes earlier, and is kept or dominated by a kept one */
        for (uint32_t o = 0; o < kept && !needless; o++) needless = dominates(&modes[o], &modes[m]);
        if (needless) continue;
        modes[kept++] = modes[m];
        if (modes[m].ticks > *longest) *longest = modes[m].ticks;
    }
    job->mode_count = kept;
    return STATUS_OK;
}

enum status spase_finish(struct spase *in, struct error *err)
{
    TRY(finish_nodes(in, err));
    TRY(check_all_names(in, err));
    TRY(ARENA_NEW(&in->arena, (size_t)in->config_count * in->class_count, in->modes, err));
    in->mode_count = 0;
    in->horizon = 0;
    for (uint32_t j = 0; j < in->job_count; j++) {
        struct spase_job *job = &in->jobs[j];
        int64_t longest = 0;
        job->first_mode = in->mode_count;
        TRY(finish_job(in, job, &longest, err));
        in->mode_count += job->mode_count;
        in->horizon += longest; /* at most 2^12 jobs of 1e12 ticks */
        if (in->horizon > SPASE_HORIZON_MAX)
            return error_set(err, STATUS_LIMIT, "the run times add up to more than %" PRId64 " ticks",
                             SPASE_HORIZON_MAX);
    }
    return STATUS_OK;
}

uint32_t spase_node_of(const struct spase *in, uint32_t device)
{
    uint32_t low = 0, high = in->node_count - 1; /* the last node that begins at or before the device */
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (in->nodes[middle].first_device <= device) low = middle;
        else high = middle - 1;
    }
    return low;
}

void spase_release(struct spase *in)
{
    arena_release(&in->arena);
    *in = (struct spase){0};
}
