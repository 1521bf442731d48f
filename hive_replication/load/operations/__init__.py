"""What a load does to the target, as data: each operation says what it touches, what it leaves and what it does to names.

Keep out of here: decisions. Self-contained operations carry themselves out; the others are carried out in ``load.apply``.
"""
