"""A plain scanner of trace text: the same records, tallies and errors as the compiled one.

It works on whole lines and lists of Python integers; slow on purpose, and short enough to be read.
"""

from dataclasses import dataclass, field

LARGEST = 2**63 - 1

(
    COMMENT,
    STATES_DISORDERED,
    EVENTS_DISORDERED,
    MESSAGES_DISORDERED,
    STATES_OVERLAP,
    AFTER_END,
    FOREIGN_MESSAGE,
    COMMUNICATOR_AGAIN,
    INTERCOMMUNICATOR,
    GLOBAL_OPERATION,
    UNENDED,
) = range(11)

PREFIX = ["cpu", "application", "task", "thread"]
NAMES = {
    b"1": [*PREFIX, "begin", "end", "state"],
    b"3": [
        *PREFIX,
        "logical send",
        "physical send",
        *(f"receiver's {name}" for name in PREFIX),
        "logical receive",
        "physical receive",
        "size",
        "tag",
    ],
}
TIMES = {"begin", "end", "time"} | {
    f"{kind} {what}" for kind in ("logical", "physical") for what in ("send", "receive")
}
COUNTS = {
    b"1": "a state record has 8 fields",
    b"2": "an event record has a time and pairs of type and value",
    b"3": "a communication record has 15 fields",
    b"c": "a communicator has an application, an identifier and its number of ranks",
}


class ScanError(Exception):
    """Its arguments are the line and the reason."""


@dataclass
class Layout:
    """What the header says."""

    threads: list[list[int]]
    cpus: int
    unit: int
    duration: int
    application: int
    line: int = 1


@dataclass
class Result:
    """Rows by location, in the order of the file."""

    states: list[list[tuple]]
    events: list[list[tuple]]
    messages: list[list[tuple]]
    communicators: dict[int, list[int]] = field(default_factory=dict)
    tallies: list[list[int]] = field(default_factory=lambda: [[0, 0] for _ in range(11)])
    disordered: list[set[int]] = field(default_factory=lambda: [set(), set(), set()])
    end_elsewhere: int = 0

    def times(self) -> tuple[int, int]:
        """The earliest and the latest time of all records; 0 without any."""
        found = [time for rows in self.states for row in rows for time in row[:2]]
        found += [row[0] for rows in self.events for row in rows]
        found += [time for rows in self.messages for row in rows for time in row[2:6]]
        return min(found, default=0), max(found, default=0)


def scan(text: bytes, layout: Layout) -> Result:
    """Scan the text that follows the first line of a trace."""
    first = [sum(t) for t in _prefixes(layout.threads[layout.application - 1])]
    locations = sum(layout.threads[layout.application - 1])
    result = Result(*([[] for _ in range(locations)] for _ in range(3)))
    *lines, rest = text.split(b"\n")
    number = layout.line
    for number, line in enumerate(lines, layout.line + 1):
        _Line(number, line, layout, first, result).scan()
    if rest:
        number = layout.line + len(lines) + 1
        try:
            _Line(number, rest, layout, first, result).scan()
        except ScanError:
            raise ScanError(number, "the file ends in the middle of a record") from None
        result.tallies[UNENDED] = [1, number]
    return result


def _prefixes(threads: list[int]) -> list[list[int]]:
    return [threads[:task] for task in range(len(threads))]


def quoted(text: bytes) -> str:
    """Text as it may stand in a message of one line."""
    shown = "".join(chr(b) if 0x20 <= b < 0x7F else f"\\x{b:02x}" for b in text[:24])
    return f"'{shown}...'" if len(text) > 24 else f"'{shown}'"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


