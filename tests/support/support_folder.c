#include "tests/support/support_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/folder.h"

void support_folder_make(char path[SUPPORT_FOLDER_BYTES])
{
    strcpy(path, "/tmp/spillway-test-XXXXXX");
    if (mkdtemp(path)) return;
    perror(path);
    abort();
}

void support_folder_remove(const char *path)
{
    folder_remove(path);
    if (access(path, F_OK) != 0) return;
    fprintf(stderr, "%s cannot be removed\n", path);
    abort();
}
