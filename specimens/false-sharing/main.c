/* Each of two threads counts what it has done, in a counter of its own.
 *
 * defect:   the counters are neighbours in memory: both lie in one cache line, which goes from CPU to CPU.
 * repaired: each counter has its cache line (two of them: CPUs fetch lines in pairs) for itself. */
#include "harness.h"
#include <stdatomic.h>

#define LINE_BYTES 128
#define THREADS 2
#define STEPS 1000

struct near_counter {
    atomic_ullong done;
};

struct far_counter {
    atomic_ullong done;
    char nothing[LINE_BYTES - sizeof(atomic_ullong)];
};

static _Alignas(LINE_BYTES) struct near_counter neighbours[THREADS];
static _Alignas(LINE_BYTES) struct far_counter apart[THREADS];

/* Added up whole, because others may read a counter at any time. */
static void count_steps(atomic_ullong *done) {
    for (int i = 0; i < STEPS; i++)
        atomic_fetch_add_explicit(done, 1, memory_order_relaxed);
}

static long long count_near(int index) {
    while (!run_over)
        count_steps(&neighbours[index].done);
    return (long long)atomic_load(&neighbours[index].done);
}

static long long count_apart(int index) {
    while (!run_over)
        count_steps(&apart[index].done);
    return (long long)atomic_load(&apart[index].done);
}

int main(int count, char **words) {
    run_begin(count, words);
    return run_end(run_threads(THREADS, run_repaired ? count_apart : count_near));
}
