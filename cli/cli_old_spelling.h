/* Command lines of the last release that have another form now: they work once more, and say what to type. */
#ifndef SPILLWAY_CLI_CLI_OLD_SPELLING_H
#define SPILLWAY_CLI_CLI_OLD_SPELLING_H

#include <stdbool.h>

struct cli_old_spelling {
    char **words; /* the command line of today, without "spillway"; the words are borrowed from argv */
    int count;
    char advice[512];
};

/* False: the command line has no old form, or memory is short. `out` is zeroed before; release it after true. */
bool cli_old_spelling_find(int argc, char **argv, struct cli_old_spelling *out);
void cli_old_spelling_release(struct cli_old_spelling *old);

#endif
