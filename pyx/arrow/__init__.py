"""Columns as Arrow lays them out: tables read and results handed out by the C interfaces.

Who includes whom (right includes left)::

    arrow_c.h <-+- tables <-------------- payload
                +- payload.h <-+- payload_rows.h <-- gather.h <-- payload
                               +- payload_file.h <-------------- payload
"""
