/* The same code as compute-critical, and here the disk is what a unit waits for.
 *
 * defect:   every page is written twice.
 * repaired: once. */
#include "same-code.h"

int main(int count, char **words) {
    run_begin(count, words);
    compute_steps = run_less("compute", 1500 * RUN_STEPS_PER_US);
    pages = run_less("write_pages", run_repaired ? 80 : 160);
    return same_code();
}
