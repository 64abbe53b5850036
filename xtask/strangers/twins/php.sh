#!/bin/bash
# PHP: the variant is URL+SHA1, how often a unit encodes 256 KiB for a URL, and hashes them.
# shellcheck source=../common.sh
. "$(dirname "$0")/../common.sh"
IFS=+ read -r first second <<<"$variant"
# shellcheck disable=SC2016 # PHP's own variables
start php -r '
  $text = random_bytes(1 << 18);
  $out = fopen($argv[1], "w");
  for ($done = 1; ; $done++) {
    for ($i = 0; $i < $argv[2]; $i++) rawurlencode($text);
    for ($i = 0; $i < $argv[3]; $i++) sha1($text);
    fseek($out, 0);
    fwrite($out, sprintf("%12d\n", $done));
  }' "$work/count" "$first" "$second"
echo "count cat $work/count"
watched "$last" 2
