#include "cli/reports/cli_kept_outputs.h"

#include <inttypes.h>

#include "base/text/quantity.h"

enum { NAMES_MOST = 4 };

/* Returns true if the job takes what `maker` makes. */
static bool takes_of(const struct job *job, uint32_t maker)
{
    return job_takes_outputs(job) && job->outputs.maker == maker;
}

static uint32_t takers_of(const struct plan *plan, uint32_t maker)
{
    uint32_t count = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++) count += takes_of(&plan->jobs.jobs[j], maker);
    return count;
}

static void print_takers(FILE *out, const struct plan *plan, uint32_t maker)
{
    uint32_t shown = 0;
    for (uint32_t j = 0; j < plan->jobs.count && shown < NAMES_MOST; j++)
        if (takes_of(&plan->jobs.jobs[j], maker))
            fprintf(out, "%s%s", shown++ > 0 ? ", " : "", plan->jobs.jobs[j].name);
    const uint32_t more = takers_of(plan, maker) - shown;
    if (more > 0) fprintf(out, " and %" PRIu32 " more", more);
}

static void print_made(FILE *out, const struct plan *plan, int width)
{
    char bytes[QUANTITY_TEXT_BYTES];
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        if (!job_makes_outputs(job)) continue;
        fprintf(out, "%-*s%s: outputs of the first %" PRIu64 " layers for %" PRIu64 " samples", width, "kept",
                quantity_text((double)job_outputs_bytes(job), DIMENSION_BYTES, bytes), job->outputs.layers,
                job->outputs.samples + job->outputs.held_out);
        if (job->outputs.held_out > 0) fprintf(out, " (%" PRIu64 " held out)", job->outputs.held_out);
        fprintf(out, ", made by %s for ", job->name);
        print_takers(out, plan, j);
        fputc('\n', out);
    }
}

/* Returns the name of the first job of which nothing can be kept, and *why; NULL: there is none. */
static const char *first_refused(const struct plan *plan, const struct cli_keep *keep, const char **why)
{
    for (uint32_t j = 0; j < keep->problem.job_count; j++) {
        *why = keep->problem.jobs[j].why;
        if (*why) return plan->jobs.jobs[j].name;
    }
    return NULL;
}

/* Returns why nothing is kept. */
static const char *why_nothing(const struct cli_keep *keep)
{
    if (keep->problem.group_count == 0) return "no job has outputs that can be kept";
    return "nothing within the budget saves time";
}

static void print_asked(FILE *out, const struct plan *plan, const struct cli_keep *keep, int width)
{
    char saved[QUANTITY_TEXT_BYTES], all[QUANTITY_TEXT_BYTES], with[QUANTITY_TEXT_BYTES], without[QUANTITY_TEXT_BYTES];
    const struct prefix_choice *choice = &keep->choice;
    const char *why = NULL, *name = first_refused(plan, keep, &why);
    fprintf(out, "%-*s", width, "keeping");
    if (!(choice->bytes > 0)) {
        fprintf(out, "nothing: %s", why_nothing(keep));
    } else {
        fprintf(out, "saves %s of %s in frozen first layers, by the planner's costs (%s)",
                quantity_text(choice->without_s - choice->seconds, DIMENSION_SECONDS, saved),
                quantity_text(choice->without_s, DIMENSION_SECONDS, all),
                choice->proven ? "the most, by GLPK" : "by a greedy rule");
    }
    fputc('\n', out);
    if (keep->with_s > 0)
        fprintf(out, "%-*ssimulated %s with, %s without\n", width, "",
                quantity_text(keep->with_s, DIMENSION_SECONDS, with),
                keep->without_s > 0 ? quantity_text(keep->without_s, DIMENSION_SECONDS, without) : "no plan");
    if (name) fprintf(out, "%-*snothing of '%s': %s\n", width, "", name, why);
    if (choice->failure[0]) fprintf(out, "%-*sGLPK did not answer: %s\n", width, "", choice->failure);
}

void cli_kept_outputs_print(FILE *out, const struct plan *plan, const struct cli_keep *keep, int width)
{
    print_made(out, plan, width);
    if (keep) print_asked(out, plan, keep, width);
}

void cli_kept_outputs_json(struct json_out *json, const struct plan *plan, const struct cli_keep *keep)
{
    bool any = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) any |= job_makes_outputs(&plan->jobs.jobs[j]);
    if (any) json_out_array_begin(json, "kept_outputs", false);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        if (!job_makes_outputs(job)) continue;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "made_by", job->name);
        json_out_u64(json, "layers", job->outputs.layers);
        json_out_u64(json, "samples", job->outputs.samples);
        json_out_u64(json, "held_out", job->outputs.held_out);
        json_out_u64(json, "bytes", job_outputs_bytes(job));
        json_out_u64(json, "jobs", takers_of(plan, j));
        json_out_object_end(json);
    }
    if (any) json_out_array_end(json);
    if (!keep) return;
    json_out_object_begin(json, "keeping", true);
    json_out_double(json, "budget_bytes", keep->budget_bytes);
    json_out_double(json, "first_layers_s", keep->choice.without_s);
    json_out_double(json, "saved_s", keep->choice.without_s - keep->choice.seconds);
    json_out_bool(json, "proven", keep->choice.proven);
    if (keep->without_s > 0) json_out_double(json, "without_makespan_s", keep->without_s);
    if (keep->with_s > 0) json_out_double(json, "with_makespan_s", keep->with_s);
    if (!(keep->choice.bytes > 0)) json_out_string(json, "reason", why_nothing(keep));
    json_out_object_end(json);
}
