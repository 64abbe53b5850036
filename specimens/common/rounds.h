/* Two threads that wait for each other after every round: each does its part of it. */
#ifndef ROUNDS_H
#define ROUNDS_H

#include "harness.h"
#include <stdatomic.h>

static void (*round_parts[2])(void);
static pthread_barrier_t joined;
static atomic_long last_round;

static long long rounds(int index) {
    long round = 0;
    do {
        round++;
        round_parts[index]();
        /* Both leave after the same round: the first says which one before it waits. */
        if (index == 0 && run_over)
            atomic_store(&last_round, round);
        pthread_barrier_wait(&joined);
        if (index == 0)
            progress();
    } while (atomic_load(&last_round) != round);
    return index == 0 ? round : 0;
}

/* Runs them until the time is up; ends the program with the number of rounds. */
static int run_rounds(void (*first)(void), void (*second)(void)) {
    round_parts[0] = first;
    round_parts[1] = second;
    pthread_barrier_init(&joined, NULL, 2);
    return run_end(run_threads(2, rounds));
}

#endif
