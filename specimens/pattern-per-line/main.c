/* Lines of a log, of which those are counted that an expression fits.
 *
 * defect:   the expression is compiled for each line.
 * repaired: it is compiled once. */
#include "harness.h"
#include <regex.h>

#define LINES 64
#define PATTERN "^([a-z]+) \\[([0-9]{2}):([0-9]{2})\\] (GET|PUT|POST) /[a-z0-9/]+ ([1-5][0-9]{2})$"

static char lines[LINES][96];

static void make_lines(void) {
    static const char *methods[] = {"GET", "PUT", "POST", "HEAD"};
    for (int i = 0; i < LINES; i++)
        snprintf(lines[i], sizeof lines[i], "client [%02d:%02d] %s /item/%d/of/list %d", i % 24, i * 7 % 60,
                 methods[i % 4], i * 37, 200 + i % 3 * 100);
}

static void compile(regex_t *pattern) {
    if (regcomp(pattern, PATTERN, REG_EXTENDED | REG_NOSUB))
        run_fail("compile the expression");
}

static long long count_and_compile(void) {
    long long fit = 0;
    for (int i = 0; i < LINES; i++) {
        regex_t pattern;
        compile(&pattern);
        fit += !regexec(&pattern, lines[i], 0, NULL, 0);
        regfree(&pattern);
    }
    return fit;
}

static long long count_by_kept(const regex_t *pattern) {
    long long fit = 0;
    for (int i = 0; i < LINES; i++)
        fit += !regexec(pattern, lines[i], 0, NULL, 0);
    return fit;
}

int main(int count, char **words) {
    run_begin(count, words);
    make_lines();
    regex_t kept;
    compile(&kept);
    /* Both sides must count the same, or the comparison is void. */
    long long fit = 0, done = 0;
    if (count_and_compile() != count_by_kept(&kept))
        run_fail("count the same on both sides");
    run_start();
    while (!run_over) {
        fit += run_repaired ? count_by_kept(&kept) : count_and_compile();
        done += LINES;
    }
    run_keep(&fit);
    return run_end(done);
}
