/* Waits with known answers: `program KIND FILE` waits as KIND says until it is killed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ALONE __attribute__((noinline))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2];
static int event, taken;

static void nap(long us) {
    struct timespec time = {0, us * 1000};
    nanosleep(&time, 0);
}

/* Keeps the mutex for 5 of 6 ms. */
ALONE void hold(void) {
    pthread_mutex_lock(&mutex);
    nap(5000);
    pthread_mutex_unlock(&mutex);
    nap(1000);
}

/* Asks for it every now and then. */
ALONE void ask(void) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    nap(200);
}

ALONE void take(void) {
    char c;
    if (read(pipes[0], &c, 1) != 1)
        _exit(1);
}

static void give(void) {
    nap(3000);
    if (write(pipes[1], "x", 1) != 1)
        _exit(1);
}

/* One place that waits for two things in turn; each is given when the one before was taken, so that it is waited for. */
static void choose(void) {
    static unsigned turn;
    char value[8];
    if (read(turn++ & 1 ? pipes[0] : event, value, sizeof value) < 1 || eventfd_write(taken, 1))
        _exit(1);
}

static void feed(void) {
    static unsigned turn;
    eventfd_t value;
    nap(100);
    if (turn++ & 1 ? write(pipes[1], "x", 1) != 1 : eventfd_write(event, 1))
        _exit(1);
    if (eventfd_read(taken, &value))
        _exit(1);
}

static void spin(void) {
    __asm__ volatile("");
}

/* A thread with its name that does one thing for ever. */
#define LIFE(name, does)                                                                                               \
    static void *name(void *unused) {                                                                                  \
        pthread_setname_np(pthread_self(), #name);                                                                     \
        for (;;)                                                                                                       \
            does();                                                                                                    \
        return unused;                                                                                                 \
    }

LIFE(holder, hold)
LIFE(chooser, choose)
LIFE(feeder, feed)
LIFE(waiter, ask)
LIFE(taker, take)
LIFE(giver, give)
LIFE(spinner, spin)

static void start(void *(*life)(void *), char *word) {
    pthread_t thread;
    pthread_create(&thread, 0, life, word);
}

/* Lives for a moment in which it maps and unmaps: the ends of the others wait for the lock of the address space. */
static void *moment(void *unused) {
    for (int turn = 0; turn < 20; turn++) {
        long bytes = 1 << 18;
        void *memory = mmap(0, bytes, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        munmap(memory, bytes);
    }
    return unused;
}

static void churn(void) {
    pthread_t many[32];
    for (int at = 0; at < 32; at++)
        pthread_create(&many[at], 0, moment, 0);
    for (int at = 0; at < 32; at++)
        pthread_join(many[at], 0);
}

/* A thread that is not the leader and runs this program anew, a while after it finds FILE: it takes the leader's number. */
static void *successor(void *file) {
    while (access(file, F_OK))
        nap(1000);
    nap(300000);
    execl("/proc/self/exe", "program", "nap", (char *)0);
    return file;
}

static void stay_on_one_cpu(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static int flush_on(const char *name) {
    int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    char page[4096] = {0};
    for (int at = 0;; at++)
        if (pwrite(file, page, sizeof page, at % 64 * 4096L) < 0 || fsync(file))
            return 1;
}

int main(int count, char **words) {
    const char *kind = words[1];
    if (pipe(pipes))
        return 1;
    if (!strcmp(kind, "mutex")) {
        start(holder, 0);
        start(waiter, 0);
    }
    if (!strcmp(kind, "choice")) {
        event = eventfd(0, 0);
        taken = eventfd(0, 0);
        start(chooser, 0);
        start(feeder, 0);
    }
    if (!strcmp(kind, "pipe")) {
        start(taker, 0);
        start(giver, 0);
    }
    if (!strcmp(kind, "spin")) {
        stay_on_one_cpu();
        start(spinner, 0);
        start(spinner, 0);
    }
    if (!strcmp(kind, "flush"))
        return flush_on(words[2]);
    if (!strcmp(kind, "churn"))
        for (;;)
            churn();
    if (!strcmp(kind, "exec"))
        start(successor, words[2]);
    if (!strcmp(kind, "nap"))
        for (;;)
            nap(5000);
    pause();
    return count;
}
