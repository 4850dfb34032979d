/* Old forms of command lines: they still work, with advice. */
#ifndef SPILLWAY_CLI_CLI_OLD_SPELLING_H
#define SPILLWAY_CLI_CLI_OLD_SPELLING_H

#include <stdbool.h>

struct cli_old_spelling {
    char **words; /* the new form without "spillway"; borrowed from argv */
    int count;
    char advice[512];
};

/* Returns false if there is no old form or memory ends. The caller zeroes `out`, and releases it after true. */
bool cli_old_spelling_find(int argc, char **argv, struct cli_old_spelling *out);
void cli_old_spelling_release(struct cli_old_spelling *old);

#endif
