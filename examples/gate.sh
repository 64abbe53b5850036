#!/bin/sh
# Gates a change: judges BRANCH against BASE, two records of dyno climb, and holds CONDITIONS against what changed. Where
# they do not exist yet both are climbed first, by the programs in DYNO_BASE and DYNO_BRANCH (dyno, where these are unset),
# with the flags in CLIMB. Standard output is Markdown, for a job's summary or a comment. Exit status as dyno judge: 1 when the branch is worse, or a condition is not met.
set -u
if [ $# -ne 3 ]; then
    echo "usage: gate.sh BASE.json BRANCH.json CONDITIONS, as 'high(total)>=-2%'" >&2
    exit 2
fi
base=$1 branch=$2 conditions=$3
# Both hold words: a program with its wrapper, and flags.
# shellcheck disable=SC2086
[ -e "$base" ] || ${DYNO_BASE:-dyno} climb ${CLIMB:-} -o "$base" >&2 || exit
# shellcheck disable=SC2086
[ -e "$branch" ] || ${DYNO_BRANCH:-dyno} climb ${CLIMB:-} -o "$branch" >&2 || exit
${DYNO_BRANCH:-dyno} judge "$base" "$branch" --format markdown --fail-under "$conditions"
