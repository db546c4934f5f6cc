"""Rows that are pushed: what is known of a stream, and the step that joins and keeps its rows.

Who includes whom (right includes left)::

    store <-- silence <-- feed <-- ingest <-- door
    encoding/keys, encoding/records, base/output <-- feed
    arrow/tables, arrow/payload <-- ingest
    store, limited.h <-- limited <-- shedder <-- metered
    door <-- metered
"""
