#include "tests/support/exec/support_orphan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool one_lives(void)
{
    char name[300], text[32] = "";
    DIR *processes = opendir("/proc");
    bool lives = false;
    assert_non_null(processes);
    for (struct dirent *entry; (entry = readdir(processes)) && !lives;) {
        snprintf(name, sizeof name, "/proc/%.200s/comm", entry->d_name);
        FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(name, "r") : NULL;
        if (!file) continue;
        lives = fgets(text, sizeof text, file) && strncmp(text, SUPPORT_ORPHAN, strlen(SUPPORT_ORPHAN)) == 0;
        fclose(file);
    }
    closedir(processes);
    return lives;
}

bool support_orphan_lives(void)
{
    bool lives = true;
    for (int tries = 0; tries < 500 && (lives = one_lives()); tries++) usleep(10000);
    return lives;
}
