use agent::ToolArgs;
use serde::{Deserialize, Deserializer};

#[derive(ToolArgs)]
struct Color {
    #[serde(deserialize_with = "hex")]
    rgb: u32,
}

fn hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let text = String::deserialize(deserializer)?;
    u32::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
}

fn main() {}
