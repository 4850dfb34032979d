/* Commands are stored as typed in a shell, with quotes where needed. */
#include "cli/explain/cli_explain_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/try.h"
#include "cli/history/cli_history.h"

static const char prefix[] = "history:", ending[] = ".db:";

/* Returns the name after "runs.db:", or NULL. */
static const char *row_of_file(const char *word)
{
    const char *found = strstr(word, ending);
    return found && access(word, F_OK) != 0 ? found + sizeof ending - 1 : NULL;
}

bool cli_explain_is_row(const char *word)
{
    return strncmp(word, prefix, sizeof prefix - 1) == 0 || row_of_file(word);
}

/* Reads a word without quotes; false at the end. `out` has room for the whole command. */
static bool next_word(const char **at, char *out)
{
    while (**at == ' ') ++*at;
    if (!**at) return false;
    bool quoted = false;
    for (; **at && (quoted || **at != ' '); ++*at) {
        if (**at == '\'') quoted = !quoted;
        else if (**at == '\\' && !quoted && (*at)[1]) *out++ = *++*at;
        else *out++ = **at;
    }
    *out = '\0';
    return true;
}

/* Finds `--trace` in a command; may be NULL. */
static enum status trace_of(const char *command, struct arena *arena, const char **out, struct error *err)
{
    static const char option[] = "--trace";
    bool wanted = false;
    char *word;
    *out = NULL;
    if (!command) return STATUS_OK;
    TRY(ARENA_NEW(arena, strlen(command) + 1, word, err));
    while (next_word(&command, word)) {
        if (wanted) return arena_string(arena, word, out, err);
        wanted = strcmp(word, option) == 0;
        if (strncmp(word, option, sizeof option - 1) == 0 && word[sizeof option - 1] == '=')
            return arena_string(arena, word + sizeof option, out, err);
    }
    return STATUS_OK;
}

/* Finds a run's number, or the last run. */
static enum status find_record(const struct history_record *records, size_t count, const char *row,
                               const struct history_record **out, struct error *err)
{
    bool last = strcmp(row, "last") == 0;
    *out = NULL;
    for (size_t r = 0; r < count; r++) {
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, records[r].id);
        if (last ? strcmp(records[r].verb, "run") == 0 : strcmp(number, row) == 0) *out = &records[r];
    }
    if (!*out && last)
        return error_set(err, STATUS_BAD_INPUT, "there is no run in the history yet (see 'spillway history')");
    if (!*out)
        return error_set(err, STATUS_BAD_INPUT,
                         "no row '%.20s' in the history (expected last, or the \"id\" of a run in "
                         "'spillway history --json')",
                         row);
    if (strcmp((*out)->verb, "run") == 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "row %" PRId64 " of the history is of '%s' (expected a run)", (*out)->id,
                     (*out)->verb);
}

static enum status read_files(struct history *history, const char *row, struct arena *arena, const char **plan_path,
                              const char **trace_path, struct error *err)
{
    struct history_record *records = NULL;
    const struct history_record *record = NULL;
    struct history_wrong wrong;
    size_t count = 0;
    TRY(history_read(history, &(struct history_filter){0}, arena, &records, &count, &wrong, err));
    if (find_record(records, count, row, &record, err) != STATUS_OK && wrong.rows > 0)
        return error_add(err, "%" PRIu64 " wrong row%s (see 'spillway history')", wrong.rows,
                         wrong.rows == 1 ? "" : "s");
    TRY(err->status);
    TRY(trace_of(record->command, arena, trace_path, err));
    *plan_path = record->file;
    if (record->file && *trace_path) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "run %" PRId64 " of the history kept no trace (expected 'spillway run PLAN --trace FILE')",
                     record->id);
}

enum status cli_explain_row(const char *word, struct arena *arena, const char **plan_path, const char **trace_path,
                            struct error *err)
{
    char path[CLI_PATH_BYTES];
    bool some = false;
    struct history *history = NULL;
    const char *row = row_of_file(word);
    if (row) some = snprintf(path, sizeof path, "%.*s", (int)(row - word - 1), word) < (int)sizeof path;
    else TRY(cli_history_path(path, &some, err));
    if (!some || access(path, F_OK) != 0)
        return error_set(err, STATUS_BAD_INPUT, row ? "there is no history '%s'" : "there is no history yet", path);
    enum status status = history_open(path, false, &history, err);
    if (status == STATUS_OK)
        status = read_files(history, row ? row : word + sizeof prefix - 1, arena, plan_path, trace_path, err);
    history_close(history);
    return status;
}
