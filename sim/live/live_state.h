/* Shared only by live_create.c (makes it), live_view.c (shows it to the policy) and live.c (runs it). */
#ifndef SPILLWAY_SIM_LIVE_LIVE_STATE_H
#define SPILLWAY_SIM_LIVE_LIVE_STATE_H

#include "planner/policy/policy_ask.h"
#include "sim/engine/ready.h"
#include "sim/engine/allocate.h"
#include "sim/live/live.h"
#include "sim/network/flow.h"
#include "sim/network/interference.h"

#define LIVE_NO_SLOT UINT32_MAX

enum live_phase { LIVE_IN, LIVE_COMPUTE, LIVE_OUT };

/* A unit on one kind of device; one cache line. */
struct live_unit {
    double compute_s;
    double in_volume, out_volume; /* see sim/network/flow.h; 0: no copy; below 0: the negated seconds of a copy that is
                                     only latency */
    uint64_t in_bytes, out_bytes;
    uint64_t memory;
    double compute_ticks;   /* the least of all kinds */
    uint32_t shard;
};
static_assert(sizeof(struct live_unit) == SIM_LINE, "a unit is a cache line");

static inline bool live_copies(double volume)
{
    return volume > 0 || volume < 0;
}

struct live_job {
    uint32_t first_unit, unit_count;
    uint32_t unit;       /* the next one, in the job */
    uint32_t repeats;    /* remaining repetitions, with the current one */
    uint32_t minibatch;
};

/* A slot of a device; one cache line. It copies its unit's later needed fields, because the unit has left the caches by
 * then. Slot i of device d has the number d * slot_limit + i. */
struct live_slot {
    double began_s;      /* begin of the current phase */
    uint64_t number;     /* number of the unit in the order of choices */
    double compute_s, out_volume; /* of the unit, like the next line */
    uint64_t out_bytes, memory;   /* likewise */
    const struct live_unit *unit;
    uint32_t job;
    uint16_t device;
    uint8_t phase;       /* enum live_phase */
};
static_assert(sizeof(struct live_slot) == SIM_LINE, "a slot is a cache line");
static_assert(HARDWARE_DEVICES_MAX <= UINT16_MAX, "devices of slots");

/* Fields of a slot that only spans need. */
struct live_spanned {
    uint64_t span;
    uint32_t minibatch;
};

/* A cache line. */
struct live_device {
    uint32_t computing;  /* slot, or LIVE_NO_SLOT */
    uint32_t owner;      /* owner in live->queue of its computation */
    uint16_t kind;       /* its row of units */
    uint8_t loaded;      /* number of slots that wait to compute ... */
    uint8_t first_loaded; /* ... in live->loaded, a ring of slot_limit for each device */
    bool slowed;         /* see struct stream of sim.c */
    uint64_t free_bits;  /* free slots, a bit for each */
    uint64_t memory_least; /* least free memory so far */
    double in_latency_s, out_latency_s;
    double in_rate, out_rate; /* of copies without contention */
};
static_assert(sizeof(struct live_device) == SIM_LINE, "a device is a cache line");

/* Sets of devices, a bit for each. */
struct live_set {
    uint64_t *words;
    uint32_t count;
};

struct live {
    const struct instance *in;
    const struct hardware *hardware;
    const struct sim_live_options *options;
    struct trace *trace;
    struct arena arena;
    struct policy_session session;
    struct policy_view view;
    struct policy_job *jobs_shown;
    struct policy_device *devices_shown;
    struct policy_cost *costs;     /* (unit_count, class_count) */
    struct live_unit *units;       /* (kind_count, unit_count), each in a cache line */
    struct live_job *jobs;
    struct live_slot *slots;       /* device_count * slot_limit, each in a cache line */
    struct live_spanned *spanned;  /* likewise; where spans are recorded */
    struct live_device *devices;
    uint32_t *loaded;
    uint32_t *flow_paths;          /* by flow: 2 device + out */
    struct live_set *with_free;    /* [n]: devices with n free slots; n up to slot_limit */
    struct sim_ready ranked;       /* jobs that are ready; where the policy ranks */
    bool ranks;                    /* else the policy is asked in every decision */
    uint32_t ready_count;          /* jobs */
    struct sim_flows *flows;
    struct sim_interference *interference;
    struct sim_queue *queue;
    uint32_t *owner_events;        /* by owner: enum live_event << LIVE_EVENT_SHIFT | its number */
    uint32_t *bundle_owners;       /* by bundle of flows */
    uint32_t *latency_owners;      /* by slot; where there is latency */
    uint32_t slot_limit, word_count;
    uint32_t device_count;         /* that the policy may use */
    uint32_t kind_count, open_slots; /* free ones */
    bool flows_changed, slowing_changed; /* since they were settled */
    bool slowed;                   /* some device is */
    struct sim_stream_use *uses;   /* by stream of the trace */
    double now_s, ticks_per_s;
    uint64_t chosen, done, total;  /* units */
    uint64_t operations, events, spans;
};

/* live_create.c. Frees with live_release(), also after an error. */
MUST_CHECK enum status live_create(struct live *live, struct error *err);
void live_release(struct live *live);

/* Streams of the trace: of a device its computations, then copies in and out of each slot. */
static inline uint32_t live_stream(const struct live *live, uint32_t device, uint32_t slot,
                                   enum live_phase phase)
{
    uint32_t first = device * (1 + 2 * live->slot_limit);
    return phase == LIVE_COMPUTE ? first : first + 1 + 2 * slot + (phase == LIVE_OUT);
}

/* The meaning of an owner of live->queue, with its number. */
enum live_event { LIVE_FLOWS, LIVE_COMPUTING, LIVE_LATENCY };
enum { LIVE_EVENT_SHIFT = 30 };

/* live_view.c: the policy's side. */

/* Lets the job's next unit be chosen; at the start, or when the previous one is over. */
MUST_CHECK enum status live_show_ready(struct live *live, uint32_t job, struct error *err);

/* Finds a job and a device with a free slot, by the policy. *waits: none, ask when something has ended. */
MUST_CHECK enum status live_ask(struct live *live, struct policy_choice *out, bool *waits,
                                struct error *err);

/* Prefetches what the next choice looks at, if nothing better becomes ready before. */
void live_expect(struct live *live);

/* The job's unit takes a slot, whose number is returned; has been given back. */
uint32_t live_acquire_slot(struct live *live, uint32_t job, uint32_t device, const struct live_unit *unit);
void live_give_slot(struct live *live, uint32_t slot);

#endif
