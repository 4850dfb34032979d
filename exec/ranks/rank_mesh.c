#include "exec/ranks/rank_mesh.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "exec/ranks/ranks_state.h"
#include "exec/ranks/socket_io.h"

static const double FLUSH_S = 1; /* for the others to learn of a failure */

/* --- joining and leaving -------------------------------------------------------------------------- */

enum status ranks_join(const struct ranks_options *options, struct ranks **out, struct error *err)
{
    assert(options->rank < options->count && options->count <= RANKS_MAX);
    struct ranks *const ranks = alloc_zeroed(1, sizeof *ranks);
    if (!ranks) return error_memory(err, "the other ranks", sizeof *ranks);
    ranks->own = options->rank;
    ranks->count = options->count;
    ranks->patience_s = options->patience_s;
    ranks->held_end = &ranks->held;
    pthread_mutex_init(&ranks->lock, NULL);
    pthread_cond_init(&ranks->changed, NULL);
    ranks->links = alloc_zeroed(ranks->count, sizeof *ranks->links);
    ranks->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum status status = STATUS_OK;
    if (!ranks->links) status = error_memory(err, "the other ranks", ranks->count * sizeof *ranks->links);
    else if (ranks->wake < 0) status = error_set(err, STATUS_DEVICE, "cannot wake a thread: %s", strerror(errno));
    for (uint32_t r = 0; ranks->links && r < ranks->count; r++) {
        ranks->links[r].socket = -1;
        ranks->links[r].out_end = &ranks->links[r].out;
    }
    if (status == STATUS_OK) status = ranks_meet(ranks, options, err);
    if (status == STATUS_OK) status = ranks_start(ranks, err);
    if (status == STATUS_OK) *out = ranks;
    else ranks_destroy(ranks);
    return status;
}

static void wake_up(struct ranks *ranks)
{
    const uint64_t one = 1;
    (void)!write(ranks->wake, &one, sizeof one);
}

/* Ends the thread after it has sent all queued frames, or after FLUSH_S. */
static void stop_thread(struct ranks *ranks)
{
    if (!ranks->started) return;
    pthread_mutex_lock(&ranks->lock);
    const double until_s = clock_s() + FLUSH_S;
    bool queued = true;
    while (queued && clock_s() < until_s) {
        queued = false;
        for (uint32_t r = 0; r < ranks->count; r++) queued |= ranks->links[r].socket >= 0 && ranks->links[r].out;
        pthread_mutex_unlock(&ranks->lock);
        if (queued) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        pthread_mutex_lock(&ranks->lock);
    }
    ranks->quit = true;
    pthread_mutex_unlock(&ranks->lock);
    wake_up(ranks);
    pthread_join(ranks->thread, NULL);
    ranks->started = false;
}

static bool all_left(const struct ranks *ranks)
{
    bool all = true;
    for (uint32_t r = 0; r < ranks->count; r++) all &= r == ranks->own || ranks->links[r].left;
    return all;
}

enum status ranks_leave(struct ranks *ranks, const struct error *why, struct error *err)
{
    if (why) ranks_report(ranks, why->text);
    pthread_mutex_lock(&ranks->lock);
    if (ranks->failure.status == STATUS_OK) {
        for (uint32_t r = 0; r < ranks->count; r++)
            if (r != ranks->own) ranks_queue(ranks, r, (struct rank_frame){.kind = RANK_FRAME_BYE}, NULL, NULL);
        wake_up(ranks);
        while (ranks->failure.status == STATUS_OK && !all_left(ranks)) pthread_cond_wait(&ranks->changed, &ranks->lock);
    }
    pthread_mutex_unlock(&ranks->lock);
    wake_up(ranks);
    stop_thread(ranks);
    pthread_mutex_lock(&ranks->lock);
    ranks->cancelled = true;
    pthread_cond_broadcast(&ranks->changed);
    pthread_mutex_unlock(&ranks->lock);
    uint32_t culprit;
    return why ? STATUS_OK : ranks_failed(ranks, &culprit, err);
}

