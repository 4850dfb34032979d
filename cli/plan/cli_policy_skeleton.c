/*
 * Texts of the policy, a test of one view, and a Makefile, in which @NAME@ and @INCLUDE@ are replaced. A test builds
 * and runs them.
 */
#include "cli/plan/cli_policy_skeleton.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/size.h"
#include "base/try.h"
#include "planner/policy/policies.h"
#include "planner/policy/policy_load.h"

/* --- the files ------------------------------------------------------------------------------- */

static const char policy_text[] =
    "/*\n"
    " * @NAME@: describe here the jobs that it prefers, and the reason.\n"
    " *\n"
    " * It chooses the ready job with the most computation left; among equal ones, a job whose parameters\n"
    " * are on the device already; then the job after the one that it chose last.\n"
    " */\n"
    "#include <spillway/policy.h>\n"
    "\n"
    "#include <stdlib.h>\n"
    "\n"
    "/* The state between decisions, for one schedule. */\n"
    "struct state {\n"
    "    uint32_t last_job;\n"
    "};\n"
    "\n"
    "static void *create(const struct policy_view *first)\n"
    "{\n"
    "    struct state *state = calloc(1, sizeof *state);\n"
    "    if (state) state->last_job = first->job_count - 1; /* job 0 comes after it */\n"
    "    return state;\n"
    "}\n"
    "\n"
    "/* Returns true if the parameters of the job's next unit are on the device. */\n"
    "static bool is_there(const struct policy_view *view, uint32_t job, uint32_t device)\n"
    "{\n"
    "    const struct policy_device *d = &view->devices[device];\n"
    "    return d->job == job && d->shard == view->jobs[job].shard;\n"
    "}\n"
    "\n"
    "static bool choose(void *memory, const struct policy_view *view, struct policy_choice *out)\n"
    "{\n"
    "    struct state *state = memory;\n"
    "    bool found = false, there = false;\n"
    "    for (uint32_t i = 1; i <= view->job_count; i++) {\n"
    "        uint32_t job = (state->last_job + i) % view->job_count;\n"
    "        uint32_t device = policy_place(view, job);\n"
    "        if (device == POLICY_NONE) continue; /* not ready, or fits no device that asks */\n"
    "        double left = view->jobs[job].remaining;\n"
    "        if (found && left < view->jobs[out->job].remaining) continue;\n"
    "        if (found && left <= view->jobs[out->job].remaining &&\n"
    "            (there || !is_there(view, job, device)))\n"
    "            continue;\n"
    "        out->job = job;\n"
    "        out->device = device;\n"
    "        there = is_there(view, job, device);\n"
    "        found = true;\n"
    "    }\n"
    "    if (found) state->last_job = out->job;\n"
    "    return found; /* false: wait until a unit has ended */\n"
    "}\n"
    "\n"
    "const struct policy spillway_policy = {\n"
    "    .version = SPILLWAY_POLICY_VERSION,\n"
    "    .name = \"@NAME@\",\n"
    "    .summary = \"most computation left first, on the device that has its parameters\",\n"
    "    .create = create,\n"
    "    .destroy = free,\n"
    "    .choose = choose,\n"
    "    .commit_ahead = false, /* true: asked when a unit starts, so that copies can begin */\n"
    "};\n";

static const char test_text[] =
    "/* Tests @NAME@ in one situation made by hand; `spillway policy test` tries hundreds. */\n"
    "#include <spillway/policy.h>\n"
    "\n"
    "#include <assert.h>\n"
    "#include <stdio.h>\n"
    "\n"
    "int main(void)\n"
    "{\n"
    "    /* Job 1 has more left than job 0; job 2 has the most and still runs on device 0. */\n"
    "    const struct policy_cost cost = {.compute = 5, .in = 2, .out = 2};\n"
    "    const struct policy_job idle = {.weight = 1, .last_device = POLICY_NONE, .next_device = POLICY_NONE,\n"
    "                                    .memory = 40, .next = &cost, .admitted = true};\n"
    "    struct policy_job jobs[] = {idle, idle, idle};\n"
    "    jobs[0].remaining = 20;\n"
    "    jobs[1].remaining = 30;\n"
    "    jobs[2].remaining = 90;\n"
    "    jobs[2].ready = 12;\n"
    "    jobs[2].taken = true;\n"
    "    const struct policy_device devices[] = {\n"
    "        {.free = 12, .memory = 100, .job = 2, .shard = 0},\n"
    "        {.free = 0, .memory = 100, .job = POLICY_NONE, .shard = POLICY_NONE, .asks = true}};\n"
    "    const struct policy_view view = {.now = 7, .jobs = jobs, .devices = devices, .job_count = 3,\n"
    "                                     .device_count = 2, .kind_count = 1, .device = 1, .seed = 1};\n"
    "    const struct policy *policy = &spillway_policy;\n"
    "    struct policy_choice choice;\n"
    "    void *state = policy->create ? policy->create(&view) : NULL;\n"
    "    bool chosen = policy->choose(state, &view, &choice);\n"
    "    assert(chosen && choice.job == 1 && choice.device == 1);\n"
    "    if (state && policy->destroy) policy->destroy(state);\n"
    "    printf(\"test_@NAME@: chose job %u for device %u\\n\", choice.job, choice.device);\n"
    "    return 0;\n"
    "}\n";

