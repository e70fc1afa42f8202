"""Compiles many planted faults into one program, each behind a number that STRETTO_FAULT chooses at run time.

A fault within the body of a function doubles that body:

    int f(int n) { if (::stretto_fault(7)) { return n - 1; } else { return n; } }

so that any change of any statement can be chosen, declarations and parts of expressions too. A constant outside of
functions becomes `stretto_fault(7) ? new : old`. What is neither (a list of initialisers, a constexpr function, a
declaration) is built alone by tools/mutate.py.
"""

import dataclasses
import re

HEADER_NAME = "stretto_fault_switch.h"
HEADER = """#pragma once

#include <cstdlib>

// A fault may leave out the use of a variable or of a function.
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"

/// Whether the fault of this number is the one that STRETTO_FAULT names. Written by tools/mutate.py.
inline bool stretto_fault(int number) {
  static const int chosen = [] {
    const char* value = std::getenv("STRETTO_FAULT");
    return value == nullptr ? 0 : std::atoi(value);
  }();
  return chosen == number;
}
"""

CONSTANT = re.compile(r"(?s)\s*(?P<static>static |inline )*constexpr (?P<type>[\w:<>, *]+?) (?P<name>\w+)\s*"
                      r"(?:=\s*(?P<value>[^;{}]+)|\{(?P<braced>[^;{}]*)\})\s*$")
SEPARATED = re.compile(r"(?<!u)[0-9a-fA-F]$")  # what stands before a separator within a number
RAW_STRING = re.compile(r'R"([^()\\\s]{0,16})\(')
SCOPES = re.compile(r"\b(namespace|class|struct|union|enum)\b|extern\s*$")


@dataclasses.dataclass(frozen=True)
class Body:
    """What stands between the braces of a function, [begin, end) of the text."""

    begin: int
    end: int
    head: str


def blanked(text):
    """The text with spaces for comments, strings and characters, and for directives of the preprocessor."""
    out, at = list(text), 0

    def blank(begin, end):
        for i in range(begin, end):
            if out[i] != "\n":
                out[i] = " "

    while at < len(text):
        two = text[at:at + 2]
        if two == "//":
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
        elif two == "/*":
            end = text.find("*/", at) + 2
        elif text[at] == "#" and not text[text.rfind("\n", 0, at) + 1:at].strip():
            end = at
            while True:
                end = text.find("\n", end)
                if end < 0 or text[end - 1] != "\\":
                    break
                end += 1
            end = len(text) if end < 0 else end
        elif raw := RAW_STRING.match(text, at):
            end = text.find(")" + raw.group(1) + '"', at) + len(raw.group(1)) + 2
        elif text[at] == '"' or (text[at] == "'" and not SEPARATED.search(text, max(0, at - 2), at)):
            end = at + 1
            while text[end] != text[at]:
                end += 2 if text[end] == "\\" else 1
            end += 1
        else:
            at += 1
            continue
        blank(at, end)
        at = end
    return "".join(out)


def closing(code, begin):
    """Behind the brace that closes the one at `begin`."""
    depth = 0
    for at in range(begin, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at + 1
    raise ValueError("a brace is not closed")


def is_function(head):
    """Whether a brace behind this text opens the body of a function."""
    head = re.sub(r"\boperator\s*(\(\)|\[\]|[^\s\w(]+)", "operator_", head)
    head = re.sub(r"\btemplate\s*<.*?>\s*(?=[\w:\[])", "", head, flags=re.S)
    begins = head.find("(")
    return begins >= 0 and "=" not in head[:begins] and not SCOPES.match(head.strip())


def bodies(text):
    """The bodies of all functions outside of functions, by their place."""
    code, found = blanked(text), []
    at, head_at, depth = 0, 0, 0  # depth of parentheses
    while at < len(code):
        c = code[at]
        if c in "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif depth == 0 and c in ";}":
            head_at = at + 1
        elif depth == 0 and c == "{":
            head, end = code[head_at:at], closing(code, at)
            follows = code[end:].lstrip()[:1]
            if is_function(head) and follows not in (",", "{"):
                found.append(Body(at + 1, end - 1, head))
                at, head_at = end, end
                continue
            if is_function(head) or "=" in head or not SCOPES.search(head):
                at = end  # an initialiser
                continue
            head_at = at + 1  # into the namespace or the class
        at += 1
    return found


