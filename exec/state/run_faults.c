/*
 * A failed job's limit is lowered to the minibatches that it has begun, as in a stop. Later ones
 * are skipped when their turn comes; other jobs find the plan unchanged.
 *
 * In several processes rank 0 ends jobs, and other ranks may have begun what fails here: see run_peers.h.
 *
 * A lost device loses its jobs' newest state: the state on the host may be of different steps. Such
 * a job ends with the losses that arrived, without weights or checkpoints; earlier checkpoints are
 * whole.
 */
#include "exec/state/run_faults.h"

#include <stdio.h>
#include <string.h>

#include "exec/state/run_peers.h"

/* Waits until rank 0 knows that the job has failed here. Under the lock. */
static void await_rank_0(struct run *run, uint32_t job)
{
    uint32_t rank;
    struct error ignored = {0};
    while (!run->jobs[job].damaged && !run->cancelled &&
           ranks_failed(run->peers->ranks, &rank, &ignored) == STATUS_OK)
        run_peers_await_change(run);
}

void run_fail_job(struct run *run, uint32_t job, bool alone, const struct error *why)
{
    struct run_progress *const progress = &run->jobs[job];
    const bool damages = !alone && run->options->keep_going && run->peers;
    pthread_mutex_lock(&run->lock);
    if (progress->failure.status == STATUS_OK) progress->failure = *why;
    if (damages && run->peers->own == 0) progress->damaged = progress->held_out_failed = true;
    if (run->peers && (damages || (alone && run->peers->own == 0))) run_peers_tell_failure(run, job, damages, why);
    run_end_job(run, job, false);
    if (damages && run->peers->own > 0) await_rank_0(run, job);
    if (!alone && !run->options->keep_going && run->fatal.status == STATUS_OK) run->fatal = *why;
    pthread_mutex_unlock(&run->lock);
}

enum status run_fail_early(struct run *run, uint32_t job, struct error *why)
{
    struct run_progress *const progress = &run->jobs[job];
    if (!run->options->keep_going) return why->status;
    pthread_mutex_lock(&run->lock);
    atomic_store(&progress->limit, 0);
    if (progress->failure.status == STATUS_OK) progress->failure = *why;
    pthread_mutex_unlock(&run->lock);
    *why = (struct error){.status = STATUS_OK};
    return STATUS_OK;
}

bool run_job_failed(struct run *run, uint32_t job)
{
    pthread_mutex_lock(&run->lock);
    const bool failed = run->jobs[job].failure.status != STATUS_OK;
    pthread_mutex_unlock(&run->lock);
    return failed;
}

void run_fail_damaged(struct run *run, uint32_t job, const struct error *why)
{
    pthread_mutex_lock(&run->lock);
    run->jobs[job].damaged = true;
    pthread_mutex_unlock(&run->lock);
    run_fail_job(run, job, false, why);
}

bool run_job_is_sound(struct run *run, uint32_t job)
{
    const uint32_t devices = run->plan->hardware.device_count;
    bool sound = true;
    for (uint32_t d = 0; d < devices && sound; d++) {
        struct error why = {0};
        sound = !run->uses_device[(size_t)job * devices + d] ||
                device_failed(run->devices[d], &why) == STATUS_OK;
    }
    return sound;
}

static void lose_job(struct run *run, uint32_t job, const struct error *why)
{
    struct run_progress *const progress = &run->jobs[job];
    pthread_mutex_lock(&run->lock);
    progress->damaged = true;
    atomic_store(&progress->limit, progress->losses);
    pthread_mutex_unlock(&run->lock);
    run_fail_job(run, job, false, why);
}

bool run_job_damaged(struct run *run, uint32_t job)
{
    pthread_mutex_lock(&run->lock);
    const bool damaged = run->jobs[job].damaged;
    pthread_mutex_unlock(&run->lock);
    return damaged;
}

void run_note_lost_devices(struct run *run)
{
    const uint32_t devices = run->plan->hardware.device_count;
    for (uint32_t d = 0; d < devices; d++) {
        struct error why = {0};
        if (run->device_noted[d] || device_failed(run->devices[d], &why) == STATUS_OK) continue;
        run->device_noted[d] = true;
        for (uint32_t j = 0; j < run->plan->jobs.count; j++)
            if (run->uses_device[(size_t)j * devices + d] && !run->jobs[j].home)
                lose_job(run, j, &why);
    }
}

void run_note(struct run *run, const char *format, ...)
{
    char text[sizeof run->notes];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&run->lock);
    const size_t used = strlen(run->notes); /* what finds no room is in the result as well */
    snprintf(run->notes + used, sizeof run->notes - used, "%s%s", used > 0 ? "\n" : "", text);
    pthread_mutex_unlock(&run->lock);
}

void run_tell_notes(struct run *run)
{
    char text[sizeof run->notes];
    pthread_mutex_lock(&run->lock);
    memcpy(text, run->notes, sizeof text);
    run->notes[0] = '\0';
    pthread_mutex_unlock(&run->lock);
    if (!run->options->on_note) return;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        run->options->on_note(run->options->context, line);
    }
}
