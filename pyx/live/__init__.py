"""Rows that are pushed: what is known of a stream, and the step that joins and keeps its rows.

Who includes whom (right includes left)::

    contents <-- store <-- silence <-- store_step <-- ingest <-- session_base
    store_step <-- live_step <-- stream_joiner
    store_step <-- stream_storer
    encoding/keys, encoding/varlen, base/output <-- store_step
    arrow/reader, arrow/payload <-- ingest
    store, limited.h <-- limited <-- shedder <-- metered
    session_base <-- metered
    allotment stands alone
"""
