/*
 * cli/common/cli.h: the tables of all verbs are in order, their help fits 80 columns under headings, every option stands
 * in the man page under its verb, and words that are not quite right get the right suggestion.
 */
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
            if (seen.rows[row] == 0 && strcmp(*n, "help") != 0) fail_msg("no verb has the option '%s' of '%s'", *n, g->heading);
    assert_true(row < 1024);
}

static void check_verbs_width(const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80) fail_msg("'spillway help' is wider than 80: %.*s", (int)strcspn(line, "\n"), line);
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

/* --- the man page ----------------------------------------------------------------------------- */

/* The part of the page from the heading that names `command` to the next heading. Headings may
 * name several: "## spillway plot timeline _TRACE_..., spillway plot memory _TRACE_...". */
static bool section_of(const char *page, const char *command, const char **begin, size_t *length)
{
    for (const char *heading = strstr(page, "\n## "); heading; heading = strstr(heading + 1, "\n## ")) {
        size_t line = strcspn(heading + 1, "\n");
        char text[256];
        snprintf(text, sizeof text, "%.*s", (int)line, heading + 1);
        const char *found = strstr(text, command);
        char after = found ? found[strlen(command)] : '\0';
        if (!found || (after >= 'a' && after <= 'z')) continue; /* "planet" is not "plan" */
        const char *end = strstr(heading + 1, "\n#");
        *begin = heading;
        *length = end ? (size_t)(end - heading) : strlen(heading);
        return true;
    }
    return false;
}

static bool is_common(const char *name)
{
    static const char *const common[] = {"json", "quiet", "report", "history", "force"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(common[i], name) == 0) return true;
    return false;
}

/* plot throughput says "as above" of what it shares with the other pictures. */
static bool is_above(const char *command, const char *name)
{
    static const char *const shared[] = {"output", "title", "width", "keep-script"};
    if (strcmp(command, "spillway plot throughput") != 0) return false;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (strcmp(shared[i], name) == 0) return true;
    return false;
}

static void check_documented(void *context, const struct options *options)
{
    const char *page = context, *begin;
    size_t length;
    if (!section_of(page, options->command, &begin, &length))
        fail_msg("spillway.1 has no heading for '%s'", options->command);
    for (size_t i = 0; i < options->spec_count; i++) {
        const struct option_spec *spec = &options->specs[i];
        char words[96];
        if (is_common(spec->name)) continue;
        if (spec->letter && !is_above(options->command, spec->name))
            snprintf(words, sizeof words, "*-%c*, *--%s*", spec->letter, spec->name);
        else
            snprintf(words, sizeof words, "*--%s*", spec->name);
        if (!memmem(begin, length, words, strlen(words)))
            fail_msg("spillway.1 does not have '%s' under '%s'", words, options->command);
    }
}

static void man_page_has_every_option(void **state)
{
    (void)state;
    struct error err = {0};
    char *page;
    size_t length;
    assert_int_equal(file_read(SOURCE_DIR "/docs/man/spillway.1.scd", 1 << 20, &page, &length, &err),
                     STATUS_OK);
    assert_int_equal(cli_look(NULL, check_documented, page, &err), STATUS_OK);
    free(page);
}

/* The check above must be able to fail. */
static void man_page_check_sees_what_is_missing(void **state)
{
    (void)state;
    static const char page[] = "# VERBS\n\n## spillway plan _X_\n\n*--seed* _N_\n\n## spillway planet\n";
    const char *begin;
    size_t length;
    assert_true(section_of(page, "spillway plan", &begin, &length));
    assert_non_null(memmem(begin, length, "*--seed*", 8));
    assert_null(memmem(begin, length, "*--policy*", 10));
    assert_null(memmem(begin, length, "planet", 6)); /* ends before the next heading */
    assert_false(section_of(page, "spillway run", &begin, &length));
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
                   "unknown verb 'frobnicate' (expected measure, calibrate, models, hardware, check, mem, jobs, whatif, plan, "
                   "partition, solve, simulate, sweep, serve, swarm, run, history, compare, explain, trace, plot, repro, "
                   "bench, policy, doctor, completion or help)");
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
        cmocka_unit_test(man_page_has_every_option),
        cmocka_unit_test(man_page_check_sees_what_is_missing),
        cmocka_unit_test(verbs_are_found),
    };
    return cmocka_run_group_tests_name("cli/common/cli.h", tests, NULL, NULL);
}
