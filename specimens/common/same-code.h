/* One thread computes, another writes to the disk; a unit is done when both have done their part. The code is the same
 * whichever of them takes longer, and a profile of the CPU shows the same function at its head. */
#ifndef SAME_CODE_H
#define SAME_CODE_H

#include "rounds.h"
#include <fcntl.h>

#define PAGE 4096

static long compute_steps, pages;
static int file;

static __attribute__((noinline)) void compute(void) {
    run_steps(compute_steps);
}

static __attribute__((noinline)) void write_pages(void) {
    static const char page[PAGE] = {1};
    for (long at = 0; at < pages; at++)
        if (pwrite(file, page, PAGE, at * PAGE) != PAGE)
            run_fail("pwrite");
}

/* Each write is on the disk when it returns. The file has no name: it goes with the process. */
static int same_code(void) {
    file = open("same-code.data", O_RDWR | O_CREAT | O_TRUNC | O_DSYNC, 0600);
    if (file < 0)
        run_fail("open");
    unlink("same-code.data");
    write_pages();
    return run_rounds(compute, write_pages);
}

#endif
