"""`/subjects`: versions of a subject, registering, looking up, deleting."""

from __future__ import annotations

from kpybroker.registry.api.call import Call, Result, Text
from kpybroker.registry.errors import schema_not_found, subject_not_found
from kpybroker.registry.rules import delete, entities, look_up, register
from kpybroker.registry.rules.library import Library
from kpybroker.registry.store import contexts
from kpybroker.registry.store.records import Version
from kpybroker.registry.store.state import State


def list_subjects(call: Call) -> Result:
    """GET /subjects: the names of subjects with a prefix"""
    prefix = call.parameter("subjectPrefix", contexts.ALL)
    only_deleted = call.flag("deletedOnly")

    def query(state: State, _: Library) -> list[str]:
        found = state.subjects(deleted=only_deleted or call.flag("deleted"))
        if only_deleted:
            found = sorted(set(found) - set(state.subjects()))
        return [name for name in found if contexts.matches(prefix, name)]

    return call.page(call.service.read(query))


def list_versions(call: Call) -> Result:
    """GET /subjects/{subject}/versions: the numbers of its versions"""
    is_negative, only_deleted = call.flag("deletedAsNegative"), call.flag("deletedOnly")

    def query(state: State, _: Library) -> list[int]:
        found = list(state.versions(call.subject, deleted=only_deleted or call.flag("deleted")))
        if not found:
            raise subject_not_found(call.subject)
        if is_negative:
            every = state.versions(call.subject, deleted=True)
            return [-one.version if one.is_deleted else one.version for one in every]
        return [version.version for version in found if version.is_deleted or not only_deleted]

    return call.page(call.service.read(query))


def get_version(call: Call) -> Result:
    """GET /subjects/{subject}/versions/{version}: a version, or the latest"""

    def query(state: State, library: Library) -> Result:
        version = look_up.find_anywhere(state, call.subject, call.path["version"], deleted=call.flag("deleted"))
        return call.qualified(entities.whole(version, _formatted(call, library, version)), version.subject)

    return call.service.read(query)


def get_text(call: Call) -> Result:
    """GET /subjects/{subject}/versions/{version}/schema: the text of its schema alone"""
    return Text(get_version(call)["schema"])


def get_referrers(call: Call) -> Result:
    """GET /subjects/{subject}/versions/{version}/referencedby: ids of the schemas that refer to it"""

    def query(state: State, _: Library) -> list[int]:
        version = look_up.find_version(state, call.subject, call.path["version"], deleted=True)
        users = state.referrers(version.subject, version.version, deleted=call.flag("deleted"))
        return sorted({user.id for user in users})

    return call.page(call.service.read(query))


def get_latest_with_metadata(call: Call) -> Result:
    """GET /subjects/{subject}/metadata: the latest version whose metadata has the properties asked for"""
    wanted = dict(zip(call.query.getlist("key"), call.query.getlist("value"), strict=False))

    def query(state: State, library: Library) -> Result:
        versions = list(state.versions(call.subject, deleted=call.flag("deleted")))
        if not versions:
            raise subject_not_found(call.subject)
        for version in reversed(versions):
            if version.definition.metadata is not None and all(
                look_up.property_of(version.definition, key) == value for key, value in wanted.items()
            ):
                return entities.whole(version, _formatted(call, library, version))
        raise schema_not_found()

    return call.service.read(query)


def register_known(call: Call) -> Result:
    """The response to a registration that needs no leader; None for the others."""
    normalize = call.flag("normalize")
    return call.service.read(lambda state, library: register.known(state, library, call.subject, call.body, normalize))


def register_version(call: Call) -> Result:
    """POST /subjects/{subject}/versions: registers a schema"""
    normalize, force = call.flag("normalize"), call.flag("force")
    return call.service.write(
        lambda state, library: register.plan(state, library, call.subject, call.body, normalize=normalize, force=force)
    )


def find_schema(call: Call) -> Result:
    """POST /subjects/{subject}: the version that is this schema"""
    is_deleted = call.flag("deleted")

    def query(state: State, library: Library) -> Result:
        def look(name: str) -> Version | None:
            return register.find(state, library, name, call.body, call.flag("normalize"), deleted=is_deleted)

        version = look_up.same_anywhere(state, call.subject, look)
        if version is None and not any(state.versions(call.subject, deleted=is_deleted)):
            raise subject_not_found(call.subject)
        if version is None:
            raise schema_not_found()
        return entities.listed(version, _formatted(call, library, version))

    return call.service.read(query)


def delete_version(call: Call) -> Result:
    """DELETE /subjects/{subject}/versions/{version}: deletes it softly, or for good with `permanent`"""
    permanent = call.flag("permanent")
    return call.service.write(
        lambda state, _: delete.version(state, call.subject, call.path["version"], permanent=permanent)
    )


def delete_subject(call: Call) -> Result:
    """DELETE /subjects/{subject}: deletes all versions softly, or for good with `permanent`"""
    permanent = call.flag("permanent")
    return call.service.write(lambda state, _: delete.subject(state, call.subject, permanent=permanent))


def _formatted(call: Call, library: Library, version: Version) -> str | None:
    form = call.parameter("format")
    return library.parsed(version.definition, contexts.of(version.subject)).formatted(form) if form else None
