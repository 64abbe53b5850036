//! The flags of `dyno serve --bytes-report`, which are about an account and no settings of serving.

use clap::Args;

/// The help heading of flags that are about the settings and are none themselves.
pub(crate) const ON_SETTINGS: &str = "Settings";

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct BytesFlags {
    /// Print how many bytes each file's reply has, of what kind, and what they cost, or those of one path; do not serve
    #[arg(
        long,
        value_name = "PATH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = ON_SETTINGS,
        conflicts_with_all = ["check", "show_config"]
    )]
    pub(crate) bytes_report: Option<String>,
    /// With --bytes-report: what a gigabyte costs that leaves the server, in any currency
    #[arg(long, value_name = "PRICE", requires = "bytes_report", value_parser = positive, help_heading = ON_SETTINGS)]
    pub(crate) price_per_gb: Option<f64>,
    /// With --bytes-report: how many such replies are sent
    #[arg(long, value_name = "N", default_value = "1000", value_parser = positive, help_heading = ON_SETTINGS)]
    pub(crate) requests_per_second: f64,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("it takes a number above 0".to_owned()),
    }
}
