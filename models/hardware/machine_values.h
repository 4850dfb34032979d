/*
 * The values of a machine that affect times. A value of a device type or a link is one place; values measured at
 * several sizes are one place per point.
 */
#ifndef SPILLWAY_MODELS_HARDWARE_MACHINE_VALUES_H
#define SPILLWAY_MODELS_HARDWARE_MACHINE_VALUES_H

#include "models/hardware/hardware.h"

enum machine_value {
    /* of a device type */
    MACHINE_PEAK_FP32,
    MACHINE_PEAK_TF32,
    MACHINE_PEAK_BF16,
    MACHINE_MEMORY_BANDWIDTH,
    MACHINE_MATMUL_EFFICIENCY, /* shares from here on */
    MACHINE_FP32_EFFICIENCY,
    MACHINE_MEMORY_EFFICIENCY,
    MACHINE_MATMUL_SUSTAINED,
    MACHINE_MISALIGNED_RATE,
    MACHINE_LAUNCH_LATENCY, /* costs from here to MACHINE_RING */
    MACHINE_COLLECTIVE_LATENCY,
    MACHINE_MATMUL_DEPTH,
    MACHINE_SCORE_BYTES_FORWARD,
    MACHINE_SCORE_BYTES_BACKWARD,
    MACHINE_LOSS_PASSES,
    MACHINE_ELEMENTWISE_PASSES,
    MACHINE_KERNEL_GAP,
    MACHINE_DISPATCH_LATENCY,
    MACHINE_KERNELS, /* measured; seconds */
    MACHINE_COMPUTE_BY_COMPUTE,
    MACHINE_COMPUTE_BY_COPY,
    MACHINE_COPY_BY_COMPUTE,
    MACHINE_COPY_BY_COPY,
    MACHINE_H2D, /* measured copies; seconds */
    MACHINE_D2H,
    MACHINE_P2P,
    MACHINE_RING,
    /* of a link */
    MACHINE_LINK,
    MACHINE_LINK_LATENCY,
    /* of the machine */
    MACHINE_HOST_BANDWIDTH,
    MACHINE_STORAGE_READ,
    MACHINE_STORAGE_WRITE,
    MACHINE_STORAGE_BOTH,
    MACHINE_STORAGE_LATENCY,
    MACHINE_COMPUTE_BY_COLLECTIVE, /* last, so that random draws of the other values do not change ... */
    MACHINE_COLLECTIVES, /* ... like measured collectives of a device type; seconds */
    MACHINE_ATTENTION_EFFICIENCY, /* ... and a share */
    MACHINE_VALUES
};
extern const char *const machine_value_names[MACHINE_VALUES]; /* "matmul_efficiency", "link", ... */

/* Returns true if a smaller value makes the machine faster. */
bool machine_value_is_cost(enum machine_value what);

/* Returns true for a share, which is at most 1. */
bool machine_value_is_share(enum machine_value what);

struct machine_place {
    uint32_t what;      /* enum machine_value */
    uint32_t index;     /* of the device type or link; 0 for the machine */
    uint32_t kernel;    /* enum kernel for MACHINE_KERNELS; else 0 */
    double value, spread; /* points: in seconds */
    uint32_t kind;      /* enum source_kind */
    const char *source;   /* NULL for points */
};

/* Visits places with a value above 0: of types, links, the machine. */
typedef void machine_visitor(void *context, const struct machine_place *place);
void machine_values_visit(const struct hardware *hardware, machine_visitor *visit, void *context);

/* Multiplies the value of each place by `factor`; shares of a peak stay at most 1. `from` must outlive *out. */
typedef double machine_factor(void *context, const struct machine_place *place);
MUST_CHECK enum status machine_values_move(const struct hardware *from, machine_factor *factor, void *context,
                                           struct hardware *out, struct error *err);

#endif
