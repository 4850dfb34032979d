/*
 * The executor reports each job's progress, and this program plans the rest: the old plan without its first
 * minibatches would leave devices idle. A job has its first minibatch (models/job/job.h), by which the executor finds
 * its checkpoint.
 *
 * The new plan uses the stored options: policy, seed, double buffering, live dispatch, treatment of activations, and
 * numbers of shards. Resident jobs stay on their devices.
 */
#include "cli/run/cli_resume.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/process/cli_child.h"
#include "cli/reports/cli_reservations.h"
#include "planner/files/plan_io.h"
#include "planner/policy/policies.h"
#include "planner/spill/cut/footprint.h"
#include "planner/strategy/planner.h"
#include "planner/swap/swap.h"

#include "base/try.h"

/* --- progress -------------------------------------------------------------------------------- */

static enum status ask(const struct cli *cli, const char *plan_path, const char *folder,
                       bool write_weights, const char *result_path, struct error *err)
{
    char program[CLI_PATH_BYTES];
    const char *words[11];
    size_t count = 0;
    struct cli_child_end end;
    TRY(cli_child_find(program, err));
    words[count++] = program;
    words[count++] = "checkpoints";
    words[count++] = "--result";
    words[count++] = result_path;
    if (write_weights) words[count++] = "--write-weights";
    if (cli->force) words[count++] = "--force";
    words[count++] = "--";
    words[count++] = plan_path;
    words[count++] = folder;
    words[count] = NULL;
    TRY(cli_child_run(words, &end, err));
    return cli_child_status(&end, "look at the checkpoints", err);
}

static enum status read_job(struct cli *cli, const struct json_input *in, const json_t *array,
                            size_t index, struct cli_resume_job *out, struct error *err)
{
    struct json_object object;
    const char *name, *passed_over = NULL;
    TRY(json_object_open_at(&object, in, array, index, "a job", err));
    json_object_ignore_others(&object);
    TRY(json_take_string(&object, "name", JSON_REQUIRED, &name, err));
    TRY(json_take_u64(&object, "minibatches", JSON_REQUIRED, 0, INT64_MAX, &out->minibatches, err));
    TRY(json_take_double(&object, "first_loss", JSON_OPTIONAL, -1e300, 1e300, &out->first_loss, err));
    TRY(json_take_double(&object, "final_loss", JSON_OPTIONAL, -1e300, 1e300, &out->final_loss, err));
    TRY(json_take_string(&object, "weights_path", JSON_OPTIONAL, &out->weights_path, err));
    TRY(cli_evaluation_read(&object, &out->evaluation, err));
    TRY(json_take_string(&object, "passed_over", JSON_OPTIONAL, &passed_over, err));
    out->has_first_loss = json_has(&object, "first_loss");
    out->has_loss = json_has(&object, "final_loss");
    if (passed_over)
        cli_warn(cli, "job '%s' goes back to its checkpoint after minibatch %" PRIu64 ": %s", name,
                 out->minibatches, passed_over);
    return STATUS_OK;
}

static enum status read_jobs(struct cli *cli, const char *path, const struct plan *plan,
                             struct cli_resume *out, struct error *err)
{
    struct json_object object;
    const json_t *jobs;
    uint64_t version;
    TRY(json_input_read(path, &out->in, err));
    TRY(json_object_open(&object, out->in, json_input_root(out->in), "the progress of jobs", err));
    json_object_ignore_others(&object);
    TRY(json_take_u64(&object, "spillway_checkpoints", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_array(&object, "jobs", JSON_REQUIRED, &jobs, err));
    TRY(ARENA_NEW(&out->arena, plan->jobs.count, out->jobs, err));
    if (json_array_size(jobs) != plan->jobs.count)
        return json_fail_key(out->in, object.value, "jobs", err,
                             "found %zu jobs, but the plan has %" PRIu32, json_array_size(jobs),
                             plan->jobs.count);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        TRY(read_job(cli, out->in, jobs, j, &out->jobs[j], err));
        out->begun |= out->jobs[j].minibatches > 0;
        const bool complete = out->jobs[j].minibatches >= job->first_minibatch + job->minibatches;
        out->complete += complete || job_makes_outputs(job); /* others need them, or nothing is left */
    }
    return STATUS_OK;
}

enum status cli_resume_look(struct cli *cli, const char *plan_path, const struct plan *plan,
                            const char *folder, bool write_weights, struct cli_resume *out,
                            struct error *err)
{
    char path[CLI_PATH_BYTES];
    TRY(cli_child_file(path, err));
    enum status status = ask(cli, plan_path, folder, write_weights, path, err);
    if (status == STATUS_OK) status = read_jobs(cli, path, plan, out, err);
    unlink(path);
    return status;
}

void cli_resume_release(struct cli_resume *resume)
{
    json_input_destroy(resume->in);
    arena_release(&resume->arena);
    *resume = (struct cli_resume){0};
}

/* --- the remaining plan -------------------------------------------------------------------- */

/* Counts no shards that stay on a device, no frozen ones, and no embedding that is not cut into rows. */
static uint32_t movable_shards(const struct plan *plan, uint32_t job)
{
    const struct job *about = &plan->jobs.jobs[job];
    uint32_t count = 0, first = plan->job_first_shard[job];
    for (uint32_t s = first; s < plan->job_first_shard[job + 1]; s++) {
        const struct state_layout state = job_state(about, plan->shards[s].first_layer, plan->shards[s].layer_count);
        const bool whole = s == first && footprint_has_embedding(about) && !footprint_can_slice(about);
        count += state_trained_bytes(&state) > 0 && !whole;
    }
    for (uint32_t u = 0; u < plan->unit_count; u++)
        if (plan->units[u].job == job && plan->units[u].pass == PLAN_LOAD && count > 0) count--;
    return count;
}

