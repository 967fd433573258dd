# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The compiled step path: a step's messages as bytes, and its transition in shared memory.

    step_frames ─► Wire ─┄─► game              action + step + observation, one burst
                     └◄┄─── three replies ─► Plain: loop, score, the units' columns
    a reply of any other burst ─► observation ─► Plain
    transition ─► Row ─┄─► trainer             observation, mask, reward: the slot of the worker
    action ◄─ Requests ◄┄─ trainer             the wait for the next one; Ringing wakes the trainer
    trainer's batch ─► Headers                 requests to all rows, and which have replied

Rules:
- it accepts only what pure Python accepts, and then says the same; the tests compare both;
- it decides about no fault: whatever is not exactly as expected is left to pure Python (`replies`,
  `observed`, `worker_end`), which is complete without this module and gives the verdict;
- no read leaves the bytes: each message is read with a cursor that knows its own end;
- a worker without a game never loads the protocol: its messages are learnt on first use.
"""

from cpython.buffer cimport (
    PyBUF_FULL, PyBUF_FULL_RO, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_GetBuffer
)
from cpython.bytearray cimport PyByteArray_AsString, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize, PyBytes_Size
from libc.stdint cimport (
    INT32_MAX, INT32_MIN, UINT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
)
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memcpy, memset, strcmp

cdef extern from *:
    """
    #ifdef _MSC_VER  /* its x64 orders plain reads and writes so; /volatile:ms keeps the compiler's */
    #define sc2pool_publish(word, value) (*(volatile uint64_t*)(word) = (value))
    #define sc2pool_newest(word) (*(const volatile uint64_t*)(word))
    #else
    #define sc2pool_publish(word, value) __atomic_store_n(word, value, __ATOMIC_RELEASE)
    #define sc2pool_newest(word) __atomic_load_n(word, __ATOMIC_ACQUIRE)
    #endif
    """
    void publish "sc2pool_publish"(uint64_t* word, uint64_t value) nogil  # after all other writes
    uint64_t newest "sc2pool_newest"(const uint64_t* word) nogil  # before all other reads


cdef extern from *:
    """
    #ifdef _WIN32
    /* Doorbells are sockets there. `Wire` is of Linux's event loops alone, so nothing calls the rest. */
    #include <winsock2.h>
    #define MSG_DONTWAIT 0
    #define sc2pool_write(descriptor, buffer, size) send(descriptor, (const char*)(buffer), size, 0)
    #define sc2pool_nothing_yet() (WSAGetLastError() == WSAEWOULDBLOCK)
    static int sc2pool_wait(int sock, int loop, int timeout_ms) { return 0; }
    static double sc2pool_now_s(void) { return GetTickCount64() * 1e-3; }
    #else
    #include <errno.h>
    #include <poll.h>
    #include <sys/socket.h>
    #include <time.h>
    #include <unistd.h>
    #define sc2pool_write write
    #define sc2pool_nothing_yet() (errno == EAGAIN)
    static int sc2pool_wait(int sock, int loop, int timeout_ms)
    {
        struct pollfd watched[2] = {{sock, POLLIN, 0}, {loop, POLLIN, 0}};
        return poll(watched, 2, timeout_ms) > 0 && watched[0].revents;
    }
    static double sc2pool_now_s(void)
    {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec + now.tv_nsec * 1e-9;
    }
    #endif
    """
    Py_ssize_t recv(int sock, void* buffer, size_t size, int flags) nogil
    Py_ssize_t send(int sock, const void* buffer, size_t size, int flags) nogil
    Py_ssize_t write "sc2pool_write"(int descriptor, const void* buffer, size_t size) nogil
    bint nothing_yet "sc2pool_nothing_yet"() nogil  # of a `recv` that has failed
    bint wait "sc2pool_wait"(int sock, int loop, int timeout_ms) nogil  # whether the socket is ready
    double now_s "sc2pool_now_s"() nogil  # as `time.monotonic`
    enum:
        MSG_DONTWAIT


cdef extern from *:
    """
    #ifdef __linux__
    #include <sys/epoll.h>
    static int sc2pool_only_rings(int epoll, int doorbell)
    {
        struct epoll_event ready[2];
        return epoll_wait(epoll, ready, 2, -1) == 1 && ready[0].data.fd == doorbell;
    }
    #else
    static int sc2pool_only_rings(int epoll, int doorbell) { return 0; }
    #endif
    """
    # Wait with an epoll; whether only the doorbell ended it, and no signal.
    bint only_rings "sc2pool_only_rings"(int epoll, int doorbell) nogil


# ---- the wire format ---------------------------------------------------------------------------

cdef enum:
    VARINT = 0
    LENGTH = 2
    FIXED32 = 5


cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end


cdef struct Field:
    uint32_t number
    uint32_t wire_type
    uint64_t value  # of a varint; the bits of a fixed number
    Cursor inside  # of a field with a length


cdef inline bint read_varint(Cursor* cursor, int most_bytes, uint64_t* value) noexcept nogil:
    cdef uint64_t result = 0
    cdef uint64_t bits
    cdef int read = 0
    if cursor.at < cursor.end and cursor.at[0] < 0x80:  # most are of one byte
        value[0] = cursor.at[0]
        cursor.at += 1
        return True
    while cursor.at < cursor.end and read < most_bytes:
        bits = cursor.at[0]
        cursor.at += 1
        if read == 9 and bits > 1:
            return False  # more than 64 bits
        result |= (bits & 0x7F) << (7 * read)
        if bits < 0x80:
            value[0] = result
            return True
        read += 1
    return False


cdef inline bint read_field(Cursor* cursor, Field* field) noexcept nogil:
    """The next field; False at anything that is none, such as a group."""
    cdef uint64_t tag
    cdef uint32_t bits
    if not read_varint(cursor, 2, &tag) or tag < 8:
        return False
    field.number = <uint32_t>(tag >> 3)
    field.wire_type = <uint32_t>(tag & 7)
    if field.wire_type == VARINT:
        return read_varint(cursor, 10, &field.value)
    if field.wire_type == LENGTH:
        if not read_varint(cursor, 4, &field.value):
            return False
        if field.value > <uint64_t>(cursor.end - cursor.at):
            return False
        field.inside.at = cursor.at
        cursor.at += field.value
        field.inside.end = cursor.at
        return True
    if field.wire_type == FIXED32:
        if cursor.end - cursor.at < 4:
            return False
        bits = (
            <uint32_t>cursor.at[0]
            | <uint32_t>cursor.at[1] << 8
            | <uint32_t>cursor.at[2] << 16
            | <uint32_t>cursor.at[3] << 24
        )
        field.value = bits
        cursor.at += 4
        return True
    return False


cdef inline bint is_new(uint64_t* seen, uint32_t number) noexcept nogil:
    """True if a field that may occur once occurs for the first time."""
    cdef uint64_t bit = <uint64_t>1 << (number & 63)
    if number > 63 or seen[0] & bit:
        return False
    seen[0] |= bit
    return True


cdef inline bint read_float(Field* field, float* number) noexcept nogil:
    """A number of 32 bits; False if it is NaN or infinite."""
    cdef uint32_t bits = <uint32_t>field.value
    if field.wire_type != FIXED32 or bits & 0x7F800000 == 0x7F800000:
        return False
    memcpy(number, &bits, 4)
    return True


# ---- the messages ------------------------------------------------------------------------------

cdef struct Unit:
    uint64_t tag
    uint32_t unit_type
    uint32_t alliance
    float x
    float y
    float health
    float shield
    float weapon_cooldown



cdef enum:
    # Fields of a `Response`.
    OBSERVATION = 10
    ACTION = 11
    STEP = 12


cdef enum:
    IN_GAME = 3  # a `Status`
    SUCCESS = 1  # an `ActionResult`
    LAST_LOOP = 1 << 19  # as in `replies`
    MOST_ID = 0x7FFFFFFF  # as in `connection`; after it comes 0
    BINARY = 0x82  # the first byte of a websocket frame with a whole binary message
    LEAST_BYTES = 1 << 17  # room for the replies of a usual step
    MOST_BYTES = 1 << 26  # more than that is left to pure Python


cdef enum:
    MOST_FIELDS = 64
    MOST_MESSAGES = 8
    UNIT = 0  # the first that `learn` is called for


# By message and field number: the wire type plus 1, 0 for no such field; whether it may occur more
# than once; which message is inside.
cdef uint8_t known[MOST_MESSAGES][MOST_FIELDS]
cdef bint repeated[MOST_MESSAGES][MOST_FIELDS]
cdef uint8_t inside_of[MOST_MESSAGES][MOST_FIELDS]
_learnt = []


def learn(descriptor):
    """Note the fields of a message and of those inside it; returns its number."""
    if descriptor.full_name in _learnt:
        return _learnt.index(descriptor.full_name)
    cdef int message = len(_learnt)
    _learnt.append(descriptor.full_name)
    assert message < MOST_MESSAGES
    for field in descriptor.fields:
        number = field.number
        assert 0 < number < MOST_FIELDS
        if field.type == field.TYPE_MESSAGE:
            wire_type = LENGTH
            inside_of[message][number] = learn(field.message_type)
        elif field.type == field.TYPE_FLOAT:
            wire_type = FIXED32
        else:
            assert field.type in (
                *(field.TYPE_UINT32, field.TYPE_UINT64, field.TYPE_INT32),
                *(field.TYPE_BOOL, field.TYPE_ENUM),
            )
            wire_type = VARINT
        known[message][number] = wire_type + 1
        repeated[message][number] = field.is_repeated
    return message


def learn_messages():
    """Learn all that is looked up by `is_known`, once."""
    if not _learnt:
        from s2clientprotocol import raw_pb2
        assert learn(raw_pb2.Unit.DESCRIPTOR) == UNIT


cdef inline bint is_known(int message, const Field* field) noexcept nogil:
    return field.number < MOST_FIELDS and known[message][field.number] == field.wire_type + 1


cdef bint is_valid(Cursor cursor, int message) noexcept nogil:
    """True if the bytes are such a message, with known fields only."""
    cdef Field field
    while cursor.at < cursor.end:
        if not read_field(&cursor, &field) or not is_known(message, &field):
            return False
        if field.wire_type == LENGTH and not is_valid(
            field.inside, inside_of[message][field.number]
        ):
            return False
    return True


cdef bint read_place(Cursor cursor, Unit* unit) noexcept nogil:
    """A `Point`; its height is only checked."""
    cdef Field field
    cdef uint64_t seen = 0
    cdef float z
    while cursor.at < cursor.end:
        if not read_field(&cursor, &field) or not is_new(&seen, field.number):
            return False
        if field.number == 1:
            if not read_float(&field, &unit.x):
                return False
        elif field.number == 2:
            if not read_float(&field, &unit.y):
                return False
        elif field.number != 3 or not read_float(&field, &z):
            return False
    return seen & 0b0110 == 0b0110


cdef bint read_unit(Cursor cursor, Unit* unit) noexcept nogil:
    """A unit with all that the columns need; hit points and the like may be missing, and are 0."""
    cdef Field field
    cdef uint64_t seen = 0
    cdef float energy
    memset(unit, 0, sizeof(Unit))
    while cursor.at < cursor.end:
        if not read_field(&cursor, &field) or not is_known(UNIT, &field):
            return False
        if not repeated[UNIT][field.number] and not is_new(&seen, field.number):
            return False
        if field.number == 2:
            if not 1 <= field.value <= 4:  # an `Alliance`
                return False
            unit.alliance = <uint32_t>field.value
        elif field.number == 3:
            unit.tag = field.value
        elif field.number == 4:
            if field.value > UINT32_MAX:
                return False
            unit.unit_type = <uint32_t>field.value
        elif field.number == 6:
            if not read_place(field.inside, unit):
                return False
        elif field.number == 14:
            if not read_float(&field, &unit.health):
                return False
        elif field.number == 16:
            if not read_float(&field, &unit.shield):
                return False
        elif field.number == 17:
            if not read_float(&field, &energy):
                return False
        elif field.number == 30:
            if not read_float(&field, &unit.weapon_cooldown):
                return False
        elif field.wire_type == LENGTH and not is_valid(
            field.inside, inside_of[UNIT][field.number]
        ):
            return False
    return seen & 0b1011100 == 0b1011100  # alliance, tag, unit_type, pos


cdef bint read_reply(Cursor cursor, uint32_t kind, uint32_t request_id, Cursor* answer) noexcept nogil:
    """A `Response` that is no refusal, has the request's id and kind, and comes from a running game.

    Args:
        kind: the number of the answer's field.
        answer: is set to the answer's bytes.
    """
    cdef Field field
    cdef bint has_answer = False
    cdef bint has_id = False
    cdef bint has_status = False
    while cursor.at < cursor.end:
        if not read_field(&cursor, &field):
            return False
        if field.number == kind:
            if field.wire_type != LENGTH or has_answer:
                return False
            answer[0] = field.inside
            has_answer = True
        elif field.number == 97:
            if field.wire_type != VARINT or has_id or field.value != request_id:
                return False
            has_id = True
        elif field.number == 99:
            if field.wire_type != VARINT or has_status or field.value != IN_GAME:
                return False
            has_status = True
        else:
            return False
    return has_answer and has_id and has_status


cdef bint read_score(Cursor cursor, int32_t* score) noexcept nogil:
    cdef Field field
    cdef uint64_t seen = 0
    cdef int64_t value
    while cursor.at < cursor.end:
        if not read_field(&cursor, &field) or not is_new(&seen, field.number):
            return False
        if field.number == 7:
            value = <int64_t>field.value
            if field.wire_type != VARINT or not INT32_MIN <= value <= INT32_MAX:
                return False
            score[0] = <int32_t>value
        elif field.number == 6:
            if field.wire_type != VARINT:
                return False
        elif field.number != 8 or field.wire_type != LENGTH:  # the details
            return False
    return True


# ---- an observation ----------------------------------------------------------------------------


cdef struct TaggedRow:
    uint64_t tag
    Py_ssize_t row


cdef int in_tag_order(const void* left, const void* right) noexcept nogil:
    """Compares rows' tags, and of equal ones the rows."""
    cdef const TaggedRow* one = <const TaggedRow*>left
    cdef const TaggedRow* other = <const TaggedRow*>right
    if one.tag != other.tag:
        return 1 if one.tag > other.tag else -1
    return 1 if one.row > other.row else -1


