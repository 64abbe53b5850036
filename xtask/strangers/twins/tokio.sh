#!/bin/bash
# A server on tokio with its client, both built from crates.io; the variant is FIRST+SECOND, as tokio.rs takes them.
# shellcheck source=../common.sh
. "$(dirname "$0")/../common.sh"
IFS=+ read -r first second <<<"$variant"
mkdir -p "$work/src" && cp "$here/tokio.rs" "$work/src/main.rs" && cp "$here/tokio.toml" "$work/Cargo.toml" && cd "$work" || exit 1
# What it is built from stays for the next start.
export CARGO_TARGET_DIR="$work/../tokio-target"
cargo build --release --quiet || exit 1
cp "$CARGO_TARGET_DIR/release/work" "$work/work"
start "$work/work" serve "$port" "$first" "$second"
server=$last
listening
start "$work/work" ask "$port" "$work/count"
echo "participant $last"
echo "count cat $work/count"
watched "$server" 2
