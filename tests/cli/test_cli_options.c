/*
 * cli/common/cli.h: the tables of all verbs are in order, their help fits 80 columns under headings, every verb has a
 * man page with each of its options, and words that are not quite right get the right suggestion.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "cli/common/cli.h"
#include "cli/common/cli_option_groups.h"

/* --- looking at tables ------------------------------------------------------------------------ */

static void check_table(void *context, const struct options *options)
{
    struct error err = {0};
    unsigned *count = context;
    if (options_check(options, &err) != STATUS_OK) fail_msg("%s", err.text);
    (*count)++;
}

static void tables_are_in_order(void **state)
{
    (void)state;
    struct error err = {0};
    unsigned count = 0;
    assert_int_equal(cli_look(NULL, check_table, &count, &err), STATUS_OK);
    unsigned rows = 0;
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) rows++;
    assert_int_equal(count, rows); /* each verb shows its table and does nothing else */
}

static void check_width(void *context, const struct options *options)
{
    (void)context;
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    options_print_help(options, stream);
    assert_int_equal(fclose(stream), 0);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > 80) fail_msg("'%s --help' is wider than 80: %s", options->command, line);
    free(text);
}

/* Every option has a heading, and the table of headings names nothing that no verb has. */
struct seen {
    unsigned rows[1024];
};

static void check_groups(void *context, const struct options *options)
{
    struct seen *seen = context;
    for (size_t i = 0; i < options->spec_count; i++) {
        const char *name = options->specs[i].name;
        char own[128];
        snprintf(own, sizeof own, "%s %s", options->command + strlen("spillway "), name);
        const struct option_group *group = options_group(options, name);
        if (!group) fail_msg("'--%s' of '%s' has no heading (cli_option_groups.c)", name, options->command);
        unsigned row = 0;
        for (const struct option_group *g = options->groups; g->heading; g++)
            for (const char *const *n = g->names; *n; n++, row++)
                if (g == group && (strcmp(*n, name) == 0 || strcmp(*n, own) == 0)) seen->rows[row]++;
    }
}

static void every_option_has_a_heading(void **state)
{
    (void)state;
    struct error err = {0};
    struct seen seen = {0};
    unsigned row = 0;
    assert_int_equal(cli_look(NULL, check_groups, &seen, &err), STATUS_OK);
    for (const struct option_group *g = cli_option_groups; g->heading; g++)
        for (const char *const *n = g->names; *n; n++, row++)
            if (seen.rows[row] == 0 && strcmp(*n, "help") != 0)
            fail_msg("no verb has the option '%s' of '%s'", *n, g->heading);
    assert_true(row < 1024);
}

static void check_verbs_width(const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80)
        fail_msg("'spillway help' is wider than 80: %.*s", (int)strcspn(line, "\n"), line);
}

static void the_list_of_verbs_fits_the_screen(void **state)
{
    (void)state;
    struct error err = {0};
    char help[] = "help", *words[] = {help, NULL}, *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    assert_int_equal(cli_dispatch(1, words, stream, &err), STATUS_OK);
    assert_int_equal(fclose(stream), 0);
    check_verbs_width(text);
    free(text);
}

static void help_fits_the_screen(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(cli_look(NULL, check_width, NULL, &err), STATUS_OK);
}

/* --- the man pages ---------------------------------------------------------------------------- */

enum { PAGE_BYTES = 1 << 20 };

/* The text of docs/man/spillway-VERB.1.scd; the caller frees it. */
static char *read_page(const char *verb)
{
    char path[4096], *page = NULL;
    size_t length;
    struct error err = {0};
    snprintf(path, sizeof path, "%s/docs/man/spillway-%s.1.scd", SOURCE_DIR, verb);
    if (file_read(path, PAGE_BYTES, &page, &length, &err) != STATUS_OK)
        fail_msg("'%s' has no page: %s", verb, err.text);
    return page;
}

/* The part of the page with the heading `action` in capitals, up to the next heading of its level. */
static bool section_of(const char *page, const char *action, const char **begin, size_t *length)
{
    char heading[64];
    snprintf(heading, sizeof heading, "\n# %s\n", action);
    for (char *c = heading; *c; c++) *c = (char)toupper((unsigned char)*c);
    *begin = strstr(page, heading);
    if (!*begin) return false;
    const char *end = strstr(*begin + 1, "\n# ");
    *length = end ? (size_t)(end - *begin) : strlen(*begin);
    return true;
}

static bool is_common(const char *name)
{
    static const char *const common[] = {"json", "quiet", "report", "history", "force"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(common[i], name) == 0) return true;
    return false;
}

/* Returns an option that the page lacks, or NULL. Options of all verbs may be anywhere, the others in the part of
 * their action. */
static const char *missing_option(const char *page, const char *action, const struct options *options, char words[96])
{
    const char *begin = page;
    size_t length = strlen(page);
    if (action && !section_of(page, action, &begin, &length)) return "a heading for the action";
    for (size_t i = 0; i < options->spec_count; i++) {
        const struct option_spec *spec = &options->specs[i];
        bool common = is_common(spec->name);
        if (spec->letter) snprintf(words, 96, "*-%c*, *--%s*", spec->letter, spec->name);
        else snprintf(words, 96, "*--%s*", spec->name);
        if (!memmem(common ? page : begin, common ? strlen(page) : length, words, strlen(words))) return words;
    }
    return NULL;
}

static void check_documented(void *context, const struct options *options)
{
    (void)context;
    char verb[64], words[96];
    const char *name = options->command + strlen("spillway "), *action = strchr(name, ' ');
    snprintf(verb, sizeof verb, "%.*s", (int)strcspn(name, " "), name);
    char *page = read_page(verb);
    const char *missing = missing_option(page, action ? action + 1 : NULL, options, words);
    if (missing) fail_msg("spillway-%s.1 lacks %s of '%s'", verb, missing, options->command);
    if (!strstr(page, options->command))
        fail_msg("spillway-%s.1 does not say how to call '%s'", verb, options->command);
    free(page);
}

