//! Encodes messages of protobuf: numbers, texts, and nested messages. Fields that are 0 or empty
//! are left out, as those are the defaults for readers.

/// The bytes of a message, to which fields are appended.
#[derive(Debug, Default, Clone)]
pub struct Message(pub Vec<u8>);

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const BYTES: u8 = 2;

impl Message {
    /// Appends a number.
    pub fn number(&mut self, field: u32, value: u64) -> &mut Self {
        if value != 0 {
            self.key(field, VARINT);
            self.varint(value);
        }
        self
    }

    /// Appends a number that always has eight bytes.
    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        if value != 0 {
            self.key(field, FIXED64);
            self.0.extend(value.to_le_bytes());
        }
        self
    }

    /// Appends bytes or a text.
    pub fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        if !value.is_empty() {
            self.always(field, value);
        }
        self
    }

    /// Appends a message, also an empty one, as it may be an element of a list.
    pub fn message(&mut self, field: u32, value: &Message) -> &mut Self {
        self.always(field, &value.0);
        self
    }

    /// Appends a text of a list, which is also written if it is empty.
    pub fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.always(field, value.as_bytes());
        self
    }

    /// Appends a packed list of numbers.
    pub fn numbers(&mut self, field: u32, values: &[u64]) -> &mut Self {
        if !values.is_empty() {
            let mut packed = Message::default();
            values.iter().for_each(|value| packed.varint(*value));
            self.always(field, &packed.0);
        }
        self
    }

    /// Appends the fields of another message of the same kind.
    pub fn append(&mut self, fields: &Message) -> &mut Self {
        self.0.extend_from_slice(&fields.0);
        self
    }

    fn always(&mut self, field: u32, value: &[u8]) {
        self.key(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn key(&mut self, field: u32, kind: u8) {
        self.varint(u64::from(field) << 3 | u64::from(kind));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
