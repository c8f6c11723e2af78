"""Carries a program out with symbols for what only a run knows, and notes what it does.

Whole numbers are formulas (SymPy) of P, of parameters and of unknown symbols; real numbers are only
followed as far as they decide something. Loops over few turns are carried out turn by turn. Of
others, the body is carried out once: what it changes by equal steps is known from the number of the
turn, what else it changes is not known. Of a branch that nobody can decide both sides are carried
out, and what they leave differently is not known.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import sympy

from popmodel.source.formula_text import expanded, parts_of, sum_over_turns
from popmodel.source.fortran_text import SUFFIXES as FORTRAN
from popmodel.source.function_calls import FunctionCalls
from popmodel.source.intermediate_form import (
    Assignment,
    Body,
    Branch,
    CountedLoop,
    Declaration,
    Directive,
    Element,
    ExpressionStatement,
    Field,
    Leave,
    Literal,
    Loop,
    SourceOperation,
    SourcePlace,
    SourceProgram,
    Statement,
    Variable,
)
from popmodel.source.openmp_directives import PAID, parsed_directive
from popmodel.source.source_events import (
    Conditional,
    Event,
    Nest,
    RepeatedEvents,
    Tally,
    Work,
)
from popmodel.source.symbolic_evaluation import Ended
from popmodel.source.symbolic_memory import (
    ARGUMENTS,
    THREADS,
    Contents,
    Pointer,
    SourceParameter,
    UnfollowedReal,
    difference,
    further,
    is_known,
    is_undecided,
    named,
)

_CORRECTIONS = 2
"""How often the body of a loop is carried out again where a step was not what a trial said."""
_DEEP = 4
"""Loops inside of each other that are carried out turn by turn, or whose steps are corrected."""
_COSTLY = 1_000
"""Statements of a body that is carried out again once at most."""
_LONG_SUM = 80
"""Parts of a sum over turns that gets a symbol of its own."""
UNROLLED = 12
"""Loops of so many turns are carried out turn by turn."""


class Interpreter(FunctionCalls):
    """Carries a program out."""

    def __init__(self, program: SourceProgram) -> None:
        super().__init__(program)
        self.loop_variables: dict[tuple[SourcePlace, int, sympy.Expr], sympy.Symbol] = {}
        # Of the loops that are carried out: condition, value and state of turns that left early
        self.breaks: list[list[tuple[sympy.Basic, Any, dict[int, Contents]]]] = [[]]
        self.leaves = [False]  # Whether turns of these loops may be the last one by a condition
        self.may_break = False  # The same of the turn that was carried out last
        # What a turn of a loop does, by the identity of loops: the same one each time
        self._bodies: dict[int, tuple[Loop, Body]] = {}
        self.unrolled = 0  # Loops inside of each other that are carried out turn by turn
        self.depth = 0  # Of loops inside of each other

    def run(self, entry: str = "main") -> None:
        """Carry the program out from a function on."""
        for key, declaration in self.program.variables.items():
            memory = self.allocate(declaration.variable.name, declaration.variable.type)
            self.memories[memory].is_open = not declaration.place.file.endswith(FORTRAN)  # Zeros
            self.variables[key] = memory
        for key, declaration in self.program.variables.items():
            if declaration.value is not None:
                self.place = declaration.place
                with suppress(Ended):
                    self._initialise(
                        self.variables[key], (), declaration.value, declaration.variable.type
                    )
        (function,) = [one for one in self.program.functions.values() if one.name == entry]
        arguments: list[Any] = []
        if len(function.parameters) >= 2:
            words = self.allocate("argv", function.parameters[1].type)
            self.memories[words].is_argument_list = True
            arguments = [ARGUMENTS, Pointer(words, (), sympy.Integer(0))]
        arguments += [UnfollowedReal()] * (len(function.parameters) - len(arguments))
        try:
            self.call(function, arguments)
        except Ended:
            pass
        except RecursionError:
            self.note("the program is nested too deeply: followed up to there")

    def carry_out(self, body: Body) -> tuple[str | None, Any]:
        """Carry out statements; how they are left, and the value that is returned."""
        closers: list[tuple[list[Event], Conditional]] = []
        try:
            for statement in body:
                self.steps += 1
                self.place = statement.place
                flow, value = self._statement(statement, closers)
                if flow is not None:
                    return flow, value
            return None, None
        finally:
            for events, conditional in reversed(closers):
                self.path.pop()
                conditional.body = self.events
                self.events = events
                if conditional.body:
                    self.events.append(conditional)

    def _statement(
        self, statement: Statement, closers: list[tuple[list[Event], Conditional]]
    ) -> tuple[str | None, Any]:
        if isinstance(statement, ExpressionStatement):
            self.value(statement.expression)
        elif isinstance(statement, Declaration):
            self._declare(statement)
        elif isinstance(statement, Branch):
            return self._branch(statement, closers)
        elif isinstance(statement, CountedLoop):
            return self._counted(statement, "")
        elif isinstance(statement, Loop):
            return self._loop(statement)
        elif isinstance(statement, Leave):
            given = statement.value
            if isinstance(given, (Variable, Field, Element)) and given.type.kind == "record":
                return statement.what, self._returned_object(self.locate(given))
            return statement.what, None if given is None else self.value(given)
        else:
            return self._directive(statement)
        return None, None

    def _declare(self, declaration: Declaration) -> None:
        variable = declaration.variable
        if declaration.is_reference and isinstance(declaration.value, (Variable, Field, Element)):
            self.frames[-1].others[variable.key] = self.locate(declaration.value)
            return
        memory = self.allocate(variable.name, variable.type)
        self.frames[-1].variables[variable.key] = memory
        self.frames[-1].own.append(memory)
        if declaration.value is not None:
            self._initialise(memory, (), declaration.value, variable.type)
            self._name_parameter(self.state.get(memory, {}).get(()), variable.name)

    def _branch(
        self, branch: Branch, closers: list[tuple[list[Event], Conditional]]
    ) -> tuple[str | None, Any]:
        condition = self.condition(branch.condition)
        if condition in (sympy.true, sympy.false):
            return self.carry_out(branch.then if condition == sympy.true else branch.otherwise)
        before, tally = self.state, self.tally
        first = self._side(condition, branch.then, before, tally)
        second = self._side(sympy.Not(condition), branch.otherwise, before, tally)
        sides = [first, second]
        for number, (flow, _, _, events, _) in enumerate(sides):
            if events and flow != "end":
                holds = condition if number == 0 else sympy.Not(condition)
                self.events.append(Conditional(holds, events, branch.place))
        if tally is not None:
            self.tally = max((side[4] for side in sides), key=lambda one: one.size)
            if self.nest is not None:
                self.nest.tally = self.tally
        flows = [side[0] for side in sides]
        if flows == ["end", "end"]:
            raise Ended
        if "end" in flows:
            left = 1 - flows.index("end")
            self.require(sympy.Not(condition) if left else condition)
            self.state = sides[left][2]
            return flows[left], sides[left][1]
        if flows[0] == flows[1]:
            self.state = self.merge(condition, first[2], second[2], branch.place)
            value = (
                self.merged(condition, first[1], second[1], "value", branch.place)
                if flows[0] == "return"
                else None
            )
            return flows[0], value
        if None in flows:
            stays = flows.index(None)
            leaves = sides[1 - stays]
            holds = sympy.Not(condition) if stays == 1 else condition  # where it stays
            early = self.frames[-1].returns if leaves[0] == "return" else self.breaks[-1]
            early.append((sympy.Not(holds), leaves[1], leaves[2]))
            self.leaves[-1] |= leaves[0] == "break"
            self.state = sides[stays][2]
            closers.append((self.events, Conditional(holds, [], branch.place)))
            self.path.append(holds)
            self.events = []
            return None, None
        self.leaves[-1] |= "break" in flows
        self.state = self.merge(condition, first[2], second[2], branch.place)
        stays = 0 if flows[0] == "continue" else 1
        return flows[stays], sides[stays][1]

    def _side(
        self,
        condition: sympy.Basic,
        body: Body,
        before: dict[int, Contents],
        tally: Tally | None,
    ) -> tuple[str | None, Any, dict[int, Contents], list[Event], Tally]:
        """One side of a branch: how it is left, value, state, events and counts."""
        self.state = dict(before)
        kept, self.events = self.events, []
        if tally is not None:
            self.tally = Tally(dict(tally.flops), list(tally.accesses))
            if self.nest is not None:
                self.nest.tally = self.tally
        self.path.append(condition)
        try:
            flow, value = self.carry_out(body)
        except Ended:
            flow, value = "end", None
        finally:
            self.path.pop()
        state, events = self.state, self.events
        self.events, self.state = kept, before
        return flow, value, state, events, self.tally or Tally()

    def _counted(self, loop: CountedLoop, directive: str) -> tuple[str | None, Any]:
        first, last, step = (self.value(part) for part in (loop.first, loop.last, loop.step))
        if not all(isinstance(part, sympy.Expr) for part in (first, last, step)) or step == 0:
            turns: sympy.Expr = self.symbol("turns", loop.place)
            first, step = sympy.Integer(0), sympy.Integer(1)
        else:
            turns = _turns(first, last, step)
        if turns.is_Integer and turns <= 0:
            return None, None
        home = self._home(loop.variable)
        is_short = turns.is_Integer and turns <= UNROLLED and self._unrolls
        after = expanded(first + turns * step)
        if is_short and not directive:
            may_break = False
            for number in range(int(turns)):
                self.state[home] = {(): expanded(first + number * step)}
                flow, value = self._unrolled_turn(loop.body, loop.place)
                may_break |= self.may_break
                if flow == "break":
                    after = self.state[home].get((), after)
                    break
                if flow == "return":
                    return flow, value
            self.may_break = may_break
            self.state[home] = {(): self._unless_left(after, loop.variable.name, loop.place)}
            return None, None
        variable = self._loop_variable(loop.variable.name, loop.place, turns)
        fixed = {(home, ()): expanded(first + variable * step)}
        name = loop.variable.name
        self._repeat(loop.body, variable, turns, loop.place, directive, fixed, name)
        self.state[home] = {(): self._unless_left(after, name, loop.place)}
        return None, None

    def _unless_left(self, after: Any, text: str, place: SourcePlace) -> Any:
        """What is somewhere after a loop, if it is carried out to its last turn."""
        if not self.may_break:
            return after
        self.note(f"{place}: taken as long as the count of turns allows")
        text = f"last {text}"  # Another number at each place
        if isinstance(after, Pointer):
            return after._replace(offset=self.symbol(text, place))
        return self.symbol(text, place) if isinstance(after, sympy.Expr) else after

    def _turn(self, body: Body, place: SourcePlace) -> tuple[str | None, Any]:
        """A turn of a loop; what is known after it holds for those that left it early, too."""
        self.breaks.append([])
        self.leaves.append(False)
        try:
            return self.carry_out(body)
        finally:
            self.may_break = self.leaves.pop()
            for condition, _, state in reversed(self.breaks.pop()):
                self.state = self.merge(condition, state, self.state, place)

    @property
    def _unrolls(self) -> bool:
        """Whether loops are carried out turn by turn: work would grow with the power of a depth."""
        return self.unrolled < _DEEP and not self.is_too_large

    def _unrolled_turn(self, body: Body, place: SourcePlace) -> tuple[str | None, Any]:
        self.unrolled += 1
        try:
            return self._turn(body, place)
        finally:
            self.unrolled -= 1

    def _loop(self, loop: Loop) -> tuple[str | None, Any]:
        """A loop whose turns are not known beforehand, unless it ends within a few."""
        is_endless = loop.condition is None or isinstance(loop.condition, Literal)
        is_endless |= not self._unrolls
        begin = self._point()
        for _ in range(0 if is_endless else UNROLLED):
            assert loop.condition is not None
            condition = self.condition(loop.condition)
            if condition == sympy.false and loop.is_checked_first:
                return None, None
            if condition != sympy.true:
                break
            flow, value = self._unrolled_turn((*loop.body, *loop.update), loop.place)
            if flow == "return":
                return flow, value
            if flow == "break":
                return None, None
        self._go_back(begin)  # its first turns are as others are
        name = f"turns_{loop.place.line}"
        turns = self._bound(loop)
        if turns is None:
            turns = self.symbol(name, loop.place)
        elif turns.is_Integer and getattr(loop.condition, "operator", "") == "&&":  # at most
            most = sympy.Symbol(name, integer=True, positive=True)
            self.parameters[most] = SourceParameter(most, name, loop.place, turns, 0)
            turns = most
        variable = self._loop_variable("turn", loop.place, turns)
        _, body = self._bodies.get(id(loop), (loop, ()))
        if not body:
            test = loop.condition
            tests: Body = () if test is None else (ExpressionStatement(test, loop.place),)
            body = (*tests, *loop.body, *loop.update)
            self._bodies[id(loop)] = loop, body
        self._repeat(body, variable, turns, loop.place, "", {}, "turns")
        return None, None

    def _point(self) -> tuple[Any, ...]:
        """Where the program is, to go back to."""
        tally, nest, frame = self.tally, self.nest, self.frames[-1]
        counts = None if tally is None else Tally(dict(tally.flops), list(tally.accesses))
        inner = None if nest is None else list(nest.inner)
        return dict(self.state), list(self.events), list(frame.returns), counts, inner

    def _go_back(self, point: tuple[Any, ...]) -> None:
        self.state, self.events[:], self.frames[-1].returns[:], tally, inner = point
        if tally is not None:
            self.tally = tally
            if self.nest is not None:
                self.nest.tally, self.nest.inner = tally, inner

    def _bound(self, loop: Loop) -> sympy.Expr | None:
        """Turns of ``i < n && more``: at most those that the first part allows."""
        condition = loop.condition
        while isinstance(condition, SourceOperation) and condition.operator == "&&":
            for part in condition.operands:
                bound = self._bound(loop._replace(condition=part))
                if bound is not None:
                    self.note(f"{loop.place}: taken as long as the count of turns allows")
                    return bound
            return None
        if not isinstance(condition, SourceOperation) or condition.operator not in ("<", "<="):
            return None
        left, right = condition.operands
        if left.type.kind not in ("int", "other") or not isinstance(left, Variable):
            return None
        steps = [
            one.expression
            for one in (*loop.update, *loop.body)
            if isinstance(one, ExpressionStatement)
            and isinstance(one.expression, Assignment)
            and one.expression.target == left
            and one.expression.operator == "+"
        ]
        if len(steps) != 1:
            return None
        values = [self.value(part) for part in (left, right, steps[0].value)]
        if not all(isinstance(value, sympy.Expr) for value in values):
            return None
        first, last, step = values
        return _turns(first, last - int(condition.operator == "<"), step)

    def _loop_variable(self, name: str, place: SourcePlace, turns: sympy.Expr) -> sympy.Symbol:
        """The number of a turn: of a loop that is carried out again the same symbol."""
        key = place, self.depth, turns
        if key not in self.loop_variables:
            self.number += 1
            variable = sympy.Symbol(f"{name}~{self.number}", integer=True, nonnegative=True)
            self.loop_variables[key] = variable
            self.depends[variable] = frozenset((variable,))
            self.turns[variable] = turns
        return self.loop_variables[key]

    def _repeat(
        self,
        body: Body,
        variable: sympy.Symbol,
        turns: sympy.Expr,
        place: SourcePlace,
        directive: str,
        fixed: dict[tuple[int, tuple[Any, ...]], Any],
        name: str,
    ) -> None:
        """Carry out the body of a loop once for all turns."""
        before, events, tally, nest = self.state, self.events, self.tally, self.nest
        symbols, done = len(self.order), self.steps
        self.depth += 1
        changed = self._trial(body, fixed)
        steps = {}
        for where, (old, new) in changed.items():
            by = None if self.is_real(where) else difference(old, new)
            is_new = by is not None and any(
                self.order.get(one, -1) >= symbols for one in by.free_symbols
            )
            steps[where] = None if is_new else by  # what is new is another one in every turn
        plain = self.index.is_plain(body)
        is_cheap = self.depth <= _DEEP and self.steps - done <= _COSTLY
        corrections = _CORRECTIONS if is_cheap else 1
        if self.is_too_large:  # nested loops would take a multiple of it at each depth
            corrections, steps = 0, dict.fromkeys(steps)
        for attempts in range(corrections, -1, -1):
            turn, after = self._in_turns(changed, steps, variable, turns, place)
            if self.may_break and turns not in self.unknown:
                names = {where: named(self.memories[where[0]].name, where[1]) for where in after}
                after |= {
                    where: self._unless_left(after[where], names[where], place)
                    for where, by in steps.items()
                    if by not in (None, 0)
                }
            if self.is_dry:  # only what the loop leaves matters
                self.depth -= 1
                self.put(after)
                return
            self.state = dict(before)
            self.put({**turn, **fixed})
            self.events = []
            own = Nest(variable, turns, place)
            if plain or tally is not None or directive:
                self.nest, self.tally = own, own.tally
            try:
                self._turn(body, place)
            except Ended:
                self.note(f"{place}: the program ends inside of this loop")
            made, self.events = self.events, events
            own.tally = self.tally or own.tally
            self.tally, self.nest = tally, nest
            wrong = {
                (memory, path): by
                for (memory, path), step in steps.items()
                if step is not None
                and path in self.state.get(memory, {})
                and (by := difference(turn[memory, path], self.state[memory][path])) != step
            }
            if not wrong:
                break
            # What steps depend on changes as well: once more with what they are in this turn
            steps |= wrong if attempts > 1 else dict.fromkeys(wrong)
        self.depth -= 1
        self.end_turns(before, variable, turns)
        self.put(after)
        if nest is not None and tally is not None:
            nest.inner.append(own)
        elif plain or directive:
            self.events.append(Work(own, directive, self.frames[-1].function.name))
            self.events += [event for event in made if not isinstance(event, Work)]
        elif made:
            self.events.append(RepeatedEvents(turns, made, place, name, variable))

    def _in_turns(
        self,
        changed: dict[tuple[int, tuple[Any, ...]], tuple[Any, Any]],
        steps: dict[tuple[int, tuple[Any, ...]], sympy.Expr | None],
        variable: sympy.Symbol,
        turns: sympy.Expr,
        place: SourcePlace,
    ) -> tuple[dict[tuple[int, tuple[Any, ...]], Any], dict[tuple[int, tuple[Any, ...]], Any]]:
        """What is where in a turn of a loop, and after it: where it grows by steps, exactly."""
        turn: dict[tuple[int, tuple[Any, ...]], Any] = {}
        after: dict[tuple[int, tuple[Any, ...]], Any] = {}
        for where, (old, new) in changed.items():
            memory, path = where
            step = steps[where]
            grown = None if step is None else self._sum_of_steps(step, variable, turns)
            if grown is not None:
                turn[where], after[where] = (further(old, by) for by in grown)
                continue
            steps[where] = None
            if isinstance(old, Pointer) and isinstance(new, Pointer):
                turn[where] = after[where] = old  # changes places with another
            elif self.is_real(where) or (
                UnfollowedReal in (type(new), type(old)) and not self.is_whole(where)
            ):
                turn[where] = UnfollowedReal(frozenset((variable,)))
                # an element by a formula is forgotten: nothing is known of it, nor asked for again
                after[where] = UnfollowedReal() if is_known(path) else None
            elif new in self.parameters:  # an option of the command line, in whatever turn
                turn[where] = after[where] = new
            elif isinstance(new, (sympy.Expr, UnfollowedReal)):  # a whole number
                text = named(self.memories[memory].name, path)
                turn[where] = self.symbol(text, place, frozenset((variable,)))
                after[where] = self.symbol(text, place) if is_known(path) else None
            else:
                turn[where] = after[where] = new
        return turn, after

    def _sum_of_steps(
        self, step: sympy.Expr, variable: sympy.Symbol, turns: sympy.Expr
    ) -> tuple[sympy.Expr, sympy.Expr] | None:
        """The sum of a step's values before a turn, and after all of them."""
        if not self.dependence(step):
            if is_undecided(step):
                return None  # another one in every turn
            sums = [expanded(variable * step), expanded(turns * step)]
        else:
            others = step.free_symbols - {variable}
            is_long = parts_of(step) * parts_of(turns) > _LONG_SUM
            if is_long or any(variable in self.depends.get(one, ()) for one in others):
                return None
            sums = [sum_over_turns(step, variable, count) for count in (variable, turns)]
        if sums[0] is None or sums[1] is None:
            return None
        before, after = (
            self.defined_symbol("sum", self.place, one) if parts_of(one) > _LONG_SUM else one
            for one in sums
        )
        return before, after

    def _trial(
        self, body: Body, fixed: dict[tuple[int, tuple[Any, ...]], Any]
    ) -> dict[tuple[int, tuple[Any, ...]], tuple[Any, Any]]:
        """What a turn of a loop changes: the values before and after, by their places."""
        before = self.state
        kept = self.events, self.tally, self.nest
        self.events, self.tally, self.nest = [], None, None
        self.state = dict(before)
        self.put(fixed)
        self.is_dry += 1
        with suppress(Ended):
            self._turn(body, SourcePlace("?", 0))
        self.is_dry -= 1
        after, self.state = self.state, before
        self.events, self.tally, self.nest = kept
        changed = {}
        for memory, contents in before.items():
            new = after.get(memory, contents)
            if new is contents:
                continue
            for path in contents.keys() | new.keys():
                if (memory, path) in fixed or contents.get(path) == new.get(path):
                    continue
                if path in contents:
                    changed[memory, path] = contents[path], new.get(path, UnfollowedReal())
        return changed

    # Directives

    def _directive(self, directive: Directive) -> tuple[str | None, Any]:
        omp, place, body = parsed_directive(directive.text), directive.place, directive.body
        for text in omp.unmodelled():
            self.note(f"{place}: {text}")
        if omp.shares_loop:
            loop = body[0] if len(body) == 1 else None
            while isinstance(loop, Directive) and parsed_directive(loop.text).has_loop:
                loop = loop.body[0] if len(loop.body) == 1 else None
            if isinstance(loop, CountedLoop):
                return self._counted(loop, directive.text)
            self.note(f"{place}: omp {omp.name}: no loop of whole numbers, done by one thread")
        construct = PAID.get(omp.constructs[-1]) if omp.constructs else None
        if construct is not None and self.tally is not None:
            self.note(f"{place}: omp {omp.name} inside of a loop is not charged")
        elif construct is not None:
            self.number += 1
            once = Nest(sympy.Symbol(f"once~{self.number}"), THREADS, place)
            self.events.append(Work(once, directive.text, self.frames[-1].function.name))
        elif "parallel" in omp.constructs and not omp.shares_loop:
            self.note(f"{place}: omp parallel: what is outside of its loops is done by one thread")
        return self.carry_out(body)


def _turns(first: sympy.Expr, last: sympy.Expr, step: sympy.Expr) -> sympy.Expr:
    turns = expanded((last - first) / step)
    return turns + 1 if step in (1, -1) else sympy.floor(turns) + 1
