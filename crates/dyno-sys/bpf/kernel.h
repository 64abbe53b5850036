/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What every BPF program here needs of the kernel, and no more: the helpers' numbers (uapi/linux/bpf.h, stable for
 * ever) and the members of kernel structures that are read. The loader moves each member to where the running kernel
 * has it (CO-RE), so that one object fits them all.
 */
#ifndef DYNO_KERNEL_H
#define DYNO_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static __attribute__((always_inline)) inline
#define NOINLINE static __attribute__((noinline))
/* A function that the kernel checks once, for any values, and not again for each way that leads to a call of it. */
#define APART __attribute__((noinline))
#define MOVED __attribute__((preserve_access_index))
/* The shape of a map, as loaders read it from its BTF. */
#define MAP_KIND(kind) int(*type)[kind]
#define MAP_ROWS(rows) int(*max_entries)[rows]
#define MAP_FLAGS(flags) int(*map_flags)[flags]
#define MAP_KEY(kind) typeof(kind) *key
#define MAP_VALUE(kind) typeof(kind) *value

enum { HASH = 1, ARRAY = 2, PERCPU_ARRAY = 6, STACK_TRACE = 7, LEAST_USED_LEAVE = 9, RING = 27 };
enum { ANY = 0, NEW_ONLY = 1 };
enum { MAPPED = 1 << 10 };                 /* BPF_F_MMAPABLE */
enum { USER_STACK = 1 << 8 };              /* BPF_F_USER_STACK */
enum { QUIETLY = 1 };                      /* BPF_RB_NO_WAKEUP */
/* What the loader can say of a member (enum bpf_core_relo_kind): where its bytes begin, how many they are, whether there
 * is one, and how far a bit of them is shifted, to the left and then to the right, to stand alone. */
enum { FIELD_AT = 0, FIELD_BYTES = 1, FIELD_EXISTS = 2, FIELD_LEFT = 4, FIELD_RIGHT = 5 };
enum { EXITING = 0x4, OF_KERNEL = 0x200000 }; /* PF_EXITING and PF_KTHREAD of linux/sched.h */

static void *(*lookup)(const void *map, const void *key) = (void *)1;
static long (*update)(const void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*delete)(const void *map, const void *key) = (void *)3;
static u64 (*now_ns)(void) = (void *)5;
static long (*stack_id)(void *context, const void *map, u64 flags) = (void *)27;
static long (*stack_addresses)(void *context, void *into, u32 bytes, u64 flags) = (void *)67;
static long (*read_user)(void *into, u32 bytes, const void *from) = (void *)112;
static long (*read_kernel)(void *into, u32 bytes, const void *from) = (void *)113;
static void *(*ring_reserve)(const void *ring, u64 bytes, u64 flags) = (void *)131;
static void (*ring_submit)(void *record, u64 flags) = (void *)132;
static struct task_struct *(*current_task)(void) = (void *)158;
static struct pt_regs *(*user_registers)(struct task_struct *task) = (void *)175;
static long (*loop)(u32 rounds, void *callback, void *with, u64 flags) = (void *)181; /* Linux 5.17 */

struct mm_struct;
struct rq;

struct cfs_rq {
    struct rq *rq;                         /* with CONFIG_FAIR_GROUP_SCHED */
} MOVED;

struct sched_entity {
    struct cfs_rq *cfs_rq;
} MOVED;

struct super_block {
    u32 s_dev;
} MOVED;

struct inode {
    unsigned short i_mode;
    struct super_block *i_sb;
    unsigned long i_ino;
} MOVED;

struct file {
    struct inode *f_inode;
} MOVED;

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
} MOVED;

struct files_struct {
    struct fdtable *fdt;
} MOVED;

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live;                         /* threads that have not ended */
} MOVED;

struct task_struct {
    unsigned int __state;                  /* `state` before Linux 5.14 */
    unsigned int flags;
    unsigned int in_iowait : 1;
    int exit_state;
    int pid;
    int tgid;
    struct mm_struct *mm;
    char comm[16];
    struct sched_entity se;
    struct files_struct *files;
    struct signal_struct *signal;
} MOVED;

struct task_struct___before_5_14 {
    long state;
} MOVED;

/* x86-64's names; the others' come in a flavour of their own. */
struct pt_regs {
    unsigned long bp;
    unsigned long di;
    unsigned long ip;
    unsigned long sp;
    unsigned long ax;
    unsigned long orig_ax;
} MOVED;

struct pt_regs___arm64 {
    u64 regs[31];
    u64 sp;
    u64 pc;
} MOVED;

#define PLACE_OF(field, what) __builtin_preserve_field_info(field, what)
#define HAS(field) PLACE_OF(field, FIELD_EXISTS)

#endif
