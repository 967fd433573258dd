# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The loops over all pairs of units, compiled; `pairs.Pairs` has the same loops in Python.

Both do the same operations in the same order, and so have the same results to the last bit. For
this the compiler must not contract a product and a sum into one operation (`-ffp-contract=off`).
"""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free


cdef class Geometry:
    """The pairs of some units."""

    cdef list units
    cdef dict index
    cdef Py_ssize_t n
    cdef double* numbers  # one block of memory for the next eleven arrays, of n numbers each
    cdef double* x
    cdef double* y
    cdef double* radius
    cdef double* room
    cdef double* closest
    cdef double* step
    cdef double* scan
    cdef double* there_x
    cdef double* there_y
    cdef double* push_x
    cdef double* push_y
    cdef Py_ssize_t* near  # the units that may be in the way of the unit at hand
    cdef Py_ssize_t near_count
    cdef uint8_t* aloft
    cdef uint8_t* ground
    cdef uint8_t* is_target  # a row for each unit: 1 for the units that it can fire at
    cdef double no_touch
    cdef double tiny
    cdef double ahead
    cdef double graze
    cdef int rounds
    cdef int turn_count
    cdef double cosine[16]
    cdef double sine[16]

    def __dealloc__(self):
        free(self.numbers)
        free(self.near)
        free(self.aloft)
        free(self.ground)
        free(self.is_target)

    def lay_out(
        self, list units, dict index, list targets, list scan, list closest,
        double no_touch, double tiny, double ahead, double graze, int rounds, tuple turns,
    ):
        """Store the units and their numbers; called once.

        Args:
            units: the units, in the order of creation.
            index: the index of each unit in `units`, by tag.
            targets: for each unit, the indices of the units that it can fire at.
            scan, closest: one number for each unit, as in `pairs.Pairs`.
            no_touch, tiny, ahead, graze, rounds, turns: the constants of these names in `pairs`.
        """
        cdef Py_ssize_t n = len(units)
        cdef Py_ssize_t i, j
        self.units, self.index = units, index
        self.no_touch, self.tiny = no_touch, tiny
        self.ahead, self.graze, self.rounds = ahead, graze, rounds
        self.turn_count = min(16, len(turns))
        for i in range(self.turn_count):
            self.cosine[i], self.sine[i] = turns[i]
        self.numbers = <double*>calloc(11 * n + 1, sizeof(double))
        self.near = <Py_ssize_t*>calloc(n + 1, sizeof(Py_ssize_t))
        self.aloft = <uint8_t*>calloc(n + 1, 1)
        self.ground = <uint8_t*>calloc(n + 1, 1)
        self.is_target = <uint8_t*>calloc(n * n + 1, 1)
        if (
            self.numbers == NULL or self.near == NULL or self.aloft == NULL
            or self.ground == NULL or self.is_target == NULL
        ):
            raise MemoryError
        self.x = self.numbers
        self.y = self.numbers + n
        self.radius = self.numbers + 2 * n
        self.room = self.numbers + 3 * n
        self.closest = self.numbers + 4 * n
        self.step = self.numbers + 5 * n
        self.scan = self.numbers + 6 * n
        self.there_x = self.numbers + 7 * n
        self.there_y = self.numbers + 8 * n
        self.push_x = self.numbers + 9 * n
        self.push_y = self.numbers + 10 * n
        for i in range(n):
            kind = units[i].type
            self.radius[i] = kind.radius
            self.room[i] = kind.room
            self.step[i] = kind.step
            self.aloft[i] = kind.aloft
            self.scan[i] = scan[i]
            self.closest[i] = closest[i]
            for target in targets[i]:
                j = target
                self.require(j, n)
                self.is_target[i * n + j] = True
        self.n = n

    cdef int require(self, Py_ssize_t i, Py_ssize_t n) except -1:
        if not 0 <= i < n:
            raise IndexError(i)
        return 0

    def measure(self):
        """Does the same as `Pairs.measure`."""
        cdef Py_ssize_t i
        for i in range(self.n):
            unit = self.units[i]
            self.x[i] = unit.x
            self.y[i] = unit.y

    cdef double distance(self, Py_ssize_t i, Py_ssize_t j) noexcept:
        cdef double dx = self.x[j] - self.x[i]
        cdef double dy = self.y[j] - self.y[i]
        return sqrt(dx * dx + dy * dy)

    cdef double touch(self, Py_ssize_t i, Py_ssize_t j) noexcept:
        """Does the same as `Pairs._touch`."""
        if self.aloft[i] != self.aloft[j]:
            return self.no_touch
        return self.room[i] + self.room[j]

    def gap(self, Py_ssize_t i, Py_ssize_t j):
        """Does the same as `Pairs.gap`."""
        self.require(i, self.n)
        self.require(j, self.n)
        return self.distance(i, j) - (self.radius[i] + self.radius[j])

    def nearest_enemy(self, Py_ssize_t i):
        """Does the same as `Pairs.nearest_enemy`."""
        self.require(i, self.n)
        cdef Py_ssize_t nearest = -1
        cdef Py_ssize_t j
        cdef double least = INFINITY
        cdef double gap
        for j in range(self.n):
            if self.is_target[i * self.n + j]:
                gap = self.distance(i, j) - (self.radius[i] + self.radius[j])
                if self.closest[i] <= gap < least:
                    nearest, least = j, gap
        return nearest, least

    def take_note(self, list ways):
        """Does the same as `Pairs.take_note`."""
        cdef Py_ssize_t i
        self.require(self.n - 1, len(ways))
        for i in range(self.n):
            unit = self.units[i]
            if ways[i] is not None:
                self.ground[i] = 1 if unit.held_up else 0
            else:
                self.ground[i] = 2 if unit.engaged else 0

    def steer(self, list ways):
        """Does the same as `Pairs.steer`."""
        cdef Py_ssize_t i
        self.require(self.n - 1, len(ways))
        for i in range(self.n):
            way = ways[i]
            if way is not None and not self.aloft[i] and way[2] > 0.0:
                ways[i] = self.around(i, self.units[i], way)

    cdef tuple around(self, Py_ssize_t i, unit, tuple way):
        cdef double x = way[0]
        cdef double y = way[1]
        cdef double distance = way[2]
        cdef double ahead = min(self.ahead, distance)
        cdef double cosine, sine, to_x, to_y
        cdef int turn = unit.turn
        cdef int attempt, side, k
        cdef int count = self.turn_count
        x, y = x / distance, y / distance
        self.look(i, self.index.get(unit.chases or unit.order.target_tag, -1), ahead)
        if not self.near_count or not self.is_closed(i, x, y, ahead):
            unit.turn = 0
            return way
        for attempt in range(2 * count):
            if turn:
                side, k = turn if attempt < count else -turn, attempt % count
            else:
                side, k = -1 if attempt % 2 else 1, attempt // 2
            cosine, sine = self.cosine[k], self.sine[k] * side
            to_x, to_y = x * cosine - y * sine, x * sine + y * cosine
            if not self.is_closed(i, to_x, to_y, ahead):
                unit.turn = side
                return to_x * distance, to_y * distance, distance
        return way

    cdef void look(self, Py_ssize_t i, Py_ssize_t target, double ahead) noexcept:
        """Does the same as `Pairs._near`."""
        cdef Py_ssize_t j
        cdef double dx, dy, reach
        self.near_count = 0
        for j in range(self.n):
            if not self.ground[j] or j == i or j == target or self.aloft[j]:
                continue
            dx, dy = self.x[j] - self.x[i], self.y[j] - self.y[i]
            reach = self.touch(i, j) + ahead
            if dx * dx + dy * dy < reach * reach:
                self.near[self.near_count] = j
                self.near_count += 1

    cdef bint is_closed(self, Py_ssize_t i, double x, double y, double ahead) noexcept:
        """Does the same as `pairs._is_closed`, with the units in `near`."""
        cdef Py_ssize_t m, j
        cdef double dx, dy, along, across, touch
        for m in range(self.near_count):
            j = self.near[m]
            dx, dy = self.x[j] - self.x[i], self.y[j] - self.y[i]
            along = dx * x + dy * y
            if along <= 0.0:
                continue
            across = dx * y - dy * x
            touch = self.touch(i, j) * self.graze
            if across >= touch or -across >= touch:
                continue
            if along - sqrt(touch * touch - across * across) < ahead:
                return True
        return False

    def keep_apart(self, list vx, list vy):
        """Does the same as `Pairs.keep_apart`."""
        cdef Py_ssize_t i, j
        cdef int turn
        cdef double dx, dy, touch, distance, gap, share, length
        cdef bint yields, other_yields
        cdef bint overlap = False
        self.require(self.n - 1, min(len(vx), len(vy)))
        for i in range(self.n):
            self.there_x[i] = self.x[i] + <double>vx[i]
            self.there_y[i] = self.y[i] + <double>vy[i]
        for turn in range(self.rounds):
            for i in range(self.n):
                self.push_x[i] = self.push_y[i] = 0.0
            for i in range(self.n):
                for j in range(i + 1, self.n):
                    touch = self.touch(i, j)
                    dx = self.there_x[j] - self.there_x[i]
                    if dx >= touch or -dx >= touch:
                        continue
                    dy = self.there_y[j] - self.there_y[i]
                    if dy >= touch or -dy >= touch:
                        continue
                    distance = sqrt(dx * dx + dy * dy)
                    gap = touch - distance
                    yields, other_yields = self.yields(i, j), self.yields(j, i)
                    if gap <= self.tiny or not (yields or other_yields):
                        continue
                    share = 0.5 if yields and other_yields else yields
                    overlap = True
                    if distance == 0.0:
                        dx, distance = 1.0, 1.0
                    dx, dy = dx / distance * gap, dy / distance * gap
                    self.push_x[i] -= dx * share
                    self.push_y[i] -= dy * share
                    self.push_x[j] += dx * (1.0 - share)
                    self.push_y[j] += dy * (1.0 - share)
            if not overlap:
                return None
            for i in range(self.n):
                self.there_x[i] += self.push_x[i]
                self.there_y[i] += self.push_y[i]
        apart_x, apart_y = [0.0] * self.n, [0.0] * self.n
        for i in range(self.n):
            dx, dy = self.there_x[i] - self.x[i], self.there_y[i] - self.y[i]
            length = sqrt(dx * dx + dy * dy)
            if length > self.step[i]:
                dx, dy = dx / length * self.step[i], dy / length * self.step[i]
            apart_x[i], apart_y[i] = dx, dy
        return apart_x, apart_y

    cdef bint yields(self, Py_ssize_t i, Py_ssize_t j) noexcept:
        """True if a unit gives way to another one."""
        return self.step[i] > 0.0 and (self.ground[i] < 2 or self.ground[j] == 2)

    def loops_until_contact(self, dict moving):
        """Does the same as `Pairs.loops_until_contact`."""
        cdef Py_ssize_t i, j
        cdef double x, y, speed, contact, reach
        cdef double soonest = INFINITY
        for i in range(self.n):  # the velocities
            self.there_x[i], self.there_y[i] = moving.get(self.units[i], (0.0, 0.0))
        for i in range(self.n):
            for j in range(i + 1, self.n):
                x, y = self.there_x[i] - self.there_x[j], self.there_y[i] - self.there_y[j]
                speed = sqrt(x * x + y * y)
                if speed == 0.0:
                    continue
                contact = self.touch(i, j)
                reach = self.radius[i] + self.radius[j]
                if self.is_target[i * self.n + j]:
                    contact = max(contact, self.scan[i] + reach)
                if self.is_target[j * self.n + i]:
                    contact = max(contact, self.scan[j] + reach)
                soonest = min(soonest, (self.distance(i, j) - contact) / speed)
        return soonest
