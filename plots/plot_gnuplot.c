/*
 * gnuplot as a child process that touches no file of ours.
 *
 *     script  --->  [ unlinked file ]  --->  stdin   gnuplot -d  stdout  --->  [ unlinked file ]
 *                                                                stderr  --->  [ unlinked file ]
 *
 * gnuplot reads the script from standard input and writes the picture to standard output. Both are files without a
 * name: there is no directory to make and clean, no file remains after any kind of end, and no pipe can fill while
 * the other side waits. base/files/file.h then writes the picture whole or not at all. "-d" keeps gnuplot from
 * reading the user's .gnuplot.
 *
 * Only the lines before the script depend on the format of the picture. A PNG has two pixels for each pixel of the
 * layout, for high-resolution screens; fonts and lines scale along. pngcairo counts font sizes in points of 1/72 inch
 * at 96 pixels per inch, the SVG in pixels.
 *
 * launch_program() reports a missing gnuplot. When gnuplot fails, the first informative line of its standard error
 * becomes the message.
 */
#include "plots/plot_gnuplot.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/process/launch.h"
#include "base/try.h"
#include "plots/plot.h"

/* --- the lines in front --------------------------------------------------------------------- */

enum form { FORM_SVG, FORM_PNG };

static bool find_form(const char *path, enum form *out)
{
    const char *dot = strrchr(path, '.');
    if (!dot || dot == path) return false;
    bool svg = strcmp(dot, ".svg") == 0;
    if (svg || strcmp(dot, ".png") == 0) *out = svg ? FORM_SVG : FORM_PNG;
    return svg || strcmp(dot, ".png") == 0;
}

/* `shown` is the file that a kept script writes to; NULL: standard output. */
static void add_head(struct plot_script *out, const struct plot_script *script, enum form form,
                     const char *shown)
{
    int width = (int)script->width_px, height = (int)script->height_px;
    plot_script_add(out, "# Made by spillway %s.\nset encoding utf8\n", SPILLWAY_VERSION);
    if (form == FORM_SVG)
        plot_script_add(out,
                        "set terminal svg enhanced size %d,%d font 'sans-serif,12' "
                        "background '#ffffff'\n",
                        width, height);
    else
        plot_script_add(out,
                        "set terminal pngcairo enhanced size %d,%d font 'sans-serif,12' "
                        "fontscale 1.5 linewidth 2 background '#ffffff'\n",
                        width * 2, height * 2);
    if (!shown) return;
    plot_script_add(out, "set output ");
    plot_script_quoted(out, shown);
    plot_script_add(out, "\n");
}

static enum status assemble(struct plot_script *out, const struct plot_script *script,
                            enum form form, const char *shown, struct error *err)
{
    add_head(out, script, form, shown);
    plot_script_add(out, "unset key\n");
    /* The rest in one piece; plot_script_add() is for lines. */
    if (!out->no_memory && !script->no_memory) {
        char *text = alloc_resize(out->text, out->length + script->length + 1);
        if (text) {
            memcpy(text + out->length, script->text, script->length + 1);
            out->text = text;
            out->length += script->length;
            out->capacity = out->length + 1;
            return STATUS_OK;
        }
    }
    return error_memory(err, "a plot script", script->length);
}

/* --- the child ------------------------------------------------------------------------------ */

struct streams {
    FILE *in, *out, *messages; /* files without a name */
};

static enum status open_streams(struct streams *streams, const struct plot_script *text,
                                struct error *err)
{
    streams->in = tmpfile();
    streams->out = tmpfile();
    streams->messages = tmpfile();
    if (!streams->in || !streams->out || !streams->messages)
        return error_io(err, "cannot make a temporary file for gnuplot");
    if (fwrite(text->text, 1, text->length, streams->in) != text->length ||
        fflush(streams->in) != 0 || fseek(streams->in, 0, SEEK_SET) != 0)
        return error_io(err, "cannot write a temporary file for gnuplot");
    return STATUS_OK;
}

static void close_streams(struct streams *streams)
{
    FILE *files[] = {streams->in, streams->out, streams->messages};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i]) fclose(files[i]); /* read from or thrown away: nothing to lose */
}

/* Finds gnuplot's error message: its first "line N: ...", else the first non-empty line. */
static void first_message(FILE *file, char *message, size_t size)
{
    char line[256];
    bool found = false;
    snprintf(message, size, "it said nothing");
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        const char *text = line + strspn(line, " \t^");
        bool complaint = strncmp(text, "line ", 5) == 0;
        if (complaint || (!found && *text)) snprintf(message, size, "%s", text);
        if (complaint) return;
        found = found || *text;
    }
}

