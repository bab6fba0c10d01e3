use super::*;
use profile::{Ending, Frame as StoreFrame, ModuleId, NewSample, ProcessDetails, ProcessId, Rates};

/// A profile of two services on one host; `moved` is how far the kernel was moved when it started.
fn store(moved: u64) -> Store {
    let mut store = Store::new(Limits::default());
    store.set_info(Info {
        rates: Rates::always(19),
        host: profile::Host {
            name: "db-01".into(),
            cpus: 4,
            ..profile::Host::default()
        },
        epoch_unix_ms: 1_795_269_000_000,
        lost: 3,
        ..Info::default()
    });
    store.begin(2_000_000_000);
    store.add_module(ModuleId(1), "postgres", "/usr/bin/postgres");
    store.set_build_id(ModuleId(1), &[0xab; 20]);
    store.add_module(ModuleId(2), "[kernel]", "");
    for (id, pid, comm, cgroup) in [
        (
            1,
            10,
            "postgres",
            "/system.slice/postgresql@15-main.service",
        ),
        (
            2,
            20,
            "postgres",
            "/system.slice/postgresql@15-main.service",
        ),
        (3, 30, "cat", "/user.slice/user-0.slice"),
    ] {
        store.add_process(ProcessId(id), pid, comm);
        store.set_process_details(
            ProcessId(id),
            ProcessDetails {
                cgroup: Some(cgroup.into()),
                ..ProcessDetails::default()
            },
        );
    }
    let user = |address| StoreFrame {
        module: ModuleId(1),
        address,
        kind: FrameKind::User,
    };
    let kernel = StoreFrame {
        module: ModuleId(2),
        address: 0xffff_ffff_8100_0000 + moved,
        kind: FrameKind::Kernel,
    };
    for (process, frames, kernel_frames, weight) in [
        (1, vec![user(0x10), user(0x20)], 0, 5),
        (2, vec![user(0x10), user(0x20)], 0, 2),
        (3, vec![kernel], 1, 1),
    ] {
        store.add_sample(NewSample {
            time_ns: 3_000_000_000,
            cpu: 0,
            process: ProcessId(process),
            tid: process,
            comm: "worker",
            frames: &frames,
            kernel_frames,
            ending: Ending::Root,
            weight,
        });
    }
    let id = store.find_frame(&kernel).unwrap();
    store.set_name(id, NameState::Named("vfs_read".into()));
    store.end(62_000_000_000);
    store
}

fn window(moved: u64, version: Version) -> Window {
    let labels = Labels {
        version,
        ..Labels::default()
    };
    of_store(&store(moved), &labels)
}

#[test]
fn processes_of_a_unit_are_one_service_and_nothing_is_lost() {
    let window = window(0, Version::BuildId);
    assert_eq!(window.total(), 8);
    assert_eq!(window.period_ns, 1_000_000_000 / 19);
    assert_eq!(
        (window.begin_ms, window.duration_ms),
        (1_795_269_002_000, 60_000)
    );
    assert_eq!((window.lost_samples, window.host.cpus), (3, 4));
    let services: Vec<(&str, &str, u64)> = window
        .services
        .iter()
        .map(|it| {
            (
                &*it.name,
                &*it.version,
                it.samples.iter().map(|it| it.1).sum(),
            )
        })
        .collect();
    assert_eq!(
        services,
        [("cat", "", 1), ("postgresql@15-main", "abababababab", 7)]
    );
}

#[test]
fn stacks_have_the_same_numbers_on_each_host() {
    let text = Version::Text("7".into());
    let (here, there) = (window(0, text.clone()), window(0x1f_0000, text));
    let ids = |window: &Window| -> Vec<u64> { window.stacks.iter().map(|it| it.id).collect() };
    assert_eq!(ids(&here), ids(&there));
    assert_eq!(here.services, there.services);
    assert_eq!(here.services[0].version, "7");
}
