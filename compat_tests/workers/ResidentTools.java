import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's tools in this JVM, one after the other, for support/resident.py.
 *
 * Standard input has the requests: the main class, the number of arguments and the arguments, and the tool's standard
 * input, each text with its length before it. Standard output has frames: a byte, a length, and so many bytes. 'o' and
 * 'e' are what the tool has written; 'x' ends it with its exit code and 1, or 0 if this JVM ends with it.
 *
 * A tool finds what it finds in a JVM of its own. The classes of the jars with tools are loaded again for each, since
 * their static fields are the tool's. Those of the clients and libraries stay: of their static fields only the counters
 * that number clients change, and these begin again. A tool that ends while threads of its own run would end them with
 * its JVM, so the JVM ends. The end of standard input is the end of this JVM at any time.
 */
public class ResidentTools {
    static final String[] TOOL_JARS = {"kafka-tools-[0-9].*", "kafka_2.*"};
    static final String[][] COUNTERS = {
        {"org.apache.kafka.clients.admin.KafkaAdminClient", "ADMIN_CLIENT_ID_SEQUENCE"},
        {"org.apache.kafka.clients.consumer.ConsumerConfig", "CONSUMER_CLIENT_ID_SEQUENCE"},
        {"org.apache.kafka.clients.producer.ProducerConfig", "PRODUCER_CLIENT_ID_SEQUENCE"},
    };
    static final int THREADS_END_MS = 200;
    /** Of a library, for as long as its classes are loaded: Yammer's metrics have them from the first meter on. */
    static final String LIBRARY_THREADS = "metrics-meter-tick-thread-";

    static final DataOutputStream FRAMES = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
    static final Input INPUT = new Input();
    static volatile Tool current;

    public static void main(String[] none) throws Exception {
        DataInputStream requests = new DataInputStream(new FileInputStream(FileDescriptor.in));
        System.setIn(INPUT);
        System.setOut(new PrintStream(new Output('o'), true));
        System.setErr(new PrintStream(new Output('e'), true));
        Exit.setExitProcedure((code, message) -> current.exit(code));
        Exit.setHaltProcedure((code, message) -> current.halt(code));
        URL[] jars = toolJars();
        Properties properties = (Properties) System.getProperties().clone();
        while (true) {
            String main;
            try {
                main = text(requests);
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            String[] arguments = new String[requests.readInt()];
            for (int i = 0; i < arguments.length; i++)
                arguments[i] = text(requests);
            INPUT.bytes = new ByteArrayInputStream(bytes(requests));
            System.setProperties((Properties) properties.clone());
            startCountersAgain();
            current = new Tool(main, arguments, new ToolLoader(jars));
            current.start();
        }
    }

    static URL[] toolJars() throws IOException {
        List<URL> found = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(":"))
            for (String pattern : TOOL_JARS)
                if (Path.of(entry).getFileName().toString().matches(pattern))
                    found.add(Path.of(entry).toUri().toURL());
        return found.toArray(new URL[0]);
    }

    static void startCountersAgain() throws ReflectiveOperationException {
        for (String[] counter : COUNTERS)
            ((AtomicInteger) valueOf(Class.forName(counter[0]), counter[1], null)).set(1);
    }

    static Object valueOf(Class<?> type, String field, Object of) throws ReflectiveOperationException {
        Field found = type.getDeclaredField(field);
        found.setAccessible(true);
        return found.get(of);
    }

    /** What a thread runs that has not started. */
    static Object taskOf(Object thread) throws ReflectiveOperationException {
        try {
            return valueOf(Thread.class, "target", thread);
        } catch (NoSuchFieldException since_java_19) {
            return valueOf(Class.forName("java.lang.Thread$FieldHolder"), "task", valueOf(Thread.class, "holder", thread));
        }
    }

    static byte[] bytes(DataInputStream from) throws IOException {
        byte[] bytes = new byte[from.readInt()];
        from.readFully(bytes);
        return bytes;
    }

    static String text(DataInputStream from) throws IOException {
        return new String(bytes(from), StandardCharsets.UTF_8);
    }

    static void send(char kind, byte[] bytes, int from, int length) {
        synchronized (FRAMES) {
            try {
                FRAMES.writeByte(kind);
                FRAMES.writeInt(length);
                FRAMES.write(bytes, from, length);
                FRAMES.flush();
            } catch (IOException gone) {
                Runtime.getRuntime().halt(1);
            }
        }
    }

    /** Finds a class among the tools first, and a library's where every library is. */
    static class ToolLoader extends URLClassLoader {
        ToolLoader(URL[] jars) {
            super(jars, ResidentTools.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                if (loaded != null)
                    return loaded;
                if (name.startsWith("kafka.") || name.startsWith("org.apache.kafka."))
                    try {
                        return findClass(name);
                    } catch (ClassNotFoundException of_a_library) {
                        // the parent has it
                    }
                return super.loadClass(name, resolve);
            }
        }
    }

    /** Leaves the stack of a tool that has called exit, past all that it catches. */
    static class Ended extends Error {
        static final long serialVersionUID = 1;

