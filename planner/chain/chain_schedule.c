/*
 * One pass: a layer starts when the previous one has ended and copies out have made room. Copies end in the order of
 * queueing, so waiting for the oldest makes room. Copies that no layer waited for are skipped from then on.
 */
#include "planner/chain/chain_schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"

enum status chain_pass_create(uint32_t layer_count, struct chain_pass *out, struct error *err)
{
    *out = (struct chain_pass){alloc_zeroed(layer_count, sizeof *out->queue),
                               alloc_zeroed(layer_count, sizeof *out->ends)};
    if (out->queue && out->ends) return STATUS_OK;
    chain_pass_destroy(out);
    return error_memory(err, "a pass", layer_count * sizeof *out->ends);
}

void chain_pass_destroy(struct chain_pass *pass)
{
    free(pass->queue);
    free(pass->ends);
    *pass = (struct chain_pass){0};
}

/* Returns the length of a pass, forward or mirrored. starts and copies (layer_count) may be NULL. */
static bool run_pass(const struct chain *chain, const uint8_t *choices, bool mirrored,
                     struct chain_pass *pass, int64_t *starts, int64_t *copies, int64_t *length)
{
    int64_t clock = 0, link = 0;
    uint64_t left = 0, pending = 0;
    uint32_t first = 0, count = 0;
    for (uint32_t l = 0; l < chain->layer_count; l++) {
        const struct chain_layer *layer = &chain->layers[l];
        while (left + pending + layer->saved > chain->memory) {
            if (first == count) return false;
            if (pass->ends[first] > clock) clock = pass->ends[first];
            pending -= chain->layers[pass->queue[first++]].saved;
        }
        if (starts) starts[l] = clock;
        clock += !mirrored ? layer->forward
                           : layer->backward + (choices[l] == CHAIN_RECOMPUTE ? layer->again : 0);
        left += chain_left(layer, choices[l]);
        if (choices[l] != CHAIN_SWAP) continue;
        if (clock > link) link = clock;
        if (copies) copies[l] = link;
        link += mirrored ? layer->in : layer->out;
        pass->queue[count] = l;
        pass->ends[count++] = link;
        pending += layer->saved;
    }
    *length = clock > link ? clock : link;
    return true;
}

bool chain_makespan(const struct chain *chain, const uint8_t *choices, struct chain_pass *pass,
                    int64_t *makespan)
{
    int64_t there, back;
    if (!run_pass(chain, choices, false, pass, NULL, NULL, &there) ||
        !run_pass(chain, choices, true, pass, NULL, NULL, &back))
        return false;
    *makespan = there + back;
    return true;
}

static enum status allocate(uint32_t count, struct chain_schedule *out, struct error *err)
{
    int64_t **times[] = {&out->forward, &out->out, &out->in, &out->backward};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        TRY(ARENA_NEW(&out->arena, count, *times[i], err));
    }
    TRY(ARENA_NEW(&out->arena, count, out->choices, err));
    out->layer_count = count;
    return STATUS_OK;
}

enum status chain_schedule_make(const struct chain *chain, const uint8_t *choices,
                                struct chain_schedule *out, struct error *err)
{
    struct chain_schedule made = {0};
    struct chain_pass pass;
    int64_t back;
    TRY(chain_pass_create(chain->layer_count, &pass, err));
    if (allocate(chain->layer_count, &made, err)) goto out;
    memcpy(made.choices, choices, chain->layer_count * sizeof *choices);
    if (!run_pass(chain, choices, false, &pass, made.forward, made.out, &made.turnaround) ||
        !run_pass(chain, choices, true, &pass, made.backward, made.in, &back)) {
        error_set(err, STATUS_INFEASIBLE, "memory does not hold what these choices leave on the device");
        goto out;
    }
    made.makespan = made.turnaround + back;
    for (uint32_t l = 0; l < chain->layer_count; l++) { /* the mirrored pass ends where it starts */
        const struct chain_layer *layer = &chain->layers[l];
        int64_t length = layer->backward + (choices[l] == CHAIN_RECOMPUTE ? layer->again : 0);
        made.backward[l] = made.makespan - made.backward[l] - length;
        if (choices[l] == CHAIN_SWAP) made.in[l] = made.makespan - made.in[l] - layer->in;
    }
    *out = made;
    made = (struct chain_schedule){0};
out:
    chain_schedule_release(&made);
    chain_pass_destroy(&pass);
    return err->status;
}

void chain_schedule_release(struct chain_schedule *schedule)
{
    arena_release(&schedule->arena);
    *schedule = (struct chain_schedule){0};
}
