/* Two threads that wait for each other after every piece of work.
 *
 * defect:   one has 6.7 milliseconds of work, the other 6.4: a profile shows them as equals, but only the first is worth
 *           anything, and that until it is as short as the second.
 * repaired: half of the first one's work is gone: a round takes as long as the second one's, and not less. */
#include "harness.h"
#include <stdatomic.h>

static long first_steps, second_steps;
static pthread_barrier_t joined;
static atomic_long last_round;

static __attribute__((noinline)) void first_half(void) {
    run_steps(first_steps);
}

static __attribute__((noinline)) void second_half(void) {
    run_steps(second_steps);
}

static long long rounds(int index) {
    long round = 0;
    do {
        round++;
        if (index == 0)
            first_half();
        else
            second_half();
        /* Both leave after the same round: the first says which one before it waits. */
        if (index == 0 && run_over)
            atomic_store(&last_round, round);
        pthread_barrier_wait(&joined);
        if (index == 0)
            progress();
    } while (atomic_load(&last_round) != round);
    return index == 0 ? round : 0;
}

int main(int count, char **words) {
    run_begin(count, words);
    first_steps = run_less("first_half", (run_repaired ? 3350 : 6700) * RUN_STEPS_PER_US);
    second_steps = run_less("second_half", 6400 * RUN_STEPS_PER_US);
    pthread_barrier_init(&joined, NULL, 2);
    return run_end(run_threads(2, rounds));
}
