//! The climb's meter over real processes: all that the other files do to servers, as `dyno_climb` asks for it.

use dyno_climb::dial::Setting;
use dyno_climb::meter::{Clock, Describe, Described, Length, Look, Measured, Meter, Opening, Trouble};
use dyno_climb::proof::{Proof, Reading};
use dyno_record::profile::Profile;
use dyno_sys::clock::mono_ns;

use crate::launch::{Arm, World, described};

impl Meter for World<'_> {
    type Arm = Arm;

    fn build(&mut self, setting: &Setting) -> Result<(), Trouble> {
        self.check_interrupt()?;
        self.built(setting).map(|_| ())
    }

    fn open(&mut self, what: Opening<'_, Arm>) -> Result<Arm, Trouble> {
        self.check_interrupt()?;
        match what {
            Opening::Server(spec) => self.open_server(spec),
            Opening::Floor { like, load } => self.open_floor_of(like, load),
        }
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

    fn close(&mut self, arm: Arm) {
        self.tally.close(arm.clock.read_ns().unwrap_or(arm.seen_ns).saturating_sub(arm.seen_ns));
        self.stop(arm);
    }
}

impl Clock for World<'_> {
    /// It stands still while something is built: a climb's time is for measuring.
    fn now_ns(&self) -> u64 {
        mono_ns() - self.builds.took_ns
    }
}

impl Look for World<'_> {
    fn profile(&mut self, arm: &mut Arm, for_ns: u64) -> Result<Profile, String> {
        let host = self.stand(&arm.spec.setting);
        host.map_err(|trouble| trouble.to_string())?;
        self.profile_of(arm, for_ns)
    }
}

impl Describe for World<'_> {
    fn describe(&self, setting: &Setting) -> Described {
        described(self.plan, setting)
    }
}
