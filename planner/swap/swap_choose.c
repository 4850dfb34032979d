/*
 * The chain knows how many bytes live, not where. Its memory is found by trial:
 *
 *     memory for the chain -> choices and times -> places -> bytes of the device that they take
 *
 * The first trial leaves room for all reserves (planner/swap/swap_chain.h). If the places exceed the device (gaps
 * between ranges), the next trial has less memory by the excess; if some is free (reserves unused at the fullest
 * moment), more. Between a fitting and a failing amount, the middle is tried. The fitting trial with the shortest
 * minibatch wins.
 *
 * The search for the best way gets half of its time, then half of the rest, and so on.
 */
#include "planner/swap/swap_choose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/text/quantity.h"
#include "planner/swap/swap_timing.h"

enum { TRIALS_MAX = 8, SLACK_SHARE = 512 }; /* share of the device that is worth a trial */

void swap_choice_release(struct swap_choice *choice)
{
    swap_places_release(&choice->places);
    chain_schedule_release(&choice->schedule);
    chain_release(&choice->chain);
    *choice = (struct swap_choice){0};
}

/* Keeps layers that have nothing to swap or drop, or no backward pass. */
static void tidy(const struct swap_job *job, const struct chain *chain, uint8_t *choices)
{
    for (uint32_t l = 0; l < job->layer_count; l++) {
        bool idle = choices[l] == CHAIN_SWAP ? chain->layers[l].saved == 0 : swap_kept_bytes(job, l) == 0;
        if (idle) choices[l] = CHAIN_KEEP;
    }
}

/* Share of its limit after which a search without a proof counts as ended by the limit. */
static const double limit_near = 0.9;

/* choices: (layer_count). *made is false if the rule needs more memory. */
static enum status choose(const struct chain *chain, uint32_t way, double limit_s, uint8_t *choices, bool *made,
                          struct chain_certificate *certificate, struct error *err)
{
    const struct chain_certify_options options = {.limit_s = limit_s};
    struct chain_schedule schedule = {0};
    int64_t makespan;
    if (way != SWAP_BEST) return chain_rule_run(chain, (enum chain_rule)way, choices, &makespan, made, err);
    enum status status = chain_certify(chain, &options, &schedule, certificate, err);
    if (!status) memcpy(choices, schedule.choices, chain->layer_count * sizeof *choices);
    chain_schedule_release(&schedule);
    *made = status == STATUS_OK;
    if (status != STATUS_INFEASIBLE) return status;
    *err = (struct error){0};
    return STATUS_OK;
}

/* Runs one trial; *out zeroed before and released by the caller. */
static enum status try_memory(const struct swap_job *job, uint32_t way, uint64_t memory, double limit_s,
                              struct swap_choice *out, bool *made, struct error *err)
{
    *made = false;
    out->way = way;
    if (swap_chain_make(job, memory, &out->chain, err)) {
        if (err->status == STATUS_INFEASIBLE) *err = (struct error){0};
        return err->status;
    }
    uint8_t *choices = alloc_zeroed(job->layer_count, sizeof *choices);
    if (!choices) return error_memory(err, "choices", job->layer_count);
    if (!choose(&out->chain, way, limit_s, choices, made, &out->certificate, err) && *made) {
        out->cut_short = way == SWAP_BEST && out->certificate.status == CERTIFICATE_GAP &&
                         out->certificate.seconds >= limit_near * limit_s;
        tidy(job, &out->chain, choices);
        if (!chain_schedule_make(&out->chain, choices, &out->schedule, err) &&
            swap_places_make(job, &out->chain, &out->schedule, &out->places, err) == STATUS_OK &&
            swap_timing(job, &out->chain, choices, &out->places, &out->length, err)) {}
    }
    free(choices);
    return err->status;
}

/* Finds the best trial of one way. *fits is false if none is within the device, with the least `missing` bytes. */
static enum status settle(const struct swap_job *job, uint32_t way, double limit_s, struct swap_choice *best,
                          bool *fits, uint64_t *missing, struct error *err)
{
    uint64_t least = swap_chain_least(job), taken = job->fixed_bytes + job->reserve_bytes;
    uint64_t memory = max_u64(job->capacity > taken ? job->capacity - taken : 0, least);
    uint64_t enough = 0, too_much = UINT64_MAX, slack = job->capacity / SLACK_SHARE;
    bool any = true;
    *fits = false;
    for (uint32_t t = 0; t < TRIALS_MAX && any; t++) {
        struct swap_choice trial = {0};
        bool made;
        limit_s /= 2;
        if (try_memory(job, way, memory, limit_s, &trial, &made, err) || !made) {
            swap_choice_release(&trial);
            break;
        }
        uint64_t end = trial.places.end, next = memory + job->capacity - end;
        bool here = end <= job->capacity;
        if (here) enough = max_u64(enough, memory);
        else too_much = memory;
        if (!here) *missing = min_u64(*missing, end - job->capacity);
        if (!here && (memory <= end - job->capacity || next < least)) next = least;
        if (next <= enough || next >= too_much) next = enough + (too_much - enough) / 2;
        any = here ? trial.length > trial.chain.compute && job->capacity - end > slack : memory > least;
        if (*fits && too_much - enough <= slack) any = false;
        if (here && (!*fits || trial.length < best->length)) {
            swap_choice_release(best);
            *best = trial;
            trial = (struct swap_choice){0};
        }
        *fits |= here;
        memory = max_u64(next, least);
        swap_choice_release(&trial);
    }
    return err->status;
}

static enum status bound_others(const struct chain *chain, double limit_s, struct swap_choice *out,
                                struct error *err)
{
    const struct chain_certify_options options = {.limit_s = limit_s};
    struct chain_schedule schedule = {0};
    enum status status = chain_certify(chain, &options, &schedule, &out->certificate, err);
    chain_schedule_release(&schedule);
    return status;
}

enum status swap_choose(const struct swap_job *job, const struct swap_options *options,
                        struct swap_choice *out, struct swap_outcome *outcome, struct error *err)
{
    double limit_s = options->limit_s > 0 ? options->limit_s : SWAP_LIMIT_S;
    bool best = options->way == SWAP_BEST, any = false;
    uint64_t missing = UINT64_MAX;
    char text[QUANTITY_TEXT_BYTES];
    for (uint32_t way = 0; way < SWAP_WAYS && !err->status; way++) {
        struct swap_choice choice = {0};
        bool fits;
        if (!best && way != options->way) continue;
        if (!settle(job, way, limit_s, &choice, &fits, &missing, err) && fits) {
            outcome->way_fits[way] = true;
            outcome->way_s[way] = (double)choice.length * job->tick_s;
            bool shorter = !any || choice.length < out->length || (way == SWAP_BEST && choice.length == out->length);
            any = true;
            if (shorter) {
                swap_choice_release(out);
                *out = choice;
                choice = (struct swap_choice){0};
            }
        }
        swap_choice_release(&choice);
    }
    if (any && !err->status && out->way != SWAP_BEST) return bound_others(&out->chain, limit_s, out, err);
    if (err->status || any) return err->status;
    if (missing == UINT64_MAX)
        return error_set(err, STATUS_INFEASIBLE, "job '%s': rule %s leaves more on device %" PRIu32 " than fits",
                         job->job->name, best ? "best" : chain_rule_names[options->way], job->device);
    return error_set(err, STATUS_INFEASIBLE,
                     "no places are found for job '%s' on device %" PRIu32 ", whatever is swapped or recomputed: "
                     "%s (%" PRIu64 " bytes) missing", job->job->name, job->device,
                     quantity_text((double)missing, DIMENSION_BYTES, text), missing);
}
