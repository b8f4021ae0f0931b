"""Diagnosis by intervention: a model is told the truth of one level of a question, and is asked the same again.

`conditions` plans what is asked with which aids, `running` asks it by ordinary runs, `estimates` says what the answers
tell, and `records` keeps and words it.
"""