cdef class Plain:
    """The observation of a game that goes on, with nothing unusual in it.

    Attributes:
        payload: the whole reply.
        game_loop, score: of the observation.
        n_results: how many actions of the step before it succeeded, which is all of them.
        simulation_loop: as in the reply to the step; both are 0 if there was no step.
        status, error: as in the reply; always these.
    """

    status = IN_GAME
    error = ()

    cdef readonly bytes payload
    cdef readonly uint32_t game_loop
    cdef readonly int32_t score
    cdef readonly Py_ssize_t n_results
    cdef readonly uint32_t simulation_loop
    cdef Unit* units
    cdef Py_ssize_t n_units
    cdef Py_ssize_t room

    def __dealloc__(self):
        free(self.units)

    cdef bint read(self, Cursor cursor) noexcept nogil:
        """A `ResponseObservation` without errors of actions and without results."""
        cdef Field field
        cdef Cursor state
        cdef bint has_state = False
        while cursor.at < cursor.end:
            if not read_field(&cursor, &field) or field.wire_type != LENGTH:
                return False
            if field.number == 3:
                if has_state:
                    return False
                state = field.inside
                has_state = True
            elif field.number != 1 and field.number != 5:  # actions, chat
                return False
        return has_state and self.read_state(state)

    cdef bint read_state(self, Cursor cursor) noexcept nogil:
        """An `Observation`, which must have a game loop, raw data and a player."""
        cdef Field field
        cdef uint64_t seen = 0
        cdef uint32_t number
        while cursor.at < cursor.end:
            if not read_field(&cursor, &field):
                return False
            number = field.number
            if number != 3 and number != 10 and not is_new(&seen, number):  # abilities, alerts
                return False
            if number == 9:
                if field.wire_type != VARINT or field.value > LAST_LOOP:
                    return False
                self.game_loop = <uint32_t>field.value
            elif number == 10:
                if field.wire_type != VARINT:
                    return False
            elif number > 10 or number == 2 or field.wire_type != LENGTH:
                return False
            elif number == 4:
                if not read_score(field.inside, &self.score):
                    return False
            elif number == 5:
                if not self.read_units(field.inside):
                    return False
        return seen & 0b1000100010 == 0b1000100010  # player_common, raw_data, game_loop

    cdef bint read_units(self, Cursor cursor) noexcept nogil:
        """An `ObservationRaw`; its other parts are not looked into."""
        cdef Field field
        cdef uint64_t seen = 0
        cdef Py_ssize_t room
        cdef void* grown
        while cursor.at < cursor.end:
            if not read_field(&cursor, &field) or field.wire_type != LENGTH:
                return False
            if field.number == 2:
                if self.n_units == self.room:
                    room = 2 * self.room if self.room else 128
                    grown = realloc(self.units, room * sizeof(Unit))
                    if grown == NULL:
                        return False
                    self.units = <Unit*>grown
                    self.room = room
                if not read_unit(field.inside, &self.units[self.n_units]):
                    return False
                self.n_units += 1
            elif field.number > 6 or (field.number != 5 and not is_new(&seen, field.number)):
                return False
        return True

    def columns(self):
        """The fields of `observed.UnitColumns`."""
        cdef Py_ssize_t row
        cdef list tag = []
        cdef list unit_type = []
        cdef list alliance = []
        cdef list x = []
        cdef list y = []
        for row in range(self.n_units):
            tag.append(self.units[row].tag)
            unit_type.append(self.units[row].unit_type)
            alliance.append(self.units[row].alliance)
            x.append(self.units[row].x)
            y.append(self.units[row].y)
        return tag, unit_type, alliance, x, y

    def find(self, uint32_t unit_type, uint32_t alliance):
        """The units of a kind, in the order of their tags.

        Returns:
            Their tags, their rows, and their positions: pairs of doubles.
        """
        cdef Py_ssize_t row
        cdef Py_ssize_t n = 0
        cdef list tags = []
        cdef list rows = []
        cdef const Unit* unit
        cdef double* places
        for row in range(self.n_units):
            unit = &self.units[row]
            n += unit.unit_type == unit_type and unit.alliance == alliance
        cdef bytearray positions = PyByteArray_FromStringAndSize(NULL, 2 * n * sizeof(double))
        cdef TaggedRow* found = <TaggedRow*>malloc((n + 1) * sizeof(TaggedRow))
        if found == NULL:
            raise MemoryError
        try:
            n = 0
            for row in range(self.n_units):
                unit = &self.units[row]
                if unit.unit_type == unit_type and unit.alliance == alliance:
                    found[n].tag = unit.tag
                    found[n].row = row
                    n += 1
            qsort(found, n, sizeof(TaggedRow), in_tag_order)
            places = <double*>PyByteArray_AsString(positions)
            for row in range(n):
                unit = &self.units[found[row].row]
                places[2 * row] = unit.x
                places[2 * row + 1] = unit.y
                tags.append(found[row].tag)
                rows.append(found[row].row)
        finally:
            free(found)
        return tags, rows, positions

    def numbers(self, str name, list rows):
        """The doubles of one attribute of the units in these rows.

        Args:
            name: "health", "shield" or "weapon_cooldown".
            rows: of this observation.
        """
        cdef bytearray taken = PyByteArray_FromStringAndSize(NULL, len(rows) * sizeof(double))
        cdef double* numbers = <double*>PyByteArray_AsString(taken)
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t row
        cdef const Unit* unit
        cdef int column = ("health", "shield", "weapon_cooldown").index(name)
        for row in rows:
            if not 0 <= row < self.n_units:
                raise IndexError(row)
            unit = &self.units[row]
            if column == 0:
                numbers[at] = unit.health
            elif column == 1:
                numbers[at] = unit.shield
            else:
                numbers[at] = unit.weapon_cooldown
            at += 1
        return taken


