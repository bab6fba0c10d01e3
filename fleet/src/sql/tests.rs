use super::*;

const DIALECTS: [&dyn Dialect; 4] = [&DataFusion, &ClickHouse, &Spark, &DuckDb];

fn selection(values: &[(Column, &str)]) -> Selection {
    let mut selection = Selection {
        event: "cpu".into(),
        ..Selection::default()
    };
    for (column, value) in values {
        selection.add(*column, value).unwrap();
    }
    selection
}

#[test]
fn what_is_typed_stays_in_its_literal() {
    let hostile = r"x' OR 'a'='a\' -- \";
    let standard = r"service = 'x'' OR ''a''=''a\'' -- \'";
    let backslash = r"service = 'x\' OR \'a\'=\'a\\\' -- \\'";
    let expected = [standard, backslash, backslash, standard];
    for (dialect, expected) in DIALECTS.iter().zip(expected) {
        let found = selection(&[(Column::Service, hostile)]).condition_of_side(*dialect);
        assert_eq!(found, expected);
    }
    for control in ["a\nb", "a\0b", "\u{1b}[2J", "\u{9b}"] {
        assert!(Selection::default().add(Column::Host, control).is_err());
    }
}

#[test]
fn what_is_typed_is_no_place_to_be_filled() {
    let selection = selection(&[(Column::Service, "{{of_function}}{{limit}}")]);
    for dialect in DIALECTS {
        let sql = Statement::new(dialect, include_str!("../../sql/hosts.sql"))
            .by(&[])
            .of(&selection)
            .of_function(Some("{{where}}"))
            .limit(7)
            .finish();
        assert!(
            sql.contains("service = '{{of_function}}{{limit}}'"),
            "{sql}"
        );
        assert!(
            sql.contains("WHERE function = '{{where}}' GROUP BY"),
            "{sql}"
        );
        assert!(sql.ends_with("LIMIT 7"), "{sql}");
    }
}

#[test]
fn several_values_of_a_column_are_one_condition() {
    let mut selection = selection(&[
        (Column::Host, "a"),
        (Column::Version, "1"),
        (Column::Host, "b"),
    ]);
    selection.since_ms = Some(5);
    assert_eq!(
        selection.condition(&DataFusion),
        "event = 'cpu' AND begin_ms >= 5 AND host IN ('a', 'b') AND version = '1'"
    );
}

#[test]
fn engines_differ_in_lists_and_in_how_stacks_are_chosen_and_in_nothing_else() {
    let written = DIALECTS.map(|dialect| {
        let sql = Statement::new(dialect, include_str!("../../sql/hosts.sql"))
            .by(&[Column::Version])
            .of(&selection(&[(Column::Service, "nginx")]))
            .of_function(Some("main"))
            .limit(7)
            .finish();
        let any = format!("{}(", dialect.any());
        let nginx = "event = 'cpu' AND service = 'nginx'";
        let stacks = dialect.stacks_of(nginx);
        let words = [
            (&*stacks, "STACKS"),
            (dialect.first(), "FIRST"),
            (dialect.last(), "LAST"),
            (dialect.each(), "EACH"),
            (&any, "ANY("),
        ];
        words
            .iter()
            .fold(sql, |sql, (from, to)| sql.replace(from, to))
    });
    for sql in &written {
        assert!(sql.contains("FROM STACKS GROUP BY"), "{sql}");
        assert_eq!(sql, &written[0]);
    }
}
