/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What causal.bpf.c and src/bpf/causal/layout.rs tell each other. Every structure here has its twin there,
 * tied by constant assertions on both sides.
 */
#ifndef DYNO_CAUSAL_H
#define DYNO_CAUSAL_H

#include "kernel.h"

#define RANGES 4096        /* pieces of a site's code: of a function inlined in more places user space drops the rest */
#define RANGE_STEPS 13     /* halvings that find one of 4096 */
#define FRAMES 127         /* of a user stack, where callers count too: as many as the kernel walks (kernel.perf_event_max_stack) */
#define PLACES 4096        /* places of code that samples of one window fall into */
#define SYSTEM_CALLS 512   /* rows by number; the last takes all above it */

/* Words that user space maps. What the programs only read stands apart from what they write: each line of 64 bytes that
 * is written by one CPU is lost to the others. */
struct control {
    u64 active;            /* samples, wake-ups and switches are looked at */
    u64 deadline_ns;       /* beyond it nobody is paused any more, whatever `active` says */
    u64 epoch;             /* one more for each experiment: all positions begin at 0 again */
    u64 delay_ns;          /* for each hit */
    u64 reach;             /* 0: the sampled instruction, 1: anywhere on the user stack */
    u64 pause_ns_max;
    u64 window;            /* number of the window that counts visits; 0: none */
    u64 preempt_count_at;  /* of a CPU, from its run queue */
    u64 system_call;       /* whose returns are visits */
    s64 returns_min;       /* smaller answers are no visits */
    u64 wait_kinds;        /* waits that are made shorter; 0: none */
    u64 wait_percent;      /* by so much */
    u64 wait_inode;
    u64 wait_device;
    u64 start_ns;          /* of the experiment: what lies before it is no part of a wait */
    u64 spin_ns;           /* at each entry, where a site is slowed down */
    u64 watch;             /* number of this time of watching: one more whenever switches are seen again */
    u64 subject;           /* the process that the experiment is about: begins it another program, all is over */
    u64 period_ns;         /* between samples of one of a CPU's clocks; 0: neither samples nor switches are seen */
    u64 interrupt_ns;      /* what the interrupt of a sample takes from whom it hits; 0: unknown */
    u64 file_ns;           /* since when `wait_inode` and `wait_device` are these */
    u64 own_ns;            /* for whoever is hit, and nobody else: a site is slowed down by its samples */
    u64 places;            /* where samples of a window fall is counted */
    u64 room[1];

    u64 inserted_ns;       /* the greatest position of a thread */
    u64 apart[7];

    u64 samples;
    u64 beside;            /* samples of participants */
    u64 foreign;
    u64 idle;
    u64 pausing;           /* samples of a thread that pauses */
    u64 hits;
    u64 pauses;
    u64 asked_ns;
    u64 paid_ns;
    u64 lag_ns;            /* from a sample to the start of its pause */
    u64 capped;
    u64 missed;
    u64 inner_wakes;
    u64 outer_wakes;
    u64 remote_wakes;      /* those of them that ended a wait for a socket or a pipe */
    u64 partner_wakes;     /* inner ones by participants */
    u64 runnable_waits;
    u64 queued_ns;         /* that threads of the target waited for a core which strangers had */
    u64 expired;           /* the deadline was met */
    u64 replaced;          /* the target runs another program */
    u64 lost;              /* threads and processes beyond the tables */
    u64 ticks;             /* samples of any kind */
    u64 of_spinners;       /* samples of threads that were seen in a loop that waits */
    u64 spun;              /* those of them that lie in one */
    u64 spins;             /* and the first ones behind it */
    u64 steps_ns;          /* how long the steps took that samples of the target do to see the pace of its CPU */
    u64 stepped;           /* how often they were done and not interrupted */
    s64 in_flight;         /* begun and not ended, since the probes are in place */
    s64 in_flight_min;
    u64 steps_least_ns;    /* the least that those steps ever took */
};

/* Known to the kernel by its name (uapi/linux/bpf.h, Linux 6.18); an older one takes it for a number. */
struct bpf_task_work {
    u64 opaque;
};

struct thread {
    u64 position_ns;       /* inserted delay that it has paid or was credited with */
    u64 epoch;             /* that the position belongs to */
    u64 inserted_off_ns;   /* `inserted_ns` when it left its core or was woken */
    u64 off_ns;            /* when that was */
    u64 sampled_ns;        /* the sample that its pause comes from */
    u64 owed_ns;           /* what it pauses for being hit itself */
    struct bpf_task_work work;
    u32 user_mode;         /* whether that sample came in user mode */
    u32 scheduled;         /* a pause is on its way */
    u32 paused;            /* it is in one */
    u32 on_core;           /* the `watch` that saw it there; 0: it left */
    u32 role;
    u32 waits;             /* what it left its core for, kinds as below; 0: for nothing */
    u32 begun;             /* units that it has begun and not ended */
    u32 spun;              /* where its last sample found it, as below; 0: no sample has met it in a loop that waits */
    u64 spun_at_ns;        /* `inserted_ns` then */
    u64 before_ns;         /* what was inserted between its last two samples in a loop that waits */
    u64 late_ns;           /* what it seemed to owe at the first one behind it */
};

/* In such a loop; out of one, for the first time; or out for longer. */
enum { IN_LOOP = 1, LEFT = 2, OUT = 3 };

/* Rows of the table of code: what is tried, and loops that wait. */
enum { SITE = 0, LOOPS = 1, CODES = 2 };

enum { TARGET = 1, PARTICIPANT = 2, FOLLOWED = 4 };

/* Kinds of waits, and how the table of system calls says that the descriptor decides. */
enum { FOR_ANYTHING = 1, FOR_LOCK = 2, FOR_DISK = 4, FOR_NETWORK = 8, FOR_FILE = 16, BY_DESCRIPTOR = 32 };

enum { VISITS = 0, BEGINS = 1, ENTRIES = 2, POINTS = 3 };

/* Of one CPU. */
struct point {
    u64 window;            /* that the rest belongs to */
    u64 count;
    u64 first_ns;
    u64 first_at_ns;       /* position of the thread at the first visit */
    u64 first_behind_ns;   /* how far that was behind the greatest */
    u64 last_ns;
    u64 last_at_ns;
    u64 last_behind_ns;
    u64 since_start_ns;    /* from the experiment's start to each visit, summed: when things were begun and ended */
    u64 positions_ns;      /* of the thread at each visit, summed */
    u64 behind_ns;         /* how far that was behind the greatest, summed */
    u64 carried;           /* ends of what another thread has begun */
};

struct ranges {
    u64 count;
    u64 from[RANGES];      /* in order, disjoint */
    u64 to[RANGES];
};

_Static_assert(sizeof(struct control) == 496, "control");
_Static_assert(sizeof(struct thread) == 112, "thread");
_Static_assert(sizeof(struct point) == 96, "point");
_Static_assert(sizeof(struct ranges) == 8 + 16 * RANGES, "ranges");

#endif
