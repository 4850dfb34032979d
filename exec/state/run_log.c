/*
 * Each line is written with one call and flushed: a reader never sees half a line, and a killed run
 * leaves a whole log. The file is therefore no temporary one. Writing costs some ten microseconds
 * per minibatch on the thread of a D2H stream.
 */
#include "exec/state/run_log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json_out.h"

enum { RUN_LOG_VERSION = 1 };

struct run_log {
    const struct plan *plan;
    const char *path;
    FILE *file;
    int failure; /* of the first failed write; 0: none */
    pthread_mutex_t lock;
};

static struct json_out *line_begin(void)
{
    struct json_out *line = json_out_create(NULL);
    if (line) json_out_object_begin(line, NULL, true);
    return line;
}

/* Takes the line over. */
static void line_end(struct run_log *log, struct json_out *line)
{
    if (line) json_out_object_end(line);
    const bool whole = line && json_out_complete(line);
    pthread_mutex_lock(&log->lock);
    if (!whole) {
        if (!log->failure) log->failure = ENOMEM;
    } else {
        size_t length;
        const char *text = json_out_text(line, &length);
        while (length > 0 && text[length - 1] == '\n') length--;
        errno = 0;
        if ((fwrite(text, 1, length, log->file) != length || fputc('\n', log->file) == EOF ||
             fflush(log->file) != 0) &&
            !log->failure)
            log->failure = errno ? errno : EIO;
    }
    pthread_mutex_unlock(&log->lock);
    json_out_destroy(line);
}

static void write_head(struct run_log *log, const struct run_log_head *head)
{
    struct json_out *line = line_begin();
    if (line) {
        const struct plan *const plan = log->plan;
        char fingerprint[17];
        snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, plan_fingerprint(plan));
        json_out_u64(line, "spillway_log", RUN_LOG_VERSION);
        json_out_string(line, "version", SPILLWAY_VERSION);
        json_out_string(line, "plan", fingerprint);
        json_out_string(line, "policy", head->policy);
        if (head->live) json_out_string(line, "dispatch", "live");
        if (head->goes_on) json_out_bool(line, "resumed", true);
        json_out_u64(line, "seed", head->seed);
        json_out_string(line, "hardware", plan->hardware.name);
        json_out_u64(line, "devices", plan->hardware.device_count);
        json_out_u64(line, "threads", head->threads);
        json_out_string(line, "libraries", head->libraries);
        json_out_array_begin(line, "jobs", true);
        for (uint32_t j = 0; j < plan->jobs.count; j++)
            json_out_string(line, NULL, plan->jobs.jobs[j].name);
        json_out_array_end(line);
    }
    line_end(log, line);
}

enum status run_log_open(const char *path, const struct plan *plan, const struct run_log_head *head,
                         struct run_log **out, struct error *err)
{
    struct run_log *log = alloc_zeroed(1, sizeof *log);
    if (!log) return error_memory(err, "a log", sizeof *log);
    log->plan = plan;
    log->path = path;
    if (path) {
        log->file = strcmp(path, "-") == 0 ? stdout : fopen(path, head->goes_on ? "ae" : "we");
        if (!log->file) {
            free(log);
            return error_input(err, "cannot write the log '%s'", path);
        }
    }
    pthread_mutex_init(&log->lock, NULL);
    if (log->file) write_head(log, head);
    *out = log;
    return STATUS_OK;
}

static void put_loss(struct json_out *line, const char *key, double loss)
{
    if (isfinite(loss)) {
        json_out_double(line, key, loss);
        return;
    }
    json_out_null(line, key);
    json_out_bool(line, "nonfinite", true);
}

void run_log_minibatch(struct run_log *log, const struct run_log_entry *entry)
{
    if (!log->file) return;
    struct json_out *line = line_begin();
    if (line) {
        json_out_string(line, "job", log->plan->jobs.jobs[entry->job].name);
        json_out_u64(line, "step", entry->step);
        put_loss(line, "loss", entry->loss);
        if (entry->clips && isfinite(entry->norm)) json_out_double(line, "norm", entry->norm);
        else if (entry->clips) json_out_null(line, "norm");
        if (entry->skipped) json_out_bool(line, "skipped", true);
        json_out_double(line, "lr", entry->learning_rate);
        json_out_double(line, "tokens_per_s", entry->tokens_per_s);
        json_out_double(line, "elapsed_s", entry->elapsed_s);
    }
    line_end(log, line);
}

void run_log_evaluation(struct run_log *log, uint32_t job, const struct run_log_evaluation *entry)
{
    if (!log->file) return;
    struct json_out *line = line_begin();
    if (line) {
        json_out_string(line, "job", log->plan->jobs.jobs[job].name);
        json_out_u64(line, "step", entry->step);
        put_loss(line, "evaluation", entry->loss);
        json_out_bool(line, "best", entry->best);
        json_out_double(line, "elapsed_s", entry->elapsed_s);
    }
    line_end(log, line);
}

void run_log_kept(struct run_log *log, uint32_t job, uint64_t minibatches, const char *weights_path)
{
    if (!log->file) return;
    struct json_out *line = line_begin();
    if (line) {
        json_out_string(line, "job", log->plan->jobs.jobs[job].name);
        json_out_u64(line, "kept_minibatches", minibatches);
        if (weights_path) json_out_string(line, "weights", weights_path);
    }
    line_end(log, line);
}

enum status run_log_close(struct run_log *log, const char *end, double elapsed_s,
                          struct error *err)
{
    if (!log) return STATUS_OK;
    if (log->file) {
        struct json_out *line = line_begin();
        if (line) {
            json_out_string(line, "end", end);
            json_out_double(line, "elapsed_s", elapsed_s);
        }
        line_end(log, line);
        errno = 0;
        if (log->file != stdout && fclose(log->file) != 0 && !log->failure)
            log->failure = errno ? errno : EIO;
    }
    enum status status = STATUS_OK;
    if (log->failure) {
        errno = log->failure;
        status = error_io(err, "cannot write the log '%s'", log->path);
    }
    pthread_mutex_destroy(&log->lock);
    free(log);
    return status;
}
