"""Numbers, sizes and durations as people read them."""

from __future__ import annotations


def count(number: int) -> str:
    """A number with its thousands apart.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{number:,}"


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "window"), counted(1200, "file"), counted(2, "batch")
    ('1 window', '1,200 files', '2 batches')
    """
    ending = "es" if what.endswith(("s", "ch", "x")) else "s"
    return f"{number:,} {what}{'' if number == 1 else ending}"


def size(number: float) -> str:
    """A number of bytes in the unit that keeps it short.

    >>> size(7), size(1536), size(64 * 2**20), size(10**13)
    ('7 B', '1.5 KiB', '64 MiB', '9.09 TiB')
    """
    if abs(number) < 1024:
        return f"{number:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        number /= 1024
        if abs(number) < 1000 or unit == "PiB":
            return f"{_three(number)} {unit}"
    raise AssertionError("the last unit takes any size")


def seconds(duration: float) -> str:
    """A duration in seconds, in words.

    >>> seconds(0.0042), seconds(0.4), seconds(12.34), seconds(83), seconds(7384)
    ('4 ms', '400 ms', '12.3 s', '1 min 23 s', '2 h 3 min')
    """
    if duration < 0.9995:
        return f"{duration * 1000:.0f} ms"
    if duration < 59.95:
        return f"{_three(duration)} s"
    minutes, rest = divmod(round(duration), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def short(number: float) -> str:
    """A number cut to three digits, for rates.

    >>> short(950), short(12_345), short(3_400_000)
    ('950', '12.3 k', '3.4 M')
    """
    for unit in ("", " k", " M", " G"):
        if abs(number) < 999.5 or unit == " G":
            return f"{_three(number)}{unit}"
        number /= 1000
    raise AssertionError("the last unit takes any number")


def rate(number: float, duration: float) -> str:
    """Return how many a second; an empty string for durations that are too short to tell.

    >>> rate(1000, 0.5), rate(1000, 0.0)
    ('2 k/s', '')
    """
    return f"{short(number / duration)}/s" if duration > 0.001 else ""


def byte_rate(number: float, duration: float) -> str:
    """Return how many bytes a second; an empty string for durations that are too short to tell.

    >>> byte_rate(2**20, 2.0)
    '512 KiB/s'
    """
    return f"{size(number / duration)}/s" if duration > 0.001 else ""


def _three(number: float) -> str:
    """Three digits, without zeros at the end."""
    places = 0 if abs(number) >= 99.95 else 1 if abs(number) >= 9.995 else 2
    text = f"{number:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
