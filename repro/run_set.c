/*
 * The pool is one loop around one signal set. SIGCHLD, SIGINT and SIGTERM are blocked while it runs and
 * waited for with sigtimedwait(), so that neither a child's end nor Ctrl-C can come between a look and a wait:
 *
 *     start children while workers are free
 *     reap those that ended; a run with commands left goes on with the next
 *     wait for a signal, at most a second, which also keeps the progress bar moving
 *
 * Children have the terminal's Ctrl-C too, but get SIGTERM from here in any case, and from the kernel when this
 * process dies. A run's folder is PATH/INDEX below one temporary folder; answers are read from it when the run
 * ends, and the folder is removed at once: a hundred figures need little room.
 */
#include "repro/run_set.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/children.h"
#include "base/file.h"
#include "base/path.h"
#include "base/progress.h"

enum { PATH_BYTES = 4096, ANSWER_MAX = 256 << 20, MESSAGE_BYTES = 900 };

struct run {
    const char *what;
    const struct run_command *commands;
    uint32_t command_count;
    const struct run_file *files;
    uint32_t file_count;
    struct run_answer answer;
    json_t *json; /* owned */
    /* while it runs */
    pid_t child;
    uint32_t at; /* command */
    double started_s;
};

struct run_set {
    struct arena arena;
    struct run *runs;
    size_t count, capacity;
    char folder[64]; /* "" before and after */
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

static bool same_commands(const struct run *run, const struct run_command *commands, uint32_t count)
{
    if (run->command_count != count) return false;
    for (uint32_t c = 0; c < count; c++) {
        const char *const *a = run->commands[c].arguments, *const *b = commands[c].arguments;
        for (; *a && *b && strcmp(*a, *b) == 0; a++) b++;
        if (*a || *b) return false;
    }
    return true;
}

static bool same_files(const struct run *run, const struct run_file *files, uint32_t count)
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
    void *copy;
    while (from->arguments[count]) count++;
    if (arena_array(arena, count + 1, sizeof(char *), &copy, err) != STATUS_OK) return err->status;
    const char **arguments = copy;
    for (size_t i = 0; i < count; i++)
        if (arena_string(arena, from->arguments[i], &arguments[i], err) != STATUS_OK) return err->status;
    to->arguments = arguments;
    return STATUS_OK;
}

static enum status copy_file(struct arena *arena, const struct run_file *from, struct run_file *to, struct error *err)
{
    void *text;
    if (arena_string(arena, from->name, &to->name, err) != STATUS_OK ||
        arena_array(arena, from->length + 1, 1, &text, err) != STATUS_OK)
        return err->status;
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
    void *new_commands, *new_files;
    struct run run = {.command_count = command_count, .file_count = file_count};
    if (array_reserve(&set->runs, &set->capacity, set->count, sizeof *set->runs, RUN_SET_MAX, "runs", err) != STATUS_OK ||
        arena_string(&set->arena, what, &run.what, err) != STATUS_OK ||
        arena_array(&set->arena, command_count, sizeof *commands, &new_commands, err) != STATUS_OK ||
        arena_array(&set->arena, file_count, sizeof *files, &new_files, err) != STATUS_OK)
        return err->status;
    for (uint32_t c = 0; c < command_count; c++)
        if (copy_command(&set->arena, &commands[c], (struct run_command *)new_commands + c, err) != STATUS_OK)
            return err->status;
    for (uint32_t f = 0; f < file_count; f++)
        if (copy_file(&set->arena, &files[f], (struct run_file *)new_files + f, err) != STATUS_OK) return err->status;
    run.commands = new_commands;
    run.files = new_files;
    *index = (uint32_t)set->count;
    set->runs[set->count++] = run;
    return STATUS_OK;
}

/* --- folders ------------------------------------------------------------------------------------- */

static void path_in(const struct run_set *set, const struct run *run, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%zu%s%s", set->folder, (size_t)(run - set->runs), *name ? "/" : "", name);
}

static const char answer_name[] = ".answer", message_name[] = ".message";

/* No sync: these files are gone in a moment. */
static enum status write_file(const char *path, const char *text, size_t length, struct error *err)
{
    FILE *file = fopen(path, "w");
    if (!file) return error_io(err, "cannot write '%s'", path);
    bool written = fwrite(text, 1, length, file) == length;
    if (fclose(file) != 0 || !written) return error_io(err, "cannot write '%s'", path);
    return STATUS_OK;
}

static enum status make_folder(const struct run_set *set, const struct run *run, struct error *err)
{
    char path[PATH_BYTES];
    path_in(set, run, "", path);
    if (mkdir(path, 0700) != 0) return error_io(err, "cannot make the folder '%s'", path);
    for (uint32_t f = 0; f < run->file_count; f++) {
        path_in(set, run, run->files[f].name, path);
        if (write_file(path, run->files[f].text, run->files[f].length, err) != STATUS_OK) return err->status;
    }
    return STATUS_OK;
}

