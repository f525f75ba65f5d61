/* Parses lines of JSON into the buffers of Arrow arrays, and cuts columns out of delimited text.
 *
 * Both functions are strict: at the first byte they do not expect they stop and return None, and the caller reads the lines with
 * its other parser. So each rule about odd input is written once, in Python.
 *
 * Input ends with a newline. No loop passes a newline unless it looks for one, so no loop passes the end of the input.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MAX_DEPTH 64      /* objects and lists in one another */
#define MAX_DIGITS 200    /* characters of a number */
#define MAX_KEYS 4096     /* keys of an object whose places are remembered */

typedef const unsigned char *Text;

enum { OK = 0, GIVE_UP = 1, NO_MEMORY = 2 };

typedef struct { unsigned char *data; size_t used, size; } Buffer;

static int reserve(Buffer *buffer, size_t more) {
    if (buffer->size - buffer->used >= more) return OK;
    size_t size = buffer->size ? buffer->size : 256;
    while (size - buffer->used < more) {
        if (size > SIZE_MAX / 2) return NO_MEMORY;
        size *= 2;
    }
    unsigned char *data = realloc(buffer->data, size);
    if (!data) return NO_MEMORY;
    buffer->data = data;
    buffer->size = size;
    return OK;
}

static int append(Buffer *buffer, const void *bytes, size_t count) {
    if (!count) return OK;
    if (reserve(buffer, count)) return NO_MEMORY;
    memcpy(buffer->data + buffer->used, bytes, count);
    buffer->used += count;
    return OK;
}

typedef struct { Text at; size_t length; int column; } Key;

typedef struct Column {
    char kind;               /* i and u: integers, f: float64, b: bool, s: string, l: list, r: struct */
    int bits;                /* of integers */
    char *name;
    size_t name_length;
    int64_t rows, nulls;
    Buffer valid;            /* a bit for each row, from the first null on */
    Buffer values;           /* of fixed width, a bit each, or the bytes of strings */
    Buffer offsets;          /* of strings and lists */
    struct Column *children;
    int child_count;
    Key *keys;               /* the keys of the object before, in their order: the next one is likely to have the same */
    int key_count;
} Column;

static void free_column(Column *column) {
    for (int n = 0; n < column->child_count; n++) free_column(&column->children[n]);
    free(column->children);
    free(column->keys);
    free(column->name);
    free(column->valid.data);
    free(column->values.data);
    free(column->offsets.data);
}

static int set_bit(Buffer *bits, int64_t row, int value) {
    size_t needed = (size_t)(row / 8 + 1);
    if (bits->used < needed) {
        if (reserve(bits, needed - bits->used)) return NO_MEMORY;
        memset(bits->data + bits->used, 0, needed - bits->used);
        bits->used = needed;
    }
    if (value) bits->data[row / 8] |= (unsigned char)(1u << (row % 8));
    return OK;
}

/* Counts a row and notes whether it has a value. */
static int end_row(Column *column, int has_value) {
    if (has_value) {
        if (column->nulls && set_bit(&column->valid, column->rows, 1)) return NO_MEMORY;
    } else {
        if (!column->nulls)
            for (int64_t row = 0; row < column->rows; row++)
                if (set_bit(&column->valid, row, 1)) return NO_MEMORY;
        if (set_bit(&column->valid, column->rows, 0)) return NO_MEMORY;
        column->nulls++;
    }
    column->rows++;
    return OK;
}

static int end_offset(Column *column, int64_t end) {
    if (end > INT32_MAX) return GIVE_UP;
    int32_t offset = (int32_t)end;
    return append(&column->offsets, &offset, sizeof offset);
}

static int append_null(Column *column) {
    static const unsigned char zero[8] = {0};
    int status = OK;
    switch (column->kind) {
    case 'i': case 'u': status = append(&column->values, zero, (size_t)column->bits / 8); break;
    case 'f': status = append(&column->values, zero, 8); break;
    case 'b': status = set_bit(&column->values, column->rows, 0); break;
    case 's': status = end_offset(column, (int64_t)column->values.used); break;
    case 'l': status = end_offset(column, column->children[0].rows); break;
    default:
        for (int n = 0; n < column->child_count && !status; n++) status = append_null(&column->children[n]);
    }
    return status ? status : end_row(column, 0);
}

