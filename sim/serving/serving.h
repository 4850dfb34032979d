/*
 * Serving: trained models that answer requests, on devices that not all of them fit.
 *
 * A *kind* is a network as it is served: layers with seconds and bytes, for each degree of tensor
 * parallelism that it can have. A *model* is one set of weights of a kind, with the requests that come for
 * it and an objective: the latency that a request must keep to. Devices are divided into *groups*; a group
 * has a *shape*, tensor x pipeline devices, and answers requests for the models that are placed on it, all of
 * them cut alike into `pipeline` stages of `tensor` devices each.
 *
 * Semantics (AlpaServe's): a request goes to that of its model's groups which has the fewest requests under
 * way (ties: the first), at once and for good. A group takes requests first come, first served; a stage
 * works on one batch at a time, and a stage that is through with one may begin the next. Nothing is
 * preempted, times have no noise. With admission control a request that could not end within its objective is
 * turned away when it arrives and costs nothing.
 *
 * A batch is one request, or up to `batch_max` of one model: a request joins the last batch of its model that
 * waits in its group, if that has room; else it is a batch of its own behind all others. With admission control
 * it joins only where it is over no later than by itself and everyone in the group stays within the objective.
 * (Stages in a row are soon free for the next, and two in a batch take nearly twice as long through all of them:
 * joining wherever there is room has been seen to lose more than it gains.) No stage waits for a batch to fill.
 * Without objectives that is what a server does that takes, when it is free, the first request that waits and
 * others of its model up to the limit.
 *
 * Weights stay where they are placed; a device's memory is for weights alone, so whoever states it leaves
 * room for activations (AlpaServe: 13 of 16 GB).
 *
 * Source: Li et al., "AlpaServe: statistical multiplexing with model parallelism for deep learning serving",
 * OSDI 2023, arXiv 2302.11665.
 */
#ifndef SPILLWAY_SERVING_SERVING_H
#define SPILLWAY_SERVING_SERVING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum {
    SERVING_KINDS_MAX = 256,
    SERVING_MODELS_MAX = 4096,
    SERVING_DEVICES_MAX = 4096,
    SERVING_LAYERS_MAX = 4096,
    SERVING_DEGREES_MAX = 16,   /* different degrees of tensor parallelism of a kind */
    SERVING_STAGES_MAX = 256,
    SERVING_BATCH_MAX = 64,     /* requests of a batch; a table of growth has so many entries */
    SERVING_REQUESTS_MAX = 1 << 26
};

/* A request that takes exactly its objective attains it, also where times far from zero have rounded that. */
#define SERVING_OBJECTIVE_SLACK 1e-9

/* Of the gaps between requests; a gamma distribution of more or less is hard to draw from. */
#define SERVING_CV_LEAST 0.01
#define SERVING_CV_MAX 100.0

/* A shape of groups; its devices are their product. */
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

/* A kind on `tensor` devices a layer. */
struct serving_degree {
    uint32_t tensor;
    const double *layer_s;       /* (layer_count): a request's seconds in a layer */
    const uint64_t *layer_bytes; /* (layer_count): weights on each of the devices */
    const double *hop_s;         /* (layer_count): to hand on what layer l passes to the next, if the next stage
                                    begins there; the stage of layer l is busy with it. The last is 0 */
    const double *growth; /* (batch_max): seconds of a batch of b + 1 over those of one request, in every layer and
                             hop alike; growth[0] is 1, ascending */
};

struct serving_kind {
    const char *name;
    uint32_t layer_count;
    uint32_t batch_max; /* at least 1: requests that are answered as one */
    uint32_t degree_count;
    struct serving_degree *degrees; /* by `tensor`, ascending */
};

/* How requests come. */
enum traffic_process {
    TRAFFIC_POISSON,
    TRAFFIC_GAMMA, /* independent gaps of a gamma distribution: mean 1 / rate, coefficient of variation cv */
    TRAFFIC_EVEN,  /* one every 1 / rate, the first at 0 */
    TRAFFIC_TIMES, /* at the given times */
    TRAFFIC_PROCESS_COUNT
};
extern const char *const traffic_process_names[TRAFFIC_PROCESS_COUNT]; /* "poisson", ... */

struct serving_traffic {
    uint32_t process; /* enum traffic_process */
    double rate;      /* requests a second; of TRAFFIC_TIMES not used */
    double cv;        /* TRAFFIC_GAMMA: above 0; 1 is Poisson, more comes in bursts */
    const double *times; /* TRAFFIC_TIMES: ascending, seconds */
    uint32_t time_count;
};

struct serving_model {
    const char *name;
    uint32_t kind;      /* index into kinds */
    double objective_s; /* of a request's latency; HUGE_VAL: none */
    struct serving_traffic traffic;
};

/* What is placed: groups of neighbouring devices, the first group's first. */
struct serving_group {
    struct serving_shape shape;
    uint32_t *models; /* ascending */
    uint32_t model_count;
};
struct serving_placement {
    struct serving_group *groups;
    uint32_t group_count;
};

/* Open; zeroed it is empty. */
struct serving {
    struct arena arena; /* owns every array below */
    const char *name;
    uint32_t device_count;
    uint64_t device_bytes;  /* of each, for weights */
    double horizon_s;       /* requests that arrive in [0, horizon_s) are looked at */
    double overhead_s;      /* of every request's latency beside its stages */
    struct serving_kind *kinds;
    uint32_t kind_count;
    struct serving_model *models;
    uint32_t model_count;
};
void serving_release(struct serving *in);

/* The entry of a degree; NULL: the kind does not have it. */
const struct serving_degree *serving_degree_of(const struct serving_kind *kind, uint32_t tensor);

/* Seconds of a request for the kind where nothing is in front of it, on the best of the shapes of at most
 * `devices` devices; HUGE_VAL if it has no degree that small. A pipeline only adds to it. */
double serving_least_s(const struct serving_kind *kind, uint32_t devices);

/* The least seconds of a batch, by its requests, over those of one request alone; batches that take more than
 * `longest` times as long as one are left out. In (0, 1]. */
double serving_least_growth(const struct serving_kind *kind, const struct serving_degree *degree, double longest);

/* The least device seconds that a request takes, of all degrees and batches; 0 at least. */
double serving_least_work_s(const struct serving_kind *kind, uint32_t devices);

#endif
