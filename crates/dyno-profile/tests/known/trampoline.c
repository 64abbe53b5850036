/* A run-time whose functions call each other through pieces of code that it makes while it runs, as CPython's do with
 * -X perf: they keep no frame pointer, no file has tables for them, and a map names them. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 400000 };

static volatile uint64_t sink;
static void (*pieces[3])(void (*)(void));

/* sub rsp, 8; call rdi; add rsp, 8; ret */
static const unsigned char PIECE[] = { 0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3 };

static void make(void) {
    static const char *names[] = { "made_outer", "made_middle", "made_inner" };
    unsigned char *room = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    for (int at = 0; at < 3; at++) {
        memcpy(room + 64 * at, PIECE, sizeof PIECE);
        pieces[at] = (void (*)(void (*)(void)))(room + 64 * at);
        fprintf(map, "%lx %zx %s\n", (unsigned long)(room + 64 * at), sizeof PIECE, names[at]);
    }
    fclose(map);
    mprotect(room, 4096, PROT_READ | PROT_EXEC);
}

__attribute__((noinline)) void work(void) {
    for (int at = 0; at < ROUNDS; at++)
        sink = sink * 6364136223846793005u + 1442695040888963407u;
}

__attribute__((noinline)) void inner(void) { pieces[2](work); sink++; }
__attribute__((noinline)) void middle(void) { pieces[1](inner); sink++; }

int main(void) {
    make();
    for (;;)
        pieces[0](middle);
}
