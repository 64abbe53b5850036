/* The sum of a table of 4000 by 4000 numbers.
 *
 * defect:   column by column: every number lies 16,000 bytes after the one before, in another cache line.
 * repaired: row by row, as the numbers lie in memory: a cache line serves sixteen of them. */
#include "harness.h"
#include <sys/mman.h>

#define SIDE 4000

static int (*table)[SIDE];

/* Both return how many columns or rows they have summed. */
static int sum_by_columns(long long *sum) {
    int column = 0;
    for (; column < SIDE && !run_over; column++)
        for (int row = 0; row < SIDE; row++)
            *sum += table[row][column];
    return column;
}

static int sum_by_rows(long long *sum) {
    int row = 0;
    for (; row < SIDE && !run_over; row++)
        for (int column = 0; column < SIDE; column++)
            *sum += table[row][column];
    return row;
}

/* Huge pages on both sides: the order in the cache is the only difference, not the reach of the TLB. */
static void make_table(void) {
    size_t bytes = sizeof(int) * SIDE * SIDE + (2 << 20);
    char *memory = (char *)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        run_fail("mmap");
    madvise(memory, bytes, MADV_HUGEPAGE);
    table = (int(*)[SIDE])memory;
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++)
            table[row][column] = row ^ column;
}

int main(int count, char **words) {
    run_begin(count, words);
    make_table();
    long long lines = 0, sum = 0;
    run_start();
    while (!run_over) {
        lines += run_repaired ? sum_by_rows(&sum) : sum_by_columns(&sum);
        run_keep(&sum);
    }
    return run_end(lines);
}