cdef Cursor cursor_of(bytes data):
    cdef Cursor cursor
    cursor.at = <const uint8_t*>PyBytes_AsString(data)
    cursor.end = cursor.at + PyBytes_Size(data)
    return cursor


def observation(bytes payload, uint32_t request_id):
    """The observation in a reply, if nothing is unusual.

    Args:
        payload: a serialized `Response`.
        request_id: the request's.

    Returns:
        A `Plain`; None if pure Python must judge the reply.
    """
    cdef Cursor answer
    cdef Plain plain = Plain.__new__(Plain)
    learn_messages()
    plain.payload = payload
    if read_reply(cursor_of(payload), OBSERVATION, request_id, &answer) and plain.read(answer):
        return plain
    return None


# ---- the requests of a step ----------------------------------------------------------------------


cdef size_t varint_size(uint64_t value) noexcept nogil:
    cdef size_t size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


cdef uint8_t* write_varint(uint8_t* at, uint64_t value) noexcept nogil:
    while value >= 0x80:
        at[0] = <uint8_t>(value & 0x7F | 0x80)
        at += 1
        value >>= 7
    at[0] = <uint8_t>value
    return at + 1


cdef uint8_t* write_head(uint8_t* at, size_t size) noexcept nogil:
    """The head of a client's frame with a binary message of this size; its mask is zero."""
    cdef int shift
    at[0] = BINARY
    if size < 126:
        at[1] = <uint8_t>(0x80 | size)
        at += 2
    elif size < 1 << 16:
        at[1] = 0x80 | 126
        at[2] = <uint8_t>(size >> 8)
        at[3] = <uint8_t>size
        at += 4
    else:
        at[1] = 0x80 | 127
        for shift in range(8):
            at[2 + shift] = <uint8_t>(size >> (8 * (7 - shift)))
        at += 10
    memset(at, 0, 4)
    return at + 4


