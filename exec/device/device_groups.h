/*
 * Collectives between the devices of a process by a library, which a back end may have (exec/nccl).
 *
 * The members of a communicator are devices in a fixed order. All members' parts of a collective are enqueued together,
 * by one thread, on a stream that each device has for collectives:
 *
 *     begin()   each member's stream waits until all members' streams have come to this place
 *     call()    a member's part of one of the collectives; all of them are one group
 *     end()     each member's stream goes on when the group has ended
 *
 * begin() takes a lock that end() releases, so groups have one order on all devices, and none waits for another in a
 * circle.
 */
#ifndef SPILLWAY_EXEC_DEVICE_DEVICE_GROUPS_H
#define SPILLWAY_EXEC_DEVICE_DEVICE_GROUPS_H

#include "exec/device/device.h"

enum group_call_kind { GROUP_ALL_REDUCE, GROUP_REDUCE_SCATTER, GROUP_ALL_GATHER, GROUP_REDUCE, GROUP_BROADCAST };
enum group_type { GROUP_FP32, GROUP_FP64, GROUP_BYTES };

/*
 * A member's part. `count` numbers of the type go from `from` to `to`; a reduce-scatter's `from` and an all-gather's
 * `to` have as many for each member, in their order. Sums are in the library's order. `to` may be the same range as
 * `from`, or as the member's share of it.
 */
struct group_call {
    uint32_t kind, type; /* enum group_call_kind, group_type */
    uint32_t member;
    uint32_t root; /* GROUP_REDUCE, GROUP_BROADCAST */
    const void *from;
    void *to; /* GROUP_REDUCE: used only by the root */
    uint64_t count;
};

struct groups_session;

struct group_library {
    /* Looks for the library without a device; *version is "NCCL 2.28.9". Errors: STATUS_DEVICE, not found. */
    enum status (*find)(char *version, size_t size, struct error *err);
    /* Devices are open, of this back end, and outlive it. `ordered`: equal runs on equal machines add up in one order.
     * The caller closes it. Errors: STATUS_DEVICE, STATUS_NO_MEMORY. */
    enum status (*open)(struct device *const *devices, uint32_t device_count, bool ordered, struct groups_session **out,
                        struct error *err);
    /* Makes a communicator and tries each kind of collective, so that nothing is left to be loaded later. Overwrites
     * the first KiB of the members' arenas. *number is 0, 1, ... Errors: STATUS_DEVICE. */
    enum status (*add)(struct groups_session *groups, const uint32_t *members, uint32_t count, uint32_t *number,
                       struct error *err);
    /* streams[member], whose threads are all in a call of device_call_ahead(); borrowed until end() */
    void (*begin)(struct groups_session *groups, uint32_t number, struct device_stream *const *streams);
    void (*call)(struct groups_session *groups, const struct group_call *call);
    /* Returns false if nothing was enqueued, because the communicator has failed: its devices are lost. */
    bool (*end)(struct groups_session *groups);
    /* From a call on the stream's own thread, after end(): enqueues to += from. */
    void (*accumulate)(struct device_stream *stream, float *to, const float *from, uint64_t count);
    /* Ends what hangs, so that the devices can be stopped. NULL does nothing. */
    void (*stop)(struct groups_session *groups);
    /* Between device_stop() and device_close() of all devices. NULL does nothing. */
    void (*close)(struct groups_session *groups);
};

#ifdef SPILLWAY_CUDA
extern const struct group_library group_library_nccl; /* of exec/nccl */
#endif

#endif
