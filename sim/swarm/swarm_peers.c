/*
 * A peer is away, joining (it fetches its stage's state) or ready. It leaves by failing or by moving. Both lose its
 * work, and requests to it stay unanswered. Moves after a step lose nothing, because no microbatch is under way.
 *
 * Rebalancing uses the average number of microbatches at a stage, per peer. It moves the peer that most raises the
 * lower of the two stages' rates, and none if that rate would not rise: a stage with randomly more requests gets no
 * peer.
 *
 * Source: SWARM, section 3.3 and its appendix (queues, one peer at a time); the final check of rates is ours.
 */
#include "sim/swarm/swarm_state.h"

#include "base/random.h"

/* --- chance ----------------------------------------------------------------------------------- */

enum { DRAW_LIFE, DRAW_SLOW };

static double exponential(const struct swarm_state *r, uint32_t p, uint32_t kind, uint32_t *draws)
{
    return random_exponential(random_u64(r->options->seed, 2 * (uint64_t)p + kind), (*draws)++);
}

static void draw_life(struct swarm_state *r, uint32_t p)
{
    const struct failures *failures = &swarm_group_at(r, p)->failures;
    if (failures->mtbf_s == HUGE_VAL) return;
    double life_s = failures_life_s(failures, exponential(r, p, DRAW_LIFE, &r->peer[p].life_draws));
    sim_queue_set(r->queue, swarm_owner_life(r, p), r->now_s + life_s, sim_order(SWARM_ORDER_LIFE, p));
}

static void draw_slow(struct swarm_state *r, uint32_t p)
{
    const struct failures *failures = &swarm_group_at(r, p)->failures;
    struct swarm_peer *peer = &r->peer[p];
    if (failures->straggle_every_s == HUGE_VAL) return;
    double mean_s = peer->slow ? failures->straggle_s : failures->straggle_every_s;
    sim_queue_set(r->queue, swarm_owner_slow(r, p), r->now_s + mean_s * exponential(r, p, DRAW_SLOW, &peer->slow_draws),
                  sim_order(SWARM_ORDER_SLOW, p));
}

static void set_trace(struct swarm_state *r)
{
    if (r->trace_next < r->trace_count)
        sim_queue_set(r->queue, swarm_owner_trace(r), r->trace[r->trace_next].at_s, sim_order(SWARM_ORDER_TRACE, 0));
}

double swarm_peer_slowdown(const struct swarm_state *r, uint32_t p)
{
    const struct swarm_peer *peer = &r->peer[p];
    return fmax(peer->slow ? swarm_group_at(r, p)->failures.straggle_factor : 1,
                r->now_s < peer->slow_until_s ? peer->slow_factor : 1);
}

/* --- joining ---------------------------------------------------------------------------------- */

/* Adds the peer's presence up to now to its stage. */
static void count_presence(struct swarm_state *r, uint32_t p)
{
    struct swarm_peer *peer = &r->peer[p];
    if (peer->state == SWARM_PEER_AWAY) return;
    r->out->peers[p].present_s += r->now_s - peer->since_s;
    if (!r->averaging) r->out->peers[p].working_s += r->now_s - peer->since_s;
    r->out->stages[peer->stage].present_s += r->now_s - peer->since_s;
    peer->since_s = r->now_s;
}

void swarm_averaging_set(struct swarm_state *r, bool averaging)
{
    for (uint32_t p = 0; p < r->peers; p++) count_presence(r, p);
    if (averaging)
        r->averaging_begin_s = r->now_s;
    else
        r->out->averaging_s += r->now_s - r->averaging_begin_s;
    r->averaging = averaging;
}

/* Returns the number of transfers that its link up has to finish. */
static uint32_t waiting(const struct swarm_state *r, uint32_t p)
{
    uint32_t count = r->peer[p].sending;
    for (uint32_t i = r->peer[p].parcels.head; i != SWARM_NONE; i = r->parcels[i].next) count++;
    return count;
}

static void fetch_piece(struct swarm_state *r, uint32_t p)
{
    const struct swarm_peer *peer = &r->peer[p];
    uint32_t from = SWARM_NONE, fewest = UINT32_MAX;
    for (uint32_t q = 0; q < r->peers; q++) {
        if (r->peer[q].stage != peer->stage || r->peer[q].state != SWARM_PEER_READY) continue;
        uint32_t here = waiting(r, q);
        if (here >= fewest) continue;
        fewest = here;
        from = q;
    }
    swarm_link_send(r, r->slots + p, from, p, r->in->stages[peer->stage].state_bytes / SWARM_PIECES);
}

static void become_ready(struct swarm_state *r, uint32_t p)
{
    r->peer[p].state = SWARM_PEER_READY;
    r->parcels[r->slots + p].place = SWARM_PARCEL_NOWHERE;
    swarm_route_welcome(r, p);
    swarm_wake(r);
}

