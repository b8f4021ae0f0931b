"""Check, write and upload results, datasets and Spaces for the Hugging Face Hub, and build the leaderboard.

    rows.py         run folder -> row (one per task): every score, a judge's too, computed again from the log
    answer_checks.py, log_checks.py    checks of logs and of the files beside them
    submission.py   rows -> one checked submission, restricted to publishable data
    checks.py       the Hub's file formats, and rules for results: for `publish submission` and for the leaderboard
    files.py        rows -> the files of two repositories, card included
    pushing.py      the files -> a pull request or a branch; a folder -> a separate repository
    publishing.py   which folders may be published: built datasets and Spaces
    board.py        a results dataset -> leaderboard tables; loads nothing heavy, since a Space runs it

Nothing is uploaded unless a method of `pushing.Pusher` is called. See docs/leaderboard.md and docs/publishing.md.
"""
