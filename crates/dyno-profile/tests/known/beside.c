/* 60, 30 and 10 % of one thread, counted work. `beside`: and a thread beside it that changes nothing. `joins PERCENT`: the
 * 60 % are done by a thread of their own for each unit, made so much shorter. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALONE __attribute__((noinline))

/* Each step waits for the one before it, four or five cycles: a neighbour on the same core takes none of them, where it
 * would take a third of the speed of steps that the core could do side by side. */
static inline __attribute__((always_inline)) void burn(long n) {
    unsigned long step = n;
    for (long i = 0; i < n; i += 4) {
        step = step * 6364136223846793005UL + 1442695040888963407UL;
        __asm__ volatile("" : "+r"(step));
    }
}

ALONE void f60(long n) {
    burn(6 * n);
}

ALONE void f30(long n) {
    burn(3 * n);
}

ALONE void f10(long n) {
    burn(n);
}

ALONE void apart(long n) {
    burn(n);
}

ALONE void progress(void) {
    __asm__ volatile("nop");
}

static cpu_set_t allowed;

/* This thread, and what it starts from now on, stays on one of the CPUs: the kernel may leave two that have to run on the
 * same one, and the other to a neighbour, for longer than a window lasts. */
static void stay(int at) {
    cpu_set_t one;
    CPU_ZERO(&one);
    at %= CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && at-- == 0)
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void *beside(void *unused) {
    stay(1);
    for (;;)
        apart(100000);
    return unused;
}

static void *in_f60(void *n) {
    f60((long)n);
    return 0;
}

static void joins(long percent) {
    pthread_t thread;
    while (getppid() != 1) {
        pthread_create(&thread, 0, in_f60, (void *)(2000000 * (100 - percent) / 100));
        pthread_join(thread, 0);
        f30(2000000);
        f10(2000000);
        progress();
    }
}

int main(int count, char **words) {
    pthread_t thread;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (count > 2 && !strcmp(words[1], "joins"))
        joins(atol(words[2]));
    if (count > 1) {
        pthread_create(&thread, 0, beside, 0);
        stay(0);
    }
    while (getppid() != 1) {
        f60(50000);
        f30(50000);
        f10(50000);
        progress();
    }
}
