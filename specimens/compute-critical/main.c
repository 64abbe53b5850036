/* The same code as io-critical, and here the arithmetic is what a unit waits for.
 *
 * defect:   it is done twice.
 * repaired: once. */
#include "same-code.h"

int main(int count, char **words) {
    run_begin(count, words);
    compute_steps = run_less("compute", (run_repaired ? 10000 : 20000) * RUN_STEPS_PER_US);
    pages = run_less("write_pages", 4);
    return same_code();
}