cdef uint8_t* write_id(uint8_t* at, uint32_t request_id) noexcept nogil:
    at = write_varint(at, 97 << 3 | VARINT)
    return write_varint(at, request_id)


cdef uint32_t id_after(uint32_t request_id) noexcept nogil:
    return (request_id + 1) & MOST_ID


cpdef bytes step_frames(uint32_t first_id, list actions, uint32_t loops):
    """The frames of a step's requests: the actions, if there are any, the step, the observation.

    Args:
        first_id: of the first request; the others follow.
        actions: serialized `Action`s.
        loops: how far to advance.
    """
    cdef bytes action
    cdef size_t inside = 0
    cdef size_t size
    cdef uint32_t request_id = first_id
    for action in actions:
        size = PyBytes_Size(action)
        inside += 1 + varint_size(size) + size
    cdef uint8_t* start = <uint8_t*>malloc(inside + 128)  # the rest is shorter than that
    if start == NULL:
        raise MemoryError
    cdef uint8_t* at = start
    if actions:
        size = 1 + varint_size(inside) + inside + 2 + varint_size(request_id)
        at = write_head(at, size)
        at = write_varint(at, ACTION << 3 | LENGTH)
        at = write_varint(at, inside)
        for action in actions:
            size = PyBytes_Size(action)
            at = write_varint(at, 1 << 3 | LENGTH)
            at = write_varint(at, size)
            memcpy(at, PyBytes_AsString(action), size)
            at += size
        at = write_id(at, request_id)
        request_id = id_after(request_id)
    inside = 1 + varint_size(loops)
    at = write_head(at, 2 + inside + 2 + varint_size(request_id))
    at = write_varint(at, STEP << 3 | LENGTH)
    at = write_varint(at, inside)
    at = write_varint(at, 1 << 3 | VARINT)
    at = write_varint(at, loops)
    at = write_id(at, request_id)
    request_id = id_after(request_id)
    at = write_head(at, 4 + 2 + varint_size(request_id))
    at = write_varint(at, OBSERVATION << 3 | LENGTH)
    at = write_varint(at, 2)
    at = write_varint(at, 1 << 3 | VARINT)  # disable_fog
    at = write_varint(at, 0)
    at = write_id(at, request_id)
    try:
        return PyBytes_FromStringAndSize(<char*>start, at - start)
    finally:
        free(start)


