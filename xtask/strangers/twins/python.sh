#!/bin/bash
# CPython with the C libraries below it; the variant is WORD+CRC+OTHER, as work.py takes them.
# shellcheck source=../common.sh
. "$(dirname "$0")/../common.sh"
IFS=+ read -r word first second <<<"$variant"
count="$work/count"
case $word in
    quota)
        if [ -d /sys/fs/cgroup/cpu ]; then
            group=/sys/fs/cgroup/cpu/twins$$
            mkdir "$group" && echo 100000 >"$group/cpu.cfs_period_us" && echo 50000 >"$group/cpu.cfs_quota_us" || exit 1
        else
            group=/sys/fs/cgroup/twins$$
            mkdir "$group" && echo "50000 100000" >"$group/cpu.max" || exit 1
        fi
        start bash -c "echo \$\$ >$group/cgroup.procs; exec /usr/bin/python3 $here/work.py steady $count $first $second"
        ;;
    *) start /usr/bin/python3 "$here/work.py" "$word" "$count" "$first" "$second" ;;
esac
echo "count cat $count"
watched "$last" 2
