/* Each object has the times of its future events; "never" is HUGE_VAL. */
#include "tests/support/sim/support_swarm_reference.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define NEVER HUGE_VAL

enum where { AT_REST, IN_LINE, ON_THE_WAY, AT_PEER, OUT_OF_PATIENCE, NOBODY };

/* A microbatch, or the piece of the state that a peer fetches. */
struct load {
    enum where where;
    int from, to; /* -1: none */
    double bytes, due_s;
    uint64_t ticket; /* its place in the line */
    /* microbatches only */
    bool backward;
    int stage, goal, blamed, reached, answering;
    double asked_s, answering_s, held_s[SLOW_STAGES_MAX];
    int keeper[SLOW_STAGES_MAX];
};

struct member {
    const struct swarm_group *group;
    int stage, state; /* 0: away, 1: fetching, 2: ready */
    int at_work;      /* the microbatch; -1: none */
    double work_begin_s, work_end_s, link_end_s, down_free_s, back_s, came_s;
    double slow_until_s, slow_factor;
    int pieces;
    uint64_t gradients;
    double gradients_s;
};

struct opinion {
    double response_s, turn, banned_s;
    bool gone;
};

struct slow {
    const struct swarm *in;
    uint32_t wiring;
    struct slow_result *out;
    double now_s, averaging_end_s, averaging_begin_s;
    int slots, peers, stages;
    uint64_t tickets;
    struct load loads[SLOW_SLOTS_MAX + SLOW_PEERS_MAX];
    struct member members[SLOW_PEERS_MAX];
    struct opinion opinions[SLOW_TRAINERS_MAX][SLOW_PEERS_MAX];
    double last_turn[SLOW_TRAINERS_MAX][SLOW_STAGES_MAX];
    int last_asked[SLOW_TRAINERS_MAX][SLOW_STAGES_MAX];
    int free_slots[SLOW_SLOTS_MAX], free_count;
    bool played[64];
};

static void go_on(struct slow *w, int m);
static void settle(struct slow *w);

static int trainer_of(const struct slow *w, int m) { return m % (int)w->in->trainers; }

/* --- links ------------------------------------------------------------------------------------ */

static void depart(struct slow *w, int l)
{
    struct load *load = &w->loads[l];
    struct member *to = &w->members[load->to];
    double sent_s = w->now_s, latency_s = 0;
    if (load->from >= 0) {
        struct member *from = &w->members[load->from];
        sent_s += load->bytes / from->group->up_bytes_per_s;
        from->link_end_s = sent_s;
        latency_s = from->group->latency_s;
    }
    if (to->down_free_s < w->now_s) to->down_free_s = w->now_s;
    to->down_free_s += load->bytes / to->group->down_bytes_per_s;
    double there_s = sent_s;
    if (load->bytes > 0 && to->down_free_s > there_s) there_s = to->down_free_s;
    load->where = ON_THE_WAY;
    load->due_s = there_s + latency_s + to->group->latency_s; /* rounded as there, so that equal peers have equal
                                                                 times to the bit */
}

/* The first in line goes if the link is free. */
static void look_at_link(struct slow *w, int p)
{
    int first = -1;
    if (w->members[p].link_end_s < NEVER) return;
    for (int l = 0; l < w->slots + w->peers; l++)
        if (w->loads[l].where == IN_LINE && w->loads[l].from == p &&
            (first < 0 || w->loads[l].ticket < w->loads[first].ticket))
            first = l;
    if (first >= 0) depart(w, first);
}

static void carry(struct slow *w, int l, int from, int to, double bytes)
{
    struct load *load = &w->loads[l];
    load->from = from;
    load->to = to;
    load->bytes = bytes;
    load->where = IN_LINE;
    load->due_s = NEVER;
    load->ticket = w->tickets++;
    if (from < 0)
        depart(w, l);
    else
        look_at_link(w, from);
}

/* --- passes ----------------------------------------------------------------------------------- */

static void look_at_peer(struct slow *w, int p)
{
    struct member *member = &w->members[p];
    int first = -1;
    if (member->at_work >= 0) return;
    for (int m = 0; m < w->slots; m++)
        if (w->loads[m].where == AT_PEER && w->loads[m].to == p &&
            (first < 0 || w->loads[m].ticket < w->loads[first].ticket))
            first = m;
    if (first < 0) return;
    const struct swarm_passes *passes = &member->group->passes[w->loads[first].stage];
    double factor = w->now_s < member->slow_until_s ? member->slow_factor : 1;
    member->at_work = first;
    member->work_begin_s = w->now_s;
    member->work_end_s = w->now_s + (w->loads[first].backward ? passes->backward_s : passes->forward_s) * factor;
}

