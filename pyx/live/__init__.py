"""Rows that are pushed: what is known of a stream, and the step that joins and keeps its rows.

Who includes whom (right includes left)::

    store <-- live_step <-- stream_joiner <-- ingest <-- session_base
    store <-- silence <-- stream_joiner
    encoding/keys, encoding/varlen, base/output <-- live_step
    arrow/tables, arrow/payload <-- ingest
    store, limited.h <-- limited <-- shedder <-- metered
    session_base <-- metered
    allotment stands alone
"""
