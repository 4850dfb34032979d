/* The figure's own JSON is changed: places in later messages stay the file's. */
#include "cli/repro/figure_change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_change.h"
#include "base/text/suggest.h"

enum { NAME_BYTES = 128 };

struct figure_change {
    struct figure *figure;
    const struct figure_verbs *verbs;
    char name[NAME_BYTES]; /* as typed */
    const char *value;
    char *path; /* absolute path if the value is a file, since runs have other folders */
    uint32_t count;        /* changed places */
    struct error *err;
};

/* --- columns ------------------------------------------------------------------------------------- */

static enum status change_column(struct figure_change *change, uint32_t column)
{
    struct figure *figure = change->figure;
    const char *text;
    if (figure->columns[column].source)
        return error_set(change->err, STATUS_BAD_INPUT, "'%s' has published values (expected a parameter)",
                         change->name);
    json_t *value = json_of_text(change->value);
    if (!value) return error_memory(change->err, "a changed value", 0);
    struct expression_value cell = json_is_boolean(value) ? expression_of_text(change->value)
                                                          : expression_of_json(value);
    if (cell.kind == EXPRESSION_VALUE_TEXT &&
        arena_string(&figure->arena, change->value, &text, change->err) == STATUS_OK)
        cell.text = text;
    json_decref(value);
    for (uint32_t r = 0; r < figure->row_count; r++) figure->cells[(size_t)r * figure->column_count + column] = cell;
    change->count += figure->row_count;
    return change->err->status;
}

/* --- keys of jobs -------------------------------------------------------------------------------- */

static enum status change_jobs(struct figure_change *change, const char *key)
{
    for (uint32_t f = 0; f < change->figure->file_count; f++) {
        const json_t *content = change->figure->files[f].content;
        json_t *jobs = json_object_get(content, "jobs"), *job;
        size_t index;
        if (!json_object_get(content, "spillway_jobs") || !json_is_array(jobs)) continue;
        json_array_foreach(jobs, index, job) {
            json_t *repeated = json_object_get(job, "$item");
            if (repeated) job = repeated;
            if (!json_is_object(job)) continue; /* the reader of jobs reports it */
            if (json_change(job, key, change->value, change->name, change->err) != STATUS_OK)
                return change->err->status;
            change->count++;
        }
    }
    return STATUS_OK;
}

/* --- options of commands -------------------------------------------------------------------------- */

/* Searches from `begin` on; the size: not found. */
static size_t find_word(const json_t *command, const char *option, size_t begin)
{
    size_t i, count = json_array_size(command), length = strlen(option);
    for (i = begin; i < count; i++) {
        const char *word = json_string_value(json_array_get(command, i));
        if (strncmp(word, "--", 2) == 0 && strncmp(word + 2, option, length) == 0 &&
            (!word[2 + length] || word[2 + length] == '='))
            break;
    }
    return i;
}

/* Escapes a text's braces. */
static json_t *plain_template(const char *text)
{
    char buffer[4096];
    size_t used = 0;
    for (; *text && used + 2 < sizeof buffer; text++) {
        buffer[used++] = *text;
        if (*text == '{') buffer[used++] = '{';
    }
    return *text ? NULL : json_stringn(buffer, used);
}

/* Removes the word, and a separate value. */
static void remove_option(json_t *command, size_t at, bool flag)
{
    bool joined = strchr(json_string_value(json_array_get(command, at)), '=') != NULL;
    if (!flag && !joined && at + 1 < json_array_size(command)) json_array_remove(command, at + 1);
    json_array_remove(command, at);
}

/* Sets an option once, however often given. jansson refuses to append NULL, so failed allocations are reported. */
static int set_option(json_t *command, const char *option, bool flag, const char *value)
{
    char word[NAME_BYTES + 2];
    size_t at = find_word(command, option, 1);
    for (size_t next = at; next < json_array_size(command); next = find_word(command, option, next))
        remove_option(command, next, flag);
    snprintf(word, sizeof word, "--%s", option);
    if (flag && strcmp(value, "no") == 0) return 0;
    if (json_array_insert_new(command, at, json_string(word)) != 0) return -1;
    return flag ? 0 : json_array_insert_new(command, at + 1, plain_template(value));
}

