/* A server whose requests need 100 microseconds of CPU each.
 *
 * defect:   one event loop on one thread: it is at its limit while the other CPUs have nothing to do, and requests wait in
 *           their sockets.
 * repaired: a loop for each CPU, each with a listening socket of its own on the same port. */
#include "http.h"
#include <fcntl.h>
#include <sys/epoll.h>

#define EVENTS 64
#define REQUEST_STEPS 45000

static int listeners[RUN_THREADS_MAX];

static unsigned long long work_of_request(void) {
    unsigned long long state = 521288629ULL;
    for (int i = 0; i < REQUEST_STEPS; i++)
        run_random(&state);
    run_keep(&state);
    return state;
}

static void watch(int queue, int fd, void *conn) {
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    event.data.ptr = conn;
    if (epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event))
        run_fail("epoll_ctl");
}

static void take_conn(int queue, int listener) {
    int on = 1, fd = accept(listener, NULL, NULL);
    struct http_conn *conn = fd < 0 ? NULL : (struct http_conn *)calloc(1, sizeof *conn);
    if (!conn)
        return;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    conn->fd = fd;
    watch(queue, fd, conn);
}

/* One when a request was answered. */
static int serve_conn(struct http_conn *conn) {
    int state = http_read(conn);
    if (state == 0)
        return 0;
    if (state > 0) {
        work_of_request();
        if (http_reply(conn) == 0)
            return 1;
    }
    close(conn->fd);
    free(conn);
    return 0;
}

static long long event_loop(int index) {
    int listener = listeners[index], queue = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[EVENTS];
    long long replies = 0;
    fcntl(listener, F_SETFL, O_NONBLOCK);
    watch(queue, listener, NULL);
    while (!run_over) {
        /* It looks at the end of the run five times a second. */
        int ready = epoll_wait(queue, events, EVENTS, 200);
        for (int i = 0; i < ready && !run_over; i++) {
            if (events[i].data.ptr)
                replies += serve_conn((struct http_conn *)events[i].data.ptr);
            else
                take_conn(queue, listener);
        }
    }
    return replies;
}

int main(int count, char **words) {
    run_begin(count, words);
    int loops = run_repaired ? run_two_per_cpu() / 2 : 1;
    listeners[0] = http_listen(0);
    for (int i = 1; i < loops; i++)
        listeners[i] = http_listen(http_port(listeners[0]));
    return run_end(run_threads(loops, event_loop));
}
