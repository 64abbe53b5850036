/* The least HTTP/1.1 that a load generator can drive: GET without a body, keep-alive, one fixed answer.
 *
 * For specimens that are servers. It listens on 127.0.0.1 at a port that the kernel chooses, which "ready" tells. */
#ifndef HTTP_H
#define HTTP_H

#include "harness.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* A head of a generator has some hundred bytes. */
#define HTTP_HEAD_MAX 4096
/* More than a generator opens at once by default. */
#define HTTP_BACKLOG 1024

static const char http_answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";

struct http_conn {
    int fd;
    int used;
    char head[HTTP_HEAD_MAX];
};

static inline int http_port(int fd) {
    struct sockaddr_in place;
    socklen_t length = sizeof place;
    getsockname(fd, (struct sockaddr *)&place, &length);
    return ntohs(place.sin_port);
}

/* A socket that listens on 127.0.0.1, where others may listen too; `port` 0 lets the kernel choose. The place is told
 * behind "ready". */
static inline int http_listen(int port) {
    struct sockaddr_in place;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&place, 0, sizeof place);
    place.sin_family = AF_INET;
    place.sin_port = htons((unsigned short)port);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&place, sizeof place) || listen(fd, HTTP_BACKLOG))
        run_fail("listen");
    snprintf(run_place, sizeof run_place, " http://127.0.0.1:%d/", http_port(fd));
    return fd;
}

/* Reads what is there: 1 when a request is whole, 0 when more must come, -1 when the peer is gone. */
static inline int http_read(struct http_conn *conn) {
    ssize_t got = read(conn->fd, conn->head + conn->used, (size_t)(HTTP_HEAD_MAX - conn->used));
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    conn->used += (int)got;
    if (conn->used >= 4 && !memcmp(conn->head + conn->used - 4, "\r\n\r\n", 4))
        return 1;
    return conn->used == HTTP_HEAD_MAX ? -1 : 0;
}

/* Answers the request that was read. */
static inline int http_reply(struct http_conn *conn) {
    conn->used = 0;
    return write(conn->fd, http_answer, sizeof http_answer - 1) == (ssize_t)(sizeof http_answer - 1) ? 0 : -1;
}

#endif
