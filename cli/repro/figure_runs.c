/* One row at a time: its files as texts, then its runs. */
#include "cli/repro/figure_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/try.h"
#include "cli/repro/template.h"

enum { FILE_MAX = 64 << 20, COMMANDS_MAX = 16, WHAT_BYTES = RUN_FOLDER_BYTES };

struct figure_runs_row_scope {
    const struct figure *figure;
    uint32_t row;
};

static bool find_cell(const void *context, const char *name, struct expression_value *out)
{
    const struct figure_runs_row_scope *scope = context;
    for (uint32_t c = 0; c < scope->figure->column_count; c++)
        if (strcmp(scope->figure->columns[c].name, name) == 0) {
            *out = *figure_cell(scope->figure, scope->row, c);
            return true;
        }
    return false;
}

struct row_work {
    const struct figure *figure;
    uint32_t row;
    struct expression_scope scope;
    struct arena arena; /* of the current row */
    struct run_file files[FIGURE_FILES_MAX];
    struct error *err;
};

/* --- files ------------------------------------------------------------------------------------- */

static enum status keep_text(struct row_work *work, const char *text, size_t length, struct run_file *file)
{
    char *copy;
    if (ARENA_NEW(&work->arena, length + 1, copy, work->err) != STATUS_OK) return work->err->status;
    memcpy(copy, text, length);
    file->text = copy;
    file->length = length;
    return STATUS_OK;
}

static enum status read_named(struct row_work *work, const char *name, struct run_file *file)
{
    const char *path;
    char *text = NULL;
    size_t length;
    if (path_beside(work->figure->path, name, &work->arena, &path, work->err) != STATUS_OK ||
        file_read(path, FILE_MAX, &text, &length, work->err) != STATUS_OK)
        return work->err->status;
    keep_text(work, text, length, file);
    free(text);
    return work->err->status;
}

static enum status make_file(struct row_work *work, uint32_t index)
{
    const struct figure_file *from = &work->figure->files[index];
    struct run_file *file = &work->files[index];
    const json_t *files = json_object_get(work->figure->body, "files");
    struct template_place place = {work->figure->input, files, from->name, 0};
    json_t *content = NULL;
    file->name = from->name;
    if (template_expand(from->content, place, &work->scope, &work->arena, &content, work->err) != STATUS_OK)
        return work->err->status;
    if (json_is_string(content))
        read_named(work, json_string_value(content), file);
    else {
        char *text = json_dumps(content, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
        if (text)
            keep_text(work, text, strlen(text), file);
        else
            error_memory(work->err, "a file of a run", 0);
        free(text);
    }
    json_decref(content);
    return work->err->status;
}

/* --- runs -------------------------------------------------------------------------------------- */

/* Marks files that `text` names, directly or not. */
static void mark_named(const struct row_work *work, const char *text, bool needed[FIGURE_FILES_MAX])
{
    for (uint32_t f = 0; f < work->figure->file_count; f++)
        if (!needed[f] && strstr(text, work->files[f].name)) {
            needed[f] = true;
            mark_named(work, work->files[f].text, needed);
        }
}

/* Leaves out empty arguments, for options of some rows. */
static enum status expand_arguments(struct row_work *work, const json_t *array, struct run_command *command,
                                    bool needed[FIGURE_FILES_MAX])
{
    size_t count = 0;
    const char **arguments;
    if (ARENA_NEW(&work->arena, json_array_size(array) + 1, arguments, work->err) != STATUS_OK)
        return work->err->status;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        char number[64];
        snprintf(number, sizeof number, "%.17g", json_number_value(item));
        const char *text = json_is_string(item) ? json_string_value(item) : number;
        if (!*text) continue;
        if (arena_string(&work->arena, text, &arguments[count++], work->err) != STATUS_OK) return work->err->status;
        mark_named(work, text, needed);
    }
    command->arguments = arguments;
    return STATUS_OK;
}

