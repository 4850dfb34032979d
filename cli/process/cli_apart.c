#include "cli/process/cli_apart.h"

#include <stdlib.h>
#include <string.h>

#include "base/process/contain.h"
#include "planner/policy/policy_load.h"

static const struct contain_limits limits = {.seconds = 60, .memory_bytes = UINT64_C(8) << 30};

struct apart_attempt {
    cli_apart_work work;
    void *context;
};

static void do_and_tell(void *context, struct contain_sink *sink)
{
    const struct apart_attempt *attempt = context;
    struct error err = {0};
    (void)!attempt->work(attempt->context, &err);
    contain_write(sink, &err, sizeof err);
}

enum status cli_try_apart(const char *policy, cli_apart_work work, void *context, struct error *err)
{
    struct apart_attempt attempt = {work, context};
    struct error found;
    struct contain_end end;
    char why[CONTAIN_TEXT_BYTES];
    void *result;
    size_t length;
    if (!policy || !policy_is_file(policy)) return STATUS_OK;
    if (contain_run(do_and_tell, &attempt, &limits, sizeof found, &result, &length, &end, err)) {
        if (err->status != STATUS_LIMIT) return err->status;
        *err = (struct error){.status = STATUS_OK};
        return error_set(err, STATUS_BAD_INPUT, "%s: the process of the policy wrote its own data into the pipe",
                         policy);
    }
    if (!result)
        return error_set(err, STATUS_BAD_INPUT, "%s: the process of the policy %s", policy,
                         contain_text(&end, &limits, why));
    bool sound = length == sizeof found;
    if (sound) memcpy(&found, result, sizeof found);
    free(result);
    sound = sound && (unsigned)found.status < STATUS_COUNT && memchr(found.text, '\0', sizeof found.text);
    if (!sound)
        return error_set(err, STATUS_BAD_INPUT, "%s: the process of the policy left an invalid result", policy);
    return found.status == STATUS_OK ? STATUS_OK : error_set(err, found.status, "%s", found.text);
}
