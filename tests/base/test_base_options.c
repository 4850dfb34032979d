/*
 * base/process/options.h: one table tried from both ends. Every way to write an option, every mistake with
 * its message, the help byte for byte, and tables that are themselves wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/options.h"
#include "base/size.h"

/* --- a command with one option of each type --------------------------------------------------- */

static struct {
    const char *output;
    bool quiet, verbose;
    uint64_t steps;
    double rate, memory;
    size_t policy;
    struct option_list hardware;
} values;

static const char *const policies[] = {"lrtf", "srtf", "milp", NULL};

static const struct option_spec specs[] = {
    OPTION_STRING("output", 'o', "FILE", &values.output,
                  "where the plan goes ('-' is standard output)"),
    OPTION_FLAG("quiet", 'q', &values.quiet, "no progress bar"),
    OPTION_FLAG("verbose", 'v', &values.verbose, "say more"),
    OPTION_U64("steps", 0, "N", 1, 1000, &values.steps, "steps of each job"),
    OPTION_DOUBLE("rate", 0, "X", &values.rate, "learning rate"),
    OPTION_QUANTITY("device-memory", 0, "SIZE", DIMENSION_BYTES, &values.memory,
                    "memory to use of each device, as if the device were smaller than it is"),
    OPTION_CHOICE("policy", 'p', "NAME", policies, &values.policy, "scheduling policy (default lrtf)"),
    OPTION_LIST("hw", 0, "HARDWARE", &values.hardware, "hardware to compare"),
};

static const char *const examples[] = {"spillway plan jobs.json -o plan.json", NULL};

static struct options command(void)
{
    memset(&values, 0, sizeof values);
    return (struct options){
        .command = "spillway plan",
        .arguments = "JOBS.json",
        .summary = "Make a plan for some jobs.",
        .examples = examples,
        .details = "A plan says what runs where.",
        OPTIONS_TABLE(specs, 1, 2),
    };
}

/* Parse a line split at blanks; "~" in it stands for an empty argument. */
static enum status parse_line(struct options *options, const char *line, struct error *err)
{
    static char copy[4096];
    static char *argv[200];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "~") == 0 ? word + 1 : word;
    return options_parse(options, argc, argv, err);
}

/* --- parsing ---------------------------------------------------------------------------------- */

static void every_spelling_is_read(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "plan --output=a.json --quiet --steps 37 --rate=2.5e-3 --device-memory 11GiB --policy srtf "
        "--hw A --hw=B jobs.json",
        "plan jobs.json -o a.json -q --steps=37 --rate 0.0025 --device-memory=11GiB -p srtf --hw A "
        "--hw B",
        "plan -oa.json -qpsrtf --steps 37 --rate .0025 --device-memory 11GiB --hw A --hw B -- "
        "jobs.json",
    };
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        struct options options = command();
        struct error err = {0};
        if (parse_line(&options, lines[i], &err) != STATUS_OK) fail_msg("%s", err.text);
        assert_string_equal(values.output, "a.json");
        assert_true(values.quiet);
        assert_false(values.verbose);
        assert_int_equal(values.steps, 37);
        assert_true(values.rate == 0.0025);
        assert_true(values.memory == 11811160064.0); /* 11 * 2^30 */
        assert_int_equal(values.policy, 1);
        assert_int_equal(values.hardware.count, 2);
        assert_string_equal(values.hardware.items[0], "A");
        assert_string_equal(values.hardware.items[1], "B");
        assert_int_equal(options.operand_count, 1);
        assert_string_equal(options.operands[0], "jobs.json");
        assert_false(options.help);
    }
}

static void odd_but_right(void **state)
{
    (void)state;
    struct error err = {0};
    struct options options = command();
    assert_int_equal(parse_line(&options, "plan - -vq -- --policy", &err), STATUS_OK);
    assert_int_equal(options.operand_count, 2);
    assert_string_equal(options.operands[0], "-");
    assert_string_equal(options.operands[1], "--policy");
    assert_true(values.quiet && values.verbose);

    options = command();
    assert_int_equal(parse_line(&options, "plan a -o - --output=--x", &err), STATUS_OK);
    assert_string_equal(values.output, "--x"); /* the last one counts */
}

