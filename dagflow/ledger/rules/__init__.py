"""The rules of a ledger: `append` refuses an entry that breaks one, and `verify` reports it.

Read `rule` (a rule, and the state of the chain before an entry), then `table` (all rules, in order). `chain`, `data`, `query` and
`settings` hold the rules themselves, by what they are about.
"""
