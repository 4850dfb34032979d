/*
 * main() of spillway-exec.
 *
 * `spillway run` and `spillway measure` start it and share its terminal. Standard output gets the result in one piece
 * at the end; all else goes to standard error.
 *
 * The first SIGINT or SIGTERM ends a run at the next sensible place, with exit code 130 and a report; the second ends
 * the program at once.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/outputs.h"
#include "base/size.h"
#include "exec/command.h"
#include "exec/device/backend.h"
#include "exec/device/environment.h"

/* --- signals ----------------------------------------------------------------------------------- */

static volatile bool stop_asked;

static const char *volatile stop_note = "\nstopping (again: at once)\n";

static void on_signal(int number)
{
    const char *note = stop_note;
    if (stop_asked) {
        file_remove_pending();
        _exit(128 + number);
    }
    stop_asked = true;
    if (write(STDERR_FILENO, note, strlen(note)) < 0) return;
}

static void watch_signals(void)
{
    /* A separate stack for handlers: the matrix library uses the stack pointer for other purposes. */
    static char stack[64 << 10];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    const bool has_stack = sigaltstack(&own, NULL) == 0;
    const struct sigaction action = {.sa_handler = on_signal,
                                     .sa_flags = SA_RESTART | (has_stack ? SA_ONSTACK : 0)};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* write() then says EPIPE, reported like a full disk */
    signal(SIGXFSZ, SIG_IGN); /* and EFBIG past a limit of the size of files */
}

/* --- main -------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    command_function *run;
    const char *summary;
    const char *stop_note; /* NULL: nothing is kept */
} commands[] = {
    {"run", command_run, "carry out a plan on this machine",
     "\nstopping after the minibatches that have begun (again: at once, keeping nothing)\n"},
    {"check", command_check, "would a run of this plan be refused?", NULL},
    {"checkpoints", command_checkpoints, "the newest whole checkpoint of each job of a plan", NULL},
    {"measure", command_measure, "measure how fast this machine computes and copies", NULL},
    {"detect", command_detect, "describe this machine in a hardware file, without measurements", NULL},
    {"devices", command_devices, "how many devices each back end finds", NULL},
#ifdef SPILLWAY_CUDA
    {"gpu-rates", command_gpu_rates, "plain rates of the first GPU, see exec/cuda/gpu-check", NULL},
#endif
};

static void print_usage(FILE *stream)
{
    fprintf(stream, "spillway-exec %s: the executor of spillway (back ends: %s)\n\n",
            SPILLWAY_VERSION, backend_names());
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        fprintf(stream, "  spillway-exec %-11s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream, "\n'spillway-exec COMMAND --help' says more\n");
}

static enum status dispatch(int argc, char **argv, struct error *err)
{
    if (argc < 2)
        return error_set(err, STATUS_BAD_INPUT,
                         "no command (expected run, check, checkpoints, measure, detect or devices)");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return STATUS_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("spillway-exec %s (back ends: %s)\n", SPILLWAY_VERSION, backend_names());
        return STATUS_OK;
    }
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        if (strcmp(argv[1], commands[i].name) != 0) continue;
        if (commands[i].stop_note) stop_note = commands[i].stop_note;
        return commands[i].run(argc - 1, argv + 1, &stop_asked, err);
    }
    return error_set(err, STATUS_BAD_INPUT,
                     "unknown command '%s' (expected run, check, checkpoints, measure, detect or devices)", argv[1]);
}

int main(int argc, char **argv)
{
    environment_settle(argv);
    watch_signals();
    struct error err = {0};
    outputs_begin();
    enum status status = dispatch(argc, argv, &err);
    outputs_end();
    if (fflush(stdout) != 0 && status == STATUS_OK)
        status = error_io(&err, "cannot write to standard output");
    if (status != STATUS_OK && err.text[0]) {
        const bool colour = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
        fprintf(stderr, "%serror:%s %s\n", colour ? "\033[31m" : "", colour ? "\033[0m" : "",
                err.text);
    }
    return error_exit_code(status);
}
