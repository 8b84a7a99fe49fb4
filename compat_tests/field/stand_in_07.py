"""A consumer with the classes of Kafka 0.7's that KafkaMigrationTool calls, for want of its jar.

No repository has that jar, and no broker since 0.8 speaks 0.7's protocol. So this consumer reads a file: each line is a
record of the topic that the tool's whitelist names. What it stands in for is the tool's source; the tool itself, its
loader of classes and its producer of 0.8 are Kafka's.
"""

from __future__ import annotations

from pathlib import Path

from compat_tests.support.tools import run_process

RECORDS_KEY = "records.file"
"""In the consumer's properties: where the records are."""

_FILTER = "public class {0} extends TopicFilter {{ public {0}(String expression) {{ super(expression); }} }}"
SOURCES = {
    "kafka.message.Message": """
        public class Message {
            private final byte[] bytes;
            public Message(byte[] bytes) { this.bytes = bytes; }
            public java.nio.ByteBuffer payload() { return java.nio.ByteBuffer.wrap(bytes); }
        }""",
    "kafka.message.MessageAndMetadata": """
        public class MessageAndMetadata {
            private final Message message;
            private final String topic;
            public MessageAndMetadata(Message message, String topic) { this.message = message; this.topic = topic; }
            public Message message() { return message; }
            public String topic() { return topic; }
        }""",
    "kafka.consumer.TopicFilter": """
        public class TopicFilter {
            public final String expression;
            public TopicFilter(String expression) { this.expression = expression; }
        }""",
    "kafka.consumer.Whitelist": _FILTER.format("Whitelist"),
    "kafka.consumer.Blacklist": _FILTER.format("Blacklist"),
    "kafka.consumer.ConsumerConfig": """
        public class ConsumerConfig {
            public final java.util.Properties properties;
            public ConsumerConfig(java.util.Properties properties) { this.properties = properties; }
        }""",
    "kafka.consumer.ConsumerIterator": """
        public class ConsumerIterator {
            private final java.util.Iterator<String> lines;
            private final String topic;
            public ConsumerIterator(java.util.Iterator<String> lines, String topic) {
                this.lines = lines;
                this.topic = topic;
            }
            public boolean hasNext() { return lines.hasNext(); }
            public kafka.message.MessageAndMetadata next() {
                byte[] bytes = lines.next().getBytes(java.nio.charset.StandardCharsets.UTF_8);
                return new kafka.message.MessageAndMetadata(new kafka.message.Message(bytes), topic);
            }
        }""",
    "kafka.consumer.KafkaStream": """
        public class KafkaStream {
            private final ConsumerIterator iterator;
            public KafkaStream(ConsumerIterator iterator) { this.iterator = iterator; }
            public ConsumerIterator iterator() { return iterator; }
        }""",
    "kafka.javaapi.consumer.ConsumerConnector": f"""
        public class ConsumerConnector {{
            private final kafka.consumer.ConsumerConfig config;
            public ConsumerConnector(kafka.consumer.ConsumerConfig config) {{ this.config = config; }}
            public java.util.List<kafka.consumer.KafkaStream> createMessageStreamsByFilter(
                    kafka.consumer.TopicFilter topics, int streams) throws java.io.IOException {{
                java.nio.file.Path file = java.nio.file.Paths.get(config.properties.getProperty("{RECORDS_KEY}"));
                java.util.Iterator<String> lines = java.nio.file.Files.readAllLines(file).iterator();
                return java.util.Collections.nCopies(streams, new kafka.consumer.KafkaStream(
                        new kafka.consumer.ConsumerIterator(lines, topics.expression)));
            }}
            public void shutdown() {{ }}
        }}""",
    "kafka.consumer.Consumer": """
        public class Consumer {
            public static kafka.javaapi.consumer.ConsumerConnector createJavaConsumerConnector(ConsumerConfig config) {
                return new kafka.javaapi.consumer.ConsumerConnector(config);
            }
        }""",
}
"""By the class's name, its source but for the line with its package."""


def compile_to(directory: Path) -> Path:
    """The directory with the classes, which the tool takes for a jar."""
    files = []
    for name, source in SOURCES.items():
        package, _, simple = name.rpartition(".")
        file = directory / "source" / package.replace(".", "/") / f"{simple}.java"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"package {package};\n{source}\n")
        files.append(str(file))
    classes = directory / "classes"
    run_process(["javac", "-d", str(classes), *files])
    return classes
