package org.apache.kafka.common.test.junit;

import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.ApiVersionsResponseData.ApiVersion;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.ApiVersionsRequest;
import org.apache.kafka.common.requests.ApiVersionsResponse;
import org.apache.kafka.server.IntegrationTestUtils;

import java.io.IOException;
import java.lang.reflect.Field;

/**
 * If asked for: the latest version that tests see of an API is the latest that the broker serves. Tests of requests, which
 * go through all versions, then end, and tests that use the latest one of another API do what they are about.
 */
final class ServedVersions {
    private ServedVersions() {
    }

    static void limitTests(int port) throws IOException, ReflectiveOperationException {
        if (!Boolean.getBoolean("kpybroker.served.versions")) {
            return;
        }
        ApiVersionsResponse response = IntegrationTestUtils.connectAndReceive(
            new ApiVersionsRequest.Builder().build(ApiKeys.API_VERSIONS.latestVersion()), port);
        for (ApiVersion served : response.data().apiKeys()) {
            ApiMessageType type = ApiMessageType.fromApiKey(served.apiKey());
            if (served.maxVersion() < type.highestSupportedVersion(true)) {
                field("highestSupportedVersion").setShort(type, served.maxVersion());
                field("latestVersionUnstable").setBoolean(type, false);
            }
        }
    }

    private static Field field(String name) throws ReflectiveOperationException {
        Field found = ApiMessageType.class.getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }
}