static Text skip_blanks(Text at) {
    while (*at == ' ' || *at == '\t' || *at == '\r') at++;
    return at;
}

/* Finds the first quote, backslash or control character. */
static inline Text plain_end(Text at, Text end) {
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        uint64_t ones = 0x0101010101010101ull, highs = 0x8080808080808080ull;
        uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
        uint64_t hit = ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((word - ones * 0x20) & ~word);
        if (hit & highs) break;
        at += 8;
    }
    while (*at != '"' && *at != '\\' && *at >= 0x20) at++;
    return at;
}

static int hex4(Text at) {
    int value = 0;
    for (int n = 0; n < 4; n++) {
        int c = at[n], digit;
        if (c >= '0' && c <= '9') digit = c - '0';
        else if ((c | 32) >= 'a' && (c | 32) <= 'f') digit = (c | 32) - 'a' + 10;
        else return -1; /* a newline, too */
        value = value * 16 + digit;
    }
    return value;
}

/* Reads an escape at its backslash: its bytes in UTF-8 and their number, 0 for what is not one. */
static int escaped(Text *at, unsigned char out[4]) {
    Text p = *at + 1;
    int c = *p++;
    switch (c) {
    case '"': case '\\': case '/': break;
    case 'b': c = '\b'; break;
    case 'f': c = '\f'; break;
    case 'n': c = '\n'; break;
    case 'r': c = '\r'; break;
    case 't': c = '\t'; break;
    case 'u':
        c = hex4(p);
        if (c < 0 || (c >= 0xDC00 && c < 0xE000)) return 0;
        p += 4;
        if (c >= 0xD800 && c < 0xDC00) {
            if (p[0] != '\\' || p[1] != 'u') return 0;
            int low = hex4(p + 2);
            if (low < 0xDC00 || low >= 0xE000) return 0;
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
            p += 6;
        }
        break;
    default: return 0;
    }
    *at = p;
    if (c < 0x80) { out[0] = (unsigned char)c; return 1; }
    if (c < 0x800) { out[0] = 0xC0 | (c >> 6); out[1] = 0x80 | (c & 63); return 2; }
    if (c < 0x10000) { out[0] = 0xE0 | (c >> 12); out[1] = 0x80 | ((c >> 6) & 63); out[2] = 0x80 | (c & 63); return 3; }
    out[0] = 0xF0 | (c >> 18); out[1] = 0x80 | ((c >> 12) & 63); out[2] = 0x80 | ((c >> 6) & 63); out[3] = 0x80 | (c & 63);
    return 4;
}

/* Reads a string after its opening quote. `into`: where its bytes go, NULL for nowhere. */
static int read_string(Text *at, Text end, Buffer *into) {
    Text p = *at;
    for (;;) {
        Text stop = plain_end(p, end);
        if (into && append(into, p, (size_t)(stop - p))) return NO_MEMORY;
        if (*stop == '"') { *at = stop + 1; return OK; }
        if (*stop != '\\') return GIVE_UP;
        unsigned char bytes[4];
        int count = escaped(&stop, bytes);
        if (!count) return GIVE_UP;
        if (into && append(into, bytes, (size_t)count)) return NO_MEMORY;
        p = stop;
    }
}

static inline int is_digit(int c) { return c >= '0' && c <= '9'; }

/* Finds the end of a number, NULL for what is not one. `is_integer`: it has no fraction and no exponent. */
static Text number_end(Text at, int *is_integer) {
    Text p = at;
    *is_integer = 1;
    if (*p == '-') p++;
    if (*p == '0') p++;
    else if (is_digit(*p)) while (is_digit(*p)) p++;
    else return NULL;
    if (*p == '.') {
        *is_integer = 0;
        if (!is_digit(*++p)) return NULL;
        while (is_digit(*p)) p++;
    }
    if (*p == 'e' || *p == 'E') {
        *is_integer = 0;
        p++;
        if (*p == '+' || *p == '-') p++;
        if (!is_digit(*p)) return NULL;
        if (p[-1] != '-' && is_digit(p[1]) && is_digit(p[2])) return NULL; /* too large for a double, maybe: an error in any column */
        while (is_digit(*p)) p++;
    }
    return p - at > MAX_DIGITS ? NULL : p;
}

