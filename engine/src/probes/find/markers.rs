//! Probes at places that programmers marked (USDT).
//!
//! A marker may be at several places of a file, and each may have its arguments in other registers.
//! The kernel side has one list of values for a probe. So places become one probe if all wanted
//! values are in the same registers; without values all places of a marker are one probe.

use super::{Found, Refused, Search, plan};
use crate::probes::expression::Values;
use crate::probes::modules::Module;
use probe::call::{EndPlan, FunctionPlan, SitePlan};
use regex::Regex;
use std::sync::Arc;
use symbolize::LinkAddr;
use symbolize::sites::{self, Language, Marker, Refusal, Site};

/// Functions and refusals, or a sentence why there is no such place.
type Answer = Result<(Vec<Found>, Vec<Refused>), String>;

/// Why a place cannot be probed.
enum NoMarker {
    Refused(Refusal),
    /// The wanted arguments cannot be read: a sentence.
    Values(String),
}

impl From<Refusal> for NoMarker {
    fn from(reason: Refusal) -> Self {
        NoMarker::Refused(reason)
    }
}

/// Finds every matching place: those with this name, else all whose names match the pattern.
pub fn find(modules: &[&Module], name: &str, pattern: Option<&Regex>, search: &Search) -> Answer {
    if search.values.has_results() {
        return Err("a marker returns nothing: leave out `ret`".into());
    }
    let all: Vec<(&Module, Marker)> = modules
        .iter()
        .flat_map(|module| {
            let markers = module.sites.markers().into_iter();
            markers.map(|marker| (*module, marker))
        })
        .collect();
    let mut meant: Vec<&(&Module, Marker)> = all
        .iter()
        .filter(|(_, marker)| marker.name == name)
        .collect();
    if let (true, Some(pattern)) = (meant.is_empty(), pattern) {
        let fits = |(_, marker): &&(&Module, Marker)| pattern.is_match(&marker.name);
        meant = all.iter().filter(fits).collect();
    }
    let (mut found, mut refused, mut without) = (Vec::new(), Vec::new(), None);
    for ((module, marker), site) in meant.iter().zip(sites_of(&meant)) {
        let added = site
            .map_err(NoMarker::Refused)
            .and_then(|site| add(module, marker, site, search, &mut found));
        match added {
            Ok(()) => {}
            Err(NoMarker::Refused(reason)) => refused.push(Refused {
                name: format!("usdt:{}", marker.name),
                module: module.name(),
                reason,
                no_value: None,
            }),
            Err(NoMarker::Values(why)) => {
                without.get_or_insert(why);
                refused.push(Refused {
                    name: format!("usdt:{}", marker.name),
                    module: module.name(),
                    reason: Refusal::NoArgument,
                    no_value: None,
                });
            }
        }
    }
    // A place that lacks an argument is left out, with a note, if other places have it.
    if let (true, Some(why)) = (found.is_empty(), without) {
        return Err(why);
    }
    // If arguments are at different places, each place is a probe, which needs a name of its own.
    for number in 0..found.len() {
        let name = found[number].name.clone();
        let later = found[number + 1..]
            .iter_mut()
            .filter(|other| other.name == name);
        for (place, other) in (2..).zip(later) {
            other.name = format!("{name} #{place}");
        }
    }
    Ok((found, refused))
}

/// Returns the language of the function at each marker, and its site. Those of one file are asked
/// for together.
fn sites_of(markers: &[&(&Module, Marker)]) -> Vec<Result<(Language, Site), Refusal>> {
    let is_same =
        |a: &&(&Module, Marker), b: &&(&Module, Marker)| Arc::ptr_eq(&a.0.sites, &b.0.sites);
    let of_file = |markers: &[&(&Module, Marker)]| {
        let addrs: Vec<LinkAddr> = markers.iter().map(|(_, marker)| marker.addr).collect();
        let found = markers
            .first()
            .map(|(module, _)| module.sites.place_markers(&addrs));
        match found {
            Some(Ok(found)) => found,
            Some(Err(_)) | None => vec![Err(Refusal::Unreadable); addrs.len()],
        }
    };
    markers.chunk_by(is_same).flat_map(of_file).collect()
}

/// Adds a place to the probe with the same name and arguments, or as a new one.
fn add(
    module: &Module,
    marker: &Marker,
    (language, site): (Language, Site),
    search: &Search,
    found: &mut Vec<Found>,
) -> Result<(), NoMarker> {
    sites::check_file(&module.path)?;
    let semaphore = sites::semaphore(module.segments(), marker)?;
    let values = search
        .values
        .iter()
        .map(|value| value.at_marker(&marker.arguments))
        .collect::<Result<Vec<_>, _>>()
        .and_then(Values::new)
        .map_err(|why| NoMarker::Values(format!("usdt:{}: {why}", marker.name)))?;
    let name = format!("usdt:{}", marker.name);
    let same = |probe: &Found| probe.name == name && probe.values == values;
    let probe = match found.iter().position(same) {
        Some(at) => &mut found[at],
        None => {
            found.push(Found {
                name,
                module: module.name(),
                address: marker.addr.0,
                language: match language {
                    // Its registers are given in the note, and no goroutine is needed.
                    Language::Go => Language::C,
                    language => language,
                },
                sites: Vec::new(),
                return_sites: 0,
                plans: Vec::new(),
                sees_ends: false,
                is_program: module.is_program,
                extents: Vec::new(),
                values,
                types: None,
                point: None,
            });
            found.last_mut().expect("it was added")
        }
    };
    probe.is_program &= module.is_program;
    probe.sites.push(site);
    probe.plans.push(FunctionPlan {
        file: Arc::clone(&module.file),
        entry: SitePlan {
            semaphore: semaphore.map(|offset| offset.0),
            ..plan(&site)
        },
        ends: EndPlan::Unseen,
        is_go: false,
    });
    Ok(())
}
