"""Columns as Arrow lays them out: tables read and results handed out by the C interfaces.

Who includes whom (right includes left)::

    arrow_c.h   <-+- tables <---------------------------- payload
                  +- tables, where.h <-------------------- reader
    spill_log.h <-+- payload.h <-+- gather_block.h <-- gather.h <-- payload
                                 +- payload_wide.h <-- payload_rows.h <-- gather.h
                                 +- payload_file.h <--------------- payload
"""
