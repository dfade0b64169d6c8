import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.regionserver.HRegionServer;

/** A region server, the tables of OpenTSDB in it, and OpenTSDB's daemon over them, which is a process of its own. */
public final class OpentsdbNode {
    private static final String[] TABLES = {"tsdb", "tsdb-uid", "tsdb-tree", "tsdb-meta"};
    private static final long LOOK_EVERY_MS = 100;

    private OpentsdbNode() {
    }

    /**
     * Arguments: the address, the port for figures, how durable points are, the number of buckets that their keys are salted with (0: none), then
     * the command that starts the daemon.
     */
    public static void main(String[] arguments) throws Exception {
        Configuration configuration = HBaseConfiguration.create();
        HRegionServer server = new HRegionServer(configuration);
        RegionServerFigures.listen(new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1])), server);
        server.start();
        // The server has changed its configuration, so that clients need one of their own.
        createTables(HBaseConfiguration.create(), Durability.valueOf(arguments[2]), Integer.parseInt(arguments[3]));
        startDaemon(Arrays.asList(arguments).subList(4, arguments.length));
        server.join();
        System.exit(server.isAborted() ? 1 : 0);
    }

    /** As OpenTSDB's create_table.sh has them, and its documentation of salted keys. */
    private static void createTables(Configuration configuration, Durability durability, int buckets)
            throws IOException, InterruptedException {
        byte[][] splits = new byte[Math.max(buckets - 1, 0)][];
        for (int bucket = 1; bucket < buckets; bucket++) {
            splits[bucket - 1] = new byte[] {(byte) bucket};
        }
        try (Connection connection = ConnectionFactory.createConnection(configuration); Admin admin = connection.getAdmin()) {
            create(admin, durability, splits, "tsdb", "t");
            create(admin, Durability.USE_DEFAULT, new byte[0][], "tsdb-uid", "id", "name");
            create(admin, Durability.USE_DEFAULT, new byte[0][], "tsdb-tree", "t");
            create(admin, Durability.USE_DEFAULT, new byte[0][], "tsdb-meta", "name");
            // Those that were there before this server started have to be recovered first.
            for (String name : TABLES) {
                while (!admin.isTableAvailable(TableName.valueOf(name))) {
                    Thread.sleep(LOOK_EVERY_MS);
                }
            }
        }
    }

    /** Begins to make a table, if it is not there. */
    private static void create(Admin admin, Durability durability, byte[][] splits, String name, String... families)
            throws IOException {
        TableName table = TableName.valueOf(name);
        if (admin.tableExists(table)) {
            return;
        }
        TableDescriptorBuilder builder = TableDescriptorBuilder.newBuilder(table).setDurability(durability);
        for (String family : families) {
            builder.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(family.getBytes(StandardCharsets.UTF_8))
                    .setBloomFilterType(BloomType.ROW)
                    .build());
        }
        admin.createTableAsync(builder.build(), splits.length > 0 ? splits : null);
    }

    /** A node is of no use to clients without its daemon, so it ends with it. */
    private static void startDaemon(List<String> command) throws IOException {
        new ProcessBuilder(command)
                .redirectOutput(ProcessBuilder.Redirect.INHERIT)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start()
                .onExit()
                .thenRun(() -> System.exit(1));
    }
}
