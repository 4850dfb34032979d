#include "cli/sweep/cli_sweep_command.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/path.h"
#include "base/size.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "cli/sweep/cli_sweep_jobs.h"

/* These have no side effects; of `repro` only `run`. */
const char *const cli_sweep_verbs[] = {"plan",  "simulate", "mem",   "partition", "solve",
                                       "serve", "swarm",    "repro", NULL};
enum { SWEEP_VERBS = ARRAY_COUNT(cli_sweep_verbs) - 1 };
static const char figure_verb[] = "repro", figure_action[] = "run";
static const char *const degrees[] = {"tp", "pp", "dp", "v", "zero", "buckets"};
static const char parallel_prefix[] = "parallel.", jobs_prefix[] = "jobs.";

enum { NAMES_MAX = 128 };

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
    for (size_t w = 0; w < count; w++)
        if (strcmp(word, words[w]) == 0) return true;
    return false;
}

/* --- options of the verb --------------------------------------------------------------------- */

/* Finds "--hw", "--hw=x", "-p"; NULL: not an option. */
static const struct cli_verb_option *option_of_word(const struct cli_sweep_command *command, const char *word,
                                                    bool *has_value)
{
    *has_value = false;
    if (word[0] != '-' || word[1] == '\0') return NULL;
    for (size_t o = 0; o < command->options.count; o++) {
        const struct cli_verb_option *option = &command->options.items[o];
        size_t length = strlen(option->spelling);
        if (word[1] == '-'
                ? strncmp(word + 2, option->spelling, length) == 0 && (word[length + 2] == '=' || !word[length + 2])
                : option->letter && word[1] == option->letter) {
            *has_value = word[1] == '-' ? word[length + 2] == '=' : word[2] != '\0';
            return option;
        }
    }
    return NULL;
}

/* --- names of axes ------------------------------------------------------------------------------- */

static enum status unknown_name(const struct cli_sweep_command *command, const char *name, struct error *err)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t o = 0; o < command->options.count && count < NAMES_MAX; o++)
        names[count++] = command->options.items[o].name;
    char ending[SUGGEST_BYTES];
    return error_set(err, STATUS_BAD_INPUT, "option '--vary': 'spillway %s' has no option '%s'%s", command->verb->name,
                     name,
                     suggest_ending_or(name, names, count,
                                       " (expected one of its options, a degree such as tp, parallel.KEY, or jobs.KEY)",
                                       ending));
}

static enum status check_flag_values(const struct sweep_axis *axis, struct error *err)
{
    for (size_t v = 0; v < axis->count; v++)
        if (strcmp(axis->values[v].text, "yes") != 0 && strcmp(axis->values[v].text, "no") != 0)
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--vary': '%s' is a flag and cannot be '%s' (expected yes,no)", axis->name,
                             axis->values[v].text);
    return STATUS_OK;
}

static enum status find_target(struct cli_sweep_command *command, const struct sweep_axis *axis, uint32_t a,
                               struct error *err)
{
    char name[SWEEP_NAME_BYTES];
    const char *word = axis->name;
    bool parallel = cli_verb_option(&command->options, "parallel") != NULL;
    command->targets[a].name = word;
    if (command->verb->action) { /* only `repro run --set` knows figures' parameters */
        command->targets[a].kind = SWEEP_SET;
        return STATUS_OK;
    }
    if (strncmp(word, jobs_prefix, sizeof jobs_prefix - 1) == 0) {
        command->targets[a].kind = SWEEP_JOBS;
        command->targets[a].name = word + sizeof jobs_prefix - 1;
        return STATUS_OK;
    }
    bool prefixed = strncmp(word, parallel_prefix, sizeof parallel_prefix - 1) == 0;
    if (parallel && (prefixed || is_one_of(word, degrees, ARRAY_COUNT(degrees)))) {
        command->targets[a].kind = SWEEP_DEGREE;
        command->targets[a].name = prefixed ? word + sizeof parallel_prefix - 1 : word;
        return STATUS_OK;
    }
    snprintf(name, sizeof name, "%s", word);
    for (char *c = name; *c; c++)
        if (*c == '.' || *c == '_') *c = '-';
    const struct cli_verb_option *option = cli_verb_option(&command->options, name);
    if (!option) return unknown_name(command, name, err);
    command->targets[a].kind = option->flag ? SWEEP_FLAG : SWEEP_OPTION;
    command->targets[a].name = option->name;
    return option->flag ? check_flag_values(axis, err) : STATUS_OK;
}

const char *cli_sweep_operand(const struct cli_sweep_command *command)
{
    for (size_t w = 0; w < command->word_count; w++) {
        bool has_value;
        const struct cli_verb_option *option = option_of_word(command, command->words[w], &has_value);
        if (!option && (command->words[w][0] != '-' || !command->words[w][1])) return command->words[w];
        if (option && !option->flag && !has_value) w++;
    }
    return NULL;
}