static int read_word(Text *at, const char *word) {
    Text p = *at;
    for (; *word; word++, p++)
        if (*p != (unsigned char)*word) return GIVE_UP;
    *at = p;
    return OK;
}

/* Passes a value that no column wants. It must be JSON all the same. */
static int skip_value(Text *at, Text end, int depth) {
    Text p = *at;
    int status = OK, is_integer;
    if (depth > MAX_DEPTH) return GIVE_UP;
    switch (*p) {
    case '"':
        p++;
        if ((status = read_string(&p, end, NULL))) return status;
        break;
    case '{':
        p = skip_blanks(p + 1);
        if (*p == '}') { p++; break; }
        for (;;) {
            if (*p != '"') return GIVE_UP;
            p++;
            if ((status = read_string(&p, end, NULL))) return status;
            p = skip_blanks(p);
            if (*p != ':') return GIVE_UP;
            p = skip_blanks(p + 1);
            if ((status = skip_value(&p, end, depth + 1))) return status;
            p = skip_blanks(p);
            if (*p == '}') { p++; break; }
            if (*p != ',') return GIVE_UP;
            p = skip_blanks(p + 1);
        }
        break;
    case '[':
        p = skip_blanks(p + 1);
        if (*p == ']') { p++; break; }
        for (;;) {
            if ((status = skip_value(&p, end, depth + 1))) return status;
            p = skip_blanks(p);
            if (*p == ']') { p++; break; }
            if (*p != ',') return GIVE_UP;
            p = skip_blanks(p + 1);
        }
        break;
    case 't': if (read_word(&p, "true")) return GIVE_UP; break;
    case 'f': if (read_word(&p, "false")) return GIVE_UP; break;
    case 'n': if (read_word(&p, "null")) return GIVE_UP; break;
    default:
        p = number_end(p, &is_integer);
        if (!p) return GIVE_UP;
    }
    *at = p;
    return OK;
}

static int read_integer(Column *column, Text at, Text stop) {
    int is_negative = *at == '-';
    Text p = at + is_negative;
    if (stop - p > 19) return GIVE_UP;
    uint64_t value = 0;
    for (; p < stop; p++) value = value * 10 + (uint64_t)(*p - '0'); /* 19 digits fit */
    int64_t number;
    if (column->kind == 'u') {
        if (is_negative || (column->bits < 64 && value >> column->bits)) return GIVE_UP;
        number = (int64_t)value;
    } else {
        uint64_t limit = (uint64_t)1 << (column->bits - 1);
        if (is_negative ? value > limit : value >= limit) return GIVE_UP;
        number = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    }
    unsigned char bytes[8];
    switch (column->bits) {
    case 8: { int8_t n = (int8_t)number; memcpy(bytes, &n, 1); break; }
    case 16: { int16_t n = (int16_t)number; memcpy(bytes, &n, 2); break; }
    case 32: { int32_t n = (int32_t)number; memcpy(bytes, &n, 4); break; }
    default: memcpy(bytes, &number, 8);
    }
    return append(&column->values, bytes, (size_t)column->bits / 8);
}

