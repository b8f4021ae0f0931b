"""Results to the Hugging Face Hub: what a submission is, how it is checked, written and uploaded, and the leaderboard.

    rows.py         run folder -> row (one a task): the log checked, every figure made anew from it
    judged_rows.py  the same of a judge, where its figure stands for the run's
    submission.py   rows -> one checked submission; what may be published of it
    checks.py       the Hub's file formats, and what results must keep: for `submit` and the leaderboard alike
    files.py        rows -> the files of three repositories, card included; the dataset folder's own check
    pushing.py      the files -> a pull request or a branch
    board.py        a results dataset -> leaderboard tables; loads nothing heavy, since a Space runs it

Nothing is uploaded unless `pushing.push` is called. See docs/leaderboard.md.
"""
