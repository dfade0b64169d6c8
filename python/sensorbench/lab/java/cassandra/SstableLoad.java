import com.datastax.driver.core.AuthProvider;
import com.datastax.driver.core.PlainTextAuthProvider;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.io.sstable.CQLSSTableWriter;
import org.apache.cassandra.io.sstable.SSTableLoader;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.locator.SimpleSnitch;
import org.apache.cassandra.streaming.ProgressInfo;
import org.apache.cassandra.streaming.StreamEvent;
import org.apache.cassandra.streaming.StreamEventHandler;
import org.apache.cassandra.streaming.StreamResultFuture;
import org.apache.cassandra.streaming.StreamState;
import org.apache.cassandra.streaming.StreamingChannel;
import org.apache.cassandra.tools.BulkLoadConnectionFactory;
import org.apache.cassandra.utils.NativeSSTableLoaderClient;
import org.apache.cassandra.utils.OutputHandler;
import org.slf4j.LoggerFactory;

/**
 * Writes the rows that come on standard input as SSTables with Cassandra's own writer, and streams these to a cluster with
 * Cassandra's own loader. The protocol is in ../README.md. Nothing is streamed before the last row has come.
 */
public final class SstableLoad {
    private static final int ROWS_PER_REPORT = 100_000;
    private static final int LONGEST_MESSAGE = 300;
    private static final boolean TRACE = System.getenv("SENSORBENCH_TRACE") != null;

    /** Given back when something fails, so that a full heap has room for the message and for tidying up. */
    private static byte[] reserve = new byte[4 << 20];

    private SstableLoad() {}

    public static void main(String[] arguments) {
        PrintStream report = keepStandardOutputForReports();
        // Without this, an error on a thread of Cassandra's would leave the others waiting for it.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> fail(error));
        try {
            load(new Input(new FileInputStream(FileDescriptor.in)), report);
        } catch (Throwable error) {
            fail(error);
        }
        System.exit(0); // threads of Cassandra's are still there
    }