static void man_pages_have_every_option(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(cli_look(NULL, check_documented, NULL, &err), STATUS_OK);
}

/* An option with an entry on a page. */
struct entry {
    const char *name;
    size_t length;
    bool found;
};

static void find_entry(void *context, const struct options *options)
{
    struct entry *entry = context;
    for (size_t i = 0; i < options->spec_count; i++)
        if (strlen(options->specs[i].name) == entry->length &&
            strncmp(options->specs[i].name, entry->name, entry->length) == 0)
            entry->found = true;
    if (entry->length == 4 && strncmp(entry->name, "help", 4) == 0) entry->found = true;
}

static void man_pages_have_no_other_options(void **state)
{
    (void)state;
    const char *last = "";
    for (const struct cli_verb *verb = cli_verbs; verb->name; last = verb->name, verb++) {
        if (strcmp(last, verb->name) == 0) continue;
        char *page = read_page(verb->name);
        for (char *line = strtok(page, "\n"); line; line = strtok(NULL, "\n")) {
            if (strncmp(line, "*-", 2) != 0) continue; /* an entry; text is indented or begins with a word */
            for (char *at = strstr(line, "*--"); at; at = strstr(at + 3, "*--")) {
                struct error err = {0};
                struct entry entry = {.name = at + 3, .length = strcspn(at + 3, "* =")};
                assert_int_equal(cli_look(verb->name, find_entry, &entry, &err), STATUS_OK);
                if (!entry.found)
                    fail_msg("spillway-%s.1 has an entry '--%.*s'", verb->name, (int)entry.length, entry.name);
            }
        }
        free(page);
    }
}

static void the_overview_names_every_verb(void **state)
{
    (void)state;
    struct error err = {0};
    char *page = NULL, words[96];
    size_t length;
    assert_int_equal(file_read(SOURCE_DIR "/docs/man/spillway.1.scd", PAGE_BYTES, &page, &length, &err), STATUS_OK);
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        snprintf(words, sizeof words, "\n*spillway-%s*(1)\n", verb->name);
        if (!strstr(page, words)) fail_msg("spillway.1 does not name the page of '%s'", verb->name);
    }
    free(page);
}

/* Checks that the checks above can fail. */
static void man_page_check_sees_what_is_missing(void **state)
{
    (void)state;
    static const char page[] = "spillway-x(1)\n\n# SHOW\n\n*--seed* _N_\n\tA seed.\n\n# SHOWER\n\n*--more*\n";
    static bool flag;
    const struct option_spec seed[] = {OPTION_FLAG("seed", 0, &flag, "x")},
        more[] = {OPTION_FLAG("more", 0, &flag, "x")},
                             letter[] = {OPTION_FLAG("seed", 's', &flag, "x")},
                             json[] = {OPTION_FLAG("json", 0, &flag, "x")};
    const struct option_spec *const tables[] = {seed, more, letter, json};
    const char *const expected[] = {NULL, "*--more*", "*-s*, *--seed*", "*--json*"};
    char words[96];
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const struct options options = {.command = "spillway x show", .specs = tables[i], .spec_count = 1};
        const char *missing = missing_option(page, "show", &options, words);
        if (expected[i]) assert_string_equal(missing, expected[i]);
        else assert_null(missing);
        assert_string_equal(missing_option(page, "list", &options, words), "a heading for the action");
    }
}

/* --- words ------------------------------------------------------------------------------------ */

static void assert_no_verb(const char *name, const char *action, const char *message)
{
    const struct cli_verb *verb = NULL;
    struct error err = {0};
    assert_int_equal(cli_find_verb(name, action, &verb, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, message);
}

static void verbs_are_found(void **state)
{
    (void)state;
    const struct cli_verb *verb = NULL;
    struct error err = {0};
    assert_int_equal(cli_find_verb("plan", "jobs.json", &verb, &err), STATUS_OK);
    assert_ptr_equal(verb->run, verb_plan);
    assert_int_equal(cli_find_verb("trace", "export", &verb, &err), STATUS_OK);
    assert_ptr_equal(verb->run, verb_trace_export);
    assert_no_verb("simulat", NULL, "unknown verb 'simulat' (did you mean 'simulate'?)");
    assert_no_verb("frobnicate", NULL,
                   "unknown verb 'frobnicate' (expected measure, calibrate, models, hardware, check, mem, jobs, "
                   "tokenize, whatif, plan, partition, solve, simulate, sweep, serve, swarm, run, history, compare, "
                   "explain, trace, plot, repro, bench, policy, doctor, completion or help)");
    assert_no_verb("plot", NULL, "'spillway plot' needs an action (timeline, throughput or memory)");
    assert_no_verb("plot", "--json",
                   "'spillway plot' needs an action (timeline, throughput or memory)");
    assert_no_verb("plot", "memroy",
                   "'spillway plot' has no action 'memroy' (did you mean 'memory'?)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_in_order),
        cmocka_unit_test(help_fits_the_screen),
        cmocka_unit_test(every_option_has_a_heading),
        cmocka_unit_test(the_list_of_verbs_fits_the_screen),
        cmocka_unit_test(man_pages_have_every_option),
        cmocka_unit_test(man_pages_have_no_other_options),
        cmocka_unit_test(the_overview_names_every_verb),
        cmocka_unit_test(man_page_check_sees_what_is_missing),
        cmocka_unit_test(verbs_are_found),
    };
    return cmocka_run_group_tests_name("cli/common/cli.h", tests, NULL, NULL);
}
