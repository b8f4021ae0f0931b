"""Results, datasets and Spaces for the Hugging Face Hub: how they are checked, written, uploaded; the leaderboard.

    rows.py         run folder -> row (one a task): every figure, a judge's too, made anew from the log
    answer_checks.py, verdict_checks.py, log_checks.py    what logs and the files beside them must say for that
    submission.py   rows -> one checked submission; what may be published of it
    checks.py       the Hub's file formats, and what results must keep: for `submit` and the leaderboard alike
    files.py        rows -> the files of two repositories, card included
    pushing.py      the files -> a pull request or a branch; a folder -> a repository of its own
    publishing.py   which folders may be published: built datasets and Spaces
    board.py        a results dataset -> leaderboard tables; loads nothing heavy, since a Space runs it

Nothing is uploaded unless a method of `pushing.Pusher` is called. See docs/leaderboard.md and docs/publishing.md.
"""
