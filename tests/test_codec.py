"""Decoding is strict and exact, encoding is sorted and plain (specification, protocol 4 and 5)."""

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from resource_extend.codec import INT64_MAX, INT64_MIN, decode, encode
from resource_extend.errors import Undecodable
from resource_extend.exact import decode_exactly


class Inner(Struct):
    """A member of a request that is a struct itself."""

    count: int = 0
    names: list[str] = []


class Keyed(Struct):
    """A struct that cares whether a key is given."""

    cards: dict[str, int] | None | UnsetType = UNSET


class Everything(Struct):
    """Every kind of type that requests and records are made of."""

    name: str | None = None
    number: int | None = None
    plain: int = 0
    flag: bool | None = None
    cards: dict[str, int] = {}
    text: str = ""
    size: int | str | None = None
    inner: Inner | None = None
    keyed: Keyed | None = None
    inners: list[Inner | None] | None = None
    strict: list[Inner] = []


def refusal(text: bytes) -> str:
    """Decode something that must not decode, and return the reason."""
    with pytest.raises(Undecodable) as caught:
        decode(text, Everything)
    return str(caught.value)


@pytest.mark.parametrize(
    "literal",
    ["2", "2.0", "2e0", "0.2e1", "20e-1", "2.000", "200E-2", "2" + "0" * 5000 + "e-5000", "0.000000002e+9", "2e-0"],
)
def test_integral_number(literal: str) -> None:
    """A number with an integral value is that integer, however it is spelt."""
    assert decode(b'{"number":%s}' % literal.encode(), Everything).number == 2


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("9007199254740993", 9007199254740993),
        ("9007199254740993.0", 9007199254740993),
        ("9223372036854775807", INT64_MAX),
        ("9223372036854775807.000", INT64_MAX),
        ("922337203685477580700e-2", INT64_MAX),
        ("-9223372036854775808", INT64_MIN),
        ("-9.223372036854775808e18", INT64_MIN),
        ("1e18", 10**18),
        ("-0", 0),
        ("-0.0", 0),
        ("0e99999999999999999999999", 0),
        ("0.000e-99999999999999999999999", 0),
    ],
)
def test_exact_to_the_ends_of_int64(literal: str, value: int) -> None:
    """No integer is rounded through a double, up to both ends of int64."""
    assert value == decode(b'{"number":%s}' % literal.encode(), Everything).number


BEYOND_INT64 = [
    "9223372036854775808",
    "-9223372036854775809",
    "9223372036854775808.0",
    "18446744073709551616",
    "1e19",
    "-1e400",
    "1e999999999",
    "1e+" + "9" * 5000,
    "1.5e999999999",
    "1" * 4000,
    "-" + "1" * 5000,
    "1" * 100_000,
]


@pytest.mark.parametrize("literal", BEYOND_INT64, ids=lambda literal: literal[:12])
def test_integer_out_of_range(literal: str) -> None:
    """An integral value beyond int64 is refused where an integer belongs, of whatever length, with its path."""
    assert refusal(b'{"number":%s}' % literal.encode()) == "integer out of range at $.number"
    assert refusal(b'{"cards":{"a b":%s}}' % literal.encode()) == "integer out of range at $.cards.a b"
    assert refusal(b'{"strict":[{},{"count":%s}]}' % literal.encode()) == "integer out of range at $.strict[1].count"


@pytest.mark.parametrize(
    "literal", [*BEYOND_INT64, "1e-999999999", "1e-" + "9" * 5000, "0.1", "-1.5E+3"], ids=lambda literal: literal[:12]
)
def test_numbers_in_ignored_parts(literal: str) -> None:
    """A number under a key that nobody asks for is never a reason to fail, also beside one that is looked at twice."""
    assert decode(b'{"x":%s}' % literal.encode(), Everything) == Everything()
    assert decode(b'{"number":2.0,"x":[%s],"inner":{"y":%s}}' % (literal.encode(), literal.encode()), Everything) == (
        Everything(number=2, inner=Inner())
    )


