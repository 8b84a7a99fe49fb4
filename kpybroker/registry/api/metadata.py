"""`/` and `/v1/metadata`: whose registry this is."""

from __future__ import annotations

import kpybroker
from kpybroker.registry.api.call import Call, Result

GROUP = "schema-registry"


def get_root(call: Call) -> Result:
    """GET /: nothing, which shows that the registry responds"""
    return {}


def get_id(call: Call) -> Result:
    """GET /v1/metadata/id: the names of the cluster and of the group"""
    clusters = {"kafka-cluster": call.service.cluster_id(), "schema-registry-cluster": GROUP}
    return {"scope": {"path": [], "clusters": clusters}}


def get_deployment(call: Call) -> Result:
    """GET /v1/metadata/deployment: no attributes"""
    return {"attributes": []}


def get_version(call: Call) -> Result:
    """GET /v1/metadata/version: the version of this registry"""
    return {"version": f"kpybroker {kpybroker.__version__}", "commitId": ""}