/* What a run leaves may have any name, and folders. In a child: rm knows how. */
static void remove_folder(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
}

static enum status begin_folder(struct run_set *set, struct error *err)
{
    const char *folder = getenv("TMPDIR");
    char path[sizeof set->folder];
    int length = snprintf(path, sizeof path, "%s/spillway-repro-XXXXXX", folder && *folder ? folder : "/tmp");
    if (length < 0 || length >= (int)sizeof path) snprintf(path, sizeof path, "/tmp/spillway-repro-XXXXXX");
    if (!mkdtemp(path)) return error_io(err, "cannot make a folder in '%s'", folder && *folder ? folder : "/tmp");
    memcpy(set->folder, path, sizeof path);
    return STATUS_OK;
}

static void end_folder(struct run_set *set)
{
    if (*set->folder) remove_folder(set->folder);
    *set->folder = '\0';
}

/* --- children -------------------------------------------------------------------------------------- */

/* Between fork and exec. Never returns. */
static void become(const char *program, char **argv, const char *folder, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    for (int i = 1; i < 3; i++) signal(i == 1 ? SIGINT : SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || chdir(folder) != 0) _exit(127);
    int out = open(answer_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int messages = open(message_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (out < 0 || messages < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(messages, STDERR_FILENO) < 0)
        _exit(127);
    execv(program, argv);
    _exit(127);
}

static enum status start_command(const struct run_set *set, struct run *run, const char *program, struct error *err)
{
    const char *const *arguments = run->commands[run->at].arguments;
    char folder[PATH_BYTES];
    size_t count = 0;
    while (arguments[count]) count++;
    char **argv = alloc_zeroed(count + 2, sizeof *argv);
    if (!argv) return error_memory(err, "arguments", count);
    argv[0] = (char *)program; /* execv() changes nothing in argv; its prototype is older than const */
    memcpy(argv + 1, arguments, count * sizeof *argv);
    path_in(set, run, "", folder);
    pid_t parent = getpid(), child = fork();
    if (child == 0) become(program, argv, folder, parent);
    free(argv);
    if (child < 0) return error_io(err, "cannot start '%s'", program);
    run->child = child;
    run->started_s = clock_s();
    return STATUS_OK;
}

/* What it complained of, without "error: ", else its last line; in `buffer`. */
static const char *read_message(const struct run_set *set, const struct run *run, char buffer[MESSAGE_BYTES])
{
    static const char head[] = "error: ";
    const size_t head_length = sizeof head - 1;
    char path[PATH_BYTES];
    path_in(set, run, message_name, path);
    *buffer = '\0';
    FILE *file = fopen(path, "r");
    while (file && fgets(buffer, MESSAGE_BYTES, file) && strncmp(buffer, head, head_length) != 0) continue;
    if (file) fclose(file);
    buffer[strcspn(buffer, "\n")] = '\0';
    return strncmp(buffer, head, head_length) == 0 ? buffer + head_length : buffer;
}

static enum status read_answer(struct run_set *set, struct run *run, int exit_code, struct error *err)
{
    char path[PATH_BYTES], buffer[MESSAGE_BYTES], *text = NULL;
    size_t length;
    json_error_t place;
    path_in(set, run, answer_name, path);
    if (file_read(path, ANSWER_MAX, &text, &length, err) != STATUS_OK) return err->status;
    run->json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &place);
    free(text);
    run->answer.json = run->json;
    const char *message = read_message(set, run, buffer);
    if (arena_string(&set->arena, *message ? message : "it answered no", &run->answer.why, err) != STATUS_OK)
        return err->status;
    if (!run->json && exit_code == 0)
        return error_set(err, STATUS_BAD_INPUT, "%s: no JSON was printed, line %d: %s (is '--json' missing?)", run->what,
                         place.line, place.text);
    return STATUS_OK;
}

static enum status fail_run(const struct run_set *set, const struct run *run, int wait_status, struct error *err)
{
    char buffer[MESSAGE_BYTES];
    const char *message = read_message(set, run, buffer);
    if (WIFSIGNALED(wait_status))
        return error_set(err, STATUS_DEVICE, "%s: ended by signal %d", run->what, WTERMSIG(wait_status));
    enum status status = WEXITSTATUS(wait_status) == 2 ? STATUS_BAD_INPUT : STATUS_DEVICE;
    return error_set(err, status, "%s: %s", run->what, *message ? message : "it could not be started");
}

/* A command of the run has ended: go on with the next, or take the answer. *done: the run is. */
static enum status go_on(struct run_set *set, struct run *run, int wait_status, const char *program, bool *done,
                         struct error *err)
{
    char path[PATH_BYTES];
    int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    run->child = 0;
    if (code != 0 && code != 1) return fail_run(set, run, wait_status, err);
    if (code == 0 && ++run->at < run->command_count) return start_command(set, run, program, err);
    if (read_answer(set, run, code, err) != STATUS_OK) return err->status;
    path_in(set, run, "", path);
    remove_folder(path);
    *done = true;
    return STATUS_OK;
}

static void end_children(struct run_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        struct run *run = &set->runs[i];
        if (run->child <= 0) continue;
        kill(run->child, SIGKILL);
        while (waitpid(run->child, NULL, 0) < 0 && errno == EINTR) continue;
        run->child = 0;
    }
}