def test_long_digits_in_texts_stay() -> None:
    """Digits in a text are a text, however many; also with quotes and a number beyond int64 beside them."""
    digits = "7" * 5000
    text = json.dumps({"name": f'"{digits}\\', "cards": {digits: 1}, "x": int("9" * 4000)})

    assert decode(text.encode(), Everything) == Everything(name=f'"{digits}\\', cards={digits: 1})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"number":2.5}', "expected int, got float at $.number"),
        (b'{"number":1e-400}', "expected int, got float at $.number"),
        (b'{"number":1e-%s}' % (b"9" * 5000), "expected int, got float at $.number"),
        (b'{"number":"2"}', "expected int, got str at $.number"),
        (b'{"number":true}', "expected int, got bool at $.number"),
        (b'{"number":[]}', "expected int, got array at $.number"),
        (b'{"number":{}}', "expected int, got object at $.number"),
        (b'{"flag":"false"}', "expected bool, got str at $.flag"),
        (b'{"flag":0}', "expected bool, got int at $.flag"),
        (b'{"name":1}', "expected str, got int at $.name"),
        (b'{"name":0.5}', "expected str, got float at $.name"),
        (b'{"cards":[]}', "expected object, got array at $.cards"),
        (b'{"cards":{"a":"2"}}', "expected int, got str at $.cards.a"),
        (b'{"inner":"x"}', "expected object, got str at $.inner"),
        (b'{"inner":{"names":["a",null]}}', "expected str, got null at $.inner.names[1]"),
        (b'{"inner":{"names":"a"}}', "expected array, got str at $.inner.names"),
        (b'{"strict":[null]}', "expected object, got null at $.strict[0]"),
        (b'{"inners":{}}', "expected array, got object at $.inners"),
        (b'{"size":1.5}', "expected int, got float at $.size"),
        (b'{"keyed":{"cards":3}}', "expected object, got int at $.keyed.cards"),
        (b"[]", "expected object, got array at $"),
        (b'"x"', "expected object, got str at $"),
        (b"1", "expected object, got int at $"),
        (b"1.5", "expected object, got float at $"),
        (b"true", "expected object, got bool at $"),
    ],
    ids=lambda value: value[:40].decode() if isinstance(value, bytes) else "",
)
def test_wrong_type_names_the_place(text: bytes, reason: str) -> None:
    """A wrong type is an error of the specified words, with the JSON path."""
    assert reason == refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"  \n",
        b"nul",
        b"{",
        b'{"number":1',
        b"{}x",
        b"{} {}",
        b"{}\x00",
        b"\xef\xbb\xbf{}",
        b'{"x":NaN}',
        b'{"x":Infinity}',
        b'{"number":-Infinity}',
        b'{"x":01}',
        b'{"x":%s}' % (b"0" * 5000),
        b'{"x":1.}',
        b'{"x":.5}',
        b'{"x":+1}',
        b'{"x":[1,]}',
        b'{"x":{"a":1,}}',
        b'{"x":"a\nb"}',
        rb'{"x":"\q"}',
        rb'{"x":"\u12"}',
        b"{'number':1}",
        b'{"number" 1}',
        b"// c\n{}",
    ],
)
def test_broken_json(text: bytes) -> None:
    """What is no JSON is refused as a whole, also where the fault lies in what would be ignored."""
    assert "" != refusal(text)


@pytest.mark.parametrize("text", [b"", b" \t\r\n"])
def test_empty_text(text: bytes) -> None:
    """Nothing at all is an error that says so."""
    assert "the text is empty" == refusal(text)


@pytest.mark.parametrize("text", [b'{"name":"\xff"}', b'{"x":"\xff"}', b'{"x":"\xed\xa0\x80"}', b'{"\xc3":1}'])
def test_invalid_utf8(text: bytes) -> None:
    """Bytes that are no UTF-8 are refused with their position, also in what is ignored."""
    assert f"invalid UTF-8 at byte {next(i for i, byte in enumerate(text) if byte > 127)}" == refusal(text)