void ranks_destroy(struct ranks *ranks)
{
    if (!ranks) return;
    stop_thread(ranks);
    for (uint32_t r = 0; ranks->links && r < ranks->count; r++) {
        struct ranks_link *const link = &ranks->links[r];
        socket_close(&link->socket);
        struct ranks_out *const lists[] = {link->out, link->ready};
        for (int i = 0; i < 2; i++)
            for (struct ranks_out *at = lists[i], *next; at; at = next) {
                next = at->next;
                free(at);
            }
        free(link->told);
    }
    for (struct ranks_told *at = ranks->held, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    if (ranks->wake >= 0) close(ranks->wake);
    pthread_cond_destroy(&ranks->changed);
    pthread_mutex_destroy(&ranks->lock);
    free(ranks->links);
    free(ranks);
}

uint32_t ranks_own(const struct ranks *ranks)
{
    return ranks->own;
}

uint32_t ranks_count(const struct ranks *ranks)
{
    return ranks->count;
}

enum status ranks_failed(struct ranks *ranks, uint32_t *rank, struct error *err)
{
    pthread_mutex_lock(&ranks->lock);
    enum status status = ranks->failure.status;
    *rank = ranks->culprit;
    if (status != STATUS_OK) status = error_set(err, status, "%s", ranks->failure.text);
    pthread_mutex_unlock(&ranks->lock);
    return status;
}

void ranks_report(struct ranks *ranks, const char *text)
{
    char line[RANKS_TOLD_MAX];
    pthread_mutex_lock(&ranks->lock);
    snprintf(line, sizeof line, "%s: %s", ranks->links[ranks->own].name, text);
    ranks_note_failure(ranks, ranks->own, line);
    pthread_mutex_unlock(&ranks->lock);
}

/* --- queues, under the lock ----------------------------------------------------------------------- */

void ranks_queue(struct ranks *ranks, uint32_t to, struct rank_frame frame, struct ranks_request *request,
                 const void *text)
{
    struct ranks_link *const link = &ranks->links[to];
    const size_t copied = request ? 0 : (size_t)frame.bytes;
    if (link->socket < 0) return;
    struct ranks_out *const out = alloc_zeroed(1, sizeof *out + copied);
    if (!out) {
        if (frame.kind != RANK_FRAME_FAILED)
            ranks_note_failure(ranks, ranks->own, "no memory left for messages between ranks");
        return;
    }
    out->frame = frame;
    out->request = request;
    if (copied > 0) memcpy(out->text, text, copied);
    *link->out_end = out;
    link->out_end = &out->next;
}

void ranks_note_failure(struct ranks *ranks, uint32_t culprit, const char *text)
{
    if (ranks->failure.status != STATUS_OK) return;
    (void)!error_set(&ranks->failure, STATUS_DEVICE, "%s", text);
    ranks->culprit = culprit;
    for (uint32_t r = 0; r < ranks->count; r++)
        if (r != ranks->own && r != culprit)
            ranks_queue(ranks, r,
                        (struct rank_frame){.kind = RANK_FRAME_FAILED, .part = culprit, .bytes = strlen(text) + 1},
                        NULL, text);
    pthread_cond_broadcast(&ranks->changed);
    wake_up(ranks);
}

/* --- requests ------------------------------------------------------------------------------------- */

void ranks_send(struct ranks *ranks, uint32_t to, uint64_t number, uint32_t part, const void *from, uint64_t bytes,
                struct ranks_request *request)
{
    assert(to != ranks->own && bytes > 0);
    *request = (struct ranks_request){.number = number, .peer = to, .part = part, .at = (char *)(uintptr_t)from,
                                      .bytes = bytes};
    struct ranks_link *const link = &ranks->links[to];
    pthread_mutex_lock(&ranks->lock);
    struct ranks_out **ready = &link->ready;
    while (*ready && ((*ready)->frame.number != number || (*ready)->frame.part != part)) ready = &(*ready)->next;
    if (*ready) {
        struct ranks_out *const found = *ready;
        *ready = found->next;
        free(found);
        ranks_queue(ranks, to,
                    (struct rank_frame){.kind = RANK_FRAME_DATA, .part = part, .number = number, .bytes = bytes},
                    request, NULL);
        wake_up(ranks);
    } else {
        request->next = link->sends;
        link->sends = request;
    }
    pthread_mutex_unlock(&ranks->lock);
}

void ranks_receive(struct ranks *ranks, uint32_t from, uint64_t number, uint32_t part, void *to, uint64_t bytes,
                   struct ranks_request *request)
{
    assert(from != ranks->own && bytes > 0);
    *request = (struct ranks_request){.number = number, .peer = from, .part = part, .at = to, .bytes = bytes};
    pthread_mutex_lock(&ranks->lock);
    request->next = ranks->links[from].receives;
    ranks->links[from].receives = request;
    ranks_queue(ranks, from, (struct rank_frame){.kind = RANK_FRAME_READY, .part = part, .number = number}, NULL, NULL);
    pthread_mutex_unlock(&ranks->lock);
    wake_up(ranks);
}

bool ranks_await(struct ranks *ranks, struct ranks_request *request)
{
    pthread_mutex_lock(&ranks->lock);
    while (!request->done && !ranks->cancelled) pthread_cond_wait(&ranks->changed, &ranks->lock);
    const bool done = request->done;
    pthread_mutex_unlock(&ranks->lock);
    return done;
}

bool ranks_arrived(struct ranks *ranks, const struct ranks_request *request)
{
    pthread_mutex_lock(&ranks->lock);
    const bool done = request->done;
    pthread_mutex_unlock(&ranks->lock);
    return done;
}

/* --- short messages ------------------------------------------------------------------------------- */

void ranks_tell(struct ranks *ranks, uint32_t to, const void *message, size_t bytes)
{
    assert(bytes <= RANKS_TOLD_MAX && to != ranks->own);
    pthread_mutex_lock(&ranks->lock);
    ranks_queue(ranks, to, (struct rank_frame){.kind = RANK_FRAME_TOLD, .bytes = bytes}, NULL, message);
    pthread_mutex_unlock(&ranks->lock);
    wake_up(ranks);
}

void ranks_tell_all(struct ranks *ranks, const void *message, size_t bytes)
{
    for (uint32_t r = 0; r < ranks->count; r++)
        if (r != ranks->own) ranks_tell(ranks, r, message, bytes);
}

void ranks_listen(struct ranks *ranks, ranks_hear *hear, void *context)
{
    pthread_mutex_lock(&ranks->lock);
    ranks->hear = hear;
    ranks->context = context;
    pthread_mutex_unlock(&ranks->lock);
    wake_up(ranks);
}
