#include "cli/reports/cli_staleness.h"

#include <inttypes.h>

struct behind {
    uint32_t least, most; /* updates, over a job's chunks */
};

static struct behind behind_of(const struct job *job)
{
    struct behind behind = {0};
    if (!parallel_is_set(&job->parallel)) return behind;
    for (uint32_t chunk = 0; chunk < parallel_chunks(&job->parallel); chunk++) {
        uint32_t updates = parallel_staleness(&job->parallel, chunk);
        if (chunk == 0 || updates < behind.least) behind.least = updates;
        if (updates > behind.most) behind.most = updates;
    }
    return behind;
}

static bool alike(struct behind a, struct behind b)
{
    return a.least == b.least && a.most == b.most;
}

/* Returns true if an earlier job has the same staleness; *count: such jobs from here on. */
static bool was_told(const struct job_set *jobs, uint32_t job, uint32_t *count)
{
    const struct behind behind = behind_of(&jobs->jobs[job]);
    *count = 0;
    for (uint32_t j = 0; j < job; j++)
        if (alike(behind, behind_of(&jobs->jobs[j]))) return true;
    for (uint32_t j = job; j < jobs->count; j++) *count += alike(behind, behind_of(&jobs->jobs[j]));
    return false;
}

void cli_staleness_print(FILE *out, const struct plan *plan, int width)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct behind behind = behind_of(&plan->jobs.jobs[j]);
        uint32_t count;
        if (behind.most == 0 || was_told(&plan->jobs, j, &count)) continue;
        fprintf(out, "%-*s'%s'", width, "training", plan->jobs.jobs[j].name);
        if (count > 1) fprintf(out, " and %" PRIu32 " more", count - 1);
        fputs(" with weights ", out);
        if (behind.least < behind.most) fprintf(out, "%" PRIu32 " to ", behind.least);
        fprintf(out, "%" PRIu32 " update%s old: the training differs from training on one device\n", behind.most,
                behind.most == 1 && behind.least == 1 ? "" : "s");
    }
}

void cli_staleness_json(struct json_out *json, const struct plan *plan)
{
    bool any = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) any |= behind_of(&plan->jobs.jobs[j]).most > 0;
    if (!any) return;
    json_out_array_begin(json, "stale", false);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct behind behind = behind_of(&plan->jobs.jobs[j]);
        if (behind.most == 0) continue;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "job", plan->jobs.jobs[j].name);
        json_out_u64(json, "least", behind.least);
        json_out_u64(json, "most", behind.most);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}
