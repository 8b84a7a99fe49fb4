package org.apache.kafka.common.test.junit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.network.ListenerName;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
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
    private volatile Map<Integer, Map<String, Integer>> listeners = Map.of();

    /** Properties by the id of the broker. */
    void start(Map<Integer, Map<String, String>> properties) {
        connect();
        note(ask(Map.of("start", properties)));
    }

    /** One more broker, on a tree that all share; or one that is down, with other properties. */
    void join(int id, Map<String, String> properties) {
        connect();
        note(ask(Map.of("join", Map.of(id, properties))));
        down.remove(id);
    }

    private void note(JsonNode response) {
        Map<Integer, Map<String, Integer>> found = new TreeMap<>();
        response.get("ports").properties().forEach(broker -> {
            Map<String, Integer> own = new LinkedHashMap<>();
            broker.getValue().properties().forEach(one -> own.put(one.getKey(), one.getValue().asInt()));
            found.put(Integer.valueOf(broker.getKey()), own);
        });
        listeners = found;
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

    /** Of the listener between brokers. */
    Map<Integer, Integer> ports() {
        Map<Integer, Integer> found = new TreeMap<>();
        listeners.forEach((id, own) -> found.put(id, own.values().iterator().next()));
        return found;
    }

    int port(int id, ListenerName listener) {
        Map<String, Integer> own = listeners.get(id);
        return own.getOrDefault(listener.value(), own.values().iterator().next());
    }

    boolean isDown(int id) {
        return down.contains(id);
    }

    void stopOne(int id) {
        if (!listeners.containsKey(id) || isDown(id)) {
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
    List<File> data(int id) {
        List<File> found = new ArrayList<>();
        ask(Map.of("data", id)).get("directories").forEach(one -> found.add(new File(one.asText())));
        return found;
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
