"""Bootstrap dumps: reads the objects of a database and folds the events of that time over them.

Keep out of here: event dumps, and how records are written.
"""
