/* Each rule chooses modes; each job goes to the node where it ends first. */
#include "planner/saturn/spase/spase_baseline.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/try.h"

const char *const spase_baseline_names[SPASE_BASELINE_COUNT] = {"max", "min", "optimus", "random"};

/* Returns the makespan of this order. */
static int64_t list_all(struct spase_list *list, const struct spase_step *steps, const int64_t *free_at)
{
    int64_t makespan = 0;
    spase_list_clear(list, free_at);
    for (uint32_t i = 0; i < list->in->job_count; i++) {
        const struct spase_mode *mode = &list->in->modes[steps[i].mode];
        int64_t end = spase_list_put(list, mode, steps[i].node, NULL) + mode->ticks;
        if (end > makespan) makespan = end;
    }
    for (uint32_t d = 0; d < list->in->device_count && free_at; d++)
        if (free_at[d] > makespan) makespan = free_at[d];
    return makespan;
}

/* Returns the widest (or narrowest) mode per class that ends first. */
static uint32_t extreme_mode(const struct spase_list *list, const struct spase_job *job, bool widest)
{
    const struct spase *in = list->in;
    uint32_t best = job->first_mode;
    int64_t best_end = INT64_MAX;
    for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++) {
        const struct spase_mode *mode = &in->modes[m];
        bool extreme = true; /* modes stand by class, then devices */
        for (uint32_t o = job->first_mode; o < job->first_mode + job->mode_count; o++)
            if (in->modes[o].class == mode->class &&
                (widest ? in->modes[o].devices > mode->devices : in->modes[o].devices < mode->devices))
                extreme = false;
        int64_t end = spase_list_start(list, mode, SPASE_ANY_NODE) + mode->ticks;
        if (!extreme || end >= best_end) continue;
        best = m;
        best_end = end;
    }
    return best;
}

static void by_extremes(struct spase_list *list, const int64_t *free_at, bool widest, struct spase_step *steps)
{
    spase_list_clear(list, free_at);
    for (uint32_t j = 0; j < list->in->job_count; j++) {
        uint32_t m = extreme_mode(list, &list->in->jobs[j], widest);
        steps[j] = (struct spase_step){j, m, SPASE_ANY_NODE};
        spase_list_put(list, &list->in->modes[m], SPASE_ANY_NODE, NULL);
    }
}

/* Returns the next wider mode of a step's job on its class, or the same. */
static uint32_t wider(const struct spase *in, const struct spase_step *step)
{
    const struct spase_job *job = &in->jobs[step->job];
    const struct spase_mode *now = &in->modes[step->mode];
    for (uint32_t m = step->mode + 1; m < job->first_mode + job->mode_count; m++)
        if (in->modes[m].class == now->class && in->modes[m].devices > now->devices &&
            in->modes[m].ticks < now->ticks)
            return m;
    return step->mode;
}

static enum status by_optimus(struct spase_list *list, const int64_t *free_at, struct spase_step *steps,
                              int64_t *value, struct error *err)
{
    const struct spase *in = list->in;
    struct spase_step *trial = alloc_zeroed(in->job_count, sizeof *trial);
    if (!trial) return error_memory(err, "a schedule", in->job_count * sizeof *trial);
    by_extremes(list, free_at, false, trial);
    *value = INT64_MAX;
    for (bool again = true; again;) {
        int64_t makespan = list_all(list, trial, free_at);
        double most = 0;
        uint32_t chosen = 0;
        if (makespan < *value) {
            *value = makespan;
            for (uint32_t j = 0; j < in->job_count; j++) steps[j] = trial[j];
        }
        for (uint32_t j = 0; j < in->job_count; j++) {
            const struct spase_mode *now = &in->modes[trial[j].mode], *next = &in->modes[wider(in, &trial[j])];
            if (next == now) continue;
            double gain = (double)(now->ticks - next->ticks) / (next->devices - now->devices);
            if (gain <= most) continue;
            most = gain;
            chosen = j;
        }
        again = most > 0;
        if (again) trial[chosen].mode = wider(in, &trial[chosen]);
    }
    free(trial);
    return STATUS_OK;
}

static void by_chance(const struct spase *in, uint64_t seed, struct spase_step *steps)
{
    uint64_t draws = 0;
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct spase_job *job = &in->jobs[j];
        uint32_t at = (uint32_t)random_below(seed, draws++, j + 1);
        uint32_t mode = job->first_mode + (uint32_t)random_below(seed, draws++, job->mode_count);
        steps[j] = steps[at];
        steps[at] = (struct spase_step){j, mode, SPASE_ANY_NODE};
    }
}

enum status spase_baseline_run(const struct spase *in, enum spase_baseline kind, uint64_t seed,
                               const int64_t *free_at, struct spase_step *steps, int64_t *value,
                               struct error *err)
{
    struct spase_list list;
    TRY(spase_list_init(&list, in, err));
    switch (kind) {
    case SPASE_BASELINE_OPTIMUS:
        if (by_optimus(&list, free_at, steps, value, err)) goto out;
        break;
    case SPASE_BASELINE_RANDOM: by_chance(in, seed, steps); break;
    default: by_extremes(&list, free_at, kind == SPASE_BASELINE_MAX, steps); break;
    }
    *value = list_all(&list, steps, free_at);
out:
    spase_list_release(&list);
    return err->status;
}
