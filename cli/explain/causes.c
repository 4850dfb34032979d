/*
 * Spans of a stream follow each other in order of time: one pass over two streams gives the overlap of every span of
 * the first.
 *
 * Cost: pairs of streams that can interact, times their spans; a walk over the plan for each cause.
 */
#include "cli/explain/causes.h"

#include "base/extreme.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "sim/engine/allocate.h"

const char *const explain_cause_names[EXPLAIN_CAUSE_COUNT] = {
    "time between operations",
    "waiting for members",
    "computations during copies",
    "computations",
    "small copies",
    "copies that share links",
    "copies during computations",
    "copies to and from devices",
    "copies between devices",
    "the host's processor",
    "storage",
    "opening and closing jobs",
    "collectives",
    "batches",
};

const char *const explain_cause_remedies[EXPLAIN_CAUSE_COUNT] = {
    "fewer and longer operations: a larger microbatch, or fewer shards (plan without --shards)",
    "give the device that came last less work, or find out why it is slow (CAME LAST)",
    "measure interference again on an equally busy machine (spillway measure), and plan again",
    "measure the machine again (spillway measure): it was busier, hotter or set up differently",
    "fewer shards, so that copies are longer: latency is most of their time",
    "give each device its own link, or plan with the remaining rate of a shared one (--link-rate)",
    "measure interference again (spillway measure): copies and computations use the same memory",
    "check that host memory is pinned (ulimit -l) and on the device's NUMA node, and that the link has its full width",
    "check that peer access is on, and its route (spillway measure); plan without it (--no-p2p) to compare",
    "optimizers have the speed of host memory: fill its channels, "
    "or keep optimizers on the devices (--optimizer device)",
    "a faster disk, or more host memory, so that fewer states are stored",
    "a faster disk, or more host memory, so that it holds more jobs at a time",
    "the network of the devices is slower than its value, or busy: measure it again",
    "faster input: data on a local disk",
};

struct causes_finder {
    const struct plan *plan;
    const struct trace *measured;
    struct arena arena;
    struct arena overlaps;   /* of the next five arrays */
    uint64_t **by_stream;    /* of each stream */
    uint64_t *stream_counts;
    double *beside_compute_s, *beside_copy_s, *shared_s; /* by operation */
    uint8_t *cause;
};

/* --- overlaps ------------------------------------------------------------------------------------- */

static enum status sort_streams(struct causes_finder *f, struct error *err)
{
    const struct trace *trace = f->measured;
    enum status status = STATUS_OK;
    f->by_stream = sim_allocate(&f->overlaps, trace->stream_count, sizeof *f->by_stream, &status, err);
    f->stream_counts = sim_allocate(&f->overlaps, trace->stream_count, sizeof *f->stream_counts, &status, err);
    uint64_t *all = sim_allocate(&f->overlaps, trace->span_count, sizeof *all, &status, err);
    if (status != STATUS_OK) return status;
    for (uint64_t n = 0; n < trace->span_count; n++) f->stream_counts[trace->spans[n].stream]++;
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        f->by_stream[s] = all;
        all += f->stream_counts[s];
        f->stream_counts[s] = 0;
    }
    for (uint64_t n = 0; n < trace->span_count; n++) {
        uint32_t s = trace->spans[n].stream;
        f->by_stream[s][f->stream_counts[s]++] = n;
    }
    return STATUS_OK;
}

/* Adds the time for which spans of stream `of` overlap spans of `with`. */
static void overlap(const struct causes_finder *f, uint32_t of, uint32_t with, double *out)
{
    const struct trace_span *spans = f->measured->spans;
    uint64_t first = 0;
    for (uint64_t i = 0; i < f->stream_counts[of]; i++) {
        const struct trace_span *span = &spans[f->by_stream[of][i]];
        while (first < f->stream_counts[with] && spans[f->by_stream[with][first]].end_s <= span->start_s) first++;
        for (uint64_t k = first; k < f->stream_counts[with]; k++) {
            const struct trace_span *other = &spans[f->by_stream[with][k]];
            if (other->start_s >= span->end_s) break;
            out[span->number] += min_s(span->end_s, other->end_s) - max_s(span->start_s, other->start_s);
        }
    }
}

