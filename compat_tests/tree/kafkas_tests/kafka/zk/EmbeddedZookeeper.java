package kafka.zk;

import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;

/**
 * In place of Kafka's own class in its tests: a fresh tree of kpybroker for each test. What listens at
 * kpybroker.trees responds to a connection with the port of a tree, which lives as long as the connection.
 */
public class EmbeddedZookeeper implements Closeable {
    private final Socket life;
    private final int port;

    public EmbeddedZookeeper() {
        try {
            life = new Socket(InetAddress.getLoopbackAddress(), Integer.getInteger("kpybroker.trees"));
            port = Integer.parseInt(new BufferedReader(new InputStreamReader(life.getInputStream())).readLine());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    public int port() {
        return port;
    }

    public int tickTime() {
        return 800;
    }

    public void shutdown() {
        try {
            life.shutdownOutput();
            life.getInputStream().readAllBytes(); // the end, once the tree is gone
            life.close();
        } catch (IOException error) {
            // it is gone
        }
    }

    @Override
    public void close() {
        shutdown();
    }
}