/* Names figure, changes, row and run. Long changes are cut, but not the run's name, for its folder. */
static void say_what(const struct row_work *work, const struct figure_run *run, char what[WHAT_BYTES])
{
    const struct figure_texts *changes = &work->figure->changes;
    char place[WHAT_BYTES];
    int length = snprintf(place, sizeof place, ": row %u, run '%s'", (unsigned)work->row, run->name);
    size_t room = length < WHAT_BYTES ? WHAT_BYTES - (size_t)length : 1;
    size_t used = (size_t)snprintf(what, room, "%s", work->figure->id);
    for (uint32_t i = 0; i < changes->count && used < room; i++)
        used += (size_t)snprintf(what + used, room - used, "%s %s", i ? "," : " with", changes->items[i]);
    used = used < room ? used : room - 1;
    snprintf(what + used, WHAT_BYTES - used, "%s", place);
}

static enum status add_commands(struct row_work *work, const struct figure_run *run, const json_t *expanded,
                                struct run_set *set, uint32_t *index)
{
    struct run_command commands[COMMANDS_MAX];
    struct run_file files[FIGURE_FILES_MAX];
    bool needed[FIGURE_FILES_MAX] = {false};
    uint32_t count = run->chained ? (uint32_t)json_array_size(expanded) : 1, file_count = 0;
    char what[WHAT_BYTES];
    if (count > COMMANDS_MAX)
        return error_set(work->err, STATUS_LIMIT, "run '%s' has too many commands (limit is %d)", run->name,
                         COMMANDS_MAX);
    for (uint32_t c = 0; c < count; c++)
        if (expand_arguments(work, run->chained ? json_array_get(expanded, c) : expanded, &commands[c], needed) !=
            STATUS_OK)
            return work->err->status;
    for (uint32_t f = 0; f < work->figure->file_count; f++)
        if (needed[f]) files[file_count++] = work->files[f];
    say_what(work, run, what);
    return run_set_add(set, what, commands, count, files, file_count, index, work->err);
}

static enum status add_run(struct row_work *work, uint32_t index, struct run_set *set, uint32_t *out)
{
    const struct figure_run *run = &work->figure->runs[index];
    const json_t *runs = json_object_get(work->figure->body, "runs");
    struct template_place place = {work->figure->input, runs, run->name, 0};
    json_t *expanded = NULL;
    if (template_expand(run->commands, place, &work->scope, &work->arena, &expanded, work->err) != STATUS_OK)
        return work->err->status;
    add_commands(work, run, expanded, set, out);
    json_decref(expanded);
    return work->err->status;
}

static enum status add_row(const struct figure *figure, uint32_t row, struct run_set *set, uint32_t *indexes,
                           struct error *err)
{
    const char *names[FIGURE_NAMES_MAX];
    struct figure_runs_row_scope context = {figure, row};
    struct row_work work = {.figure = figure, .row = row, .err = err};
    work.scope = (struct expression_scope){find_cell, &context, names, figure_names(figure, false, 0, names)};
    for (uint32_t f = 0; f < figure->file_count && !err->status; f++) (void)make_file(&work, f);
    for (uint32_t k = 0; k < figure->run_count && !err->status; k++) (void)add_run(&work, k, set, &indexes[k]);
    arena_release(&work.arena);
    if (err->status) error_add(err, "row %u", (unsigned)row);
    return err->status;
}

enum status figure_add_runs(const struct figure *figure, struct run_set *set, struct arena *arena,
                            const uint32_t **indexes, struct error *err)
{
    uint32_t *all;
    TRY(ARENA_NEW(arena, (size_t)figure->row_count * figure->run_count, all, err));
    for (uint32_t r = 0; r < figure->row_count; r++)
        TRY(add_row(figure, r, set, all + (size_t)r * figure->run_count, err));
    *indexes = all;
    return STATUS_OK;
}
