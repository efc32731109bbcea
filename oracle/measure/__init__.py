"""Real ranks of the real engine on the CPU, with every live storage and every collective recorded.

`recorder` sees storages come and go, `rest` says what each one that stays belongs to, `calls` hears the
communication library, `case` builds what a case describes, `rank` trains it on one rank, `ranks` forks the ranks.
`../measure_server.py` answers cases, `sweep` and `situations` write the files under `knowledge/measured`.
"""
