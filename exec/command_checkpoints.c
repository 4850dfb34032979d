/* spillway-exec checkpoints: where a plan's jobs could go on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/files/disk.h"
#include "base/json/json_out.h"
#include "base/process/clock.h"
#include "base/process/options.h"
#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "exec/checkpoint/resume.h"
#include "exec/command.h"
#include "exec/run_report.h"
#include "planner/files/plan_io.h"

enum { FOUND_VERSION = 1, WAIT_S = 15 };

/* --- a run that has not ended yet -------------------------------------------------------------- */

/* Returns the process that holds the folder's lock; 0: unknown. */
static long writer_of(const char *folder)
{
    struct stat info;
    char line[256];
    long writer = 0;
    FILE *const locks = stat(folder, &info) == 0 ? fopen("/proc/locks", "re") : NULL;
    while (locks && !writer && fgets(line, sizeof line, locks)) {
        long process;
        unsigned major_number, minor_number;
        unsigned long inode;
        if (sscanf(line, "%*s FLOCK %*s %*s %ld %x:%x:%lu", &process, &major_number, &minor_number, &inode) == 4 &&
            inode == (unsigned long)info.st_ino && process > 0)
            writer = process;
    }
    if (locks) fclose(locks);
    return writer;
}

static void tell_waiting(const char *who, const char *folder)
{
    char text[4096 + 128];
    snprintf(text, sizeof text, "waiting for %s, which still writes checkpoints into '%s'", who, folder);
    text_clean(text, strlen(text), "");
    fprintf(stderr, "%s\n", text);
}

/*
 * Waits for an executor that still writes. An executor whose parent was killed completes its current minibatches and
 * writes a last checkpoint.
 */
static enum status wait_for_writer(const char *folder, const volatile bool *stop, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    const double begun_s = clock_s();
    char who[48] = "another process";
    bool told = false;
    for (;;) {
        const int lock = disk_real.calls->lock_folder(&disk_real, folder);
        if (lock >= 0) disk_real.calls->close(&disk_real, lock);
        if (lock >= 0 || errno != EWOULDBLOCK) return STATUS_OK;
        const long writer = writer_of(folder);
        if (writer > 0) snprintf(who, sizeof who, "process %ld", writer);
        if (!told) tell_waiting(who, folder);
        told = true;
        if (*stop) return error_set(err, STATUS_INTERRUPTED, "stopped");
        if (clock_s() - begun_s > WAIT_S)
            return error_set(err, STATUS_IO,
                             "%s still writes checkpoints into '%s' after %d s (end it, or wait for it)", who, folder,
                             (int)WAIT_S);
        nanosleep(&pause, NULL);
    }
}

/* --- the result --------------------------------------------------------------------------------- */

static void put_found(struct json_out *json, const struct plan *plan, const struct resume_job *jobs)
{
    json_out_object_begin(json, NULL, false);
    json_out_u64(json, "spillway_checkpoints", FOUND_VERSION);
    json_out_array_begin(json, "jobs", false);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct checkpoint_found *const found = &jobs[j].found;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", plan->jobs.jobs[j].name);
        json_out_u64(json, "minibatches", found->step);
        if (found->step > 0) {
            run_report_put_loss(json, "first_loss", found->first_loss);
            run_report_put_loss(json, "final_loss", found->final_loss);
        }
        if (found->evaluation_count > 0) run_report_put_loss(json, "last_evaluation", found->last_evaluation);
        if (found->best_step > 0) {
            json_out_double(json, "best_evaluation", found->best_evaluation);
            json_out_u64(json, "best_step", found->best_step);
        }
        if (jobs[j].weights_path) json_out_string(json, "weights_path", jobs[j].weights_path);
        if (jobs[j].best_path) json_out_string(json, "best_weights_path", jobs[j].best_path);
        if (found->passed_over > 0) json_out_string(json, "passed_over", found->reason);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_object_end(json);
}

static enum status write_found(const char *path, const struct plan *plan,
                               const struct resume_job *jobs, struct error *err)
{
    struct json_file file;
    TRY(json_file_begin(&file, path, "the found checkpoints", err));
    put_found(file.out, plan, jobs);
    return json_file_end(&file, err);
}

enum status command_checkpoints(int argc, char **argv, const volatile bool *stop, struct error *err)
{
    const char *result = "-";
    bool write_weights = false, json = false, force = false;
    const struct option_spec specs[] = {
        OPTION_FORCE(&force),
        OPTION_OUTPUT("result", 0, "FILE", FILE_KIND_RESULT, &result, "file to write (default: standard output)"),
        OPTION_FLAG("write-weights", 0, &write_weights,
                    "write the weights of complete jobs"),
        OPTION_FLAG("json", 0, &json, "accepted; the output is always JSON"),
    };
    struct options options = {
        .command = "spillway-exec checkpoints",
        .arguments = "PLAN.json DIR",
        .summary = "the newest whole checkpoint of each job of a plan",
        .examples = (const char *const[]){"spillway-exec checkpoints plan.json checkpoints", NULL},
        .details = "Every byte of them is read and checked.",
        OPTIONS_TABLE(specs, 2, 2),
    };
    bool go_on;
    if (command_parse(&options, argc, argv, &go_on, err) != STATUS_OK || !go_on) return err->status;
    struct plan plan = {0};
    struct resume_job *jobs = NULL;
    enum status status = plan_read(options.operands[0], &plan, err);
    if (status == STATUS_OK) {
        jobs = alloc_zeroed(plan.jobs.count, sizeof *jobs);
        if (!jobs) status = error_memory(err, "a list of jobs", plan.jobs.count * sizeof *jobs);
    }
    if (status == STATUS_OK) status = wait_for_writer(options.operands[1], stop, err);
    if (status == STATUS_OK)
        status = resume_look(&plan, options.operands[1], write_weights, jobs, err);
    if (status == STATUS_OK) status = write_found(result, &plan, jobs, err);
    free(jobs);
    plan_release(&plan);
    return status;
}