static void arrive(struct slow *w, int m, int p)
{
    w->loads[m].where = AT_PEER;
    w->loads[m].to = p;
    w->loads[m].due_s = NEVER;
    w->loads[m].ticket = w->tickets++;
    look_at_peer(w, p);
}

static int under_way(const struct slow *w, int p)
{
    int count = 0;
    for (int m = 0; m < w->slots; m++)
        count += w->loads[m].to == p && w->loads[m].where >= IN_LINE && w->loads[m].where <= AT_PEER;
    return count;
}

/* --- whom to ask ------------------------------------------------------------------------------ */

static bool may_ask(const struct slow *w, int t, int p, int stage)
{
    const struct opinion *o = &w->opinions[t][p];
    return w->members[p].stage == stage && w->members[p].state != 1 && !o->gone && o->banned_s <= w->now_s;
}

static int ask(struct slow *w, int m)
{
    int t = trainer_of(w, m), s = w->loads[m].stage, best = -1, answered = 0;
    double best_turn = NEVER, sum_s = 0;
    for (int i = 0; i < w->peers; i++) {
        int p = w->wiring == SWARM_SHORTEST_QUEUE ? i
                : w->wiring == SWARM_ROUND_ROBIN  ? (w->last_asked[t][s] + 1 + i) % w->peers
                                                  : (t + i) % w->peers;
        const struct opinion *o = &w->opinions[t][p];
        if (!may_ask(w, t, p, s)) continue;
        if (w->wiring == SWARM_ROUND_ROBIN) return w->last_asked[t][s] = p;
        if (w->wiring == SWARM_SHORTEST_QUEUE) {
            if (w->members[p].state == 2 && (best < 0 || under_way(w, p) < under_way(w, best))) best = p;
            continue;
        }
        double turn = o->turn > w->last_turn[t][s] ? o->turn : w->last_turn[t][s];
        answered += o->response_s > 0;
        sum_s += o->response_s;
        if (turn < best_turn) {
            best_turn = turn;
            best = p;
        }
    }
    if (best < 0 || w->wiring != SWARM_STOCHASTIC) return best;
    double response_s = w->opinions[t][best].response_s;
    if (response_s <= 0) response_s = answered > 0 ? sum_s / answered : 1;
    w->last_turn[t][s] = best_turn;
    w->opinions[t][best].turn = best_turn + response_s;
    return best;
}

static void learn(struct slow *w, int m)
{
    struct load *load = &w->loads[m];
    if (load->answering < 0) return;
    struct opinion *o = &w->opinions[trainer_of(w, m)][load->answering];
    double s = w->now_s - load->answering_s;
    o->response_s = o->response_s > 0 ? o->response_s + w->in->smoothing * (s - o->response_s) : s;
    load->answering = -1;
}

/* --- microbatches ----------------------------------------------------------------------------- */

static void lose_patience(struct slow *w, int m, int blamed)
{
    w->out->unanswered++;
    w->loads[m].where = OUT_OF_PATIENCE;
    w->loads[m].due_s = w->now_s + w->in->timeout_s;
    w->loads[m].blamed = blamed;
    w->loads[m].answering = -1;
}

static void end(struct slow *w, int m)
{
    for (int s = 0; s < w->stages; s++) w->out->lost_s += w->loads[m].held_s[s];
    w->loads[m] = (struct load){.where = AT_REST, .due_s = NEVER, .keeper = {-1, -1, -1, -1}};
    w->free_slots[w->free_count++] = m;
    settle(w);
}