def statement_around(text, begin, end):
    """[begin, end) of the statement outside of functions that holds this part; its semicolon is not in it."""
    code = blanked(text)
    first = max(code.rfind(c, 0, begin) for c in ";{}") + 1
    first += len(code[first:]) - len(code[first:].lstrip())  # behind comments
    if any(c in code[begin:end].rstrip().rstrip(";") for c in ";"):
        return None
    last = code.find(";", max(begin, end - 1 if code[begin:end].rstrip().endswith(";") else end))
    return (first, last) if last >= 0 else None


def switched_constant(old, new, number):
    """A constant that is chosen at run time; None where the two are not values of one constant."""
    was, now = CONSTANT.match(old), CONSTANT.match(new)
    if not was or not now or (was["type"], was["name"]) != (now["type"], now["name"]):
        return None
    values = [match["value"] or match["braced"] for match in (now, was)]
    leading = old[:len(old) - len(old.lstrip())]
    return (f"{leading}inline {'static ' if 'static' in old.split('constexpr')[0] else ''}const {was['type']} {was['name']} = "
            f"::stretto_fault({number}) ? ({values[0]}) : ({values[1]})")


@dataclasses.dataclass
class Site:
    """Where the faults of one function, or of one constant, are in a file."""

    begin: int
    end: int
    faults: list
    body: bool


def sites_of(text, faults):
    """(sites, faults that cannot be switched) of the faults of one file; they have `old`, `new` and `number`."""
    functions, sites, alone = bodies(text), {}, []
    for fault in faults:
        begin = text.index(fault.old)
        end = begin + len(fault.old)
        body = next((one for one in functions if one.begin <= begin and end <= one.end), None)
        if body is not None:
            if re.search(r"\bconst(expr|eval)\b", body.head):
                alone.append(fault)
            else:
                sites.setdefault(body.begin, Site(body.begin, body.end, [], True)).faults.append(fault)
            continue
        around = statement_around(text, begin, end)
        made = None
        if around is not None and around[0] not in sites:
            statement = text[around[0]:around[1]]
            made = switched_constant(statement, replaced(text, around[0], around[1], fault).rstrip("; \n"), 0)
        if made is None:
            alone.append(fault)
        else:
            sites[around[0]] = Site(around[0], around[1], [fault], False)
    return sorted(sites.values(), key=lambda site: site.begin), alone


def replaced(text, begin, end, fault):
    """The part [begin, end) of the text with this fault, which may reach over the end by a semicolon."""
    at = text.index(fault.old)
    return text[begin:at] + fault.new + text[at + len(fault.old):max(end, at + len(fault.old))]


def switched(text, sites):
    """(the text with all of these faults, for each line of a fault those that it may be of)"""
    out, done, owners = [], 0, {}

    def add(part, faults):
        first = "".join(out).count("\n") + 1
        out.append(part)
        for number in range(first, first + part.count("\n") + 1):
            owners.setdefault(number, []).extend(faults)

    for site in sites:
        out.append(text[done:site.begin])
        sound = text[site.begin:site.end]
        if site.body:
            for fault in site.faults:
                mutated = replaced(text, site.begin, site.end, fault)
                add(f" if (::stretto_fault({fault.number})) {{{mutated}\n", [fault])
                out.append("} else")
            out.append(f" {{{sound}\n}}\n")
        else:
            fault = site.faults[0]
            mutated = replaced(text, site.begin, site.end, fault).rstrip("; \n")
            add(switched_constant(sound, mutated, fault.number), [fault])
        done = site.end
    out.append(text[done:])
    include = f'#include "{HEADER_NAME}"\n'
    whole = "".join(out)
    # Behind `#pragma once`, which stands first in a header.
    at = whole.index("\n") + 1 if whole.startswith("#pragma once") else 0
    return whole[:at] + include + whole[at:], {number + 1: faults for number, faults in owners.items()}
