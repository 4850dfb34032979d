#include "exec/files/adapter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/files/path.h"
#include "base/try.h"
#include "exec/files/safetensors.h"
#include "models/jobs/job_peft.h"
#include "models/jobs/job_trained.h"

/* Finds a tensor of the adapter, with its shape and type. */
static enum status find(const struct safetensors *file, const char *path, const struct tensor_spec *spec,
                        const struct safetensors_tensor **out, struct error *err)
{
    char is[SAFETENSORS_SHAPE_BYTES], expected[SAFETENSORS_SHAPE_BYTES];
    const struct safetensors_tensor *const found = safetensors_find(file, spec->name);
    *out = found;
    if (!found)
        return error_set(err, STATUS_BAD_INPUT, "%s: no tensor '%s' among its %zu", path, spec->name,
                         safetensors_count(file));
    if (found->rank != spec->rank || memcmp(found->shape, spec->shape, spec->rank * sizeof *spec->shape) != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: tensor '%s' has shape [%s] (expected [%s]: it is an adapter of another network, "
                         "or of another rank)",
                         path, spec->name, safetensors_shape_text(found->shape, found->rank, is),
                         safetensors_shape_text(spec->shape, spec->rank, expected));
    if (found->type == SAFETENSORS_OTHER)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: tensor '%s' has a type that is not read (expected F32, F16 or BF16)", path, spec->name);
    return STATUS_OK;
}

static enum status fill(const struct safetensors *file, const char *path, struct weights_walk *walk, size_t *count,
                        struct error *err)
{
    struct weights_tensor tensor;
    for (*count = 0; weights_walk_next(walk, &tensor);) {
        const struct safetensors_tensor *found;
        if (!tensor.spec->adapter) continue;
        TRY(find(file, path, tensor.spec, &found, err));
        ++*count;
        if (!tensor.values) continue;
        if (!safetensors_floats(found, tensor.values))
            return error_set(err, STATUS_BAD_INPUT, "%s: tensor '%s' has a number that is not finite", path,
                             found->name);
        TRY(weights_order_rows(tensor.spec, tensor.values, tensor.values, false, err));
    }
    return STATUS_OK;
}

static enum status check_base(const struct safetensors *file, const char *path, uint64_t base, struct error *err)
{
    char own[17];
    const char *const found = safetensors_metadata(file, ADAPTER_BASE_KEY);
    snprintf(own, sizeof own, "%016" PRIx64, base);
    if (!found || strcmp(found, own) == 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "%s: an adapter of other weights than the job's network has (fingerprint %.16s, expected %s)",
                     path, found, own);
}

/* Names the first tensor that the job's adapters do not have. */
static enum status fail_others(const struct safetensors *file, const char *path, struct weights_walk walk,
                               struct error *err)
{
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const char *const name = safetensors_at(file, i)->name;
        struct weights_walk all = walk;
        struct weights_tensor tensor;
        bool known = false;
        while (!known && weights_walk_next(&all, &tensor))
            known = tensor.spec->adapter && strcmp(tensor.spec->name, name) == 0;
        if (!known) return error_set(err, STATUS_BAD_INPUT, "%s: the job has no adapter tensor '%.120s'", path, name);
    }
    return STATUS_OK;
}

static enum status open_weights(const struct job *job, struct arena *arena, const char **path,
                                struct safetensors **file, struct error *err)
{
    TRY(path_absolute(job->adapter.from, job_adapter_file, arena, path, err));
    return safetensors_open(*path, file, err);
}

enum status adapter_read(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                         float *const *states, const uint64_t *base, struct error *err)
{
    struct weights_walk walk = {.job = job, .tables = tables, .shard_count = shard_count, .states = states};
    struct arena arena = {0};
    struct safetensors *file = NULL;
    const char *path = NULL;
    size_t count;
    enum status status = open_weights(job, &arena, &path, &file, err);
    if (status == STATUS_OK && base) status = check_base(file, path, *base, err);
    if (status == STATUS_OK) status = fill(file, path, &walk, &count, err);
    if (status == STATUS_OK) weights_round(job, tables, shard_count, states);
    safetensors_close(file);
    arena_release(&arena);
    if (status != STATUS_OK) error_add(err, "the adapter of job '%s'", job->name);
    return status;
}

/* Compares the configuration with the job, which may be a plan's and older. */
static enum status check_config(const struct job *job, struct arena *arena, struct error *err)
{
    const struct job_adapter *const own = &job->adapter;
    struct job_adapter theirs = {0};
    TRY(job_peft_read(own->from, true, arena, &theirs, err));
    if (theirs.rank != own->rank)
        return error_set(err, STATUS_BAD_INPUT, "%s: an adapter of rank %" PRIu64 " (expected %" PRIu64 ")", own->from,
                         theirs.rank, own->rank);
    const double scale = job_adapter_scale(own), found = job_adapter_scale(&theirs);
    if (found >= scale * (1 - 1e-9) && found <= scale * (1 + 1e-9)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "%s: an adapter of scale %g (expected %g)", own->from, found, scale);
}

enum status adapter_check(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                          struct error *err)
{
    const struct weights_walk walk = {.job = job, .tables = tables, .shard_count = shard_count};
    struct weights_walk all = walk;
    struct arena arena = {0};
    struct safetensors *file = NULL;
    const char *path = NULL;
    size_t count = 0;
    enum status status = check_config(job, &arena, err);
    if (status == STATUS_OK) status = open_weights(job, &arena, &path, &file, err);
    if (status == STATUS_OK) status = fill(file, path, &all, &count, err);
    if (status == STATUS_OK && count < safetensors_count(file)) status = fail_others(file, path, walk, err);
    safetensors_close(file);
    arena_release(&arena);
    if (status != STATUS_OK) error_add(err, "the adapter of job '%s'", job->name);
    return status;
}

enum status adapter_write_config(const struct job *job, const char *weights, struct error *err)
{
    struct arena arena = {0};
    const char *path;
    enum status status = path_make_folders(weights, err);
    if (status == STATUS_OK) status = path_beside(weights, job_adapter_config, &arena, &path, err);
    if (status == STATUS_OK) status = job_peft_write(job, path, err);
    arena_release(&arena);
    return status;
}
