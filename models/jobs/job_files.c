#include "models/jobs/job_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/files/outputs.h"
#include "base/files/path.h"
#include "base/size.h"
#include "base/text.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "models/jobs/job_names.h"

const char *job_partial_path(const char *path, char out[JOB_PATH_BYTES])
{
    static const char ending[] = ".safetensors";
    struct stat info;
    const bool special = stat(path, &info) == 0 && !S_ISREG(info.st_mode), usual = text_ends_in(path, ending);
    const size_t stem = strlen(path) - (usual ? strlen(ending) : 0);
    if (special) snprintf(out, JOB_PATH_BYTES, "%s", path);
    else snprintf(out, JOB_PATH_BYTES, "%.*s.partial%s", (int)stem, path, usual ? ending : "");
    return out;
}

void job_partial_remove(const char *path)
{
    char partial[JOB_PATH_BYTES];
    if (strcmp(job_partial_path(path, partial), path) != 0) unlink(partial);
}

/* Declares complete and unfinished weights. */
static enum status declare_weights(const char *path, const char *what, bool probe, struct error *err)
{
    char partial[JOB_PATH_BYTES];
    TRY(outputs_declare(path, FILE_KIND_WEIGHTS, what, err));
    TRY(outputs_declare(job_partial_path(path, partial), FILE_KIND_WEIGHTS, what, err));
    if (!probe) return STATUS_OK;
    TRY(outputs_probe(path, FILE_KIND_WEIGHTS, what, err));
    return outputs_probe(partial, FILE_KIND_WEIGHTS, what, err);
}

/* Checks the process's limit of file sizes, which a write past it meets only after the training. */
static enum status check_file_limit(const struct job *job, double needed, struct error *err)
{
    struct rlimit limit;
    char text[2][QUANTITY_TEXT_BYTES];
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || (double)limit.rlim_cur >= needed)
        return STATUS_OK;
    return error_set(err, STATUS_IO, "the weights of job '%s' need %s, and files may have %s (ulimit -f)", job->name,
                     quantity_text(needed, DIMENSION_BYTES, text[0]),
                     quantity_text((double)limit.rlim_cur, DIMENSION_BYTES, text[1]));
}

/* Checks room for F32 weights; other jobs' needs are not counted. */
static enum status check_room(const struct job *job, struct error *err)
{
    struct statvfs disk;
    struct stat info;
    char folder[JOB_PATH_BYTES], text[2][QUANTITY_TEXT_BYTES];
    const double needed = 4.0 * (double)(job->adapter.rank > 0 ? network_trained_parameters(&job->network)
                                                               : network_parameters(&job->network));
    if (stat(job->weights_out, &info) == 0 && !S_ISREG(info.st_mode)) return STATUS_OK;
    TRY(check_file_limit(job, needed, err));
    const char *const slash = strrchr(job->weights_out, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - job->weights_out + 1) : 1,
             slash ? job->weights_out : ".");
    if (statvfs(folder, &disk) != 0) return STATUS_OK; /* outputs_probe() wrote there */
    const double room = (double)disk.f_bavail * (double)disk.f_frsize;
    if (room >= needed) return STATUS_OK;
    return error_set(err, STATUS_IO, "the weights of job '%s' need %s, and '%s' has room for %s", job->name,
                     quantity_text(needed, DIMENSION_BYTES, text[0]), folder,
                     quantity_text(room, DIMENSION_BYTES, text[1]));
}

/* Declares the files of a folder of weights, or of an index, as inputs (exec/files/weights_files.h). */
static enum status declare_folder(const char *path, struct error *err)
{
    char folder[JOB_PATH_BYTES], file[2 * JOB_PATH_BYTES];
    struct stat info;
    const bool index = text_ends_in(path, ".json");
    const char *const slash = strrchr(path, '/');
    if (!index && (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))) return STATUS_OK;
    snprintf(folder, sizeof folder, "%.*s", index ? (int)(slash ? slash - path : 1) : (int)strlen(path),
             index && !slash ? "." : path);
    DIR *const entries = opendir(folder);
    enum status status = STATUS_OK;
    for (const struct dirent *entry; entries && !status && (entry = readdir(entries));) {
        if (!text_ends_in(entry->d_name, ".safetensors") && !text_ends_in(entry->d_name, ".safetensors.index.json"))
            continue;
        snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
        status = outputs_read(file, err);
    }
    if (entries) closedir(entries);
    return status;
}

