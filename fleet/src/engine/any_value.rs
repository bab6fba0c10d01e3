//! The SQL function `any_value` for many groups, such as the stacks of a day. The engine's own one keeps
//! an object for each group, and `DISTINCT` compares all lists of frames: both take several times as
//! long, and more memory.

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array, new_null_array};
use arrow::compute::{interleave, nullif, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use std::sync::Arc;

/// Returns the function, which takes the place of the engine's own one.
pub fn function() -> AggregateUDF {
    AggregateUDF::from(AnyValue {
        signature: Signature::any(1, Volatility::Immutable),
    })
}

/// The first value of each group that is not NULL, in the order in which rows come; NULL if there is
/// none.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AnyValue {
    signature: Signature,
}

impl AggregateUDFImpl for AnyValue {
    fn name(&self) -> &'static str {
        "any_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [kind] => Ok(kind.clone()),
            _ => internal_err!("any_value has one argument"),
        }
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let kind = arguments.return_type().clone();
        Ok(vec![Arc::new(Field::new(arguments.name, kind, true))])
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneGroup(Values::new(&arguments))))
    }

    fn groups_accumulator_supported(&self, _arguments: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Values::new(&arguments)))
    }
}

/// Where the value of a group is: an index in [`Values::arrays`], and one in that array; `None` if the
/// group has no value yet.
type Place = Option<(u32, u32)>;

/// The values of groups. Only rows that are the first ones of their groups are copied.
#[derive(Debug)]
struct Values {
    kind: DataType,
    arrays: Vec<ArrayRef>,
    /// The memory of these arrays.
    bytes: usize,
    /// By group.
    places: Vec<Place>,
}

impl Values {
    fn new(arguments: &AccumulatorArgs) -> Self {
        Self {
            kind: arguments.return_field.data_type().clone(),
            arrays: Vec::new(),
            bytes: 0,
            places: Vec::new(),
        }
    }

    /// Adds the rows that are the first ones of their groups, of those that are counted.
    fn add(
        &mut self,
        values: &ArrayRef,
        groups: &[usize],
        is_counted: impl Fn(usize) -> bool,
        groups_total: usize,
    ) -> Result<()> {
        self.places.resize(groups_total, None);
        let array = self.arrays.len() as u32;
        let mut rows: Vec<u32> = Vec::new();
        for (row, group) in groups.iter().enumerate() {
            let place = &mut self.places[*group];
            if place.is_none() && values.is_valid(row) && is_counted(row) {
                *place = Some((array, rows.len() as u32));
                rows.push(row as u32);
            }
        }
        if !rows.is_empty() {
            let first = take(values, &UInt32Array::from(rows), None)?;
            self.bytes += first.get_array_memory_size();
            self.arrays.push(first);
        }
        Ok(())
    }

    /// Returns the values at some places.
    fn at(&self, places: &[Place]) -> Result<ArrayRef> {
        let none = new_null_array(&self.kind, 1);
        let mut arrays: Vec<&dyn Array> = self.arrays.iter().map(|it| &**it).collect();
        arrays.push(&none);
        let index = |place: &Place| match place {
            Some((array, row)) => (*array as usize, *row as usize),
            None => (self.arrays.len(), 0),
        };
        let indices: Vec<(usize, usize)> = places.iter().map(index).collect();
        Ok(interleave(&arrays, &indices)?)
    }

    /// Releases the values of groups that were emitted.
    fn keep_the_rest(&mut self) -> Result<()> {
        let rest = self.at(&self.places)?;
        for (row, place) in self.places.iter_mut().enumerate() {
            *place = place.map(|_| (0, row as u32));
        }
        self.bytes = rest.get_array_memory_size();
        self.arrays = vec![rest];
        Ok(())
    }
}

