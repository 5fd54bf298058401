"""Extended resources set by hand: what people do with `kubectl patch` on a node's status, done safely.

Pure rules over node and pod objects: `quantities`, `ownership`, `entries`, `requested`, `patches`, `decisions`,
`explain`, `wanted`. One module reaches the cluster: `cluster`. The commands' work: `changing`, `waiting`, `keeping`,
`reading`. The edge: `output`, `progress`, `cli`.
"""
