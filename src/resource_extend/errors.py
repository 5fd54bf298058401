"""What can go wrong, as exceptions whose text is the one line that the operator reads.

Handlers raise these; only `process` turns one into a line on stderr and exit status 128 (specification, protocol 8).

    PluginError
        UsageError          the command line: unknown verb, unknown option, an argument too many
        InputError          the request: not JSON, a wrong type, a text that does not parse
        Undecodable         a text is not JSON or not of the expected shape; says where. Its catcher says what it was
        SettingsError       the configuration file
        ResourceError       the resource's own rules: not enough cards, an invalid record, an unknown node
        StoreError          the node store
            CorruptRecord       a stored value that is no record
            OutcomeUnknown      a write that may or may not have happened
"""


class PluginError(Exception):
    """A failure with a text for people: one line that names the thing and what to do."""


class UsageError(PluginError):
    """The command line is wrong."""


class InputError(PluginError):
    """The request is wrong; nothing was read or written."""


class Undecodable(PluginError):  # noqa: N818 - an error of whoever asked for the decoding
    """Bytes are no JSON, or JSON of another shape than asked for: the reason, with the JSON path."""


class SettingsError(PluginError):
    """The configuration is missing, unreadable or wrong."""


class ResourceError(PluginError):
    """A rule of the resource says no; nothing was written."""


class StoreError(PluginError):
    """The node store cannot be reached, refuses, or holds something unexpected."""


class CorruptRecord(StoreError):  # noqa: N818 - the protocol's own word
    """A stored value is no record of this plugin (specification, protocol 7.5)."""


class OutcomeUnknown(StoreError):  # noqa: N818 - the protocol's own words
    """A write's reply was lost and its effect cannot be told (specification, protocol 7.2)."""
