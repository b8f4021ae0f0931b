"""The command on this machine: doctor."""

from __future__ import annotations

from barista_bench.cli.app import LOOK, Json, app, print_json, print_result


@app.command(rich_help_panel=LOOK)
def doctor(json: Json = False) -> None:
    """Say what this machine has (Python, GPUs, codecs, optional parts, caches), and what adds the rest."""
    from itertools import groupby

    from barista_bench.doctor import examine

    facts = examine()
    if json:
        print_json(facts)
        return
    for topic, findings in groupby(facts, key=lambda finding: finding.topic):
        print_result(topic)
        for finding in findings:
            print_result(f"  {finding.verdict:<7}  {finding.name:<13} {finding.found}")
            if finding.remedy:
                print_result(f"{'':<25}{finding.remedy}")
