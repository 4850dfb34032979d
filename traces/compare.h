/*
 * Compares a prediction with its measurement: the error, and its causes.
 */
#ifndef SPILLWAY_TRACES_COMPARE_H
#define SPILLWAY_TRACES_COMPARE_H

#include "planner/plan.h"
#include "traces/trace_reader.h"

/* Classes of time. Waiting is the time between a compute stream's first and last span in which it
 * does not compute. "cpu" counts computations of the host's processor, "read" and "write" transfers
 * from and to storage, "collectives" those on streams of their own, without their waits for members. The stream that
 * reads batches belongs to no class. */
enum compare_class {
    COMPARE_COMPUTE,
    COMPARE_H2D,
    COMPARE_D2H,
    COMPARE_P2P,
    COMPARE_COLLECTIVE,
    COMPARE_CPU,
    COMPARE_READ,
    COMPARE_WRITE,
    COMPARE_FILE, /* jobs from files to host memory and back */
    COMPARE_WAITING,
    COMPARE_CLASS_COUNT
};
extern const char *const compare_class_names[COMPARE_CLASS_COUNT];

struct compare_class_result {
    double predicted_s, measured_s; /* summed over streams */
    double error;                   /* predicted / measured - 1; 0 if both are 0 */
    bool error_known;               /* false: measured is 0 and predicted is not */
    double share;                   /* part of the makespan's difference: (predicted - measured)
                                       per active stream of the class, over the measured makespan */
};

/* Collectives of one pass on one kind of stream, summed over members. */
struct compare_collectives {
    uint64_t operations, bytes;
    double predicted_waited_s, measured_waited_s;       /* until the last member came */
    double predicted_transfer_s, measured_transfer_s; /* from then on */
};

struct compare_off { /* an operation with a large error */
    struct trace_span predicted, measured;
    double difference_s; /* predicted minus measured duration */
};

struct compare_job {
    double predicted_tokens_per_s, measured_tokens_per_s;
    double error; /* as in a class */
    bool error_known;
};

enum { COMPARE_WORST_MAX = 20 };

struct compare_result {
    double predicted_makespan_s, measured_makespan_s;
    double throughput_error; /* predicted / measured - 1, of all tokens over the makespan */
    bool throughput_error_known;
    struct compare_class_result classes[COMPARE_CLASS_COUNT];
    struct compare_collectives collectives[STREAM_KIND_COUNT][PLAN_PASS_COUNT]; /* without operations: there are none */
    bool predicted_waits, measured_waits; /* the traces have waits; else the waits are 0 */
    struct compare_off worst[COMPARE_WORST_MAX]; /* the largest difference first */
    uint32_t worst_count;
    struct compare_job *jobs; /* the traces' jobs; in `arena` */
    uint32_t job_count;
    struct arena arena;
};

/* Compares two traces, which are read from their first span to their end. Memory does not grow with their length.
 * Errors: STATUS_BAD_INPUT when the traces are of different plans, the first is not a prediction, the second is not a
 * measurement, or one of them is incomplete or has no spans; the errors of the readers. *out is untouched then. */
MUST_CHECK enum status compare_readers(struct trace_reader *predicted, struct trace_reader *measured,
                                       struct compare_result *out, struct error *err);
void compare_release(struct compare_result *comparison);

#endif
