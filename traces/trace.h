/*
 * Traces: which operation ran where and when. The simulator writes predicted traces, the executor measured traces, in
 * one format. Comparison, export and drawing read only this format.
 *
 * A span is one operation of a plan on its stream. Spans of a stream do not overlap. Times are seconds from the start
 * of the run. Operations are numbered in plan order (planner/walk/plan_walk.h), so a predicted and a measured span of
 * one plan match by number.
 *
 * File: {"spillway_trace": 3, "source": "predicted" | "measured", ..., "spans": [[...], ...]}, compressed if the name
 * ends in .gz; trace_writer.c describes it.
 */
#ifndef SPILLWAY_TRACES_TRACE_H
#define SPILLWAY_TRACES_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct plan;

enum {
    TRACE_VERSION = 3,         /* of files with waits; other files are of version 2 */
    TRACE_VERSION_OLDEST = 1, /* that is read */
    TRACE_SPANS_MAX = 1 << 27, /* in memory: 8 GiB of struct trace_span */
    TRACE_LEVELS_MAX = 1 << 27
};

#define TRACE_TIME_MAX_S 1e12 /* 30 000 years; keeps every sum and difference finite */

enum trace_source { TRACE_PREDICTED, TRACE_MEASURED };

struct trace_span {
    double start_s, end_s;
    double waited_s;    /* collectives: seconds before start_s that the device waited for the last member; else 0 */
    uint64_t number;    /* in plan order */
    uint64_t bytes;     /* bytes of copies and collectives; else 0 */
    uint32_t minibatch;
    uint32_t stream;    /* index into streams */
    uint32_t job, shard;
    uint8_t kind;       /* enum plan_op_kind */
    uint8_t pass;       /* enum plan_pass of the computation, or of the unit that the operation belongs to */
    uint8_t op_index;   /* index in its unit, at most 255 */
};

struct trace_stream {
    const char *name;   /* "gpu0 compute" (CUDA), "dev0 compute" (host back end), "cpu"; with several hosts "host1
                           cpu" */
    uint32_t device;    /* PLAN_NONE for a host */
    uint32_t host;      /* number of the host on a machine of several nodes; else 0 */
    uint32_t kind;      /* enum plan_stream_kind */
};

/* Bytes in use at a place from this time on; a place is empty before its first level. */
struct trace_level {
    double time_s;
    uint64_t bytes;
    uint32_t place;
};

struct trace_place {
    const char *name;   /* "host" ("host0" with several), "gpu0" or "dev0": the first word of its streams' names */
    uint64_t capacity_bytes;
    uint64_t peak_bytes;
    double peak_time_s; /* when the peak was first reached */
};

struct trace_job {
    const char *name;
    uint64_t tokens, samples; /* totals of the whole run */
    uint64_t minibatches;     /* completed */
    double start_s, end_s;    /* start of its first and end of its last span */
    double final_loss;        /* measured only */
    bool has_loss;
    uint32_t unit; /* enum job_unit: what its rate counts */
};

struct trace {
    struct arena arena; /* owns the arrays of a trace that was read or initialised */
    uint32_t source;    /* enum trace_source */
    const char *hardware;
    const char *policy;
    uint64_t plan_fingerprint; /* 0 for a prediction without spans, which is never written to a file */
    bool complete;      /* false: stopped before its end */
    bool has_waits;     /* false: the waits of collectives are not known, and 0 */
    double load;        /* share of processor time that others took, in [0, 1]. Measured trace: during the run;
                           predicted trace: during the measurement of the machine's profile */
    double late;        /* measured trace of a dilated machine: share by which its work was late, in [0, 1] */
    double makespan_s;  /* end of the last span minus start of the first */
    struct trace_stream *streams;
    uint32_t stream_count;
    struct trace_place *places;
    uint32_t place_count; /* host, devices, then hosts of further nodes */
    uint32_t more_hosts;  /* number of hosts of further nodes */
    struct trace_job *jobs;
    uint32_t job_count;
    struct trace_span *spans; /* by number */
    uint64_t span_count;
    struct trace_level *levels; /* by time */
    uint64_t level_count;
};

static inline uint32_t trace_device_count(const struct trace *trace)
{
    return trace->place_count - 1 - trace->more_hosts;
}
/* Returns the place of a host's memory. */
static inline uint32_t trace_host_place(const struct trace *trace, uint32_t host)
{
    return host == 0 ? 0 : trace_device_count(trace) + host;
}
/* Names that place; the name is in the trace's arena. */
MUST_CHECK enum status trace_name_host(struct trace *trace, uint32_t host, struct error *err);

/*
 * Initialises an empty trace of a plan. Streams, places and jobs are named. There is room for `span_limit` spans (one
 * per operation, or 0) and `level_limit` levels; both counts are 0. The trace borrows nothing from the plan. Jobs have
 * the totals of the whole plan; a writer that stops early corrects them. `complete` is false; the writer sets it at the
 * end. The caller zeroes *trace, and releases it with trace_release() also after an error. Errors: STATUS_LIMIT.
 */
MUST_CHECK enum status trace_init(struct trace *trace, const struct plan *plan,
                                  enum trace_source source, uint64_t span_limit,
                                  uint64_t level_limit, struct error *err);

/*
 * Sorts the spans by their numbers, and computes makespan and times of jobs from them. A trace without spans keeps
 * the values that its writer set.
 */
void trace_finish(struct trace *trace);

/*
 * Checks a trace from its own data, and names the first broken rule with its span or level.
 *   form      indexes are in range; kind, stream and bytes of a span agree (copies run on copy streams)
 *   time      0 <= start <= end <= TRACE_TIME_MAX_S
 *   order     numbers ascend; a span does not start before the previous span of its stream has ended
 *   waits     only collectives wait for members, after the previous span of their stream has ended
 *   memory    levels ascend in time and stay within the capacity, and peaks are not below them
 *   totals    makespan and times of jobs agree with the spans, if there are spans
 * Errors: STATUS_CHECK.
 */
MUST_CHECK enum status trace_check(const struct trace *trace, struct error *err);

/* Reads a trace and checks it. Errors: STATUS_BAD_INPUT with file, line and column; STATUS_CHECK, prefixed by the
 * file name, from trace_check(); STATUS_LIMIT. */
MUST_CHECK enum status trace_read(const char *path, struct trace *out, struct error *err);

/* Reads a trace from memory, for tests; `name` stands for the file name in messages. */
MUST_CHECK enum status trace_parse(const char *name, const char *text, size_t length,
                                   struct trace *out, struct error *err);

/* Checks and writes a trace, atomically. Reading it back gives the same trace, bit for bit. */
MUST_CHECK enum status trace_write(const struct trace *trace, const char *path, struct error *err);
void trace_release(struct trace *trace);

extern const char *const trace_source_names[2]; /* "predicted", "measured" */

/* Returns the tokens per second of a job over its own time; 0 when nothing ran. */
double trace_job_tokens_per_s(const struct trace *trace, uint32_t job);

/* As trace_job_tokens_per_s(), of samples. */
double trace_job_samples_per_s(const struct trace *trace, uint32_t job);

/* Returns the unit (enum job_unit) that all jobs have in common. */
uint32_t trace_unit(const struct trace *trace);

/* Returns the tokens per second of all jobs over the makespan; 0 when nothing ran. */
double trace_tokens_per_s(const struct trace *trace);

#endif
