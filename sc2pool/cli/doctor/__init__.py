"""`sc2pool doctor`: looks at the installation, the machine and a running game, and says what is so.

    probes (place, machine, examine, stepping, realtime)   act, and note what they measured
    checks                                                  the table: what is looked at, and why
    judge_machine, judge_game                               pure: a measurement → a verdict
    report                                                  the findings, for people and as JSON

Rules: nothing here knows which game it looks at; a probe notes figures and never an opinion; a
game that is missing, broken or hung ends the probes that need it, and is told as a finding.
"""
