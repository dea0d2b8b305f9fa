"""SBE messages: Aeron Archive's own, generated, and their generator.

`generated.archive` holds the control protocol and the catalog's records, `generated.mark` the mark
file's header; `generate` writes both from Aeron's schemas, and they share `runtime`. `payloads`
decodes users' messages, by the users' schemas, into Arrow columns.
"""
