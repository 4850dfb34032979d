/*
 * Stochastic wiring is interleaved weighted round robin. Each trainer has a *turn* for each peer, asks the stage's peer
 * with the smallest, and adds its average response time: a peer that answers twice as fast is asked twice as often. The
 * average is exponential. Response time is from the choice until the next stage's peer has the forward pass's result,
 * with transfers and waiting. So an overloaded peer, or one with a slow link, is asked less. A peer without an answer
 * counts as the mean of the others. A new or formerly banned peer continues from the turn of the last peer asked,
 * without credit or debt.
 *
 * Trainers begin at different peers.
 *
 * Source: SWARM, section 3.2 and its appendix on wiring; the mean for peers without an answer is ours.
 */
#include "sim/swarm/swarm_state.h"

static bool is_known(const struct swarm_state *r, uint32_t trainer, uint32_t p, uint32_t stage)
{
    const struct swarm_view *view = swarm_view_of(r, trainer, p);
    return r->peer[p].stage == stage && r->peer[p].state != SWARM_PEER_JOINING && !view->away &&
           view->banned_until_s <= r->now_s;
}

static uint32_t choose_by_turn(struct swarm_state *r, uint32_t trainer, uint32_t stage)
{
    double *last = &r->turns[(size_t)trainer * r->stages + stage], least = HUGE_VAL, sum_s = 0;
    uint32_t best = SWARM_NONE, answered = 0;
    for (uint32_t i = 0; i < r->peers; i++) {
        uint32_t p = (i + trainer) % r->peers;
        if (!is_known(r, trainer, p, stage)) continue;
        const struct swarm_view *view = swarm_view_of(r, trainer, p);
        double turn = fmax(view->turn, *last);
        if (view->response_s > 0) {
            sum_s += view->response_s;
            answered++;
        }
        if (turn >= least) continue;
        least = turn;
        best = p;
    }
    if (best == SWARM_NONE) return best;
    struct swarm_view *view = swarm_view_of(r, trainer, best);
    double response_s = view->response_s > 0 ? view->response_s : answered > 0 ? sum_s / answered : 1;
    *last = least;
    view->turn = least + response_s;
    return best;
}

static uint32_t choose_in_turn(struct swarm_state *r, uint32_t trainer, uint32_t stage)
{
    uint32_t *last = &r->asked_last[(size_t)trainer * r->stages + stage];
    for (uint32_t i = 1; i <= r->peers; i++) {
        uint32_t p = (*last + i) % r->peers;
        if (!is_known(r, trainer, p, stage)) continue;
        *last = p;
        return p;
    }
    return SWARM_NONE;
}

static uint32_t choose_shortest(const struct swarm_state *r, uint32_t trainer, uint32_t stage)
{
    uint32_t best = SWARM_NONE;
    for (uint32_t p = 0; p < r->peers; p++)
        if (is_known(r, trainer, p, stage) && r->peer[p].state == SWARM_PEER_READY &&
            (best == SWARM_NONE || r->peer[p].under_way < r->peer[best].under_way))
            best = p;
    return best;
}

uint32_t swarm_route_choose(struct swarm_state *r, uint32_t m)
{
    const struct swarm_microbatch *it = &r->microbatches[m];
    switch ((enum swarm_wiring)r->options->wiring) {
    case SWARM_STOCHASTIC: return choose_by_turn(r, it->trainer, it->stage);
    case SWARM_ROUND_ROBIN: return choose_in_turn(r, it->trainer, it->stage);
    case SWARM_SHORTEST_QUEUE: return choose_shortest(r, it->trainer, it->stage);
    default: return r->pipelines[(size_t)it->pipeline * r->stages + it->stage];
    }
}

void swarm_route_answered(struct swarm_state *r, uint32_t m)
{
    struct swarm_microbatch *it = &r->microbatches[m];
    if (it->answering == SWARM_NONE) return;
    struct swarm_view *view = swarm_view_of(r, it->trainer, it->answering);
    double response_s = r->now_s - it->answering_s;
    it->answering = SWARM_NONE;
    view->response_s = view->response_s > 0 ? view->response_s + r->in->smoothing * (response_s - view->response_s)
                                            : response_s;
}

void swarm_route_ban(struct swarm_state *r, uint32_t trainer, uint32_t p)
{
    struct swarm_view *view = swarm_view_of(r, trainer, p);
    view->away = r->peer[p].state != SWARM_PEER_READY;
    view->banned_until_s = r->now_s + r->in->ban_s;
}

void swarm_route_welcome(struct swarm_state *r, uint32_t p)
{
    for (uint32_t t = 0; t < r->trainers; t++) {
        struct swarm_view *view = swarm_view_of(r, t, p);
        *view = (struct swarm_view){.banned_until_s = view->banned_until_s};
    }
}

double swarm_route_ban_end_s(const struct swarm_state *r, uint32_t trainer, uint32_t stage)
{
    double end_s = HUGE_VAL;
    for (uint32_t p = 0; p < r->peers; p++) {
        const struct swarm_view *view = swarm_view_of(r, trainer, p);
        if (r->peer[p].stage == stage && r->peer[p].state == SWARM_PEER_READY && !view->away)
            end_s = fmin(end_s, view->banned_until_s);
    }
    return end_s;
}