# ---- the replies of a step -----------------------------------------------------------------------


cdef bint read_results(Cursor cursor, Py_ssize_t* n) noexcept nogil:
    """A `ResponseAction` in which every action succeeded; `n` is their number."""
    cdef Field field
    n[0] = 0
    while cursor.at < cursor.end:
        if not read_field(&cursor, &field):
            return False
        if field.number != 1 or field.wire_type != VARINT or field.value != SUCCESS:
            return False
        n[0] += 1
    return True


cdef bint read_step(Cursor cursor, uint32_t* simulation_loop) noexcept nogil:
    """A `ResponseStep`."""
    cdef Field field
    cdef uint64_t seen = 0
    simulation_loop[0] = 0
    while cursor.at < cursor.end:
        if not read_field(&cursor, &field) or not is_new(&seen, field.number):
            return False
        if field.number != 1 or field.wire_type != VARINT or field.value > UINT32_MAX:
            return False
        simulation_loop[0] = <uint32_t>field.value
    return True


cdef int read_frames(Cursor cursor, Cursor* messages, int n) noexcept nogil:
    """The messages of n whole frames; 1 if these are all there is, 0 if more has to come, else -1."""
    cdef uint64_t size
    cdef int i, at, head
    for i in range(n):
        if cursor.end - cursor.at < 2:
            return 0 if cursor.at == cursor.end or cursor.at[0] == BINARY else -1
        if cursor.at[0] != BINARY or cursor.at[1] > 127:
            return -1
        size = cursor.at[1]
        head = 2 if size < 126 else 4 if size == 126 else 10
        if cursor.end - cursor.at < head:
            return 0
        if head > 2:
            size = 0
            for at in range(2, head):
                size = size << 8 | cursor.at[at]
        if size > MOST_BYTES or (head == 4 and size < 126) or (head == 10 and size < 1 << 16):
            return -1
        cursor.at += head
        if size > <uint64_t>(cursor.end - cursor.at):
            return 0
        messages[i].at = cursor.at
        cursor.at += size
        messages[i].end = cursor.at
    return 1 if cursor.at == cursor.end else -1


def step_replies(bytes data, uint32_t first_id, bint acts):
    """The observation in the frames of a step's replies, if nothing is unusual.

    Args:
        data: all that was received.
        first_id: the first request's.
        acts: whether there were actions.

    Returns:
        A `Plain`; None if pure Python must judge the replies.
    """
    cdef Cursor messages[3]
    learn_messages()
    if read_frames(cursor_of(data), messages, 2 + acts) != 1:
        return None
    return read_replies(messages, first_id, acts)