class _Line:
    def __init__(self, number, line, layout, first, result) -> None:
        self.number = number
        self.fields = line.removesuffix(b"\r").split(b":")
        self.kind = self.fields[0]
        self.comment = line.startswith(b"#")
        self.layout = layout
        self.first = first
        self.result = result
        self.at = 2  # the number of the next field

    def fail(self, reason: str):
        raise ScanError(self.number, reason)

    def note(self, notice: int) -> None:
        tally = self.result.tallies[notice]
        tally[0] += 1
        tally[1] = tally[1] or self.number

    def scan(self) -> None:
        if self.comment:
            self.note(COMMENT)
        elif self.fields == [b""]:
            pass
        elif self.kind in COUNTS and len(self.fields) == 1:
            self.fail_count()
        elif self.kind in (b"i", b"I"):
            self.note(INTERCOMMUNICATOR)
        elif self.kind == b"4":
            self.note(GLOBAL_OPERATION)
        elif self.kind in COUNTS:
            {b"1": self.state, b"2": self.event, b"3": self.message, b"c": self.communicator}[
                self.kind
            ]()
        else:
            self.fail(f"unknown record type {quoted(self.kind)}")

    def name(self) -> str:
        if self.kind == b"c":
            return ["application", "identifier", "number of ranks", "rank"][min(self.at, 5) - 2]
        if self.kind == b"2":
            names = [*PREFIX, "time"]
            return names[self.at - 2] if self.at < 7 else ("value", "type")[self.at % 2]
        return NAMES[self.kind][self.at - 2]

    def fail_count(self):
        self.fail(f"{COUNTS[self.kind]}, this line has {plural(len(self.fields), 'field')}")

    def number_field(self, last: bool = False) -> int:
        """The next field; whether the line then goes on must be as `last` says."""
        text, name = self.fields[self.at - 1], self.name()

        def wrong(problem: str):
            self.fail(f"field {self.at} ({name}) {problem}")

        limit = LARGEST // self.layout.unit if name in TIMES else LARGEST
        bits = 64
        if name in ("type", "state"):
            limit, bits = (2**32 - 1 if name == "type" else 2**31 - 1), 32
        if name == "value":
            limit = 2**64 - 1
        if not text:
            wrong("is empty")
        negative = text[:1] == b"-"
        digits = text[negative:]
        if not digits or digits.strip(b"0123456789"):
            wrong(f"is not a number: {quoted(text)}")
        if negative and name not in ("value", "tag"):
            wrong(f"is negative: {quoted(text)}")
        if negative:
            limit = 2**63
        digits = digits.lstrip(b"0") or b"0"
        value = int(digits) if len(digits) <= 20 else limit + 1
        if value > limit:
            unit = " in nanoseconds" if name in TIMES and self.layout.unit > 1 else ""
            wrong(f"does not fit {bits} bits{unit}: {quoted(text)}")
        if (self.at == len(self.fields)) != last:
            self.fail_count()
        self.at += 1
        value = -value if negative else value
        return value - 2**64 if name == "value" and value > LARGEST else value

    def time(self) -> int:
        return self.number_field() * self.layout.unit

    def locate(self) -> int | None:
        """Location, or None if it is another application's."""
        layout = self.layout
        cpu, application, task, thread = (self.number_field() for _ in range(4))

        def outside(who: str, where: str, count: int):
            self.fail(f"{who} is outside {where}, which has {count}")

        if layout.cpus and cpu > layout.cpus:
            outside(f"cpu {cpu}", "the header", layout.cpus)
        if not 1 <= application <= len(layout.threads):
            outside(f"application {application}", "the header", len(layout.threads))
        tasks = layout.threads[application - 1]
        if not 1 <= task <= len(tasks):
            outside(f"task {task}", f"application {application}", len(tasks))
        if not 1 <= thread <= tasks[task - 1]:
            where = f"task {task} of application {application}"
            outside(f"thread {thread}", where, tasks[task - 1])
        if application != layout.application:
            return None
        return self.first[task - 1] + thread - 1

    def state(self) -> None:
        location = self.locate()
        begin, end = self.time(), self.time()
        state = self.number_field(last=True)
        if end < begin:
            self.fail(f"the state ends before it begins (begin {begin} ns, end {end} ns)")
        if location is None:
            self.result.end_elsewhere = max(self.result.end_elsewhere, end)
            return
        if end > self.layout.duration:
            self.note(AFTER_END)
        rows = self.result.states[location]
        last_begin, last_end, _ = rows[-1] if rows else (0, 0, 0)
        if begin < last_begin:
            self.result.disordered[0].add(location)
            self.note(STATES_DISORDERED)
        elif begin < last_end:
            self.note(STATES_OVERLAP)
        rows.append((begin, end, state))

    def event(self) -> None:
        location = self.locate()
        time = self.time()
        pairs = []
        while self.at <= len(self.fields):
            type_ = self.number_field()
            pairs.append((time, type_, self.number_field(last=self.at == len(self.fields))))
        if location is None:
            self.result.end_elsewhere = max(self.result.end_elsewhere, time)
            return
        if time > self.layout.duration:
            self.note(AFTER_END)
        rows = self.result.events[location]
        if rows and time < rows[-1][0]:
            self.result.disordered[1].add(location)
            self.note(EVENTS_DISORDERED)
        rows.extend(pairs)

    def message(self) -> None:
        sender = self.locate()
        logical_send, physical_send = self.time(), self.time()
        receiver = self.locate()
        logical_receive, physical_receive = self.time(), self.time()
        size = self.number_field()
        tag = self.number_field(last=True)
        if sender is None or receiver is None:
            if sender is not receiver:
                self.note(FOREIGN_MESSAGE)
            return
        if max(physical_send, physical_receive) > self.layout.duration:
            self.note(AFTER_END)
        rows = self.result.messages[sender]
        if rows and physical_send < rows[-1][3]:
            self.result.disordered[2].add(sender)
            self.note(MESSAGES_DISORDERED)
        times = (logical_send, physical_send, logical_receive, physical_receive)
        rows.append((sender, receiver, *times, size, tag))

    def communicator(self) -> None:
        application = self.number_field()
        applications = len(self.layout.threads)
        if not 1 <= application <= applications:
            self.fail(f"application {application} is outside the header, which has {applications}")
        number = self.number_field()
        listed = len(self.fields) - 4
        size = self.number_field(last=listed == 0)
        if size != listed:
            self.fail(f"communicator {number} lists {plural(listed, 'rank')}, not {size}")
        tasks = len(self.layout.threads[application - 1])
        ranks = []
        for rank in range(size):
            task = self.number_field(last=rank + 1 == size)
            if not 1 <= task <= tasks:
                where = f"application {application}, which has {tasks}"
                self.fail(f"task {task} is outside {where}")
            ranks.append(task - 1)
        if application != self.layout.application:
            return
        known = self.result.communicators.get(number)
        if known is not None and known != ranks:
            self.note(COMMUNICATOR_AGAIN)
        self.result.communicators[number] = ranks
