#include "planner/policy/policy_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file_kind.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "planner/policy/policies.h"

enum { POLICIES_MAX = 64 };

static const char symbol[] = "spillway_policy";

bool policy_is_file(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 3 && strcmp(name + length - 3, ".so") == 0);
}

bool policy_name_is_good(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length <= POLICY_NAME_MAX && name[0] >= 'a' && name[0] <= 'z' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

enum status policy_unknown(const char *name, const char *const *others, struct error *err)
{
    const char *names[POLICIES_MAX];
    char list[SUGGEST_BYTES - 64], otherwise[SUGGEST_BYTES], ending[SUGGEST_BYTES];
    size_t count = 0;
    for (; count < POLICIES_MAX && policy_at((uint32_t)count); count++)
        names[count] = policy_at((uint32_t)count)->name;
    for (; count < POLICIES_MAX && others && *others; others++) names[count++] = *others;
    snprintf(otherwise, sizeof otherwise, " (expected %s, or a shared object such as ./mine.so)",
             suggest_list(names, count, list, sizeof list));
    return error_set(err, STATUS_BAD_INPUT, "unknown policy '%s'%s", name,
                     suggest_ending_or(name, names, count, otherwise, ending));
}

/* Checks the version, name and functions of a shared object. */
static enum status check(const char *path, const struct policy *policy, struct error *err)
{
    if (policy->version != SPILLWAY_POLICY_VERSION)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: is of policy interface version %u and this is version %u (build it again "
                         "with the header of this version)", path, policy->version,
                         SPILLWAY_POLICY_VERSION);
    if (!policy->name || !policy_name_is_good(policy->name))
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: names itself '%.80s' (expected lower case letters, digits and dashes, at "
                         "most %d)", path, policy->name ? policy->name : "", POLICY_NAME_MAX);
    if (policy_find(policy->name))
        return error_set(err, STATUS_BAD_INPUT, "%s: names itself '%s', which is a built-in policy",
                         path, policy->name);
    if (!policy->choose == !policy->rank)
        return error_set(err, STATUS_BAD_INPUT, "%s: policy '%s' has %s choose() %s rank() (expected one)",
                         path, policy->name, policy->choose ? "both" : "neither",
                         policy->choose ? "and" : "nor");
    if (policy->resident && policy->seats_max == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: policy '%s' is resident with 'seats_max' 0 (expected at least 1)", path,
                         policy->name);
    return STATUS_OK;
}

/* Removes the path that dlerror() sometimes begins with. */
static const char *reason(const char *path)
{
    const char *text = dlerror();
    size_t length = strlen(path);
    if (!text) return "it cannot be loaded";
    if (strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        return text + length + 2;
    return text;
}

/* Reports a file that is no compiled library. Returns false for others. */
static bool refuse_kind(const char *path, const char *beside, struct error *err)
{
    struct file_look look;
    char found[FILE_READING_BYTES];
    if (file_kind_look(beside, &look) && look.compiled) return false;
    if (!file_reading_refusal_at(beside, "a policy, which is a shared object", found)) return false;
    error_set(err, STATUS_BAD_INPUT, "'%s' is %s", path, found);
    return true;
}

static enum status load(const char *path, struct policy_handle *out, struct error *err)
{
    char beside[4096]; /* without a slash the loader would look elsewhere */
    int length = snprintf(beside, sizeof beside, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (length < 0 || (size_t)length >= sizeof beside)
        return error_set(err, STATUS_BAD_INPUT, "the name of a policy is longer than %zu bytes",
                         sizeof beside - 1);
    if (access(beside, R_OK) != 0)
        return error_set(err, STATUS_BAD_INPUT, "cannot read policy '%s': %s", path, strerror(errno));
    void *library = dlopen(beside, RTLD_NOW | RTLD_LOCAL);
    if (!library) TRY(refuse_kind(path, beside, err));
    if (!library)
        return error_set(err, STATUS_BAD_INPUT, "%s: is no shared object that can be loaded: %s", path,
                         reason(beside));
    const struct policy *policy = dlsym(library, symbol);
    if (!policy)
        error_set(err, STATUS_BAD_INPUT,
                  "%s: defines no '%s' (expected 'const struct policy %s', see spillway/policy.h)", path,
                  symbol, symbol);
    if (policy && check(path, policy, err) == STATUS_OK) {
        *out = (struct policy_handle){policy, library};
        return STATUS_OK;
    }
    dlclose(library);
    return err->status;
}

enum status policy_open(const char *name, struct policy_handle *out, struct error *err)
{
    if (policy_is_file(name)) return load(name, out, err);
    const struct policy *policy = policy_find(name);
    if (!policy) return policy_unknown(name, NULL, err);
    *out = (struct policy_handle){policy, NULL};
    return STATUS_OK;
}

void policy_close(struct policy_handle *handle)
{
    if (handle->library) dlclose(handle->library);
    *handle = (struct policy_handle){0};
}