static const double POWERS[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static int read_float(Column *column, Text at, Text stop) {
    Text p = at;
    int is_negative = *p == '-';
    p += is_negative;
    uint64_t digits = 0;
    int exponent = 0, count = 0, is_fraction = 0;
    for (; p < stop && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.') { is_fraction = 1; continue; }
        if (digits || *p != '0') count++;
        if (count <= 19) digits = digits * 10 + (uint64_t)(*p - '0');
        exponent -= is_fraction;
    }
    double value;
    if (p < stop) { /* e */
        int sign = 1, power = 0;
        p++;
        if (*p == '-') sign = -1;
        if (*p == '-' || *p == '+') p++;
        for (; p < stop; p++) power = power < 10000 ? power * 10 + (*p - '0') : power;
        exponent += sign * power;
    }
    /* Both parts are exact: so is the product or quotient, rounded once (Clinger 1990). */
    if (count <= 19 && digits <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
        value = (double)digits;
        value = exponent < 0 ? value / POWERS[-exponent] : value * POWERS[exponent];
        if (is_negative) value = -value;
    } else {
        char text[MAX_DIGITS + 1];
        size_t length = (size_t)(stop - at);
        memcpy(text, at, length);
        text[length] = 0;
        value = PyOS_string_to_double(text, NULL, NULL);
        if (value == -1.0 && PyErr_Occurred()) { PyErr_Clear(); return GIVE_UP; }
        if (value - value != 0) return GIVE_UP; /* too large */
    }
    return append(&column->values, &value, 8);
}

static int read_value(Column *column, Text *at, Text end, int depth);

/* The child that a key names, -1 for none. */
static int child_of(Column *column, Text key, size_t length) {
    for (int n = 0; n < column->child_count; n++) {
        Column *child = &column->children[n];
        if (child->name_length == length && !memcmp(child->name, key, length)) return n;
    }
    return -1;
}

/* Reads the members of an object after its brace. `skips_others`: members that are not columns are left out. */
static int read_members(Column *column, Text *at, Text end, int depth, int skips_others) {
    Text p = skip_blanks(*at);
    int status, number = 0;
    int64_t row = column->rows;
    if (depth > MAX_DEPTH) return GIVE_UP;
    if (*p == '}') p++;
    else for (;; number++) {
        if (*p != '"') return GIVE_UP;
        Text key = ++p;
        int child;
        if (number < column->key_count && column->keys[number].length < (size_t)(end - key)
            && !memcmp(key, column->keys[number].at, column->keys[number].length + 1)) { /* with its quote */
            child = column->keys[number].column;
            p = key + column->keys[number].length;
        } else {
            p = plain_end(key, end);
            if (*p != '"') return GIVE_UP; /* an escape, too */
            child = child_of(column, key, (size_t)(p - key));
            if (number < MAX_KEYS) {
                if (!column->keys && !(column->keys = malloc(MAX_KEYS * sizeof(Key)))) return NO_MEMORY;
                column->keys[number] = (Key){key, (size_t)(p - key), child};
                if (number >= column->key_count) column->key_count = number + 1;
            }
        }
        p = skip_blanks(p + 1);
        if (*p != ':') return GIVE_UP;
        p = skip_blanks(p + 1);
        if (child >= 0) {
            Column *each = &column->children[child];
            if (each->rows != row) return GIVE_UP; /* a key twice */
            if ((status = read_value(each, &p, end, depth + 1))) return status;
        } else {
            if (!skips_others) return GIVE_UP;
            if ((status = skip_value(&p, end, depth + 1))) return status;
        }
        p = skip_blanks(p);
        if (*p == '}') { p++; break; }
        if (*p != ',') return GIVE_UP;
        p = skip_blanks(p + 1);
    }
    for (int n = 0; n < column->child_count; n++)
        if (column->children[n].rows == row && (status = append_null(&column->children[n]))) return status;
    *at = p;
    return end_row(column, 1);
}

static int read_items(Column *column, Text *at, Text end, int depth) {
    Column *items = &column->children[0];
    Text p = skip_blanks(*at);
    int status;
    if (depth > MAX_DEPTH) return GIVE_UP;
    if (*p == ']') p++;
    else for (;;) {
        if ((status = read_value(items, &p, end, depth + 1))) return status;
        p = skip_blanks(p);
        if (*p == ']') { p++; break; }
        if (*p != ',') return GIVE_UP;
        p = skip_blanks(p + 1);
    }
    *at = p;
    if ((status = end_offset(column, items->rows))) return status;
    return end_row(column, 1);
}

static int read_value(Column *column, Text *at, Text end, int depth) {
    Text p = *at;
    int status = OK, is_integer;
    if (*p == 'n') {
        if (read_word(at, "null")) return GIVE_UP;
        return append_null(column);
    }
    switch (column->kind) {
    case 's':
        if (*p++ != '"') return GIVE_UP;
        if ((status = read_string(&p, end, &column->values))) return status;
        status = end_offset(column, (int64_t)column->values.used);
        break;
    case 'b':
        if (*p == 't') {
            if (read_word(&p, "true")) return GIVE_UP;
            status = set_bit(&column->values, column->rows, 1);
        } else {
            if (read_word(&p, "false")) return GIVE_UP;
            status = set_bit(&column->values, column->rows, 0);
        }
        break;
    case 'r':
        if (*p++ != '{') return GIVE_UP;
        *at = p;
        return read_members(column, at, end, depth, 0);
    case 'l':
        if (*p++ != '[') return GIVE_UP;
        *at = p;
        return read_items(column, at, end, depth);
    default: {
        Text stop = number_end(p, &is_integer);
        if (!stop) return GIVE_UP;
        if (column->kind == 'f') status = read_float(column, p, stop);
        else status = is_integer ? read_integer(column, p, stop) : GIVE_UP;
        p = stop;
    }
    }
    if (status) return status;
    *at = p;
    return end_row(column, 1);
}

/* Tells whether a text is UTF-8 (RFC 3629: no surrogates, no overlong forms). */
static int is_utf8(Text at, Text end) {
    while (at < end) {
        if (end - at >= 8) {
            uint64_t word;
            memcpy(&word, at, 8);
            if (!(word & 0x8080808080808080ull)) { at += 8; continue; }
        }
        int c = *at++, more, low = 0x80, high = 0xBF;
        if (c < 0x80) continue;
        if (c >= 0xC2 && c < 0xE0) more = 1;
        else if (c >= 0xE0 && c < 0xF0) { more = 2; if (c == 0xE0) low = 0xA0; if (c == 0xED) high = 0x9F; }
        else if (c >= 0xF0 && c < 0xF5) { more = 3; if (c == 0xF0) low = 0x90; if (c == 0xF4) high = 0x8F; }
        else return 0;
        for (; more; more--, low = 0x80, high = 0xBF) {
            if (at == end || *at < low || *at > high) return 0;
            at++;
        }
    }
    return 1;
}

/* Makes a column of (name, kind, bits, children). */
static int make_column(PyObject *spec, Column *column, int depth) {
    const char *name, *kind;
    Py_ssize_t length;
    PyObject *children;
    if (!PyTuple_Check(spec) || !PyArg_ParseTuple(spec, "s#siO!", &name, &length, &kind, &column->bits, &PyTuple_Type, &children)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a column is a tuple (name, kind, bits, columns)");
        return -1;
    }
    column->kind = *kind;
    Py_ssize_t count = PyTuple_GET_SIZE(children);
    int is_number = column->kind == 'i' || column->kind == 'u';
    if (!*kind || !strchr("iufbslr", *kind) || depth > MAX_DEPTH || (column->kind == 'l' && count != 1) || count > MAX_KEYS
        || (is_number && column->bits != 8 && column->bits != 16 && column->bits != 32 && column->bits != 64)) {
        PyErr_Format(PyExc_ValueError, "the column %s of kind %s is not supported", name, kind);
        return -1;
    }
    column->name = malloc((size_t)length + 1);
    if (count) column->children = calloc((size_t)count, sizeof(Column));
    if (!column->name || (count && !column->children)) { PyErr_NoMemory(); return -1; }
    memcpy(column->name, name, (size_t)length);
    column->name_length = (size_t)length;
    if (column->kind == 's' || column->kind == 'l')
        if (end_offset(column, 0)) { PyErr_NoMemory(); return -1; }
    column->child_count = (int)count;
    for (Py_ssize_t n = 0; n < count; n++)
        if (make_column(PyTuple_GET_ITEM(children, n), &column->children[n], depth + 1)) return -1;
    return 0;
}

static PyObject *bytes_of(Buffer *buffer) { return PyBytes_FromStringAndSize((const char *)buffer->data, (Py_ssize_t)buffer->used); }

/* (rows, nulls, validity or None, offsets or None, values or None, columns) */
static PyObject *result_of(Column *column) {
    PyObject *children = PyTuple_New(column->child_count);
    if (!children) return NULL;
    for (int n = 0; n < column->child_count; n++) {
        PyObject *child = result_of(&column->children[n]);
        if (!child) { Py_DECREF(children); return NULL; }
        PyTuple_SET_ITEM(children, n, child);
    }
    int has_offsets = column->kind == 's' || column->kind == 'l', has_values = column->kind != 'r' && column->kind != 'l';
    PyObject *valid = column->nulls ? bytes_of(&column->valid) : Py_NewRef(Py_None);
    PyObject *offsets = has_offsets ? bytes_of(&column->offsets) : Py_NewRef(Py_None);
    PyObject *values = has_values ? bytes_of(&column->values) : Py_NewRef(Py_None);
    if (!valid || !offsets || !values) {
        Py_XDECREF(valid); Py_XDECREF(offsets); Py_XDECREF(values); Py_DECREF(children);
        return NULL;
    }
    return Py_BuildValue("(LLNNNN)", (long long)column->rows, (long long)column->nulls, valid, offsets, values, children);
}

PyDoc_STRVAR(json_lines_doc,
"json_lines(data, columns, skips_others)\n--\n\n"
"Parse lines of JSON objects; data ends with a newline.\n\n"
"A column is (name, kind, bits, columns); kinds are i and u (integers), f (float64), b (bool), s (string), l (list), r (struct).\n"
"Return (rows, nulls, validity, offsets, values, columns) of a struct of the columns, None where a line is not what they say.\n"
"skips_others: members that are not columns are left out.");

static PyObject *json_lines(PyObject *module, PyObject *args) {
    Py_buffer data;
    PyObject *spec;
    int skips_others;
    if (!PyArg_ParseTuple(args, "y*O!p", &data, &PyTuple_Type, &spec, &skips_others)) return NULL;
    PyObject *result = NULL, *whole = Py_BuildValue("(ssiO)", "", "r", 0, spec);
    Column root = {0};
    if (!whole || make_column(whole, &root, 0)) goto done;
    Text at = data.buf, end = at + data.len;
    if (data.len && end[-1] != '\n') { PyErr_SetString(PyExc_ValueError, "the data does not end with a newline"); goto done; }
    int status = is_utf8(at, end) ? OK : GIVE_UP;
    while (at < end && !status) {
        at = skip_blanks(at);
        if (*at == '\n') { at++; continue; }
        if (*at++ != '{') { status = GIVE_UP; break; }
        if ((status = read_members(&root, &at, end, 1, skips_others))) break;
        at = skip_blanks(at);
        if (*at++ != '\n') status = GIVE_UP;
    }
    if (status == NO_MEMORY) PyErr_NoMemory();
    else result = status ? Py_NewRef(Py_None) : result_of(&root);
done:
    Py_XDECREF(whole);
    free_column(&root);
    PyBuffer_Release(&data);
    return result;
}

/* The delimiters, quotes and line ends of a text, one after the other. */
typedef struct {
    Text block, end;    /* the bytes that `hits` is about start here; the text ends there */
    uint64_t hits;      /* a bit for each of them among the next 64 bytes that has not been returned */
    unsigned char delimiter, quote;
} Marks;

static uint64_t hits_of(const Marks *marks) {
    uint64_t hits = 0;
    Text at = marks->block;
    size_t left = (size_t)(marks->end - at);
#ifdef __SSE2__
    if (left >= 64) {
        const __m128i delimiter = _mm_set1_epi8((char)marks->delimiter), quote = _mm_set1_epi8((char)marks->quote);
        const __m128i newline = _mm_set1_epi8('\n'), carriage_return = _mm_set1_epi8('\r');
        for (int n = 0; n < 4; n++) {
            __m128i bytes = _mm_loadu_si128((const __m128i *)(at + 16 * n));
            __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(bytes, newline), _mm_cmpeq_epi8(bytes, carriage_return));
            __m128i inner = _mm_or_si128(_mm_cmpeq_epi8(bytes, delimiter), _mm_cmpeq_epi8(bytes, quote));
            hits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_or_si128(ends, inner)) << (16 * n);
        }
        return hits;
    }
