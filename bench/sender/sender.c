// The ways in which a file can leave, each in the smallest loop that answers: what the kernel takes for each of them.
//
//   sender WAY PORT HEAD FILE
//
// Every request, whatever it is, is answered with the bytes of HEAD and those of FILE. WAY is
//   read      read(2) into a buffer of 128 KiB, send(2) from there
//   memory    writev(2) from a copy in memory, head and body together
//   sendfile  sendfile(2) from the page cache
//   splice    splice(2) from the page cache into a pipe of a megabyte, and from there
//   zerocopy  send(2) with MSG_ZEROCOPY from a copy in memory; what the kernel gives back is taken from the error queue
// One thread, epoll, no more than 1,024 descriptors.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CONNECTIONS = 1024, PIECE = 128 << 10, PIPE = 1 << 20 };

static struct conn {
    size_t sent;    // of the answer that is under way
    size_t piped;   // bytes that wait in the pipe
    int pipe[2];
    int is_under_way, is_waiting;
} conns[CONNECTIONS];

static char *head, *body, piece[PIECE];
static size_t head_bytes, body_bytes;
static int file;
static ssize_t (*way)(int fd, struct conn *conn);

static void die(const char *what) {
    perror(what);
    exit(1);
}

static size_t load(const char *name, int *fd, char **bytes) {
    struct stat stat;
    *fd = open(name, O_RDONLY);
    if (*fd < 0 || fstat(*fd, &stat)) die(name);
    size_t size = stat.st_size;
    *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*bytes == MAP_FAILED) die("memory");
    madvise(*bytes, size, MADV_HUGEPAGE);
    for (size_t at = 0; at < size;) {
        ssize_t got = pread(*fd, *bytes + at, size - at, at);
        if (got <= 0) die(name);
        at += got;
    }
    return size;
}

// How far into the body an answer is.
static size_t at(const struct conn *conn) {
    return conn->sent - head_bytes;
}

static ssize_t by_read(int fd, struct conn *conn) {
    ssize_t got = pread(file, piece, PIECE, at(conn));
    return got > 0 ? send(fd, piece, got, MSG_NOSIGNAL) : got;
}

static ssize_t by_memory(int fd, struct conn *conn) {
    struct iovec both[2] = {{head, head_bytes}, {body, body_bytes}};
    if (conn->sent < head_bytes) {
        both[0].iov_base = head + conn->sent, both[0].iov_len -= conn->sent;
    } else {
        both[0].iov_len = 0, both[1].iov_base = body + at(conn), both[1].iov_len -= at(conn);
    }
    return writev(fd, both, 2);
}

static ssize_t by_sendfile(int fd, struct conn *conn) {
    off_t from = at(conn);
    return sendfile(fd, file, &from, body_bytes - from);
}

static ssize_t by_splice(int fd, struct conn *conn) {
    if (!conn->piped) {
        off_t from = at(conn);
        ssize_t got = splice(file, &from, conn->pipe[1], NULL, PIPE, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (got <= 0) return got;
        conn->piped = got;
    }
    size_t is_more = at(conn) + conn->piped < body_bytes ? SPLICE_F_MORE : 0;
    ssize_t gone = splice(conn->pipe[0], NULL, fd, NULL, conn->piped, SPLICE_F_MOVE | SPLICE_F_NONBLOCK | is_more);
    if (gone > 0) conn->piped -= gone;
    return gone;
}

// Takes what the kernel says of pieces that it needs no longer.
static void give_back(int fd) {
    char control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    while (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) message.msg_controllen = sizeof control;
}

static ssize_t by_zerocopy(int fd, struct conn *conn) {
    ssize_t gone = send(fd, body + at(conn), body_bytes - at(conn), MSG_NOSIGNAL | MSG_ZEROCOPY);
    give_back(fd);
    // No room to note more pieces: a piece is copied.
    if (gone < 0 && errno == ENOBUFS) {
        size_t left = body_bytes - at(conn);
        return send(fd, body + at(conn), left < PIECE ? left : PIECE, MSG_NOSIGNAL);
    }
    return gone;
}

static void watch(int epoll, int fd, struct conn *conn, int is_waiting) {
    if (conn->is_waiting == is_waiting) return;
    conn->is_waiting = is_waiting;
    struct epoll_event event = {.events = is_waiting ? EPOLLOUT : EPOLLIN, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

static void end(int fd) {
    if (way == by_splice) close(conns[fd].pipe[0]), close(conns[fd].pipe[1]);
    memset(&conns[fd], 0, sizeof conns[fd]);
    close(fd);
}

static void go_on(int epoll, int fd) {
    struct conn *conn = &conns[fd];
    while (conn->is_under_way) {
        int is_head = conn->sent < head_bytes && way != by_memory;
        ssize_t gone = is_head ? send(fd, head + conn->sent, head_bytes - conn->sent, MSG_NOSIGNAL | MSG_MORE)
                               : way(fd, conn);
        if (gone > 0) conn->sent += gone;
        else if (gone < 0 && errno == EAGAIN) return watch(epoll, fd, conn, 1);
        else return end(fd);
        conn->is_under_way = conn->sent < head_bytes + body_bytes;
    }
    watch(epoll, fd, conn, 0);
}

static void ask(int epoll, int fd) {
    static char request[64 << 10];
    ssize_t got = recv(fd, request, sizeof request, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return end(fd);
    conns[fd].is_under_way = 1, conns[fd].sent = 0;
    go_on(epoll, fd);
}

static void admit(int epoll, int fd) {
    int on = 1;
    if (fd >= CONNECTIONS) { close(fd); return; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (way == by_zerocopy && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on)) die("SO_ZEROCOPY");
    if (way == by_splice) {
        if (pipe2(conns[fd].pipe, O_NONBLOCK)) die("pipe");
        fcntl(conns[fd].pipe[1], F_SETPIPE_SZ, PIPE);
    }
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int listens(int port) {
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&addr, sizeof addr) || listen(fd, 1024)) die("listen");
    return fd;
}

int main(int count, char **words) {
    static const struct { const char *name; ssize_t (*way)(int, struct conn *); } ways[] = {
        {"read", by_read}, {"memory", by_memory}, {"sendfile", by_sendfile}, {"splice", by_splice}, {"zerocopy", by_zerocopy},
    };
    for (size_t k = 0; count == 5 && k < sizeof ways / sizeof *ways; k++)
        if (!strcmp(words[1], ways[k].name)) way = ways[k].way;
    if (!way) return fprintf(stderr, "usage: sender read|memory|sendfile|splice|zerocopy PORT HEAD FILE\n"), 2;
    signal(SIGPIPE, SIG_IGN);
    int head_file;
    head_bytes = load(words[3], &head_file, &head);
    body_bytes = load(words[4], &file, &body);
    int listener = listens(atoi(words[2])), epoll = epoll_create1(0);
    struct epoll_event events[64] = {{.events = EPOLLIN, .data.fd = listener}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, events);
    for (;;) {
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int k = 0; k < ready; k++) {
            int fd = events[k].data.fd;
            if (fd == listener) {
                for (int conn; (conn = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) admit(epoll, conn);
                continue;
            }
            // EPOLLERR without more: only pieces that are given back.
            if (events[k].events & EPOLLERR) give_back(fd);
            if (conns[fd].is_under_way) go_on(epoll, fd);
            else if (events[k].events & (EPOLLIN | EPOLLHUP)) ask(epoll, fd);
        }
    }
}
