/* Two functions of one name that have nothing to do with each other, as files have them that each call something `work`. */
#include <unistd.h>

volatile unsigned sink;

__attribute__((noinline)) static void left(unsigned n) {
    __attribute__((noinline)) void work(unsigned n) {
        for (unsigned i = 0; i < n; i++)
            sink += i;
    }
    work(n);
}

__attribute__((noinline)) static void right(unsigned n) {
    __attribute__((noinline)) void work(unsigned n) {
        for (unsigned i = 0; i < n; i++)
            sink ^= i;
    }
    work(n);
}

int main(void) {
    while (getppid() != 1) {
        left(1000);
        right(1000);
    }
}
