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

/* What the module of an interpreter keeps: the class uuid.UUID, where its objects have their two
 * attributes, and what the second of them can be. */
struct uuids {
    PyTypeObject *type;
    PyObject *safe, *unknown;
    Py_ssize_t int_at, safe_at;
};

/* These read an enum kind and an enum form, for "O&" of PyArg_ParseTuple. */
int read_kind(PyObject *name, void *kind);
int read_form(PyObject *name, void *form);

/* --- objects.c */

/* Imports uuid; -1 with an exception. */
int find_uuids(struct uuids *uuids);

/* Returns an id in a form; NULL with an exception. */
PyObject *id_object(const struct uuids *uuids, enum kind kind, enum form form,
                    const struct bits *id, bool safe);

/* --- cutter.c */

typedef struct cutter Cutter;

bool is_cutter(PyObject *object);

/* Returns the next id; NULL without an exception if there has to be a refill. */
PyObject *cut_one(Cutter *cut, enum kind kind, enum form form);

extern PyType_Spec cutter_spec;

/* --- draw.c */

extern PyType_Spec draw_spec;

#endif
