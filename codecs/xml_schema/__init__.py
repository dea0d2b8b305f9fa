"""SBE schemas in XML: `reader.read_xml` parses and checks one, and returns its `Schema`.

The rules are those of the SBE 1.0 standard; where it leaves a choice, offsets, versions and null
values are those that sbe-tool computes, so that a schema has the same tree from XML and `.sbeir`.
"""
