/* Two threads and one lock that is held for most of the work.
 *
 * defect:   what needs the lock and what does not are both done with it in hand.
 * repaired: half of it is done before the lock is taken. */
#include "harness.h"

static long inside_steps, outside_steps, moved_steps;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) void work_inside(void) {
    run_steps(inside_steps);
}

static __attribute__((noinline)) void work_outside(long steps) {
    run_steps(steps);
}

static long long sections(int index) {
    unsigned long long chance = 2463534242ULL + (unsigned long long)index;
    long long done = 0;
    while (!run_over) {
        pthread_mutex_lock(&table);
        work_inside();
        progress();
        pthread_mutex_unlock(&table);
        /* From nothing to twice the mean, so that the threads do not fall into step. */
        work_outside(moved_steps + (long)((double)outside_steps * 2.0 * (double)(run_random(&chance) >> 40) / 16777216.0));
        done++;
    }
    return done;
}

int main(int count, char **words) {
    run_begin(count, words);
    inside_steps = run_less("work_inside", (run_repaired ? 3000 : 6000) * RUN_STEPS_PER_US);
    outside_steps = run_less("work_outside", 3000 * RUN_STEPS_PER_US);
    moved_steps = run_repaired ? 3000 * RUN_STEPS_PER_US : 0;
    return run_end(run_threads(2, sections));
}