        Ended() {
            super("the tool has called exit", null, false, false);
        }
    }

    /** A tool that runs or has run. */
    static class Tool {
        final ThreadGroup group = new ThreadGroup("tool");
        final String main;
        final String[] arguments;
        final ToolLoader loader;
        final Thread thread = new Thread(group, this::run, "main");
        volatile boolean ended;
        int code;

        Tool(String main, String[] arguments, ToolLoader loader) {
            this.main = main;
            this.arguments = arguments;
            this.loader = loader;
        }

        void start() {
            thread.setContextClassLoader(loader);
            thread.start();
        }

        void run() {
            int code = 0;
            try {
                loader.loadClass(main).getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException thrown) {
                System.err.print("Exception in thread \"main\" ");
                thrown.getCause().printStackTrace();
                code = 1;
            } catch (ClassNotFoundException missing) {
                System.err.println("Error: Could not find or load main class " + main);
                System.err.println("Caused by: " + missing);
                code = 1;
            } catch (ReflectiveOperationException wrong) {
                wrong.printStackTrace();
                code = 1;
            }
            if (!ended) {
                awaitOthers(other -> !other.isDaemon(), Long.MAX_VALUE);
                end(code);
            }
            report(!awaitOthers(other -> true, THREADS_END_MS));
        }

        /** As Runtime.exit: what comes after it is not seen. Other threads would end with the JVM, so they do. */
        void exit(int code) {
            end(code);
            if (Thread.currentThread() != thread || awaitOthers(other -> true, THREADS_END_MS))
                report(false);
            throw new Ended();
        }

        void halt(int code) {
            end(code, List.of());
            report(false);
        }

        void end(int code) {
            end(code, takeHooks());
        }

        /** Run the hooks. After that the tool's output is complete, and its exit code is known. */
        synchronized void end(int code, List<Thread> hooks) {
            if (ended)
                return;
            for (Thread hook : hooks)
                hook.start();
            for (Thread hook : hooks)
                join(hook, 0);
            System.out.flush();
            System.err.flush();
            synchronized (FRAMES) {
                this.code = code;
                ended = true;
            }
        }

        /** Of the hooks of this JVM those that run code of the tool. A library's, such as log4j's, stay. */
        List<Thread> takeHooks() {
            List<Thread> taken = new ArrayList<>();
            try {
                Class<?> all = Class.forName("java.lang.ApplicationShutdownHooks");
                synchronized (all) {
                    for (Object hook : ((Map<?, ?>) valueOf(all, "hooks", null)).keySet())
                        if (isOfTool(hook) || isOfTool(taskOf(hook)))
                            taken.add((Thread) hook);
                }
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
            for (Thread hook : taken)
                Runtime.getRuntime().removeShutdownHook(hook);
            return taken;
        }

        boolean isOfTool(Object object) {
            return object != null && object.getClass().getClassLoader() == loader;
        }

        void report(boolean stays) {
            try {
                loader.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            send('x', new byte[] {(byte) code, (byte) (stays ? 1 : 0)}, 0, 2);
            if (!stays)
                Runtime.getRuntime().halt(code);
        }

        /** Wait so long for the tool's other threads of this kind to end. True if one has not. */
        boolean awaitOthers(Predicate<Thread> kind, long ms) {
            long start = System.nanoTime();
            while (true) {
                Thread other = other(kind);
                long left = ms - (System.nanoTime() - start) / 1_000_000;
                if (other == null || left <= 0)
                    return other != null;
                join(other, left);
            }
        }

        Thread other(Predicate<Thread> kind) {
            Thread[] threads = new Thread[group.activeCount() + 100];
            int count = group.enumerate(threads, true);
            for (int i = 0; i < count; i++)
                if (threads[i] != Thread.currentThread() && kind.test(threads[i])
                    && !threads[i].getName().startsWith(LIBRARY_THREADS))
                    return threads[i];
            return null;
        }

        static void join(Thread thread, long ms) {
            try {
                thread.join(ms);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** A tool's standard input, a line at a time, so that no buffer that outlives the tool takes more than it asks for. */
    static class Input extends InputStream {
        volatile ByteArrayInputStream bytes = new ByteArrayInputStream(new byte[0]);

        @Override
        public int read() {
            return bytes.read();
        }

        @Override
        public int read(byte[] into, int offset, int length) {
            int count = 0;
            while (count < length) {
                int next = bytes.read();
                if (next < 0)
                    break;
                into[offset + count++] = (byte) next;
                if (next == '\n')
                    break;
            }
            return count == 0 && length > 0 ? -1 : count;
        }
    }

    /** A tool's standard output or its errors, as frames; nothing once the tool has ended. */
    static class Output extends OutputStream {
        final char kind;

        Output(char kind) {
            this.kind = kind;
        }

        @Override
        public void write(int one) {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int from, int length) {
            synchronized (FRAMES) {
                if (!current.ended)
                    send(kind, bytes, from, length);
            }
        }
    }
}
