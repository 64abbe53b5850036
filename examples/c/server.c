/* A small HTTP/1.1 server for the plans beside it: one thread, epoll, keep-alive.
 *
 *   server ADDRESS:PORT [--table MB [--map]] [--log FILE [--sync]] [--listeners hash|reversed|ordered]
 *
 *   /report   escapes a text for JSON, and shrinks a grey picture: work for a compiler
 *   /look     looks up 256 keys all over a table in memory: work for the memory
 *   /         a short text
 *
 * --map takes the table from the kernel, past malloc. --log writes a line per reply, --sync each to the disk.
 * --listeners starts a worker on each CPU, with a listener of its own: the kernel spreads connections by hash, or a program
 * gives them to the listener with the number of the CPU that received them, and the worker on the first CPU listens last, or
 * each in its place.
 * SIGTERM ends it by returning from main, so that a profile for the compiler is written. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONNECTIONS = 4096, REQUEST_BYTES = 8192, REPLY_BYTES = 16384, LOOKS = 256 };
enum { SIDE = 64, TEXT_BYTES = 1500 };
enum order { SHARED, HASH, REVERSED, ORDERED };

static volatile sig_atomic_t ended;
static uint64_t *table, table_rows, key;
static unsigned char picture[SIDE * SIDE], small[SIDE * SIDE / 4];
static char text[TEXT_BYTES];
static int log_file = -1;

struct connection {
    size_t held;
    char bytes[REQUEST_BYTES];
};
static struct connection *connections[CONNECTIONS];

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void end(int number) {
    (void)number;
    ended = 1;
}

/* A permutation of 64 bits (splitmix64): the place of a key in the table, and what is kept there. */
static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void make_table(size_t megabytes, int mapped) {
    size_t bytes = megabytes << 20;
    table_rows = bytes / sizeof *table;
    table = mapped ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : malloc(bytes);
    if (!table || table == MAP_FAILED)
        die("a table");
    for (uint64_t row = 0; row < table_rows; row++)
        table[row] = mixed(row);
}

/* Each look depends on the one before, as the steps through an index do. The keys go on from request to request. */
static int look(char *out) {
    int found = 0;
    for (int i = 0; i < LOOKS && table_rows; i++) {
        uint64_t row = key % table_rows, is = table[row];
        found += is == mixed(row);
        key = mixed(is + (uint64_t)i + key);
    }
    return sprintf(out, "found %d of %d\n", found, LOOKS);
}

static void make_material(void) {
    for (int i = 0; i < SIDE * SIDE; i++)
        picture[i] = (unsigned char)mixed((uint64_t)i);
    for (int i = 0; i < TEXT_BYTES - 1; i++) {
        unsigned at = (unsigned)(mixed((uint64_t)i) % 100);
        text[i] = at < 2 ? '"' : at < 3 ? '\n' : (char)('a' + at % 26);
    }
}

static int escaped(char *out, const char *from) {
    char *to = out;
    for (; *from; from++) {
        switch (*from) {
        case '"': *to++ = '\\', *to++ = '"'; break;
        case '\\': *to++ = '\\', *to++ = '\\'; break;
        case '\n': *to++ = '\\', *to++ = 'n'; break;
        default:
            if ((unsigned char)*from < 0x20)
                to += sprintf(to, "\\u%04x", *from);
            else
                *to++ = *from;
        }
    }
    return (int)(to - out);
}

static unsigned shrunk(void) {
    unsigned sum = 0;
    for (int y = 0; y < SIDE / 2; y++)
        for (int x = 0; x < SIDE / 2; x++) {
            const unsigned char *at = picture + 2 * y * SIDE + 2 * x;
            small[y * SIDE / 2 + x] = (unsigned char)((at[0] + at[1] + at[SIDE] + at[SIDE + 1] + 2) / 4);
        }
    for (int i = 0; i < SIDE * SIDE / 4; i++) {
        int off = small[i] - 128;
        sum += (unsigned)(off * off);
    }
    return sum;
}

static int report(char *out) {
    int length = sprintf(out, "{\"text\":\"");
    length += escaped(out + length, text);
    return length + sprintf(out + length, "\",\"contrast\":%u}\n", shrunk());
}

static int answer(const char *request, char *out) {
    static char body[REPLY_BYTES / 2];
    int length;
    if (!strncmp(request, "GET /report ", 12))
        length = report(body);
    else if (!strncmp(request, "GET /look ", 10))
        length = look(body);
    else
        length = sprintf(body, "a small server\n");
    int head = sprintf(out, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", length);
    memcpy(out + head, body, (size_t)length);
    if (log_file >= 0) {
        char line[64];
        int bytes = snprintf(line, sizeof line, "%.*s %d\n", (int)strcspn(request, "\r"), request, length);
        if (bytes > 0 && write(log_file, line, (size_t)bytes < sizeof line ? (size_t)bytes : sizeof line - 1) < 0)
            die("the log");
    }
    return head + length;
}

static void gone(int fd) {
    free(connections[fd]);
    connections[fd] = NULL;
    close(fd);
}

/* Whole requests without a body are answered; of a client that does not read its replies nothing is kept. */
static void serve(int fd) {
    static char out[REPLY_BYTES];
    struct connection *c = connections[fd];
    ssize_t got = recv(fd, c->bytes + c->held, REQUEST_BYTES - 1 - c->held, 0);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            gone(fd);
        return;
    }
    c->held += (size_t)got;
    c->bytes[c->held] = 0;
    char *from = c->bytes, *over;
    while ((over = strstr(from, "\r\n\r\n"))) {
        int length = answer(from, out);
        if (send(fd, out, (size_t)length, MSG_NOSIGNAL) != length)
            return gone(fd);
        from = over + 4;
    }
    c->held -= (size_t)(from - c->bytes);
    memmove(c->bytes, from, c->held);
    if (c->held == REQUEST_BYTES - 1)
        gone(fd);
}

