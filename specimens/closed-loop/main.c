/* A server of one thread, asked by clients that wait for their answer before they ask again.
 *
 * defect:   the page is put together anew for every request, which takes most of the time.
 * repaired: half of it is kept ready. */
#define _GNU_SOURCE /* accept4 */
#include "http.h"
#include <sys/epoll.h>

#define EVENTS_MAX 64

static long render_steps, account_steps;

static __attribute__((noinline)) void render_page(void) {
    run_steps(render_steps);
}

static __attribute__((noinline)) void account_request(void) {
    run_steps(account_steps);
}

static void watch(int queue, int fd, void *what) {
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    event.data.ptr = what;
    if (epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event))
        run_fail("epoll_ctl");
}

static void take_in(int queue, int listener) {
    int on = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct http_conn *conn = calloc(1, sizeof *conn);
    conn->fd = fd;
    watch(queue, fd, conn);
}

static int answer(struct http_conn *conn) {
    int whole = http_read(conn);
    if (whole > 0) {
        render_page();
        account_request();
        progress();
        whole = http_reply(conn) ? -1 : 1;
    }
    if (whole < 0) {
        close(conn->fd);
        free(conn);
    }
    return whole > 0;
}

int main(int count, char **words) {
    struct epoll_event events[EVENTS_MAX];
    long long done = 0;
    run_begin(count, words);
    render_steps = run_less("render_page", (run_repaired ? 40 : 80) * RUN_STEPS_PER_US);
    account_steps = run_less("account_request", 40 * RUN_STEPS_PER_US);
    int listener = http_listen(0), queue = epoll_create1(EPOLL_CLOEXEC);
    watch(queue, listener, NULL);
    run_start();
    while (!run_over) {
        int found = epoll_wait(queue, events, EVENTS_MAX, -1);
        for (int i = 0; i < found; i++) {
            if (events[i].data.ptr)
                done += answer(events[i].data.ptr);
            else
                take_in(queue, listener);
        }
    }
    return run_end(done);
}
