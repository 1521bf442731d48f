"""``python -m tests.crash.workload --minutes N``: see ``random_work``. Children import this module again: no code here."""

if __name__ == "__main__":
    import sys

    from tests.crash.random_work import main

    sys.exit(main())
