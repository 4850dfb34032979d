/*
 * Serving: trained models that answer requests, on devices whose memory does not hold all of them.
 *
 * A *kind* is a served network: layers with seconds and bytes, per degree of tensor parallelism. A *model* is a kind's
 * set of weights, with requests and an objective: a request's maximum latency. Devices are divided into *groups*. A
 * group has a *shape*, tensor x pipeline devices, and answers requests for its models, each cut into `pipeline` stages
 * of `tensor` devices.
 *
 * Semantics (AlpaServe's): on arrival, a request goes to its model's group with the fewest active requests (ties: the
 * first), and stays there. A group serves first come, first served. A stage works on one batch at a time. There is no
 * preemption, and times have no noise. With admission control, a request that would end after its objective is rejected
 * at no cost.
 *
 * A batch has up to `batch_max` requests of one model. A request joins its model's last waiting batch in its group, if
 * that has room; else it starts one at the end. With admission control it joins only if it ends no later than in its
 * own batch and the group's requests stay within their objectives. (Stages are soon free for the next batch, and two
 * requests in a batch take nearly twice as long through all stages: always joining was seen to lose more than it
 * gains.) No stage waits for a batch to fill. Without objectives this is a server that, when free, takes the first
 * waiting request and others of its model up to the limit.
 *
 * Weights stay where they are placed. A device's memory is for weights only, so its size must leave room for
 * activations (AlpaServe: 13 of 16 GB).
 *
 * Source: Li et al., "AlpaServe: statistical multiplexing with model parallelism for deep learning serving", OSDI 2023,
 * arXiv 2302.11665.
 */
#ifndef SPILLWAY_SIM_SERVING_SERVING_H
#define SPILLWAY_SIM_SERVING_SERVING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum {
    SERVING_KINDS_MAX = 256,
    SERVING_MODELS_MAX = 4096,
    SERVING_DEVICES_MAX = 4096,
    SERVING_LAYERS_MAX = 4096,
    SERVING_DEGREES_MAX = 16,   /* degrees of tensor parallelism of a kind */
    SERVING_STAGES_MAX = 256,
    SERVING_BATCH_MAX = 64,     /* requests of a batch; length of a growth table */
    SERVING_REQUESTS_MAX = 1 << 26
};

/* Relative slack of an objective, because times far from zero are rounded. */
#define SERVING_OBJECTIVE_SLACK 1e-9

/* Range of the coefficient of variation of gaps; outside, a gamma distribution is hard to sample. */
#define SERVING_CV_LEAST 0.01
#define SERVING_CV_MAX 100.0

/* A shape of groups, with tensor * pipeline devices. */
struct serving_shape {
    uint32_t tensor, pipeline; /* at least 1 */
};
static inline uint32_t serving_shape_devices(struct serving_shape shape)
{
    return shape.tensor * shape.pipeline;
}
static inline bool serving_shape_same(struct serving_shape a, struct serving_shape b)
{
    return a.tensor == b.tensor && a.pipeline == b.pipeline;
}

/* A kind on `tensor` devices per layer. */
struct serving_degree {
    uint32_t tensor;
    const double *layer_s;       /* (layer_count): a request's seconds in a layer */
    const uint64_t *layer_bytes; /* (layer_count): weights on each of the devices */
    const double *hop_s;         /* (layer_count): transfer of layer l's output to the next stage, if one begins there;
                                  * layer l's stage is busy with it. The last is 0 */
    const double *growth; /* (batch_max): seconds of a batch of b + 1 requests over the seconds of one, for all layers
                           * and hops; growth[0] is 1, ascending */
};

struct serving_kind {
    const char *name;
    uint32_t layer_count;
    uint32_t batch_max; /* requests answered as one, at least 1 */
    uint32_t degree_count;
    struct serving_degree *degrees; /* by `tensor`, ascending */
};

/* The arrival process of requests. */
enum traffic_process {
    TRAFFIC_POISSON,
    TRAFFIC_GAMMA, /* independent gaps of a gamma distribution: mean 1 / rate, coefficient of variation cv */
    TRAFFIC_EVEN,  /* one every 1 / rate seconds, the first at 0 */
    TRAFFIC_TIMES, /* at the given times */
    TRAFFIC_PROCESS_COUNT
};
extern const char *const traffic_process_names[TRAFFIC_PROCESS_COUNT]; /* "poisson", ... */

struct serving_traffic {
    uint32_t process; /* enum traffic_process */
    double rate;      /* requests per second; not used by TRAFFIC_TIMES */
    double cv;        /* TRAFFIC_GAMMA: above 0; 1 is Poisson, larger values are burstier */
    const double *times; /* TRAFFIC_TIMES: ascending, seconds */
    uint32_t time_count;
};

struct serving_model {
    const char *name;
    uint32_t kind;      /* index into kinds */
    double objective_s; /* maximum latency of a request; HUGE_VAL: none */
    struct serving_traffic traffic;
};

/* A placement: groups of neighbouring devices, in the order of devices. */
struct serving_group {
    struct serving_shape shape;
    uint32_t *models; /* ascending */
    uint32_t model_count;
};
struct serving_placement {
    struct serving_group *groups;
    uint32_t group_count;
};

/* A serving problem; open. A zeroed one is empty. */
struct serving {
    struct arena arena; /* owns every array below */
    const char *name;
    uint32_t device_count;
    uint64_t device_bytes;  /* memory of each device for weights */
    double horizon_s;       /* requests that arrive in [0, horizon_s) are simulated */
    double overhead_s;      /* added to every request's latency */
    struct serving_kind *kinds;
    uint32_t kind_count;
    struct serving_model *models;
    uint32_t model_count;
};
void serving_release(struct serving *in);

/* Returns the entry of a degree; NULL: the kind does not have it. */
const struct serving_degree *serving_degree_of(const struct serving_kind *kind, uint32_t tensor);

/* Returns a request's seconds without waiting, in the best shape with at most `devices` devices; HUGE_VAL without such
 * a degree. Pipelines only add time. */
double serving_least_s(const struct serving_kind *kind, uint32_t devices);

/* Returns the least time per request in a batch, relative to a single request, in (0, 1], for batches that take at most
 * `longest` times as long as one. */
double serving_least_growth(const struct serving_kind *kind, const struct serving_degree *degree, double longest);

/* Returns the least device seconds of a request, over all degrees and batches; at least 0. */
double serving_least_work_s(const struct serving_kind *kind, uint32_t devices);

#endif