static enum status find_targets(struct cli_sweep_command *command, const struct sweep_grid *grid, struct error *err)
{
    for (uint32_t a = 0; a < grid->axis_count; a++) {
        TRY(find_target(command, &grid->axes[a], a, err));
        if (command->targets[a].kind != SWEEP_JOBS) continue;
        command->jobs_path = cli_sweep_operand(command);
        if (!command->jobs_path)
            return error_set(err, STATUS_BAD_INPUT, "option '--vary': '%s' needs a jobs file on the command line",
                             grid->axes[a].name);
    }
    return STATUS_OK;
}

/* --- the verb -------------------------------------------------------------------------------- */

/* Returns `simulate` for parallel jobs, else `plan`. */
static const char *verb_for(char **words, size_t count, const struct sweep_grid *grid)
{
    bool parallel = false;
    for (size_t w = 0; w < count; w++) parallel |= strncmp(words[w], "--parallel", sizeof "--parallel" - 1) == 0;
    for (uint32_t a = 0; a < grid->axis_count; a++)
        parallel |= is_one_of(grid->axes[a].name, degrees, ARRAY_COUNT(degrees)) ||
                  strncmp(grid->axes[a].name, parallel_prefix, sizeof parallel_prefix - 1) == 0;
    return parallel ? "simulate" : "plan";
}

enum status cli_sweep_command(char **words, size_t count, const struct sweep_grid *grid, struct arena *arena,
                              struct cli_sweep_command *out, struct error *err)
{
    char path[CLI_PATH_BYTES], list[256];
    *out = (struct cli_sweep_command){0};
    if (count == 0)
        return error_set(err, STATUS_BAD_INPUT, "a sweep needs a verb and its arguments, such as 'plan jobs.json'");
    bool is_file = strchr(words[0], '.') || strchr(words[0], '/');
    const char *verb = is_file ? verb_for(words, count, grid) : words[0];
    bool bare_figure = !is_file && strchr(verb, '-'); /* figures have a '-', verbs have not: `repro run` */
    if (bare_figure) verb = figure_verb;
    bool is_figure = !is_file && strcmp(verb, figure_verb) == 0;
    if (is_figure && !bare_figure && (count < 2 || strcmp(words[1], figure_action) != 0))
        return error_set(err, STATUS_BAD_INPUT, "'repro' cannot be swept (expected 'repro run ID')");
    if (!is_one_of(verb, cli_sweep_verbs, SWEEP_VERBS))
        return error_set(err, STATUS_BAD_INPUT, "'%s' cannot be swept (expected %s)", verb,
                         suggest_list(cli_sweep_verbs, SWEEP_VERBS, list, sizeof list));
    TRY(cli_find_verb(verb, is_figure ? figure_action : NULL, &out->verb, err));
    size_t verb_words = is_file || bare_figure ? 0 : is_figure ? 2 : 1;
    out->words = (const char *const *)words + verb_words;
    out->word_count = count - verb_words;
    TRY(cli_verb_options(verb, arena, &out->options, err));
    TRY(path_from_program("", path, sizeof path, err));
    TRY(arena_string(arena, path, &out->program, err));
    return find_targets(out, grid, err);
}

/* --- the command of one point --------------------------------------------------------------------- */

struct sweep_command_writing {
    const struct cli_sweep_command *command;
    const struct sweep_grid *grid;
    uint64_t point;
    struct arena *arena;
    const char **argv;
    size_t count;
    char parallel[512];    /* typed and then varied */
    const char *jobs_temporary;
};

static enum status add_word(struct sweep_command_writing *writing, struct error *err, const char *format, ...)
    PRINTF_LIKE(3, 4);

static enum status add_word(struct sweep_command_writing *writing, struct error *err, const char *format, ...)
{
    char text[CLI_PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text)
        return error_set(err, STATUS_LIMIT, "a word of the command is too long (limit is %zu bytes)", sizeof text - 1);
    return arena_string(writing->arena, text, &writing->argv[writing->count++], err);
}

static bool is_varied(const struct sweep_command_writing *writing, const struct cli_verb_option *option)
{
    for (uint32_t a = 0; a < writing->grid->axis_count; a++) {
        enum cli_sweep_target kind = writing->command->targets[a].kind;
        if (kind == SWEEP_DEGREE && strcmp(option->name, "parallel") == 0) return true;
        if ((kind == SWEEP_OPTION || kind == SWEEP_FLAG) &&
            strcmp(option->name, writing->command->targets[a].name) == 0)
            return true;
    }
    return false;
}

/* Adds typed words without varied options. */
static enum status add_typed(struct sweep_command_writing *writing, struct error *err)
{
    const struct cli_sweep_command *command = writing->command;
    bool replaced = false; /* by the temporary file */
    for (size_t w = 0; w < command->word_count; w++) {
        bool has_value;
        const char *word = command->words[w];
        const struct cli_verb_option *option = option_of_word(command, word, &has_value);
        bool next_is_value = option && !option->flag && !has_value && w + 1 < command->word_count;
        if (option && is_varied(writing, option)) {
            const char *value = next_is_value ? command->words[++w] : has_value ? strchr(word, '=') + 1 : "";
            if (strcmp(option->name, "parallel") == 0)
                snprintf(writing->parallel, sizeof writing->parallel, "%s", value);
            continue;
        }
        if (writing->jobs_temporary && !replaced && word == command->jobs_path) {
            word = writing->jobs_temporary;
            replaced = true;
        }
        if (add_word(writing, err, "%s", word) != STATUS_OK) return err->status;
        if (next_is_value && add_word(writing, err, "%s", command->words[++w]) != STATUS_OK) return err->status;
    }
    return STATUS_OK;
}

