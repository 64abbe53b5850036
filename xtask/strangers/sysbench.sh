#!/bin/bash
# sysbench from the distribution: the variant is the test.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
cd "$work" || exit 1
case $variant in
    mutex) start sysbench mutex --threads=4 --mutex-num=1 --mutex-locks=1000000000 --mutex-loops=0 --time=120 run ;;
    mutexes) start sysbench mutex --threads=2 --mutex-num=4096 --mutex-locks=1000000000 --mutex-loops=10000 --time=120 run ;;
    fsync-all | fsync-end)
        sysbench fileio --file-num=4 --file-total-size=64M prepare >>"$work/log" 2>&1
        mode=(--file-fsync-all=on)
        [ "$variant" = fsync-end ] && mode=(--file-fsync-freq=0 --file-fsync-end=on)
        start sysbench fileio --file-num=4 --file-total-size=64M --file-test-mode=rndwr "${mode[@]}" --threads=2 --time=120 run
        ;;
    noisy)
        start stress-ng --cpu 2 --timeout 120
        start sysbench cpu --threads=2 --time=120 run
        ;;
    quota)
        group=/sys/fs/cgroup/cpu/strangers$$
        mkdir "$group" && echo 100000 >"$group/cpu.cfs_period_us" && echo 30000 >"$group/cpu.cfs_quota_us" || exit 1
        start bash -c "echo \$\$ >$group/cgroup.procs; exec sysbench cpu --threads=2 --time=120 run"
        ;;
    cpu) start sysbench cpu --threads=2 --time=120 run ;;
    memory) start sysbench memory --threads=1 --memory-total-size=100T --time=120 run ;;
esac
watched "$last"
