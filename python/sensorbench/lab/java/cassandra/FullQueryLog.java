import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.netty.buffer.Unpooled;
import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueueBuilder;
import net.openhft.chronicle.wire.ValueIn;
import net.openhft.chronicle.wire.WireIn;
import org.apache.cassandra.cql3.QueryOptions;
import org.apache.cassandra.fql.FullQueryLogger;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.binlog.BinLog;
import org.slf4j.LoggerFactory;

/**
 * Prints a full query log, a folder of Cassandra's, a line of JSON for each record: {@code at_ms}, {@code keyspace} or null,
 * {@code consistency}, {@code batch} (LOGGED, UNLOGGED, COUNTER) or null, and {@code statements}, each with its text and the bytes that
 * were bound to it (hexadecimal, null where there are none). The log does not say of which types they are.
 */
public final class FullQueryLog {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final char[] DIGITS = "0123456789abcdef".toCharArray();

    private FullQueryLog() {
    }

    /** Argument: the folder. */
    public static void main(String[] arguments) {
        // What the libraries say themselves goes to standard error.
        PrintStream out = new PrintStream(
                new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        System.setProperty("chronicle.announcer.disable", "true");
        System.setProperty("chronicle.analytics.disable", "true");
        var log = (ch.qos.logback.classic.Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
        log.setLevel(ch.qos.logback.classic.Level.OFF);
        int code = 0;
        try {
            print(new File(arguments[0]), out);
        } catch (Throwable error) {
            System.err.println("FullQueryLog: " + error);
            code = 1;
        }
        out.flush();
        // Threads of the libraries are still there.
        Runtime.getRuntime().halt(code);
    }

    private static void print(File folder, PrintStream out) throws IOException {
        // The folder says itself how its files are rolled.
        try (ChronicleQueue queue = SingleChronicleQueueBuilder.single(folder).readOnly(true).build()) {
            ExcerptTailer tailer = queue.createTailer();
            ObjectNode[] read = new ObjectNode[1];
            while (tailer.readDocument(wire -> read[0] = record(wire))) {
                out.print(JSON.writeValueAsString(read[0]));
                out.print('\n');
                if (out.checkError()) {
                    return;
                }
            }
        }
    }

    private static ObjectNode record(WireIn wire) {
        int version = wire.read(BinLog.VERSION).int16();
        if (version > FullQueryLogger.CURRENT_VERSION) {
            throw new IllegalStateException("records of version " + version + "; this Cassandra reads up to " + FullQueryLogger.CURRENT_VERSION);
        }
        String type = wire.read(BinLog.TYPE).text();
        ObjectNode record = JSON.createObjectNode();
        record.put("at_ms", wire.read(FullQueryLogger.QUERY_START_TIME).int64());
        ProtocolVersion protocol = ProtocolVersion.decode(wire.read(FullQueryLogger.PROTOCOL_VERSION).int32(), true);
        QueryOptions options =
                QueryOptions.codec.decode(Unpooled.wrappedBuffer(wire.read(FullQueryLogger.QUERY_OPTIONS).bytes()), protocol);
        record.put("consistency", options.getConsistency().name());
        wire.read(FullQueryLogger.GENERATED_TIMESTAMP).int64();
        wire.read(FullQueryLogger.GENERATED_NOW_IN_SECONDS).int64();
        record.put("keyspace", wire.read(FullQueryLogger.KEYSPACE).text());
        if (FullQueryLogger.SINGLE_QUERY.equals(type)) {
            record.putNull("batch");
            add(record.putArray("statements"), wire.read(FullQueryLogger.QUERY).text(), options.getValues());
        } else if (FullQueryLogger.BATCH.equals(type)) {
            record.put("batch", wire.read(FullQueryLogger.BATCH_TYPE).text());
            addBatch(record.putArray("statements"), wire);
        } else {
            throw new IllegalStateException("records of type " + type);
        }
        return record;
    }

    private static void addBatch(ArrayNode statements, WireIn wire) {
        ValueIn in = wire.read(FullQueryLogger.QUERIES);
        int count = in.int32();
        List<String> queries = new ArrayList<>(count);
        for (int number = 0; number < count; number++) {
            queries.add(in.text());
        }
        in = wire.read(FullQueryLogger.VALUES);
        int lists = in.int32();
        for (int number = 0; number < lists; number++) {
            int length = in.int32();
            List<ByteBuffer> values = new ArrayList<>(length);
            for (int place = 0; place < length; place++) {
                byte[] value = in.bytes();
                values.add(value == null ? null : ByteBuffer.wrap(value));
            }
            add(statements, queries.get(number), values);
        }
    }

    private static void add(ArrayNode statements, String query, List<ByteBuffer> values) {
        ArrayNode statement = statements.addArray();
        statement.add(query);
        ArrayNode written = statement.addArray();
        if (values != null) {
            for (ByteBuffer value : values) {
                // What was left unset is not told from null.
                written.add(value == null || value == ByteBufferUtil.UNSET_BYTE_BUFFER ? null : hexadecimal(value));
            }
        }
    }

    private static String hexadecimal(ByteBuffer value) {
        StringBuilder text = new StringBuilder(2 * value.remaining());
        for (int place = value.position(); place < value.limit(); place++) {
            text.append(DIGITS[value.get(place) >> 4 & 15]).append(DIGITS[value.get(place) & 15]);
        }
        return text.toString();
    }
}
