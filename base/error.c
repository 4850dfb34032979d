/*
 * An error is a status and a line of text. The function that knows the fault fills it in. Callers pass it on
 * unchanged or put "what was being done: " before its text.
 *
 * The text lives inside the struct, so that reporting "no memory" allocates nothing. Names in messages come from
 * files and command lines. Control characters are replaced, since a terminal would obey them and a newline would
 * split the message. A message that does not fit ends in "...".
 */
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* --- text ----------------------------------------------------------------------------------- */

/* Close the text after `wanted` characters were asked for (as vsnprintf() counts them). */
static void finish_text(struct error *err, int wanted)
{
    size_t size = sizeof err->text;
    if (wanted < 0) snprintf(err->text, size, "a message that could not be formatted");
    if (wanted >= (int)size) memcpy(err->text + size - 4, "...", 4);
    text_clean(err->text, strlen(err->text), "");
}

static enum status set_text(struct error *err, enum status status, const char *suffix,
                            const char *format, va_list arguments)
{
    assert(err);
    assert(status > STATUS_OK && status < STATUS_COUNT);
    if (err->status != STATUS_OK) return err->status;
    err->status = status;
    int wanted = vsnprintf(err->text, sizeof err->text, format, arguments);
    if (suffix && wanted >= 0 && (size_t)wanted < sizeof err->text)
        wanted += snprintf(err->text + wanted, sizeof err->text - (size_t)wanted, ": %s", suffix);
    finish_text(err, wanted);
    return status;
}

/* --- public --------------------------------------------------------------------------------- */

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    status = set_text(err, status, NULL, format, arguments);
    va_end(arguments);
    return status;
}

enum status error_io(struct error *err, const char *format, ...)
{
    char reason[128];
    const char *text = strerror_r(errno, reason, sizeof reason);
    va_list arguments;
    va_start(arguments, format);
    enum status status = set_text(err, STATUS_IO, text, format, arguments);
    va_end(arguments);
    return status;
}

enum status error_input(struct error *err, const char *format, ...)
{
    char reason[128];
    const int number = errno;
    const bool misnamed = number == ENOENT || number == ENOTDIR || number == EISDIR || number == ENAMETOOLONG ||
                          number == ELOOP;
    const char *text = strerror_r(number, reason, sizeof reason);
    va_list arguments;
    va_start(arguments, format);
    enum status status = set_text(err, misnamed ? STATUS_BAD_INPUT : STATUS_IO, text, format, arguments);
    va_end(arguments);
    return status;
}

enum status error_memory(struct error *err, const char *what, unsigned long long bytes)
{
    return error_set(err, STATUS_NO_MEMORY, "no memory for %s (%llu bytes)", what, bytes);
}

enum status error_add(struct error *err, const char *format, ...)
{
    assert(err->status != STATUS_OK);
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    if (wanted >= 0 && (size_t)wanted < sizeof err->text)
        wanted += snprintf(err->text + wanted, sizeof err->text - (size_t)wanted, ": %s", old);
    finish_text(err, wanted);
    return err->status;
}

const char *error_status_name(enum status status)
{
    static const char *const names[] = {
        [STATUS_OK] = "ok",           [STATUS_INFEASIBLE] = "infeasible", [STATUS_CHECK] = "check",
        [STATUS_BAD_INPUT] = "bad-input", [STATUS_LIMIT] = "limit",       [STATUS_NO_MEMORY] = "no-memory",
        [STATUS_IO] = "io",           [STATUS_DEVICE] = "device",         [STATUS_INTERRUPTED] = "interrupted",
        [STATUS_MISSED] = "missed",
    };
    static_assert(sizeof names / sizeof names[0] == STATUS_COUNT, "a name per status");
    assert(status >= STATUS_OK && status < STATUS_COUNT);
    return names[status];
}

int error_exit_code(enum status status)
{
    static const int codes[] = {
        [STATUS_OK] = 0,        [STATUS_INFEASIBLE] = 1, [STATUS_CHECK] = 1,
        [STATUS_BAD_INPUT] = 2, [STATUS_LIMIT] = 2,      [STATUS_NO_MEMORY] = 3,
        [STATUS_IO] = 3,        [STATUS_DEVICE] = 3,     [STATUS_INTERRUPTED] = 130,
        [STATUS_MISSED] = 4,
    };
    static_assert(sizeof codes / sizeof codes[0] == STATUS_COUNT, "an exit code per status");
    assert(status >= STATUS_OK && status < STATUS_COUNT);
    return codes[status];
}
