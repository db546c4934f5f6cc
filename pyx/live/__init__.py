"""Rows that are pushed: what is known of a stream, and the step that joins and keeps its rows.

Who includes whom (right includes left)::

    store <-- silence <-- stream_joiner <-- ingest <-- session_base
    encoding/keys, encoding/varlen, base/output <-- stream_joiner
    arrow/tables, arrow/payload <-- ingest
    store, limited.h <-- limited <-- shedder <-- metered
    session_base <-- metered
    allotment stands alone
"""
