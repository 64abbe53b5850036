/* A server that writes a line for every request.
 *
 * defect:   the line is on the disk before the answer leaves, and one lock stands around the write.
 * repaired: the line goes into a buffer; a thread beside writes and syncs the buffer twenty times a second. */
#include "http.h"
#include <fcntl.h>

#define CONNS_MAX 256
/* The log begins anew here, so that a long run does not fill a disk. */
#define LOG_BYTES_MAX (16 << 20)
/* What a kill loses at most, with what comes in 50 ms; lines beyond it are dropped and counted. */
#define BUFFER_BYTES_MAX (1 << 20)
#define FLUSH_US 50000

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd;
static long long log_at;
static char log_buffer[2][BUFFER_BYTES_MAX];
static int log_used, log_filling;
static long long lines_dropped, replies;

static void write_at_end(const char *bytes, int length) {
    if (log_at + length > LOG_BYTES_MAX)
        log_at = 0;
    if (pwrite(log_fd, bytes, (size_t)length, log_at) != length)
        run_fail("write the log");
    log_at += length;
}

static void log_now(const char *line, int length) {
    pthread_mutex_lock(&log_lock);
    write_at_end(line, length);
    fdatasync(log_fd);
    pthread_mutex_unlock(&log_lock);
}

static void log_later(const char *line, int length) {
    pthread_mutex_lock(&log_lock);
    if (log_used + length <= BUFFER_BYTES_MAX) {
        memcpy(log_buffer[log_filling] + log_used, line, (size_t)length);
        log_used += length;
    } else {
        lines_dropped++;
    }
    pthread_mutex_unlock(&log_lock);
}

static void flush_log(void) {
    pthread_mutex_lock(&log_lock);
    char *full = log_buffer[log_filling];
    int length = log_used;
    log_filling ^= 1;
    log_used = 0;
    pthread_mutex_unlock(&log_lock);
    if (length) {
        write_at_end(full, length);
        fdatasync(log_fd);
    }
}

static void *flusher_main(void *unused) {
    (void)unused;
    for (;;) {
        usleep(FLUSH_US);
        flush_log();
    }
    return NULL;
}

static void log_request(int fd, long long number) {
    char line[160];
    int length = snprintf(line, sizeof line, "127.0.0.1 conn=%d n=%lld \"GET / HTTP/1.1\" 200 3\n", fd, number);
    if (run_repaired)
        log_later(line, length);
    else
        log_now(line, length);
}

static void *conn_main(void *argument) {
    struct http_conn *conn = (struct http_conn *)argument;
    int state;
    while ((state = http_read(conn)) >= 0) {
        if (state == 0)
            continue;
        log_request(conn->fd, __atomic_add_fetch(&replies, 1, __ATOMIC_RELAXED));
        if (http_reply(conn) < 0)
            break;
    }
    close(conn->fd);
    free(conn);
    return NULL;
}

static void *accept_main(void *argument) {
    int listener = *(int *)argument;
    for (;;) {
        int fd = accept(listener, NULL, NULL), on = 1;
        pthread_t thread;
        struct http_conn *conn = (struct http_conn *)calloc(1, sizeof *conn);
        if (fd < 0 || !conn)
            run_fail("accept");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        conn->fd = fd;
        if (pthread_create(&thread, NULL, conn_main, conn))
            run_fail("pthread_create");
        pthread_detach(thread);
    }
    return NULL;
}

int main(int count, char **words) {
    sigset_t before;
    pthread_t acceptor, flusher;
    run_begin(count, words);
    int listener = http_listen(0);
    log_fd = open("access.log", O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    if (log_fd < 0)
        run_fail("open the log");
    run_block_signals(&before);
    run_start();
    pthread_create(&acceptor, NULL, accept_main, &listener);
    if (run_repaired)
        pthread_create(&flusher, NULL, flusher_main, NULL);
    run_wait(&before);
    run_note("lines_dropped", lines_dropped);
    return run_end(__atomic_load_n(&replies, __ATOMIC_RELAXED));
}
