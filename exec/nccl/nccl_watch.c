/*
 * A failure of a communicator is asynchronous, and the kernels of other members wait for the one that has failed. So do
 * the threads that wait for these kernels, for ever. This thread looks for failures, of communicators and of devices,
 * and aborts the communicators that have one.
 */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/process/clock.h"
#include "exec/cuda/device_cuda.h"
#include "exec/cuda/gpu_library.h"
#include "exec/nccl/nccl_groups.h"

static const double LOOK_S = 0.02;
enum { PATIENCE_S = 5 };

/* Returns true and says why, if a member has failed. */
static bool has_failed(const struct groups_session *groups, const struct nccl_communicator *c, char *why, size_t size)
{
    for (uint32_t m = 0; m < c->count; m++) {
        struct error lost = {0};
        int result = NCCL_SUCCESS;
        if (device_failed(groups->devices[c->devices[m]], &lost) != STATUS_OK) {
            snprintf(why, size, "%.190s", lost.text);
            return true;
        }
        const int failed = groups->library.get_async_error(c->comms[m], &result);
        if (failed != NCCL_SUCCESS) result = failed;
        if (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS) continue;
        nccl_library_reason(&groups->library, c->comms[m], result, why, size);
        return true;
    }
    return false;
}

/* Goes on without the lock if a group that is being enqueued hangs: then nothing else changes any more. */
static bool lock_launching(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    return pthread_mutex_timedlock(&gpu_library_launching, &end) == 0;
}

static void look(struct groups_session *groups)
{
    char why[200];
    const bool locked = lock_launching();
    for (uint32_t i = 0; i < groups->count; i++) {
        struct nccl_communicator *const c = &groups->communicators[i];
        if (!c->failed && has_failed(groups, c, why, sizeof why)) nccl_communicator_fail(groups, c, why);
    }
    if (locked) pthread_mutex_unlock(&gpu_library_launching);
}

static void *watch(void *pointer)
{
    struct groups_session *const groups = pointer;
    pthread_mutex_lock(&groups->lock);
    while (!groups->quits) {
        clock_wait_until(&groups->wake, &groups->lock, clock_s() + LOOK_S);
        if (groups->quits) break;
        pthread_mutex_unlock(&groups->lock);
        look(groups);
        pthread_mutex_lock(&groups->lock);
    }
    pthread_mutex_unlock(&groups->lock);
    return NULL;
}

enum status nccl_watch_start(struct groups_session *groups, struct error *err)
{
    sigset_t all, before;
    pthread_mutex_init(&groups->lock, NULL);
    pthread_cond_init(&groups->wake, NULL);
    sigfillset(&all); /* signals belong to the main thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&groups->watcher, NULL, watch, groups);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    groups->watches = !failed;
    if (failed) return error_set(err, STATUS_DEVICE, "cannot start a thread for NCCL: %s", strerror(failed));
    return STATUS_OK;
}

void nccl_watch_stop(struct groups_session *groups)
{
    if (!groups->watches) return;
    pthread_mutex_lock(&groups->lock);
    groups->quits = true;
    pthread_cond_signal(&groups->wake);
    pthread_mutex_unlock(&groups->lock);
    pthread_join(groups->watcher, NULL);
    pthread_cond_destroy(&groups->wake);
    pthread_mutex_destroy(&groups->lock);
    groups->watches = false;
}
