/* What the files of the extension share. core.c says how it works. */

#ifndef UUIDD_CORE_H
#define UUIDD_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <stdbool.h>

#include "ids.h"

#if SIZEOF_VOID_P < 8
#error "the extension is for machines with 64 bits"
#endif

/* Before Python 3.13 there is no interpreter without the GIL. */
#ifndef Py_BEGIN_CRITICAL_SECTION
#define Py_BEGIN_CRITICAL_SECTION(of) {
#define Py_END_CRITICAL_SECTION() }
#endif

enum form { AS_UUID, AS_TEXT, AS_INT, AS_BYTES, FORMS };

/* How a uuid.UUID is made: by writing its two attributes where the type has them or, if int_at is 0,
 * by calling the type with *names* of arguments. */
struct uuids {
    PyTypeObject *type;
    PyObject *safe, *unknown, *names;
    Py_ssize_t int_at, safe_at;
};

/* What the module keeps. */
typedef struct {
    PyTypeObject *cutter;
    struct uuids uuids;
} State;

State *state_of(PyTypeObject *type);

/* Return which of the names it is; -1 with an exception. */
int kind_of(PyObject *name);
int form_of(PyObject *name);

/* --- objects.c */

/* Imports uuid; -1 with an exception. */
int find_uuids(struct uuids *uuids);

/* Returns a UUID without its attributes; NULL with an exception. */
PyObject *new_uuid(const struct uuids *uuids);

/* Returns an id in a form. A UUID whose type need not be called is the object uuid, which has been
 * allocated before; this function takes its reference. */
PyObject *id_object(const struct uuids *uuids, enum kind kind, enum form form,
                    const struct bits *id, bool safe, PyObject *uuid);

/* Reads an Origin (layouts.py); -1 with an exception. */
int read_origin(PyObject *value, struct origin *origin);

/* --- cutter.c */

typedef struct cutter Cutter;

/* Returns the next id; NULL without an exception if there has to be a refill. */
PyObject *cut_one(Cutter *cut, enum kind kind, enum form form);

extern PyType_Spec cutter_spec;

/* --- draw.c */

extern PyType_Spec draw_spec;

#endif
