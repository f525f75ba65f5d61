"""The values of settings, by the type of the field that they are for.

Read in this order:

1. `units`: sizes and durations with a unit, such as `Bytes` and `Seconds`; `hints`: the annotations of fields.
2. `conversion`: a value from text, TOML or code, as the annotation wants it.
3. `field_docs`: the description of a field.
"""
