# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The compiled step path: an observation read in one pass over its bytes, without its messages.

    bytes of a Response ─► observation() ─► Plain: id, loop, score, the units' columns
                                       └──► None: anything is unusual

Rules:
- it accepts only what pure Python accepts, and then says the same; the tests compare both;
- it decides about no fault: whatever is not exactly as expected is left to pure Python (`replies`,
  `sparse`, `observed`), which is complete without this module and gives the verdict;
- no read leaves the bytes: each message is read with a cursor that knows its own end.
"""

from cpython.bytearray cimport PyByteArray_AsString, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AsString, PyBytes_Size
from libc.stdint cimport (
    INT32_MAX, INT32_MIN, UINT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
)
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memcpy, memset

from s2clientprotocol import raw_pb2

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


cdef bint read_varint(Cursor* cursor, int most_bytes, uint64_t* value) noexcept nogil:
    cdef uint64_t result = 0
    cdef uint64_t bits
    cdef int read = 0
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


cdef bint read_field(Cursor* cursor, Field* field) noexcept nogil:
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


cdef bint is_new(uint64_t* seen, uint32_t number) noexcept nogil:
    """Whether a field that may occur once occurs for the first time."""
    cdef uint64_t bit = <uint64_t>1 << (number & 63)
    if number > 63 or seen[0] & bit:
        return False
    seen[0] |= bit
    return True


cdef bint read_float(Field* field, float* number) noexcept nogil:
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
    LAST_LOOP = 1 << 19  # as in `replies`


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


assert learn(raw_pb2.Unit.DESCRIPTOR) == UNIT


cdef bint is_known(int message, const Field* field) noexcept nogil:
    return field.number < MOST_FIELDS and known[message][field.number] == field.wire_type + 1


cdef bint is_valid(Cursor cursor, int message) noexcept nogil:
    """Whether the bytes are such a message, with known fields only."""
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
        status, error: as in the reply; always these.
    """

    status = IN_GAME
    error = ()

    cdef readonly bytes payload
    cdef readonly uint32_t game_loop
    cdef readonly int32_t score
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
    plain.payload = payload
    if read_reply(cursor_of(payload), OBSERVATION, request_id, &answer) and plain.read(answer):
        return plain
    return None
