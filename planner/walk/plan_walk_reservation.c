/*
 * Each device of each reservation is an *entry*, numbered as in plan->reservation_devices. When a reservation begins,
 * its entries get their devices' previous entries.
 *
 *     reservations       0: devices 0 1     1: devices 2 3     2: devices 1 2
 *     entries         0 1                2 3                4 5
 *     before          - -                - -                1 2      so reservation 2 waits for 0 and 1
 *
 * Cost: a few instructions per operation; at a reservation's beginning, the devices of it and of the reservations
 * before it.
 */
#include "planner/walk/plan_walk_reservation.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct reservation_ends {
    const struct plan *plan;
    uint32_t local_count;   /* streams of a device */
    uint32_t *owners;       /* per entry: its reservation */
    uint32_t *before;       /* per entry: the previous entry of its device, or PLAN_NONE */
    uint32_t *current;      /* per device: its current entry, or PLAN_NONE */
    uint64_t *last;         /* [entry][stream of its device]: time of the last operation; 0: none yet */
    bool *begun;            /* per reservation */
    uint32_t *seen;         /* per reservation: 1 + the reservation that last listed it */
    struct reservation_end *list; /* [entry][stream] */
};

struct reservation_ends *reservation_ends_create(const struct plan *plan)
{
    struct reservation_ends *ends = alloc_zeroed(1, sizeof *ends);
    if (!ends) return NULL;
    size_t entries = plan->reservation_device_count, reservations = plan->reservation_count;
    ends->plan = plan;
    ends->local_count = plan_device_streams(plan);
    ends->owners = alloc_zeroed(entries, sizeof *ends->owners);
    ends->before = alloc_zeroed(entries, sizeof *ends->before);
    ends->current = alloc_zeroed(plan->hardware.device_count, sizeof *ends->current);
    ends->last = alloc_zeroed(entries * ends->local_count, sizeof *ends->last);
    ends->list = alloc_zeroed(entries * ends->local_count, sizeof *ends->list);
    ends->begun = alloc_zeroed(reservations, sizeof *ends->begun);
    ends->seen = alloc_zeroed(reservations, sizeof *ends->seen);
    if (!ends->owners || !ends->before || !ends->current || !ends->last || !ends->list || !ends->begun ||
        !ends->seen) {
        reservation_ends_destroy(ends);
        return NULL;
    }
    for (uint32_t l = 0; l < reservations; l++)
        for (uint32_t i = 0; i < plan->reservations[l].device_count; i++)
            ends->owners[plan->reservations[l].first_device + i] = l;
    reservation_ends_clear(ends);
    return ends;
}

void reservation_ends_destroy(struct reservation_ends *ends)
{
    if (!ends) return;
    free(ends->owners);
    free(ends->before);
    free(ends->current);
    free(ends->last);
    free(ends->list);
    free(ends->begun);
    free(ends->seen);
    free(ends);
}

void reservation_ends_clear(struct reservation_ends *ends)
{
    const struct plan *plan = ends->plan;
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) ends->current[d] = PLAN_NONE;
    memset(ends->last, 0, (size_t)plan->reservation_device_count * ends->local_count * sizeof *ends->last);
    memset(ends->begun, 0, plan->reservation_count * sizeof *ends->begun);
    memset(ends->seen, 0, plan->reservation_count * sizeof *ends->seen);
}

static void begin(struct reservation_ends *ends, uint32_t reservation)
{
    const struct plan_reservation *about = &ends->plan->reservations[reservation];
    ends->begun[reservation] = true;
    for (uint32_t i = 0; i < about->device_count; i++) {
        uint32_t *current = &ends->current[plan_reservation_devices(ends->plan, reservation)[i]];
        ends->before[about->first_device + i] = *current;
        *current = about->first_device + i;
    }
}

/* Lists the last operations of an earlier reservation, unless they are listed already. */
static uint32_t list_ends(struct reservation_ends *ends, uint32_t front, uint32_t reservation, uint32_t count)
{
    const struct plan_reservation *about = &ends->plan->reservations[front];
    if (ends->seen[front] == reservation + 1) return count;
    ends->seen[front] = reservation + 1;
    for (uint32_t i = 0; i < about->device_count; i++)
        for (uint32_t kind = 0; kind < ends->local_count; kind++) {
            uint32_t device = plan_reservation_devices(ends->plan, front)[i];
            uint64_t time = ends->last[(size_t)(about->first_device + i) * ends->local_count + kind];
            if (time > 0)
                ends->list[count++] = (struct reservation_end){plan_stream(ends->plan, device, kind), time};
        }
    return count;
}

uint32_t reservation_ends_note(struct reservation_ends *ends, uint32_t reservation, uint32_t device, uint32_t kind,
                               uint64_t time, const struct reservation_end **out)
{
    const struct plan_reservation *about = &ends->plan->reservations[reservation];
    if (!ends->begun[reservation]) begin(ends, reservation);
    uint64_t *last = &ends->last[(size_t)ends->current[device] * ends->local_count + kind];
    bool first = *last == 0;
    uint32_t count = 0;
    *last = time;
    *out = ends->list;
    if (!first) return 0;
    for (uint32_t i = 0; i < about->device_count; i++) {
        uint32_t before = ends->before[about->first_device + i];
        if (before != PLAN_NONE) count = list_ends(ends, ends->owners[before], reservation, count);
    }
    if (about->follows != PLAN_NONE) count = list_ends(ends, about->follows, reservation, count);
    for (uint32_t i = 0; i < about->device_count; i++) {
        uint32_t before = ends->before[about->first_device + i];
        if (before != PLAN_NONE) ends->seen[ends->owners[before]] = 0;
    }
    if (about->follows != PLAN_NONE) ends->seen[about->follows] = 0;
    return count;
}