@pytest.mark.parametrize("escape", [r"\ud800", r"\uD800x", r"\udc00", r"\ud800\ud800", r"\udfff\ud83d", r"\ud800\n"])
@pytest.mark.parametrize("place", ['{"name":"%s"}', '{"x":"%s..........."}', '{"x":{"%s":1}}', '{"cards":{"%s":1}}'])
def test_lone_surrogate(escape: str, place: str) -> None:
    """An escaped half of a surrogate pair is refused wherever it stands: it is no text."""
    assert "" != refusal((place % escape).encode())


def test_surrogate_pair() -> None:
    """An escaped pair of surrogates is the character that it stands for."""
    assert decode(rb'{"name":"\ud83d\ude00","x":"\\ud800"}', Everything).name == "\U0001f600"


@pytest.mark.parametrize("place", [b'{"x":%s}', b'{"number":%s}', b'{"number":2.0,"x":%s}', b"%s"])
@pytest.mark.parametrize(("left", "right"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_nesting(place: bytes, left: bytes, right: bytes) -> None:
    """Nesting beyond what the decoder handles is an error like any other, no crash."""
    assert "nested too deeply" == refusal(place % (left * 100_000 + b"1" + right * 100_000))


def test_nulls_are_zero_values() -> None:
    """A null member is its zero value; only an element of an array must be something."""
    text = b"""{"name":null,"number":null,"plain":null,"flag":null,"cards":null,"text":null,"size":null,"inner":null,
        "inners":[null,{"count":null,"names":null}],"strict":null}"""

    assert decode(text, Everything) == Everything(inners=[None, Inner()])
    assert decode(b'{"cards":{"a":null}}', Everything).cards == {"a": 0}


@pytest.mark.parametrize("text", [b"null", b"{}", b" \t\r\n{} \n", b" null "])
def test_top_level_null(text: bytes) -> None:
    """Top-level null is the same as an empty object; white space around is fine."""
    assert decode(text, Everything) == Everything()


def test_presence() -> None:
    """A key that holds null is given, a missing one is not."""
    assert decode(b'{"keyed":{}}', Everything) == Everything(keyed=Keyed())
    assert decode(b'{"keyed":{"cards":null}}', Everything) == Everything(keyed=Keyed(None))
    assert decode(b'{"keyed":{"cards":null},"number":1e0}', Everything) == Everything(keyed=Keyed(None), number=1)
    assert decode(b'{"keyed":{},"number":1e0}', Everything) == Everything(keyed=Keyed(), number=1)


def test_keys() -> None:
    """Keys are case-sensitive, unknown ones are ignored, of a doubled one the last holds."""
    assert decode(b'{"Number":5,"NAME":[1]}', Everything) == Everything()
    assert decode(b'{"number":5,"number":6}', Everything).number == 6
    assert decode(b'{"number":"x","number":6.0}', Everything).number == 6
    assert decode(b'{"cards":{"a":1,"a":2}}', Everything).cards == {"a": 2}
    assert decode(b'{"inner":{"count":1},"inner":{"names":["a"]}}', Everything).inner == Inner(0, ["a"])


# The values below are built to hit the types of Everything often, and to miss them in every way.
numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([INT64_MAX, INT64_MIN, INT64_MAX + 1, INT64_MIN - 1, 10**25]),
    st.sampled_from([0.5, 2.0, -3.0, 1e18, 1e19, 1e300, 1e-5]),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=3))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["count", "names", "cards", "a", "b"]), inner, max_size=3),
    ),
    max_leaves=6,
)
inner_like = st.fixed_dictionaries({}, optional={"count": numbers, "names": st.lists(st.text(max_size=2), max_size=2)})
plausible: dict[str, st.SearchStrategy[Any]] = {
    "name": st.text(max_size=3),
    "number": numbers,
    "plain": numbers,
    "flag": st.booleans(),
    "cards": st.dictionaries(st.text(max_size=2), st.one_of(st.none(), numbers), max_size=3),
    "text": st.text(max_size=3),
    "size": st.one_of(numbers, st.text(max_size=3)),
    "inner": inner_like,
    "keyed": st.fixed_dictionaries({}, optional={"cards": st.dictionaries(st.text(max_size=2), numbers, max_size=2)}),
    "inners": st.lists(st.one_of(st.none(), inner_like), max_size=3),
    "strict": st.lists(inner_like, max_size=3),
}
requests = st.fixed_dictionaries(
    {},
    optional={
        "unknown": values,
        **{key: st.one_of(st.none(), good, good, good, values) for key, good in plausible.items()},
    },
)


