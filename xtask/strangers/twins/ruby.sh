#!/bin/bash
# Ruby: the variant is ADLER+SHA, how often a unit checks a megabyte (zlib's adler32) and hashes it.
# shellcheck source=../common.sh
. "$(dirname "$0")/../common.sh"
IFS=+ read -r first second <<<"$variant"
start ruby -rzlib -rdigest -e '
  megabyte = Random.new(1).bytes(1 << 20)
  out = File.open(ARGV[0], File::CREAT | File::WRONLY)
  done = 0
  loop do
    ARGV[1].to_i.times { Zlib.adler32(megabyte) }
    ARGV[2].to_i.times { Digest::SHA256.digest(megabyte) }
    out.pwrite(format("%12d\n", done += 1), 0)
  end' "$work/count" "$first" "$second"
echo "count cat $work/count"
watched "$last" 2
