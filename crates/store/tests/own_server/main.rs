//! The PostgreSQL store on a server of the test's own: one that crashes, that is full, that speaks TLS.
//!
//! It is started from the programs of this machine. Without them the tests are listed as ignored.

mod failing;
mod server;
mod tls;
mod under_a_run;

use std::process::ExitCode;

use futures::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Trial};

use crate::server::Programs;

type Test = fn(Programs) -> LocalBoxFuture<'static, ()>;

const TESTS: [(&str, Test); 9] = [
    (
        "a_connection_that_is_cut_in_a_write_is_a_temporary_error",
        |programs| Box::pin(failing::cut_in_a_write(programs)),
    ),
    (
        "connections_that_were_cut_at_rest_are_made_again",
        |programs| Box::pin(failing::cut_at_rest(programs)),
    ),
    (
        "a_server_that_crashes_loses_nothing_that_was_written",
        |programs| Box::pin(failing::crashed_server(programs)),
    ),
    (
        "i6_a_server_that_crashes_under_a_run_costs_it_nothing",
        |programs| Box::pin(under_a_run::crashes(programs)),
    ),
    (
        "i6_a_refused_write_for_want_of_room_leaves_nothing",
        |programs| Box::pin(failing::want_of_room(programs)),
    ),
    ("i6_a_full_disk_loses_nothing", |programs| {
        Box::pin(failing::full_disk(programs))
    }),
    ("tls_to_a_server_whose_authority_is_trusted", |programs| {
        Box::pin(tls::trusted_authority(programs))
    }),
    ("tls_to_a_server_that_signed_itself", |programs| {
        Box::pin(tls::self_signed(programs))
    }),
    ("tls_is_refused_where_it_proves_nothing", |programs| {
        Box::pin(tls::refused(programs))
    }),
];

#[expect(clippy::print_stdout, reason = "what is skipped is said")]
fn main() -> ExitCode {
    let programs = Programs::find();
    if programs.is_none() {
        println!(
            "skipped: the programs of PostgreSQL are not here, or there is nobody to run them"
        );
    }
    let trials = TESTS.map(|(name, test)| {
        let programs = programs.clone();
        let skipped = programs.is_none();
        let trial = Trial::test(name, move || {
            let programs = programs.ok_or("no programs of PostgreSQL")?;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(test(programs));
            Ok(())
        });
        trial.with_ignored_flag(skipped)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}
