/*
 * The thread of the connections. It never waits for one connection: it reads the bytes that have come, and writes the
 * bytes that the connection takes. So no rank can hold up another, and sends that cross each other end.
 *
 * Data are read and written without the lock, straight from and to the memory of requests. A failure stays in the
 * structure until the run sees it; the thread serves on, so that the others hear of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "exec/ranks/ranks_state.h"
#include "exec/ranks/socket_io.h"

enum { TURN_BYTES = 4 << 20, POLL_MS = 200 };
static const double ALIVE_S = 1;
static const double SILENCE_SHARE = 0.8; /* of the patience */

static void fail(struct ranks *ranks, uint32_t culprit, const char *what)
{
    char text[RANKS_TOLD_MAX];
    snprintf(text, sizeof text, "%s %s", ranks->links[culprit].name, what);
    pthread_mutex_lock(&ranks->lock);
    ranks_note_failure(ranks, culprit, text);
    pthread_mutex_unlock(&ranks->lock);
}

static void lose(struct ranks *ranks, uint32_t r)
{
    pthread_mutex_lock(&ranks->lock);
    const bool left = ranks->links[r].left;
    socket_close(&ranks->links[r].socket);
    pthread_mutex_unlock(&ranks->lock);
    if (!left) fail(ranks, r, "ended before the run did");
}

/* --- reading ------------------------------------------------------------------------------------- */

/* Sends what the other rank is ready for, or keeps it in mind. */
static void note_ready(struct ranks *ranks, uint32_t r)
{
    struct ranks_link *const link = &ranks->links[r];
    const struct rank_frame *const frame = &link->frame;
    pthread_mutex_lock(&ranks->lock);
    struct ranks_request **at = &link->sends;
    while (*at && ((*at)->number != frame->number || (*at)->part != frame->part)) at = &(*at)->next;
    if (*at) {
        struct ranks_request *const request = *at;
        *at = request->next;
        ranks_queue(ranks, r, (struct rank_frame){.kind = RANK_FRAME_DATA, .part = request->part,
                                                  .number = request->number,
                                             .bytes = request->bytes}, request, NULL);
    } else {
        struct ranks_out *const ready = alloc_zeroed(1, sizeof *ready);
        if (!ready) {
            ranks_note_failure(ranks, ranks->own, "no memory left for messages between ranks");
        } else {
            ready->frame = *frame;
            ready->next = link->ready;
            link->ready = ready;
        }
    }
    pthread_mutex_unlock(&ranks->lock);
}

/* Finds the request whose data follow. Returns false when there is none of this size. */
static bool begin_data(struct ranks *ranks, uint32_t r)
{
    struct ranks_link *const link = &ranks->links[r];
    pthread_mutex_lock(&ranks->lock);
    struct ranks_request **at = &link->receives;
    while (*at && ((*at)->number != link->frame.number || (*at)->part != link->frame.part)) at = &(*at)->next;
    link->arriving = *at;
    if (*at) *at = (*at)->next;
    if (link->arriving) link->arriving->came_s = clock_s();
    pthread_mutex_unlock(&ranks->lock);
    return link->arriving && link->arriving->bytes == link->frame.bytes;
}

static void finish(struct ranks *ranks, struct ranks_request *request)
{
    pthread_mutex_lock(&ranks->lock);
    request->done = true;
    pthread_cond_broadcast(&ranks->changed);
    pthread_mutex_unlock(&ranks->lock);
}

/* Returns false for a frame that is no rank's. */
static bool begin_frame(struct ranks *ranks, uint32_t r)
{
    struct ranks_link *const link = &ranks->links[r];
    const struct rank_frame *const frame = &link->frame;
    switch ((enum rank_frame_kind)frame->kind) {
    case RANK_FRAME_READY:
        note_ready(ranks, r);
        return frame->bytes == 0;
    case RANK_FRAME_BYE:
        pthread_mutex_lock(&ranks->lock);
        link->left = true;
        pthread_cond_broadcast(&ranks->changed);
        pthread_mutex_unlock(&ranks->lock);
        return frame->bytes == 0;
    case RANK_FRAME_ALIVE: return frame->bytes == 0;
    case RANK_FRAME_DATA: return begin_data(ranks, r);
    case RANK_FRAME_TOLD:
    case RANK_FRAME_FAILED:
        if (frame->bytes == 0 || frame->bytes > RANKS_TOLD_MAX) return false;
        link->told = alloc_zeroed(1, sizeof *link->told + frame->bytes);
        if (!link->told) return false;
        link->told->from = r;
        link->told->bytes = frame->bytes;
        return true;
    case RANK_FRAME_KIND_END: break;
    }
    return false;
}

