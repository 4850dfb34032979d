#include "models/jobs/job_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/size.h"
#include "base/text.h"
#include "base/try.h"

struct rows_choice job_rows_choice(const struct job *job)
{
    const bool shared = job->evaluation.every > 0 && !job->evaluation.data;
    return (struct rows_choice){.sequence = job->sequence,
                                .skips_long = job->skips_long,
                                .packs = job->packs,
                                .held_out = shared ? job->evaluation.share : 0,
                                .split_seed = job->evaluation.split_seed};
}

/* Opens the file and the training's set. The caller releases both. */
static enum status open_rows(const struct job *job, struct rows_file *file, struct rows_set *set, struct error *err)
{
    const struct rows_choice choice = job_rows_choice(job);
    TRY(rows_file_open(job->data, file, err));
    return rows_set_make(file, &choice, false, set, err);
}

enum status job_rows_samples(const struct job *job, uint64_t *out, struct error *err)
{
    struct rows_file file = {0};
    struct rows_set set = {0};
    const enum status status = open_rows(job, &file, &set, err);
    *out = status ? 0 : set.samples;
    rows_set_release(&set);
    rows_file_close(&file);
    return status;
}

enum status job_rows_minibatches(const struct job *job, double epochs, uint64_t *out, struct error *err)
{
    uint64_t samples;
    TRY(job_rows_samples(job, &samples, err));
    const double minibatches = ceil(epochs * (double)samples / (double)job_samples(job) - 1e-9);
    if (minibatches > (double)JOB_MINIBATCHES_MAX)
        return error_set(err, STATUS_BAD_INPUT, "%g epochs are %.0f minibatches (limit is %" PRIu64 ")", epochs,
                         minibatches, JOB_MINIBATCHES_MAX);
    *out = minibatches < 1 ? 1 : (uint64_t)minibatches;
    return STATUS_OK;
}

static void describe(const struct job *job, const struct rows_set *set, char *out)
{
    const uint64_t held = set->used - set->rows;
    char held_text[48] = "", long_text[96] = "", pack_text[96] = "", idle_text[96] = "";
    if (held > 0) snprintf(held_text, sizeof held_text, ", %" PRIu64 " held out", held);
    if (set->long_rows > 0)
        snprintf(long_text, sizeof long_text, "; %" PRIu64 " longer than %" PRIu64 " tokens %s %s", set->long_rows,
                 job->sequence + 1, set->long_rows == 1 ? "is" : "are", job->skips_long ? "skipped" : "cut");
    if (set->idle_rows > 0)
        snprintf(idle_text, sizeof idle_text, "; %" PRIu64 " without a learned token", set->idle_rows);
    snprintf(pack_text, sizeof pack_text, "; %s%" PRIu64 " samples, %.1f %% full", job->packs ? "packed in " : "",
             set->samples, 100 * (double)set->filled / ((double)set->samples * (double)job->sequence));
    snprintf(out, JOB_ROWS_TEXT_BYTES, "%" PRIu64 " rows%s%s%s%s; %.2f epochs", set->rows, held_text, long_text,
             idle_text, pack_text, (double)(job->minibatches * job_samples(job)) / (double)set->samples);
}

const char *job_rows_text(const struct job *job, char out[JOB_ROWS_TEXT_BYTES])
{
    struct rows_file file = {0};
    struct rows_set set = {0};
    struct error ignored = {0};
    out[0] = '\0';
    if (job->data_format != DATA_ROWS) return out;
    if (open_rows(job, &file, &set, &ignored) == STATUS_OK) describe(job, &set, out);
    rows_set_release(&set);
    rows_file_close(&file);
    return out;
}

/* --- tokenizers --------------------------------------------------------------------------------------- */

/* Finds the network's folder, if it has a tokenizer.json. */
static bool find_folder(const struct network *network, char out[JOB_ROWS_FOLDER_BYTES])
{
    char tokenizer[JOB_ROWS_FOLDER_BYTES + 32];
    struct stat info;
    size_t length = strlen(network->name);
    if (text_ends_in(network->name, "config.json")) length -= strlen("config.json");
    while (length > 1 && network->name[length - 1] == '/') length--;
    if (length == 0 && network->name[0]) snprintf(out, JOB_ROWS_FOLDER_BYTES, ".");
    else if (length > 0 && length < JOB_ROWS_FOLDER_BYTES)
        snprintf(out, JOB_ROWS_FOLDER_BYTES, "%.*s", (int)length, network->name);
    else return false;
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", out);
    return stat(tokenizer, &info) == 0;
}

bool job_rows_command(const char *path, const struct network *network, char out[JOB_ROWS_COMMAND_BYTES])
{
    static const char *const endings[] = {".jsonl", ".ndjson"};
    char folder[JOB_ROWS_FOLDER_BYTES];
    for (size_t i = 0; i < ARRAY_COUNT(endings); i++) {
        if (!text_ends_like(path, endings[i])) continue;
        const size_t stem = strlen(path) - strlen(endings[i]);
        if (!find_folder(network, folder)) strcpy(folder, "FOLDER");
        const int length = snprintf(out, JOB_ROWS_COMMAND_BYTES,
                                    "'spillway tokenize %s --rows --tokenizer %s -o %.*s.rows'", path,
                                    folder, (int)stem, path);
        return length < (int)JOB_ROWS_COMMAND_BYTES;
    }
    return false;
}

/* Hashes a tokenizer once for jobs that follow each other. */
static uint64_t hash_of(const char *folder)
{
    static _Thread_local char last[JOB_ROWS_FOLDER_BYTES];
    static _Thread_local struct timespec changed;
    static _Thread_local uint64_t hash;
    char path[JOB_ROWS_FOLDER_BYTES + 32];
    struct stat info;
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    if (stat(path, &info) != 0) return 0;
    if (strcmp(folder, last) == 0 && info.st_mtim.tv_sec == changed.tv_sec &&
        info.st_mtim.tv_nsec == changed.tv_nsec) return hash;
    snprintf(last, sizeof last, "%s", folder);
    changed = info.st_mtim;
    hash = rows_file_hash(folder);
    return hash;
}

bool job_rows_other_tokenizer(const char *path, const struct network *network, char folder[JOB_ROWS_FOLDER_BYTES])
{
    struct rows_file file = {0};
    struct error ignored = {0};
    if (!find_folder(network, folder) || rows_file_open(path, &file, &ignored) != STATUS_OK) return false;
    const uint64_t made_by = file.tokenizer;
    rows_file_close(&file);
    return made_by != 0 && hash_of(folder) != 0 && hash_of(folder) != made_by;
}