/* --- the loop -------------------------------------------------------------------------------------- */

struct pool {
    struct run_set *set;
    const struct run_set_options *options;
    const char *program;
    size_t next, running, done;
    uint32_t workers;
    size_t failed;        /* the first run in order that failed so far; SIZE_MAX: none */
    struct error failure; /* of that one */
};

static enum status start_some(struct pool *pool, struct error *err)
{
    while (pool->running < pool->workers && pool->next < pool->set->count && pool->failed == SIZE_MAX) {
        struct run *run = &pool->set->runs[pool->next++];
        if (make_folder(pool->set, run, err) != STATUS_OK || start_command(pool->set, run, pool->program, err) != STATUS_OK)
            return err->status;
        pool->running++;
    }
    return STATUS_OK;
}

static enum status reap_some(struct pool *pool, bool *any, struct error *err)
{
    *any = false;
    for (size_t i = 0; i < pool->next; i++) {
        struct run *run = &pool->set->runs[i];
        struct rusage usage;
        int wait_status;
        bool done = false;
        if (run->child <= 0) continue;
        pid_t ended = wait4(run->child, &wait_status, WNOHANG, &usage);
        if (ended == 0) {
            if (pool->options->limit_s > 0 && clock_s() - run->started_s > pool->options->limit_s)
                return error_set(err, STATUS_DEVICE, "%s: not done within %g s", run->what, pool->options->limit_s);
            continue;
        }
        *any = true;
        run->answer.cpu_s += (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
        if (go_on(pool->set, run, wait_status, pool->program, &done, err) != STATUS_OK) {
            if (i < pool->failed) pool->failure = *err, pool->failed = i;
            *err = (struct error){0};
            done = true;
        }
        pool->running -= done;
        pool->done += done;
    }
    return STATUS_OK;
}

/* A failure is told when all runs before it have ended: which one it is depends on none's speed. */
static bool has_failed(const struct pool *pool)
{
    bool before = false;
    for (size_t i = 0; pool->failed < SIZE_MAX && i < pool->failed; i++) before |= pool->set->runs[i].child > 0;
    return pool->failed < SIZE_MAX && !before;
}

static enum status wait_for(const sigset_t *signals, struct error *err)
{
    const struct timespec second = {.tv_sec = 1};
    int number = sigtimedwait(signals, NULL, &second);
    if (number == SIGINT || number == SIGTERM) return error_set(err, STATUS_INTERRUPTED, "stopped");
    return STATUS_OK;
}

static enum status run_pool(struct pool *pool, const sigset_t *signals, struct error *err)
{
    struct progress progress;
    progress_begin(&progress, "runs", (double)pool->set->count);
    while (!err->status && pool->done < pool->set->count) {
        bool any;
        if (start_some(pool, err) != STATUS_OK || reap_some(pool, &any, err) != STATUS_OK) break;
        if (has_failed(pool)) {
            *err = pool->failure;
            break;
        }
        progress_update(&progress, (double)pool->done, NULL);
        if (!any && wait_for(signals, err) != STATUS_OK) break;
    }
    end_children(pool->set);
    progress_end(&progress);
    return err->status;
}

enum status run_set_execute(struct run_set *set, const struct run_set_options *options, struct error *err)
{
    char self[PATH_BYTES] = "";
    sigset_t signals, old;
    struct pool pool = {.set = set, .options = options, .program = options->program, .failed = SIZE_MAX,
                        .workers = options->workers > 0 ? options->workers : children_cores()};
    if (!pool.program && path_from_program("", self, sizeof self, err) != STATUS_OK) return err->status;
    if (!pool.program) pool.program = self;
    if (begin_folder(set, err) != STATUS_OK) return err->status;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &old);
    run_pool(&pool, &signals, err);
    sigprocmask(SIG_SETMASK, &old, NULL);
    end_folder(set);
    return err->status;
}

void run_set_destroy(struct run_set *set)
{
    if (!set) return;
    for (size_t i = 0; i < set->count; i++) json_decref(set->runs[i].json);
    free(set->runs);
    arena_release(&set->arena);
    free(set);
}
