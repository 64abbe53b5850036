# shellcheck shell=bash
# Read by each program's script, which is called as: script VARIANT PORT FOLDER. It starts a program and its load, prints
# "pid N" for the process to be diagnosed, and stays until it is told to end; then nothing that it started is left.
set -u
# shellcheck disable=SC2034 # for the script that reads this one
variant=$1
port=$2
work=$3
# shellcheck disable=SC2034 # for the script that reads this one
here=$(cd "$(dirname "$0")" && pwd)
started=()
# A cgroup that the script makes: named before it is made, it goes with the program.
group=

end() {
    # Once: it may be asked twice, by a hangup and by us.
    trap - EXIT
    trap : TERM INT HUP
    local pid
    for pid in "${started[@]}"; do kill -TERM "$pid" 2>/dev/null; done
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        local left=0
        for pid in "${started[@]}"; do kill -0 "$pid" 2>/dev/null && left=1; done
        [ "$left" = 0 ] && break
        sleep 0.2
    done
    for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    # Who was killed leaves it when it next gets a CPU.
    for _ in $(seq 20); do
        [ -d "$group" ] || break
        rmdir "$group" 2>/dev/null || sleep 0.1
    done
    exit 0
}
trap end EXIT TERM INT HUP

# Starts a program in the background; its number is in $last.
start() {
    "$@" >>"$work/log" 2>&1 &
    last=$!
    started+=("$last")
}

# Starts a load that is begun anew whenever it ends.
load() {
    (
        trap 'kill "$inner" 2>/dev/null; exit 0' TERM
        while :; do
            "$@" >>"$work/load.log" 2>&1 &
            inner=$!
            wait "$inner"
            sleep 0.05
        done
    ) &
    started+=("$!")
}

# Waits until somebody listens.
listening() {
    for _ in $(seq 100); do
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return 0
        sleep 0.1
    done
    echo "nobody listens" >&2
    exit 1
}

# Tells whom to look at, and stays.
watched() {
    sleep "${2:-1}"
    echo "pid $1"
    while kill -0 "$1" 2>/dev/null; do
        sleep 1 &
        wait $!
    done
    echo "it has ended" >&2
    exit 1
}
