//! The climb's meter over real processes: all that the other files do to servers, as `dyno_climb` asks for it.

use dyno_climb::dial::Setting;
use dyno_climb::load::LoadSpec;
use dyno_climb::meter::{ArmSpec, Described, Length, Measured, Meter, Trouble};
use dyno_climb::proof::{Proof, Reading};
use dyno_record::causal::Causal;
use dyno_record::profile::Profile;
use dyno_sys::clock::mono_ns;
use dyno_sys::proc;

use crate::launch::{Arm, World, described};

impl Meter for World<'_> {
    type Arm = Arm;

    fn open(&mut self, spec: &ArmSpec) -> Result<Arm, Trouble> {
        self.check_interrupt()?;
        self.stand(&spec.setting)?;
        self.open_server(spec)
    }

    fn open_floor(&mut self, like: &Arm, load: &LoadSpec) -> Result<Arm, Trouble> {
        self.check_interrupt()?;
        self.open_floor_of(like, load)
    }

    fn turn(&mut self, arm: &mut Arm, setting: &Setting, dial: &str) -> Result<(), Trouble> {
        self.check_interrupt()?;
        arm.spec.setting = setting.clone();
        self.stand(setting)?;
        arm.turn_live(self.plan, setting, dial)
    }

    fn prove(&mut self, arm: &mut Arm, proof: &Proof) -> Result<Reading, Trouble> {
        self.check_interrupt()?;
        self.stand(&arm.spec.setting)?;
        self.prove_on(arm, proof)
    }

    fn block(&mut self, arm: &mut Arm, length: Length) -> Result<Measured, Trouble> {
        self.check_interrupt()?;
        self.stand(&arm.spec.setting)?;
        self.block_on(arm, length)
    }

    fn memory_bytes(&mut self, arm: &Arm) -> u64 {
        // Pages that its processes share count once; where that may not be read, their peaks are summed.
        let of = |pid| proc::pss_bytes(pid).or_else(|_| proc::rss_peak_bytes(pid)).ok();
        arm.processes().into_iter().filter_map(of).sum()
    }

    fn profile(&mut self, arm: &mut Arm, for_ns: u64) -> Result<Profile, String> {
        let host = self.stand(&arm.spec.setting);
        host.map_err(|trouble| trouble.to_string())?;
        self.profile_of(arm, for_ns)
    }

    fn causal(&mut self, arm: &mut Arm, for_ns: u64, seed: u64) -> Result<Causal, String> {
        self.causal_of(arm, for_ns, seed)
    }

    fn memory_left_bytes(&mut self) -> u64 {
        // What cannot be told must not cut anything.
        proc::memory_left_bytes().unwrap_or(u64::MAX)
    }

    fn user_system_ticks(&mut self, arm: &Arm) -> Option<(u64, u64)> {
        let ticks = arm.processes().into_iter().filter_map(|pid| proc::user_system_ticks(pid).ok());
        ticks.reduce(|(user, system), (more_user, more_system)| (user + more_user, system + more_system))
    }

    fn clock(&self, arm: &Arm) -> String {
        arm.clock.name().into()
    }

    fn close(&mut self, arm: Arm) {
        self.tally.close(arm.clock.read_ns().unwrap_or(arm.seen_ns).saturating_sub(arm.seen_ns));
        self.stop(arm);
    }

    fn now_ns(&self) -> u64 {
        mono_ns()
    }

    fn server_cpus(&self) -> usize {
        self.ground.server_cpus.len()
    }

    fn describe(&self, setting: &Setting) -> Described {
        described(self.plan, setting)
    }
}
