/* The lines of a file, counted.
 *
 * defect:   a byte is asked for at a time: a system call for each.
 * repaired: 64 KiB are asked for at a time, and the bytes taken from there. */
#include "harness.h"
#include <fcntl.h>

#define FILE_BYTES (1 << 20)
#define BUFFER_BYTES (64 << 10)

static int file;

static void make_file(void) {
    char line[] = "a line of some length, as settings and logs have them, sixty-three.\n";
    file = open("lines.txt", O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        run_fail("open the file");
    for (long long at = 0; at < FILE_BYTES; at += (long long)sizeof line - 1)
        if (write(file, line, sizeof line - 1) < 0)
            run_fail("write the file");
}

static long long count_by_bytes(long long *lines) {
    long long bytes = 0;
    char byte;
    while (!run_over && read(file, &byte, 1) == 1) {
        *lines += byte == '\n';
        bytes++;
    }
    return bytes;
}

static long long count_by_buffer(long long *lines) {
    static char buffer[BUFFER_BYTES];
    long long bytes = 0;
    ssize_t got;
    while (!run_over && (got = read(file, buffer, sizeof buffer)) > 0) {
        for (ssize_t at = 0; at < got; at++)
            *lines += buffer[at] == '\n';
        bytes += got;
    }
    return bytes;
}

int main(int count, char **words) {
    run_begin(count, words);
    make_file();
    long long bytes = 0, lines = 0;
    run_start();
    while (!run_over) {
        lseek(file, 0, SEEK_SET);
        bytes += run_repaired ? count_by_buffer(&lines) : count_by_bytes(&lines);
    }
    run_keep(&lines);
    return run_end(bytes);
}
