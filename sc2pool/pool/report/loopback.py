"""Which names a server on the loopback address answers to.

A page from elsewhere can have its own name lead to 127.0.0.1 (DNS rebinding), and would then read
what such a server says. Rule: it answers only requests whose Host header names the loopback
address, with any port, because a tunnel may have another.
"""

from __future__ import annotations

from ipaddress import ip_address

REFUSAL = b"ask for 127.0.0.1 or localhost\n"
"""The answer to a request under another name, with the status 421, Misdirected Request."""


def names_loopback(host: str) -> bool:
    """True if a host, as in a URL or a Host header, is the loopback address of this machine."""
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
