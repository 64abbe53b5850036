/* One thread, and three parts of its work: 60, 30 and 10 % of the time.
 *
 * defect:   the largest part does everything twice.
 * repaired: once. */
#include "harness.h"

static long sixty_steps, thirty_steps, ten_steps;

static __attribute__((noinline)) void part_of_sixty(void) {
    run_steps(sixty_steps);
}

static __attribute__((noinline)) void part_of_thirty(void) {
    run_steps(thirty_steps);
}

static __attribute__((noinline)) void part_of_ten(void) {
    run_steps(ten_steps);
}

static long long parts(int index) {
    long long done = index;
    while (!run_over) {
        part_of_sixty();
        part_of_thirty();
        part_of_ten();
        progress();
        done++;
    }
    return done;
}

int main(int count, char **words) {
    run_begin(count, words);
    sixty_steps = run_less("part_of_sixty", (run_repaired ? 600 : 1200) * RUN_STEPS_PER_US);
    thirty_steps = run_less("part_of_thirty", 600 * RUN_STEPS_PER_US);
    ten_steps = run_less("part_of_ten", 200 * RUN_STEPS_PER_US);
    return run_end(run_threads(1, parts));
}
