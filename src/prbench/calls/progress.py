"""How far something is, in words."""


def clock(seconds: float) -> str:
    """A duration as a person says it.

    Example:
        >>> clock(42), clock(250), clock(7300)
        ('42 s', '4 min 10 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
