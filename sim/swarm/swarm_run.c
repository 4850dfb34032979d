/*
 * The path of a microbatch. A microbatch's *goal* is the stage of its next backward pass, initially the last. Which
 * peers have which data decides its next action (swarm_microbatch_advance()):
 *
 *   the gradient of the stage after the goal is lost   it is dropped
 *   the goal's activations are there                   backward there, from the peer of the stage after it
 *   else                                               forward, from the last earlier stage with activations
 *
 * so that first, repeated passes and stages are one case.
 *
 * A step needs the gradients of `batch` microbatches in each stage. No more microbatches are under way than the
 * neediest stage lacks. When it has all gradients, the remaining microbatches finish first.
 */
#include <stdlib.h>

#include "base/try.h"
#include "sim/swarm/swarm_state.h"

/* --- passes ----------------------------------------------------------------------------------- */

static void start_pass(struct swarm_state *r, uint32_t p)
{
    struct swarm_peer *peer = &r->peer[p];
    if (peer->passes.head == SWARM_NONE) return;
    const struct swarm_microbatch *it = &r->microbatches[peer->passes.head];
    const struct swarm_passes *passes = &swarm_group_at(r, p)->passes[it->stage];
    peer->pass_begin_s = r->now_s;
    sim_queue_set(r->queue, swarm_owner_pass(r, p),
                  r->now_s + (it->backward ? passes->backward_s : passes->forward_s) * swarm_peer_slowdown(r, p),
                  sim_order(SWARM_ORDER_PASS, p));
}

static void queue_pass(struct swarm_state *r, uint32_t m, uint32_t p)
{
    struct swarm_peer *peer = &r->peer[p];
    bool idle = peer->passes.head == SWARM_NONE;
    r->parcels[m].place = SWARM_PARCEL_QUEUED;
    swarm_line_add(r, &peer->passes, m);
    swarm_queue_count(r, r->microbatches[m].stage, 1);
    if (idle) start_pass(r, p);
}

/* Counts the seconds of the pass that ends now or is interrupted. */
static double count_pass(struct swarm_state *r, uint32_t p, uint32_t m, bool lost)
{
    const struct swarm_microbatch *it = &r->microbatches[m];
    double begin_s = r->peer[p].pass_begin_s, span_s = r->now_s - begin_s;
    r->out->peers[p].busy_s += span_s;
    r->out->stages[it->stage].busy_s += span_s;
    if (r->options->on_span)
        r->options->on_span(r->options->context, &(struct swarm_span){p, it->stage, m, it->backward, lost, begin_s,
                                                                      r->now_s});
    return span_s;
}

/* --- microbatches ----------------------------------------------------------------------------- */

static void let_go(struct swarm_state *r, uint32_t m)
{
    for (uint32_t s = 0; s < r->stages; s++) {
        r->out->lost_s += *swarm_held_of(r, m, s); /* zero, if it has finished */
        *swarm_held_of(r, m, s) = 0;
        *swarm_holder_of(r, m, s) = SWARM_NONE;
    }
    if (r->pipeline_count > 0) r->pipeline_load[r->microbatches[m].pipeline]--;
    r->parcels[m].place = SWARM_PARCEL_NOWHERE;
    r->free_slots[r->free_count++] = m;
    r->alive--;
    swarm_settle(r);
}

static void swarm_microbatch_pause(struct swarm_state *r, uint32_t m, uint32_t blamed)
{
    r->out->unanswered++;
    r->parcels[m].place = SWARM_PARCEL_PAUSED;
    r->microbatches[m].blamed = blamed;
    r->microbatches[m].answering = SWARM_NONE;
    sim_queue_set(r->queue, swarm_owner_parcel(r, m), r->now_s + r->in->timeout_s, sim_order(SWARM_ORDER_PARCEL, m));
}

static void strand(struct swarm_state *r, uint32_t m)
{
    const struct swarm_microbatch *it = &r->microbatches[m];
    double end_s = swarm_route_ban_end_s(r, it->trainer, it->stage);
    r->parcels[m].place = SWARM_PARCEL_STRANDED;
    if (end_s < HUGE_VAL) sim_queue_set(r->queue, swarm_owner_parcel(r, m), end_s, sim_order(SWARM_ORDER_PARCEL, m));
}

