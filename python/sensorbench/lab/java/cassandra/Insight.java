import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;

import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Tells what only the management (JMX) of a node knows, to whoever connects: lines of a name and a number, then the end. A few
 * MBeans are asked from within the node, by their names; a client of JMX would need a Java of its own.
 */
final class Insight implements Runnable {
    private static final int BACKLOG = 50;
    private static final String METRICS = "org.apache.cassandra.metrics:type=";
    private static final ObjectName SERVICE = named("org.apache.cassandra.db:type=StorageService");
    /** Latencies of writes that this node coordinates, in µs: the virtual tables of latencies have whole ms. */
    private static final String WRITES = "ClientRequest,scope=Write,name=Latency";
    private static final String TABLES = "org.apache.cassandra.db:type=Tables,*";
    /** What is told of the tables, and the attribute that has it. */
    private static final Map<String, String> OF_TABLES = Map.of(
            "LiveSSTableCount", "Value",
            "TotalDiskSpaceUsed", "Count",
            "AllMemtablesOnHeapDataSize", "Value",
            "AllMemtablesOffHeapDataSize", "Value");

    private final ServerSocket door;
    private final MBeanServer beans = ManagementFactory.getPlatformMBeanServer();

    private Insight(ServerSocket door) {
        this.door = door;
    }

    /** Answers at one address and port, on a thread of its own, as long as the node runs. */
    static void listen(String host, int port) throws IOException {
        Thread thread = new Thread(new Insight(new ServerSocket(port, BACKLOG, InetAddress.getByName(host))), "insight");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void run() {
        while (true) {
            try (Socket caller = door.accept();
                    PrintStream out = new PrintStream(caller.getOutputStream(), false, StandardCharsets.UTF_8)) {
                told().forEach((name, number) -> out.print(name + " " + number + "\n"));
            } catch (IOException | JMException | RuntimeException gone) {
                // The caller went, or a table was dropped meanwhile: the next one is answered.
            }
        }
    }

    private Map<String, Long> told() throws JMException {
        Map<String, Long> told = new TreeMap<>();
        told.put("jmx.StorageService.Tokens", (long) ((Collection<?>) beans.getAttribute(SERVICE, "Tokens")).size());
        told.put("jmx.Compaction.PendingTasks", number("Compaction,name=PendingTasks", "Value"));
        if (beans.isRegistered(named(METRICS + WRITES))) {
            told.put("jmx.ClientRequest.Write.50thPercentile", number(WRITES, "50thPercentile"));
        }
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            told.merge("jmx.GarbageCollector.CollectionTime", collector.getCollectionTime(), Long::sum);
        }
        for (ObjectName table : beans.queryNames(new ObjectName(TABLES), null)) {
            if (!isOfTheServer(table.getKeyProperty("keyspace"))) {
                addTable(table, told);
            }
        }
        return told;
    }

    private void addTable(ObjectName table, Map<String, Long> told) throws JMException {
        for (Map.Entry<String, String> of : OF_TABLES.entrySet()) {
            String bean = String.format("Table,keyspace=%s,scope=%s,name=%s",
                    table.getKeyProperty("keyspace"), table.getKeyProperty("table"), of.getKey());
            told.merge("jmx.Table." + of.getKey(), number(bean, of.getValue()), Long::sum);
        }
    }

    private static ObjectName named(String name) {
        try {
            return new ObjectName(name);
        } catch (JMException wrong) {
            throw new IllegalArgumentException(wrong);
        }
    }

    private static boolean isOfTheServer(String keyspace) {
        return keyspace.equals("system") || keyspace.startsWith("system_");
    }

    private long number(String bean, String attribute) throws JMException {
        return ((Number) beans.getAttribute(new ObjectName(METRICS + bean), attribute)).longValue();
    }
}
