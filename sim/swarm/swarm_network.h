/* A network's stages in a swarm: what they pass on, average and fetch, and how long a machine's device takes. */
#ifndef SPILLWAY_SWARM_SWARM_NETWORK_H
#define SPILLWAY_SWARM_SWARM_NETWORK_H

#include "models/hardware/hardware.h"
#include "models/network/network.h"
#include "sim/swarm/swarm.h"

struct swarm_network {
    struct network network;
    uint64_t sequence;      /* tokens of a sample */
    uint32_t stages;        /* of as many blocks each as can be; embedding and head with the first and the last */
    uint32_t precision;     /* enum precision: of all but gradients and optimizer, as models/job/parallel.h says */
    uint32_t recompute;     /* enum recompute */
    uint32_t gradient_bits; /* of each that is averaged; 0: 32 */
    uint32_t boundary_bits; /* of each number passed on; 0: of the precision. Compressing takes no time */
};

/*
 * AdamW in all stages. What they have lives as long as in->arena; in->microbatch is set.
 * Errors: STATUS_BAD_INPUT for stages or sequences that the network does not take, in words; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status swarm_network_stages(struct swarm *in, const struct swarm_network *of, struct error *err);

/* Passes on the machine's first device, `speed` times as fast; they live as long as in->arena. */
MUST_CHECK enum status swarm_network_passes(struct swarm *in, const struct swarm_network *of,
                                            const struct hardware *hardware, double speed,
                                            const struct swarm_passes **out, struct error *err);

#endif
