package org.apache.kafka.common.test.junit;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DeleteAclsResult;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.AclDeleteResult.AclBindingDeleteResult;
import org.apache.kafka.server.authorizer.Authorizer;

import org.mockito.Mockito;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** A stand-in for the authorizer of a broker: its ACLs, as a client of the listener between brokers sees and changes them. */
final class WireAcls {
    private WireAcls() {
    }

    static Plugin<Authorizer> plugin(WireCluster cluster) {
        Authorizer authorizer = Mockito.mock(Authorizer.class, WireObjects.only(Map.of(
            "acls", call -> acls(cluster, call.getArgument(0)),
            "createAcls", call -> create(cluster, call.getArgument(1)),
            "deleteAcls", call -> delete(cluster, call.getArgument(1)))));
        return Plugin.wrapInstance(authorizer, null, WireProperties.AUTHORIZER);
    }

    private static Collection<AclBinding> acls(WireCluster cluster, AclBindingFilter filter) throws Exception {
        try (Admin admin = cluster.internalAdmin(Map.of())) {
            return admin.describeAcls(filter).values().get();
        }
    }

    private static List<CompletableFuture<AclCreateResult>> create(WireCluster cluster, List<AclBinding> bindings) throws Exception {
        try (Admin admin = cluster.internalAdmin(Map.of())) {
            admin.createAcls(bindings).all().get();
        }
        return bindings.stream().map(one -> CompletableFuture.completedFuture(AclCreateResult.SUCCESS)).toList();
    }

    private static List<CompletableFuture<AclDeleteResult>> delete(WireCluster cluster, List<AclBindingFilter> filters) throws Exception {
        List<CompletableFuture<AclDeleteResult>> results = new ArrayList<>();
        try (Admin admin = cluster.internalAdmin(Map.of())) {
            DeleteAclsResult deleted = admin.deleteAcls(filters);
            for (AclBindingFilter filter : filters) {
                List<AclBindingDeleteResult> gone = deleted.values().get(filter).get().values().stream()
                    .map(one -> new AclBindingDeleteResult(one.binding())).toList();
                results.add(CompletableFuture.completedFuture(new AclDeleteResult(gone)));
            }
        }
        return results;
    }
}
