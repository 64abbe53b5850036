/* Work of known shares under experiment: `program KIND FILE` does what KIND says until it is killed.
 *
 * Each function that is tried lies in a section of its own, whose borders the program tells. What it has done stands in
 * the file that it is given, for whoever maps it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OWN(name) __attribute__((section("own_" #name), noinline)) void name
#define BORDERS(name)                                                                                                  \
    extern char __start_own_##name[], __stop_own_##name[];                                                             \
    printf(#name " %p %p\n", (void *)__start_own_##name, (void *)__stop_own_##name)
/* Five bytes that a probe is cheap on. */
#define NOP __asm__ volatile(".byte 0x0f,0x1f,0x44,0,0")

static volatile long *done;
static long wait_us, work_n;
static pthread_barrier_t both;

/* Each step waits for the one before it, four or five cycles: a neighbour on the same core takes none of them, where it
 * would take a third of the speed of steps that the core could do side by side. */
static inline __attribute__((always_inline)) void burn(long n) {
    unsigned long step = n;
    for (long i = 0; i < n; i += 4) {
        step = step * 6364136223846793005UL + 1442695040888963407UL;
        __asm__ volatile("" : "+r"(step));
    }
}

OWN(f60)(long n) {
    NOP;
    burn(6 * n);
}

OWN(f30)(long n) {
    burn(3 * n);
}

OWN(f10)(long n) {
    burn(n);
}

OWN(begin)(void) {
    NOP;
}

OWN(progress)(void) {
    NOP;
    (*done)++;
}

/* A million times a second, and nothing in it. */
OWN(tiny)(void) {
    NOP;
}

static void nap(long us) {
    struct timespec time = {0, us * 1000};
    nanosleep(&time, 0);
}

static void unit(void) {
    begin();
    f60(30000);
    f30(30000);
    f10(30000);
    progress();
}

static void *in_f60(void *unused) {
    for (;;)
        f60(1000);
    return unused;
}

/* The thread that counts has a name: what it does for its own time is known, whoever has the other's CPU. */
static void *in_f30(void *unused) {
    pthread_setname_np(pthread_self(), "counts");
    for (;;) {
        f30(10000);
        progress();
    }
    return unused;
}

static void wait_for_time(void) {
    static int timer = -1;
    struct itimerspec time = {{0, 0}, {0, wait_us * 1000}};
    long n;
    if (timer < 0)
        timer = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(timer, 0, &time, 0);
    if (read(timer, &n, 8) != 8)
        _exit(1);
}

static void *waits(void *unused) {
    for (;;) {
        wait_for_time();
        pthread_barrier_wait(&both);
        progress();
    }
    return unused;
}

static void *works(void *unused) {
    for (;;) {
        f30(work_n);
        pthread_barrier_wait(&both);
    }
    return unused;
}

static void *sleeper(void *unused) {
    for (;;)
        nap(10000);
    return unused;
}

static void start(void *(*life)(void *)) {
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_create(&thread, &small, life, 0);
}

/* Each on a CPU of its own: the kernel may leave two that have to run on the same one, and the other to a neighbour, for
 * longer than a window lasts. */
static void start_apart(void *(*lives[])(void *), int count) {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    for (int i = 0, cpu = -1; i < count; i++) {
        do
            cpu = (cpu + 1) % CPU_SETSIZE;
        while (!CPU_ISSET(cpu, &all));
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        start(lives[i]);
    }
    sched_setaffinity(0, sizeof all, &all);
}

static int write_on(void) {
    int null = open("/dev/null", O_WRONLY);
    for (;;) {
        f30(30000);
        if (write(null, "x", 1) != 1)
            return 1;
    }
}

static int sync_on(int file) {
    for (int i = 0;; i++) {
        f10(100000);
        if (pwrite(file, "x", 1, 2048 + i % 64) != 1 || fsync(file))
            return 1;
        progress();
    }
}

static void units(void) {
    for (;;)
        unit();
}

/* Counts what was done in hundreds of calls. */
static void hot(void) {
    for (;;) {
        for (int i = 0; i < 100; i++) {
            burn(1500);
            tiny();
        }
        (*done)++;
    }
}

/* Six of each ten milliseconds, by the clock: what is shorter only waits longer. */
static void frames(void) {
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (;;) {
        struct timespec begun, now;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
        do {
            f60(5000);
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        } while ((now.tv_sec - begun.tv_sec) * 1000000000L + now.tv_nsec - begun.tv_nsec < 6000000);
        progress();
        next.tv_nsec += 10000000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
    }
}

/* Goes on when the test has written to the file that counts what is done: it is being watched by then. */
static void told(void) {
    while (!*done)
        nap(1000);
}

int main(int count, char **words) {
    const char *kind = words[1];
    int file = open(words[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096))
        return 1;
    done = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    BORDERS(f60);
    BORDERS(f30);
    BORDERS(f10);
    BORDERS(tiny);
    BORDERS(begin);
    BORDERS(progress);
    printf("\n");
    fflush(stdout);
    if (!strcmp(kind, "three"))
        units();
    if (!strcmp(kind, "hot"))
        hot();
    if (!strcmp(kind, "frames"))
        frames();
    if (!strcmp(kind, "two")) {
        start_apart((void *(*[])(void *)){in_f60, in_f30}, 2);
    }
    if (!strcmp(kind, "writer"))
        return write_on();
    if (!strcmp(kind, "syncer"))
        return sync_on(file);
    if (!strcmp(kind, "ends")) {
        told();
        return 0;
    }
    if (!strcmp(kind, "becomes")) {
        told();
        execlp("sleep", "sleep", "20", (char *)0);
    }
    if (!strcmp(kind, "family") && !fork())
        units();
    if (!strcmp(kind, "late")) {
        told();
        if (!fork())
            units();
    }
    if (!strcmp(kind, "spawns"))
        for (int i = 0;; i++) {
            if (i % 20 == 0 && !fork()) {
                execlp("true", "true", (char *)0);
                _exit(127);
            }
            unit();
            while (waitpid(-1, 0, WNOHANG) > 0)
                ;
        }
    if (!strcmp(kind, "crowd")) {
        for (int i = 0; i < 1000; i++)
            start(sleeper);
        units();
    }
    if (!strcmp(kind, "waits_long")) {
        wait_us = 6000;
        work_n = 300000;
    }
    if (!strcmp(kind, "works_long")) {
        wait_us = 2000;
        work_n = 4000000;
    }
    if (wait_us) {
        pthread_barrier_init(&both, 0, 2);
        start(waits);
        start(works);
    }
    pause();
    return count;
}
