/* Command lines of the last release whose form has changed: they still work, with advice on the new form. */
#ifndef SPILLWAY_CLI_CLI_OLD_SPELLING_H
#define SPILLWAY_CLI_CLI_OLD_SPELLING_H

#include <stdbool.h>

struct cli_old_spelling {
    char **words; /* the new command line, without "spillway"; the words are borrowed from argv */
    int count;
    char advice[512];
};

/* Finds the new form of a command line. Returns false if it has no old form or memory ends. `out` is zeroed by the
 * caller, who releases it after true. */
bool cli_old_spelling_find(int argc, char **argv, struct cli_old_spelling *out);
void cli_old_spelling_release(struct cli_old_spelling *old);

#endif