#endif
    for (size_t n = 0; n < 64 && n < left; n++) {
        unsigned char c = at[n];
        hits |= (uint64_t)(c == marks->delimiter || c == '\n' || c == '\r' || c == marks->quote) << n;
    }
    return hits;
}

static void look_from(Marks *marks, Text at) {
    marks->block = at;
    marks->hits = hits_of(marks);
}

/* The next one. There always is one: the text ends with a newline. */
static inline Text next_mark(Marks *marks) {
    while (!marks->hits) look_from(marks, marks->block + 64);
    Text mark = marks->block + __builtin_ctzll(marks->hits);
    marks->hits &= marks->hits - 1;
    return mark;
}

PyDoc_STRVAR(cut_doc,
"cut(data, delimiter, quote, is_wanted)\n--\n\n"
"Cut columns out of delimited text; data ends with a newline.\n\n"
"delimiter and quote are numbers of bytes (a quote that is the delimiter: there are none). is_wanted has a byte for each column,\n"
"zero for those that are left out. Return (rows, text of the wanted columns), None where a row has another number of fields or is\n"
"empty, or a quote or a carriage return does not stand where a writer of CSV puts it.");

static PyObject *cut(PyObject *module, PyObject *args) {
    Py_buffer data, columns;
    int delimiter, quote;
    if (!PyArg_ParseTuple(args, "y*iiy*", &data, &delimiter, &quote, &columns)) return NULL;
    PyObject *result = NULL;
    Text at = data.buf, end = at + data.len;
    const char *is_wanted = columns.buf;
    Py_ssize_t fields = columns.len, rows = 0;
    unsigned char *out = malloc((size_t)data.len + 1), *to = out;
    if (!out) { PyErr_NoMemory(); goto done; }
    if (data.len && end[-1] != '\n') { PyErr_SetString(PyExc_ValueError, "the data does not end with a newline"); goto done; }
    Marks marks = {at, end, 0, (unsigned char)delimiter, (unsigned char)quote};
    look_from(&marks, at);
    for (; at < end; rows++) {
        unsigned char *first = to;
        Text row = at;
        for (Py_ssize_t field = 0;; field++) {
            Text start = at;
            at = next_mark(&marks);
            if (field == fields) goto give_up;
            if (*at == quote && quote != delimiter) {
                if (at != start) goto give_up;
                do { /* two quotes are one; newlines are text */
                    at = memchr(at + 1, quote, (size_t)(end - at - 1));
                    if (!at) goto give_up;
                    at++; /* to the newline at the end, at most */
                } while (*at == quote);
                look_from(&marks, at);
                if (next_mark(&marks) != at) goto give_up; /* text after the quote */
            }
            if (is_wanted[field]) {
                memcpy(to, start, (size_t)(at - start));
                to += at - start;
                *to++ = (unsigned char)delimiter;
            }
            if (*at == delimiter) { at++; continue; }
            if (at == row || field + 1 != fields) goto give_up;
            if (*at == '\r') {
                Text after = at + 1;
                at = next_mark(&marks);
                if (at != after || *at != '\n') goto give_up;
            }
            at++;
            if (to == first) goto give_up; /* no column is wanted */
            to[-1] = '\n';
            break;
        }
    }
    result = Py_BuildValue("(ny#)", rows, out, (Py_ssize_t)(to - out));
    goto done;
give_up:
    result = Py_NewRef(Py_None);
done:
    free(out);
    PyBuffer_Release(&data);
    PyBuffer_Release(&columns);
    return result;
}

static PyMethodDef methods[] = {
    {"json_lines", json_lines, METH_VARARGS, json_lines_doc},
    {"cut", cut, METH_VARARGS, cut_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "dagflow_native._parse", "Parsers that give up early.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__parse(void) { return PyModule_Create(&module); }
