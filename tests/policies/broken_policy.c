/*
 * Policies that do one thing wrong each, as shared objects: the build makes one of this file for each
 * value of BREAK (CMakeLists.txt, into the build folder's policies/). Until then they behave: the ready job
 * with the lowest number.
 */
#include <spillway/policy.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GOOD, VERSION, BUILT_IN_NAME, NO_NAME, NO_CHOOSE, BUSY_DEVICE, ABSENT_DEVICE, ABSENT_JOB, UNREADY_JOB,
       DONE_JOB, NO_ROOM, WAITS, LOOPS, CRASHES, EXITS, HUNGRY, MOODY, NO_STATE, CRASHES_AT_LOAD,
       SCRIBBLES, SCRIBBLES_AT_LOAD, CLOSES, KILLS_PARENT, ORPHANS };

/* Writes into every socket that this process has, or closes them. */
static void spoil_sockets(void)
{
    char rubbish[4096];
    struct stat what;
    memset(rubbish, 0xd7, sizeof rubbish);
    for (int file = 3; file < 1024; file++) {
        if (fstat(file, &what) != 0 || !S_ISSOCK(what.st_mode)) continue;
        if (BREAK == CLOSES) close(file);
        else if (write(file, rubbish, sizeof rubbish) < 0) abort();
    }
}

/* Chooses job 0 or another unsuitable one. */
static bool misbehave(const struct policy_view *view, struct policy_choice *out)
{
    static unsigned moods; /* outside of the state, which is what makes it moody */
    switch (BREAK) {
    case BUSY_DEVICE:
        for (uint32_t d = 0; d < view->device_count; d++)
            if (!view->devices[d].asks) out->device = d;
        return true;
    case ABSENT_DEVICE: out->device = view->device_count; return true;
    case ABSENT_JOB: out->job = 1000; return true;
    case UNREADY_JOB:
        for (uint32_t j = 0; j < view->job_count; j++)
            if (view->jobs[j].remaining > 0 && !policy_is_ready(view, j)) out->job = j;
        return true;
    case DONE_JOB:
        for (uint32_t j = 0; j < view->job_count; j++)
            if (view->jobs[j].remaining <= 0) out->job = j;
        return true;
    case NO_ROOM:
        for (uint32_t d = 0; d < view->device_count; d++)
            if (view->devices[d].asks && view->devices[d].memory < view->jobs[out->job].memory)
                out->device = d;
        return true;
    case WAITS: return view->decision < 3;
    case LOOPS: for (;;) usleep(1000);
    case SCRIBBLES: spoil_sockets(); return true;
    case CLOSES: spoil_sockets(); for (;;) usleep(1000);
    case CRASHES: abort();
    case KILLS_PARENT: kill(getppid(), SIGKILL); for (;;) usleep(1000);
    case ORPHANS: /* once, with all files open; otherwise it behaves */
        if (view->decision == 2 && fork() == 0) {
            setsid();
            prctl(PR_SET_NAME, "spw-orphan");
            for (;;) usleep(1000);
        }
        return true;
    case EXITS: exit(0);
    case HUNGRY: /* it uses memory that it was refused */
        for (;;) memset(malloc(1 << 26), 1, 1 << 26);
    case MOODY:
        for (uint32_t j = view->job_count; moods++ % 3 == 0 && j-- > 0;)
            if (policy_place(view, j) != POLICY_NONE) {
                *out = (struct policy_choice){j, policy_place(view, j)};
                break;
            }
        return true;
    default: return true;
    }
}

static bool choose(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    for (uint32_t j = 0; j < view->job_count; j++) {
        uint32_t device = policy_place(view, j);
        if (device == POLICY_NONE) continue;
        *out = (struct policy_choice){j, device};
        return view->decision < 2 && BREAK != NO_ROOM && BREAK != MOODY ? true : misbehave(view, out);
    }
    return false;
}

static void *create(const struct policy_view *first)
{
    (void)first;
    return BREAK == NO_STATE ? NULL : malloc(1);
}

__attribute__((constructor)) static void load(void)
{
    if (BREAK == CRASHES_AT_LOAD) abort();
    if (BREAK == SCRIBBLES_AT_LOAD) spoil_sockets();
}

const struct policy spillway_policy = {
    .version = SPILLWAY_POLICY_VERSION + (BREAK == VERSION),
    .name = BREAK == BUILT_IN_NAME ? "fifo" : BREAK == NO_NAME ? "No Name" : "broken",
    .summary = "does one thing wrong",
    .create = create,
    .destroy = free,
    .choose = BREAK == NO_CHOOSE ? NULL : choose,
};
