/*
 * Commands go through the pool of base/process/children.h; a run's further ones come before new runs.
 *
 * A run's folder is PATH/INDEX in one temporary folder, removed when the run ends.
 */
#include "cli/repro/run_set.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/extreme.h"
#include "base/files/folder.h"
#include "base/files/path.h"
#include "base/process/children.h"
#include "base/process/clock.h"
#include "base/process/progress.h"
#include "base/try.h"

enum { PATH_BYTES = 4096, MESSAGE_BYTES = 900 };

struct run_set_run {
    const char *what;
    const struct run_command *commands;
    uint32_t command_count;
    const struct run_file *files;
    uint32_t file_count;
    struct run_answer answer;
    json_t *json; /* owned */
    int refused;  /* 2 or 3 if it failed by itself; else 0 */
    /* while active */
    bool begun, waiting, done; /* waiting: for its next command */
    uint32_t at;               /* command */
    double started_s;          /* 0: no command runs */
    const char *folder;        /* in the set's arena */
};

struct run_set {
    struct arena arena;
    struct run_set_run *runs;
    size_t count, capacity;
    char folder[64]; /* "": not executing */
};

enum status run_set_create(struct run_set **out, struct error *err)
{
    struct run_set *set = alloc_zeroed(1, sizeof *set);
    if (!set) return error_memory(err, "runs", sizeof *set);
    *out = set;
    return STATUS_OK;
}

uint32_t run_set_count(const struct run_set *set)
{
    return (uint32_t)set->count;
}

const struct run_answer *run_set_answer(const struct run_set *set, uint32_t index)
{
    return &set->runs[index].answer;
}

/* --- adding ------------------------------------------------------------------------------------ */

static bool same_commands(const struct run_set_run *run, const struct run_command *commands, uint32_t count)
{
    if (run->command_count != count) return false;
    for (uint32_t c = 0; c < count; c++) {
        const char *const *a = run->commands[c].arguments, *const *b = commands[c].arguments;
        for (; *a && *b && strcmp(*a, *b) == 0; a++) b++;
        if (*a || *b) return false;
    }
    return true;
}

static bool same_files(const struct run_set_run *run, const struct run_file *files, uint32_t count)
{
    if (run->file_count != count) return false;
    for (uint32_t f = 0; f < count; f++) {
        const struct run_file *a = &run->files[f], *b = &files[f];
        if (a->length != b->length || strcmp(a->name, b->name) != 0 || memcmp(a->text, b->text, a->length) != 0)
            return false;
    }
    return true;
}

static enum status copy_command(struct arena *arena, const struct run_command *from, struct run_command *to,
                                struct error *err)
{
    size_t count = 0;
    while (from->arguments[count]) count++;
    const char **arguments;
    TRY(ARENA_NEW(arena, count + 1, arguments, err));
    for (size_t i = 0; i < count; i++)
        TRY(arena_string(arena, from->arguments[i], &arguments[i], err));
    to->arguments = arguments;
    return STATUS_OK;
}

static enum status copy_file(struct arena *arena, const struct run_file *from, struct run_file *to, struct error *err)
{
    char *text;
    TRY(arena_string(arena, from->name, &to->name, err));
    TRY(ARENA_NEW(arena, from->length + 1, text, err));
    memcpy(text, from->text, from->length);
    to->text = text;
    to->length = from->length;
    return STATUS_OK;
}

enum status run_set_add(struct run_set *set, const char *what, const struct run_command *commands,
                        uint32_t command_count, const struct run_file *files, uint32_t file_count, uint32_t *index,
                        struct error *err)
{
    for (size_t i = 0; i < set->count; i++)
        if (same_commands(&set->runs[i], commands, command_count) && same_files(&set->runs[i], files, file_count)) {
            *index = (uint32_t)i;
            return STATUS_OK;
        }
    struct run_file *new_files;
    struct run_command *new_commands;
    struct run_set_run run = {.command_count = command_count, .file_count = file_count};
    TRY(array_reserve(&set->runs, &set->capacity, set->count, sizeof *set->runs, RUN_SET_MAX, "runs", err));
    TRY(arena_string(&set->arena, what, &run.what, err));
    TRY(ARENA_NEW(&set->arena, command_count, new_commands, err));
    TRY(ARENA_NEW(&set->arena, file_count, new_files, err));
    for (uint32_t c = 0; c < command_count; c++)
        TRY(copy_command(&set->arena, &commands[c], new_commands + c, err));
    for (uint32_t f = 0; f < file_count; f++)
        TRY(copy_file(&set->arena, &files[f], new_files + f, err));
    run.commands = new_commands;
    run.files = new_files;
    *index = (uint32_t)set->count;
    set->runs[set->count++] = run;
    return STATUS_OK;
}

/* --- folders ------------------------------------------------------------------------------------- */

static void path_in(const struct run_set *set, const struct run_set_run *run, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%zu%s%s", set->folder, (size_t)(run - set->runs), *name ? "/" : "", name);
}