/* Makes "tp=8,sp,zero=1" of "tp=8,sp" and zero=1; adds or removes a flag. */
static enum status set_degree(struct sweep_command_writing *writing, const char *key, const char *value,
                              struct error *err)
{
    char made[sizeof writing->parallel];
    size_t used = 0, length = strlen(key);
    made[0] = '\0';
    for (const char *item = writing->parallel; *item;) {
        size_t item_length = strcspn(item, ",");
        bool same = strncmp(item, key, length) == 0 && (item_length == length || item[length] == '=');
        if (!same && item_length > 0)
            used += (size_t)snprintf(made + used, sizeof made - used, "%s%.*s", used ? "," : "", (int)item_length,
                                     item);
        item += item_length + (item[item_length] == ',');
    }
    if (strcmp(value, "no") != 0)
        used += (size_t)snprintf(made + used, sizeof made - used, strcmp(value, "yes") == 0 ? "%s%s" : "%s%s=%s",
                                 used ? "," : "", key, value);
    if (used >= sizeof made) return error_set(err, STATUS_LIMIT, "the degrees of --parallel are too long");
    memcpy(writing->parallel, made, used + 1);
    return STATUS_OK;
}

static enum status add_varied(struct sweep_command_writing *writing, struct error *err)
{
    bool parallel = false;
    for (uint32_t a = 0; a < writing->grid->axis_count; a++) {
        const char *name = writing->command->targets[a].name;
        const char *value = sweep_grid_value(writing->grid, writing->point, a)->text;
        enum status status = STATUS_OK;
        switch (writing->command->targets[a].kind) {
        case SWEEP_OPTION: status = add_word(writing, err, "--%s=%s", name, value); break;
        case SWEEP_FLAG:
            if (strcmp(value, "yes") == 0) status = add_word(writing, err, "--%s", name);
            break;
        case SWEEP_DEGREE:
            status = set_degree(writing, name, value, err);
            parallel = true;
            break;
        case SWEEP_SET: status = add_word(writing, err, "--set=%s=%s", name, value); break;
        case SWEEP_JOBS: break; /* in the file */
        }
        if (status != STATUS_OK) return status;
    }
    return parallel && writing->parallel[0] ? add_word(writing, err, "--parallel=%s", writing->parallel) : STATUS_OK;
}

static enum status write_jobs(struct sweep_command_writing *writing, struct error *err)
{
    struct cli_sweep_change changes[SWEEP_AXES_MAX];
    size_t count = 0;
    for (uint32_t a = 0; a < writing->grid->axis_count; a++)
        if (writing->command->targets[a].kind == SWEEP_JOBS)
            changes[count++] = (struct cli_sweep_change){
                writing->command->targets[a].name, sweep_grid_value(writing->grid, writing->point, a)->text};
    return cli_sweep_jobs(writing->command->jobs_path, changes, count, writing->arena, &writing->jobs_temporary, err);
}

enum status cli_sweep_words(const struct cli_sweep_command *command, const struct sweep_grid *grid, uint64_t point,
                            struct cli_sweep_words *out, struct error *err)
{
    *out = (struct cli_sweep_words){0};
    struct sweep_command_writing writing = {.command = command, .grid = grid, .point = point, .arena = &out->arena};
    /* program, verb, its action, --json, --quiet, the words, the axes, the degrees, NULL */
    size_t most = 5 + command->word_count + grid->axis_count + 2;
    enum status status = ARENA_NEW(&out->arena, most, writing.argv, err);
    if (status == STATUS_OK && command->jobs_path) status = write_jobs(&writing, err);
    out->jobs_temporary = writing.jobs_temporary;
    if (status == STATUS_OK) status = add_word(&writing, err, "%s", command->program);
    if (status == STATUS_OK) status = add_word(&writing, err, "%s", command->verb->name);
    if (status == STATUS_OK && command->verb->action) status = add_word(&writing, err, "%s", command->verb->action);
    if (status == STATUS_OK) status = add_word(&writing, err, "--json");
    if (status == STATUS_OK) status = add_word(&writing, err, "--quiet");
    if (status == STATUS_OK) status = add_typed(&writing, err);
    if (status == STATUS_OK) status = add_varied(&writing, err);
    assert(writing.count < most);
    out->argv = writing.argv;
    if (status != STATUS_OK) cli_sweep_words_release(out);
    return status;
}

void cli_sweep_words_release(struct cli_sweep_words *words)
{
    if (words->jobs_temporary) unlink(words->jobs_temporary);
    arena_release(&words->arena);
    *words = (struct cli_sweep_words){0};
}
