#include "cli/repro/cli_papers.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/path.h"
#include "base/text/suggest.h"

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Makes ../share/spillway/plots/papers from this program's folder. */
static bool installed_folder(char folder[CLI_PATH_BYTES])
{
    struct error unknown = {0};
    return path_from_program("../share/spillway/plots/papers", folder, CLI_PATH_BYTES, &unknown) == STATUS_OK &&
           is_folder(folder);
}

/* Takes `given` (--papers), else $SPILLWAY_PAPERS, else share/spillway/plots/papers beside this program's folder,
 * else its source tree. Errors: STATUS_IO if none of them exists. */
static enum status cli_papers_folder(const char *given, char folder[CLI_PATH_BYTES], struct error *err)
{
    const char *environment = getenv("SPILLWAY_PAPERS");
    const char *named = given ? given : environment && *environment ? environment : NULL;
    if (!named && installed_folder(folder)) return STATUS_OK;
    const char *path = named ? named : SPILLWAY_PAPERS_SOURCE;
    if (strlen(path) >= CLI_PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "a path is too long (limit is %d)", CLI_PATH_BYTES - 1);
    if (!is_folder(path))
        return error_set(err, STATUS_IO, "there is no folder '%s' with figures of papers (name it with '--papers' or "
                         "SPILLWAY_PAPERS)", path);
    memcpy(folder, path, strlen(path) + 1);
    return STATUS_OK;
}

/* Takes NAME from NAME.json; false for other files. */
static bool is_figure(const char *file, char name[NAME_MAX + 1])
{
    size_t length = strlen(file);
    if (*file == '.' || length <= 5 || strcmp(file + length - 5, ".json") != 0) return false;
    memcpy(name, file, length - 5);
    name[length - 5] = '\0';
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct papers_names {
    char *items[CLI_FIGURES_MAX];
    size_t count;
};

static void release_names(struct papers_names *names)
{
    for (size_t i = 0; i < names->count; i++) free(names->items[i]);
}

static enum status list_names(const char *folder, struct papers_names *names, struct error *err)
{
    DIR *directory = opendir(folder);
    char name[NAME_MAX + 1];
    if (!directory) return error_input(err, "cannot read the folder '%s'", folder);
    for (struct dirent *entry; !err->status && (entry = readdir(directory)) != NULL;) {
        if (!is_figure(entry->d_name, name)) continue;
        if (names->count == CLI_FIGURES_MAX)
            error_set(err, STATUS_LIMIT, "too many figures in '%s' (limit is %d)", folder, CLI_FIGURES_MAX);
        else if (!(names->items[names->count] = strdup(name)))
            error_memory(err, "names of figures", strlen(name));
        else
            names->count++;
    }
    closedir(directory);
    qsort(names->items, names->count, sizeof *names->items, compare_names);
    return err->status;
}

enum status cli_papers_ids(const char *given, void (*take)(void *context, const char *id), void *context,
                           struct error *err)
{
    char folder[CLI_PATH_BYTES];
    struct papers_names names = {0};
    if (cli_papers_folder(given, folder, err) == STATUS_OK && list_names(folder, &names, err) == STATUS_OK)
        for (size_t i = 0; i < names.count; i++) take(context, names.items[i]);
    release_names(&names);
    return err->status;
}

/* Adds a figure; `name` NULL: any id. */
static enum status read_one(struct cli_papers *papers, const char *path, const char *name, bool real, struct error *err)
{
    struct figure *figure;
    if ((real ? figure_read_real(path, &figure, err) : figure_read(path, &figure, err)) != STATUS_OK)
        return err->status;
    papers->figures[papers->count++] = figure;
    if (!name || strcmp(figure->id, name) == 0) return STATUS_OK;
    return json_fail_key(figure->input, json_input_root(figure->input), "id", err,
                         "the id is '%s' (expected '%s', the file's name)", figure->id, name);
}

static enum status read_named(struct cli_papers *papers, const char *name, bool real, struct error *err)
{
    char path[CLI_PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s.json", papers->folder, name);
    if (length < 0 || length >= (int)sizeof path)
        return error_set(err, STATUS_LIMIT, "a path is too long (limit is %d)", CLI_PATH_BYTES - 1);
    return read_one(papers, path, name, real, err);
}

enum status cli_papers_open(const char *given, struct cli_papers *papers, struct error *err)
{
    struct papers_names names = {0};
    if (cli_papers_folder(given, papers->folder, err) == STATUS_OK &&
        list_names(papers->folder, &names, err) == STATUS_OK)
        for (size_t i = 0; i < names.count && !err->status; i++) (void)read_named(papers, names.items[i], false, err);
    release_names(&names);
    return err->status;
}

static enum status open_one(const char *given, const char *id, bool real, struct cli_papers *papers, struct error *err)
{
    struct papers_names names = {0};
    size_t length = strlen(id);
    if (length > 5 && strcmp(id + length - 5, ".json") == 0) return read_one(papers, id, NULL, real, err);
    if (cli_papers_folder(given, papers->folder, err) != STATUS_OK ||
        list_names(papers->folder, &names, err) != STATUS_OK)
        goto out;
    for (size_t i = 0; i < names.count; i++)
        if (strcmp(names.items[i], id) == 0) {
            (void)read_named(papers, id, real, err);
            goto out;
        }
    char otherwise[64], ending[SUGGEST_BYTES];
    snprintf(otherwise, sizeof otherwise, " ('spillway repro list' names %zu)", names.count);
    error_set(err, STATUS_BAD_INPUT, "unknown figure '%s'%s", id,
              suggest_ending_or(id, (const char *const *)names.items, names.count, otherwise, ending));
out:
    release_names(&names);
    return err->status;
}

enum status cli_papers_open_one(const char *given, const char *id, struct cli_papers *papers, struct error *err)
{
    return open_one(given, id, false, papers, err);
}

/* Writes "'hydra-fig9a' has no real set-up (figures with one: ...)", without unreadable files. */
static enum status refuse_simulated(const char *given, struct error *err)
{
    struct cli_papers all = {0};
    struct error ignored = {0};
    char names[256] = "";
    if (cli_papers_open(given, &all, &ignored) == STATUS_OK)
        for (size_t i = 0, used = 0; i < all.count && used < sizeof names; i++)
            if (all.figures[i]->real.offered)
                used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "",
                                         all.figures[i]->id);
    cli_papers_close(&all);
    char text[sizeof err->text];
    snprintf(text, sizeof text, "%s", err->text);
    *err = (struct error){0};
    return error_set(err, STATUS_BAD_INPUT, "%.200s (figures with one: %s)", text, *names ? names : "none");
}

enum status cli_papers_open_real(const char *given, const char *id, struct cli_papers *papers, struct error *err)
{
    if (open_one(given, id, true, papers, err) == STATUS_INFEASIBLE) return refuse_simulated(given, err);
    return err->status;
}

void cli_papers_close(struct cli_papers *papers)
{
    for (size_t i = 0; i < papers->count; i++) figure_destroy(papers->figures[i]);
    papers->count = 0;
}
