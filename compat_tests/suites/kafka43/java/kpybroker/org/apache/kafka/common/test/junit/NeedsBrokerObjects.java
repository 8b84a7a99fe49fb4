package org.apache.kafka.common.test.junit;

/** A test asked for a Java object of the broker, which nothing on the wire can stand for. */
public class NeedsBrokerObjects extends UnsupportedOperationException {
    public NeedsBrokerObjects(String what) {
        super(what);
    }
}
