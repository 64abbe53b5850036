/* Half of its time in the kernel, half outside: each turn reads zeroes for ten milliseconds of its own CPU time, then
 * counts for ten. */
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define ALONE __attribute__((noinline, noclone))
#define SLICE_NS 10000000

static uint64_t cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static char bytes[1 << 18];

ALONE void in_the_kernel(int zeroes) {
    for (uint64_t until = cpu_ns() + SLICE_NS; cpu_ns() < until;)
        if (read(zeroes, bytes, sizeof bytes) < 0)
            return;
}

ALONE void outside(void) {
    volatile uint64_t sink = 0;
    for (uint64_t until = cpu_ns() + SLICE_NS; cpu_ns() < until;)
        for (int i = 0; i < 200000; i++)
            sink += (uint64_t)i;
}

int main(void) {
    int zeroes = open("/dev/zero", O_RDONLY);
    for (;;) {
        in_the_kernel(zeroes);
        outside();
    }
}
