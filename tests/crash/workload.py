"""``python -m tests.crash.workload --minutes N``: see ``random_work``. Children run this module again, so it holds nothing."""

if __name__ == "__main__":
    import sys

    from tests.crash.random_work import main

    sys.exit(main())
