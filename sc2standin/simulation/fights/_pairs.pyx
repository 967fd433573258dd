# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The loops over all pairs of units, compiled; `pairs.Few` says the same in Python.

Rule: it takes the same operations in the same order, and so has the same results to the last bit;
the compiler may not contract a product and a sum into one operation (`-ffp-contract=off`).
"""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free


cdef class Geometry:
    """The pairs of some units."""

    cdef list units
    cdef Py_ssize_t n
    cdef double* numbers  # one block for all that follow, n each
    cdef double* x
    cdef double* y
    cdef double* radius
    cdef double* closest
    cdef double* half_step
    cdef double* scan
    cdef double* sum_x
    cdef double* sum_y
    cdef uint8_t* aloft
    cdef uint8_t* is_target  # a row for each unit, of those that it can fire at
    cdef double no_touch
    cdef double tiny
    cdef double push_share

    def __dealloc__(self):
        free(self.numbers)
        free(self.aloft)
        free(self.is_target)

    def lay_out(
        self, list units, list targets, list scan, list closest,
        double no_touch, double tiny, double push_share,
    ):
        """Take note of the units; called once.

        Args:
            units: in their order.
            targets: for each, the indices of those that it can fire at.
            scan, closest: of each, as in `pairs.Pairs`.
            no_touch, tiny, push_share: the constants of these names in `pairs`.
        """
        cdef Py_ssize_t n = len(units)
        cdef Py_ssize_t i, j
        self.units = units
        self.no_touch, self.tiny, self.push_share = no_touch, tiny, push_share
        self.numbers = <double*>calloc(8 * n + 1, sizeof(double))
        self.aloft = <uint8_t*>calloc(n + 1, 1)
        self.is_target = <uint8_t*>calloc(n * n + 1, 1)
        if self.numbers == NULL or self.aloft == NULL or self.is_target == NULL:
            raise MemoryError
        self.x = self.numbers
        self.y = self.numbers + n
        self.radius = self.numbers + 2 * n
        self.closest = self.numbers + 3 * n
        self.half_step = self.numbers + 4 * n
        self.scan = self.numbers + 5 * n
        self.sum_x = self.numbers + 6 * n
        self.sum_y = self.numbers + 7 * n
        for i in range(n):
            kind = units[i].type
            self.radius[i] = kind.radius
            self.half_step[i] = kind.step / 2
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
        """As `Pairs.measure`."""
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
        """The distance at which two units touch."""
        if self.aloft[i] != self.aloft[j]:
            return self.no_touch
        return self.radius[i] + self.radius[j]

    cdef double notice(self, Py_ssize_t i, Py_ssize_t j) noexcept:
        """The gap at which one of two units notices the other."""
        cdef double notice = self.scan[i] if self.is_target[i * self.n + j] else 0.0
        cdef double other = self.scan[j] if self.is_target[j * self.n + i] else 0.0
        if other > notice:
            notice = other
        if self.aloft[i] != self.aloft[j]:
            return notice + (self.radius[i] + self.radius[j]) - self.no_touch
        return notice

    def gap(self, Py_ssize_t i, Py_ssize_t j):
        """As `Pairs.gap`."""
        self.require(i, self.n)
        self.require(j, self.n)
        return self.distance(i, j) - (self.radius[i] + self.radius[j])

    def nearest_enemy(self, Py_ssize_t i):
        """As `Pairs.nearest_enemy`."""
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

    def pushes(self):
        """As `Pairs.pushes`."""
        cdef Py_ssize_t i, j
        cdef double dx, dy, touch, distance, gap, push_x, push_y, x, y, length, share
        cdef bint overlap = False
        for i in range(self.n):
            self.sum_x[i] = self.sum_y[i] = 0.0
        for i in range(self.n):
            for j in range(i + 1, self.n):
                touch = self.touch(i, j)
                dx = self.x[j] - self.x[i]
                if dx >= touch or -dx >= touch:
                    continue
                dy = self.y[j] - self.y[i]
                if dy >= touch or -dy >= touch:
                    continue
                distance = sqrt(dx * dx + dy * dy)
                gap = distance - touch
                if gap >= 0.0:
                    continue
                overlap = True
                if distance == 0.0:
                    push_x, push_y = gap, 0.0
                else:
                    distance = max(distance, self.tiny)
                    push_x, push_y = dx / distance * gap, dy / distance * gap
                self.sum_x[i] += push_x
                self.sum_y[i] += push_y
                self.sum_x[j] -= push_x
                self.sum_y[j] -= push_y
        if not overlap:
            return None
        cdef dict pushes = {}
        for i in range(self.n):
            x, y = self.sum_x[i] * self.push_share, self.sum_y[i] * self.push_share
            length = sqrt(x * x + y * y)
            if length > self.half_step[i]:
                share = self.half_step[i] / length
                x, y = x * share, y * share
            if x != 0.0 or y != 0.0:
                pushes[i] = x, y
        return pushes

    def loops_until_contact(self, dict moving):
        """As `Pairs.loops_until_contact`."""
        cdef Py_ssize_t i, j
        cdef double x, y, speed, slack
        cdef double soonest = INFINITY
        for i in range(self.n):  # the velocities
            self.sum_x[i], self.sum_y[i] = moving.get(self.units[i], (0.0, 0.0))
        for i in range(self.n):
            for j in range(i + 1, self.n):
                x, y = self.sum_x[i] - self.sum_x[j], self.sum_y[i] - self.sum_y[j]
                speed = sqrt(x * x + y * y)
                if speed != 0.0:
                    slack = self.distance(i, j) - self.touch(i, j) - self.notice(i, j)
                    soonest = min(soonest, slack / speed)
        return soonest
