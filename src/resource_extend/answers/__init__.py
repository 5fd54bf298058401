"""The answers of the verbs, one struct each, in the protocol's own words (specification, protocol 3 and 5).

Each family of verbs has its module, so that a call pays for the structs of its own verb only.
"""
