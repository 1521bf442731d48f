"""Goes back to an earlier state (undo), and removes what going back needs once it is old enough (retention).

Keep out of here: anything that a load needs; commands and jobs use it.
"""