static void go_back(struct swarm_state *r, uint32_t m)
{
    struct swarm_microbatch *it = &r->microbatches[m];
    uint32_t p = *swarm_holder_of(r, m, it->goal);
    it->stage = it->goal;
    it->backward = true;
    r->peer[p].under_way++;
    if (it->goal + 1 < r->stages) {
        swarm_link_send(r, m, *swarm_holder_of(r, m, it->goal + 1), p, r->in->stages[it->goal].boundary_bytes);
    } else {
        r->parcels[m] = (struct swarm_parcel){.from = SWARM_NONE, .to = p};
        queue_pass(r, m, p);
    }
}

static void go_forward(struct swarm_state *r, uint32_t m)
{
    struct swarm_microbatch *it = &r->microbatches[m];
    uint32_t s = it->goal;
    while (s > 0 && *swarm_holder_of(r, m, s - 1) == SWARM_NONE) s--;
    it->stage = s;
    it->backward = false;
    it->asked_s = r->now_s;
    uint32_t p = swarm_route_choose(r, m);
    if (p == SWARM_NONE) {
        strand(r, m);
    } else if (r->peer[p].state == SWARM_PEER_READY) {
        r->peer[p].under_way++;
        swarm_link_send(r, m, s > 0 ? *swarm_holder_of(r, m, s - 1) : SWARM_NONE, p,
                        s > 0 ? r->in->stages[s - 1].boundary_bytes : 0);
    } else if (r->options->wiring == SWARM_FIXED) {
        r->out->given_up++;
        let_go(r, m);
    } else {
        swarm_microbatch_pause(r, m, p);
    }
}

static void swarm_microbatch_advance(struct swarm_state *r, uint32_t m)
{
    const struct swarm_microbatch *it = &r->microbatches[m];
    if (it->goal + 1 < r->stages && *swarm_holder_of(r, m, it->goal + 1) == SWARM_NONE) {
        r->out->given_up++;
        let_go(r, m);
    } else if (*swarm_holder_of(r, m, it->goal) != SWARM_NONE) {
        go_back(r, m);
    } else {
        go_forward(r, m);
    }
}

static void end_forward(struct swarm_state *r, uint32_t m, uint32_t p, double span_s)
{
    struct swarm_microbatch *it = &r->microbatches[m];
    *swarm_holder_of(r, m, it->stage) = p;
    *swarm_held_of(r, m, it->stage) = span_s;
    if (it->stage < it->farthest)
        r->out->repeated++;
    else
        it->farthest = it->stage + 1;
    it->answering = p;
    it->answering_s = it->asked_s;
    if (it->stage + 1 == r->stages) swarm_route_answered(r, m);
    swarm_microbatch_advance(r, m);
}

static void end_backward(struct swarm_state *r, uint32_t m, uint32_t p, double span_s)
{
    struct swarm_microbatch *it = &r->microbatches[m];
    r->peer[p].gradients++;
    r->peer[p].gradients_s += *swarm_held_of(r, m, it->stage) + span_s;
    r->gradients[it->stage]++;
    *swarm_held_of(r, m, it->stage) = 0;
    if (it->stage + 1 < r->stages) *swarm_holder_of(r, m, it->stage + 1) = SWARM_NONE;
    if (it->stage == 0) {
        let_go(r, m);
        return;
    }
    it->goal = it->stage - 1;
    if (*swarm_holder_of(r, m, it->goal) != SWARM_NONE)
        swarm_microbatch_advance(r, m);
    else
        swarm_microbatch_pause(r, m, SWARM_NONE); /* it asks a peer that is gone */
}

static void end_pass(struct swarm_state *r, uint32_t p)
{
    uint32_t m = swarm_line_pop(r, &r->peer[p].passes);
    double span_s = count_pass(r, p, m, false);
    r->peer[p].under_way--;
    r->out->peers[p].passes++;
    r->out->stages[r->microbatches[m].stage].passes++;
    swarm_queue_count(r, r->microbatches[m].stage, -1);
    start_pass(r, p);
    (r->microbatches[m].backward ? end_backward : end_forward)(r, m, p, span_s);
}

static void parcel_event(struct swarm_state *r, uint32_t parcel)
{
    if (parcel >= r->slots) {
        swarm_peer_piece(r, parcel - r->slots);
        return;
    }
    struct swarm_microbatch *it = &r->microbatches[parcel];
    if (r->parcels[parcel].place == SWARM_PARCEL_FLYING) {
        if (!it->backward) swarm_route_answered(r, parcel);
        queue_pass(r, parcel, r->parcels[parcel].to);
        return;
    }
    if (r->parcels[parcel].place == SWARM_PARCEL_PAUSED && it->blamed != SWARM_NONE)
        swarm_route_ban(r, it->trainer, it->blamed);
    swarm_microbatch_advance(r, parcel);
}