cdef object read_replies(Cursor* messages, uint32_t request_id, bint acts):
    cdef Cursor answer
    cdef Py_ssize_t n_results = 0
    cdef uint32_t simulation_loop
    cdef Plain plain
    if acts:
        if not read_reply(messages[0], ACTION, request_id, &answer):
            return None
        if not read_results(answer, &n_results):
            return None
        request_id = id_after(request_id)
        messages += 1
    if not read_reply(messages[0], STEP, request_id, &answer):
        return None
    if not read_step(answer, &simulation_loop):
        return None
    if not read_reply(messages[1], OBSERVATION, id_after(request_id), &answer):
        return None
    plain = Plain.__new__(Plain)
    if not plain.read(answer):
        return None
    plain.payload = PyBytes_FromStringAndSize(
        <const char*>messages[1].at, messages[1].end - messages[1].at
    )
    plain.n_results = n_results
    plain.simulation_loop = simulation_loop
    return plain


cdef class Wire:
    """A game's socket: sends a step's requests and waits for the replies, nothing else.

    Args:
        sock: the descriptor of the connection's socket.
        loop: a descriptor that is readable if the event loop has something to do.
    """

    cdef int sock
    cdef int loop
    cdef uint8_t* buffer
    cdef Py_ssize_t room
    cdef Py_ssize_t received
    # The step under way:
    cdef uint32_t first_id
    cdef bint acts
    cdef bytes frames
    cdef Py_ssize_t sent

    def __init__(self, int sock, int loop):
        self.sock = sock
        self.loop = loop
        learn_messages()

    def __dealloc__(self):
        free(self.buffer)

    def step(self, uint32_t first_id, list actions, uint32_t loops, double deadline_s):
        """Send the requests of a step, and wait for the replies.

        Args:
            first_id, actions, loops: as of `step_frames`.
            deadline_s: in the time of `time.monotonic`.

        Returns:
            A `Plain`, if nothing was unusual. Otherwise as `taken`: pure Python goes on with it.
        """
        cdef Cursor messages[3]
        cdef int state = -1
        if self.begin(first_id, actions, loops):
            with nogil:
                # At the deadline, a signal, or work for the event loop, pure Python goes on.
                while wait(self.sock, self.loop, remaining_ms(deadline_s)):
                    state = self.arrived(messages)
                    if state != 0:
                        break
        return self.outcome(messages, state)

    cpdef bint begin(self, uint32_t first_id, list actions, uint32_t loops) except -1:
        """Send the requests of a step.

        Args:
            first_id, actions, loops: as of `step_frames`.

        Returns:
            False if not all of it went out, or if something had come without a request.
        """
        self.first_id = first_id
        self.acts = len(actions) > 0
        self.frames = step_frames(first_id, actions, loops)
        cdef const char* start = PyBytes_AsString(self.frames)
        cdef Py_ssize_t size = PyBytes_Size(self.frames)
        with nogil:
            self.sent = 0
            self.received = 0
            # What comes without a request must not be taken for an answer.
            if self.receive() == 0:
                self.sent = send(self.sock, start, size, MSG_DONTWAIT)
        if self.sent == size:
            return True
        self.sent = max(self.sent, 0)
        return False

    def finish(self):
        """Read what has come of the replies to `begin`; all that has, so wait for more.

        Returns:
            None if more is to come, otherwise as `step`.
        """
        cdef Cursor messages[3]
        cdef int state
        with nogil:
            state = self.arrived(messages)
        return None if state == 0 else self.outcome(messages, state)

    cdef object outcome(self, Cursor* messages, int state):
        plain = read_replies(messages, self.first_id, self.acts) if state > 0 else None
        return self.taken() if plain is None else plain

    def taken(self):
        """How far the step has come: bytes sent since `begin`, the frames, the bytes that came."""
        return self.sent, self.frames, PyBytes_FromStringAndSize(<char*>self.buffer, self.received)

    cdef int arrived(self, Cursor* messages) noexcept nogil:
        """Read all there is; 1 with all replies, 0 if more is to come, -1 for anything else."""
        cdef Cursor cursor
        cdef int state
        while True:
            state = self.receive()
            if state < 0:
                return -1
            if state == 0 or self.received < self.room:
                break
        if self.received == 0:
            return 0
        cursor.at = self.buffer
        cursor.end = self.buffer + self.received
        return read_frames(cursor, messages, 2 + self.acts)

    cdef int receive(self) noexcept nogil:
        """Append what has come; 1, or 0 if nothing has yet, or -1 if nothing will or may."""
        cdef Py_ssize_t got
        cdef Py_ssize_t room
        cdef void* grown
        if self.received == self.room:
            room = 2 * self.room if self.room else LEAST_BYTES
            grown = realloc(self.buffer, room) if room <= MOST_BYTES else NULL
            if grown == NULL:
                return -1
            self.buffer = <uint8_t*>grown
            self.room = room
        got = recv(self.sock, self.buffer + self.received, self.room - self.received, MSG_DONTWAIT)
        if got > 0:
            self.received += got
            return 1
        return 0 if got < 0 and nothing_yet() else -1


cdef int remaining_ms(double deadline_s) noexcept nogil:
    """The time until the deadline, rounded up; -1 if there is none."""
    cdef double left_s = deadline_s - now_s()
    if left_s <= 0:
        return 0
    return -1 if left_s > 1e6 else <int>(left_s * 1000) + 1


# ---- the request of a step -----------------------------------------------------------------------


