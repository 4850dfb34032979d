/*
 * The figures of a machine that a time rests on, by name, wherever they stand: to be listed with their spreads, and to be
 * moved in a copy of the machine, each by a factor of its own.
 *
 * A figure of a device type or a link is one place each. What was measured at several sizes (kernels, copies, steps of a
 * ring) is a place for each point.
 */
#ifndef SPILLWAY_MODELS_MACHINE_FIGURES_H
#define SPILLWAY_MODELS_MACHINE_FIGURES_H

#include "models/hardware/hardware.h"

enum machine_figure {
    /* of a device type */
    MACHINE_PEAK_FP32,
    MACHINE_PEAK_TF32,
    MACHINE_PEAK_BF16,
    MACHINE_MEMORY_BANDWIDTH,
    MACHINE_MATMUL_EFFICIENCY, /* from here shares */
    MACHINE_FP32_EFFICIENCY,
    MACHINE_MEMORY_EFFICIENCY,
    MACHINE_MATMUL_SUSTAINED,
    MACHINE_MISALIGNED_RATE,
    MACHINE_LAUNCH_LATENCY, /* from here costs, as far as the links */
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
    MACHINE_COMPUTE_BY_COLLECTIVE, /* of a device type; at the end, so that draws of the others stay what they are */
    MACHINE_FIGURES
};
extern const char *const machine_figure_names[MACHINE_FIGURES]; /* "matmul_efficiency", "link", ... */

/* Does less of it make a machine faster? */
bool machine_figure_is_cost(enum machine_figure figure);

struct machine_place {
    uint32_t figure;    /* enum machine_figure */
    uint32_t index;     /* of the device type, of the link; 0 of the machine */
    uint32_t kernel;    /* enum kernel, of MACHINE_KERNELS; else 0 */
    double value, spread; /* as struct figure has them; of points seconds */
    uint32_t kind;      /* enum figure_kind */
    const char *source; /* NULL of points */
};

/* Called for every place with a value above 0: of types one after the other, of links, of the machine. */
typedef void machine_visitor(void *context, const struct machine_place *place);
void machine_figures_visit(const struct hardware *hardware, machine_visitor *visit, void *context);

/*
 * *out is the machine with each place's value times what `factor` says of it; shares of a peak stay at most 1. It shares with
 * `from`, which must outlive it, what cannot move. Zeroed struct in; release it with hardware_release(), also after an
 * error. STATUS_NO_MEMORY.
 */
typedef double machine_factor(void *context, const struct machine_place *place);
MUST_CHECK enum status machine_figures_move(const struct hardware *from, machine_factor *factor, void *context,
                                            struct hardware *out, struct error *err);

#endif
