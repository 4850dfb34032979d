/*
 * The error of a prediction, and its causes.
 *
 * Both traces number their spans in plan order, so span i of one and span i of the other are the
 * same operation. One pass over both sums the time of each class and keeps the operations with the
 * largest differences in a list of twenty, sorted by insertion. There is no search and no matching
 * by time.
 *
 * Four classes add up to the life of a compute stream and two copy streams: computing, copying in
 * either direction, and waiting, the time between a compute stream's first and last span in which
 * it does not compute. A worked example, two devices, seconds:
 *
 *                predicted   measured    difference per stream   share of measured makespan 10 s
 *     compute      12          13             -1 / 2                     -5 %
 *     waiting       6           5             +1 / 2                     +5 %
 *
 * The prediction computes too fast and waits too long. The two errors cancel in the makespan, so a
 * good makespan by itself proves little. Dividing by the number of active streams (not of all
 * streams) keeps idle devices from hiding an error.
 *
 * The span of a collective begins when its last member has come. The wait of each member is added up apart, by pass and
 * kind of stream: a slow collective has late members, or a slow transfer.
 *
 * The host stream, which reads batches, belongs to no class: it is neither a device nor a copy, and
 * its delays show as waiting.
 */
#include "traces/compare.h"

#include <inttypes.h>
#include <math.h>

#include "base/try.h"
#include "planner/plan.h"

const char *const compare_class_names[COMPARE_CLASS_COUNT] = {
    [COMPARE_COMPUTE] = "compute",
    [COMPARE_H2D] = "h2d",
    [COMPARE_D2H] = "d2h",
    [COMPARE_P2P] = "p2p",
    [COMPARE_COLLECTIVE] = "collectives",
    [COMPARE_CPU] = "cpu",
    [COMPARE_READ] = "read",
    [COMPARE_WRITE] = "write",
    [COMPARE_FILE] = "files",
    [COMPARE_WAITING] = "waiting",
};

/* One stream of one trace. */
struct stream_sum {
    double busy_s;
    double first_s, last_s; /* of its spans; 0 without any */
    bool used;
};

enum { SIDES = 2 }; /* 0 predicted, 1 measured */

/* --- comparability ---------------------------------------------------------------------------- */

/* One of the two traces while its spans are read. */
struct compare_side {
    struct trace_reader *reader;
    const struct trace *head;
    struct stream_sum *sums; /* by stream */
    uint64_t span_count;
    struct trace_span span; /* the last one read */
    bool more;              /* false after the last span */
};

static enum status match_tables(const struct compare_side sides[SIDES], struct error *err)
{
    const struct trace *predicted = sides[0].head, *measured = sides[1].head;
    if (predicted->source != TRACE_PREDICTED || measured->source != TRACE_MEASURED)
        return error_set(err, STATUS_BAD_INPUT,
                         "the traces are %s and %s (expected predicted and measured)",
                         trace_source_names[predicted->source], trace_source_names[measured->source]);
    if (predicted->plan_fingerprint != measured->plan_fingerprint)
        return error_set(err, STATUS_BAD_INPUT,
                         "the traces are of different plans (%016" PRIx64 " and %016" PRIx64 ")",
                         predicted->plan_fingerprint, measured->plan_fingerprint);
    for (int s = 0; s < SIDES; s++) {
        const char *name = trace_source_names[sides[s].head->source];
        if (!sides[s].head->complete)
            return error_set(err, STATUS_BAD_INPUT, "the %s trace stopped before its end", name);
        if (sides[s].span_count == 0)
            return error_set(err, STATUS_BAD_INPUT, "the %s trace has no spans", name);
    }
    if (sides[0].span_count != sides[1].span_count ||
        predicted->stream_count != measured->stream_count ||
        predicted->job_count != measured->job_count)
        return error_set(err, STATUS_BAD_INPUT,
                         "the traces differ: %" PRIu64 " and %" PRIu64 " spans, %" PRIu32
                         " and %" PRIu32 " streams, %" PRIu32 " and %" PRIu32 " jobs",
                         sides[0].span_count, sides[1].span_count, predicted->stream_count,
                         measured->stream_count, predicted->job_count, measured->job_count);
    return STATUS_OK;
}

/* Checks that the last spans of both are the same operation. */
static enum status match_spans(const struct compare_side sides[SIDES], struct error *err)
{
    const struct trace_span *p = &sides[0].span, *m = &sides[1].span;
    if (p->number == m->number && p->stream == m->stream && p->job == m->job && p->bytes == m->bytes) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "the traces differ at span %" PRIu64 ": operation %" PRIu64
                     " of job '%s' and operation %" PRIu64 " of job '%s'",
                     sides[0].span_count - 1, p->number, sides[0].head->jobs[p->job].name, m->number,
                     sides[1].head->jobs[m->job].name);
}

