/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What offcpu.bpf.c and src/bpf/offcpu/layout.rs tell each other. Every structure here has its twin there,
 * tied by constant assertions on both sides.
 */
#ifndef DYNO_OFFCPU_H
#define DYNO_OFFCPU_H

#include "kernel.h"

#define SYSTEM_CALLS 512   /* numbers of system calls that are counted apart; the last row takes all above it */
#define LOG2_ROWS 40       /* 2^39 ns are nine minutes */
#define RANGES 24          /* executable ranges of a process; user space joins neighbours until they fit */
#define SPANS 2            /* stretches of addresses that hold all ranges: a program's own, and its libraries' */
#define MARKS 1024         /* words with a bit for each process number, the rest of it by 65,536 */
#define STACK_BYTES 16384  /* user stack copied once per shape: what other profilers take, and 98 % of stacks fit */
#define CHUNK_BYTES 1024   /* copied at a go; a go that touches an absent page copies nothing */
#define FRAME_POINTERS 64  /* frames of the walk by frame pointers, kept beside the copy */
#define HASH_WORDS 128     /* words of a user stack that tell one shape from another */
#define KERNEL_WORDS 256   /* words of a kernel stack that are looked through; deeper ones are unwound each time */
#define KERNEL_FRAMES 32   /* return addresses of a kernel stack that are looked for in it, as a power of two */
#define NO_STACK (-1)
/* Rows of tables, and how many may be told apart as finely as can be: the rest is kept for what is told apart less. */
#define WAITS 131072
#define WAITS_OF_WAKERS 65536
#define WAITS_OF_SHAPES 98304
#define WAKERS 32768
#define WAKERS_OF_SHAPES 24576
#define SHAPES 16384
#define SHAPES_OF_WORDS 12288

/* What user space tells, and counts that it reads; mapped into it. */
struct control {
    u64 active;
    u64 start_ns;
    u64 min_ns;            /* shorter waits are summed per thread and not kept by stack */
    u64 spans;             /* 1: each stretch of a thread goes into the ring */
    u64 switches;
    u64 lost_waits;        /* maps or the ring were full */
    u64 lost_spans;
    u64 lost_stacks;
    u64 lost_processes;    /* forked, and more than the table holds */
    u64 faults;
    u64 calls;             /* 1: system calls are watched; else a wait's is read from the registers */
    u64 wait_rows;         /* rows in use */
    u64 waker_rows;
    u64 shape_rows;
    u64 coarse;            /* waits that were put together with others for want of rows: without waker, object or stack */
    u64 lost_threads;      /* times that a thread found no row, or that an untold end was overwritten */
    u64 mark[MARKS];       /* a bit that is not set: nobody by such a number is watched */
};

enum { RUNNING = 1, RUNNABLE = 2, BLOCKED = 3, WOKEN = 4, ENDED = 5 };

struct thread {
    u64 since_ns;          /* in this state */
    u64 woken_ns;
    u64 entered_ns;        /* the system call that it is in */
    u64 running_ns;
    u64 runnable_ns;
    u64 waiting_ns;
    u64 object;
    u64 shape;
    u64 waker;
    u64 fault;             /* the address of its last page fault in user mode */
    u32 tgid;
    s32 kernel_stack;
    s32 system_call;       /* or -1 */
    u32 state;
};

enum { OF_WAIT = 0, OF_QUEUE = 1, OF_PREEMPTION = 2 };

struct wait_key {
    u64 shape;
    u64 waker;
    u64 object;
    u32 tid;
    u32 tgid;
    s32 kernel_stack;
    s32 system_call;
    u32 part;
    u32 unused;
};

struct wait_sum {
    u64 ns;
    u64 count;
    u64 max_ns;
    u64 fault;             /* the page fault's address, if it was one */
};

struct waker {
    u64 shape;
    u32 tid;
    u32 tgid;
    s32 kernel_stack;
    u32 unused;
    u8 comm[16];
};

struct call_sum {
    u64 count;
    u64 errors;
    u64 total_ns;
    u64 max_ns;
    u64 log2_ns[LOG2_ROWS];
};

struct code {
    u64 low[SPANS];        /* where a stretch begins, */
    u64 bytes[SPANS];      /* and its length */
    u64 from[RANGES];
    u64 to[RANGES];
};

enum { SHAPE = 1, SPAN = 2, EXIT = 3, EXEC = 4, FORK = 5, OBJECT = 6 };

struct shape_record {
    u32 kind;
    u32 tgid;
    u64 shape;
    u64 ip;
    u64 sp;
    u64 bp;
    u32 bytes;
    u32 frames;
    u64 frame[FRAME_POINTERS];
    u8 stack[STACK_BYTES];
};

struct span_record {
    u32 kind;
    u32 tid;
    u32 tgid;
    u32 state;
    u64 from_ns;
    u64 to_ns;
    s32 kernel_stack;
    s32 system_call;
};

struct life_record {       /* EXIT, EXEC, FORK */
    u32 kind;
    u32 tid;
    u32 tgid;
    u32 parent;
    u8 comm[16];
    struct thread thread;
};

struct object_record {     /* a wait for something that none waited for in that place */
    u32 kind;
    u32 tgid;
    u32 system_call;
    u32 unused;
    u64 object;
};

_Static_assert(sizeof(struct object_record) == 24, "object_record");
_Static_assert(sizeof(struct control) == 128 + 8 * MARKS, "control");
_Static_assert(sizeof(struct thread) == 96, "thread");
_Static_assert(sizeof(struct wait_key) == 48, "wait_key");
_Static_assert(sizeof(struct wait_sum) == 32, "wait_sum");
_Static_assert(sizeof(struct waker) == 40, "waker");
_Static_assert(sizeof(struct call_sum) == 352, "call_sum");
_Static_assert(sizeof(struct code) == 416, "code");
_Static_assert(sizeof(struct shape_record) == 48 + 8 * FRAME_POINTERS + STACK_BYTES, "shape_record");
_Static_assert(sizeof(struct span_record) == 40, "span_record");
_Static_assert(sizeof(struct life_record) == 128, "life_record");

#endif
