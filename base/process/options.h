#ifndef SPILLWAY_BASE_PROCESS_OPTIONS_H
#define SPILLWAY_BASE_PROCESS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/files/file_kind.h"
#include "base/size.h"
#include "base/text/quantity.h"

enum option_type { OPTION_TYPE_FLAG, OPTION_TYPE_STRING, OPTION_TYPE_U64, OPTION_TYPE_DOUBLE,
                   OPTION_TYPE_QUANTITY, OPTION_TYPE_CHOICE, OPTION_TYPE_LIST };

enum { OPTION_HELP_MAX = 79 };

struct option_list {
    const char *items[64]; /* borrowed from argv */
    size_t count;
};

struct option_spec {
    const char *name;   /* without the dashes */
    char letter;        /* 0 if none */
    enum option_type type;
    const char *value;  /* name of the value in the help: FILE, N; NULL for a flag */
    void *out;          /* bool, const char *, uint64_t, double, size_t (choice) or option_list */
    const char *help;   /* a noun phrase or an imperative: OPTION_HELP_MAX bytes, lower case, no full stop */
    enum dimension dimension;    /* QUANTITY */
    uint64_t min, max;           /* U64; for DOUBLE and QUANTITY only non-negative is checked */
    const char *const *choices;  /* CHOICE: NULL-terminated */
    enum file_kind output;       /* STRING and LIST: the command writes a file of that kind there */
    const char *once;            /* the one value expected, for the error about two different values; NULL: the
                                    last value counts */
};

#define OPTION_FLAG(n, l, o, h) {.name = n, .letter = l, .type = OPTION_TYPE_FLAG, .out = o, .help = h}
#define OPTION_STRING(n, l, v, o, h) \
    {.name = n, .letter = l, .type = OPTION_TYPE_STRING, .value = v, .out = o, .help = h}
#define OPTION_U64(n, l, v, lo, hi, o, h) \
    {.name = n, .letter = l, .type = OPTION_TYPE_U64, .value = v, .out = o, .help = h, .min = lo, .max = hi}
#define OPTION_DOUBLE(n, l, v, o, h) \
    {.name = n, .letter = l, .type = OPTION_TYPE_DOUBLE, .value = v, .out = o, .help = h}
#define OPTION_QUANTITY(n, l, v, d, o, h) \
    {.name = n, .letter = l, .type = OPTION_TYPE_QUANTITY, .value = v, .out = o, .help = h, .dimension = d}
#define OPTION_CHOICE(n, l, v, c, o, h) \
    {.name = n, .letter = l, .type = OPTION_TYPE_CHOICE, .value = v, .out = o, .help = h, .choices = c}
#define OPTION_LIST(n, l, v, o, h) \
    {.name = n, .letter = l, .type = OPTION_TYPE_LIST, .value = v, .out = o, .help = h}

/* The path of a file that the command writes, and the paths of several; see base/files/outputs.h. */
#define OPTION_OUTPUT(n, l, v, k, o, h) \
    {.name = n, .letter = l, .type = OPTION_TYPE_STRING, .value = v, .out = o, .help = h, .output = k}
#define OPTION_OUTPUTS(n, l, v, k, o, h) \
    {.name = n, .letter = l, .type = OPTION_TYPE_LIST, .value = v, .out = o, .help = h, .output = k}
/* Every table with outputs contains it. */
#define OPTION_FORCE(o) OPTION_FLAG("force", 0, o, "overwrite input files and files of another kind")

/* Another program's name of an option, or our own of the last release. */
struct option_synonym {
    const char *theirs, *ours; /* without the dashes */
};

/* A heading of the help with the options under it, in the order of their table. */
struct option_group {
    const char *heading;
    const char *const *names; /* "output", or "plan output" for one command only; ends with NULL */
};

struct options {
    const char *command;    /* "spillway plan" */
    const char *arguments;  /* "JOBS.json", may be "" */
    const char *summary;    /* one line */
    const char *const *examples; /* NULL-terminated, printed first; may be NULL */
    const char *details;    /* longer text, printed after the options; may be NULL */
    const struct option_group *groups; /* in the order of the help, ends with a NULL heading; NULL: one list */
    const struct option_spec *specs;
    size_t spec_count;
    const struct option_synonym *synonyms, *former_names; /* end with a NULL name; may be NULL */
    const char *(*spelled)(const char *text); /* translates another word for a choice, or returns NULL; may be NULL */
    size_t argument_min, argument_max;
    const char *operands[64]; /* out: borrowed from argv */
    size_t operand_count;     /* out */
    const struct option_synonym *former; /* out: the last former name on the command line; NULL: none */
    bool help;                /* out: -h or --help was given; nothing else was checked */
};

/* The members of struct options for a table of specs and the numbers of operands. */
#define OPTIONS_TABLE(specs_, argument_min_, argument_max_) \
    .specs = (specs_), .spec_count = ARRAY_COUNT(specs_), .argument_min = (argument_min_), \
    .argument_max = (argument_max_)

/* Parses the command line. argv[0] is the verb and is skipped. Every table accepts "-h" and "--help". */
MUST_CHECK enum status options_parse(struct options *options, int argc, char **argv,
                                     struct error *err);

/* Checks the table: names and letters are used once, each value has a place, help texts follow the rules above.
 * STATUS_CHECK names the first mistake. options_parse() asserts it; a test checks every verb. */
MUST_CHECK enum status options_check(const struct options *options, struct error *err);

/* Returns the group of the option `name`. A row for "COMMAND NAME" comes before a row for "NAME". NULL: no group. */
const struct option_group *options_group(const struct options *options, const char *name);

/* Prints the help in 80 columns. */
void options_print_help(const struct options *options, FILE *stream);

#endif
