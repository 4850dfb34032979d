/*
 * Swarms on any bytes: refused with a message, or a swarm that can be simulated, the same twice, with nothing lost
 * from sight and within the bound.
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sim/swarm/swarm_bound.h"
#include "sim/swarm/swarm_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger files are only read. */
enum { PEERS_MAX = 24, SLOTS_MAX = 64, PASSES_MAX = 4000 };

/* Returns true if the swarm has few events in any case. */
static bool is_small(const struct swarm *in)
{
    double least_s = HUGE_VAL, latency_s = in->timeout_s;
    for (uint32_t g = 0; g < in->group_count; g++) {
        const struct failures *failures = &in->groups[g].failures;
        least_s = fmin(least_s, failures->mtbf_s);
        least_s = fmin(least_s, fmin(failures->straggle_every_s,
                                     failures->straggle_s > 0 ? failures->straggle_s : HUGE_VAL));
        if (failures->shape < 0.5) return false; /* lives that are much shorter than their mean */
        for (uint32_t s = 0; s < in->stage_count; s++) latency_s = fmin(latency_s, in->groups[g].passes[s].forward_s);
    }
    return in->peer_count <= PEERS_MAX && (uint64_t)in->trainers * in->under_way <= SLOTS_MAX &&
           in->time_s / fmin(least_s, latency_s) < PASSES_MAX;
}

static void simulate(struct swarm *in)
{
    struct swarm_options options = {.wiring = in->wiring, .rebalance_s = in->rebalance_s, .seed = 1};
    struct swarm_result result, again;
    struct swarm_bound bound;
    struct error err = {0};
    double busy_s = 0;
    if (!is_small(in)) return;
    enum status status = swarm_run(&in->arena, in, &options, &result, &err);
    if (!status) status = swarm_run(&in->arena, in, &options, &again, &err);
    bool moving = in->rebalance_s < HUGE_VAL && in->wiring != SWARM_FIXED;
    if (!status) status = swarm_bound(in, &result, moving, &bound, &err);
    assert(status == STATUS_OK);
    assert(memcmp(result.peers, again.peers, in->peer_count * sizeof *result.peers) == 0);
    for (uint32_t p = 0; p < in->peer_count; p++) busy_s += result.peers[p].busy_s;
    assert(fabs(result.useful_s + result.lost_s + result.open_s - busy_s) <=
           1e-9 * result.elapsed_s * in->peer_count);
    assert((double)result.steps * in->batch <= bound.per_s * result.elapsed_s * (1 + 1e-9));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct swarm in = {0};
    struct error err = {0};
    struct json_input *input = NULL;
    enum status status = json_input_parse("fuzz", (const char *)data, size, &input, &err);
    if (!status) status = swarm_parse(input, &in, &err);
    json_input_destroy(input);
    if (status == STATUS_OK)
        simulate(&in);
    else
        assert(err.status == status && err.text[0] != '\0');
    swarm_release(&in);
    return 0;
}
