/* Small programs on the C library, one for each word. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER, filled = PTHREAD_COND_INITIALIZER;
static sem_t one;
static int busy, waiting, out;
static long at_line;
static volatile long counts[64];

static long count(long rounds) {
    volatile long total = 1;
    for (long at = 0; at < rounds; at++) total = total * 31 + at;
    return total;
}

static void nap(long us) {
    struct timespec time = {0, us * 1000};
    nanosleep(&time, NULL);
}

/* A semaphore of one: a lock by another name. */
static void *semaphore(void *none) {
    for (;;) {
        sem_wait(&one);
        count(40000);
        sem_post(&one);
        count(1000);
    }
    return none;
}

/* A word under a mutex says who is inside; who finds it set waits for a condition. */
static void *monitor(void *none) {
    for (;;) {
        pthread_mutex_lock(&gate);
        while (busy) pthread_cond_wait(&freed, &gate);
        busy = 1;
        pthread_mutex_unlock(&gate);
        count(40000);
        pthread_mutex_lock(&gate);
        busy = 0;
        pthread_cond_signal(&freed);
        pthread_mutex_unlock(&gate);
        count(1000);
    }
    return none;
}

/* What stands beside the lock is written while it is held. */
static void *beside(void *none) {
    for (;;) {
        pthread_mutex_lock(&gate);
        for (int at = 0; at < 20000; at++) counts[0]++;
        pthread_mutex_unlock(&gate);
        for (int at = 0; at < 200; at++) counts[32]++;
    }
    return none;
}

static void *neighbours(void *mine) {
    volatile long *word = mine;
    for (;;) ++*word;
    return NULL;
}

static void *allocate(void *none) {
    void *held[64] = {0};
    for (unsigned at = 0;; at++) {
        free(held[at % 64]);
        held[at % 64] = malloc(64 + at % 900);
        memset(held[at % 64], 1, 64);
    }
    return none;
}

static void *worker(void *none) {
    for (;;) {
        pthread_mutex_lock(&gate);
        while (!waiting) pthread_cond_wait(&filled, &gate);
        waiting--;
        pthread_mutex_unlock(&gate);
        count(200000);
    }
    return none;
}

static void *producer(void *none) {
    for (;;) {
        pthread_mutex_lock(&gate);
        waiting++;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&gate);
        nap(2000);
    }
    return none;
}

/* Each line of a log is on the disk before the next one: the sync stands under the lock. */
static void *synced(void *none) {
    char line[100] = {'x'};
    for (;;) {
        pthread_mutex_lock(&gate);
        if (pwrite(out, line, sizeof line, at_line++ % 100000 * (long)sizeof line) < 0) exit(1);
        fdatasync(out);
        pthread_mutex_unlock(&gate);
        count(3000);
    }
    return none;
}

/* A file is read in pieces of 32 KiB, each time as if for the first time. */
static void *cold(void *warm) {
    static char piece[32768];
    for (int at = 0; at < 16384; at++)
        if (pwrite(out, piece, sizeof piece, (long)at * (long)sizeof piece) < 0) exit(1);
    fdatasync(out);
    for (;;) {
        if (!*(volatile long *)warm) posix_fadvise(out, 0, 0, POSIX_FADV_DONTNEED);
        lseek(out, 0, SEEK_SET);
        while (read(out, piece, sizeof piece) > 0) counts[32]++;
    }
    return NULL;
}

/* One number at a time goes from one to the other, who look for it every millisecond. */
static void *put(void *none) {
    for (;;) {
        while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST)) nap(1000);
        __atomic_store_n(&waiting, 1, __ATOMIC_SEQ_CST);
    }
    return none;
}

static void *take(void *none) {
    for (;;) {
        while (!__atomic_load_n(&waiting, __ATOMIC_SEQ_CST)) nap(1000);
        count(20000);
        __atomic_store_n(&waiting, 0, __ATOMIC_SEQ_CST);
    }
    return none;
}

static void *ask(void *none) {
    for (;;) syscall(SYS_getpid);
    return none;
}

static void *wake(void *word) {
    for (;;) syscall(SYS_futex, word, 1, 1, NULL, NULL, 0);
    return NULL;
}

static void *digest(void *none) {
    for (;;) count(1000000);
    return none;
}

static void *mostly_idle(void *none) {
    for (;;) {
        count(100000);
        nap(3000);
    }
    return none;
}

static void start(void *(*run)(void *), int many) {
    pthread_t thread;
    for (int at = 0; at < many; at++) pthread_create(&thread, NULL, run, (void *)&counts[at]);
}

int main(int words, char **word) {
    (void)words;
    sem_init(&one, 0, 1);
    out = open("out", O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (!strcmp(word[1], "semaphore")) start(semaphore, 4);
    else if (!strcmp(word[1], "monitor")) start(monitor, 4);
    else if (!strcmp(word[1], "beside")) start(beside, 4);
    else if (!strcmp(word[1], "neighbours")) start(neighbours, 2);
    else if (!strcmp(word[1], "allocate")) start(allocate, 4);
    else if (!strcmp(word[1], "workers")) { start(worker, 4); start(producer, 1); }
    else if (!strcmp(word[1], "getpid")) start(ask, 1);
    else if (!strcmp(word[1], "futex")) start(wake, 1);
    else if (!strcmp(word[1], "digest")) start(digest, 1);
    else if (!strcmp(word[1], "idle")) start(mostly_idle, 3);
    else if (!strcmp(word[1], "synced")) start(synced, 8);
    else if (!strcmp(word[1], "cold")) start(cold, 1);
    else if (!strcmp(word[1], "warm")) { counts[0] = 1; start(cold, 1); }
    else if (!strcmp(word[1], "poll")) { start(put, 1); start(take, 1); }
    else return 2;
    for (;;) pause();
}
