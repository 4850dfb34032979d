/*
 * `completion bash` and `completion zsh`: a completion script, written from the tables that parse the
 * command line, so that it cannot offer what is not there.
 *
 * The script is one function with a case per command: the words in front of the cursor choose the
 * case; the word before it and the first letter of its own word decide between the values of an
 * option, file names and the list of options. Shells differ in what stands around the cases; their variables
 * have other names than `words` and `options`, which zsh keeps for itself.
 */
#include <string.h>

#include "base/size.h"
#include "cli/cli.h"
#include "cli/cli_bench.h"
#include "models/hardware.h"
#include "models/network.h"
#include "planner/planner.h"
#include "planner/saturn.h"

static void print_verb_names(FILE *out)
{
    const char *last = "";
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        if (strcmp(verb->name, last) == 0) continue;
        fprintf(out, " %s", verb->name);
        last = verb->name;
    }
}

/* hw) verb=hardware ;; */
static void print_other_names(FILE *out)
{
    for (const struct cli_verb_name *other = cli_verb_names; other->theirs; other++)
        fprintf(out, "    %s) verb=%s ;;\n", other->theirs, other->ours);
}

static void print_built_in(FILE *out)
{
    fputs(" all", out);
    for (uint32_t i = 0; planner_policy_name(i); i++) fprintf(out, " %s", planner_policy_name(i));
}

static void print_policies(FILE *out)
{
    print_built_in(out);
    for (uint32_t r = 0; r < SATURN_RULES; r++) fprintf(out, " %s", saturn_rule_names[r]);
}

static void print_competitors(FILE *out)
{
    print_built_in(out);
    fprintf(out, " %s", bench_searched);
}

static void print_families(FILE *out)
{
    for (uint32_t f = 0; f < FAMILY_COUNT; f++) fprintf(out, " %s", instance_family_names[f]);
}

static void print_machines(FILE *out)
{
    for (uint32_t i = 0; hardware_preset_name(i); i++) fprintf(out, " %s", hardware_preset_name(i));
}

static void print_networks(FILE *out)
{
    for (uint32_t i = 0; network_preset_name(i); i++) fprintf(out, " %s", network_preset_name(i));
}

static void print_solvers(FILE *out)
{
    fputs(" glpk cbc highs", out);
}

static void print_shells(FILE *out)
{
    fputs(" bash zsh", out);
}

/* Words that are no options: values of options, and arguments of commands. */
static const struct {
    const char *of; /* an option or a command */
    void (*print)(FILE *out);
} known_words[] = {
    {"policy", print_policies},
    {"policies", print_competitors},
    {"family", print_families},
    {"hw", print_machines},
    {"solver", print_solvers},
    {"spillway models show", print_networks},
    {"spillway mem", print_networks},
    {"spillway hardware show", print_machines},
    {"spillway help", print_verb_names},
    {"spillway completion", print_shells},
};

static bool print_known(FILE *out, const char *of, const char *before, const char *behind)
{
    for (size_t i = 0; i < ARRAY_COUNT(known_words); i++) {
        if (strcmp(known_words[i].of, of) != 0) continue;
        fputs(before, out);
        known_words[i].print(out);
        fputs(behind, out);
        return true;
    }
    return false;
}

/* What may follow an option that takes a value. Files are offered too, but after choices. */
static void print_values(FILE *out, const struct options *options)
{
    for (size_t i = 0; i < options->spec_count; i++) {
        const struct option_spec *spec = &options->specs[i];
        char label[128];
        if (spec->letter) snprintf(label, sizeof label, "        --%s|-%c", spec->name, spec->letter);
        else snprintf(label, sizeof label, "        --%s", spec->name);
        if (spec->choices) {
            fprintf(out, "%s) files='' offers=\"", label);
            for (const char *const *choice = spec->choices; *choice; choice++)
                fprintf(out, " %s", *choice);
            fputs("\" ;;\n", out);
            continue;
        }
        strcat(label, ") offers=\"");
        print_known(out, spec->name, label, "\" ;;\n");
    }
}

static void print_command(void *context, const struct options *options)
{
    FILE *out = context;
    fprintf(out, "    \"%s\")\n        flags=\"--help", options->command);
    for (size_t i = 0; i < options->spec_count; i++)
        fprintf(out, " --%s", options->specs[i].name);
    fputs("\"\n", out);
    print_known(out, options->command, "        offers=\"", "\"\n");
    fputs("        case \"$before\" in\n", out);
    print_values(out, options);
    fputs("        -*) offers='' ;;\n        esac ;;\n", out);
}

/* models) actions="list show" ;; */
static void print_actions(FILE *out)
{
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        if (!verb->action) continue;
        bool first = verb == cli_verbs || strcmp(verb[-1].name, verb->name) != 0;
        bool last = !verb[1].name || strcmp(verb[1].name, verb->name) != 0;
        if (first) fprintf(out, "    %s) actions=\"", verb->name);
        fprintf(out, "%s%s", first ? "" : " ", verb->action);
        if (last) fputs("\" ;;\n", out);
    }
}

