/*
 * The verb's answer goes to a stream in memory, then at once to standard output. A full disk or a closed pipe is an
 * error (exit 3): a script cannot mistake a part of JSON for the whole.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/text.h"
#include "cli/common/cli.h"

/* Removes temporary files. Verbs with a child install their own handler. */
static void on_signal(int number)
{
    file_remove_pending();
    /* Ends the line of a progress bar. */
    if (isatty(STDERR_FILENO) && write(STDERR_FILENO, "\n", 1) < 0) _exit(3);
    _exit(128 + number);
}

static enum status put_out(const char *text, size_t length, struct error *err)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return error_io(err, "cannot write to standard output");
        text += written;
        length -= (size_t)written;
    }
    return STATUS_OK;
}

static void print_error(const struct error *err)
{
    bool colour = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
    fprintf(stderr, "%serror:%s %s\n", colour ? "\033[31m" : "", colour ? "\033[0m" : "", err->text);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* write() then returns EPIPE, which is reported like a full disk */
    signal(SIGXFSZ, SIG_IGN); /* and EFBIG past a limit on file sizes */
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);

    char *text = NULL;
    size_t length = 0;
    struct error err = {0};
    FILE *out = open_memstream(&text, &length);
    if (!out) {
        error_memory(&err, "the answer", 0);
        print_error(&err);
        return error_exit_code(err.status);
    }
    enum status status = cli_dispatch(argc - 1, argv + 1, out, &err);
    bool complete = !ferror(out);
    if (fclose(out) != 0) complete = false;
    if (!complete) status = error_memory(&err, "the answer", length);

    if (complete) {
        struct error write_error = {0};
        text_clean(text, length, "\n\t");
        if (put_out(text, length, &write_error) != STATUS_OK && status == STATUS_OK) {
            err = write_error;
            status = err.status;
        }
    }
    if (status != STATUS_OK && err.text[0]) print_error(&err);
    free(text);
    return error_exit_code(status);
}