void swarm_peer_piece(struct swarm_state *r, uint32_t p)
{
    if (--r->peer[p].pieces_left > 0)
        fetch_piece(r, p);
    else
        become_ready(r, p);
}

static void join(struct swarm_state *r, uint32_t p, uint32_t stage)
{
    struct swarm_peer *peer = &r->peer[p];
    if (stage != peer->stage) r->out->moves++;
    peer->stage = stage;
    peer->state = SWARM_PEER_JOINING;
    peer->since_s = peer->down_free_s = r->now_s;
    peer->pieces_left = SWARM_PIECES;
    if (r->in->stages[stage].state_bytes > 0)
        fetch_piece(r, p);
    else
        become_ready(r, p);
}

/* --- leaving ---------------------------------------------------------------------------------- */

static void stop_fetching(struct swarm_state *r, uint32_t p)
{
    struct swarm_parcel *piece = &r->parcels[r->slots + p];
    if (piece->place == SWARM_PARCEL_WAITING) swarm_line_remove(r, &r->peer[piece->from].parcels, r->slots + p);
    if (piece->place == SWARM_PARCEL_FLYING) sim_queue_remove(r->queue, swarm_owner_parcel(r, r->slots + p));
    piece->place = SWARM_PARCEL_NOWHERE;
}

static void leave(struct swarm_state *r, uint32_t p)
{
    struct swarm_peer *peer = &r->peer[p];
    count_presence(r, p);
    if (peer->state == SWARM_PEER_READY && r->averaging) {
        swarm_averaging_set(r, false); /* swarm_settle() starts it again */
        sim_queue_remove(r->queue, swarm_owner_averaging(r));
    }
    peer->state = SWARM_PEER_AWAY;
    stop_fetching(r, p);
    swarm_lose(r, p);
    for (uint32_t q = 0; q < r->peers; q++) {
        const struct swarm_parcel *piece = &r->parcels[r->slots + q];
        if (piece->place == SWARM_PARCEL_NOWHERE || piece->from != p) continue;
        stop_fetching(r, q);
        fetch_piece(r, q);
    }
    sim_queue_remove(r->queue, swarm_owner_link(r, p));
    peer->sending = false;
    r->gradients[peer->stage] -= peer->gradients;
    r->out->lost_s += peer->gradients_s;
    peer->gradients = 0;
    peer->gradients_s = 0;
}

/* --- stages ----------------------------------------------------------------------------------- */

static double rate_at(const struct swarm_state *r, uint32_t p, uint32_t stage)
{
    return swarm_rate(r->in, r->peer[p].group, stage);
}

struct strength {
    double rate; /* of its peers, joining ones included */
    uint32_t present, ready;
};

static void measure(const struct swarm_state *r, struct strength out[SWARM_STAGES_MAX])
{
    for (uint32_t s = 0; s < r->stages; s++) out[s] = (struct strength){0};
    for (uint32_t p = 0; p < r->peers; p++) {
        const struct swarm_peer *peer = &r->peer[p];
        if (peer->state == SWARM_PEER_AWAY) continue;
        out[peer->stage].rate += rate_at(r, p, peer->stage);
        out[peer->stage].present++;
        out[peer->stage].ready += peer->state == SWARM_PEER_READY;
    }
}

/* Moves the most capable peer for a stage without peers, from a stage with several. */
static void fill_empty(struct swarm_state *r, uint32_t stage)
{
    struct strength strength[SWARM_STAGES_MAX];
    uint32_t best = SWARM_NONE;
    measure(r, strength);
    if (!swarm_rebalances(r) || strength[stage].present > 0) return;
    for (uint32_t p = 0; p < r->peers; p++)
        if (r->peer[p].state == SWARM_PEER_READY && strength[r->peer[p].stage].ready > 1 &&
            (best == SWARM_NONE || rate_at(r, p, stage) > rate_at(r, best, stage)))
            best = p;
    if (best == SWARM_NONE) return;
    leave(r, best);
    join(r, best, stage);
}

void swarm_queue_count(struct swarm_state *r, uint32_t stage, int change)
{
    r->queued_s[stage] += r->queued[stage] * (r->now_s - r->counted_s[stage]);
    r->counted_s[stage] = r->now_s;
    r->queued[stage] += (uint32_t)change;
}