static enum status run_child(const struct streams *streams, struct error *err)
{
    static const char *const words[] = {"gnuplot", "-d", NULL};
    pid_t child;
    struct launch_end end;
    const struct launch how = {.argv = words, .by_name = true, .death_signal = SIGKILL,
                               .streams = {fileno(streams->in), fileno(streams->out), fileno(streams->messages)}};
    const int code = launch_program(&how, &child);
    if (code == ENOENT)
        return error_set(err, STATUS_DEVICE,
                         "gnuplot, which draws plots, was not found on PATH (install the package "
                         "gnuplot-nox)");
    if (code != 0)
        return error_set(err, STATUS_DEVICE, "gnuplot cannot be started: %s", strerror(code));
    TRY(launch_wait(child, &end, err));
    if (end.signal != 0) return error_set(err, STATUS_DEVICE, "gnuplot was ended by signal %d", end.signal);
    if (end.exit_code != 0) {
        char line[256];
        first_message(streams->messages, line, sizeof line);
        return error_set(err, STATUS_DEVICE, "gnuplot failed with exit code %d: %s",
                         end.exit_code, line);
    }
    return STATUS_OK;
}

/* --- files ---------------------------------------------------------------------------------- */

static enum status keep_script(const struct plot_script *script, const char *path, enum form form,
                               struct error *err)
{
    const char *slash = strrchr(path, '/');
    struct plot_script text = {0};
    struct file_out *file = NULL;
    char *name = alloc_zeroed(strlen(path) + 1, 1);
    enum status status = name ? assemble(&text, script, form, slash ? slash + 1 : path, err)
                              : error_memory(err, "a file name", strlen(path));
    if (status != STATUS_OK) goto out;
    strcpy(name, path);
    strcpy(strrchr(name, '.'), ".gp"); /* .svg and .png are longer */
    status = file_out_create(name, &file, err);
    if (status != STATUS_OK) goto out;
    file_out_write(file, text.text, text.length);
    status = file_out_commit(file, err);
out:
    plot_script_release(&text);
    free(name);
    return status;
}

static enum status copy_picture(FILE *from, const char *path, struct error *err)
{
    char block[1 << 14];
    struct file_out *file = NULL;
    TRY(file_out_create(path, &file, err));
    rewind(from);
    size_t total = 0;
    for (size_t got; (got = fread(block, 1, sizeof block, from)) > 0; total += got)
        file_out_write(file, block, got);
    if (ferror(from)) {
        file_out_discard(file);
        return error_io(err, "cannot read back what gnuplot drew");
    }
    if (total == 0) {
        file_out_discard(file);
        return error_set(err, STATUS_DEVICE, "gnuplot drew nothing");
    }
    return file_out_commit(file, err);
}

/* --- public --------------------------------------------------------------------------------- */

enum status plot_check_path(const char *path, struct error *err)
{
    enum form form;
    if (find_form(path, &form)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "'%s' is not the name of a picture (expected one that "
                     "ends in .svg or .png)", path);
}

enum { WIDTH_MIN_PX = 600, WIDTH_MAX_PX = 20000 };

enum status plot_width(const struct plot_options *options, uint32_t default_px, uint32_t *width_px, struct error *err)
{
    *width_px = options->width_px > 0 ? options->width_px : default_px;
    if (*width_px >= WIDTH_MIN_PX && *width_px <= WIDTH_MAX_PX) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "a width of %" PRIu32 " pixels is out of range (%d to %d)", *width_px,
                     WIDTH_MIN_PX, WIDTH_MAX_PX);
}

enum status plot_draw(const struct plot_script *script, const char *path, bool keep,
                      struct error *err)
{
    enum form form;
    bool known = find_form(path, &form);
    assert(known);
    struct plot_script text = {0};
    struct streams streams = {0};
    enum status status = assemble(&text, script, form, NULL, err);
    if (status == STATUS_OK && keep) status = keep_script(script, path, form, err);
    if (status == STATUS_OK) status = open_streams(&streams, &text, err);
    if (status == STATUS_OK) status = run_child(&streams, err);
    if (status == STATUS_OK) status = copy_picture(streams.out, path, err);
    close_streams(&streams);
    plot_script_release(&text);
    return status;
}
