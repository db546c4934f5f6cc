"""Less work where there is too much of it: rows are kept, and compared with what is worth it.

What is decided here follows from counts alone, never from payload: ``rate`` says how much can be
done, ``learned`` what each basic window is worth, ``allotment`` which of them are asked, ``ages``
which ranges of time that is, and ``recall`` what is missed.  ``control`` ties them together, and
``live`` puts them to work in a session.
"""