static void go_on(struct slow *w, int m)
{
    struct load *load = &w->loads[m];
    int goal = load->goal;
    load->due_s = NEVER;
    if (goal + 1 < w->stages && load->keeper[goal + 1] < 0) {
        w->out->given_up++;
        end(w, m);
        return;
    }
    load->backward = load->keeper[goal] >= 0;
    if (load->backward) {
        load->stage = goal;
        if (goal + 1 == w->stages)
            arrive(w, m, load->keeper[goal]);
        else
            carry(w, m, load->keeper[goal + 1], load->keeper[goal], w->in->stages[goal].boundary_bytes);
        return;
    }
    for (load->stage = goal; load->stage > 0 && load->keeper[load->stage - 1] < 0;) load->stage--;
    load->asked_s = w->now_s;
    int p = ask(w, m);
    if (p < 0) {
        load->where = NOBODY;
        for (int q = 0; q < w->peers; q++) {
            const struct opinion *o = &w->opinions[trainer_of(w, m)][q];
            if (w->members[q].stage == load->stage && w->members[q].state == 2 && !o->gone && o->banned_s < load->due_s)
                load->due_s = o->banned_s;
        }
    } else if (w->members[p].state != 2) {
        lose_patience(w, m, p);
    } else if (load->stage == 0) {
        carry(w, m, -1, p, 0);
    } else {
        carry(w, m, load->keeper[load->stage - 1], p, w->in->stages[load->stage - 1].boundary_bytes);
    }
}

static void end_work(struct slow *w, int p)
{
    struct member *member = &w->members[p];
    int m = member->at_work;
    struct load *load = &w->loads[m];
    double span_s = w->now_s - member->work_begin_s;
    member->at_work = -1;
    member->work_end_s = NEVER;
    load->where = AT_REST;
    w->out->busy_s[p] += span_s;
    w->out->passes[p]++;
    look_at_peer(w, p);
    if (!load->backward) {
        load->keeper[load->stage] = p;
        load->held_s[load->stage] = span_s;
        w->out->repeated += load->stage < load->reached;
        if (load->stage >= load->reached) load->reached = load->stage + 1;
        load->answering = p;
        load->answering_s = load->asked_s;
        if (load->stage + 1 == w->stages) learn(w, m);
        go_on(w, m);
        return;
    }
    member->gradients++;
    member->gradients_s += load->held_s[load->stage] + span_s;
    load->held_s[load->stage] = 0;
    if (load->stage + 1 < w->stages) load->keeper[load->stage + 1] = -1;
    if (load->stage == 0) {
        end(w, m);
        return;
    }
    load->goal = load->stage - 1;
    if (load->keeper[load->goal] < 0)
        lose_patience(w, m, -1);
    else
        go_on(w, m);
}

static void settle(struct slow *w)
{
    uint64_t least = UINT64_MAX, needed;
    if (w->averaging_end_s < NEVER || w->out->steps == w->in->steps) return;
    for (int s = 0; s < w->stages; s++) {
        uint64_t here = 0;
        for (int p = 0; p < w->peers; p++)
            if (w->members[p].stage == s) here += w->members[p].gradients;
        if (here < least) least = here;
    }
    needed = least < w->in->batch ? w->in->batch - least : 0;
    if (needed == 0 && w->free_count == w->slots) {
        w->averaging_begin_s = w->averaging_end_s = w->now_s;
        for (int s = 0; s < w->stages; s++) {
            double rate = NEVER, latency_s = 0, update_s = 0;
            int n = 0;
            for (int p = 0; p < w->peers; p++) {
                const struct member *member = &w->members[p];
                double factor = w->now_s < member->slow_until_s ? member->slow_factor : 1;
                if (member->stage != s || member->state != 2) continue;
                rate = fmin(rate, fmin(member->group->up_bytes_per_s, member->group->down_bytes_per_s));
                latency_s = fmax(latency_s, member->group->latency_s);
                update_s = fmax(update_s, member->group->passes[s].update_s * factor);
                n++;
            }
            double ring_s = n > 1 ? 2 * (n - 1) * (w->in->stages[s].gradient_bytes / n / rate + 2 * latency_s) : 0;
            w->averaging_end_s = fmax(w->averaging_end_s, w->now_s + ring_s + update_s);
        }
    }
    while ((uint64_t)(w->slots - w->free_count) < needed && w->free_count > 0) {
        int m = w->free_slots[--w->free_count];
        w->loads[m] = (struct load){.where = AT_REST, .due_s = NEVER, .goal = w->stages - 1, .answering = -1,
                                    .keeper = {-1, -1, -1, -1}};
        go_on(w, m);
    }
}

/* --- peers ------------------------------------------------------------------------------------ */

static void fetch(struct slow *w, int p)
{
    int from = -1, fewest = 1 << 30;
    for (int q = 0; q < w->peers; q++) {
        int here = w->members[q].link_end_s < NEVER;
        if (w->members[q].stage != w->members[p].stage || w->members[q].state != 2) continue;
        for (int l = 0; l < w->slots + w->peers; l++) here += w->loads[l].where == IN_LINE && w->loads[l].from == q;
        if (here < fewest) {
            fewest = here;
            from = q;
        }
    }
    carry(w, w->slots + p, from, p, w->in->stages[w->members[p].stage].state_bytes / SWARM_PIECES);
}

