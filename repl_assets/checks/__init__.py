"""Asset checks, what they examine, and the job that runs all of them.

Keep out of here: definitions of assets, repairs.
"""
