/*
 * bash and zsh: one function with a case per command. The previous word and the current word's first letter decide
 * between an option's values, the command's arguments and the options. zsh reserves `words` and `options`.
 *
 * bash splits words at '=' and ':': --hw=aws:p4 arrives as five. The function joins them, completes the whole, and
 * removes the part that the line has.
 */
#include <string.h>

#include "cli/cli_completion.h"

/* Prints files=-f offers=" a b". */
static void print_place(FILE *out, const struct completion_place *place)
{
    static const char *const files[] = {
        [COMPLETION_NO_FILES] = "''", [COMPLETION_FILES] = "-f", [COMPLETION_FOLDERS] = "-d"};
    fprintf(out, "files=%s offers=\"", files[place->files]);
    completion_print_words(out, place);
    fputc('"', out);
}

static void print_values(FILE *out, const struct options *options)
{
    for (size_t i = 0; i < options->spec_count; i++) {
        const struct option_spec *spec = &options->specs[i];
        if (spec->type == OPTION_TYPE_FLAG) continue;
        const struct completion_place place = completion_of_value(spec);
        fprintf(out, "        --%s", spec->name);
        if (spec->letter) fprintf(out, "|-%c", spec->letter);
        fputs(") ", out);
        print_place(out, &place);
        fputs(" ;;\n", out);
    }
}

/* Prints the actions of trace after `help trace`, after other verbs nothing. */
static void print_help_case(FILE *out, const struct cli_verb *verb)
{
    if (!verb->action) return;
    fprintf(out, "        %s) offers=\"", verb->name);
    completion_print_actions(out, verb);
    fputs("\" ;;\n", out);
}

static void print_command(void *context, const struct options *options)
{
    FILE *out = context;
    fprintf(out, "    \"%s\")\n        flags=\"--help", options->command);
    for (size_t i = 0; i < options->spec_count; i++)
        fprintf(out, " --%s", options->specs[i].name);
    fputs("\"\n        ", out);
    const struct completion_place place = completion_of_arguments(options);
    print_place(out, &place);
    fputs("\n        case \"$before\" in\n", out);
    print_values(out, options);
    if (strcmp(options->command, "spillway help") == 0) {
        completion_each_verb(out, print_help_case);
        fputs("        [a-z]*) offers='' ;;\n", out);
    }
    fputs("        esac ;;\n", out);
}

/* Prints lines such as: hw) verb=hardware ;; */
static void print_other_names(FILE *out)
{
    for (const struct cli_verb_name *other = cli_verb_names; other->theirs; other++)
        fprintf(out, "    %s) verb=%s ;;\n", other->theirs, other->ours);
}

/* Prints lines such as: models) actions=" list show" ;; */
static void print_actions(FILE *out, const struct cli_verb *verb)
{
    if (!verb->action) return;
    fprintf(out, "    %s) actions=\"", verb->name);
    completion_print_actions(out, verb);
    fputs("\" ;;\n", out);
}

enum { BASH, ZSH };
static const struct shell {
    const char *begin, *verbs_end, *other_names_end, *actions_end, *end;
} shells[] = {
    [BASH] = {"# Completion of spillway for bash; made by 'spillway completion bash'.\n"
     "_spillway()\n"
     "{\n"
     "    local at=$COMP_CWORD typed=${COMP_WORDS[COMP_CWORD]} option='' first=2\n"
     "    local verb=${COMP_WORDS[1]} actions='' flags='' offers='' files=''\n"
     "    COMPREPLY=()\n"
     "    # '=' and ':' part words: put the one at the cursor together again.\n"
     "    local word=$typed\n"
     "    while ((at > 1)) && [[ $word == [=:]* || ${COMP_WORDS[at-1]} == [=:] ]]; do\n"
     "        at=$((at - 1))\n"
     "        word=${COMP_WORDS[at]}$word\n"
     "    done\n"
     "    [[ $typed == [=:] ]] && typed=''\n"
     "    local head=${word%\"$typed\"} before=${COMP_WORDS[at-1]}\n"
     "    if ((at == 1)); then\n"
     "        mapfile -t COMPREPLY < <(compgen -W \"",
     " --help --version\" -- \"$word\")\n"
     "        return\n"
     "    fi\n"
     "    if [[ $word == --*=* ]]; then before=${word%%=*} option=${word%%=*}= word=${word#*=}; fi\n"
     "    case \"$verb\" in\n",
     "    esac\n"
     "    local command=\"spillway $verb\"\n"
     "    case \"$verb\" in\n",
     "    esac\n"
     "    if [[ -n $actions ]]; then\n"
     "        if ((at == 2)); then\n"
     "            mapfile -t COMPREPLY < <(compgen -W \"$actions --help\" -- \"$word\")\n"
     "            return\n"
     "        fi\n"
     "        command+=\" ${COMP_WORDS[2]}\"\n"
     "        first=3\n"
     "    fi\n"
     "    ((at == first)) && [[ -z $option ]] && before=''\n"
     "    case \"$command\" in\n",
     "    esac\n"
     "    [[ -z $option && $word == -* ]] && offers=$flags files=''\n"
     "    # shellcheck disable=SC2086\n"
     "    mapfile -t COMPREPLY < <(compgen $files -W \"$offers\" -- \"$word\")\n"
     "    COMPREPLY=(\"${COMPREPLY[@]/#/\"$option\"}\")\n"
     "    COMPREPLY=(\"${COMPREPLY[@]#\"$head\"}\")\n"
     "}\n"
     "complete -o filenames -F _spillway spillway\n"},
    [ZSH] = {"#compdef spillway\n"
     "# Completion of spillway for zsh; made by 'spillway completion zsh'.\n"
     "_spillway()\n"
     "{\n"
     "    local word=${words[CURRENT]} before=${words[CURRENT-1]} option='' first=3\n"
     "    local verb=${words[2]} actions='' flags='' offers='' files=''\n"
     "    if ((CURRENT == 2)); then\n"
     "        compadd --",
     " --help --version\n"
     "        return\n"
     "    fi\n"
     "    if [[ $word == --*=* ]]; then\n"
     "        before=${word%%=*} option=${word%%=*}= word=${word#*=}\n"
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
     "        first=4\n"
     "    fi\n"
     "    ((CURRENT == first)) && [[ -z $option ]] && before=''\n"
     "    case \"$command\" in\n",
     "    esac\n"
     "    [[ -z $option && $word == -* ]] && offers=$flags files=''\n"
     "    [[ -n $offers ]] && compadd -- ${=offers}\n"
     "    case \"$files\" in -f) _files ;; -d) _files -/ ;; esac\n"
     "}\n"
     "# Called as it is loaded from a folder of fpath; made known when it is sourced.\n"
     "if [[ ${funcstack[1]} == _spillway ]]; then _spillway \"$@\"; else compdef _spillway spillway; fi\n"},
};

static enum status print_cases(FILE *out, const struct shell *shell, struct error *err)
{
    fputs(shell->begin, out);
    completion_print_verbs(out);
    fputs(shell->verbs_end, out);
    print_other_names(out);
    fputs(shell->other_names_end, out);
    completion_each_verb(out, print_actions);
    fputs(shell->actions_end, out);
    enum status status = cli_look(NULL, print_command, out, err);
    fputs(shell->end, out);
    return status;
}

enum status completion_print_bash(FILE *out, struct error *err) { return print_cases(out, &shells[BASH], err); }
enum status completion_print_zsh(FILE *out, struct error *err) { return print_cases(out, &shells[ZSH], err); }