/* Returns the peer of `from` whose move most raises the lower rate of the two; SWARM_NONE: none does. */
static uint32_t best_move(const struct swarm_state *r, const struct strength *strength, uint32_t from, uint32_t to)
{
    double best_rate = fmin(strength[from].rate, strength[to].rate) * (1 + 1e-9);
    uint32_t best = SWARM_NONE;
    for (uint32_t p = 0; p < r->peers; p++) {
        if (r->peer[p].stage != from || r->peer[p].state != SWARM_PEER_READY) continue;
        double rate = fmin(strength[from].rate - rate_at(r, p, from), strength[to].rate + rate_at(r, p, to));
        if (rate <= best_rate) continue;
        best_rate = rate;
        best = p;
    }
    return best;
}

void swarm_peers_rebalance(struct swarm_state *r)
{
    struct strength strength[SWARM_STAGES_MAX];
    double load[SWARM_STAGES_MAX];
    uint32_t least = 0, most = 0;
    if (!swarm_rebalances(r) || r->now_s < r->rebalanced_s + r->options->rebalance_s) return;
    r->rebalanced_s = r->now_s;
    measure(r, strength);
    for (uint32_t s = 0; s < r->stages; s++) {
        swarm_queue_count(r, s, 0);
        load[s] = strength[s].present > 0 ? r->queued_s[s] / strength[s].present : HUGE_VAL;
        r->queued_s[s] = 0;
        if (load[s] < load[least]) least = s;
        if (load[s] > load[most]) most = s;
    }
    uint32_t p = strength[least].ready > 1 && least != most ? best_move(r, strength, least, most) : SWARM_NONE;
    if (p == SWARM_NONE) return;
    leave(r, p);
    join(r, p, most);
}

/* --- failing and returning ----------------------------------------------------------------- */

/* Fails a peer for away_s seconds; < 0: for a random repair time. */
static void fail(struct swarm_state *r, uint32_t p, double away_s)
{
    struct swarm_peer *peer = &r->peer[p];
    uint32_t stage = peer->stage;
    double repair_s = swarm_group_at(r, p)->failures.repair_s;
    if (away_s < 0) away_s = repair_s > 0 ? repair_s * exponential(r, p, DRAW_LIFE, &peer->life_draws) : 0;
    r->out->failures++;
    leave(r, p);
    sim_queue_set(r->queue, swarm_owner_life(r, p), r->now_s + away_s, sim_order(SWARM_ORDER_LIFE, p));
    fill_empty(r, stage);
    swarm_settle(r);
}

static void come_back(struct swarm_state *r, uint32_t p)
{
    struct strength strength[SWARM_STAGES_MAX];
    uint32_t stage = r->peer[p].home;
    sim_queue_remove(r->queue, swarm_owner_life(r, p));
    draw_life(r, p);
    if (swarm_rebalances(r)) {
        measure(r, strength);
        stage = 0;
        for (uint32_t s = 1; s < r->stages; s++)
            if (strength[s].rate < strength[stage].rate) stage = s;
    }
    join(r, p, stage);
}

void swarm_peer_life(struct swarm_state *r, uint32_t p)
{
    if (r->peer[p].state == SWARM_PEER_AWAY)
        come_back(r, p);
    else
        fail(r, p, -1);
}

void swarm_peer_slow(struct swarm_state *r, uint32_t p)
{
    r->peer[p].slow = !r->peer[p].slow;
    draw_slow(r, p);
}

void swarm_peer_trace(struct swarm_state *r)
{
    const struct swarm_trace_event *event = &r->trace[r->trace_next++];
    struct swarm_peer *peer = &r->peer[event->peer];
    set_trace(r);
    if (event->factor > 0) {
        peer->slow_until_s = event->at_s + event->for_s;
        peer->slow_factor = event->factor;
    } else if (peer->state != SWARM_PEER_AWAY) {
        fail(r, event->peer, event->for_s);
    }
}

void swarm_peers_begin(struct swarm_state *r, const uint32_t *stages)
{
    for (uint32_t p = 0; p < r->peers; p++) {
        r->peer[p] = (struct swarm_peer){.group = swarm_group_of(r->in, p),
                                         .stage = stages[p],
                                         .state = SWARM_PEER_READY,
                                         .home = stages[p],
                                         .passes = {SWARM_NONE, SWARM_NONE},
                                         .parcels = {SWARM_NONE, SWARM_NONE}};
        draw_life(r, p);
        draw_slow(r, p);
    }
    set_trace(r);
}

void swarm_peers_end(struct swarm_state *r)
{
    for (uint32_t p = 0; p < r->peers; p++) {
        const struct swarm_peer *peer = &r->peer[p];
        count_presence(r, p);
        r->out->peers[p].stage = peer->stage;
        r->out->open_s += peer->gradients_s;
        if (peer->passes.head == SWARM_NONE) continue;
        r->out->peers[p].busy_s += r->now_s - peer->pass_begin_s;
        r->out->stages[peer->stage].busy_s += r->now_s - peer->pass_begin_s;
        r->out->open_s += r->now_s - peer->pass_begin_s;
    }
}
