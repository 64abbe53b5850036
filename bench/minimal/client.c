// The least that a load generator can do: the yardstick of `dyno load`'s own cost.
//
// `client PORT PATH CONNECTIONS MILLISECONDS` keeps each connection busy with one GET at a time over 127.0.0.1: one recv
// and one send per request, level-triggered epoll registered once, no parsing (the first reply's length is every
// reply's), one clock read per turn. It prints one line of JSON: requests, and CPU microseconds per request with the
// connecting left out. `cargo xtask bench load` builds and runs it; nothing else uses it.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// What one epoll_wait brings at most; above the connections of a usual run nothing is gained.
#define EVENTS_MAX 256
// One reply fits: the bench's are 150 bytes.
#define BUFFER_BYTES 65536
#define CONNECTIONS_MAX 4096

static char request[1024];
static size_t request_bytes;

static void fail(const char *what) {
    fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
    exit(2);
}

static double cpu_us(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static int connected(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        fail("connect");
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        fail("TCP_NODELAY");
    return fd;
}

static void ask(int fd) {
    if (send(fd, request, request_bytes, MSG_NOSIGNAL) != (ssize_t)request_bytes)
        fail("send");
}

// A reply in pieces is counted when its last piece has come.
static size_t have[CONNECTIONS_MAX];

int main(int count, char **words) {
    static char buffer[BUFFER_BYTES];
    static int fds[CONNECTIONS_MAX];
    if (count != 5) {
        fprintf(stderr, "usage: client PORT PATH CONNECTIONS MILLISECONDS\n");
        return 2;
    }
    int port = atoi(words[1]), connections = atoi(words[3]);
    double duration_ms = atof(words[4]);
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", words[2], port);
    if (connections < 1 || connections > CONNECTIONS_MAX || length >= (int)sizeof request) {
        fprintf(stderr, "client: 1 to %d connections, a path below a kilobyte\n", CONNECTIONS_MAX);
        return 2;
    }
    request_bytes = length;

    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        fds[i] = connected(port);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) < 0)
            fail("epoll_ctl");
    }
    ask(fds[0]);
    ssize_t reply_bytes = recv(fds[0], buffer, sizeof buffer, 0);
    if (reply_bytes < 12 || memcmp(buffer, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "client: the answer is not a 200\n");
        return 2;
    }

    double cpu_before = cpu_us(), end_ms = now_ms() + duration_ms;
    unsigned long requests = 0;
    for (int i = 0; i < connections; i++)
        ask(fds[i]);
    while (now_ms() < end_ms) {
        struct epoll_event events[EVENTS_MAX];
        int ready = epoll_wait(epoll, events, EVENTS_MAX, 100);
        for (int i = 0; i < ready; i++) {
            unsigned at = events[i].data.u32;
            ssize_t got = recv(fds[at], buffer, sizeof buffer, 0);
            if (got <= 0)
                fail("recv");
            have[at] += got;
            if (have[at] < (size_t)reply_bytes)
                continue;
            have[at] = 0;
            requests++;
            ask(fds[at]);
        }
    }
    double used_us = cpu_us() - cpu_before;
    if (requests == 0) {
        fprintf(stderr, "client: no request was answered\n");
        return 2;
    }
    printf("{\"requests\":%lu,\"cpu_us_per_request\":%.4f}\n", requests, used_us / requests);
    return 0;
}
