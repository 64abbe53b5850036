/* Two threads that have nothing to do with each other: one works, the other only burns a CPU.
 *
 * defect:   the busy one has half of all samples, and making it faster brings nothing whatever.
 * repaired: it is not there; the work goes on as before, for half the CPU. */
#include "harness.h"

static long work_steps, burn_steps;

static __attribute__((noinline)) void do_work(void) {
    run_steps(work_steps);
}

static __attribute__((noinline)) void burn_time(void) {
    run_steps(burn_steps);
}

static long long work(void) {
    long long done = 0;
    while (!run_over) {
        do_work();
        progress();
        done++;
    }
    return done;
}

static long long task(int index) {
    if (index == 0)
        return work();
    while (!run_over)
        burn_time();
    return 0;
}

int main(int count, char **words) {
    run_begin(count, words);
    work_steps = run_less("do_work", 2000 * RUN_STEPS_PER_US);
    burn_steps = run_less("burn_time", 3000 * RUN_STEPS_PER_US);
    return run_end(run_threads(run_repaired ? 1 : 2, task));
}
