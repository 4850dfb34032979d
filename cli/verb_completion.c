/*
 * `completion bash`: a completion script, written from the tables that parse the command line, so
 * that it cannot offer what is not there.
 *
 * The script is one function with a case per command: the words in front of the cursor choose the
 * case, the word before it decides between an option's choices, a file name and the list of options.
 */
#include <string.h>

#include "base/size.h"
#include "cli/cli.h"
#include "planner/planner.h"

static void print_words(FILE *out, const char *const *words)
{
    for (; *words; words++) fprintf(out, " %s", *words);
}

/* What may follow an option that takes a value: its choices, policies, or nothing (a file name). */
static void print_values(FILE *out, const struct options *options)
{
    for (size_t i = 0; i < options->spec_count; i++) {
        const struct option_spec *spec = &options->specs[i];
        bool policy = strcmp(spec->name, "policy") == 0;
        if (!spec->choices && !policy) continue;
        fprintf(out, "            --%s", spec->name);
        if (spec->letter) fprintf(out, "|-%c", spec->letter);
        fputs(") values=\"", out);
        if (policy) {
            fputs("all", out);
            for (uint32_t p = 0; planner_policy_name(p); p++)
                fprintf(out, " %s", planner_policy_name(p));
        } else {
            print_words(out, spec->choices);
        }
        fputs("\" ;;\n", out);
    }
}

static void print_command(void *context, const struct options *options)
{
    FILE *out = context;
    fprintf(out, "    \"%s\")\n        options=\"--help", options->command);
    for (size_t i = 0; i < options->spec_count; i++)
        fprintf(out, " --%s", options->specs[i].name);
    fputs("\"\n        case \"$before\" in\n", out);
    print_values(out, options);
    fputs("            -*) ;;\n        esac ;;\n", out);
}

static void print_verb_names(FILE *out)
{
    const char *last = "";
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        if (strcmp(verb->name, last) == 0) continue;
        fprintf(out, " %s", verb->name);
        last = verb->name;
    }
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

static enum status print_bash(FILE *out, struct error *err)
{
    fputs("# Completion of spillway for bash; made by 'spillway completion bash'.\n"
          "_spillway()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local command=\"spillway ${COMP_WORDS[1]}\" actions= options= values= at=2\n"
          "    COMPREPLY=()\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"", out);
    print_verb_names(out);
    fputs(" --help --version\" -- \"$word\")\n"
          "        return\n"
          "    fi\n"
          "    case \"${COMP_WORDS[1]}\" in\n", out);
    print_actions(out);
    fputs("    esac\n"
          "    if [[ -n $actions ]]; then\n"
          "        if ((COMP_CWORD == 2)); then\n"
          "            mapfile -t COMPREPLY < <(compgen -W \"$actions --help\" -- \"$word\")\n"
          "            return\n"
          "        fi\n"
          "        command+=\" ${COMP_WORDS[2]}\"\n"
          "        at=3\n"
          "    fi\n"
          "    ((COMP_CWORD == at)) && before=\n"
          "    case \"$command\" in\n", out);
    enum status status = cli_look(NULL, print_command, out, err);
    fputs("    esac\n"
          "    if [[ -n $values ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\")\n"
          "    elif [[ $word == -* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
          "    else\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _spillway spillway\n", out);
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
        .examples = (const char *const[]){"source <(spillway completion bash)", NULL},
    };
    bool go_on;
    if (cli_parse(cli, &options, argc, argv, &go_on, err) != STATUS_OK || !go_on)
        return err->status;
    if (strcmp(options.operands[0], "bash") != 0)
        return error_set(err, STATUS_BAD_INPUT, "unknown shell '%s' (expected bash)",
                         options.operands[0]);
    if (!cli->json) return print_bash(cli->out, err);
    return error_set(err, STATUS_BAD_INPUT, "a completion script has no JSON form (use 'spillway "
                     "help --json' for the tables)");
}
