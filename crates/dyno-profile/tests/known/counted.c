/* Work that is counted in a file which others map: `program compute|pingpong FILE`, until it is killed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A line of the cache for each thread's count. */
static struct {
    volatile long done;
    char apart[56];
} *threads;
static int ping[2], pong[2];

__attribute__((noinline)) void work(long n) {
    for (long i = 0; i < n; i++)
        __asm__ volatile("" ::: "memory");
}

static void *compute(void *own) {
    volatile long *done = own;
    for (;;) {
        work(3000);
        ++*done;
    }
    return own;
}

static void *ponger(void *unused) {
    char c;
    while (read(ping[0], &c, 1) == 1 && write(pong[1], &c, 1) == 1)
        ;
    return unused;
}

static void *pinger(void *own) {
    volatile long *done = own;
    char c = 'x';
    for (;;) {
        work(30000);
        if (write(ping[1], &c, 1) != 1 || read(pong[0], &c, 1) != 1)
            return own;
        ++*done;
    }
}

static void start(void *(*life)(void *), void *with) {
    pthread_t thread;
    pthread_create(&thread, 0, life, with);
}

int main(int count, char **words) {
    int file = open(words[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096))
        return 1;
    threads = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!strcmp(words[1], "compute")) {
        start(compute, (void *)&threads[0].done);
        start(compute, (void *)&threads[1].done);
    }
    if (!strcmp(words[1], "pingpong")) {
        if (pipe(ping) || pipe(pong))
            return 1;
        start(ponger, 0);
        start(pinger, (void *)&threads[0].done);
    }
    pause();
    return count;
}