static const char make_text[] =
    "# make: the policy. make test: a test of one decision, then hundreds of random cases.\n"
    "#     spillway plan jobs.json --policy ./@NAME@.so\n"
    "#     spillway bench --policies sharded-lrtf,./@NAME@.so --family tight\n"
    "\n"
    "# the folder that contains spillway/policy.h\n"
    "INCLUDE ?= @INCLUDE@\n"
    "SPILLWAY ?= @SPILLWAY@\n"
    "CFLAGS ?= -O2 -g\n"
    "FLAGS = -std=c11 -Wall -Wextra -I$(INCLUDE) $(CFLAGS)\n"
    "\n"
    "@NAME@.so: @NAME@.c $(INCLUDE)/spillway/policy.h\n"
    "\t$(CC) $(FLAGS) -fPIC -shared -o $@ $<\n"
    "\n"
    "test_@NAME@: test_@NAME@.c @NAME@.c $(INCLUDE)/spillway/policy.h\n"
    "\t$(CC) $(FLAGS) -o $@ test_@NAME@.c @NAME@.c\n"
    "\n"
    "test: @NAME@.so test_@NAME@\n"
    "\t./test_@NAME@\n"
    "\t$(SPILLWAY) policy test ./@NAME@.so\n"
    "\n"
    "clean:\n"
    "\trm -f @NAME@.so test_@NAME@\n"
    "\n"
    ".PHONY: test clean\n";

static const struct {
    const char *front, *back; /* of the file's name around the policy's; back NULL: only front */
    const char *text;
} files[] = {{"", ".c", policy_text}, {"test_", ".c", test_text}, {"Makefile", NULL, make_text}};
static_assert(ARRAY_COUNT(files) == CLI_SKELETON_FILES, "each file has a name");

/* --- writing them ---------------------------------------------------------------------------- */

void cli_include_folder(char path[CLI_PATH_BYTES])
{
    static const char *const places[] = {"include", "../include"};
    static const char header[] = "/spillway/policy.h";
    char place[CLI_PATH_BYTES - sizeof header], file[CLI_PATH_BYTES];
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        struct error unknown = {0};
        if (path_from_program(places[i], place, sizeof place, &unknown) != STATUS_OK) continue;
        snprintf(file, sizeof file, "%s%s", place, header);
        if (access(file, R_OK) != 0) continue;
        snprintf(path, CLI_PATH_BYTES, "%s", place);
        return;
    }
    snprintf(path, CLI_PATH_BYTES, "/usr/include");
}

const char *cli_skeleton_name(const char *policy, uint32_t index, char name[CLI_PATH_BYTES])
{
    snprintf(name, CLI_PATH_BYTES, "%s%s%s", files[index].front, files[index].back ? policy : "",
             files[index].back ? files[index].back : "");
    return name;
}

static void fill_in(struct file_out *file, const char *text, const char *name, const char *include, const char *program)
{
    const struct {
        const char *mark, *word;
    } words[] = {{"@NAME@", name}, {"@INCLUDE@", include}, {"@SPILLWAY@", program}};
    while (*text) {
        const char *next = strchr(text, '@');
        size_t length = next ? (size_t)(next - text) : strlen(text);
        file_out_write(file, text, length);
        text += length;
        if (!next) return;
        size_t w = 0;
        while (w < ARRAY_COUNT(words) && strncmp(text, words[w].mark, strlen(words[w].mark)) != 0) w++;
        if (w < ARRAY_COUNT(words)) {
            file_out_write(file, words[w].word, strlen(words[w].word));
            text += strlen(words[w].mark);
        } else {
            file_out_write(file, text++, 1); /* an '@' of make */
        }
    }
}

static enum status write_file(const char *policy, const char *folder, uint32_t index, struct error *err)
{
    char path[2 * CLI_PATH_BYTES], name[CLI_PATH_BYTES], include[CLI_PATH_BYTES], program[CLI_PATH_BYTES];
    struct file_out *file;
    struct error unknown = {0};
    cli_include_folder(include);
    /* not on PATH in a build tree */
    if (path_from_program("", program, sizeof program, &unknown) != STATUS_OK)
        snprintf(program, sizeof program, "spillway");
    snprintf(path, sizeof path, "%s/%s", folder, cli_skeleton_name(policy, index, name));
    TRY(file_out_create(path, &file, err));
    fill_in(file, files[index].text, policy, include, program);
    return file_out_commit(file, err);
}

static void remove_all(const char *policy, const char *folder, uint32_t count)
{
    char path[2 * CLI_PATH_BYTES], name[CLI_PATH_BYTES];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, cli_skeleton_name(policy, i, name));
        unlink(path);
    }
    rmdir(folder);
}

enum status cli_skeleton_write(const char *policy, const char *folder, struct error *err)
{
    if (!policy_name_is_good(policy))
        return error_set(err, STATUS_BAD_INPUT,
                         "policy name '%.80s' (expected lower case letters, digits and dashes, a letter in "
                         "front, at most %d)", policy, POLICY_NAME_MAX);
    if (policy_find(policy))
        return error_set(err, STATUS_BAD_INPUT, "policy name '%s' is taken by a built-in policy", policy);
    if (mkdir(folder, 0777) != 0)
        return errno == EEXIST
                   ? error_set(err, STATUS_BAD_INPUT, "'%s' is there already", folder)
                   : error_input(err, "cannot make the folder '%s'", folder);
    for (uint32_t i = 0; i < ARRAY_COUNT(files); i++) {
        if (write_file(policy, folder, i, err) == STATUS_OK) continue;
        remove_all(policy, folder, i);
        return err->status;
    }
    return STATUS_OK;
}
