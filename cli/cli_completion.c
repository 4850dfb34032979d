#include "cli/cli_completion.h"

#include <string.h>

#include "base/size.h"
#include "cli/bench/cli_bench.h"
#include "cli/sweep/cli_sweep_command.h"
#include "models/hardware/hardware.h"
#include "models/network/network.h"
#include "planner/policy/policies.h"
#include "planner/saturn/saturn.h"
#include "planner/solve/milp/milp.h"

/* --- lists of words -------------------------------------------------------------------------- */

static void print_built_in(FILE *out)
{
    fputs(" all", out);
    for (uint32_t i = 0; policy_name_at(i); i++) fprintf(out, " %s", policy_name_at(i));
}

static void print_policies(FILE *out)
{
    print_built_in(out);
    fprintf(out, " %s %s", policy_milp.name, policy_shared_base.name);
    for (uint32_t r = 0; r < SATURN_RULES; r++) fprintf(out, " %s", saturn_rule_names[r]);
}

static void print_competitors(FILE *out)
{
    print_built_in(out);
    fprintf(out, " %s", bench_searched);
}

static void print_families(FILE *out)
{
    for (uint32_t f = 0; f < INSTANCE_FAMILY_COUNT; f++) fprintf(out, " %s", instance_family_names[f]);
}

/* Prints machines; a cloud's also with its prefix. */
static void print_machines(FILE *out)
{
    for (uint32_t i = 0; hardware_preset_name(i); i++) {
        char name[128];
        struct hardware hardware = {0};
        struct error err = {0};
        fprintf(out, " %s", hardware_preset_name(i));
        snprintf(name, sizeof name, "aws:%s", hardware_preset_name(i));
        if (hardware_find(name, &hardware, &err) == STATUS_OK) fprintf(out, " %s", name);
        hardware_release(&hardware);
    }
}

static void print_networks(FILE *out)
{
    for (uint32_t i = 0; network_preset_name(i); i++) fprintf(out, " %s", network_preset_name(i));
}

static void print_verb(FILE *out, const struct cli_verb *verb)
{
    fprintf(out, " %s", verb->name);
}

void completion_print_verbs(FILE *out)
{
    completion_each_verb(out, print_verb);
}

static void print_solvers(FILE *out)
{
    for (const char *const *solver = milp_solver_names; *solver; solver++) fprintf(out, " %s", *solver);
}

static void print_shells(FILE *out)
{
    for (const struct completion_shell *shell = completion_shells; shell->name; shell++)
        fprintf(out, " %s", shell->name);
}

static void print_backends(FILE *out)
{
    fputs(" host cuda", out);
}

static void print_halves(FILE *out)
{
    fputs(" all even odd none", out);
}

static void print_bases(FILE *out)
{
    fputs(" on_demand spot", out);
}

static void print_grid_verbs(FILE *out)
{
    for (const char *const *verb = cli_sweep_verbs; *verb; verb++) fprintf(out, " %s", *verb);
}

/* --- places ---------------------------------------------------------------------------------- */

struct completion_kind {
    const char *of; /* an option, or a command */
    void (*words)(FILE *out);
};

static const struct completion_kind named_kinds[] = {
    {"policy", print_policies},   {"policies", print_competitors}, {"family", print_families}, {"hw", print_machines},
    {"solver", print_solvers},    {"backend", print_backends},     {"half", print_halves},     {"basis", print_bases},
    {"spillway sweep", print_grid_verbs},
};

static const struct placeholder {
    const char *word; /* as in a table */
    void (*words)(FILE *out);
    enum completion_files files;
} placeholders[] = {
    {"FILE", NULL, COMPLETION_FILES},          {"TRACE", NULL, COMPLETION_FILES},
    {"PREFIX", NULL, COMPLETION_FILES},        {"CSV", NULL, COMPLETION_FILES},
    {"PREDICTED", NULL, COMPLETION_FILES},     {"POLICY", NULL, COMPLETION_FILES},
    {"SOLVER", NULL, COMPLETION_FILES},        {"LIST", NULL, COMPLETION_NO_FILES},
    {"MACHINE", print_machines, COMPLETION_FILES}, {"NETWORK", print_networks, COMPLETION_FILES},
    {"ID", completion_print_figures, COMPLETION_FILES},   {"SHELL", print_shells, COMPLETION_NO_FILES},
    {"[VERB [ACTION]]", completion_print_verbs, COMPLETION_NO_FILES},
    {"DIR", NULL, COMPLETION_FOLDERS},         {"FOLDER", NULL, COMPLETION_FOLDERS},
};

static void add_list(struct completion_place *place, void (*words)(FILE *out))
{
    for (size_t i = 0; i < place->list_count; i++)
        if (place->lists[i] == words) return;
    if (words && place->list_count < COMPLETION_LISTS_MAX) place->lists[place->list_count++] = words;
}

static void add_named(struct completion_place *place, const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(named_kinds); i++)
        if (strcmp(named_kinds[i].of, name) == 0) add_list(place, named_kinds[i].words);
}

/* Adds `length` bytes of `word`, without brackets and "..."; "JOBS.json" is a file too. */
static void add_placeholder(struct completion_place *place, const char *word, size_t length)
{
    if (length > 5 && strncmp(word + length - 5, ".json", 5) == 0) place->files = COMPLETION_FILES;
    for (size_t i = 0; i < ARRAY_COUNT(placeholders); i++) {
        if (strlen(placeholders[i].word) != length || strncmp(placeholders[i].word, word, length) != 0) continue;
        add_list(place, placeholders[i].words);
        if (placeholders[i].files) place->files = placeholders[i].files;
    }
}

struct completion_place completion_of_value(const struct option_spec *spec)
{
    struct completion_place place = {.choices = spec->choices};
    add_named(&place, spec->name);
    add_placeholder(&place, spec->value, strlen(spec->value));
    /* Policies are shared objects; workloads are files or folders. */
    if (strcmp(spec->name, "policy") == 0 || strcmp(spec->name, "policies") == 0 ||
        strcmp(spec->name, "workloads") == 0)
        place.files = COMPLETION_FILES;
    return place;
}

struct completion_place completion_of_arguments(const struct options *options)
{
    struct completion_place place = {0};
    add_named(&place, options->command);
    add_placeholder(&place, options->arguments, strlen(options->arguments));
    for (const char *at = options->arguments; *at;) {
        at += strspn(at, " []");
        size_t length = strcspn(at, " ]");
        size_t bare = length > 3 && strncmp(at + length - 3, "...", 3) == 0 ? length - 3 : length;
        add_placeholder(&place, at, bare);
        at += length;
    }
    return place;
}

void completion_print_words(FILE *out, const struct completion_place *place)
{
    for (const char *const *choice = place->choices; choice && *choice; choice++) fprintf(out, " %s", *choice);
    for (size_t i = 0; i < place->list_count; i++) place->lists[i](out);
}

/* --- verbs ----------------------------------------------------------------------------------- */

void completion_each_verb(FILE *out, void (*print)(FILE *out, const struct cli_verb *verb))
{
    const char *last = "";
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        if (strcmp(verb->name, last) != 0) print(out, verb);
        last = verb->name;
    }
}

void completion_print_actions(FILE *out, const struct cli_verb *verb)
{
    for (const struct cli_verb *row = verb; row->name && row->action && strcmp(row->name, verb->name) == 0; row++)
        fprintf(out, " %s", row->action);
}
