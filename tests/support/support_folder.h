/* Temporary folders of tests. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_FOLDER_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_FOLDER_H

enum { SUPPORT_FOLDER_BYTES = 32 };

/* Makes an empty folder below /tmp and writes its path. Ends the program on failure. */
void support_folder_make(char path[SUPPORT_FOLDER_BYTES]);

/* Removes the folder with everything in it. Ends the program on failure. */
void support_folder_remove(const char *path);

#endif