class Refused(Exception):
    """The reference says no."""


def integer(value: Any) -> int:
    """Read an integer as the specification has it."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)) or value != int(value):
        raise Refused
    if not INT64_MIN <= value <= INT64_MAX:
        raise Refused
    return int(value)


def a(kind: type, value: Any) -> Any:
    """Read a text, a flag, a list or an object, null being the empty one."""
    if value is None:
        return kind()
    if type(value) is not kind:
        raise Refused
    return value


def inner(value: Any) -> Inner:
    """Read an Inner."""
    value = a(dict, value)
    names = a(list, value.get("names"))
    if not all(isinstance(name, str) for name in names):
        raise Refused
    return Inner(integer(value.get("count")), names)


def cards(value: Any) -> dict[str, int]:
    """Read a keyed map of integers."""
    return {key: integer(count) for key, count in a(dict, value).items()}


def reference(text: str) -> Everything | None:
    """Decode by another JSON parser and by plain rules; None stands for a refusal."""
    value = json.loads(text, parse_float=Fraction)

    def optional(key: str, read: Any) -> Any:
        return None if value.get(key) is None else read(value[key])

    def element(item: Any) -> Inner:
        if item is None:
            raise Refused
        return inner(item)

    try:
        return Everything(
            name=optional("name", lambda item: a(str, item)),
            number=optional("number", integer),
            plain=integer(value.get("plain")),
            flag=optional("flag", lambda item: a(bool, item)),
            cards=cards(value.get("cards")),
            text=a(str, value.get("text")),
            size=optional("size", lambda item: item if isinstance(item, str) else integer(item)),
            inner=optional("inner", inner),
            keyed=optional(
                "keyed",
                lambda item: Keyed(
                    UNSET if "cards" not in a(dict, item) else None if item["cards"] is None else cards(item["cards"])
                ),
            ),
            inners=optional("inners", lambda items: [None if i is None else inner(i) for i in a(list, items)]),
            strict=[element(item) for item in a(list, value.get("strict"))],
        )
    except Refused:
        return None


@settings(max_examples=800)
@given(requests, st.booleans())
def test_decodes_as_the_rules_say(request: dict[str, Any], escaped: bool) -> None:
    """Both ways of decoding take and refuse what the rules of the specification do, and read the same value."""
    text = json.dumps(request, ensure_ascii=escaped)
    expected = reference(text)
    for way in (decode, decode_exactly):
        if expected is None:
            with pytest.raises(Undecodable, match=r"^(expected \w+, got \w+|integer out of range) at \$"):
                way(text.encode(), Everything)
        else:
            assert expected == way(text.encode(), Everything)


def test_encoding() -> None:
    """Answers are compact UTF-8, sorted by the bytes of the keys, without HTML escapes."""
    cards = {"b": 1, "\uffee": 2, "\U0001f600": 3, "a\u00e9": 4, "a<&>": 5, "B": 6, "ab": 7, "a": 8}

    inside = ",".join(f'"{key}":{cards[key]}' for key in sorted(cards, key=lambda key: key.encode()))
    assert encode({"m": cards}).decode() == '{"m":{' + inside + "}}"


@given(st.dictionaries(st.text(max_size=4), st.integers(INT64_MIN, INT64_MAX)))
def test_what_is_written_reads_back(cards: dict[str, int]) -> None:
    """Decoding what was encoded gives the same value, and equal values are equal texts."""
    written = encode(Everything(cards=cards))

    assert decode(written, Everything) == Everything(cards=cards)
    assert written == encode(Everything(cards=dict(reversed(cards.items()))))
