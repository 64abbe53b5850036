/* Two threads that wait for each other after every piece of work.
 *
 * defect:   one has 6.7 milliseconds of work, the other 6.4: a profile shows them as equals, but only the first is worth
 *           anything, and that until it is as short as the second.
 * repaired: half of the first one's work is gone: a round takes as long as the second one's, and not less. */
#include "rounds.h"

static long first_steps, second_steps;

static __attribute__((noinline)) void first_half(void) {
    run_steps(first_steps);
}

static __attribute__((noinline)) void second_half(void) {
    run_steps(second_steps);
}

int main(int count, char **words) {
    run_begin(count, words);
    first_steps = run_less("first_half", (run_repaired ? 3350 : 6700) * RUN_STEPS_PER_US);
    second_steps = run_less("second_half", 6400 * RUN_STEPS_PER_US);
    return run_rounds(first_half, second_half);
}