static void help_wins(void **state)
{
    (void)state;
    static const char *const lines[] = {"plan -h", "plan --help", "plan --nonsense --help a b c d"};
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        struct error err = {0};
        struct options options = command();
        assert_int_equal(parse_line(&options, lines[i], &err), STATUS_OK);
        assert_true(options.help);
    }
    struct error err = {0};
    struct options options = command();
    assert_int_equal(parse_line(&options, "plan -- --help", &err), STATUS_OK);
    assert_false(options.help);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } rows[] = {
        {"plan", "missing argument (expected spillway plan JOBS.json)"},
        {"plan a b c", "unexpected argument 'c' (expected at most 2)"},
        {"plan a --polcy x", "unknown option '--polcy' (did you mean '--policy'?)"},
        {"plan a --hlep", "unknown option '--hlep' (did you mean '--help'?)"},
        {"plan a --colour=red", "unknown option '--colour' (see 'spillway plan --help')"},
        {"plan a -x", "unknown option '-x' (see 'spillway plan --help')"},
        {"plan a -qx", "unknown option '-x' (see 'spillway plan --help')"},
        {"plan a --output", "option '--output' needs a value FILE"},
        {"plan a -o", "option '--output' needs a value FILE"},
        {"plan a --output=", "option '--output' needs a value FILE"},
        {"plan a --output ~", "option '--output' needs a value FILE (found '')"},
        {"plan a --output --quiet", "option '--output' needs a value FILE (found '--quiet')"},
        {"plan a --quiet=yes", "option '--quiet' takes no value (found 'yes')"},
        {"plan a --steps 0", "option '--steps' is '0' (expected a whole number from 1 to 1000)"},
        {"plan a --steps 1001",
         "option '--steps' is '1001' (expected a whole number from 1 to 1000)"},
        {"plan a --steps -3", "option '--steps' is '-3' (expected a whole number from 1 to 1000)"},
        {"plan a --steps 1.5",
         "option '--steps' is '1.5' (expected a whole number from 1 to 1000)"},
        {"plan a --steps 99999999999999999999",
         "option '--steps' is '99999999999999999999' (expected a whole number from 1 to 1000)"},
        {"plan a --rate fast", "option '--rate' is 'fast' (expected a number, at least 0)"},
        {"plan a --rate -1", "option '--rate' is '-1' (expected a number, at least 0)"},
        {"plan a --rate 1e999", "option '--rate' is '1e999' (expected a number, at least 0)"},
        {"plan a --rate nan", "option '--rate' is 'nan' (expected a number, at least 0)"},
        {"plan a --rate 1x", "option '--rate' is '1x' (expected a number, at least 0)"},
        {"plan a --device-memory 11",
         "option '--device-memory': '11' has no unit (expected a size such as 96MiB)"},
        {"plan a --policy lrft", "option '--policy' is 'lrft' (expected lrtf, srtf or milp)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error err = {0};
        struct options options = command();
        assert_int_equal(parse_line(&options, rows[i].line, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, rows[i].message);
    }
}

static void one_value_where_one_is_expected(void **state)
{
    (void)state;
    const char *machine = NULL;
    const struct option_spec specs_once[] = {{.name = "hw", .type = OPTION_TYPE_STRING, .value = "MACHINE",
                                              .out = &machine, .help = "a machine", .once = "one machine"}};
    struct error err = {0};
    struct options options = command();
    options.specs = specs_once;
    options.spec_count = 1;
    assert_int_equal(parse_line(&options, "plan a --hw A --hw=A", &err), STATUS_OK);
    assert_string_equal(machine, "A");
    assert_int_equal(parse_line(&options, "plan a --hw A --hw=B", &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "option '--hw' is 'A' and then 'B' (expected one machine)");
}

static void limits_are_kept(void **state)
{
    (void)state;
    char line[1024] = "plan a";
    for (int i = 0; i < 65; i++) strcat(line, " --hw=X");
    struct error err = {0};
    struct options options = command();
    assert_int_equal(parse_line(&options, line, &err), STATUS_LIMIT);
    assert_string_equal(err.text, "too many options '--hw' (limit is 64)");

    strcpy(line, "plan");
    for (int i = 0; i < 65; i++) strcat(line, " x");
    err = (struct error){0};
    options = command();
    options.argument_max = 1000;
    assert_int_equal(parse_line(&options, line, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "unexpected argument 'x' (expected at most 64)");

    err = (struct error){0};
    options = command();
    options.argument_min = options.argument_max = 0;
    assert_int_equal(parse_line(&options, "plan x", &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "unexpected argument 'x' (expected none)");
}

/* --- help ------------------------------------------------------------------------------------- */

static void help_is_laid_out(void **state)
{
    (void)state;
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    struct options options = command();
    options_print_help(&options, stream);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(
        text,
        "usage: spillway plan [options] JOBS.json\n"
        "\n"
        "Make a plan for some jobs.\n"
        "\n"
        "examples:\n"
        "  spillway plan jobs.json -o plan.json\n"
        "\n"
        "options:\n"
        "  -o, --output FILE  where the plan goes ('-' is standard output)\n"
        "  -q, --quiet        no progress bar\n"
        "  -v, --verbose      say more\n"
        "      --steps N      steps of each job\n"
        "      --rate X       learning rate\n"
        "      --device-memory SIZE\n"
        "                     memory to use of each device, as if the device were smaller\n"
        "                     than it is\n"
        "  -p, --policy NAME  scheduling policy: lrtf, srtf or milp (default lrtf)\n"
        "      --hw HARDWARE  hardware to compare (may be repeated)\n"
        "  -h, --help         print this help\n"
        "\n"
        "A plan says what runs where.\n");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(strlen(line) <= 80);
    free(text);
}

static const struct option_group groups[] = {
    {"speed", (const char *const[]){"rate", "nothing", NULL}},
    {"output", (const char *const[]){"verbose", "output", "help", NULL}},
    {"other plans", (const char *const[]){"plan quiet", "planet hw", NULL}},
    {NULL, NULL},
};

/* Headings come in the order of the groups, options in the order of their table; the rest, and --help, come last. An
 * example that is too long goes on in the next line, as a shell reads it, and never within quotes. */
static void help_has_headings(void **state)
{
    (void)state;
    static const char *const long_examples[] = {
        "spillway plan jobs.json --policy milp --steps 100 --rate 0.001 --hw '8x a100 -- or h100' -v", NULL};
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    struct options options = command();
    options.groups = groups;
    options.examples = long_examples;
    options.spec_count = 3;
    options.details = NULL;
    options_print_help(&options, stream);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(text,
                        "usage: spillway plan [options] JOBS.json\n"
                        "\n"
                        "Make a plan for some jobs.\n"
                        "\n"
                        "examples:\n"
                        "  spillway plan jobs.json --policy milp --steps 100 --rate 0.001 \\\n"
                        "      --hw '8x a100 -- or h100' -v\n"
                        "\n"
                        "output:\n"
                        "  -o, --output FILE  where the plan goes ('-' is standard output)\n"
                        "  -v, --verbose      say more\n"
                        "  -h, --help         print this help\n"
                        "\n"
                        "other plans:\n"
                        "  -q, --quiet        no progress bar\n");
    free(text);
    assert_ptr_equal(options_group(&options, "quiet"), &groups[2]); /* "plan quiet" is this command's */
    assert_null(options_group(&options, "hw"));                     /* "planet hw" is not */
    options.groups = NULL;
    assert_null(options_group(&options, "rate"));
}

/* --- tables that are wrong -------------------------------------------------------------------- */

static void wrong_tables_are_found(void **state)
{
    (void)state;
    static bool flag;
    static uint64_t number;
    static size_t choice;
    static const char *const none[] = {NULL};
    static const struct {
        struct option_spec spec;
        const char *message;
    } rows[] = {
        {OPTION_FLAG("", 0, &flag, "x"),
         "'c': an option has no name or one that begins with '-'"},
        {OPTION_FLAG("--x", 0, &flag, "x"),
         "'c': an option has no name or one that begins with '-'"},
        {OPTION_FLAG("x", 0, NULL, "x"), "'c': option 'x' has no place for its value"},
        {OPTION_FLAG("x", 0, &flag, ""), "'c': option 'x' has no help"},
        {OPTION_FLAG("x", 0, &flag, "12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
         "'c': the help of option 'x' has more than 79 bytes"},
        {OPTION_FLAG("x", 0, &flag, "do x."), "'c': the help of option 'x' ends in a full stop"},
        {OPTION_FLAG("x", 0, &flag, "Do x"), "'c': the help of option 'x' begins in upper case"},
        {OPTION_U64("x", 0, NULL, 0, 1, &number, "x"),
         "'c': option 'x' must name a value unless it is a flag"},
        {OPTION_U64("x", 0, "N", 2, 1, &number, "x"), "'c': option 'x' has an empty range"},
        {OPTION_CHOICE("x", 0, "N", none, &choice, "x"), "'c': option 'x' has no choices"},
        {OPTION_FLAG("help", 0, &flag, "x"), "'c': option 'help' takes the place of --help"},
        {OPTION_FLAG("x", 'h', &flag, "x"), "'c': option 'x' takes the place of --help"},
        {OPTION_OUTPUT("x", 0, "FILE", FILE_KIND_PLAN, &number, "x"), "'c' has outputs and no option 'force'"},
        {OPTION_FORCE(&flag), "'c' has an option 'force' and no outputs"},
    };
    struct options options = {.command = "c", .arguments = "", .summary = "s", .spec_count = 1};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error err = {0};
        options.specs = &rows[i].spec;
        assert_int_equal(options_check(&options, &err), STATUS_CHECK);
        assert_string_equal(err.text, rows[i].message);
    }
    static const struct option_spec twice[] = {OPTION_FLAG("x", 'q', &flag, "x"),
                                               OPTION_FLAG("y", 'q', &flag, "y")};
    struct error err = {0};
    options.specs = twice;
    options.spec_count = 2;
    assert_int_equal(options_check(&options, &err), STATUS_CHECK);
    assert_string_equal(err.text, "'c': options 'x' and 'y' are spelt alike");
    struct options good = command();
    err = (struct error){0};
    assert_int_equal(options_check(&good, &err), STATUS_OK);
    good.argument_min = 3;
    assert_int_equal(options_check(&good, &err), STATUS_CHECK);
    assert_string_equal(err.text, "'spillway plan' has an empty range of arguments");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_is_read),
        cmocka_unit_test(odd_but_right),
        cmocka_unit_test(help_wins),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(one_value_where_one_is_expected),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(help_is_laid_out),
        cmocka_unit_test(help_has_headings),
        cmocka_unit_test(wrong_tables_are_found),
    };
    return cmocka_run_group_tests_name("base/process/options.h", tests, NULL, NULL);
}
