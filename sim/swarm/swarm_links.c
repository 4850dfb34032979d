/*
 * A transfer uses the sender's link up for bytes / rate once that is free, and from then on the receiver's link down
 * for bytes / rate once that is free; then latencies follow. So the slower end decides, and a slow sender leaves the
 * receiver's link free.
 */
#include "sim/swarm/swarm_state.h"

void swarm_line_add(struct swarm_state *r, struct swarm_line *line, uint32_t parcel)
{
    r->parcels[parcel].next = SWARM_NONE;
    if (line->head == SWARM_NONE)
        line->head = parcel;
    else
        r->parcels[line->tail].next = parcel;
    line->tail = parcel;
}

uint32_t swarm_line_pop(struct swarm_state *r, struct swarm_line *line)
{
    uint32_t head = line->head;
    assert(head != SWARM_NONE);
    line->head = r->parcels[head].next;
    return head;
}

void swarm_line_remove(struct swarm_state *r, struct swarm_line *line, uint32_t parcel)
{
    uint32_t before = SWARM_NONE;
    for (uint32_t i = line->head; i != parcel; i = r->parcels[i].next) before = i;
    if (before == SWARM_NONE)
        line->head = r->parcels[parcel].next;
    else
        r->parcels[before].next = r->parcels[parcel].next;
    if (line->tail == parcel) line->tail = before;
}

/* Starts the transfer now; up_s: when the sender has finished. */
static void fly(struct swarm_state *r, uint32_t parcel, double up_s, double latency_s)
{
    struct swarm_parcel *it = &r->parcels[parcel];
    struct swarm_peer *to = &r->peer[it->to];
    const struct swarm_group *group = swarm_group_at(r, it->to);
    to->down_free_s = fmax(to->down_free_s, r->now_s) + it->bytes / group->down_bytes_per_s;
    it->place = SWARM_PARCEL_FLYING;
    sim_queue_set(r->queue, swarm_owner_parcel(r, parcel),
                  fmax(up_s, it->bytes > 0 ? to->down_free_s : up_s) + latency_s + group->latency_s,
                  sim_order(SWARM_ORDER_PARCEL, parcel));
}

static void send_next(struct swarm_state *r, uint32_t p)
{
    struct swarm_peer *peer = &r->peer[p];
    if (peer->sending || peer->parcels.head == SWARM_NONE) return;
    uint32_t parcel = swarm_line_pop(r, &peer->parcels);
    double up_s = r->now_s + r->parcels[parcel].bytes / swarm_group_at(r, p)->up_bytes_per_s;
    peer->sending = true;
    sim_queue_set(r->queue, swarm_owner_link(r, p), up_s, sim_order(SWARM_ORDER_LINK, p));
    fly(r, parcel, up_s, swarm_group_at(r, p)->latency_s);
}

void swarm_link_send(struct swarm_state *r, uint32_t parcel, uint32_t from, uint32_t to, double bytes)
{
    r->parcels[parcel] = (struct swarm_parcel){.place = SWARM_PARCEL_WAITING, .from = from, .to = to, .bytes = bytes};
    if (from == SWARM_NONE) {
        fly(r, parcel, r->now_s, 0);
        return;
    }
    swarm_line_add(r, &r->peer[from].parcels, parcel);
    send_next(r, from);
}

void swarm_link_free(struct swarm_state *r, uint32_t p)
{
    r->peer[p].sending = false;
    send_next(r, p);
}