/* Writes without sync: the file is temporary. */
static enum status write_file(const char *path, const char *text, size_t length, struct error *err)
{
    FILE *file = fopen(path, "w");
    if (!file) return error_io(err, "cannot write '%s'", path);
    bool written = fwrite(text, 1, length, file) == length;
    if (fclose(file) != 0 || !written) return error_io(err, "cannot write '%s'", path);
    return STATUS_OK;
}

static enum status make_folder(struct run_set *set, struct run_set_run *run, struct error *err)
{
    char path[PATH_BYTES];
    path_in(set, run, "", path);
    TRY(arena_string(&set->arena, path, &run->folder, err));
    if (mkdir(path, 0700) != 0) return error_io(err, "cannot make the folder '%s'", path);
    for (uint32_t f = 0; f < run->file_count; f++) {
        path_in(set, run, run->files[f].name, path);
        TRY(write_file(path, run->files[f].text, run->files[f].length, err));
    }
    return STATUS_OK;
}

const char *run_set_folder(const struct run_set *set, uint32_t index, char name[RUN_FOLDER_BYTES])
{
    size_t used = 0;
    for (const char *c = set->runs[index].what; *c && used + 1 < RUN_FOLDER_BYTES; c++)
        if (isalnum((unsigned char)*c)) name[used++] = *c;
        else if (used > 0 && name[used - 1] != '-') name[used++] = '-';
    while (used > 0 && name[used - 1] == '-') used--;
    name[used] = '\0';
    return name;
}