/* --- losses of a failed peer ---------------------------------------------------------------- */

/* Stops the microbatch, and returns true, if it is at the peer, or on its way to or from it. */
static bool is_hit(struct swarm_state *r, uint32_t m, uint32_t p)
{
    const struct swarm_parcel *parcel = &r->parcels[m];
    switch ((enum swarm_parcel_place)parcel->place) {
    case SWARM_PARCEL_WAITING:
        if (parcel->from != p && parcel->to != p) return false;
        swarm_line_remove(r, &r->peer[parcel->from].parcels, m);
        break;
    case SWARM_PARCEL_FLYING:
        if (parcel->from != p && parcel->to != p) return false;
        sim_queue_remove(r->queue, swarm_owner_parcel(r, m));
        break;
    case SWARM_PARCEL_QUEUED:
        if (parcel->to != p) return false;
        swarm_queue_count(r, r->microbatches[m].stage, -1);
        break;
    default: return false;
    }
    r->peer[parcel->to].under_way--;
    return true;
}

void swarm_lose(struct swarm_state *r, uint32_t p)
{
    struct swarm_peer *peer = &r->peer[p];
    if (peer->passes.head != SWARM_NONE) r->out->lost_s += count_pass(r, p, peer->passes.head, true);
    sim_queue_remove(r->queue, swarm_owner_pass(r, p));
    for (uint32_t m = 0; m < r->slots; m++) {
        if (is_hit(r, m, p)) swarm_microbatch_pause(r, m, p);
        for (uint32_t s = 0; s < r->stages; s++) {
            if (*swarm_holder_of(r, m, s) != p) continue;
            r->out->lost_s += *swarm_held_of(r, m, s);
            *swarm_held_of(r, m, s) = 0;
            *swarm_holder_of(r, m, s) = SWARM_NONE;
        }
    }
    peer->passes = (struct swarm_line){SWARM_NONE, SWARM_NONE};
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Returns the seconds of a ring of n: 2 (n - 1) exchanges of an n-th, by its slowest link and latency. */
static double averaging_s(const struct swarm_state *r, uint32_t stage)
{
    double rate = HUGE_VAL, latency_s = 0, update_s = 0;
    uint32_t n = 0;
    for (uint32_t p = 0; p < r->peers; p++) {
        if (r->peer[p].stage != stage || r->peer[p].state != SWARM_PEER_READY) continue;
        const struct swarm_group *group = swarm_group_at(r, p);
        rate = fmin(rate, fmin(group->up_bytes_per_s, group->down_bytes_per_s));
        latency_s = fmax(latency_s, group->latency_s);
        update_s = fmax(update_s, group->passes[stage].update_s * swarm_peer_slowdown(r, p));
        n++;
    }
    if (n < 2) return update_s;
    return 2 * (n - 1) * (r->in->stages[stage].gradient_bytes / n / rate + 2 * latency_s) + update_s;
}

static void begin_averaging(struct swarm_state *r)
{
    double longest_s = 0;
    for (uint32_t s = 0; s < r->stages; s++) longest_s = fmax(longest_s, averaging_s(r, s));
    swarm_averaging_set(r, true);
    sim_queue_set(r->queue, swarm_owner_averaging(r), r->now_s + longest_s, sim_order(SWARM_ORDER_AVERAGING, 0));
}

static void end_averaging(struct swarm_state *r)
{
    swarm_averaging_set(r, false);
    for (uint32_t s = 0; s < r->stages; s++) r->gradients[s] = 0;
    for (uint32_t p = 0; p < r->peers; p++) {
        r->out->useful_s += r->peer[p].gradients_s;
        r->peer[p].gradients = 0;
        r->peer[p].gradients_s = 0;
    }
    r->ended = ++r->out->steps == r->in->steps;
    if (r->ended) return;
    swarm_peers_rebalance(r);
    swarm_settle(r);
}

/* Returns the pipeline with the fewest microbatches among those whose peers are all present. */
static uint32_t choose_pipeline(const struct swarm_state *r)
{
    uint32_t best = SWARM_NONE;
    for (uint32_t k = 0; k < r->pipeline_count; k++) {
        uint32_t s = 0;
        while (s < r->stages && r->peer[r->pipelines[(size_t)k * r->stages + s]].state == SWARM_PEER_READY) s++;
        if (s == r->stages && (best == SWARM_NONE || r->pipeline_load[k] < r->pipeline_load[best])) best = k;
    }
    return best;
}

void swarm_settle(struct swarm_state *r)
{
    uint64_t least = r->gradients[0];
    if (r->averaging || r->ended) return;
    for (uint32_t s = 1; s < r->stages; s++) least = r->gradients[s] < least ? r->gradients[s] : least;
    uint64_t needed = least < r->in->batch ? r->in->batch - least : 0;
    if (needed == 0 && r->alive == 0) begin_averaging(r);
    while (r->alive < needed && r->free_count > 0) {
        uint32_t pipeline = 0;
        if (r->options->wiring == SWARM_FIXED) {
            pipeline = choose_pipeline(r);
            if (pipeline == SWARM_NONE) return;
            r->pipeline_load[pipeline]++;
        }
        uint32_t m = r->free_slots[--r->free_count];
        r->microbatches[m] = (struct swarm_microbatch){.trainer = m % r->trainers, .pipeline = pipeline,
                                                       .goal = r->stages - 1, .answering = SWARM_NONE};
        r->alive++;
        swarm_microbatch_advance(r, m);
    }
}

void swarm_wake(struct swarm_state *r)
{
    for (uint32_t m = 0; m < r->slots; m++) {
        if (r->parcels[m].place != SWARM_PARCEL_STRANDED) continue;
        sim_queue_remove(r->queue, swarm_owner_parcel(r, m));
        swarm_microbatch_advance(r, m);
    }
    swarm_settle(r);
}

/* --- the run ---------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct swarm_trace_event *x = a, *y = b;
    if (x->at_s != y->at_s) return x->at_s < y->at_s ? -1 : 1;
    return (x->peer > y->peer) - (x->peer < y->peer);
}

static enum status merge_traces(struct swarm_state *r, struct arena *arena, struct error *err)
{
    for (uint32_t g = 0; g < r->in->group_count; g++) r->trace_count += r->in->groups[g].failures.event_count;
    TRY(ARENA_NEW(arena, r->trace_count, r->trace, err));
    uint32_t next = 0;
    for (uint32_t g = 0; g < r->in->group_count; g++)
        for (uint32_t i = 0; i < r->in->groups[g].failures.event_count; i++) {
            const struct failure_event *event = &r->in->groups[g].failures.events[i];
            r->trace[next++] = (struct swarm_trace_event){event->at_s, event->for_s, event->factor,
                                                          r->in->groups[g].first + event->device};
        }
    if (next > 0) qsort(r->trace, next, sizeof *r->trace, by_time);
    return STATUS_OK;
}

/* Makes pipelines of the k-th peers of all stages, for each k that every stage has. */
static enum status lay_pipelines(struct swarm_state *r, struct arena *arena, const uint32_t *stages, struct error *err)
{
    uint32_t peers[SWARM_STAGES_MAX] = {0};
    if (r->options->wiring != SWARM_FIXED) return STATUS_OK;
    for (uint32_t p = 0; p < r->peers; p++) peers[stages[p]]++;
    r->pipeline_count = r->peers;
    for (uint32_t s = 0; s < r->stages; s++)
        r->pipeline_count = peers[s] < r->pipeline_count ? peers[s] : r->pipeline_count;
    TRY(ARENA_NEW(arena, (size_t)r->pipeline_count * r->stages, r->pipelines, err));
    TRY(ARENA_NEW(arena, r->pipeline_count, r->pipeline_load, err));
    for (uint32_t s = 0; s < r->stages; s++) peers[s] = 0;
    for (uint32_t p = 0; p < r->peers; p++) {
        uint32_t s = stages[p], k = peers[s]++;
        if (k < r->pipeline_count) r->pipelines[(size_t)k * r->stages + s] = p;
    }
    return STATUS_OK;
}

static enum status place_peers(struct swarm_state *r, struct arena *arena, uint32_t *places, struct error *err)
{
    swarm_place(r->in, places);
    return lay_pipelines(r, arena, places, err);
}

static enum status allocate(struct swarm_state *r, struct arena *arena, struct error *err)
{
    size_t places = (size_t)r->slots * r->stages, chooses = (size_t)r->trainers * r->stages;
    TRY(ARENA_NEW(arena, r->slots + r->peers, r->parcels, err));
    TRY(ARENA_NEW(arena, r->slots, r->microbatches, err));
    TRY(ARENA_NEW(arena, r->slots, r->free_slots, err));
    TRY(ARENA_NEW(arena, places, r->holder, err));
    TRY(ARENA_NEW(arena, places, r->held_s, err));
    TRY(ARENA_NEW(arena, r->peers, r->peer, err));
    TRY(ARENA_NEW(arena, (size_t)r->trainers * r->peers, r->views, err));
    TRY(ARENA_NEW(arena, chooses, r->turns, err));
    TRY(ARENA_NEW(arena, chooses, r->asked_last, err));
    for (size_t i = 0; i < places; i++) r->holder[i] = SWARM_NONE;
    for (size_t i = 0; i < chooses; i++) r->asked_last[i] = (uint32_t)(i / r->stages + r->peers - 1) % r->peers;
    for (uint32_t m = r->slots; m-- > 0;) r->free_slots[r->free_count++] = m; /* so that the first slot is taken
                                                                                 first */
    return sim_queue_create(arena, swarm_owner_count(r), &r->queue, err);
}

static void happen(struct swarm_state *r, uint32_t owner)
{
    if (owner < swarm_owner_pass(r, 0))
        parcel_event(r, owner);
    else if (owner < swarm_owner_link(r, 0))
        end_pass(r, owner - swarm_owner_pass(r, 0));
    else if (owner < swarm_owner_life(r, 0))
        swarm_link_free(r, owner - swarm_owner_link(r, 0));
    else if (owner < swarm_owner_slow(r, 0))
        swarm_peer_life(r, owner - swarm_owner_life(r, 0));
    else if (owner < swarm_owner_trace(r))
        swarm_peer_slow(r, owner - swarm_owner_slow(r, 0));
    else if (owner == swarm_owner_trace(r))
        swarm_peer_trace(r);
    else
        end_averaging(r);
}

enum { EVENTS_BETWEEN_PROGRESS = 256 };

/* Reports progress; the run ends with its last step or its time limit, whichever is first. */
static void tell_progress(const struct swarm_state *r)
{
    double steps = r->in->steps > 0 ? (double)r->out->steps / (double)r->in->steps : 0;
    double time = r->in->time_s > 0 ? r->now_s / r->in->time_s : 0;
    r->options->on_progress(r->options->progress_context, steps > time ? steps : time);
}

static void play(struct swarm_state *r)
{
    struct sim_event event;
    uint64_t events = 0;
    swarm_settle(r);
    while (!r->ended && sim_queue_first(r->queue, &event) && event.time_s <= r->in->time_s) {
        (void)sim_queue_pop(r->queue, &event);
        r->now_s = event.time_s;
        happen(r, event.owner);
        if (r->options->on_progress && ++events % EVENTS_BETWEEN_PROGRESS == 0) tell_progress(r);
    }
    if (!r->ended) r->now_s = r->in->time_s;
    if (r->averaging) swarm_averaging_set(r, false);
    swarm_peers_end(r);
    for (size_t i = 0; i < (size_t)r->slots * r->stages; i++) r->out->open_s += r->held_s[i];
    r->out->elapsed_s = r->now_s;
    r->out->ended = r->ended;
}

enum status swarm_run(struct arena *arena, const struct swarm *in, const struct swarm_options *options,
                      struct swarm_result *out, struct error *err)
{
    struct arena scratch = {0};
    struct swarm_state r = {.in = in, .options = options, .out = out, .slots = in->trainers * in->under_way,
                            .peers = in->peer_count, .stages = in->stage_count, .trainers = in->trainers};
    uint32_t *places;
    *out = (struct swarm_result){0};
    if (!ARENA_NEW(arena, in->peer_count, out->peers, err) && !ARENA_NEW(arena, in->stage_count, out->stages, err) &&
        !ARENA_NEW(&scratch, in->peer_count, places, err) && !allocate(&r, &scratch, err) &&
        !merge_traces(&r, &scratch, err) && !place_peers(&r, &scratch, places, err)) {
        swarm_peers_begin(&r, places);
        play(&r);
    }
    arena_release(&scratch);
    return err->status;
}