impl GroupsAccumulator for Values {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_total: usize,
    ) -> Result<()> {
        let is_counted = |row: usize| filter.is_none_or(|filter| is_passed(filter, row));
        self.add(&values[0], groups, is_counted, groups_total)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        groups_total: usize,
    ) -> Result<()> {
        self.add(&values[0], groups, |_| true, groups_total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let emitted = emit_to.take_needed(&mut self.places);
        let values = self.at(&emitted)?;
        self.keep_the_rest()?;
        Ok(values)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let Some(filter) = filter else {
            return Ok(vec![Arc::clone(&values[0])]);
        };
        let is_left_out = (0..filter.len()).map(|row| !is_passed(filter, row));
        let is_left_out = BooleanArray::from(is_left_out.collect::<Vec<bool>>());
        Ok(vec![nullif(&values[0], &is_left_out)?])
    }

    fn size(&self) -> usize {
        self.bytes + self.places.capacity() * size_of::<Place>()
    }
}

/// Whether a filter lets a row through: NULL does not.
fn is_passed(filter: &BooleanArray, row: usize) -> bool {
    filter.is_valid(row) && filter.value(row)
}

/// The value of all rows, without GROUP BY.
#[derive(Debug)]
struct OneGroup(Values);

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let groups = vec![0; values[0].len()];
        self.0.add(&values[0], &groups, |_| true, 1)
    }

    fn merge_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // There may have been no rows.
        self.0.places.resize(1, None);
        let value = self.0.evaluate(EmitTo::All)?;
        ScalarValue::try_from_array(&value, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array, ListArray, UInt64Array};
    use arrow::datatypes::{Int64Type, UInt64Type};
    use arrow::record_batch::RecordBatch;
    use datafusion::execution::memory_pool::FairSpillPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::prelude::{SessionConfig, SessionContext};

    /// Returns the sorted rows of a statement about a table of 20,000 rows, of which 7 follow each other with the
    /// same number and list. Of every third number the list is NULL in the first four rows, and of every fifth in all.
    fn answer(sql: &str) -> Vec<(Option<i64>, Option<Vec<u64>>)> {
        let rows = 20_000;
        let number = |row: i64| row / 7;
        let list = |row: i64| {
            let number = number(row);
            let is_none = number % 5 == 0 || number % 3 == 0 && row % 7 < 4;
            (!is_none).then(|| (number..number + number % 4).map(|it| Some(it as u64)))
        };
        let numbers = Int64Array::from_iter_values((0..rows).map(number));
        let lists = ListArray::from_iter_primitive::<UInt64Type, _, _>((0..rows).map(list));
        let columns = [
            ("number", Arc::new(numbers) as ArrayRef),
            ("list", Arc::new(lists)),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let config = SessionConfig::new()
            .with_target_partitions(3)
            .with_batch_size(512);
        let context = SessionContext::new_with_config(config);
        context.register_udaf(function());
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let batches = runtime.block_on(async {
            context.register_batch("t", batch).unwrap();
            context.sql(sql).await.unwrap().collect().await.unwrap()
        });
        let mut answer = Vec::new();
        for batch in &batches {
            let numbers = batch.column(0).as_primitive::<Int64Type>();
            let lists = batch.column(1).as_list::<i32>();
            for row in 0..batch.num_rows() {
                let list = lists.is_valid(row).then(|| {
                    let list = lists.value(row);
                    list.as_primitive::<UInt64Type>().values().to_vec()
                });
                answer.push((numbers.is_valid(row).then(|| numbers.value(row)), list));
            }
        }
        answer.sort();
        answer
    }

    #[test]
    fn a_group_has_the_list_of_one_of_its_rows() {
        let all = answer("SELECT number, any_value(list) FROM t GROUP BY number");
        assert_eq!(all.len(), 20_000_usize.div_ceil(7));
        for (number, list) in all {
            let number = number.unwrap();
            let expected = (number % 5 != 0)
                .then(|| (number..number + number % 4).map(|it| it as u64).collect());
            assert_eq!(list, expected, "{number}");
        }
    }

    #[test]
    fn rows_that_are_filtered_out_give_no_value() {
        let filtered =
            "SELECT number, any_value(list) FILTER (WHERE number % 2 = 0) FROM t GROUP BY number";
        for (number, list) in answer(filtered) {
            let number = number.unwrap();
            assert_eq!(
                list.is_some(),
                number % 2 == 0 && number % 5 != 0,
                "{number}"
            );
        }
    }

    #[test]
    fn a_single_value_is_one_of_the_table() {
        // Several threads read the table, so that it can be that of any row.
        let one = answer("SELECT any_value(number), any_value(list) FROM t");
        let [(_, Some(list))] = &one[..] else {
            panic!("{one:?}");
        };
        assert!(list.is_sorted());
        let none = answer("SELECT max(number), any_value(list) FROM t WHERE number < 0");
        assert_eq!(none[0].1, None);
    }
    fn values() -> Values {
        Values {
            kind: DataType::UInt64,
            arrays: Vec::new(),
            bytes: 0,
            places: Vec::new(),
        }
    }

    fn numbers(array: &ArrayRef) -> Vec<Option<u64>> {
        array.as_primitive::<UInt64Type>().iter().collect()
    }

    #[test]
    fn groups_that_were_emitted_need_no_memory() {
        let mut values = values();
        let batch: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..1000));
        let groups: Vec<usize> = (0..1000).collect();
        values.update_batch(&[batch], &groups, None, 1001).unwrap();
        let all = values.size();
        let first = values.evaluate(EmitTo::First(998)).unwrap();
        assert_eq!(numbers(&first)[997], Some(997));
        assert!(values.size() < all / 2, "{} of {all}", values.size());
        // What comes later is of the groups that are left, whose numbers begin at 0 now.
        let batch: ArrayRef = Arc::new(UInt64Array::from(vec![7, 8, 9]));
        values.update_batch(&[batch], &[0, 2, 3], None, 4).unwrap();
        let rest = values.evaluate(EmitTo::All).unwrap();
        assert_eq!(numbers(&rest), [Some(998), Some(999), Some(8), Some(9)]);
        assert_eq!(numbers(&values.evaluate(EmitTo::All).unwrap()), []);
    }

    #[test]
    fn rows_as_state_are_those_that_the_filter_lets_through() {
        let batch: ArrayRef = Arc::new(UInt64Array::from(vec![Some(1), Some(2), None, Some(4)]));
        let filter = BooleanArray::from(vec![Some(true), Some(false), Some(true), None]);
        let state = values().convert_to_state(&[Arc::clone(&batch)], Some(&filter));
        assert_eq!(numbers(&state.unwrap()[0]), [Some(1), None, None, None]);
        let state = values().convert_to_state(&[Arc::clone(&batch)], None);
        assert_eq!(numbers(&state.unwrap()[0]), numbers(&batch));
    }

    #[test]
    fn with_little_memory_values_go_to_temporary_files() {
        let rows = 200_000;
        let numbers = Int64Array::from_iter_values((0..rows).map(|it| it % 100_000));
        let list = |row: i64| Some((0..20).map(move |it| Some((row % 100_000 + it) as u64)));
        let lists = ListArray::from_iter_primitive::<UInt64Type, _, _>((0..rows).map(list));
        let batch = RecordBatch::try_from_iter([
            ("number", Arc::new(numbers) as ArrayRef),
            ("list", Arc::new(lists)),
        ]);
        let pool = Arc::new(FairSpillPool::new(12 << 20));
        let environment = RuntimeEnvBuilder::new().with_memory_pool(pool);
        let config = SessionConfig::new().with_target_partitions(2);
        let context = SessionContext::new_with_config_rt(config, environment.build_arc().unwrap());
        context.register_udaf(function());
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let sql = "SELECT count(*) AS groups, count(list) AS lists \
                   FROM (SELECT number, any_value(list) AS list FROM t GROUP BY number) g";
        let batches = runtime.block_on(async {
            context.register_batch("t", batch.unwrap()).unwrap();
            context.sql(sql).await.unwrap().collect().await.unwrap()
        });
        for column in batches[0].columns() {
            assert_eq!(column.as_primitive::<Int64Type>().values(), &[100_000]);
        }
    }
}