/* Replaces an earlier run's folder. The parent is made only now: a failed first run leaves nothing. */
static enum status keep_folder(const struct run_set *set, const struct run_set_run *run, const char *keep,
                               struct error *err)
{
    char path[PATH_BYTES], name[RUN_FOLDER_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s", keep, run_set_folder(set, (uint32_t)(run - set->runs), name));
    if (length < 0 || length >= (int)sizeof path)
        return error_set(err, STATUS_LIMIT, "a path is too long (limit is %d)", PATH_BYTES - 1);
    TRY(path_make_folders(path, err));
    folder_remove(path);
    return folder_move(run->folder, path, err);
}

static void end_folder(struct run_set *set)
{
    if (*set->folder) folder_remove(set->folder);
    *set->folder = '\0';
}

/* --- answers ------------------------------------------------------------------------------------- */

/* Returns true for an error without figures (cli/common/cli_answer.h). */
static bool is_error(const json_t *json)
{
    const char *schema = json_string_value(json_object_get(json, "schema"));
    return schema && strcmp(schema, "spillway-error-1") == 0;
}

static enum status read_answer(struct run_set *set, struct run_set_run *run, const struct children_end *end,
                               struct error *err)
{
    char buffer[MESSAGE_BYTES];
    json_error_t place;
    run->json = json_loadb(end->output, end->output_length, JSON_REJECT_DUPLICATES, &place);
    if (is_error(run->json)) {
        json_decref(run->json);
        run->json = NULL;
    }
    run->answer.json = run->json;
    const char *message = children_reason(end->complaint, buffer, sizeof buffer);
    TRY(arena_string(&set->arena, *message ? message : "it answered no", &run->answer.why, err));
    if (!run->json && end->exit_code == 0)
        return error_set(err, STATUS_BAD_INPUT, "%s: no JSON was printed, line %d: %s (is '--json' missing?)",
                         run->what, place.line, place.text);
    return STATUS_OK;
}

static enum status fail_run(const struct run_set_run *run, const struct children_end *end, struct error *err)
{
    char buffer[MESSAGE_BYTES];
    const char *message = children_reason(end->complaint, buffer, sizeof buffer);
    if (end->signal != 0) return error_set(err, STATUS_DEVICE, "%s: ended by signal %d", run->what, end->signal);
    return error_set(err, end->exit_code == 2 ? STATUS_BAD_INPUT : STATUS_DEVICE, "%s: %s", run->what,
                     *message ? message : "it ended without a message");
}

/* Queues the next command or reads the answer. */
static enum status go_on(struct run_set *set, struct run_set_run *run, const struct run_set_options *options,
                         const struct children_end *end, struct error *err)
{
    const char *keep = options->keep;
    int worst = options->go_on ? 3 : 1; /* the highest that does not fail the set */
    if (end->signal != 0 || end->exit_code < 0 || end->exit_code > worst) return fail_run(run, end, err);
    if (end->exit_code == 0 && ++run->at < run->command_count) {
        run->waiting = true;
        return STATUS_OK;
    }
    TRY(read_answer(set, run, end, err));
    run->refused = end->exit_code > 1 ? end->exit_code : 0;
    run->done = true;
    if (keep && run->refused == 0) return keep_folder(set, run, keep, err);
    folder_remove(run->folder);
    return STATUS_OK;
}

/* --- the pool -------------------------------------------------------------------------------------- */

struct pool {
    struct run_set *set;
    const struct run_set_options *options;
    const char *program;
    struct progress progress;
    size_t next, done;
    size_t failed;        /* first; SIZE_MAX: none */
    struct error failure; /* of that run */
    struct error fault;   /* at starting */
};

static enum status command_of(struct pool *pool, const struct run_set_run *run, const char *const **out,
                              struct error *err)
{
    const char *const *arguments = run->commands[run->at].arguments;
    size_t count = 0;
    while (arguments[count]) count++;
    const char **argv;
    TRY(ARENA_NEW(&pool->set->arena, count + 2, argv, err));
    argv[0] = pool->program;
    memcpy(argv + 1, arguments, count * sizeof *argv);
    *out = argv;
    return STATUS_OK;
}

/* Prefers waiting runs; NULL: none now. */
static struct run_set_run *next_run(const struct pool *pool)
{
    for (size_t i = 0; i < pool->next; i++)
        if (pool->set->runs[i].waiting) return &pool->set->runs[i];
    return pool->next < pool->set->count && pool->failed == SIZE_MAX ? &pool->set->runs[pool->next] : NULL;
}

static bool next_command(void *context, struct children_start *out)
{
    struct pool *pool = context;
    struct run_set_run *run = pool->fault.status ? NULL : next_run(pool);
    if (!run) return false;
    if (!run->begun) {
        pool->next++;
        run->begun = true;
        if (make_folder(pool->set, run, &pool->fault) != STATUS_OK) return false;
    }
    if (command_of(pool, run, &out->argv, &pool->fault) != STATUS_OK) return false;
    out->folder = run->folder;
    out->id = (uint64_t)(run - pool->set->runs);
    run->waiting = false;
    run->started_s = clock_s();
    return true;
}

/* Returns true after all earlier runs have ended, independent of speed. */
static bool has_failed(const struct pool *pool)
{
    bool before = false;
    for (size_t i = 0; pool->failed < SIZE_MAX && i < pool->failed; i++)
        before |= pool->set->runs[i].begun && !pool->set->runs[i].done;
    return pool->failed < SIZE_MAX && !before;
}

static enum status handle_end(void *context, const struct children_end *end, struct error *err)
{
    struct pool *pool = context;
    struct run_set_run *run = &pool->set->runs[end->id];
    struct error own = {0};
    run->started_s = 0;
    run->answer.cpu_s += end->cpu_s;
    if (go_on(pool->set, run, pool->options, end, &own) != STATUS_OK) {
        run->done = true;
        if (end->id < pool->failed) pool->failure = own, pool->failed = end->id;
    }
    pool->done += run->done;
    if (has_failed(pool)) *err = pool->failure;
    return err->status;
}

static enum status look(void *context, struct error *err)
{
    struct pool *pool = context;
    double limit_s = pool->options->limit_s, now_s = clock_s();
    progress_update(&pool->progress, (double)pool->done, NULL);
    if (pool->fault.status) *err = pool->fault;
    for (size_t i = 0; i < pool->next && limit_s > 0 && !err->status; i++) {
        const struct run_set_run *run = &pool->set->runs[i];
        if (run->started_s > 0 && now_s - run->started_s > limit_s)
            return error_set(err, STATUS_DEVICE, "%s: not done within %g s", run->what, limit_s);
    }
    return err->status;
}

/* Checks that some run succeeded; else the first reason is the set's. */
static enum status check_some(const struct run_set *set, struct error *err)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->runs[i].refused == 0) return STATUS_OK;
    if (set->count == 0) return STATUS_OK;
    return error_set(err, set->runs[0].refused == 2 ? STATUS_BAD_INPUT : STATUS_DEVICE, "%s: %s", set->runs[0].what,
                     set->runs[0].answer.why);
}

enum status run_set_execute(struct run_set *set, const struct run_set_options *options, struct error *err)
{
    char self[PATH_BYTES] = "";
    struct pool pool = {.set = set, .options = options, .program = options->program, .failed = SIZE_MAX};
    const struct children_client client = {&pool, next_command, handle_end, look};
    uint32_t workers = options->workers > 0 ? min_u32(options->workers, CHILDREN_MAX) : children_cores();
    if (!pool.program) TRY(path_from_program("", self, sizeof self, err));
    if (!pool.program) pool.program = self;
    TRY(folder_make_temporary("repro", set->folder, sizeof set->folder, err));
    progress_begin(&pool.progress, "runs", (double)set->count);
    if (children_run(&client, workers, err) == STATUS_OK && pool.fault.status) *err = pool.fault;
    progress_end(&pool.progress);
    end_folder(set);
    return err->status ? err->status : check_some(set, err);
}

void run_set_destroy(struct run_set *set)
{
    if (!set) return;
    for (size_t i = 0; i < set->count; i++) json_decref(set->runs[i].json);
    free(set->runs);
    arena_release(&set->arena);
    free(set);
}
