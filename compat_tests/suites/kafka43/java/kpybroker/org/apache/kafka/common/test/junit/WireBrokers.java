package org.apache.kafka.common.test.junit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListSet;

/**
 * Brokers of one test, made by who listens at kpybroker.brokers: a line of JSON asks, a line of JSON responds. They live
 * as long as the connection.
 */
class WireBrokers implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private Socket life;
    private BufferedReader lines;
    private final Set<Integer> down = new ConcurrentSkipListSet<>();
    private volatile Map<Integer, Integer> ports = Map.of();

    /** Properties by the id of the broker. */
    void start(Map<Integer, Map<String, String>> properties) {
        connect();
        Map<Integer, Integer> found = new TreeMap<>();
        JsonNode response = ask(Map.of("start", properties));
        response.get("ports").properties().forEach(e -> found.put(Integer.valueOf(e.getKey()), e.getValue().asInt()));
        ports = found;
    }

    /** One more broker, on a tree that all share; or one that is down, with other properties. */
    void join(int id, Map<String, String> properties) {
        connect();
        int port = ask(Map.of("join", Map.of(id, properties))).get("ports").get(String.valueOf(id)).asInt();
        Map<Integer, Integer> found = new TreeMap<>(ports);
        found.put(id, port);
        ports = found;
        down.remove(id);
    }

    private void connect() {
        if (life != null) {
            return;
        }
        try {
            life = new Socket(InetAddress.getLoopbackAddress(), Integer.getInteger("kpybroker.brokers"));
            lines = new BufferedReader(new InputStreamReader(life.getInputStream(), StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    Map<Integer, Integer> ports() {
        return ports;
    }

    boolean isDown(int id) {
        return down.contains(id);
    }

    void stopOne(int id) {
        if (!ports.containsKey(id) || isDown(id)) {
            return;
        }
        ask(Map.of("stop", id));
        down.add(id);
    }

    void startOne(int id) {
        ask(Map.of("restart", id));
        down.remove(id);
    }

    /** Where a broker keeps its data, in the format of Kafka's. */
    File data(int id) {
        return new File(ask(Map.of("data", id)).get("directory").asText());
    }

    private synchronized JsonNode ask(Map<String, ?> request) {
        try {
            life.getOutputStream().write((JSON.writeValueAsString(request) + "\n").getBytes(StandardCharsets.UTF_8));
            String line = lines.readLine();
            if (line == null) {
                throw new IllegalStateException("who makes the brokers is gone");
            }
            JsonNode response = JSON.readTree(line);
            if (response.has("error")) {
                throw new IllegalStateException("kpybroker: " + response.get("error").asText());
            }
            return response;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void close() {
        if (life == null) {
            return;
        }
        try {
            life.shutdownOutput();
            lines.readLine(); // the end, once the brokers are gone
            life.close();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
