#!/bin/bash
# One of stress-ng's stressors: the variant is its name, "+" between words: futex+2.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
IFS=+ read -r name count rest <<<"$variant"
extra=()
[ -n "${rest:-}" ] && IFS=, read -r -a extra <<<"$rest"
start stress-ng --temp-path "$work" --no-rand-seed "--$name" "${count:-1}" "${extra[@]}" --timeout 120
watched "$last" 2