static enum status change_command(struct figure_change *change, const char *option, json_t *command)
{
    const char *verb = json_string_value(json_array_get(command, 0));
    enum figure_option kind = change->verbs->option(change->verbs->context, verb, option);
    if (kind == FIGURE_OPTION_NONE) return STATUS_OK;
    bool yes_or_no = strcmp(change->value, "yes") == 0 || strcmp(change->value, "no") == 0;
    if (kind == FIGURE_OPTION_FLAG && !yes_or_no)
        return error_set(change->err, STATUS_BAD_INPUT, "'%s' is a flag and cannot be '%s' (expected yes or no)",
                         change->name, change->value);
    const char *value = change->path ? change->path : change->value;
    if (set_option(command, option, kind == FIGURE_OPTION_FLAG, value) != 0)
        return error_memory(change->err, "a changed command", strlen(change->value));
    change->count++;
    return STATUS_OK;
}

static enum status change_options(struct figure_change *change)
{
    char option[NAME_BYTES];
    snprintf(option, sizeof option, "%s", change->name);
    for (char *c = option; *c; c++)
        if (*c == '.' || *c == '_') *c = '-';
    for (uint32_t k = 0; k < change->figure->run_count; k++) {
        const struct figure_run *run = &change->figure->runs[k];
        size_t count = run->chained ? json_array_size(run->commands) : 1;
        for (size_t c = 0; c < count; c++) {
            json_t *command = run->chained ? json_array_get(run->commands, c) : (json_t *)run->commands;
            if (change_command(change, option, command) != STATUS_OK) return change->err->status;
        }
    }
    return STATUS_OK;
}

/* --- applying a change ------------------------------------------------------------------------ */

static enum status nothing_changed(const struct figure_change *change)
{
    const char *names[FIGURE_COLUMNS_MAX];
    uint32_t count = 0;
    for (uint32_t c = 0; c < change->figure->column_count; c++)
        if (!change->figure->columns[c].source) names[count++] = change->figure->columns[c].name;
    char ending[SUGGEST_BYTES];
    return error_set(change->err, STATUS_BAD_INPUT, "'%s' has no '%s'%s", change->figure->id, change->name,
                     suggest_ending_or(change->name, names, count,
                                       " (expected a parameter of its rows, jobs.KEY, or an option of its commands)",
                                       ending));
}

/* Reports show the change. */
static enum status remember(const struct figure_change *change, const char *text)
{
    struct figure_texts *changes = &change->figure->changes;
    if (changes->count == FIGURE_TEXTS_MAX)
        return error_set(change->err, STATUS_LIMIT, "too many changes (limit is %d)", FIGURE_TEXTS_MAX);
    return arena_string(&change->figure->arena, text, &changes->items[changes->count++], change->err);
}

/* Compares names; columns have '_' where options have '-'. */
static bool names_column(const char *name, const char *column)
{
    for (; *name && *column; name++, column++)
        if (*name != *column && !(*column == '_' && *name == '-')) return false;
    return *name == *column;
}

static enum status apply(struct figure_change *change)
{
    static const char jobs[] = "jobs.";
    for (uint32_t c = 0; c < change->figure->column_count; c++)
        if (names_column(change->name, change->figure->columns[c].name)) return change_column(change, c);
    if (strncmp(change->name, jobs, sizeof jobs - 1) == 0) return change_jobs(change, change->name + sizeof jobs - 1);
    return change_options(change);
}

enum status figure_change(struct figure *figure, const char *text, const struct figure_verbs *verbs, struct error *err)
{
    struct figure_change change = {.figure = figure, .verbs = verbs, .err = err};
    size_t length = strcspn(text, "=");
    if (length == 0 || length >= sizeof change.name || !text[length])
        return error_set(err, STATUS_BAD_INPUT, "'%s' is not a change (expected NAME=VALUE)", text);
    memcpy(change.name, text, length);
    change.value = text + length + 1;
    if (strpbrk(change.value, "./")) change.path = realpath(change.value, NULL); /* 2 is a number, even if there is
                                                                                    such a file */
    (void)!apply(&change);
    free(change.path);
    if (err->status) return err->status;
    return change.count > 0 ? remember(&change, text) : nothing_changed(&change);
}
