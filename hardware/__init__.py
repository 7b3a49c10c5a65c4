"""Machine descriptions: dataclasses and one TOML file a machine."""
