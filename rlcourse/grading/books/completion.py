"""A file that says what a student passed, signed by the instructor, for anybody to verify.

Ed25519 (RFC 8032): the private key signs and stays with the instructor, the public key verifies
and can be put on a web page. A file that was changed by a letter, or made without the private key,
does not verify. A signature cannot show that the work is the student's own, nor that the person who
shows the file is the one it names. Anybody who gets the private key can sign anything.
"""

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

import rlcourse
from rlcourse.errors import UserError
from rlcourse.files import replace_bytes, write_errors_explained, write_json
from rlcourse.grading.books.grades import ClassGrades
from rlcourse.grading.handing_in.names import one_line, shown, why_no_id
from rlcourse.words import counted, points_of

PRIVATE, PUBLIC = ".completion-key", "completion-key.pub"
FORM = "rlcourse completion 1"
LARGEST = 2**20  # bytes of a file; none of ours is larger


def private_key(course: Path) -> Ed25519PrivateKey:
    """The course's signing key; the first call makes it, and the public key next to it.

    Raises:
        UserError: the file is not such a key, or the keys cannot be written.
    """
    path = course / PRIVATE
    if not path.exists():
        _make_key(path)
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path} is not a readable private key ({error})") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UserError(
            f"{path} is not an Ed25519 key: move it elsewhere, and a new one will be made"
        )
    public = course / PUBLIC
    if not public.exists():
        with write_errors_explained(public):
            replace_bytes(public, _pem(key.public_key()))
    return key


def _make_key(path: Path) -> None:
    made = Ed25519PrivateKey.generate()
    content = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with write_errors_explained(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)


def _pem(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def fingerprint(key: Ed25519PublicKey) -> str:
    """Eight groups of four letters that identify a key, for comparing by telephone, say."""
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    digest = hashlib.sha256(raw).hexdigest()[:32]
    return " ".join(digest[i : i + 4] for i in range(0, 32, 4))


def completion(grades: ClassGrades, student: str, share: float = 0.5) -> dict:
    """What `student` handed in, and what is passed: at least `share` of the possible points.

    Raises:
        UserError: there is no such student, or some answers are not graded by hand yet.
    """
    if student not in grades.students:
        raise UserError(f"{shown(student)} is not in the gradebook: {_few(list(grades.students))}")
    if reason := why_no_id(student):
        raise UserError(f"{shown(student)} cannot be the name of a file: {reason}")
    found = [grades.of(student, lesson) for lesson in grades.lessons]
    if waiting := [grade.lesson for grade in found if grade.waiting]:
        raise UserError(
            f"{student} still has answers to be graded by hand in: {', '.join(waiting)}"
        )
    return {
        "form": FORM,
        "course": grades.course,
        "version": rlcourse.__version__,
        "student": student,
        "name": grades.students[student].name,
        "issued": datetime.now(UTC).strftime("%Y-%m-%d"),
        "passes_at": share,
        "lessons": [
            {
                "lesson": grade.lesson,
                "points": round(grade.points, 4),
                "possible": grade.possible,
                "passed": not grade.missing and grade.points >= share * grade.possible,
            }
            for grade in found
        ],
    }


def _few(names: Sequence[str]) -> str:
    some = ", ".join(map(shown, names[:8])) or "it is empty"
    return some + (", …" if len(names) > 8 else "")


def signed(claim: dict, key: Ed25519PrivateKey) -> dict:
    """The claim with its signature, and the fingerprint of the key that made it."""
    claim = {**claim, "key": fingerprint(key.public_key())}
    signature = base64.b64encode(key.sign(_bytes(claim))).decode()
    return {**claim, "signature": signature}


def _bytes(claim: dict) -> bytes:
    """The claim as the bytes that are signed: the same for the same values, however laid out."""
    return json.dumps(claim, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def write_completion(path: Path, claim: dict, key: Ed25519PrivateKey) -> None:
    write_json(path, signed(claim, key))


def verified(path: Path, key: Path) -> dict:
    """The claim in `path`, which the owner of the public key in the file `key` has signed.

    Raises:
        UserError: it is not such a claim, or was changed, or somebody else signed it.
    """
    try:
        public = load_pem_public_key(key.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"{key} is not a readable public key: {error}") from None
    if not isinstance(public, Ed25519PublicKey):
        raise UserError(f"{key} is not an Ed25519 key: ask the instructor for {PUBLIC}")
    try:
        with path.open("rb") as file:
            claim = json.loads(file.read(LARGEST).decode("utf-8"))
        signature = base64.b64decode(claim.pop("signature"), validate=True)
        by, form, signed_bytes = claim["key"], claim["form"], _bytes(claim)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{path} is not a completion file of rlcourse") from None
    if by != fingerprint(public):
        raise UserError(f"NOT VERIFIED: {path} names a different key from {key}")
    try:
        public.verify(signature, signed_bytes)
    except InvalidSignature:
        raise UserError(f"NOT VERIFIED: {path} is not what the instructor has signed") from None
    if form != FORM:
        raise UserError(
            f"{path} is signed, but in the format of another version of rlcourse: {form}"
        )
    return claim


def described(claim: dict) -> str:
    """A verified claim in lines for people."""
    rows = claim["lessons"]
    width = max((len(row["lesson"]) for row in rows), default=0)
    lines = [
        f"{'✓' if row['passed'] else '·'} {row['lesson']:{width}}  "
        f"{points_of(row['points'], row['possible'])}"
        for row in rows
    ]
    passed = sum(row["passed"] for row in rows)
    who = claim["name"] if claim["name"] == claim["student"] else _with_id(claim)
    lessons = counted(len(rows), "lesson")
    head = f"{who}: {passed} of {lessons} passed, at {claim['passes_at']:.0%} of the points"
    head = one_line(head)  # a student may have invented the name
    signature = f"signed {claim['issued']} for {claim['course']} by the key {claim['key']}"
    return "\n".join([head, *lines, signature])


def _with_id(claim: dict) -> str:
    return f"{claim['name']} ({claim['student']})"