/* What stands around the cases. */
static const struct shell {
    const char *name, *begin, *verbs_end, *other_names_end, *actions_end, *end;
} shells[] = {
    {"bash",
     "# Completion of spillway for bash; made by 'spillway completion bash'.\n"
     "_spillway()\n"
     "{\n"
     "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
     "    local verb=${COMP_WORDS[1]}\n"
     "    local actions='' flags='' offers='' files=-f at=2\n"
     "    COMPREPLY=()\n"
     "    if ((COMP_CWORD == 1)); then\n"
     "        mapfile -t COMPREPLY < <(compgen -W \"",
     " --help --version\" -- \"$word\")\n"
     "        return\n"
     "    fi\n"
     "    # --option=value comes as three words.\n"
     "    [[ $word == = ]] && word=''\n"
     "    [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
     "    case \"$verb\" in\n",
     "    esac\n"
     "    local command=\"spillway $verb\"\n"
     "    case \"$verb\" in\n",
     "    esac\n"
     "    if [[ -n $actions ]]; then\n"
     "        if ((COMP_CWORD == 2)); then\n"
     "            mapfile -t COMPREPLY < <(compgen -W \"$actions --help\" -- \"$word\")\n"
     "            return\n"
     "        fi\n"
     "        command+=\" ${COMP_WORDS[2]}\"\n"
     "        at=3\n"
     "    fi\n"
     "    ((COMP_CWORD == at)) && before=''\n"
     "    case \"$command\" in\n",
     "    esac\n"
     "    [[ $word == -* ]] && offers=$flags files=''\n"
     "    mapfile -t COMPREPLY < <(compgen $files -W \"$offers\" -- \"$word\")\n"
     "}\n"
     "complete -o filenames -F _spillway spillway\n"},
    {"zsh",
     "#compdef spillway\n"
     "# Completion of spillway for zsh; made by 'spillway completion zsh'.\n"
     "_spillway()\n"
     "{\n"
     "    local word=${words[CURRENT]} before=${words[CURRENT-1]}\n"
     "    local verb=${words[2]}\n"
     "    local actions='' flags='' offers='' files=yes at=3\n"
     "    if ((CURRENT == 2)); then\n"
     "        compadd --",
     " --help --version\n"
     "        return\n"
     "    fi\n"
     "    if [[ $word == --*=* ]]; then\n"
     "        before=${word%%=*} word=${word#*=}\n"
     "        compset -P '*='\n"
     "    fi\n"
     "    case \"$verb\" in\n",
     "    esac\n"
     "    local command=\"spillway $verb\"\n"
     "    case \"$verb\" in\n",
     "    esac\n"
     "    if [[ -n $actions ]]; then\n"
     "        if ((CURRENT == 3)); then\n"
     "            compadd -- ${=actions} --help\n"
     "            return\n"
     "        fi\n"
     "        command+=\" ${words[3]}\"\n"
     "        at=4\n"
     "    fi\n"
     "    ((CURRENT == at)) && before=''\n"
     "    case \"$command\" in\n",
     "    esac\n"
     "    [[ $word == -* ]] && offers=$flags files=''\n"
     "    [[ -n $offers ]] && compadd -- ${=offers}\n"
     "    [[ -n $files ]] && _files\n"
     "}\n"
     "# Called as it is loaded from a folder of fpath; made known when it is sourced.\n"
     "if [[ ${funcstack[1]} == _spillway ]]; then _spillway \"$@\"; else compdef _spillway spillway; fi\n"},
};

static enum status print_script(FILE *out, const struct shell *shell, struct error *err)
{
    fputs(shell->begin, out);
    print_verb_names(out);
    fputs(shell->verbs_end, out);
    print_other_names(out);
    fputs(shell->other_names_end, out);
    print_actions(out);
    fputs(shell->actions_end, out);
    enum status status = cli_look(NULL, print_command, out, err);
    fputs(shell->end, out);
    return status;
}

enum status verb_completion(struct cli *cli, int argc, char **argv, struct error *err)
{
    const struct option_spec specs[] = {CLI_COMMON_OPTIONS(cli)};
    struct options options = {
        .specs = specs,
        .spec_count = ARRAY_COUNT(specs),
        .argument_min = 1,
        .argument_max = 1,
        .examples = (const char *const[]){"source <(spillway completion bash)",
                                          "source <(spillway completion zsh)", NULL},
    };
    bool go_on;
    if (cli_parse(cli, &options, argc, argv, &go_on, err) != STATUS_OK || !go_on)
        return err->status;
    const struct shell *shell = shells;
    while (shell < shells + ARRAY_COUNT(shells) && strcmp(shell->name, options.operands[0]) != 0) shell++;
    if (shell == shells + ARRAY_COUNT(shells))
        return error_set(err, STATUS_BAD_INPUT, "unknown shell '%s' (expected bash or zsh)",
                         options.operands[0]);
    if (!cli->json) return print_script(cli->out, shell, err);
    return error_set(err, STATUS_BAD_INPUT, "a completion script has no JSON form (use 'spillway "
                     "help --json' for the tables)");
}