/* Returns the place of the plan's optimizers: others round differently on a GPU. All jobs share one. Jobs that clip
 * have no choice; unfinished ones exclude "device". */
static uint32_t place_of(const struct plan *plan, const struct cli_resume *resume)
{
    bool clips = false;
    uint32_t there = 0, movable = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        bool complete = resume->jobs[j].minibatches >= job->first_minibatch + job->minibatches;
        if (job_clips(job)) {
            clips |= !complete;
            continue;
        }
        there += plan_cpu_shards(plan, j);
        movable += movable_shards(plan, j);
    }
    if (movable == 0) return PLANNER_AUTO;
    if (there == 0) return clips ? PLANNER_AUTO : PLANNER_PLACE_DEVICE;
    return there >= movable ? PLANNER_PLACE_CPU : PLANNER_PLACE_SPLIT;
}

/* Returns true if a job's states stay on its device (planner/strategy/resident.h). */
static bool any_resident(const struct plan *plan)
{
    for (uint32_t j = 0; plan->reservation_count > 0 && j < plan->jobs.count; j++) {
        uint32_t shards = plan_job_shards(plan, j);
        if (!parallel_is_set(&plan->jobs.jobs[j].parallel) && cli_persistent_shards(plan, j) == shards) return true;
    }
    return false;
}

static struct planner_options options_of(const struct plan *plan,
                                         const struct cli_resume *resume)
{
    if (any_resident(plan))
        return (struct planner_options){
            .seed = plan->seed, .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .resident = true};
    /* a user's policy may be gone */
    struct planner_options options = {.policy = policy_find(plan->policy) ? plan->policy : NULL,
                                      .seed = plan->seed,
                                      .no_double_buffer = !plan->double_buffer,
                                      .no_persistence = true,
                                      .live = plan_is_open(plan),
                                      .activations = plan->job_activations[0],
                                      .optimizer = place_of(plan, resume),
                                      .shards = UINT32_MAX};
    for (uint32_t u = 0; u < plan->unit_count; u++)
        if (plan->units[u].pass == PLAN_LOAD) options.no_persistence = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        uint32_t shards = plan_job_shards(plan, j);
        if (shards < options.shards) options.shards = shards;
        if (plan->job_activations[j] != options.activations) options.activations = PLANNER_AUTO;
    }
    if (plan->jobs.jobs[0].shares_base) { /* its cut is that of all jobs, of which some are done */
        options.shards = 0;
        if (options.optimizer == PLANNER_PLACE_SPLIT) options.optimizer = PLANNER_AUTO;
    }
    return options;
}

/* Returns true if a job that is left takes the outputs that this one makes. */
static bool is_needed(const struct job_set *jobs, const struct cli_resume *resume, uint32_t maker)
{
    for (uint32_t j = 0; j < jobs->count; j++) {
        const struct job *job = &jobs->jobs[j];
        if (job_takes_outputs(job) && job->outputs.maker == maker &&
            resume->jobs[j].minibatches < job->first_minibatch + job->minibatches)
            return true;
    }
    return false;
}

/* Lets jobs take from makers by their new numbers: `left` of the old ones, if they are left. Those are the last. */
static void renumber_makers(struct job_set *jobs, uint32_t from, uint32_t to)
{
    for (uint32_t j = 0; j < jobs->count; j++)
        if (job_takes_outputs(&jobs->jobs[j]) && jobs->jobs[j].outputs.maker == from) jobs->jobs[j].outputs.maker = to;
}

/* Removes complete jobs, and makers of outputs that nobody takes; others begin at their checkpoints. */
static void cut_jobs(struct job_set *jobs, const struct cli_resume *resume)
{
    uint32_t left = 0, all = jobs->count;
    for (uint32_t j = 0; j < jobs->count; j++)
        if (job_makes_outputs(&jobs->jobs[j]) && !is_needed(jobs, resume, j)) jobs->jobs[j].minibatches = 0;
    for (uint32_t j = 0; j < all; j++) {
        struct job job = jobs->jobs[j];
        uint64_t done = resume->jobs[j].minibatches, end = job.first_minibatch + job.minibatches;
        if (done >= end) continue;
        if (job_makes_outputs(&job)) renumber_makers(jobs, j, left);
        job.first_minibatch = done;
        job.minibatches = end - done;
        job.shares_base = false; /* until it is planned again */
        jobs->jobs[left++] = job;
    }
    jobs->count = left;
}

enum status cli_resume_plan(const char *plan_path, const struct cli_resume *resume,
                            struct plan *out, struct error *err)
{
    struct plan whole = {0};
    enum status status = plan_read(plan_path, &whole, err);
    if (status == STATUS_OK) {
        struct planner_options options = options_of(&whole, resume);
        struct swap_options swap = {0};
        struct swap_report swap_report = {0};
        if (swap_made(whole.policy, &swap.way)) {
            options.swap = &swap;
            options.swap_report = &swap_report;
        }
        struct hardware hardware = whole.hardware;
        struct job_set jobs = whole.jobs;
        whole.hardware = (struct hardware){0};
        whole.jobs = (struct job_set){0};
        cut_jobs(&jobs, resume);
        status = planner_plan(&hardware, &jobs, &options, out, err);
        swap_report_release(&swap_report);
        if (status != STATUS_OK) error_add(err, "planning the remaining minibatches");
    }
    plan_release(&whole);
    return status;
}