/* --- sums ----------------------------------------------------------------------------------- */

static void add_to_stream(struct stream_sum *sum, const struct trace_span *span)
{
    if (!sum->used || span->start_s < sum->first_s) sum->first_s = span->start_s;
    if (!sum->used || span->end_s > sum->last_s) sum->last_s = span->end_s;
    sum->busy_s += span->end_s - span->start_s;
    sum->used = true;
}

/* Computes predicted / measured - 1. Returns false when measured is 0 and predicted is not. */
static bool relative_error(double predicted, double measured, double *out)
{
    *out = 0;
    if (measured > 0) *out = predicted / measured - 1;
    return measured > 0 || predicted <= 0;
}

static void sum_classes(const struct compare_side sides[SIDES], struct compare_class_result *classes)
{
    const struct trace *predicted = sides[0].head;
    double makespan_s = sides[1].head->makespan_s;
    uint32_t used[COMPARE_CLASS_COUNT] = {0};
    for (uint32_t i = 0; i < predicted->stream_count; i++) {
        static const int of_kind[] = {[STREAM_COMPUTE] = COMPARE_COMPUTE,
                                      [STREAM_H2D] = COMPARE_H2D,
                                      [STREAM_D2H] = COMPARE_D2H,
                                      [STREAM_P2P] = COMPARE_P2P,
                                      [STREAM_GROUP] = COMPARE_COLLECTIVE,
                                      [STREAM_DATA] = COMPARE_COLLECTIVE,
                                      [STREAM_CPU] = COMPARE_CPU,
                                      [STREAM_READ] = COMPARE_READ,
                                      [STREAM_WRITE] = COMPARE_WRITE,
                                      [STREAM_FILE] = COMPARE_FILE};
        uint32_t kind = predicted->streams[i].kind;
        const struct stream_sum *p = &sides[0].sums[i], *m = &sides[1].sums[i];
        if (kind == STREAM_HOST || !p->used) continue; /* the spans match: m is used as well */
        struct compare_class_result *busy = &classes[of_kind[kind]];
        busy->predicted_s += p->busy_s;
        busy->measured_s += m->busy_s;
        used[of_kind[kind]]++;
        if (kind != STREAM_COMPUTE) continue;
        struct compare_class_result *waiting = &classes[COMPARE_WAITING];
        waiting->predicted_s += fmax(0, p->last_s - p->first_s - p->busy_s);
        waiting->measured_s += fmax(0, m->last_s - m->first_s - m->busy_s);
        used[COMPARE_WAITING]++;
    }
    for (int c = 0; c < COMPARE_CLASS_COUNT; c++) {
        struct compare_class_result *class = &classes[c];
        class->error_known = relative_error(class->predicted_s, class->measured_s, &class->error);
        if (used[c] > 0 && makespan_s > 0)
            class->share = (class->predicted_s - class->measured_s) / used[c] / makespan_s;
    }
}

/* --- the operations that are furthest off --------------------------------------------------- */

/* Keeps `off` if it is among the worst; of equal differences the earlier one comes first. */
static void keep_worst(struct compare_result *out, struct compare_off off)
{
    double size_s = fabs(off.difference_s);
    uint32_t at = out->worst_count;
    while (at > 0 && fabs(out->worst[at - 1].difference_s) < size_s) at--;
    if (at == COMPARE_WORST_MAX) return;
    if (out->worst_count < COMPARE_WORST_MAX) out->worst_count++;
    for (uint32_t i = out->worst_count - 1; i > at; i--) out->worst[i] = out->worst[i - 1];
    out->worst[at] = off;
}

static void note_difference(const struct compare_side sides[SIDES], struct compare_result *out)
{
    const struct trace_span *p = &sides[0].span, *m = &sides[1].span;
    keep_worst(out, (struct compare_off){.predicted = *p,
                                         .measured = *m,
                                         .difference_s = (p->end_s - p->start_s) - (m->end_s - m->start_s)});
}

static void add_collective(const struct compare_side sides[SIDES], struct compare_result *out)
{
    const struct trace_span *p = &sides[0].span, *m = &sides[1].span;
    if (p->kind != OP_COLLECTIVE) return;
    struct compare_collectives *sum = &out->collectives[sides[0].head->streams[p->stream].kind][p->pass];
    sum->operations++;
    sum->bytes += p->bytes;
    sum->predicted_waited_s += p->waited_s;
    sum->measured_waited_s += m->waited_s;
    sum->predicted_transfer_s += p->end_s - p->start_s;
    sum->measured_transfer_s += m->end_s - m->start_s;
}

