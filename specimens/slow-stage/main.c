/* A pipeline of three threads with queues between them.
 *
 * defect:   the stage in the middle takes as long as four units of the others: they wait for it.
 * repaired: it does its work once instead of twice. */
#include "queue.h"

static long parse_steps, transform_steps, emit_steps;
static struct queue parsed, transformed;

static __attribute__((noinline)) void parse_item(void) {
    run_steps(parse_steps);
}

static __attribute__((noinline)) void transform_item(void) {
    run_steps(transform_steps);
}

static __attribute__((noinline)) void emit_item(void) {
    run_steps(emit_steps);
}

static long long parser(void) {
    do
        parse_item();
    while (!run_over && queue_put(&parsed, 1));
    queue_close(&parsed);
    return 0;
}

static long long transformer(void) {
    while (queue_take(&parsed) > 0) {
        transform_item();
        if (!queue_put(&transformed, 1))
            break;
    }
    queue_close(&transformed);
    return 0;
}

static long long emitter(void) {
    long long done = 0;
    while (queue_take(&transformed) > 0) {
        emit_item();
        progress();
        done++;
    }
    return done;
}

static long long stage(int index) {
    return index == 0 ? parser() : index == 1 ? transformer() : emitter();
}

int main(int count, char **words) {
    run_begin(count, words);
    parse_steps = run_less("parse_item", 1000 * RUN_STEPS_PER_US);
    transform_steps = run_less("transform_item", (run_repaired ? 2500 : 5000) * RUN_STEPS_PER_US);
    emit_steps = run_less("emit_item", 1250 * RUN_STEPS_PER_US);
    queue_begin(&parsed, 4);
    queue_begin(&transformed, 4);
    return run_end(run_threads(3, stage));
}