    /** Cassandra's log goes to standard error, and only on demand: there, a caller expects one line that says what failed. */
    private static PrintStream keepStandardOutputForReports() {
        PrintStream report = System.out;
        System.setOut(System.err);
        var log = (ch.qos.logback.classic.Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
        log.setLevel(TRACE ? ch.qos.logback.classic.Level.INFO : ch.qos.logback.classic.Level.OFF);
        return report;
    }

    private static synchronized void fail(Throwable error) {
        reserve = null;
        try {
            if (TRACE) {
                error.printStackTrace();
            }
            System.err.println("SstableLoad: " + reason(error));
        } finally { // even if there is no memory for a message
            System.exit(1);
        }
    }

    /** What the error and its causes say, in one line. */
    private static String reason(Throwable error) {
        return Stream.iterate(error, cause -> cause != null, Throwable::getCause)
                .map(SstableLoad::message)
                .distinct()
                .collect(Collectors.joining(": "));
    }

    /** Cassandra's messages may hold whole stack traces. */
    private static String message(Throwable error) {
        if (error instanceof OutOfMemoryError) {
            return error.getMessage() + "; give the JVM more memory (-Xmx)";
        }
        String message = error.getMessage() == null ? error.getClass().getSimpleName() : error.getMessage();
        String line = message.replaceAll("\\s+", " ");
        return line.length() <= LONGEST_MESSAGE ? line : line.substring(0, LONGEST_MESSAGE) + " ...";
    }

    private static void load(Input input, PrintStream report) throws Exception {
        Header header = new Header(input.line());
        // The loader reads keyspace and table off the path.
        Path folder = Files.createDirectories(temporaryFolder().resolve(header.keyspace).resolve(header.table));

        long started = System.nanoTime();
        CQLSSTableWriter writer = writer(header, folder);
        Cluster cluster = new Cluster(header);
        long rows = write(input, header, writer, report);
        long written = System.nanoTime();
        long bytes = stream(header, folder, cluster, report);
        long streamed = System.nanoTime();
        report.println(String.format(
                Locale.ROOT, "done %d %.3f %.3f %d", rows, (written - started) / 1e9, (streamed - written) / 1e9, bytes));
    }

    private static CQLSSTableWriter writer(Header header, Path folder) {
        try {
            return CQLSSTableWriter.builder()
                    .inDirectory(folder.toString())
                    .forTable(header.create)
                    .using(header.insert)
                    .withMaxSSTableSizeInMiB(sstableMib())
                    .build();
        } catch (RuntimeException error) {
            throw new Failure("the statement that creates the table or the one that inserts a row is refused", error);
        }
    }

    /**
     * How much data the writer keeps for an SSTable, as it counts it. On the heap, small rows take many times that, and the next
     * SSTable is collected while one is being written.
     */
    private static int sstableMib() {
        long heapMib = Runtime.getRuntime().maxMemory() >> 20;
        return (int) Math.max(1, Math.min(128, heapMib / 48));
    }

    private static long write(Input input, Header header, CQLSSTableWriter writer, PrintStream report) throws Exception {
        List<ByteBuffer> row = Arrays.asList(new ByteBuffer[header.columns()]);
        while (input.row(row)) {
            try {
                writer.rawAddRow(row);
            } catch (RuntimeException error) {
                throw new Failure("row " + input.rows() + " is refused", error);
            }
            if (input.rows() % ROWS_PER_REPORT == 0) {
                report.println("written " + input.rows());
            }
        }
        writer.close();
        report.println("written " + input.rows());
        return input.rows();
    }

    private static long stream(Header header, Path folder, Cluster cluster, PrintStream report) throws Exception {
        limitThroughput(header.throughputMib);
        DatabaseDescriptor.setEndpointSnitch(new SimpleSnitch()); // Cassandra 4.1 asks it about every node; a client has none
        SSTableLoader loader = new SSTableLoader(new File(folder), cluster, new NothingSkipped(), 1, header.keyspace);
        Progress progress = new Progress();
        StreamResultFuture done = loader.stream(Set.of(), progress);
        while (!isDone(done, loader)) {
            report.println(progress);
        }
        report.println(progress);
        return progress.sent.get();
    }

    /** Of what this process sends; 0 is no limit. */
    private static void limitThroughput(int mibPerSecond) {
        DatabaseDescriptor.setStreamThroughputOutboundBytesPerSec((long) mibPerSecond << 20);
        DatabaseDescriptor.setInterDCStreamThroughputOutboundBytesPerSec((long) mibPerSecond << 20);
        DatabaseDescriptor.setEntireSSTableStreamThroughputOutboundMebibytesPerSec(mibPerSecond);
        DatabaseDescriptor.setEntireSSTableInterDCStreamThroughputOutboundMebibytesPerSec(mibPerSecond);
    }

    /** Waits up to a second. */
    private static boolean isDone(StreamResultFuture streaming, SSTableLoader loader) throws InterruptedException {
        try {
            streaming.get(1, TimeUnit.SECONDS);
            return true;
        } catch (TimeoutException goesOn) {
            return false;
        } catch (ExecutionException error) {
            String message = "streaming to " + loader.getFailedHosts() + " failed; check that they are up, and the storage port";
            throw new Failure(message, error.getCause());
        }
    }

    /** A new folder that goes with this process. */
    private static Path temporaryFolder() throws IOException {
        Path folder = Files.createTempDirectory("sensorbench-sstables-");
        Thread removal = new Thread(() -> remove(folder));
        removal.setUncaughtExceptionHandler((thread, error) -> System.err.println("SstableLoad: " + folder + " stays: " + error));
        Runtime.getRuntime().addShutdownHook(removal);
        return folder;
    }

    /** After a signal the writer is still at work: what it adds meanwhile goes with the next attempt. */
    private static void remove(Path folder) {
        for (int attempt = 0; attempt < 100 && Files.exists(folder); attempt++) {
            try (Stream<Path> paths = Files.walk(folder)) {
                for (Path path : paths.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) {
                    Files.deleteIfExists(path);
                }
            } catch (IOException | UncheckedIOException changedMeanwhile) {
                continue;
            }
        }
        if (Files.exists(folder)) {
            throw new Failure("it was not removed in 100 attempts");
        }
    }

    /** What went wrong, in words for the caller. */
    private static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;

        Failure(String message) {
            super(message);
        }

        Failure(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** The first line of the input: where to, and what the rows are. */
    private static final class Header {
        final List<InetSocketAddress> hosts = new ArrayList<>();
        final int storagePort;
        final AuthProvider authentication;
        final String keyspace;
        final String table;
        final String create;
        final String insert;
        final int throughputMib;

        Header(String line) {
            JsonNode json = parse(line);
            int port = value(json, "port").asInt();
            value(json, "hosts").forEach(host -> hosts.add(new InetSocketAddress(host.asText(), port)));
            storagePort = value(json, "storage_port").asInt();
            String user = value(json, "user").textValue();
            authentication = user == null ? null : new PlainTextAuthProvider(user, value(json, "password").asText());
            keyspace = value(json, "keyspace").asText();
            table = value(json, "table").asText();
            create = value(json, "create").asText();
            insert = value(json, "insert").asText();
            throughputMib = value(json, "throughput_mib_s").asInt();
        }

        /** The parser's own message quotes the line, which may hold a password. */
        private static JsonNode parse(String line) {
            try {
                return new ObjectMapper().readTree(line);
            } catch (JsonProcessingException error) {
                throw new Failure("the first line of the input is not JSON (column " + error.getLocation().getColumnNr() + ")");
            }
        }

        private static JsonNode value(JsonNode json, String key) {
            if (!json.has(key)) {
                throw new Failure("the header (first line of the input) has no key " + key);
            }
            return json.get(key);
        }

        /** How many values a row has; should a name contain a question mark, the writer refuses the first row. */
        int columns() {
            return (int) insert.chars().filter(character -> character == '?').count();
        }
    }

    /**
     * The standard input. Values are slices of the blocks that they were read in, so that they are not copied, and a block lives
     * as long as its rows do.
     */
    private static final class Input {
        private static final int BLOCK = 1 << 18;
        private static final int LONGEST_VALUE = 256 << 20; // as in Cassandra's max_value_size
        private static final int NO_VALUE = -1;
        private static final int END = -2;

        private final InputStream stream;
        private ByteBuffer block = ByteBuffer.allocate(BLOCK);
        private int at = 0;
        private int end = 0;
        private long rows = 0;

        Input(InputStream stream) {
            this.stream = stream;
        }

        /** How many rows were read. */
        long rows() {
            return rows;
        }

        String line() throws IOException {
            int length = 0;
            do {
                if (length == BLOCK) {
                    throw new Failure("the first line of the input is longer than " + BLOCK + " bytes; expected the header");
                }
                need(++length, "in its first line");
            } while (block.get(at + length - 1) != '\n');
            at += length;
            return new String(block.array(), at - length, length, StandardCharsets.UTF_8);
        }

        /** Reads the values of the next row; false after the end mark. */
        boolean row(List<ByteBuffer> values) throws IOException {
            int length = number("without its end mark");
            if (length == END) {
                checkCount();
                return false;
            }
            for (int column = 0; column < values.size(); column++) {
                values.set(column, value(column == 0 ? length : number("in the middle of a row")));
            }
            rows++;
            return true;
        }

        private void checkCount() throws IOException {
            need(Long.BYTES, "in its end mark");
            long sent = block.getLong(at);
            if (sent != rows) {
                throw new Failure("the input says that it has " + sent + " rows, but has " + rows);
            }
        }

        private int number(String where) throws IOException {
            need(Integer.BYTES, where);
            at += Integer.BYTES;
            return block.getInt(at - Integer.BYTES);
        }

        private ByteBuffer value(int length) throws IOException {
            if (length == NO_VALUE) {
                return CQLSSTableWriter.UNSET_VALUE;
            }
            if (length < 0 || length > LONGEST_VALUE) {
                String expected = "expected 0 to " + LONGEST_VALUE + ", or -1 for no value";
                throw new Failure("row " + (rows + 1) + ": a value of " + length + " bytes; " + expected);
            }
            need(length, "in the middle of a row");
            at += length;
            return ByteBuffer.wrap(block.array(), at - length, length).slice();
        }

        /** Has the next bytes in the block, in a new one if there is no room for them in this. */
        private void need(int bytes, String where) throws IOException {
            if (at + bytes > block.capacity()) {
                ByteBuffer next = ByteBuffer.allocate(Math.max(BLOCK, bytes));
                System.arraycopy(block.array(), at, next.array(), 0, end - at);
                end -= at;
                at = 0;
                block = next;
            }
            while (end - at < bytes) {
                int read = stream.read(block.array(), end, block.capacity() - end);
                if (read < 0) {
                    throw new Failure("the input ends " + where + ", after " + rows + " rows; nothing was streamed");
                }
                end += read;
            }
        }
    }

    /**
     * Where to stream to. Asks the cluster for its ring and tables while the rows come, so that a wrong address or password is
     * seen at once, and connects to the nodes as Cassandra's BulkLoader does.
     */
    private static final class Cluster extends NativeSSTableLoaderClient {
        private final Header header;
        private final Thread inquiry = new Thread(this::inquire);

        Cluster(Header header) {
            super(header.hosts, header.storagePort, header.authentication, null);
            this.header = header;
            inquiry.start();
        }

        private void inquire() {
            try {
                super.init(header.keyspace);
            } catch (RuntimeException error) { // its own message is that it could not initialise itself
                throw new Failure("the cluster does not tell its ring and tables", error.getCause());
            }
            if (getTableMetadata(header.table) == null) {
                throw new Failure("the cluster has no table " + header.keyspace + "." + header.table + "; create it first");
            }
            if (getEndpointToRangesMap().isEmpty()) {
                throw new Failure("no node is a replica of keyspace " + header.keyspace + "; check its replication");
            }
        }

        /** Called by the loader. */
        @Override
        public void init(String keyspace) {
            try {
                inquiry.join();
            } catch (InterruptedException error) {
                throw new Failure("interrupted while the cluster was asked for its ring", error);
            }
        }

        @Override
        public StreamingChannel.Factory getConnectionFactory() {
            return new BulkLoadConnectionFactory(null, header.storagePort);
        }
    }

    /** The loader skips what it cannot open and tells its output handler; then the load would be incomplete. */
    private static final class NothingSkipped implements OutputHandler {
        @Override
        public void output(String message) {
            if (message.startsWith("Skipping")) {
                throw new Failure(message);
            }
        }

        @Override
        public void debug(String message) {}

        @Override
        public void warn(String message) {}

        /** Of Cassandra 4.1's interface. */
        public void warn(String message, Throwable error) {}

        /** Of Cassandra 5.0's interface. */
        public void warn(Throwable error, String message) {}
    }

    /** How many bytes were sent, to all replicas together, of how many. */
    private static final class Progress implements StreamEventHandler {
        final AtomicLong sent = new AtomicLong();
        private final AtomicLong total = new AtomicLong();

        @Override
        public void handleStreamEvent(StreamEvent event) {
            if (event instanceof StreamEvent.SessionPreparedEvent) {
                total.addAndGet(((StreamEvent.SessionPreparedEvent) event).session.getTotalSizeToSend());
            } else if (event instanceof StreamEvent.ProgressEvent) {
                ProgressInfo progress = ((StreamEvent.ProgressEvent) event).progress;
                sent.addAndGet(progress.deltaBytes);
            }
        }

        @Override
        public void onSuccess(StreamState state) {}

        @Override
        public void onFailure(Throwable error) {}

        @Override
        public String toString() {
            return "streamed " + sent + " " + total;
        }
    }
}