static void compare_jobs(const struct trace *predicted, const struct trace *measured,
                         struct compare_job *jobs)
{
    for (uint32_t j = 0; j < predicted->job_count; j++) {
        struct compare_job *job = &jobs[j];
        job->predicted_tokens_per_s = trace_job_tokens_per_s(predicted, j);
        job->measured_tokens_per_s = trace_job_tokens_per_s(measured, j);
        job->error_known = relative_error(job->predicted_tokens_per_s, job->measured_tokens_per_s,
                                          &job->error);
    }
}

/* --- both at a time ------------------------------------------------------------------------- */

static enum status next_span(struct compare_side *side, struct error *err)
{
    if (!side->more) return STATUS_OK;
    enum status status = trace_reader_span(side->reader, &side->span, &side->more, err);
    if (status != STATUS_OK || !side->more) return status;
    side->span_count++;
    add_to_stream(&side->sums[side->span.stream], &side->span);
    return STATUS_OK;
}

/* Reads the rest of a trace, to check it. */
static enum status finish(struct compare_side *side, struct error *err)
{
    uint64_t count;
    while (side->more) {
        TRY(next_span(side, err));
    }
    return trace_reader_finish(side->reader, &count, err);
}

/*
 * Reads both traces to their ends. *differ reports the first span that differs. Errors of the predicted trace are
 * reported first, as if it were read before the measured one.
 */
static enum status read_both(struct compare_side sides[SIDES], struct compare_result *out, struct error *differ,
                             struct error *err)
{
    struct error second = {0};
    while (sides[0].more || sides[1].more) {
        TRY(next_span(&sides[0], err));
        if (next_span(&sides[1], &second) != STATUS_OK) break;
        if (!sides[0].more || !sides[1].more || differ->status != STATUS_OK) continue;
        if (match_spans(sides, differ) != STATUS_OK) continue;
        note_difference(sides, out);
        add_collective(sides, out);
    }
    TRY(finish(&sides[0], err));
    if (second.status != STATUS_OK) {
        *err = second;
        return err->status;
    }
    return finish(&sides[1], err);
}

/* --- public --------------------------------------------------------------------------------- */

static enum status prepare(struct compare_side *side, struct trace_reader *reader, struct arena *scratch,
                           struct error *err)
{
    *side = (struct compare_side){.reader = reader, .head = trace_reader_head(reader), .more = true};
    return ARENA_NEW(scratch, side->head->stream_count, side->sums, err);
}

static enum status compare(struct compare_side sides[SIDES], struct compare_result *result, struct error *err)
{
    const struct trace *predicted = sides[0].head, *measured = sides[1].head;
    struct error differ = {0};
    TRY(read_both(sides, result, &differ, err));
    TRY(match_tables(sides, err));
    if (differ.status != STATUS_OK) {
        *err = differ;
        return err->status;
    }
    TRY(ARENA_NEW(&result->arena, predicted->job_count, result->jobs, err));
    result->job_count = predicted->job_count;
    result->predicted_waits = predicted->has_waits;
    result->measured_waits = measured->has_waits;
    sum_classes(sides, result->classes);
    compare_jobs(predicted, measured, result->jobs);
    result->throughput_error_known = relative_error(
        trace_tokens_per_s(predicted), trace_tokens_per_s(measured), &result->throughput_error);
    return STATUS_OK;
}

enum status compare_readers(struct trace_reader *predicted, struct trace_reader *measured, struct compare_result *out,
                            struct error *err)
{
    struct compare_result result = {.predicted_makespan_s = trace_reader_head(predicted)->makespan_s,
                                .measured_makespan_s = trace_reader_head(measured)->makespan_s};
    struct arena scratch = {0};
    struct compare_side sides[SIDES];
    enum status status = prepare(&sides[0], predicted, &scratch, err);
    if (status == STATUS_OK) status = prepare(&sides[1], measured, &scratch, err);
    if (status == STATUS_OK) status = compare(sides, &result, err);
    if (status == STATUS_OK) {
        *out = result;
        result.arena = (struct arena){0}; /* it is the caller's now */
    }
    arena_release(&scratch);
    arena_release(&result.arena);
    return status;
}

void compare_release(struct compare_result *comparison)
{
    arena_release(&comparison->arena);
    *comparison = (struct compare_result){0};
}