static void end_frame(struct ranks *ranks, uint32_t r)
{
    struct ranks_link *const link = &ranks->links[r];
    if (link->frame.kind == RANK_FRAME_DATA) {
        finish(ranks, link->arriving);
        link->arriving = NULL;
    } else if (link->frame.kind == RANK_FRAME_FAILED) {
        link->told->text[link->told->bytes - 1] = '\0';
        pthread_mutex_lock(&ranks->lock);
        ranks_note_failure(ranks, link->frame.part < ranks->count ? link->frame.part : r, link->told->text);
        pthread_mutex_unlock(&ranks->lock);
        free(link->told);
        link->told = NULL;
    } else if (link->frame.kind == RANK_FRAME_TOLD) {
        pthread_mutex_lock(&ranks->lock);
        *ranks->held_end = link->told;
        ranks->held_end = &link->told->next;
        pthread_mutex_unlock(&ranks->lock);
        link->told = NULL;
    }
}

/* Reads the bytes that have come, up to a limit, so that other connections have their turn. */
static void read_link(struct ranks *ranks, uint32_t r)
{
    struct ranks_link *const link = &ranks->links[r];
    for (uint64_t taken = 0; taken < TURN_BYTES && link->socket >= 0;) {
        char *const to = !link->in_data ? (char *)&link->frame
                         : link->arriving ? link->arriving->at : link->told->text;
        const uint64_t wanted = link->in_data ? link->frame.bytes : sizeof link->frame;
        const ssize_t count = recv(link->socket, to + link->received, wanted - link->received, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (count <= 0) {
            lose(ranks, r);
            return;
        }
        taken += (uint64_t)count;
        link->received += (uint64_t)count;
        link->heard_s = clock_s();
        if (link->received < wanted) continue;
        link->received = 0;
        if (!link->in_data) {
            if (!begin_frame(ranks, r)) {
                fail(ranks, r, "sent a message that does not fit the plan");
                lose(ranks, r);
                return;
            }
            link->in_data = link->frame.bytes > 0;
            if (link->in_data) continue;
        }
        link->in_data = false;
        end_frame(ranks, r);
    }
}

/* --- writing ------------------------------------------------------------------------------------- */

static struct ranks_out *first_out(struct ranks *ranks, uint32_t r)
{
    pthread_mutex_lock(&ranks->lock);
    struct ranks_out *const out = ranks->links[r].socket >= 0 ? ranks->links[r].out : NULL;
    pthread_mutex_unlock(&ranks->lock);
    return out;
}

static void drop_first(struct ranks *ranks, uint32_t r)
{
    struct ranks_link *const link = &ranks->links[r];
    pthread_mutex_lock(&ranks->lock);
    struct ranks_out *const out = link->out;
    link->out = out->next;
    if (!link->out) link->out_end = &link->out;
    link->sent = 0;
    if (out->request) {
        out->request->done = true;
        pthread_cond_broadcast(&ranks->changed);
    }
    pthread_mutex_unlock(&ranks->lock);
    free(out);
}

static void write_link(struct ranks *ranks, uint32_t r)
{
    struct ranks_link *const link = &ranks->links[r];
    uint64_t given = 0;
    struct ranks_out *out = NULL;
    while (given < TURN_BYTES && (out = first_out(ranks, r))) {
        const bool in_head = link->sent < sizeof out->frame;
        const char *const data = out->request ? out->request->at : out->text;
        const char *const from = in_head ? (const char *)&out->frame + link->sent
                                         : data + (link->sent - sizeof out->frame);
        const uint64_t wanted = in_head ? sizeof out->frame - link->sent
                                        : out->frame.bytes + sizeof out->frame - link->sent;
        const ssize_t count = wanted == 0
                                ? 0
                                : send(link->socket, from, wanted,
                                       MSG_DONTWAIT | MSG_NOSIGNAL | (in_head && out->frame.bytes > 0 ? MSG_MORE : 0));
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (count < 0) {
            read_link(ranks, r); /* what it said before it ended */
            if (link->socket >= 0) lose(ranks, r);
            return;
        }
        given += (uint64_t)count;
        link->sent += (uint64_t)count;
        link->spoke_s = clock_s();
        if (link->sent == sizeof out->frame + out->frame.bytes) drop_first(ranks, r);
    }
}

/* --- the thread ---------------------------------------------------------------------------------- */

/* Says that this rank is alive, and looks whether the other one is. */
static void keep_up(struct ranks *ranks, uint32_t r)
{
    struct ranks_link *const link = &ranks->links[r];
    const double now_s = clock_s();
    pthread_mutex_lock(&ranks->lock);
    const bool open = link->socket >= 0 && !link->left;
    if (open && !link->out && now_s - link->spoke_s > ALIVE_S) {
        link->spoke_s = now_s;
        ranks_queue(ranks, r, (struct rank_frame){.kind = RANK_FRAME_ALIVE}, NULL, NULL);
    }
    pthread_mutex_unlock(&ranks->lock);
    if (!open || now_s - link->heard_s < SILENCE_SHARE * ranks->patience_s) return;
    char text[80];
    snprintf(text, sizeof text, "has not answered for %.3g s", now_s - link->heard_s);
    fail(ranks, r, text);
}

/* Hands over messages; the list changes only on this thread. */
static void hand_over(struct ranks *ranks)
{
    pthread_mutex_lock(&ranks->lock);
    while (ranks->hear && ranks->held) {
        struct ranks_told *const told = ranks->held;
        ranks->held = told->next;
        if (!ranks->held) ranks->held_end = &ranks->held;
        pthread_mutex_unlock(&ranks->lock);
        ranks->hear(ranks->context, told->from, told->text, told->bytes);
        free(told);
        pthread_mutex_lock(&ranks->lock);
    }
    pthread_mutex_unlock(&ranks->lock);
}

static void *serve(void *pointer)
{
    struct ranks *const ranks = pointer;
    struct pollfd polled[RANKS_MAX + 1];
    for (;;) {
        pthread_mutex_lock(&ranks->lock);
        const bool quit = ranks->quit;
        for (uint32_t r = 0; r < ranks->count; r++) {
            const struct ranks_link *const link = &ranks->links[r]; /* poll() passes over -1 */
            polled[r] = (struct pollfd){.fd = link->socket, .events = (short)(POLLIN | (link->out ? POLLOUT : 0))};
        }
        pthread_mutex_unlock(&ranks->lock);
        if (quit) return NULL;
        polled[ranks->count] = (struct pollfd){.fd = ranks->wake, .events = POLLIN};
        if (poll(polled, ranks->count + 1, POLL_MS) < 0 && errno != EINTR) continue;
        uint64_t woken;
        if (polled[ranks->count].revents) (void)!read(ranks->wake, &woken, sizeof woken);
        for (uint32_t r = 0; r < ranks->count; r++) {
            if (r == ranks->own) continue;
            if (polled[r].fd >= 0 && (polled[r].revents & (POLLIN | POLLHUP | POLLERR))) read_link(ranks, r);
            write_link(ranks, r);
            keep_up(ranks, r);
        }
        hand_over(ranks);
    }
}

enum status ranks_start(struct ranks *ranks, struct error *err)
{
    sigset_t all, before;
    for (uint32_t r = 0; r < ranks->count; r++) ranks->links[r].heard_s = ranks->links[r].spoke_s = clock_s();
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&ranks->thread, NULL, serve, ranks);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_set(err, STATUS_DEVICE, "cannot start a thread for messages between ranks: %s", strerror(failed));
    ranks->started = true;
    pthread_setname_np(ranks->thread, "ranks");
    return STATUS_OK;
}
