/* One thread makes, another uses; four places lie between them.
 *
 * defect:   making an item takes longer than using it, because its sum is computed twice.
 * repaired: once; then using is what takes longer. */
#include "queue.h"

static long make_steps, use_steps;
static struct queue items;

static __attribute__((noinline)) void make_item(void) {
    run_steps(make_steps);
}

static __attribute__((noinline)) void use_item(void) {
    run_steps(use_steps);
}

static long long producer(void) {
    do
        make_item();
    while (!run_over && queue_put(&items, 1));
    queue_close(&items);
    return 0;
}

static long long consumer(void) {
    long long done = 0;
    while (queue_take(&items) > 0) {
        use_item();
        progress();
        done++;
    }
    return done;
}

static long long side(int index) {
    return index == 0 ? producer() : consumer();
}

int main(int count, char **words) {
    run_begin(count, words);
    make_steps = run_less("make_item", (run_repaired ? 2000 : 4000) * RUN_STEPS_PER_US);
    use_steps = run_less("use_item", 3000 * RUN_STEPS_PER_US);
    queue_begin(&items, 4);
    return run_end(run_threads(2, side));
}
