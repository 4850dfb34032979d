/* Writes texts in CSV files: in double quotes, with inner double quotes doubled (RFC 4180). */
#ifndef SPILLWAY_BASE_FILES_CSV_H
#define SPILLWAY_BASE_FILES_CSV_H

#include <stdio.h>

struct file_out;

void csv_print_text(FILE *out, const char *text);
void csv_write_text(struct file_out *out, const char *text);

#endif
