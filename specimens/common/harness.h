/* What every C and C++ specimen shares: which side runs, for how long, and the line of figures at its end.
 *
 *     program defect|repaired [--for SECONDS] [--less PART=PERCENT]...
 *
 * --less really shortens a part of the work, where a specimen has parts. It prints "ready" when its preparations are over, works until the time is up or SIGTERM or SIGINT comes, and prints
 *     {"units":N,"elapsed_ns":N,"cpu_ns":N,"notes":{}}
 * Nothing here is slow or clever: the specimen is in the other file. */
#ifndef HARNESS_H
#define HARNESS_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* More threads than a specimen needs on any machine it is run on. */
#define RUN_THREADS_MAX 256

/* More parts than a specimen has. */
#define RUN_PARTS_MAX 8
/* What a microsecond holds of them, about: the multiplication's latency and the addition's, at some 2.8 GHz. */
#define RUN_STEPS_PER_US 500

static int run_repaired;
static const char *run_shortened[RUN_PARTS_MAX];
static int run_shortened_count;
static double run_seconds;
static volatile sig_atomic_t run_over;
static long long run_start_ns, run_start_cpu_ns;
static char run_notes[512];
static char run_place[64];

static inline long long run_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline void run_fail(const char *what) {
    perror(what);
    exit(1);
}

static inline void run_stop(int signal) {
    (void)signal;
    run_over = 1;
}

static inline void run_usage(void) {
    fprintf(stderr, "usage: program defect|repaired [--for SECONDS] [--less PART=PERCENT]...\n");
    exit(2);
}

/* Reads the command line and takes the signals that end a run. */
static inline void run_begin(int count, char **words) {
    if (count < 2 || count % 2 || (strcmp(words[1], "defect") && strcmp(words[1], "repaired")))
        run_usage();
    run_repaired = words[1][0] == 'r';
    for (int at = 2; at < count; at += 2) {
        if (!strcmp(words[at], "--for"))
            run_seconds = atof(words[at + 1]);
        else if (!strcmp(words[at], "--less") && run_shortened_count < RUN_PARTS_MAX)
            run_shortened[run_shortened_count++] = words[at + 1];
        else
            run_usage();
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = run_stop;
    action.sa_flags = SA_RESTART;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* What --less leaves of a part's steps. */
static inline long run_less(const char *part, long steps) {
    for (int at = 0; at < run_shortened_count; at++) {
        size_t length = strlen(part);
        if (!strncmp(run_shortened[at], part, length) && run_shortened[at][length] == '=')
            steps = (long)((double)steps * (1.0 - atof(run_shortened[at] + length + 1) / 100.0) + 0.5);
    }
    return steps;
}

/* Arithmetic that takes as long as it has steps: each needs the one before. */
static inline __attribute__((always_inline)) void run_steps(long steps) {
    unsigned long long value = (unsigned long long)steps;
    for (long i = 0; i < steps; i++) {
        value = value * 6364136223846793005ULL + 1442695040888963407ULL;
        __asm__ volatile("" : "+r"(value));
    }
}

/* A unit is done: where a causal profile counts. A probe on a nop is the cheapest. */
static __attribute__((noinline)) void progress(void) {
    __asm__ volatile("nop" : : : "memory");
}

/* Preparations are over: from here on units, time and CPU count. */
static inline void run_start(void) {
    printf("ready%s\n", run_place);
    fflush(stdout);
    struct itimerval time;
    memset(&time, 0, sizeof time);
    time.it_value.tv_sec = (long)run_seconds;
    time.it_value.tv_usec = (long)((run_seconds - (long)run_seconds) * 1e6);
    setitimer(ITIMER_REAL, &time, NULL);
    run_start_ns = run_clock(CLOCK_MONOTONIC);
    run_start_cpu_ns = run_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* One more figure for the last line. */
static inline void run_note(const char *name, long long value) {
    size_t used = strlen(run_notes);
    snprintf(run_notes + used, sizeof run_notes - used, "%s\"%s\":%lld", used ? "," : "", name, value);
}

/* The last line. */
static inline int run_end(long long units) {
    long long elapsed = run_clock(CLOCK_MONOTONIC) - run_start_ns;
    long long cpu = run_clock(CLOCK_PROCESS_CPUTIME_ID) - run_start_cpu_ns;
    printf("{\"units\":%lld,\"elapsed_ns\":%lld,\"cpu_ns\":%lld,\"notes\":{%s}}\n", units, elapsed, cpu, run_notes);
    return fflush(stdout) ? 1 : 0;
}

/* Waits for the end of the run; the signals must be blocked in every thread. */
static inline void run_wait(const sigset_t *before) {
    while (!run_over)
        sigsuspend(before);
}

static inline void run_block_signals(sigset_t *before) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

struct run_thread {
    pthread_t thread;
    int index;
    long long (*work)(int index);
    long long units;
};

static inline void *run_thread_main(void *argument) {
    struct run_thread *own = (struct run_thread *)argument;
    own->units = own->work(own->index);
    return NULL;
}

/* Starts the run and `count` threads, ends them when it is over, and returns the sum of their units. */
static inline long long run_threads(int count, long long (*work)(int index)) {
    static struct run_thread threads[RUN_THREADS_MAX];
    long long units = 0;
    sigset_t before;
    if (count > RUN_THREADS_MAX)
        count = RUN_THREADS_MAX;
    run_block_signals(&before);
    run_start();
    for (int i = 0; i < count; i++) {
        threads[i].index = i;
        threads[i].work = work;
        if (pthread_create(&threads[i].thread, NULL, run_thread_main, &threads[i]))
            run_fail("pthread_create");
    }
    run_wait(&before);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i].thread, NULL);
        units += threads[i].units;
    }
    return units;
}

/* Twice as many threads as CPUs, so that they get in each other's way on any machine. */
static inline int run_two_per_cpu(void) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return cpus * 2 < RUN_THREADS_MAX ? (int)cpus * 2 : RUN_THREADS_MAX;
}

/* The compiler must believe that somebody reads this. */
static inline void run_keep(const void *value) {
    __asm__ volatile("" : : "r"(value) : "memory");
}

/* Chance without a table: xorshift (Marsaglia, 2003); the state must not be zero. */
static inline unsigned long long run_random(unsigned long long *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