cdef class Requests:
    """A worker's slot: waits for its next request; see `WorkerEnd.is_requested`.

    Args:
        words: the slot's header, an array of words of 8 bytes.
        request: which of them holds that number.

    Raises:
        TypeError: it is no array.
        IndexError: the header has no such word.
    """

    cdef Py_buffer words
    cdef const uint64_t* request

    def __cinit__(self, words, *, int request):
        if type(words).__name__ != "ndarray":  # as in `Row`
            raise TypeError(f"expected an array, got {type(words).__name__}")
        PyObject_GetBuffer(words, &self.words, PyBUF_FULL)
        if not 0 <= request < self.words.len // 8:
            raise IndexError(f"the header has {self.words.len // 8} words")
        self.request = <const uint64_t*>self.words.buf + request

    def __dealloc__(self):
        PyBuffer_Release(&self.words)

    def wait(self, uint64_t sequence, int epoll, int doorbell):
        """Block until there is the request after the one with this number.

        Args:
            sequence: of the newest request that was taken.
            epoll: the descriptor of what to wait with; it watches the doorbell for changes.
            doorbell: the descriptor that the trainer rings.

        Returns:
            The new request's number; 0 if something else ended the wait, such as a signal.
        """
        cdef uint64_t request
        cdef bint rings = True
        while rings:
            request = newest(self.request)
            if request == sequence + 1:
                return request
            with nogil:
                rings = only_rings(epoll, doorbell)
        return 0


cdef class Ringing:
    """As `doorbells.Ringing`, which says what it is for."""

    cdef public bint in_turns
    cdef public bint is_due
    cdef int doorbell
    cdef object again
    cdef object later

    def __init__(self, int doorbell, again, later):
        self.doorbell = doorbell
        self.again = again
        self.later = later

    def ring(self):
        cdef uint64_t one = 1
        if self.in_turns:
            if not self.is_due:
                self.is_due = True
                self.later()
        elif write(self.doorbell, &one, sizeof(one)) != sizeof(one):
            self.again()


# ---- the trainer's side --------------------------------------------------------------------------


cdef class Headers:
    """Some slots of the trainer's as one batch: sends to all, and looks which have replied.

    Args:
        sequences: an array, the number of the newest request of each slot.
        requests, replies, flags: the columns of these words, an array each.
        rows: the numbers of these rows, in the batch's order.

    Raises:
        TypeError: a column is no array.
        ValueError: it does not have 8 bytes for each slot.
        IndexError: there is no such slot.
    """

    cdef Py_buffer columns[4]
    cdef int held
    cdef Py_ssize_t* rows
    cdef Py_ssize_t n

    def __cinit__(self, sequences, requests, replies, flags, list rows):
        for column in (sequences, requests, replies, flags):
            if type(column).__name__ != "ndarray":  # as in `Row`
                raise TypeError(f"expected an array, got {type(column).__name__}")
            PyObject_GetBuffer(column, &self.columns[self.held], PyBUF_FULL)
            self.held += 1
        for i in range(4):
            if (
                self.columns[i].ndim != 1
                or self.columns[i].itemsize != 8
                or self.columns[i].shape[0] != self.columns[0].shape[0]
            ):
                raise ValueError("expected four columns of the same rows, with words of 8 bytes")
        self.n = len(rows)
        self.rows = <Py_ssize_t*>malloc((self.n + 1) * sizeof(Py_ssize_t))
        if self.rows == NULL:
            raise MemoryError
        for place, row in enumerate(rows):
            if not 0 <= row < self.columns[0].shape[0]:
                raise IndexError(row)
            self.rows[place] = row

    def __dealloc__(self):
        cdef int i
        for i in range(self.held):
            PyBuffer_Release(&self.columns[i])
        free(self.rows)

    cdef inline uint64_t* word(self, int column, Py_ssize_t place) noexcept:
        cdef Py_buffer* of_all = &self.columns[column]
        return <uint64_t*>(<char*>of_all.buf + self.rows[place] * of_all.strides[0])

    def send(self):
        """Number a request for each row, and publish it."""
        cdef Py_ssize_t place
        for place in range(self.n):
            self.word(SEQUENCES, place)[0] += 1
            publish(self.word(REQUESTS, place), self.word(SEQUENCES, place)[0])

    def unanswered(self):
        """The places of the rows whose newest request has no reply, ascending."""
        cdef Py_ssize_t place
        cdef list places = []
        for place in range(self.n):
            if newest(self.word(REPLIES, place)) != self.word(SEQUENCES, place)[0]:
                places.append(place)
        return places

    def flags(self):
        """The flags of all these rows' replies together."""
        cdef Py_ssize_t place
        cdef uint64_t together = 0
        for place in range(self.n):
            together |= self.word(FLAGS, place)[0]
        return together


cdef enum:
    # Columns of `Headers`.
    SEQUENCES = 0
    REQUESTS = 1
    REPLIES = 2
    FLAGS = 3