/* Makes the folders of an adapter. */
static enum status make_folders(const struct job *job, struct error *err)
{
    if (job->weights_out) TRY(path_make_folders(job->weights_out, err));
    return job->weights_best ? path_make_folders(job->weights_best, err) : STATUS_OK;
}

enum status job_files_declare(const struct job *job, bool probe, struct error *err)
{
    const char *const inputs[] = {job->data, job->weights_in, job->evaluation.data};
    char what[JOB_NAME_MAX + 64];
    for (size_t i = 0; i < ARRAY_COUNT(inputs); i++)
        if (inputs[i] && outputs_read(inputs[i], err) != STATUS_OK) return err->status;
    if (job->weights_in) TRY(declare_folder(job->weights_in, err));
    if (job->adapter.from) TRY(declare_folder(job->adapter.from, err));
    if (probe && job->adapter.rank > 0) TRY(make_folders(job, err));
    snprintf(what, sizeof what, "the weights of job '%s'", job->name);
    if (job->weights_out) TRY(declare_weights(job->weights_out, what, probe, err));
    if (job->weights_out && probe) TRY(check_room(job, err));
    snprintf(what, sizeof what, "the best weights of job '%s'", job->name);
    return job->weights_best ? declare_weights(job->weights_best, what, probe, err) : STATUS_OK;
}

enum status job_set_files_declare(const struct job_set *jobs, bool probe, struct error *err)
{
    for (uint32_t j = 0; j < jobs->count; j++)
        TRY(job_files_declare(&jobs->jobs[j], probe, err));
    return STATUS_OK;
}

enum status job_set_checkpoints_declare(const struct job_set *jobs, const char *folder, struct error *err)
{
    char path[JOB_PATH_BYTES], what[JOB_NAME_MAX + 64];
    for (uint32_t j = 0; j < jobs->count; j++) {
        const int length = snprintf(path, sizeof path, "%s/%s", folder, jobs->jobs[j].name);
        if (length >= (int)sizeof path)
            return error_set(err, STATUS_LIMIT, "the path of the checkpoints is too long (limit is %d bytes)",
                             JOB_PATH_BYTES);
        snprintf(what, sizeof what, "the checkpoints of job '%s'", jobs->jobs[j].name);
        TRY(outputs_declare_folder(path, what, err));
    }
    return STATUS_OK;
}

/* Moves a file below `from` with its folders; others go into `to` itself. */
static enum status send(const char *from, const char *to, const char *path, struct arena *arena, const char **out,
                        struct error *err)
{
    char relative[PATH_RELATIVE_BYTES];
    const char *seen = path_relative(from, path, relative), *slash = strrchr(seen, '/');
    bool outside = seen[0] == '/' || strncmp(seen, "../", 3) == 0 || strstr(seen, "/../");
    return path_absolute(to, outside && slash ? slash + 1 : seen, arena, out, err);
}

enum status job_set_send(struct job_set *jobs, const char *from, const char *to, struct error *err)
{
    struct job_names sent = {0};
    for (uint32_t j = 0; j < jobs->count && !err->status; j++) {
        struct job *job = &jobs->jobs[j];
        if (!job->weights_out || send(from, to, job->weights_out, &jobs->arena, &job->weights_out, err)) continue;
        uint32_t other = job_names_find(&sent, job->weights_out);
        if (other != UINT32_MAX)
            error_set(err, STATUS_BAD_INPUT, "jobs '%s' and '%s' would both write '%s'", jobs->jobs[other].name,
                      job->name, job->weights_out);
        else if (job_names_add(&sent, job->weights_out, j, err) == STATUS_OK && job->weights_best)
            (void)!send(from, to, job->weights_best, &jobs->arena, &job->weights_best, err);
    }
    free(sent.cells);
    return err->status;
}
