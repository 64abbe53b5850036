// Functions whose code is known: one that is called, one that is folded into two callers, one that is only folded, and
// a loop that waits. `names` tells nothing; it is read by tests that look for code.
#include <stdio.h>
#include <unistd.h>

volatile unsigned sink;
volatile int flag;

static inline __attribute__((always_inline)) unsigned folded(unsigned x) {
    for (int i = 0; i < 1000; i++) x = x * 1664525u + 1013904223u; // folded line
    return x;
}

__attribute__((noinline)) unsigned first(unsigned x) {
    x = folded(x);
    sink += x;
    return x;
}

__attribute__((noinline)) unsigned second(unsigned x) {
    for (int i = 0; i < 3; i++) sink += i;
    return folded(x) + 1;
}

__attribute__((noinline)) void waits(void) {
    while (!flag) __builtin_ia32_pause();
}

__attribute__((noinline)) void progress(void) { __asm__ volatile("nop"); }

int main(int argc, char **argv) {
    (void)argv;
    unsigned x = 1;
    if (argc > 5) waits();
    for (;;) {
        x = first(x) + second(x);
        progress();
        if (getppid() == 1) return 0;
    }
}
