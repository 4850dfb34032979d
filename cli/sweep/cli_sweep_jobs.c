#include "cli/sweep/cli_sweep_jobs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/path.h"
#include "base/json/json_change.h"
#include "base/json/json_in.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/process/cli_child.h"
#include "models/network/network.h"

/* --- paths ----------------------------------------------------------------------------------- */

/* Their values, also in "evaluate", are paths; a network may be a name. */
static const char *const path_keys[] = {"network", "data", "weights_in", "weights_out"};

static enum status root_paths(json_t *object, const char *file, struct arena *arena, struct error *err)
{
    for (size_t k = 0; k < ARRAY_COUNT(path_keys); k++) {
        const char *text = json_string_value(json_object_get(object, path_keys[k])), *rooted;
        if (!text) continue;
        TRY(path_beside(file, text, arena, &rooted, err));
        if (k == 0 && !network_is_file(text, rooted)) continue;
        if (json_object_set_new(object, path_keys[k], json_string(rooted)) != 0)
            return error_memory(err, "a jobs file", strlen(rooted));
    }
    json_t *evaluate = json_object_get(object, "evaluate");
    return json_is_object(evaluate) ? root_paths(evaluate, file, arena, err) : STATUS_OK;
}

/* --- changes --------------------------------------------------------------------------------- */

static enum status change(json_t *job, const struct cli_sweep_change *change, struct error *err)
{
    char what[160];
    snprintf(what, sizeof what, "jobs.%s", change->key);
    return json_change(job, change->key, change->value, what, err) != STATUS_OK ? error_add(err, "option '--vary'")
                                                                                : STATUS_OK;
}

static enum status change_all(json_t *root, const char *path, const struct cli_sweep_change *changes, size_t count,
                              struct arena *arena, struct error *err)
{
    json_t *jobs = json_object_get(root, "jobs"), *job, *defaults = json_object_get(root, "defaults");
    size_t index;
    if (!json_is_array(jobs))
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: this is not a jobs file (expected an array 'jobs'), but jobs are varied", path);
    if (json_is_object(defaults)) TRY(root_paths(defaults, path, arena, err));
    json_array_foreach(jobs, index, job) {
        if (!json_is_object(job)) continue; /* the reader reports it */
        TRY(root_paths(job, path, arena, err));
        for (size_t c = 0; c < count; c++)
            TRY(change(job, &changes[c], err));
    }
    return STATUS_OK;
}

/* --- the file -------------------------------------------------------------------------------- */

enum status cli_sweep_jobs(const char *path, const struct cli_sweep_change *changes, size_t count, struct arena *arena,
                           const char **temporary, struct error *err)
{
    struct json_input *in = NULL;
    char name[CLI_PATH_BYTES];
    TRY(json_input_read(path, &in, err));
    json_t *root = json_deep_copy(json_input_root(in));
    json_input_destroy(in);
    if (!root) return error_memory(err, "a jobs file", 0);
    enum status status = change_all(root, path, changes, count, arena, err);
    if (status == STATUS_OK) status = cli_child_file(name, err);
    if (status == STATUS_OK) {
        if (json_dump_file(root, name, 0) != 0) status = error_io(err, "cannot write '%s'", name);
        else status = arena_string(arena, name, temporary, err);
        if (status != STATUS_OK) unlink(name);
    }
    json_decref(root);
    return status;
}
