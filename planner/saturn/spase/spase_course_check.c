/* The judge of spase_introspect.h: every piece, then each device's and job's pieces in the order of their starts, then
 * the work done, in shares. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "planner/saturn/spase/spase_introspect.h"

struct span { /* of a device or of a job */
    uint32_t of;
    int64_t start, end;
    size_t piece;
};

static int compare_spans(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->of != y->of) return x->of < y->of ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static enum status check_gang(const struct spase *in, const struct spase_course *course,
                              const struct spase_piece *piece, struct error *err)
{
    const struct spase_job *job = &in->jobs[piece->job];
    const struct spase_config *config = &in->configs[piece->config];
    if (piece->config < job->first_config || piece->config >= job->first_config + job->config_count)
        return error_set(err, STATUS_CHECK, "job '%.80s' has no configuration %u", job->name, piece->config);
    if (piece->device_count != config->devices)
        return error_set(err, STATUS_CHECK, "job '%.80s' has %u devices (its configuration asks for %u)",
                         job->name, piece->device_count, config->devices);
    if (piece->start < 0 || piece->end < piece->start || piece->restart < 0 ||
        piece->restart > piece->end - piece->start)
        return error_set(err, STATUS_CHECK, "job '%.80s': a piece with times out of order", job->name);
    uint32_t home = spase_node_of(in, course->devices[piece->first_device]);
    for (uint32_t i = 0; i < piece->device_count; i++) {
        uint32_t node = spase_node_of(in, course->devices[piece->first_device + i]);
        if (in->nodes[node].class != in->nodes[home].class || (node != home && !config->spans))
            return error_set(err, STATUS_CHECK, "job '%.80s' is on nodes that do not go together", job->name);
    }
    if (in->ticks[(size_t)piece->config * in->class_count + in->nodes[home].class] == SPASE_NOWHERE)
        return error_set(err, STATUS_CHECK, "job '%.80s' does not run on class '%.80s'", job->name,
                         in->class_names[in->nodes[home].class]);
    return STATUS_OK;
}

/* Checks that sorted spans do not overlap. */
static enum status check_apart(const struct spase *in, const struct spase_course *course, struct span *spans,
                               size_t count, const char *what, struct error *err)
{
    qsort(spans, count, sizeof *spans, compare_spans);
    for (size_t i = 1; i < count; i++)
        if (spans[i].of == spans[i - 1].of && spans[i].start < spans[i - 1].end)
            return error_set(err, STATUS_CHECK, "%s %u: job '%.80s' starts at %" PRId64 ", before %" PRId64, what,
                             spans[i].of, in->jobs[course->pieces[spans[i].piece].job].name, spans[i].start,
                             spans[i - 1].end);
    return STATUS_OK;
}

/* spans: of jobs, in order. */
static enum status check_work(const struct spase *in, const struct spase_course *course, const struct span *spans,
                              size_t count, int64_t restart_ticks, struct error *err)
{
    size_t s = 0;
    for (uint32_t j = 0; j < in->job_count; j++) {
        long double done = 0;
        for (bool first = true; s < count && spans[s].of == j; s++, first = false) {
            const struct spase_piece *piece = &course->pieces[spans[s].piece];
            int64_t length = piece->end - piece->start, restart = first ? 0 : restart_ticks;
            if (piece->restart != (restart < length ? restart : length))
                return error_set(err, STATUS_CHECK, "job '%.80s': a restart of %" PRId64 " ticks", in->jobs[j].name,
                                 piece->restart);
            uint32_t class = in->nodes[spase_node_of(in, course->devices[piece->first_device])].class;
            done += (long double)(length - piece->restart) /
                    (long double)in->ticks[(size_t)piece->config * in->class_count + class];
        }
        if (done < 1 - 1e-12L)
            return error_set(err, STATUS_CHECK, "job '%.80s': only %.6f of its work is done", in->jobs[j].name,
                             (double)done);
    }
    return STATUS_OK;
}

enum status spase_course_check(const struct spase *in, const struct spase_course *course, int64_t restart_ticks,
                               struct error *err)
{
    size_t devices = 0;
    int64_t makespan = 0;
    struct span *by_device = alloc_zeroed(course->device_count + 1, sizeof *by_device);
    struct span *by_job = alloc_zeroed(course->piece_count + 1, sizeof *by_job);
    if (!by_device || !by_job) {
        error_memory(err, "checking a course", course->device_count * sizeof *by_device);
        goto out;
    }
    for (size_t p = 0; p < course->piece_count; p++) {
        const struct spase_piece *piece = &course->pieces[p];
        if (piece->job >= in->job_count || piece->config >= in->config_count ||
            piece->first_device + piece->device_count > course->device_count) {
            error_set(err, STATUS_CHECK, "piece %zu: no such job, configuration or devices", p);
            goto out;
        }
        for (uint32_t i = 0; i < piece->device_count; i++) {
            uint32_t device = course->devices[piece->first_device + i];
            if (device >= in->device_count) {
                error_set(err, STATUS_CHECK, "piece %zu: there is no device %u", p, device);
                goto out;
            }
            by_device[devices++] = (struct span){device, piece->start, piece->end, p};
        }
        if (check_gang(in, course, piece, err)) goto out;
        by_job[p] = (struct span){piece->job, piece->start, piece->end, p};
        if (piece->end > makespan) makespan = piece->end;
    }
    if (check_apart(in, course, by_device, devices, "device", err) ||
        check_apart(in, course, by_job, course->piece_count, "job", err) ||
        check_work(in, course, by_job, course->piece_count, restart_ticks, err))
        goto out;
    if (makespan != course->makespan)
        error_set(err, STATUS_CHECK, "the makespan is %" PRId64 ", not %" PRId64, makespan, course->makespan);
out:
    free(by_device);
    free(by_job);
    return err->status;
}
