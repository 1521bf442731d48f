"""Plans loads: a window of events or a dump of objects, and the state of the target, become operations.

Keep out of here: input and output. The source's log is asked through the protocol ``Lookahead``. Only ``gate`` compares an event
id with a state id.
"""