def all_within(numbers, int64_t low, int64_t high):
    """True if all whole numbers of an array are in [low, high).

    Args:
        numbers: an array; False if it is not one of 8-byte numbers in one block.
    """
    cdef Py_buffer given
    cdef Py_ssize_t i
    cdef bint good = True
    cdef const int64_t* at
    if type(numbers).__name__ != "ndarray":
        return False
    PyObject_GetBuffer(numbers, &given, PyBUF_FULL_RO)
    if strcmp(given.format, "l") != 0 or not PyBuffer_IsContiguous(&given, b"C"):
        good = False
    else:
        at = <const int64_t*>given.buf
        for i in range(given.len // 8):
            good &= low <= at[i] < high
    PyBuffer_Release(&given)
    return good


# ---- the transition of a step --------------------------------------------------------------------


cdef bint is_finite(const Py_buffer* numbers) noexcept nogil:
    """True if an array of floats has no NaN and no infinity; False also if it has other elements."""
    cdef Py_ssize_t i
    cdef const uint32_t* singles = <const uint32_t*>numbers.buf
    cdef const uint64_t* doubles = <const uint64_t*>numbers.buf
    cdef bint bad = False
    if strcmp(numbers.format, "f") == 0:
        for i in range(numbers.len // 4):
            bad |= singles[i] & 0x7F800000 == 0x7F800000
    elif strcmp(numbers.format, "d") == 0:
        for i in range(numbers.len // 8):
            bad |= doubles[i] & 0x7FF0000000000000ULL == 0x7FF0000000000000ULL
    else:
        return False
    return not bad


cdef bint is_like(const Py_buffer* given, const Py_buffer* place) noexcept:
    """True if an array has elements of the same type in the same shape, aligned in one block."""
    cdef int axis
    if given.ndim != place.ndim or strcmp(given.format, place.format) != 0:
        return False
    if <size_t>given.buf % <size_t>place.itemsize:
        return False
    for axis in range(place.ndim):
        if given.shape[axis] != place.shape[axis]:
            return False
    return PyBuffer_IsContiguous(given, b"C")


cdef class Row:
    """A worker's slot: takes the plain transitions of an env with one row, nothing else.

    Plain are those of an episode that goes on, with an empty info, whose observation is an array
    like the slot's, and so is the action mask if there is one.

    Args:
        words: the slot's header, an array of words of 8 bytes.
        observation, mask: the slot's arrays for the answers to requests with an even number.
        other_observation, other_mask: the same for those with an odd number.
        must_be_finite: whether a NaN or an infinity in an observation is an error.
        reply, flags, reward, total: which words hold the number of the answered request, the flags,
            the reward, and the sum of the episode's rewards.
        masked: the flag of a transition with a mask.

    Raises:
        TypeError: they are not all arrays.
        IndexError: the header has no such word.
    """

    cdef Py_buffer words
    cdef Py_buffer observations[2]
    cdef Py_buffer masks[2]
    cdef object array_type
    cdef bint must_be_finite
    cdef uint64_t* reply
    cdef uint64_t* flags
    cdef double* reward
    cdef double* total
    cdef uint64_t masked

    def __cinit__(
        self, words, observation, mask, other_observation, other_mask, *,
        bint must_be_finite, int reply, int flags, int reward, int total, uint64_t masked
    ):
        # The garbage collector may clear a memoryview whose memory is still held; not an array.
        arrays = (words, observation, mask, other_observation, other_mask)
        if len(set(map(type, arrays))) > 1:
            kinds = ", ".join(type(given).__name__ for given in arrays)
            raise TypeError(f"expected five arrays, got {kinds}")
        PyObject_GetBuffer(words, &self.words, PyBUF_FULL)
        PyObject_GetBuffer(observation, &self.observations[0], PyBUF_FULL)
        PyObject_GetBuffer(other_observation, &self.observations[1], PyBUF_FULL)
        PyObject_GetBuffer(mask, &self.masks[0], PyBUF_FULL)
        PyObject_GetBuffer(other_mask, &self.masks[1], PyBUF_FULL)
        cdef uint64_t* header = <uint64_t*>self.words.buf
        if min(reply, flags, reward, total) < 0 or max(reply, flags, reward, total) >= len(words):
            raise IndexError(f"the header has {len(words)} words")
        self.array_type = type(observation)
        self.must_be_finite = must_be_finite
        self.reply = header + reply
        self.flags = header + flags
        self.reward = <double*>(header + reward)
        self.total = <double*>(header + total)
        self.masked = masked

    def __dealloc__(self):
        cdef int place
        PyBuffer_Release(&self.words)
        for place in range(2):
            PyBuffer_Release(&self.observations[place])
            PyBuffer_Release(&self.masks[place])

    def put(self, uint64_t sequence, transition):
        """Write a transition, and publish it as the reply to the request with this number.

        Args:
            sequence: of the newest request.
            transition: a `Transition`.

        Returns:
            False, with nothing written, if it is not plain: pure Python must write or refuse it.
        """
        cdef Py_buffer observation, mask
        cdef int place = sequence & 1
        seen, reward, terminated, truncated, info, masks = transition
        if terminated or truncated or type(reward) is not float or type(info) is not dict or info:
            return False
        if not self.take(seen, &self.observations[place], &observation):
            return False
        if self.must_be_finite and not is_finite(&observation):
            PyBuffer_Release(&observation)
            return False
        if masks is None:
            self.flags[0] = 0
        elif self.take(masks, &self.masks[place], &mask):
            memcpy(self.masks[place].buf, mask.buf, mask.len)
            PyBuffer_Release(&mask)
            self.flags[0] = self.masked
        else:
            PyBuffer_Release(&observation)
            return False
        memcpy(self.observations[place].buf, observation.buf, observation.len)
        PyBuffer_Release(&observation)
        self.reward[0] = reward
        self.total[0] += self.reward[0]
        publish(self.reply, sequence)
        return True

    cdef bint take(self, given, const Py_buffer* place, Py_buffer* buffer) except -1:
        """Hold an array's memory; False, with nothing held, if it cannot be copied to its place."""
        if type(given) is not self.array_type:
            return False
        try:
            PyObject_GetBuffer(given, buffer, PyBUF_FULL_RO)
        except (BufferError, ValueError):  # elements that have no format
            return False
        if is_like(buffer, place):
            return True
        PyBuffer_Release(buffer)
        return False