static void be_ready(struct slow *w, int p)
{
    w->members[p].state = 2;
    w->loads[w->slots + p].where = AT_REST;
    w->loads[w->slots + p].due_s = NEVER;
    for (uint32_t t = 0; t < w->in->trainers; t++)
        w->opinions[t][p] = (struct opinion){.banned_s = w->opinions[t][p].banned_s};
    for (int m = 0; m < w->slots; m++)
        if (w->loads[m].where == NOBODY) go_on(w, m);
    settle(w);
}

static void come_back(struct slow *w, int p)
{
    struct member *member = &w->members[p];
    member->back_s = NEVER;
    member->state = 1;
    member->came_s = member->down_free_s = w->now_s;
    member->pieces = SWARM_PIECES;
    if (w->in->stages[member->stage].state_bytes > 0)
        fetch(w, p);
    else
        be_ready(w, p);
}

static void go_away(struct slow *w, int p, double away_s)
{
    struct member *member = &w->members[p];
    bool was_ready = member->state == 2;
    w->out->failures++;
    w->out->present_s[p] += w->now_s - member->came_s;
    member->back_s = w->now_s + away_s;
    if (was_ready && w->averaging_end_s < NEVER) {
        w->out->averaging_s += w->now_s - w->averaging_begin_s;
        w->averaging_end_s = NEVER;
    }
    member->state = 0;
    w->loads[w->slots + p].where = AT_REST;
    w->loads[w->slots + p].due_s = NEVER;
    if (member->at_work >= 0) {
        w->out->busy_s[p] += w->now_s - member->work_begin_s;
        w->out->lost_s += w->now_s - member->work_begin_s;
    }
    member->at_work = -1;
    member->work_end_s = NEVER;
    for (int m = 0; m < w->slots; m++) {
        struct load *load = &w->loads[m];
        bool travels = load->where == IN_LINE || load->where == ON_THE_WAY;
        if ((travels && (load->from == p || load->to == p)) || (load->where == AT_PEER && load->to == p))
            lose_patience(w, m, p);
        for (int s = 0; s < w->stages; s++) {
            if (load->keeper[s] != p) continue;
            w->out->lost_s += load->held_s[s];
            load->held_s[s] = 0;
            load->keeper[s] = -1;
        }
    }
    for (int q = 0; q < w->peers; q++) {
        const struct load *piece = &w->loads[w->slots + q];
        if (w->members[q].state == 1 && piece->where != AT_REST && piece->from == p) fetch(w, q);
    }
    member->link_end_s = NEVER;
    w->out->lost_s += member->gradients_s;
    member->gradients = 0;
    member->gradients_s = 0;
    settle(w);
}

static void end_averaging(struct slow *w)
{
    w->out->averaging_s += w->now_s - w->averaging_begin_s;
    w->averaging_end_s = NEVER;
    for (int p = 0; p < w->peers; p++) {
        w->out->useful_s += w->members[p].gradients_s;
        w->members[p].gradients = 0;
        w->members[p].gradients_s = 0;
    }
    w->out->steps++;
    settle(w);
}

/* --- what happens next ------------------------------------------------------------------------ */

enum what { PEER_BACK, TRACE, LINK, LOAD, WORK, AVERAGING };

struct next {
    double at_s;
    enum what what;
    int who;
    const struct failure_event *event;
};

static void consider(struct next *next, double at_s, enum what what, int who, const struct failure_event *event)
{
    if (at_s < next->at_s || (at_s <= next->at_s && what < next->what)) *next = (struct next){at_s, what, who, event};
}

static struct next find_next(struct slow *w)
{
    struct next next = {.at_s = NEVER, .what = AVERAGING};
    int number = 0;
    for (int p = 0; p < w->peers; p++) {
        consider(&next, w->members[p].back_s, PEER_BACK, p, NULL);
        consider(&next, w->members[p].link_end_s, LINK, p, NULL);
        consider(&next, w->members[p].work_end_s, WORK, p, NULL);
    }
    for (uint32_t g = 0; g < w->in->group_count; g++)
        for (uint32_t i = 0; i < w->in->groups[g].failures.event_count; i++, number++) {
            const struct failure_event *event = &w->in->groups[g].failures.events[i];
            assert(number < 64);
            if (!w->played[number])
                consider(&next, event->at_s, TRACE, number | (int)(w->in->groups[g].first + event->device) << 8, event);
        }
    for (int l = 0; l < w->slots + w->peers; l++) consider(&next, w->loads[l].due_s, LOAD, l, NULL);
    consider(&next, w->averaging_end_s, AVERAGING, 0, NULL);
    return next;
}

