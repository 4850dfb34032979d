/* A network's stages in a swarm: bytes of activations, gradients and state, and seconds on a device. */
#ifndef SPILLWAY_SIM_SWARM_SWARM_NETWORK_H
#define SPILLWAY_SIM_SWARM_SWARM_NETWORK_H

#include "models/hardware/hardware.h"
#include "models/network/network.h"
#include "sim/swarm/swarm.h"

struct swarm_network {
    struct network network;
    uint64_t sequence;      /* tokens of a sample */
    uint32_t stages;        /* number of stages, with equal numbers of blocks if possible; embedding and head are in the
                             * end stages */
    uint32_t precision;     /* enum precision of everything but gradients and optimizer (models/job/parallel.h) */
    uint32_t recompute;     /* enum parallel_recompute */
    uint32_t gradient_bits; /* of each averaged gradient; 0: 32 */
    uint32_t boundary_bits; /* of each activation between stages; 0: of the precision. Compression takes no time */
};

/*
 * Makes the stages, all with AdamW; they live as long as in->arena. Sets in->microbatch. Errors: STATUS_BAD_INPUT for
 * stages or sequences that the network does not accept.
 */
MUST_CHECK enum status swarm_network_stages(struct swarm *in, const struct swarm_network *of, struct error *err);

/* Computes the passes on the machine's first device, divided by `speed`; they live as long as in->arena. */
MUST_CHECK enum status swarm_network_passes(struct swarm *in, const struct swarm_network *of,
                                            const struct hardware *hardware, double speed,
                                            const struct swarm_passes **out, struct error *err);

#endif