/* The listener with the number of the CPU that received the connection, modulo how many there are. */
static void steer(int fd, unsigned listeners) {
    struct sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, (unsigned)(SKF_AD_OFF + SKF_AD_CPU)},
        {BPF_ALU | BPF_MOD | BPF_K, 0, 0, listeners},
        {BPF_RET | BPF_A, 0, 0, 0},
    };
    struct sock_fprog program = {.len = 3, .filter = code};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program))
        die("a program for the listeners");
}

static int listener(const char *where, unsigned listeners, enum order order) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET};
    char address[16] = "";
    unsigned short port = 0;
    if (sscanf(where, "%15[0-9.]:%hu", address, &port) != 2 || !inet_aton(address, &at.sin_addr))
        exit(fprintf(stderr, "%s is no ADDRESS:PORT\n", where) > 0 ? 2 : 1);
    at.sin_port = htons(port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (order != SHARED)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 1024))
        die("listen");
    if (order == REVERSED || order == ORDERED)
        steer(fd, listeners);
    return fd;
}

/* The CPU whose worker has this place: where the program looks for it. */
static int cpu_of(const cpu_set_t *allowed, unsigned place, unsigned all) {
    for (unsigned cpu = place; cpu < CPU_SETSIZE; cpu += all)
        if (CPU_ISSET(cpu, allowed))
            return (int)cpu;
    exit(fprintf(stderr, "no CPU that it may use has place %u of %u\n", place, all) > 0 ? 2 : 1);
}

/* Returns in each worker, with its listener. The kernel numbers listeners in the order in which they begin to listen. All do
 * before the first worker runs, or the first would have every connection that comes meanwhile. The last takes the number of one
 * that is closed: where one worker ends all do, and nobody is left when the parent has ended and another server may begin. */
static int in_workers(const char *where, enum order order) {
    static int listeners[CPU_SETSIZE];
    static pid_t workers[CPU_SETSIZE];
    cpu_set_t allowed, own;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        die("CPUs");
    unsigned all = (unsigned)CPU_COUNT(&allowed), mine;
    for (unsigned at = 0; at < all; at++)
        listeners[at] = listener(where, all, order);
    pid_t pid = 1;
    for (mine = 0; mine < all && pid > 0; mine += pid > 0)
        if ((pid = workers[mine] = fork()) < 0)
            die("fork");
    for (unsigned at = 0; at < all; at++)
        if (pid > 0 || at != mine)
            close(listeners[at]);
    if (pid > 0) {
        wait(NULL);
        for (unsigned at = 0; at < all; at++)
            kill(workers[at], SIGTERM);
        while (wait(NULL) > 0)
            ;
        exit(ended ? 0 : 1);
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    CPU_ZERO(&own);
    CPU_SET((size_t)cpu_of(&allowed, order == REVERSED ? all - 1 - mine : mine, all), &own);
    if (sched_setaffinity(0, sizeof own, &own))
        die("a CPU for a worker");
    return listeners[mine];
}

static void taken(int loop, int from) {
    int fd = accept4(from, NULL, NULL, SOCK_NONBLOCK), one = 1;
    if (fd < 0)
        return;
    struct epoll_event wants = {.events = EPOLLIN, .data.fd = fd};
    if (fd >= CONNECTIONS || !(connections[fd] = calloc(1, sizeof **connections))) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &wants);
}

int main(int count, char **words) {
    size_t megabytes = 0;
    int mapped = 0, flags = O_WRONLY | O_CREAT | O_APPEND;
    const char *log_name = NULL;
    static const char *const orders[] = {"", "hash", "reversed", "ordered"};
    enum order order = SHARED;
    for (int i = 2; i < count; i++) {
        if (!strcmp(words[i], "--table") && i + 1 < count)
            megabytes = strtoul(words[++i], NULL, 10);
        else if (!strcmp(words[i], "--map"))
            mapped = 1;
        else if (!strcmp(words[i], "--log") && i + 1 < count)
            log_name = words[++i];
        else if (!strcmp(words[i], "--sync"))
            flags |= O_DSYNC;
        else if (!strcmp(words[i], "--listeners") && i + 1 < count) {
            for (i++, order = ORDERED; order != SHARED && strcmp(words[i], orders[order]); order--)
                ;
            if (order == SHARED)
                return fprintf(stderr, "no such order: %s\n", words[i]), 2;
        } else
            return fprintf(stderr, "no such word: %s\n", words[i]), 2;
    }
    if (count < 2)
        return fprintf(stderr, "usage: server ADDRESS:PORT [--table MB [--map]] [--log FILE [--sync]] "
                               "[--listeners hash|reversed|ordered]\n"), 2;
    struct sigaction on_end = {.sa_handler = end};
    sigaction(SIGTERM, &on_end, NULL);
    if (log_name && (log_file = open(log_name, flags, 0644)) < 0)
        die(log_name);
    make_material();
    if (megabytes)
        make_table(megabytes, mapped);
    int from = order == SHARED ? listener(words[1], 1, order) : in_workers(words[1], order);
    int loop = epoll_create1(0);
    struct epoll_event wants = {.events = EPOLLIN, .data.fd = from}, came[64];
    epoll_ctl(loop, EPOLL_CTL_ADD, from, &wants);
    while (!ended) {
        int ready = epoll_wait(loop, came, 64, -1);
        for (int i = 0; i < ready; i++)
            if (came[i].data.fd == from)
                taken(loop, from);
            else
                serve(came[i].data.fd);
    }
    return 0;
}