static void play_trace(struct slow *w, const struct next *next)
{
    struct member *member = &w->members[next->who >> 8];
    w->played[next->who & 255] = true;
    if (next->event->factor > 0) {
        member->slow_until_s = next->at_s + next->event->for_s;
        member->slow_factor = next->event->factor;
    } else if (member->state != 0) {
        go_away(w, next->who >> 8, next->event->for_s);
    }
}

static void happen(struct slow *w, const struct next *next)
{
    struct load *load = &w->loads[next->what == LOAD ? next->who : 0];
    switch (next->what) {
    case PEER_BACK: come_back(w, next->who); break;
    case TRACE: play_trace(w, next); break;
    case LINK:
        w->members[next->who].link_end_s = NEVER;
        look_at_link(w, next->who);
        break;
    case LOAD:
        load->due_s = NEVER;
        if (next->who >= w->slots) {
            if (--w->members[next->who - w->slots].pieces > 0)
                fetch(w, next->who - w->slots);
            else
                be_ready(w, next->who - w->slots);
        } else if (load->where == ON_THE_WAY) {
            if (!load->backward) learn(w, next->who);
            arrive(w, next->who, load->to);
        } else {
            if (load->where == OUT_OF_PATIENCE && load->blamed >= 0) {
                struct opinion *o = &w->opinions[trainer_of(w, next->who)][load->blamed];
                o->gone = w->members[load->blamed].state != 2;
                o->banned_s = w->now_s + w->in->ban_s;
            }
            go_on(w, next->who);
        }
        break;
    case WORK: end_work(w, next->who); break;
    case AVERAGING: end_averaging(w); break;
    }
}

void slow_swarm(const struct swarm *in, uint32_t wiring, struct slow_result *out)
{
    struct slow *w = calloc(1, sizeof *w);
    uint32_t stages[SLOW_PEERS_MAX];
    assert(w && in->peer_count <= SLOW_PEERS_MAX && in->stage_count <= SLOW_STAGES_MAX);
    assert(in->trainers <= SLOW_TRAINERS_MAX && in->trainers * in->under_way <= SLOW_SLOTS_MAX);
    *out = (struct slow_result){0};
    *w = (struct slow){.in = in, .wiring = wiring, .out = out, .averaging_end_s = NEVER,
                       .slots = (int)(in->trainers * in->under_way), .peers = (int)in->peer_count,
                       .stages = (int)in->stage_count};
    swarm_place(in, stages);
    for (int p = 0; p < w->peers; p++)
        w->members[p] = (struct member){.group = &in->groups[swarm_group_of(in, (uint32_t)p)], .stage = (int)stages[p],
                                        .state = 2, .at_work = -1, .work_end_s = NEVER, .link_end_s = NEVER,
                                        .back_s = NEVER};
    for (int l = 0; l < w->slots + w->peers; l++)
        w->loads[l] = (struct load){.where = AT_REST, .due_s = NEVER, .keeper = {-1, -1, -1, -1}};
    for (uint32_t t = 0; t < in->trainers; t++)
        for (int s = 0; s < w->stages; s++) w->last_asked[t][s] = ((int)t + w->peers - 1) % w->peers;
    for (int m = w->slots; m-- > 0;) w->free_slots[w->free_count++] = m;
    settle(w);
    while (out->steps < in->steps) {
        struct next next = find_next(w);
        if (next.at_s > in->time_s) {
            w->now_s = in->time_s;
            break;
        }
        w->now_s = next.at_s;
        happen(w, &next);
    }
    out->elapsed_s = w->now_s;
    if (w->averaging_end_s < NEVER) out->averaging_s += w->now_s - w->averaging_begin_s;
    for (int p = 0; p < w->peers; p++) {
        if (w->members[p].state > 0) out->present_s[p] += w->now_s - w->members[p].came_s;
        if (w->members[p].at_work >= 0) out->busy_s[p] += w->now_s - w->members[p].work_begin_s;
    }
    free(w);
}
