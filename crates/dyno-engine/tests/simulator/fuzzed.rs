//! Simulations that a fuzzer makes: its bytes say how everybody behaves and what the clients send.
//!
//! `fuzz/src/server.rs` calls it. What comes out is judged as with seeds: by the plain model of HTTP.

use crate::simulator::check::check;
use crate::simulator::content::HAS_CONTENT;
use crate::simulator::handlers::HAS_SILENT;
use crate::simulator::net::Manner;
use crate::simulator::run::split;
use crate::simulator::world::{Mode, Scenario, World};

/// Bytes in front that say how: seed, mode, manner, room, handlers.
const HEADER_BYTES: usize = 8;
/// Between what two clients send: no byte of HTTP.
const NEXT_CLIENT: u8 = 0xff;
const CLIENTS_MAX: usize = 3;

/// Runs one, to its end.
///
/// # Panics
/// When the server did not answer as the model says.
pub fn simulate(data: &[u8]) {
    if let Some(scenario) = scenario(data) {
        let mut world = World::new(scenario, false);
        world.run();
        check(&world);
    }
}

fn scenario(data: &[u8]) -> Option<Scenario> {
    let (header, sent) = data.split_at_checked(HEADER_BYTES)?;
    let [seed_a, seed_b, mode, manner, room, salt_a, salt_b, flags] = header.try_into().ok()?;
    let mode = [Mode::Patient, Mode::Slow, Mode::Draining, Mode::Rude, Mode::Tight][usize::from(mode) % 5];
    let is_on = |bit: u8| manner >> bit & 1 == 1;
    let manner =
        Manner { reads_on: is_on(0), tells_once: is_on(1), replies_alone: is_on(2), splits: is_on(3) };
    let room_max = [200, 5_000, 60_000, 1 << 20][usize::from(room) % 4];
    let room_max = if mode == Mode::Slow { room_max.max(5_000) } else { room_max };
    let scripts: Vec<_> = sent.split(|byte| *byte == NEXT_CLIENT).take(CLIENTS_MAX).map(split).collect();
    let silent = if matches!(mode, Mode::Rude | Mode::Tight) { HAS_SILENT } else { 0 };
    let content = if flags & 1 == 1 { HAS_CONTENT } else { 0 };
    let salt = u32::from_le_bytes([salt_a, salt_b, 0, 0]) | silent | content;
    Some(Scenario {
        seed: u64::from_le_bytes([seed_a, seed_b, 0, 0, 0, 0, 0, 0]),
        mode,
        scripts,
        manner,
        room_max,
        salt,
    })
}