static bool is_host_copy(uint32_t kind)
{
    return kind == STREAM_H2D || kind == STREAM_D2H;
}

/* Returns true if copies share a link in one direction. */
static bool share_link(const struct hardware *hardware, const struct trace_stream *a, const struct trace_stream *b)
{
    const struct hardware_device *x = &hardware->devices[a->device], *y = &hardware->devices[b->device];
    for (uint32_t i = 0; i < x->path_count; i++)
        for (uint32_t k = 0; k < y->path_count; k++)
            if (x->path[i] == y->path[k] && (a->kind == b->kind || !hardware->links[x->path[i]].duplex)) return true;
    return false;
}

static void look_beside(struct causes_finder *f)
{
    const struct trace *trace = f->measured;
    for (uint32_t a = 0; a < trace->stream_count; a++) {
        const struct trace_stream *of = &trace->streams[a];
        bool copy = is_host_copy(of->kind);
        if (!copy && of->kind != STREAM_COMPUTE) continue;
        for (uint32_t b = 0; b < trace->stream_count; b++) {
            const struct trace_stream *with = &trace->streams[b];
            if (a == b) continue;
            if (with->device == of->device && copy && with->kind == STREAM_COMPUTE)
                overlap(f, a, b, f->beside_compute_s);
            if (with->device == of->device && !copy && is_host_copy(with->kind)) overlap(f, a, b, f->beside_copy_s);
            if (copy && is_host_copy(with->kind) && share_link(&f->plan->hardware, of, with))
                overlap(f, a, b, f->shared_s);
        }
    }
}

/* --- causes ---------------------------------------------------------------------------------- */

static uint8_t cause_of_copy(const struct causes_finder *f, const struct trace_span *span,
                             const struct trace_stream *stream)
{
    enum copy_direction direction = stream->kind == STREAM_H2D ? COPY_H2D : COPY_D2H;
    double half_s = (span->end_s - span->start_s) / 2;
    double latency_s = cost_copy_latency_s(&f->plan->hardware, stream->device, direction);
    if (latency_s >= cost_copy_s(&f->plan->hardware, stream->device, direction, span->bytes) / 2)
        return EXPLAIN_COPY_SMALL;
    if (f->shared_s[span->number] >= half_s) return EXPLAIN_COPY_SHARED;
    return f->beside_compute_s[span->number] >= half_s ? EXPLAIN_COPY_BESIDE_COMPUTE : EXPLAIN_COPY_ALONE;
}

static uint8_t cause_of(const struct causes_finder *f, const struct trace_span *span)
{
    const struct trace_stream *stream = &f->measured->streams[span->stream];
    if (span->kind == OP_COLLECTIVE) return EXPLAIN_COLLECTIVE;
    switch (stream->kind) {
    case STREAM_COMPUTE:
        return f->beside_copy_s[span->number] >= (span->end_s - span->start_s) / 2 ? EXPLAIN_COMPUTE_BESIDE_COPY
                                                                                   : EXPLAIN_COMPUTE_ALONE;
    case STREAM_H2D:
    case STREAM_D2H: return cause_of_copy(f, span, stream);
    case STREAM_P2P: return EXPLAIN_COPY_PEERS;
    case STREAM_CPU: return EXPLAIN_CPU;
    case STREAM_READ:
    case STREAM_WRITE: return EXPLAIN_STORAGE_COPY;
    case STREAM_FILE: return EXPLAIN_FILES;
    case STREAM_HOST: return EXPLAIN_BATCH;
    default: return EXPLAIN_COLLECTIVE;
    }
}

