#!/bin/bash
# PHP: the variant is WORD+URL+SHA1, how often a unit encodes 256 KiB for a URL, and hashes them. "steady": one after another.
# "paced": a unit is an answer of PHP's own server, and hey asks for so many in a second.
# shellcheck source=../common.sh
. "$(dirname "$0")/../common.sh"
IFS=+ read -r word first second <<<"$variant"
cat >"$work/unit.php" <<'P'
<?php
function unit($text, $first, $second) {
    for ($i = 0; $i < $first; $i++) rawurlencode($text);
    for ($i = 0; $i < $second; $i++) sha1($text);
}
function counted($done) {
    // Never cut off: who reads it meanwhile sees one count or the other.
    $out = fopen(getenv("COUNT"), "c");
    fwrite($out, sprintf("%12d\n", $done));
    fclose($out);
}
if (PHP_SAPI === "cli") {
    $text = random_bytes(1 << 18);
    for ($done = 1; ; $done++) {
        unit($text, $argv[1], $argv[2]);
        counted($done);
    }
}
unit(file_get_contents(getenv("TEXT")), getenv("FIRST"), getenv("SECOND"));
counted((int) @file_get_contents(getenv("COUNT")) + 1);
echo "done\n";
P
export COUNT="$work/count" TEXT="$work/text" FIRST=$first SECOND=$second
case $word in
    steady) start php "$work/unit.php" "$first" "$second" ;;
    paced)
        head -c 262144 /dev/urandom >"$TEXT"
        start php -S "127.0.0.1:$port" "$work/unit.php"
        who=$last
        listening
        start hey -z 600s -c 2 -q 50 "http://127.0.0.1:$port/"
        last=$who
        ;;
esac
echo "count cat $COUNT"
watched "$last" 2
