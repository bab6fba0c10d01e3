//! What a step back undoes, in words.

use crate::knobs::Knobs;
use crate::words::units;

/// Returns what going back from `here` to `there` undoes, such as `filter comm:postgres`.
/// None if the same samples count: that another view opens can be seen.
pub fn words(here: &Knobs, there: &Knobs) -> Option<String> {
    let mut undone = Vec::new();
    if here.scope != there.scope {
        let left = here.scope.last().map(|narrowing| &narrowing.words);
        undone.push(left.map_or_else(|| "the whole".into(), |words| format!("only {words}")));
    }
    if here.filter != there.filter {
        undone.push(match here.filter.to_string().as_str() {
            "" => "no filter".to_owned(),
            filter => format!("filter {filter}"),
        });
    }
    if here.window != there.window {
        undone.push(units::window(here.window));
    }
    if here.metric != there.metric {
        undone.push("metric".into());
    }
    if here.unit != there.unit {
        undone.push("unit".into());
    }
    if here.shows_difference != there.shows_difference {
        undone.push("difference".into());
    }
    (!undone.is_empty()).then(|| undone.join(", "))
}