static enum status find_causes(struct causes_finder *f, const struct explain_times *predicted,
                               const struct explain_times *measured, struct explain_causes *out, struct error *err)
{
    const struct trace *trace = f->measured;
    enum status status = STATUS_OK;
    f->beside_compute_s = sim_allocate(&f->overlaps, trace->span_count, sizeof(double), &status, err);
    f->beside_copy_s = sim_allocate(&f->overlaps, trace->span_count, sizeof(double), &status, err);
    f->shared_s = sim_allocate(&f->overlaps, trace->span_count, sizeof(double), &status, err);
    f->cause = sim_allocate(&f->arena, trace->span_count, 1, &status, err);
    if (status != STATUS_OK) return status;
    TRY(sort_streams(f, err));
    look_beside(f);
    for (uint64_t n = 0; n < trace->span_count; n++) {
        struct explain_cause_part *part = &out->parts[f->cause[n] = cause_of(f, &trace->spans[n])];
        part->operations++;
        part->predicted_s += predicted->seconds[n];
        part->measured_s += measured->seconds[n];
        part->bytes += trace->spans[n].bytes;
        out->parts[EXPLAIN_GAPS].operations += measured->gap_s[n] > 0;
        out->parts[EXPLAIN_GAPS].measured_s += measured->gap_s[n];
        out->parts[EXPLAIN_MEMBERS].operations += measured->waited_s[n] > 0;
        out->parts[EXPLAIN_MEMBERS].predicted_s += predicted->waited_s[n];
        out->parts[EXPLAIN_MEMBERS].measured_s += measured->waited_s[n];
    }
    arena_release(&f->overlaps);
    return STATUS_OK;
}

/* --- from the measured run to the predicted one ------------------------------------------------- */

/* Replaces the durations of `cause` by predicted ones, or the spreads of collectives. */
static void undo(const struct causes_finder *f, uint32_t cause, const struct explain_times *predicted,
                 struct explain_times *times)
{
    if (cause == EXPLAIN_MEMBERS) times->spread_most_s = predicted->spread_s;
    for (uint64_t n = 0; n < times->count; n++) {
        if (cause == EXPLAIN_GAPS) times->gap_s[n] = predicted->gap_s[n];
        else if (f->cause[n] == cause) times->seconds[n] = predicted->seconds[n];
    }
}

static enum status makespan(const struct plan *plan, const struct explain_times *times, double *out, struct error *err)
{
    struct arena arena = {0};
    struct explain_schedule schedule;
    enum status status = explain_schedule_run(plan, times, &arena, &schedule, err);
    if (status == STATUS_OK) *out = schedule.makespan_s;
    arena_release(&arena);
    return status;
}

static enum status split(struct causes_finder *f, const struct explain_times *predicted, struct explain_times *times,
                         struct explain_causes *out, struct error *err)
{
    double before_s = 0, after_s = 0;
    TRY(makespan(f->plan, times, &before_s, err));
    out->rest_s = out->measured_s - before_s;
    for (uint32_t c = 0; c < EXPLAIN_CAUSE_COUNT; c++) {
        if (out->parts[c].operations == 0) continue;
        undo(f, c, predicted, times);
        TRY(makespan(f->plan, times, &after_s, err));
        out->parts[c].seconds = before_s - after_s;
        before_s = after_s;
    }
    return STATUS_OK;
}

enum status explain_causes_find(const struct plan *plan, const struct explain_times *promised, double predicted_s,
                                const struct trace *measured, struct explain_causes *out, struct error *err)
{
    struct causes_finder f = {.plan = plan, .measured = measured};
    struct explain_times times;
    *out = (struct explain_causes){.predicted_s = predicted_s, .measured_s = measured->makespan_s};
    enum status status = explain_times_read(plan, measured, &f.arena, &times, err);
    if (status == STATUS_OK) status = find_causes(&f, promised, &times, out, err);
    if (status == STATUS_OK) status = split(&f, promised, &times, out, err);
    arena_release(&f.overlaps);
    arena_release(&f.arena);
    return status;
}
